"""Netlists against the golden model: gate-level simulation, every result compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.formats import BlockFormat
from hwgen.netlist.graph import Netlist
from hwgen.power.activity import respond
from sim import golden
from sim.counterpart import counterpart
from sim.random import random_steps
from sim.steps import Steps, code_bits

__all__ = [
    "VECTORS",
    "check_control",
    "check_core",
    "check_lanes",
    "core_inputs",
    "lane_inputs",
    "lane_outputs",
    "lead",
]

_SEGMENT = 24
_STREAMS = 32
"""Cycles from reset to reset, and streams, of `check_control`."""

VECTORS = 100_000
"""Results of every netlist that are compared with the golden model, at least."""


def lead(config: TensorCoreConfig) -> int:
    """Cycles that `core_inputs` has before the first step, for its C to be there in time: 1 or none."""
    return 0 if config.entrance else 1


def core_inputs(config: TensorCoreConfig, streams: Sequence[Steps]) -> dict[str, NDArray[np.uint8]]:
    """Stimulus of a core's netlist: one step per cycle, streams of one length; results follow ``config.latency``.

    The first step comes in cycle `lead`. Each C comes a cycle before its step enters the accumulation loop; until the
    next one its port stays as it is.
    """
    before, count = lead(config), len(streams[0])
    # After the last step the stream begins again, so that every cycle that counts has a step in every stage.
    order = np.arange(count + config.latency) % count
    steps = np.pad(order, (before, 0), mode="edge")
    # The step whose C is at the port, in each cycle; the first one's before there is any.
    addends = np.maximum(np.arange(len(steps)) - before - config.entrance + 1, 0)
    payload = np.stack([stream.bits()[steps] for stream in streams], axis=1)
    ones = np.ones((*payload.shape[:2], 1), np.uint8)
    offered, supplied, words = ones.copy(), ones.copy(), []
    offered[:before] = 0
    for index, stream in enumerate(streams):
        supplied[:, index, 0] = stream.first[addends % count]
        supplied[: max(config.entrance - 1, 0), index, 0] = 0
        # Of a step without ``first`` the C of its tile's first step, be it of another slot.
        begins = np.maximum.accumulate(np.where(stream.first[addends % count], addends, 0))
        words.append(_c_bits(stream)[begins % count])
    return {
        "step__payload": payload,
        "step__valid": offered,
        "addend__payload": np.stack(words, axis=1),
        "addend__valid": supplied,
        "result__ready": ones,
        "rst": 1 - ones,
    }


def _c_bits(steps: Steps) -> NDArray[np.uint8]:
    """C of every step as payload bits, (S, 32 M N)."""
    return np.unpackbits(
        np.ascontiguousarray(steps.c, "<u4").view(np.uint8).reshape(len(steps), -1), 1, bitorder="little"
    )


def _compare_core(
    outputs: Mapping[str, NDArray[np.uint8]], config: TensorCoreConfig, expected: Sequence[NDArray[np.uint32]]
) -> int:
    """Number of results that are right, which is all of them."""
    answered = outputs["result__valid"][:, :, 0].astype(bool)
    bits = outputs["result__payload"]
    checked = 0
    for index, wanted in enumerate(expected):
        words = np.packbits(bits[answered[:, index], index], axis=1, bitorder="little").view("<u4")
        if not np.array_equal(words.reshape(-1, config.rows, config.columns), wanted):
            raise ToolError(f"the netlist of {config.name} differs from the golden model; its figures are void")
        checked += wanted.size
    return checked


_Lanes = dict[str, NDArray[Any]]
"""What lane arrays give, by port: numbers, (block sums, streams)."""


def _first_rows(
    config: TensorCoreConfig, side: str, streams: Sequence[Steps]
) -> tuple[NDArray[np.uint8], NDArray[Any], NDArray[np.uint8]]:
    """Codes (blocks, streams, size), scales and selectors (blocks, streams) of the first row of every step.

    Zero stands for NaN: lanes make of that what takes the fewest gates, and nobody reads it.
    """
    form = config.form(side)
    codes = np.stack([getattr(steps, f"{side}_codes")[:, 0].reshape(-1, form.size) for steps in streams], 1)
    codes[np.isin(codes, list(form.nans))] = 0
    scales = np.stack([getattr(steps, f"{side}_scales")[:, 0].reshape(-1) for steps in streams], 1)
    return codes, scales, (scales >> form.scale.width & (1 << form.selector_bits) - 1).astype(np.uint8)


def lane_inputs(config: TensorCoreConfig, streams: Sequence[Steps]) -> dict[str, NDArray[np.uint8]]:
    """Stimulus of a lane array's netlist: the block sums of the first rows of every step."""
    stimulus: dict[str, NDArray[np.uint8]] = {}
    for side in "ab":
        form = config.form(side)
        codes, scales, tags = _first_rows(config, side, streams)
        stimulus[f"{side}_codes"] = _by_sum(form, code_bits(form, codes))
        if form.tagged:
            tag_bits = np.unpackbits(tags[..., None], axis=-1, bitorder="little")[..., : form.selector_bits]
            stimulus[f"{side}_tag"] = np.repeat(tag_bits, form.sums, axis=0)
        elif form.shifts:
            ends = np.cumsum([form.scale.width, *(form.size // length for length in form.shifts)])
            bits = [scales[..., None] >> np.arange(*pair, dtype=scales.dtype) & 1 for pair in pairwise(ends)]
            stimulus[f"{side}_tag"] = np.concatenate([_by_sum(form, each.astype(np.uint8)) for each in bits], axis=-1)
    return stimulus


def lane_outputs(config: TensorCoreConfig, streams: Sequence[Steps]) -> _Lanes:
    """What a lane array puts out for `lane_inputs`, by the golden model.

    Where a product is infinite, ``sum`` and ``exponent`` mean nothing.
    """
    rows = {side: _first_rows(config, side, streams) for side in "ab"}
    if config.bounds.window is not None:
        return _cut(config, rows["a"][0], rows["b"][0])
    factors = []
    for side, (codes, scales, tags) in rows.items():
        form = config.form(side)
        record = counterpart(form)
        integers = np.array([element.integers for element in record.elements])
        raised = record.spread(codes, scales[..., None])[0] >> record.width
        factors.append(_by_sum(form, integers[tags[..., None], codes] << raised))
    return {"sum": (factors[0] * factors[1]).sum(axis=-1)}


def _cut(config: TensorCoreConfig, a_codes: NDArray[np.uint8], b_codes: NDArray[np.uint8]) -> _Lanes:
    """What lanes put out that cut products to a window."""
    a, b = map(counterpart, config.formats)
    sums, exponents = golden.window_sums(a_codes, b_codes, a, b)
    # Blocks have the folds in their own exponents.
    lowest = config.bounds.product_exponent + sum(form.elements[0].fold for form in config.formats)
    found: _Lanes = {"sum": sums, "exponent": exponents - lowest}
    if config.bounds.may_be_infinite:
        values = [form.elements[0].table[codes] for form, codes in ((a, a_codes), (b, b_codes))]
        x, y = (np.where(np.isnan(each), 0, each) for each in values)
        some, zero = np.isinf(x) | np.isinf(y), (x == 0) | (y == 0)
        negative = np.signbit(x) != np.signbit(y)
        found["positive"] = (some & (zero | ~negative)).any(axis=-1)
        found["negative"] = (some & (zero | negative)).any(axis=-1)
    return found


def _by_sum(form: BlockFormat, values: NDArray[Any]) -> NDArray[Any]:
    """Values of whole blocks, (blocks, streams, ...), by the sums that blocks make: (sums, streams, values of one)."""
    blocks, streams = values.shape[:2]
    return values.reshape(blocks, streams, form.sums, -1).swapaxes(1, 2).reshape(blocks * form.sums, streams, -1)


def _compare_lanes(outputs: Mapping[str, NDArray[np.uint8]], config: TensorCoreConfig, expected: _Lanes) -> int:
    """Number of block sums that are right, which is all of them."""
    counted = np.ones(expected["sum"].shape, np.bool_)
    infinite = [expected[name] for name in ("positive", "negative") if name in expected]
    for name, wanted in expected.items():
        bits = outputs[name].astype(np.int64)
        weights = 1 << np.arange(bits.shape[-1])
        if name == "sum":
            weights[-1] *= -1
        where = ~np.logical_or(*infinite) if infinite and name in ("sum", "exponent") else counted
        if not np.array_equal((bits @ weights)[where], wanted[where]):
            raise ToolError(f"the lane array of {config.name} differs from the golden model; its figures are void")
    return counted.size


@lru_cache(maxsize=4)
def _core_vectors(config: TensorCoreConfig, vectors: int) -> tuple[list[Steps], list[NDArray[np.uint32]]]:
    """Streams of random steps with at least ``vectors`` results, and the results."""
    rng = np.random.default_rng(0)
    # Four steps in five have a result; a few more, so that every stream is alike.
    count = vectors // (512 * config.rows * config.columns) * 3 // 2 + 6
    streams = [random_steps(config, count, rng) for _ in range(512)]
    return streams, [steps.expected() for steps in streams]


@lru_cache(maxsize=4)
def _lane_vectors(config: TensorCoreConfig, vectors: int) -> list[Steps]:
    """Streams of random steps of a single element with at least ``vectors`` blocks."""
    rng = np.random.default_rng(1)
    single = replace(config, rows=1, columns=1)
    return [random_steps(single, vectors // (512 * config.groups) + 1, rng) for _ in range(512)]


@lru_cache(maxsize=4)
def _control_vectors(config: TensorCoreConfig) -> tuple[Steps, dict[str, NDArray[np.bool_]]]:
    """Steps and C offered one per cycle, when they are valid, when results are taken, and when the core is reset."""
    rng = np.random.default_rng(2)
    cycles = 3 * _SEGMENT
    steps = random_steps(config, cycles * _STREAMS, rng)
    # Each segment begins with steps that take C, in every slot of the loop, and without gaps or stalls.
    begin = np.arange(cycles) % _SEGMENT < _SEGMENT // 3
    steps.first[np.repeat(begin, _STREAMS)] = True
    pace = np.where(begin, 1.0, np.repeat([0.8, 0.4, 0.6], _SEGMENT))[:, None]
    when = {name: rng.random((cycles, _STREAMS)) < pace for name in ("offered", "taken", "supplied")}
    when["reset"] = np.zeros((cycles, _STREAMS), bool)
    when["reset"][np.arange(1, 3) * _SEGMENT] = True
    return steps, when


@lru_cache(maxsize=4)
def _control_results(config: TensorCoreConfig, accepted: bytes, supplied: bytes) -> list[list[NDArray[np.uint32]]]:
    """Results of the steps and C that were accepted, by stream and segment; the same for all netlists that are right.

    Those of steps whose C was not accepted any more are of no meaning.
    """
    steps, when = _control_vectors(config)
    shape = when["offered"].shape
    of_steps, of_c = (np.frombuffer(flags, bool).reshape(shape) for flags in (accepted, supplied))
    order = np.arange(of_steps.size).reshape(shape)

    def results(part: slice, stream: int) -> NDArray[np.uint32]:
        mine, given = (order[part, stream][flags[part, stream]] for flags in (of_steps, of_c))
        taken = steps[mine]
        begins = np.flatnonzero(taken.first)[: len(given)]
        taken.c[begins] = steps.c[given[: len(begins)]]
        return taken.expected()

    parts = [slice(first, first + _SEGMENT) for first in range(0, shape[0], _SEGMENT)]
    return [[results(part, stream) for part in parts] for stream in range(shape[1])]


def check_control(netlist: Netlist, config: TensorCoreConfig) -> int:
    """Compare a core's netlist with the golden model under gaps, stalls and resets.

    After a reset the core begins anew; results that were still inside are lost.

    Returns
    -------
    int
        The number of results compared.

    Raises
    ------
    ToolError
        A result is wrong, missing, or one too many.
    """
    steps, when = _control_vectors(config)
    offered, taken, supplied, reset = when.values()
    cycles = len(offered)
    outputs = respond(
        netlist,
        {
            "step__payload": steps.bits().reshape(cycles, _STREAMS, -1),
            "step__valid": offered.astype(np.uint8),
            "addend__payload": _c_bits(steps).reshape(cycles, _STREAMS, -1),
            "addend__valid": supplied.astype(np.uint8),
            "result__ready": taken.astype(np.uint8),
            "rst": reset.astype(np.uint8),
        },
    )
    accepted, given = (
        valid & outputs[f"{stream}__ready"][:, :, 0].astype(bool) & ~reset
        for stream, valid in (("step", offered), ("addend", supplied))
    )
    if not accepted.reshape(-1, _SEGMENT, _STREAMS).any(axis=1).all():
        raise ToolError(f"the netlist of {config.name} takes no steps; its figures are void")
    answered = taken & outputs["result__valid"][:, :, 0].astype(bool) & ~reset
    words = np.packbits(outputs["result__payload"], axis=2, bitorder="little").view("<u4")
    checked = 0
    for stream, wanted in enumerate(_control_results(config, accepted.tobytes(), given.tobytes())):
        for segment, expected in enumerate(wanted):
            part = slice(segment * _SEGMENT, (segment + 1) * _SEGMENT)
            got = words[part, stream][answered[part, stream]].reshape(-1, config.rows, config.columns)
            inside = len(expected) - len(got)
            if not 0 <= inside <= config.latency or not np.array_equal(got, expected[: len(got)]):
                raise ToolError(
                    f"the netlist of {config.name} differs from the golden model under gaps, stalls and resets;"
                    " its figures are void"
                )
            checked += got.size
    return checked


def check_core(netlist: Netlist, config: TensorCoreConfig, vectors: int = VECTORS) -> int:
    """Compare a core's netlist with the golden model on random steps that seek out its corners.

    One step per cycle first, then `check_control`.

    Parameters
    ----------
    netlist
        The core.
    config
        Its configuration.
    vectors
        Results to compare, at least.

    Returns
    -------
    int
        The number of results compared.

    Raises
    ------
    ToolError
        A result is not the golden model's.
    """
    streams, expected = _core_vectors(config, vectors)
    steady = _compare_core(respond(netlist, core_inputs(config, streams)), config, expected)
    return steady + check_control(netlist, config)


def check_lanes(netlist: Netlist, config: TensorCoreConfig, vectors: int = VECTORS) -> int:
    """Compare a lane array's netlist with the golden model on random blocks; as `check_core`."""
    streams = _lane_vectors(config, vectors)
    return _compare_lanes(respond(netlist, lane_inputs(config, streams)), config, lane_outputs(config, streams))

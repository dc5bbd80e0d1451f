"""Steps: what a tensor core is fed with, as arrays and as the bits of its payload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.formats import BlockFormat
from hwgen.formats.unscaled import SCALE, SCALED, SELECTOR, TYPES
from hwgen.rtl.tensor_core import addend_layout, step_layout
from sim import golden
from sim.counterpart import counterpart
from sim.unscaled import Unscaled, type_at_half_rate

__all__ = [
    "ELEMENT_TYPES",
    "Operand",
    "Steps",
    "Trace",
    "check_depth",
    "check_hold",
    "code_bits",
    "codes_of",
    "elements",
    "gather",
    "schedule",
    "schedule_held",
]

Operand = golden.QuantizedTensor | Unscaled
"""A matrix to multiply: blocks of FP4; or, for steps at half the rate, elements without block scales, or of MX."""

ELEMENT_TYPES = {element.name.lower(): code for code, element in TYPES.items()}
"""Codes of the types of a step at half the rate, by the golden model's names."""

_NAMES = {code: name for name, code in ELEMENT_TYPES.items()}

_NAN = np.uint32(0x7FFFFFFF)


@dataclass(frozen=True)
class Steps:
    """S consecutive steps of one core, the first of them after a reset.

    T tiles go through a core whose accumulation loop takes T cycles, taking turns: a step without ``first``
    continues with the result of the T-th step before it, T = ``config.interleave``. With exact numerics it continues
    with the sum of the step before it, which no result rounds.

    Parameters
    ----------
    config
        The core.
    a_codes, a_scales
        uint8, (S, M, 16 G) and (S, M, G); uint16 for codes of more than 8 bits, uint16 or uint32 for scales of two or
        four bytes.
    b_codes, b_scales
        (S, N, 16 G) and (S, N, G), likewise.
    c
        FP32 as uint32 bit patterns, (S, M, N); counts where ``first`` is set, see `addends`.
    first, last
        bool, (S,).
        Where steps choose the elements of blocks (`hwgen.formats.BlockFormat.by_step`), the selector in the scales of
        steps of FP4 is what their types say: it is put there.
    half
        bool, (S,): steps at half the rate, where the core has a slot. A byte of them is two codes, the first one lower.
        Without it all steps are of FP4. Where rows of such steps have scales, that is the byte of their first block.
    a_types, b_types
        uint8, (S,): types of the elements of such steps, see `hwgen.rtl.tensor_core.step_layout`.
    """

    config: TensorCoreConfig
    a_codes: NDArray[np.uint8]
    a_scales: NDArray[np.uint8]
    b_codes: NDArray[np.uint8]
    b_scales: NDArray[np.uint8]
    c: NDArray[np.uint32]
    first: NDArray[np.bool_]
    last: NDArray[np.bool_]
    half: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    a_types: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    b_types: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def __post_init__(self) -> None:
        for name in ("half", "a_types", "b_types"):
            if len(given := getattr(self, name)) != len(self):
                assert not len(given), f"{name} of {len(given)} steps, not {len(self)}"
                object.__setattr__(self, name, np.zeros(len(self), given.dtype))
        for side in "ab":
            form, types = self.config.form(side), getattr(self, f"{side}_types")
            if form.by_step:
                scales, chosen = getattr(self, f"{side}_scales"), types >> np.uint8(SELECTOR) & np.uint8(1)
                selected = _without_selector(form, scales) | chosen[:, None, None] << np.uint8(form.scale.width)
                kept = np.where(self.half[:, None, None], scales, selected)
                object.__setattr__(self, f"{side}_scales", kept)

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, index: slice | NDArray[np.intp]) -> Steps:
        return Steps(
            self.config,
            self.a_codes[index],
            self.a_scales[index],
            self.b_codes[index],
            self.b_scales[index],
            self.c[index],
            self.first[index],
            self.last[index],
            self.half[index],
            self.a_types[index],
            self.b_types[index],
        )

    def packed(self) -> NDArray[np.uint8]:
        """Payloads as bytes, least significant first, (S, bytes of a payload), in the order of `step_layout`."""
        count = len(self)

        if count == 0:
            return np.empty((0, -(-_width(self.config) // 8)), np.uint8)
        flags = (self.first | self.last.astype(np.uint8) << 1)[:, None]
        if self.config.slotted:
            fields = ((self.half, 2), (self.a_types, 3), (self.b_types, 6))
            words = sum((each.astype("<u2") << shift for each, shift in fields), flags[:, 0].astype("<u2"))
            flags = words[:, None].view(np.uint8)
        sides = ((self.config.a, self.a_codes, self.a_scales), (self.config.b, self.b_codes, self.b_scales))
        rows = [
            x.reshape(count, -1)
            for form, codes, scales in sides
            for x in (_stored(form, codes), _octets(form, self._sent(form, scales)))
        ]
        return np.concatenate([*rows, flags], axis=1)

    def _sent(self, form: BlockFormat, scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Scales as the core gets them."""
        sent = _without_selector(form, scales)
        return np.where(self.half[:, None, None], scales, sent) if self.config.half_scaled else sent

    def bits(self) -> NDArray[np.uint8]:
        """Payload bits, (S, width of the payload), least significant first, in the order of `step_layout`."""
        width = _width(self.config)
        packed = self.packed()
        assert packed.shape[1] == -(-width // 8)
        return np.unpackbits(packed, axis=1, count=width, bitorder="little")

    def words(self) -> Iterator[int]:
        """Payloads as integers, in order."""
        return _words(self.packed())

    @property
    def addends(self) -> NDArray[np.uint32]:
        """C of the steps with ``first``, in order, (F, M, N): what the core is fed with beside the steps."""
        return self.c[self.first]

    def packed_addends(self) -> NDArray[np.uint8]:
        """Their payloads as bytes, least significant first, (F, 4 M N), in the order of `addend_layout`."""
        octets = np.ascontiguousarray(self.addends, "<u4").view(np.uint8)
        return octets.reshape(-1, addend_layout(self.config).size // 8)

    def addend_words(self) -> Iterator[int]:
        """Their payloads as integers, in order."""
        return _words(self.packed_addends())

    def expected(self) -> NDArray[np.uint32]:
        """What the core must answer: FP32 bit patterns of the steps with ``last``, (R, M, N)."""
        return self.trace().results

    def trace(self) -> Trace:
        """What the golden model says of all steps.

        Raises
        ------
        InputError
            A tile is deeper than an exact core was made for.
        """
        if not len(self):
            return Trace(self.c, np.empty((0, *self.c.shape[1:]), np.uint32))
        return Trace(self.c, _exact(self)) if self.config.exact else _rounded(self)


@lru_cache(maxsize=64)
def _width(config: TensorCoreConfig) -> int:
    """Bits of a payload: layouts are slow to add up, and there may be hundreds of streams."""
    return step_layout(config).size


def _words(packed: NDArray[np.uint8]) -> Iterator[int]:
    for row in packed:
        yield int.from_bytes(row.tobytes(), "little")


def _stored(form: BlockFormat, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes side by side, the first ones lowest: (..., K) to (..., bytes)."""
    if form.code_width == 4 and codes.shape[-1] % 2 == 0:
        return elements(codes)
    return np.packbits(code_bits(form, codes).reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def code_bits(form: BlockFormat, codes: NDArray[Any]) -> NDArray[np.uint8]:
    """Bits of codes, the lowest first: (..., K) to (..., K, bits of a code)."""
    octets = np.ascontiguousarray(codes[..., None], "u1" if form.code_width <= 8 else "<u2").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=form.code_width, bitorder="little")


def _without_selector(form: BlockFormat, scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Stored scales as a core gets them: without the selector where the step has it."""
    return scales & np.uint8((1 << form.scale.width) - 1) if form.by_step else scales


def _octets(form: BlockFormat, scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Stored scales as bytes, the lower one first; none where blocks have no scale."""
    if not form.scale_bytes:
        return scales[..., :0]
    return np.ascontiguousarray(scales, f"<u{form.scale_bytes}").view(np.uint8)


@dataclass(frozen=True)
class Trace:
    """What the golden model says of steps.

    Parameters
    ----------
    c
        What every step adds to, uint32 bit patterns, (S, M, N); the stimulus's C where numerics are exact.
    results
        What the core must answer, uint32, (R, M, N).
    """

    c: NDArray[np.uint32]
    results: NDArray[np.uint32]


_ROWS = 32
"""Rows of the GEMMs that tiles are put together to where they are rounded once."""


def _rounded(steps: Steps) -> Trace:
    """Every step is rounded: a call of the golden model for all first steps of tiles, one for the second, and so on."""
    config = steps.config
    turns = config.interleave
    index = np.arange(len(steps))
    c, d = steps.c.copy(), np.empty_like(steps.c)
    # What a slot holds before its first tile is no core's business; here it is zero.
    c[:turns][~steps.first[:turns]] = 0
    # Position of each step in its tile: steps since the last ``first`` of the same slot.
    begins = np.where(steps.first | (index < turns), index, -1)
    for slot in range(turns):
        np.maximum.accumulate(begins[slot::turns], out=begins[slot::turns])
    position = (index - begins) // turns
    order = np.argsort(position, kind="stable")
    bounds = np.searchsorted(position[order], np.arange(position.max() + 2))

    for start, stop in pairwise(bounds.tolist()):
        now = order[start:stop]
        if start:
            c[now] = d[now - turns]
        d[now] = _step(steps[now], c[now])
    return Trace(c, d[steps.last])


def _step(steps: Steps, c: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Results of steps that know nothing of each other."""
    if not steps.half.any():
        return _step_of_fp4(steps, c)
    d = np.empty_like(c)
    for half, compute in ((False, _step_of_fp4), (True, _step_at_half_rate)):
        if len(chosen := np.flatnonzero(steps.half == half)):
            d[chosen] = compute(steps[chosen], c[chosen])
    return d


def _step_of_fp4(steps: Steps, c: NDArray[np.uint32]) -> NDArray[np.uint32]:
    config = steps.config
    return golden.step(
        steps.a_codes,
        steps.a_scales,
        steps.b_codes,
        steps.b_scales,
        c.view(np.float32),
        a=counterpart(config.a),
        b=counterpart(config.b),
        fraction_bits=config.fraction_bits,
        rounding=config.rounding,
        empty_blocks=config.empty_blocks,
    ).view(np.uint32)


def _step_at_half_rate(steps: Steps, c: NDArray[np.uint32]) -> NDArray[np.uint32]:
    config, d = steps.config, np.full_like(c, _NAN)  # of reserved types all is NaN
    of_a, of_b = ([_NAMES.get(code) for code in types.tolist()] for types in (steps.a_types, steps.b_types))
    known = [(step, a, b) for step, (a, b) in enumerate(zip(of_a, of_b, strict=True)) if a and b]
    if known:
        chosen = [step for step, _, _ in known]
        scales = {}
        if config.half_scaled:
            scales = {"a_scales": steps.a_scales[chosen][..., :1], "b_scales": steps.b_scales[chosen][..., :1]}
        d[chosen] = golden.unscaled_step(
            elements(steps.a_codes[chosen]),
            elements(steps.b_codes[chosen]),
            c[chosen].view(np.float32),
            a=[a for _, a, _ in known],
            b=[b for _, _, b in known],
            fraction_bits=config.half_fraction_bits,
            rounding=config.rounding,
            **scales,
        ).view(np.uint32)
    return d


def elements(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bytes of steps at half the rate: (..., 16 G) codes of four bits to (..., 8 G)."""
    return codes[..., ::2] | codes[..., 1::2] << np.uint8(4)


def codes_of(bytes_: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What `elements` makes such bytes of: (..., 8 G) to (..., 16 G)."""
    halves = np.stack([bytes_ & 15, bytes_ >> np.uint8(4)], axis=-1)
    return halves.reshape(*bytes_.shape[:-1], 2 * bytes_.shape[-1])


def _exact(steps: Steps) -> NDArray[np.uint32]:
    """Results of tiles that are rounded once each.

    Several tiles of one depth are the diagonal of one GEMM: what else it computes costs less than a call.
    """
    config = steps.config
    begins = np.maximum.accumulate(np.where(steps.first, np.arange(len(steps)), 0))
    ends = np.flatnonzero(steps.last)
    depths = ends + 1 - begins[ends]
    check_depth(config, int(depths.max(initial=0)) * config.depth)
    results = np.empty((len(ends), config.rows, config.columns), np.uint32)
    together = max(1, _ROWS // max(config.rows, config.columns))
    for depth in np.unique(depths):
        same = np.flatnonzero(depths == depth)
        for chosen in np.split(same, range(together, len(same), together)):
            first = begins[ends[chosen]]
            part = first[:, None] + np.arange(depth)
            a, b = (
                golden.QuantizedTensor(
                    codes[part].swapaxes(1, 2).reshape(len(part) * codes.shape[1], -1),
                    (blocks[part] & form.meaningful).swapaxes(1, 2).reshape(len(part) * codes.shape[1], -1),
                    np.float32(1),
                    form,
                )
                for codes, blocks, form in (
                    (steps.a_codes, steps.a_scales, counterpart(config.a)),
                    (steps.b_codes, steps.b_scales, counterpart(config.b)),
                )
            )
            c = np.zeros((len(part), config.rows, len(part), config.columns), np.uint32)
            diagonal = np.arange(len(part))
            c[diagonal, :, diagonal] = steps.c[first]
            d = golden.accumulate(a, b, c.reshape(len(a.codes), -1).view(np.float32), numerics="exact")
            results[chosen] = d.view(np.uint32).reshape(c.shape)[diagonal, :, diagonal]
    return results


def check_depth(config: TensorCoreConfig, depth: int) -> None:
    """Check that no GEMM of this depth can make the accumulators of an exact core overflow.

    Raises
    ------
    InputError
        It is deeper than the core was made for.
    """
    if config.largest_steps is not None and depth > config.largest_steps * config.depth:
        raise InputError(
            f"K = {depth}: {config.name} accumulates exactly up to K = {config.largest_depth};"
            " raise its 'largest_depth' or cut the GEMM along K"
        )


def _padded(values: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.uint8]:
    return np.pad(values, ((0, -values.shape[0] % rows), (0, -values.shape[1] % columns)))


def schedule(config: TensorCoreConfig, a: Operand, b: Operand, c: NDArray[np.float32] | None = None) -> Steps:
    """Cut a GEMM into steps: output-stationary, tiles in row-major order, all of K for one tile.

    Where the core interleaves T tiles: all of K for T tiles that take turns. If the last of them are missing,
    steps that give no result keep their turns. What a tile or a step has over the edge is filled with zero blocks.

    Parameters
    ----------
    config
        The core; one with a slot for elements without block scales, and one with scales at half the rate for those of
        MX.
    a, b
        Operands, (M, K) and (N, K): both in blocks of FP4, or neither.
    c
        Addend in the core's units, (M, N); zero if absent.

    Raises
    ------
    InputError
        The core accumulates exactly, but not so deep.
    """
    sides = _side(config, "a", a), _side(config, "b", b)
    check_depth(config, sides[0][0].shape[1])
    return _of_kinds(_scheduled(config, *sides, c), a, b)


_Side = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""Codes and scales of an operand, as the payload has them."""


def _side(config: TensorCoreConfig, letter: str, operand: Operand) -> _Side:
    size = config.form(letter).size
    if isinstance(operand, golden.QuantizedTensor):
        if type_at_half_rate(operand, config.half_scaled) is None:
            return operand.codes, operand.scales
        return codes_of(operand.codes), operand.scales.repeat(2 * SCALED // size, axis=1)
    codes = codes_of(operand.codes)
    one = SCALE.bias if config.half_scaled else 0  # which is not read
    return codes, np.full((len(codes), -(-codes.shape[1] // size)), one, np.uint8)


def _scheduled(config: TensorCoreConfig, a: _Side, b: _Side, c: NDArray[np.float32] | None) -> Steps:
    """The steps of `schedule`, from codes and scales of both operands."""
    (m, k), n = a[0].shape, len(b[0])
    depth, groups, rows, columns = config.depth, config.groups, config.rows, config.columns
    tiles_m, tiles_n, steps_k = -(-m // rows), -(-n // columns), -(-k // depth)

    def tiles(side: _Side, height: int) -> _Side:
        codes = _padded(side[0], height, depth).reshape(-1, height, steps_k, depth)
        scales = _padded(side[1], height, groups).reshape(-1, height, steps_k, groups)
        return codes.swapaxes(1, 2), scales.swapaxes(1, 2)

    (a_codes, a_scales), (b_codes, b_scales) = tiles(a, rows), tiles(b, columns)
    turns = config.interleave
    rounds = -(-tiles_m * tiles_n // turns)
    tile = np.arange(rounds * turns).reshape(rounds, 1, turns).repeat(steps_k, axis=1).ravel()
    step_k = np.tile(np.arange(steps_k).repeat(turns), rounds)
    missing = tile >= tiles_m * tiles_n
    tile_m, tile_n = np.divmod(np.where(missing, 0, tile), tiles_n)

    addend = np.zeros((tiles_m * rows, tiles_n * columns), np.float32)
    if c is not None:
        addend[:m, :n] = c
    addend_tiles = addend.view(np.uint32).reshape(tiles_m, rows, tiles_n, columns).swapaxes(1, 2)
    parts = (a_codes[tile_m, step_k], a_scales[tile_m, step_k], b_codes[tile_n, step_k], b_scales[tile_n, step_k])
    addends = addend_tiles[tile_m, tile_n]
    for part in (*parts, addends):
        part[missing] = 0
    return Steps(config, *parts, addends, (step_k == 0) | missing, (step_k == steps_k - 1) & ~missing)


def _of_kinds(steps: Steps, a: Operand, b: Operand) -> Steps:
    """The same steps at the rate of both operands, with the types of their elements."""
    half, same = (type_at_half_rate(operand, steps.config.half_scaled) is not None for operand in (a, b))
    assert half == same, "one operand is in blocks of FP4, the other is not"
    kinds = _kind(steps.config, "a", a), _kind(steps.config, "b", b)
    a_types, b_types = (np.full(len(steps), code, np.uint8) for code in kinds)
    return replace(steps, half=np.full(len(steps), half), a_types=a_types, b_types=b_types)


def _kind(config: TensorCoreConfig, letter: str, operand: Operand) -> int:
    """The type of an operand: of its elements; or of its blocks where steps choose it, else 0, which is not read."""
    if kind := type_at_half_rate(operand, config.half_scaled):
        return ELEMENT_TYPES[kind]
    assert isinstance(operand, golden.QuantizedTensor)
    form = config.form(letter)
    if not form.by_step:
        return 0
    return ELEMENT_TYPES["e2m1"] | int(operand.scales.max() >> form.scale.width) << SELECTOR


def schedule_held(
    config: TensorCoreConfig,
    a: Operand,
    b: Operand,
    c: NDArray[np.float32],
    hold: int,
) -> Steps:
    """Cut a GEMM into steps that hold B: ``hold`` tiles with the same rows of B take turns at each step of K.

    So B's codes and scales are the same in ``hold`` consecutive steps, and A's are others in each. Where the core
    interleaves that many tiles, their sums stay in it. Else every step is a tile of its own, with ``first`` and
    ``last``: the partial sum leaves as a result and comes back as C at the next step of K.

    Parameters
    ----------
    config
        The core.
    a, b
        Operands, (M, K) and (N, K): whole tiles and steps, the tiles along M a multiple of ``hold``.
    c
        Addend in the core's units, (M, N).
    hold
        Steps that B is held for.

    Raises
    ------
    InputError
        The core accumulates exactly, and partial sums would have to leave it.
    """
    rows, columns, depth, groups = config.rows, config.columns, config.depth, config.groups
    check_hold(config, hold)
    codes, scales = _side(config, "a", a)
    steps_k = codes.shape[1] // depth
    a_codes = codes.reshape(-1, hold, rows, steps_k, depth)
    a_scales = scales.reshape(-1, hold, rows, steps_k, groups)
    codes, scales = _side(config, "b", b)
    b_codes = codes.reshape(-1, columns, steps_k, depth)
    b_scales = scales.reshape(-1, columns, steps_k, groups)
    tiles_m, tiles_n = len(a_codes), len(b_codes)
    # In the order of the steps: rows of B, then those of A together with them, K, and the tiles that take turns.
    tile_n, tile_m, step_k, turn = (place.ravel() for place in np.indices((tiles_n, tiles_m, steps_k, hold)))
    addend = c.astype(np.float32).reshape(tiles_m, hold, rows, tiles_n, columns)
    begin, end = step_k == 0, step_k == steps_k - 1
    steps = Steps(
        config,
        a_codes[tile_m, turn, :, step_k],
        a_scales[tile_m, turn, :, step_k],
        b_codes[tile_n, :, step_k],
        b_scales[tile_n, :, step_k],
        np.ascontiguousarray(addend[tile_m, turn, :, tile_n]).view(np.uint32),
        begin,
        end,
    )
    steps = _of_kinds(steps, a, b)
    if hold == config.interleave:
        return steps
    steps = replace(steps, first=np.ones(len(steps), bool), last=np.ones(len(steps), bool))
    for k in range(1, steps_k):
        before = np.flatnonzero(step_k == k - 1)
        steps.c[before + hold] = steps[before].expected()
    return steps


def check_hold(config: TensorCoreConfig, hold: int) -> None:
    """Check that a core can run `schedule_held`.

    Raises
    ------
    InputError
        It accumulates exactly: a sum that leaves it is rounded. Or ``hold`` is not positive.
    """
    if hold < 1:
        raise InputError(f"hold = {hold}: must be at least 1")
    if config.exact and hold > 1:
        raise InputError(
            f"hold = {hold}: {config.name} accumulates exactly, and partial sums that leave it are rounded; expected 1"
        )


def gather(config: TensorCoreConfig, results: NDArray[np.uint32], m: int, n: int) -> NDArray[np.uint32]:
    """Put the results of a `schedule` together again: (tiles, rows, columns) to (m, n)."""
    tiles_m, tiles_n = -(-m // config.rows), -(-n // config.columns)
    grid = results.reshape(tiles_m, tiles_n, config.rows, config.columns)
    return grid.swapaxes(1, 2).reshape(tiles_m * config.rows, tiles_n * config.columns)[:m, :n]

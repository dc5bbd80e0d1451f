"""Test vectors: payloads of steps, of their C, and of the results that the golden model expects of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hwgen.config import TensorCoreConfig
from hwgen.formats.unscaled import SCALE
from hwgen.rtl.tensor_core import addend_layout, result_layout, step_layout
from sim import golden, tensors
from sim.counterpart import counterpart
from sim.random import random_steps
from sim.steps import ELEMENT_TYPES, Steps, codes_of, schedule

__all__ = ["Vectors", "vectors"]

_SEED = 1
_DIGITS = 48_000  # of all steps together: what keeps a repository small
_STEPS = range(16, 65)
_STEPS_PER_TILE = 4
_DEVIATION = 2.0  # of numbers at either rate: the largest ones saturate in no type but E2M1


@dataclass(frozen=True)
class Vectors:
    """Vectors of one core, as `$readmemh` reads them: one payload a line, hexadecimal.

    Parameters
    ----------
    steps, addends, results
        Texts; a C for every step with ``first``, a result for every step with ``last``.
    step_count, addend_count, result_count
        Their lines.
    """

    steps: str
    addends: str
    results: str
    step_count: int
    addend_count: int
    result_count: int


def _gemm(
    config: TensorCoreConfig, tiles: int, rng: np.random.Generator, deviation: float | None = None, c: float = 1000
) -> Steps:
    """Whole tiles of normally distributed numbers, each with the same rows of A.

    ``deviation`` is that of the numbers in the units of the core, by default what the tensor scale makes of them; ``c``
    is that of C.
    """
    depth = _STEPS_PER_TILE * config.depth
    seeds = rng.integers(1 << 31, size=3).tolist()
    shapes = ((config.rows, depth), (config.columns * tiles, depth))
    scale = None if deviation is None else 1 / deviation
    a, b = (
        golden.quantize(tensors.generate("gaussian", shape, seed), counterpart(config.form(side)), tensor_scale=scale)
        for shape, seed, side in zip(shapes, seeds, "ab", strict=False)
    )
    addend = np.float32(c) * tensors.generate("gaussian", (config.rows, config.columns * tiles), seeds[2])
    return schedule(config, a, b, addend)


def _of_both_rates(config: TensorCoreConfig, tiles: int, rng: np.random.Generator) -> Steps:
    """Tiles of which three steps of four are at half the rate, each of other types; numbers are of one size.

    A quarter of a tile is FP4, the first, second, third or last by the turn of the tile. Where tiles take turns, the
    first of them is of FP4 alone.
    """
    steps = _gemm(config, tiles, rng, _DEVIATION, _DEVIATION**2)
    place, turn = np.divmod(np.arange(len(steps)), config.interleave)
    steps.half[:] = (place + turn) % _STEPS_PER_TILE != 0
    steps.half[turn == 0] &= config.interleave == 1
    at = np.flatnonzero(steps.half)
    elements = {code: golden.UNSCALED_ELEMENTS[name] for name, code in ELEMENT_TYPES.items()}
    number, known = np.arange(len(at)), np.array([*elements], np.uint8)
    # Every pair before one comes again.
    pairs = known[number % len(known)], known[(number + number // len(known)) % len(known)]
    for types, own, codes, scales in zip(
        (steps.a_types, steps.b_types),
        pairs,
        (steps.a_codes, steps.b_codes),
        (steps.a_scales, steps.b_scales),
        strict=True,
    ):
        types[at] = own
        for step, code in zip(at, own.tolist(), strict=True):
            numbers = _DEVIATION * rng.standard_normal((codes.shape[1], config.depth // 2))
            codes[step] = codes_of(elements[code].encode(numbers))
            if config.half_scaled:
                scales[step, :, 0] = rng.integers(SCALE.bias - 2, SCALE.bias + 3, codes.shape[1])
    return steps


def _joined(config: TensorCoreConfig, *parts: Steps) -> Steps:
    names = [field.name for field in fields(Steps) if field.name != "config"]
    return Steps(config, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _lines(words: list[int], width: int) -> str:
    return "".join(f"{word:0{-(-width // 4)}x}\n" for word in words)


def vectors(config: TensorCoreConfig) -> Vectors:
    """Draw vectors; the same ones every time.

    Half of the steps seek out the corners of the arithmetic, with NaN, infinities, sums that cancel, and results in the
    midst of chains; the others are tiles of a GEMM with four steps each. The larger the payloads the fewer there are.
    In those of a core with a slot the rate changes, and the types of the elements do.

    Parameters
    ----------
    config
        Tensor core configuration.
    """
    rng = np.random.default_rng(_SEED)
    turns = config.interleave
    width = step_layout(config).size
    c_width = addend_layout(config).size
    count = int(np.clip(_DIGITS // ((width + c_width) // 4), _STEPS[0], _STEPS[-1]))
    # A tile begins where the turns do.
    corners = -(-count // 2 // turns) * turns
    tiles = max(turns, (count - corners) // _STEPS_PER_TILE)
    whole = _of_both_rates if config.slotted else _gemm
    steps = _joined(config, random_steps(config, corners, rng), whole(config, tiles, rng))
    expected = steps.expected()
    results = [int.from_bytes(tile.astype("<u4").tobytes(), "little") for tile in expected]
    return Vectors(
        _lines(list(steps.words()), width),
        _lines(list(steps.addend_words()), c_width),
        _lines(results, result_layout(config).size),
        len(steps),
        len(steps.addends),
        len(results),
    )

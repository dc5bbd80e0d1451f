"""Test vectors: payloads of steps, of their C, and of the results that the golden model expects of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hwgen.config import TensorCoreConfig
from hwgen.rtl.tensor_core import addend_layout, result_layout, step_layout
from sim import golden, tensors
from sim.counterpart import counterpart
from sim.random import random_steps
from sim.steps import Steps, schedule

__all__ = ["Vectors", "vectors"]

_SEED = 1
_DIGITS = 48_000  # of all steps together: what keeps a repository small
_STEPS = range(16, 65)
_STEPS_PER_TILE = 4


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


def _gemm(config: TensorCoreConfig, tiles: int, rng: np.random.Generator) -> Steps:
    """Whole tiles of normally distributed numbers, each with the same rows of A."""
    depth = _STEPS_PER_TILE * config.depth
    seeds = rng.integers(1 << 31, size=3).tolist()
    shapes = ((config.rows, depth), (config.columns * tiles, depth))
    a, b = (
        golden.quantize(tensors.generate("gaussian", shape, seed), counterpart(config.form(side)))
        for shape, seed, side in zip(shapes, seeds, "ab", strict=False)
    )
    c = np.float32(1000) * tensors.generate("gaussian", (config.rows, config.columns * tiles), seeds[2])
    return schedule(config, a, b, c)


def _joined(config: TensorCoreConfig, *parts: Steps) -> Steps:
    names = [field.name for field in fields(Steps) if field.name != "config"]
    return Steps(config, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _lines(words: list[int], width: int) -> str:
    return "".join(f"{word:0{-(-width // 4)}x}\n" for word in words)


def vectors(config: TensorCoreConfig) -> Vectors:
    """Draw vectors; the same ones every time.

    Half of the steps seek out the corners of the arithmetic, with NaN, infinities, sums that cancel, and results in the
    midst of chains; the others are tiles of a GEMM with four steps each. The larger the payloads the fewer there are.

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
    steps = _joined(
        config,
        random_steps(config, corners, rng),
        _gemm(config, max(turns, (count - corners) // _STEPS_PER_TILE), rng),
    )
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

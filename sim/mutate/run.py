"""A mutation run: cores, a sample of their mutants, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.config.quantiser import QuantiserConfig
from hwgen.errors import ToolError
from hwgen.formats import MIXFP4, NVFP4, NVFP4_E0M3, NVINT4
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.lanes import lanes
from hwgen.rtl.tensor_core import TensorCore
from hwgen.verilog import design
from sim.mutate.campaign import STEPS, killer, situations
from sim.mutate.design import planted
from sim.mutate.engine import MutantEngine
from sim.mutate.equivalence import equivalent
from sim.mutate.operators import Mutant, mutants
from sim.mutate.report import Outcome
from sim.mutate.rtlil import lowered
from sim.steps import Steps

__all__ = ["CORES", "mutate", "outcomes", "sample"]

CORES = (
    TensorCoreConfig("mixfp4-merged", MIXFP4, MIXFP4, 2, 1, 2, pipeline=("decoded", "sums", "terms")),
    TensorCoreConfig(
        *("nvfp4-signed", NVFP4, NVFP4, 1, 1, 1, "signed"),
        rounding="nearest_even",
        leading_zeros="anticipated",
        pipeline=("operands", "aligned", "total", "normal"),
    ),
    TensorCoreConfig(
        *("mixfp4-exact", MIXFP4, MIXFP4, 1, 1, 2, "significand"),
        numerics="exact",
        pipeline=("operands", "sums", "aligned", "total", "normal"),
    ),
    TensorCoreConfig("mixfp4-e2m2", MIXFP4, MIXFP4, 1, 2, 1, "e2m2", pipeline=()),
    TensorCoreConfig("nvint4-mixed", NVINT4, MIXFP4, 1, 1, 2, pipeline=("sums",)),
    TensorCoreConfig("nvint4-merged", NVINT4, NVINT4, 1, 2, 1, pipeline=("decoded", "sums"), empty_blocks="excluded"),
    TensorCoreConfig(
        *("mixfp4-merged-binary", MIXFP4, MIXFP4, 1, 1, 2, "merged-binary"),
        pipeline=("decoded", "tree", "factors", "terms", "aligned", "addends", "total", "normal"),
    ),
    TensorCoreConfig("nvfp4-binary", NVFP4, NVFP4, 1, 1, 1, "binary", pipeline=("decoded", "tree", "factors")),
    TensorCoreConfig("mixfp4-timed", MIXFP4, MIXFP4, 1, 1, 2, "merged-timed", pipeline=("decoded", "tree", "factors")),
    TensorCoreConfig(
        *("mixfp4-slot-split", MIXFP4, MIXFP4, 1, 1, 1),
        slot="split",
        pipeline=("operands", "sums", "factors"),
    ),
    TensorCoreConfig(
        *("nvfp4-e0m3-slot-full", NVFP4_E0M3, NVFP4_E0M3, 1, 1, 1, "merged-timed"),
        slot="full",
        pipeline=("decoded", "compared", "addends", "total"),
    ),
    TensorCoreConfig(
        *("mixfp4-slot-quadrants", MIXFP4, MIXFP4, 1, 1, 1, "significand"),
        slot="quadrants",
        pipeline=("operands", "sums"),
    ),
    TensorCoreConfig(
        *("nvfp4-slot-separate", NVFP4, NVFP4, 1, 2, 1, "signed"),
        slot="separate",
        rounding="nearest_even",
        pipeline=("sums",),
    ),
    TensorCoreConfig(
        *("mixfp4-slot-groups", MIXFP4, MIXFP4, 1, 1, 2),
        slot="full",
        pipeline=("decoded", "factors", "compared"),
    ),
    *(
        replace(NAMED[f"{name}-small"], name=f"{name}-{dot}", rows=1, columns=1, dot=dot)
        for name, dot in (
            *(("if4", "merged"), ("mxfp4", "merged"), ("blockdialect", "signed"), ("w4a8", "shifted")),
            *(("mxfp8-e5m2", "windowed"), ("hif4", "nested"), ("int8", "multiplier")),
            *(("mxint8", "booth"), ("mxfp6-e3m2", "shifted-carry-save"), ("l-mul", "additive")),
            *(("opt1", "booth"), ("mixfp4-mx-multi", "merged")),
        )
    ),
    replace(NAMED["mixfp4-multi-blackwell"], name="mixfp4-multi-blackwell-merged", rows=1, columns=1, dot="merged"),
)
"""Cores that have all micro-architectures, numerics, accumulators, slots and registers.

Their loops take 1 to 6 cycles, and their steps have 1, 2 or 4 blocks. Their formats have scales with factors, powers of
two, many kinds of elements, infinities, shifted sub-groups, and no scale. One core has scales at half the rate, too.
"""


def sample(found: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of the mutants, all operators in all modules by turns."""
    rng = np.random.default_rng(seed)
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for index in rng.permutation(len(found)):
        groups.setdefault((found[index].module, found[index].operator), []).append(found[index])
    chosen: list[Mutant] = []
    order = sorted(groups)
    while len(chosen) < min(count, len(found)):
        chosen += [groups[key].pop() for key in rng.permutation(order).tolist() for key in [tuple(key)] if groups[key]]
    return chosen[:count]


def mutate(
    config: TensorCoreConfig,
    count: int,
    *,
    seed: int = 0,
    steps: int = STEPS,
    corners: Callable[[TensorCoreConfig], Steps | None] | None = None,
) -> Iterator[Outcome]:
    """Plant mutants into one core, confront each with all situations, and prove those equivalent that survive.

    Parameters
    ----------
    config
        The core.
    count
        How many mutants.
    seed
        Chooses them and the stimulus. Equal arguments give equal outcomes.
    steps
        Random steps of the longest situation.
    corners
        Gives the steps of the directed tests, if there are any for the core.

    Raises
    ------
    ToolError
        The core itself does not do what it must, or a tool failed.
    InputError
        There is no C++ compiler.
    """

    def killers(texts: Mapping[str, str]) -> list[Callable[[int], str | None]]:
        confronted = situations(config, steps, seed, corners(config) if corners else None)
        return [partial(killer, MutantEngine(config, texts), confronted=confronted)]

    how = lanes(config)
    commutes = config.a == config.b and how.layout("a") == how.layout("b")
    return outcomes(config, TensorCore, count, seed, killers, partial(equivalent, config), commutes)


def outcomes(
    config: TensorCoreConfig | QuantiserConfig,
    kind: type[Part],
    count: int,
    seed: int,
    killers: Callable[[Mapping[str, str]], Sequence[Callable[[int], str | None]]],
    equivalent: Callable[[Mapping[str, str], Mutant], str | None],
    commutes: bool = False,
) -> Iterator[Outcome]:
    """What becomes of mutants in one design, one after another.

    Parameters
    ----------
    config, kind
        The design: its configuration, and the class of its top.
    count, seed
        How many mutants, and what chooses them.
    killers
        Takes the modules of the design with all mutants in them. Gives rounds, each of which says in which situation a
        mutant fails, by its number; None in none. Number 0 is the design as it is. What survives the first round and is
        not proven equivalent meets the others.
    equivalent
        The module at whose borders a mutant is proven equivalent, if there is one.
    commutes
        See `sim.mutate.operators.mutants`.

    Raises
    ------
    ToolError
        The design itself does not do what it must, or a tool failed.
    """
    modules = design(kind, config, "core")
    texts = lowered(modules, "core")
    chosen = sample(mutants(texts, lowered(modules, "core", clean=True), seed, commutes), count, seed)
    first, *others = killers(planted(texts, chosen))
    _check_faultless(config, first)
    for number, mutant in enumerate(chosen, start=1):
        killed = first(number)
        proof = None if killed else equivalent(texts, mutant)
        for later in () if killed or proof else others:
            _check_faultless(config, later)
            if killed := later(number):
                break
        yield Outcome(config, mutant, killed, proof)


def _check_faultless(config: TensorCoreConfig | QuantiserConfig, killed_in: Callable[[int], str | None]) -> None:
    if (name := killed_in(0)) is not None:
        raise ToolError(f"{config.name}: fails in situation {name!r} without a mutant")

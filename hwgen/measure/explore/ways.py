"""Ways to build a design: micro-architectures, pipelines, and a recipe for each module."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hwgen.cells.library import Library
from hwgen.closure.walk import walk
from hwgen.config import DEFAULT_PIPELINE, DOTS, TensorCoreConfig
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.search.choice import orders
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore

__all__ = [
    "ANTICIPATED",
    "PIPELINES",
    "Bodies",
    "Ranked",
    "Ranking",
    "Way",
    "pilot",
    "variants",
    "walks",
    "without_beaten",
]

PIPELINES: tuple[tuple[str, ...], ...] = (
    (),
    ("terms",),
    ("operands", "terms"),
    ("decoded", "sums"),
    ("decoded", "sums", "terms"),
    ("decoded", "sums", "terms", "total"),
    ("decoded", "sums", "terms", "aligned", "total", "normal"),
    ("decoded", "tree", "factors", "terms", "aligned", "total", "normal"),
    ("decoded", "tree", "factors", "terms", "aligned", "addends", "total", "normal"),
)
"""Pipelines to explore by default: registers where the path is longest, and where they keep glitches from spreading."""

ANTICIPATED: tuple[tuple[str, ...], ...] = (("decoded", "sums", "terms"), ("decoded", "sums", "terms", "total"))
"""Those of `PIPELINES` to explore with leading zeros anticipated too: normalisation is long in both."""

_TOP = TensorCore.module_name
# Not worth its runs: a point that another one of the same design beats by this much in everything.
_BEATEN = 0.03

Bodies = dict[area.Identity, area.Body]
"""Mapped modules."""


@dataclass(frozen=True)
class Way:
    """A design with a recipe for each module.

    Parameters
    ----------
    side
        Name of the configuration that it is a variant of: the baseline's or the candidate's.
    design
        The core, with its pipeline.
    recipes
        Recipe of each module.
    area
        um2, in the pilot run.
    delay
        Critical path in ns, in the pilot run.
    """

    side: str
    design: Design
    recipes: Mapping[str, Recipe]
    area: float
    delay: float

    @property
    def config(self) -> TensorCoreConfig:
        """The core, with its pipeline."""
        return self.design.config

    def beaten(self, other: Way) -> bool:
        """Whether another way to build the same side is so much better in everything that this one is not worth it."""
        return other.side == self.side and max(other.area / self.area, other.delay / self.delay) < 1 - _BEATEN

    def bodies(self, bodies: Bodies, run: int) -> Bodies:
        """Its mapped modules in one run, and no more, for they go to another process."""
        names = ((self.design.key, module, how.name, run) for module, how in self.recipes.items())
        return {identity: bodies[identity] for identity in names}

    def linked(self, bodies: Bodies, run: int, library: Library) -> Netlist:
        """Its netlist in one run."""
        return link(self.design.assembled(bodies, self.recipes, run, library), _TOP, library)


@dataclass(frozen=True)
class Ranked:
    """A design with the recipes of its modules in order.

    Parameters
    ----------
    side
        Name of the configuration that it is a variant of.
    design
        The core, with its pipeline.
    order
        Recipes of every module, the smallest first, ties aside, see `hwgen.measure.search.choice.orders`.
    """

    side: str
    design: Design
    order: Mapping[str, list[Recipe]]


@dataclass(frozen=True)
class Ranking:
    """What a pilot run says.

    Parameters
    ----------
    designs
        Every design, with the order of its recipes.
    bodies
        Mapped modules of the pilot run.
    """

    designs: list[Ranked]
    bodies: Bodies


def variants(
    config: TensorCoreConfig,
    dots: Sequence[str] = (),
    pipelines: Sequence[tuple[str, ...]] = (),
    leading_zeros: Sequence[str] = (),
) -> list[TensorCoreConfig]:
    """The ways to build a core that are explored, before recipes.

    Parameters
    ----------
    config
        The core; what is not varied stays.
    dots, pipelines, leading_zeros
        All combinations of them. By default every micro-architecture with the default pipeline, and every one
        of `PIPELINES`, and that of ``config``, with the micro-architecture of ``config``: the accumulation loop does
        not care for the lanes.
    """
    ways: Iterable[tuple[str, tuple[str, ...], str]]
    if dots or pipelines or leading_zeros:
        ways = itertools.product(
            dots or (config.dot,), pipelines or (config.pipeline,), leading_zeros or (config.leading_zeros,)
        )
    else:
        ways = itertools.chain(
            itertools.product(DOTS, (DEFAULT_PIPELINE,), ("counted",)),
            itertools.product((config.dot,), (*PIPELINES, config.pipeline), ("counted",)),
            itertools.product((config.dot,), () if config.exact or config.wide else ANTICIPATED, ("anticipated",)),
        )
    found: dict[TensorCoreConfig, None] = {}
    for dot, pipeline, zeros in ways:
        # What does not go with formats and slot, or has registers that are not there, is left out; where it is asked
        # for, the configuration refuses it.
        if not dots and not config.takes(dot):
            continue
        if not pipelines and not {*pipeline} <= {*config.registers}:
            continue
        found[replace(config, dot=dot, pipeline=pipeline, leading_zeros=zeros)] = None
    return list(found)


def pilot(configs: Mapping[str, Sequence[TensorCoreConfig]], recipes: Sequence[Recipe], flow: Flow) -> Ranking:
    """Synthesise every design by every recipe once, and put the recipes of each module in order.

    Parameters
    ----------
    configs
        Variants of each configuration, by its name.
    recipes
        To choose from.
    flow
        Library and conditions of all syntheses.
    """
    designs = [(side, Design(config, TensorCore)) for side, variants in configs.items() for config in variants]
    jobs = [job for _, design in designs for job in design.plan(recipes, [0])]
    bodies = flow.synthesise(jobs, "pilot runs")
    ranked = area.ranked(jobs, bodies, flow.library)
    return Ranking(
        [
            Ranked(
                side,
                design,
                orders(
                    design, {module: found for (key, module), found in ranked.items() if key == design.key}, recipes
                ),
            )
            for side, design in designs
        ],
        bodies,
    )


def _walked(ranked: Ranked, bodies: Bodies, library: Library) -> list[Way]:
    """Every step of one walk, in the pilot run."""
    design = ranked.design
    seen: dict[tuple[str, ...], Netlist] = {}

    def linked(choice: Mapping[str, Recipe]) -> list[Netlist]:
        netlist = link(design.assembled(bodies, choice, 0, library), _TOP, library)
        seen[tuple(how.name for how in choice.values())] = netlist
        return [netlist]

    return [
        Way(ranked.side, design, choice, seen[tuple(how.name for how in choice.values())].area, delay)
        for choice, delay in walk(ranked.order, linked)
    ]


def walks(ranking: Ranking, flow: Flow) -> list[Way]:
    """Take every design from its smallest recipes towards the fastest (`hwgen.closure.walk`)."""
    tasks = [
        (
            ranked,
            {identity: body for identity, body in ranking.bodies.items() if identity[0] == ranked.design.key},
            flow.library,
        )
        for ranked in ranking.designs
    ]
    return [way for steps in flow.each(_walked, tasks, "walks") for way in steps]


def without_beaten(ways: Sequence[Way]) -> list[Way]:
    """The ways that are worth their runs; the smallest of each design stays, for its energy is wanted."""
    smallest: dict[Design, float] = {}
    for way in ways:
        smallest[way.design] = min(way.area, smallest.get(way.design, math.inf))
    return [way for way in ways if way.area == smallest[way.design] or not any(way.beaten(other) for other in ways)]

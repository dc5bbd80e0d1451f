"""How a core does by a choice of lanes and recipes: whether it meets the clock, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.mapping import area
from hwgen.measure.netlists.built import build, by_module, energies, per_cycle, spent
from hwgen.measure.netlists.energy import core_energy
from hwgen.measure.netlists.flow import Design
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.power.glitch import Gates
from hwgen.rtl.lane_array import LaneArray

__all__ = ["DRAWS", "FIRST_DRAW", "ROUNDS", "WITHIN", "Aim", "Score", "draws_of", "first_best", "scored", "shared"]

ROUNDS = 2
"""Rounds of closing that a search gives a core, see `hwgen.closure.close.close`."""

WITHIN = 0.1
"""Share of the clock period: what a core misses it by beyond that is out of reach of other recipes."""

DRAWS = 6
"""Perturbations of the netlists that one search looks at."""

FIRST_DRAW = 1001
"""The first perturbation that searches look at: measured runs are those below it."""

_LEAST_GAIN = 0.001

_T = TypeVar("_T")


def draws_of(search: int) -> range:
    """Perturbations of the netlists that a search looks at; no measured run and no other search has them.

    Measured runs are those below `FIRST_DRAW`.
    """
    first = FIRST_DRAW + DRAWS * search
    return range(first, first + DRAWS)


@dataclass(frozen=True)
class Aim:
    """What designs are built for.

    Parameters
    ----------
    clock_ns
        Clock period, ns.
    physical
        Where wires come from.
    stimulus
        Operands at work.
    search
        Number of the search that looks at it, 0 for the first.
    """

    clock_ns: float
    physical: Physical
    stimulus: Stimulus
    search: int = 0

    @property
    def draws(self) -> range:
        """`draws_of` the search."""
        return draws_of(self.search)

    def searched(self, number: int) -> Aim:
        """The same for a search of that number, with operands that no measured run and no other search has."""
        return replace(self, search=number, stimulus=self.stimulus.run(FIRST_DRAW + number))


@dataclass(frozen=True)
class Score:
    """How a choice does.

    Parameters
    ----------
    late_ns
        What it misses the clock by, ns; 0 where it meets it. Comes first.
    cost
        Area in um2, or energy in fJ per cycle; of a core of one element the share that an array has, see `shared`.
    alone_ns
        Part of the longest path by module, ns; of the first draw.
    """

    late_ns: float
    cost: float
    alone_ns: Mapping[str, float] = field(default_factory=dict)

    def better(self, than: Score) -> bool:
        """Whether it is so by more than what is within the noise."""
        if self.late_ns or than.late_ns:
            return self.late_ns < than.late_ns
        return self.cost < (1 - _LEAST_GAIN) * than.cost

    def near(self, best: Score, clock_ns: float, apart: float) -> bool:
        """Whether it is worse than the best by no more than a share, of the clock and of the cost."""
        return self.late_ns <= best.late_ns + apart * clock_ns and self.cost <= (1 + apart) * best.cost

    @staticmethod
    def mean(scores: Sequence[Score]) -> Score:
        """How a choice does on several draws."""
        late, cost = (float(np.mean([getattr(each, name) for each in scores])) for name in ("late_ns", "cost"))
        return Score(late, cost, scores[0].alone_ns)


def shared(config: TensorCoreConfig) -> float:
    """How many sides of the array, rows and columns, there are for each two sides of an element.

    A core of one element has two sides, too; of what it spends on them an element of the array spends this share.
    """
    return (config.rows + config.columns) / (2 * config.rows * config.columns)


def scored(
    design: Design,
    modules: Mapping[str, area.Body],
    purpose: str,
    aim: Aim,
    library: Library,
    edge: float = 1.0,
    rounds: int = ROUNDS,
) -> Score:
    """Build a core, or a lane array, and look at it.

    Parameters
    ----------
    design, modules
        The design, and its modules as mapped.
    purpose, aim, library
        What it is built for, and of.
    edge
        Share by which all counts that is outside of elements.
    rounds
        As for `hwgen.closure.close.close`.
    """
    built = build(design, modules, aim.clock_ns, purpose, aim.physical, library, aim.stimulus, rounds)
    record = built.record
    if purpose == "area":
        areas = built.netlist.area_by_block()
        whole, inside = sum(areas.values()), sum(of for path, of in areas.items() if area.in_element(path))
    elif design.kind is LaneArray:
        whole = inside = spent(design, energies(design, built, aim.stimulus), aim.clock_ns)
    else:
        gates = Gates(built.netlist, built.timing)
        found = core_energy(gates, design.config, design.config.formats, aim.stimulus, glitches_only=True)
        whole, element = (per_cycle(found[scope, "timed"], aim.clock_ns) for scope in ("core", "element"))
        inside = design.config.rows * design.config.columns * element
    return Score(0.0 if record.met else -record.slack_ns, inside + edge * (whole - inside), by_module(built.timing))


def first_best(tried: Sequence[_T], score: Callable[[_T], Score]) -> _T:
    """The first that no later one is better than."""
    found = tried[0]
    for other in tried[1:]:
        if score(other).better(score(found)):
            found = other
    return found

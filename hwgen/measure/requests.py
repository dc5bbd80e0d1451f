"""What a measurement is asked for: at once its argument and, with the library, the key of its cached result.

A field more is thereby a key more: no result of another question is ever taken for an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hwgen.measure.netlists.physical import Physical

if TYPE_CHECKING:  # the command line shows the defaults, and what these import takes time
    from hwgen.config import TensorCoreConfig
    from hwgen.config.quantiser import QuantiserConfig
    from hwgen.measure.netlists.stimulus import Stimulus
    from hwgen.measure.search.selected import Selected

__all__ = [
    "CORE_SIZES",
    "ExploreRequest",
    "FormatsRequest",
    "OverheadRequest",
    "PowerRequest",
    "QuantiserRequest",
    "Row",
]

CORE_SIZES = ("small", "blackwell")
"""Cores by the end of their names, of those that every format of a quantiser has."""


@dataclass(frozen=True)
class OverheadRequest:
    """What one configuration costs over another, see `hwgen.measure.overhead.measure`.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    stimulus
        Operands at work.
    recipe
        Name of the recipe of all modules; the best for each module by default.
    clock_ns
        Clock period in ns. By default what both designs meet, as they are mapped; where they are built for a clock,
        that of `hwgen.measure.netlists.clock.usual`.
    physical
        How netlists are built for the clock; None takes them as they are mapped.
    lanes
        Lanes to choose from besides those of the configurations, for each purpose; only of netlists that are built for
        a clock.
    slots
        Slots to choose from likewise, besides those of configurations that have one.
    runs
        Syntheses of each module, at most.
    half_width
        Of netlists that are built for a clock, runs are added until the intervals of area and power of the core are
        this narrow, a fraction; 0 takes all runs.
    selected
        Lanes and recipes to take, of netlists that are built for a clock, see `hwgen.measure.recorded`. They are
        searched for by default.
    searches
        Independent searches for lanes and recipes, of netlists that are built for a clock. Figures are of the first.
        What each of the others finds is measured by as many runs, to tell how far luck in a search moves a figure.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    stimulus: Stimulus
    recipe: str | None = None
    clock_ns: float | None = None
    physical: Physical | None = None
    lanes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    runs: int = 16
    half_width: float = 0.005
    selected: Selected | None = None
    searches: int = 1


@dataclass(frozen=True)
class ExploreRequest:
    """The best of many ways to build two configurations, see `hwgen.measure.explore.study.explore`.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    dots, pipelines, leading_zeros
        What to choose from; nothing is all that make sense.
    clocks_ns
        Clock periods in ns; eight by default.
    runs
        Syntheses of each module.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    dots: tuple[str, ...] = ()
    pipelines: tuple[tuple[str, ...], ...] = ()
    leading_zeros: tuple[str, ...] = ()
    clocks_ns: tuple[float, ...] = ()
    runs: int = 6


@dataclass(frozen=True)
class PowerRequest:
    """Power in every situation, with gate delays, see `hwgen.measure.power.study`.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    stimulus
        Operands at work.
    clock_ns
        Clock period in ns; what both designs meet by default.
    runs
        Syntheses of each module; glitches have three times the noise of area.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    stimulus: Stimulus
    clock_ns: float | None = None
    runs: int = 48


@dataclass(frozen=True)
class Row:
    """A row of the table of formats.

    Parameters
    ----------
    name
        Its name in the table.
    config
        The core that is measured; None where there is none.
    reason
        Why there is none.
    """

    name: str
    config: TensorCoreConfig | None
    reason: str = ""


@dataclass(frozen=True)
class FormatsRequest:
    """What many formats cost over one, see `hwgen.measure.formats.table.measure_formats`.

    Parameters
    ----------
    baseline
        The core that all others are compared with. Where a row has more products for an output in a cycle, it has more
        blocks in a step.
    rows
        Rows of the table.
    stimulus
        Operands at work.
    recipe
        Name of the recipe of all modules; the best for each module by default.
    clock_ns
        Clock period that every core is built for, ns; that of `hwgen.measure.netlists.clock.usual` by default.
    physical
        Where the wires of netlists come from.
    lanes
        Lanes to choose from besides those of the configurations, for each row those that can multiply its formats.
    runs
        Syntheses of each module, at most.
    half_width
        Runs of a row are added until the intervals of area and power of its core are this narrow, see
        `hwgen.report.precision.asked`.
    selected
        Lanes and recipes to take, by name of the configuration, see `hwgen.measure.recorded`. Those of the others are
        searched for.
    model
        A trained model that errors are measured on, too, one of `hwgen.measure.formats.losses.MODELS`.
    """

    baseline: TensorCoreConfig
    rows: tuple[Row, ...]
    stimulus: Stimulus
    recipe: str | None = None
    clock_ns: float | None = None
    physical: Physical = field(default_factory=Physical)
    lanes: tuple[str, ...] = ()
    runs: int = 16
    half_width: float = 0.005
    selected: Mapping[str, Selected] = field(default_factory=dict)
    model: str | None = None


@dataclass(frozen=True)
class QuantiserRequest:
    """What hardware quantisers cost over another, see `hwgen.measure.quantisers.table.measure`.

    Parameters
    ----------
    baseline
        Configuration of a quantiser.
    candidates
        Those that are compared with it, one or more.
    clock_ns
        Clock period in ns.
    closed
        Size and buffer netlists for the clock; else they are as they are mapped.
    runs
        Syntheses of each module.
    cores
        Cores to state them as a share of.
    reports
        Where to look for reports of `hwgen compare` that have the areas of these.
    """

    baseline: QuantiserConfig
    candidates: tuple[QuantiserConfig, ...]
    clock_ns: float
    closed: bool = False
    runs: int = 6
    cores: tuple[TensorCoreConfig, ...] = ()
    reports: Path = Path("reports")

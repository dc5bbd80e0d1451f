"""What a measurement is asked for: at once its argument and, with the library, the key of its cached result.

A field more is thereby a key more: no result of another question is ever taken for an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line shows the defaults, and what these import takes time
    from hwgen.config import TensorCoreConfig
    from hwgen.measure.stimulus import Stimulus

__all__ = ["ExploreRequest", "OverheadRequest", "PowerRequest"]


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
        Clock period in ns; what both designs meet by default.
    runs
        Syntheses of each module.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    stimulus: Stimulus
    recipe: str | None = None
    clock_ns: float | None = None
    runs: int = 16


@dataclass(frozen=True)
class ExploreRequest:
    """The best of many ways to build two configurations, see `hwgen.measure.explore.explore`.

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

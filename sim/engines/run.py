"""What all engines share: their interface, and what a run gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.rtl.tensor_core import step_layout
from sim.steps import Steps

__all__ = ["Engine", "Pattern", "Patterns", "Run", "always", "check_width", "patience", "stuck", "surplus"]


@dataclass(frozen=True)
class Run:
    """What a core answered.

    Parameters
    ----------
    results
        FP32 bit patterns of the results taken, (R, M, N).
    cycles
        Clock cycles from reset until all steps were accepted and all results taken.
    handshakes
        Of them, those with given valid and ready of ``step``, ``addend`` and ``result``, int64, (2, 2, 2, 2, 2, 2).
    accepted
        Cycle in which each step was accepted, int64, (S,).
    supplied
        Cycle in which the C of each step with ``first`` was accepted, int64, (F,); -1 where the run was over before,
        since it does not wait for the C of steps without a result.
    """

    results: NDArray[np.uint32]
    cycles: int
    handshakes: NDArray[np.int64]
    accepted: NDArray[np.int64]
    supplied: NDArray[np.int64]


def always(cycle: int) -> bool:
    """Offer, supply, or take, in every cycle."""
    return True


@dataclass(frozen=True)
class Pattern:
    """Offer, supply, or take, in given cycles; over and over.

    Parameters
    ----------
    bits
        bool, (P,): whether in cycle i, in cycle P + i, and so on.
    """

    bits: NDArray[np.bool_]

    @classmethod
    def random(cls, share: float, rng: np.random.Generator) -> Pattern:
        """True in about ``share`` of all cycles; most runs are shorter than a turn of the loop, some let it run dry."""
        return cls(np.repeat(rng.random(500) < share, rng.choice([1, 1, 2, 3, 10], 500)))

    def __call__(self, cycle: int) -> bool:
        return bool(self.bits[cycle % len(self.bits)])

    def window(self, start: int, count: int) -> NDArray[np.bool_]:
        """Decisions for ``count`` cycles from ``start`` on."""
        return self.bits.take(np.arange(start, start + count), mode="wrap")


class Patterns(TypedDict):
    """When the streams of a core move: steps offered, C offered, results taken; see `Engine.run`."""

    offer: Pattern
    supply: Pattern
    take: Pattern


class Engine(Protocol):
    """A simulated tensor core.

    Attributes
    ----------
    name : str
        ``python`` or ``compiled``.
    config : TensorCoreConfig
        The core.
    """

    name: str
    config: TensorCoreConfig

    def run(
        self,
        steps: Steps,
        *,
        offer: Callable[[int], bool] = always,
        supply: Callable[[int], bool] = always,
        take: Callable[[int], bool] = always,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Run:
        """Reset the core, feed it with ``steps`` and collect every result.

        Parameters
        ----------
        steps
            Steps for a core of the same shape.
        offer, supply, take
            Whether a step is offered, the C of a tile is offered, and a result is taken, in a given cycle: functions
            of the cycle alone, since an engine may ask ahead of time. What was once offered stays until it is
            accepted, as the stream contract demands. C may come before its step or after it.
        progress
            Called with the number of steps accepted so far, now and then.

        Raises
        ------
        ToolError
            The core neither accepts nor answers, although it is offered steps and C and results are taken, or it
            answers more than there are steps with ``last``.
        """
        ...


def check_width(config: TensorCoreConfig, steps: Steps) -> None:
    """Check that the payload of ``steps`` has the width of the core's."""
    width, given = step_layout(config).size, step_layout(steps.config).size
    if width != given:
        raise ValueError(f"steps of {given} bits for {config.name}, which takes {width}")


def patience(config: TensorCoreConfig) -> int:
    """Most cycles in a row in which a core that is offered all it needs and whose results are taken may do nothing.

    After the last step these are its latency, and the wait for its turn in the accumulation loop.
    """
    return config.latency + config.interleave - 1


def stuck(config: TensorCoreConfig, accepted: int, cycle: int) -> ToolError:
    """Error of a core that makes no progress."""
    return ToolError(f"{config.name}: stuck after {accepted} steps, in cycle {cycle}")


def surplus(config: TensorCoreConfig, cycle: int) -> ToolError:
    """Error of a core with more results than steps that ask for one."""
    return ToolError(f"{config.name}: a result that no step asked for, in cycle {cycle}")

"""Engine: the core in Amaranth's own Python simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from amaranth.hdl import Fragment
from amaranth.sim import Simulator
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.rtl.tensor_core import TensorCore
from sim.engines.run import Run, always, check_width, patience, stuck, surplus
from sim.steps import Steps

__all__ = ["AmaranthEngine"]


class _Request(NamedTuple):
    """What a run is asked to do; see `Engine.run`."""

    steps: Steps
    offer: Callable[[int], bool]
    supply: Callable[[int], bool]
    take: Callable[[int], bool]
    progress: Callable[[int], None]


class _Sender:
    """Sends payloads into one stream of the core: what is offered stays until it is accepted.

    Parameters
    ----------
    port
        The stream.
    words, count
        The payloads, and how many there are.
    decide
        Whether a payload may come on offer in a given cycle.

    Attributes
    ----------
    pending : bool
        A payload is on offer.
    cycles : list of int
        In which payloads were accepted.
    """

    def __init__(self, port: Any, words: Iterator[int], count: int, decide: Callable[[int], bool]) -> None:
        self.port, self.words, self.count, self.decide = port, words, count, decide
        self.pending = False
        self.cycles: list[int] = []

    @property
    def done(self) -> bool:
        """Whether all payloads have been accepted."""
        return len(self.cycles) == self.count

    def drive(self, ctx: Any, cycle: int) -> None:
        """Set the inputs of a cycle."""
        if not self.pending and not self.done and self.decide(cycle):
            self.pending = True
            ctx.set(self.port.payload.as_value(), next(self.words))
        ctx.set(self.port.valid, self.pending)

    def accepted(self, ready: int, cycle: int) -> bool:
        """Whether the payload on offer, if any, was accepted in a cycle."""
        if not (self.pending and ready):
            return False
        self.cycles.append(cycle)
        self.pending = False
        return True


class AmaranthEngine:
    """A tensor core in the Python simulator; elaborated once, then run any number of times.

    Parameters
    ----------
    config
        The core.
    waves
        VCD file that the last run leaves its waveforms in: every signal of the core, hence no small file.

    Attributes
    ----------
    name : str
        ``python``.
    """

    name = "python"

    def __init__(self, config: TensorCoreConfig, waves: Path | None = None) -> None:
        self.config = config
        self._waves = waves
        self._core = TensorCore(config)
        self._fragment = Fragment.get(self._core, None)
        self._simulator: Simulator | None = None
        self._request: _Request
        self._answer: Run

    def run(
        self,
        steps: Steps,
        *,
        offer: Callable[[int], bool] = always,
        supply: Callable[[int], bool] = always,
        take: Callable[[int], bool] = always,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Run:
        """Reset the core, feed it with ``steps`` and collect every result; see `Engine.run`."""
        check_width(self.config, steps)
        self._request = _Request(steps, offer, supply, take, progress)
        if self._simulator is None:
            self._simulator = Simulator(self._fragment)
            self._simulator.add_clock(1e-6)
            self._simulator.add_testbench(self._testbench)
        else:
            self._simulator.reset()
        with nullcontext() if self._waves is None else self._simulator.write_vcd(str(self._waves)):
            self._simulator.run()
        return self._answer

    async def _testbench(self, ctx: Any) -> None:
        steps, offer, supply, take, progress = self._request
        core = self._core
        expected = int(steps.last.sum())
        size = core.config.rows * core.config.columns * 4
        sent = _Sender(core.step, steps.words(), len(steps), offer)
        brought = _Sender(core.addend, steps.addend_words(), len(steps.addends), supply)
        cycle = idle = done = 0
        results: list[NDArray[np.uint32]] = []
        handshakes = np.zeros((2,) * 6, np.int64)
        while not sent.done or len(results) < expected:
            sent.drive(ctx, cycle)
            brought.drive(ctx, cycle)
            ctx.set(core.result.ready, taking := take(cycle))
            _, _, step, addend, valid, payload = await ctx.tick().sample(
                core.step.ready, core.addend.ready, core.result.valid, core.result.payload.as_value()
            )
            handshakes[int(sent.pending), step, int(brought.pending), addend, valid, int(taking)] += 1
            if sent.accepted(step, cycle):
                progress(len(sent.cycles))
            brought.accepted(addend, cycle)
            if taking and valid:
                if len(results) == expected:
                    raise surplus(core.config, cycle)
                results.append(np.frombuffer(payload.to_bytes(size, "little"), "<u4"))
            cycle += 1
            if done != (done := len(sent.cycles) + len(brought.cycles) + len(results)):
                idle = 0
            elif taking and all(sender.pending or sender.done for sender in (sent, brought)):
                idle += 1
                if idle > patience(core.config):
                    raise stuck(core.config, len(sent.cycles), cycle)
        shape = (-1, core.config.rows, core.config.columns)
        supplied = np.full(brought.count, -1, np.int64)
        supplied[: len(brought.cycles)] = brought.cycles
        self._answer = Run(
            np.array(results, np.uint32).reshape(shape), cycle, handshakes, np.array(sent.cycles, np.int64), supplied
        )

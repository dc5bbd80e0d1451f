"""Engine: the core in Amaranth's own Python simulator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from amaranth.hdl import Fragment
from amaranth.sim import Simulator
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.rtl.tensor_core import TensorCore
from sim.engines.run import Run, always, check_width, patience, stuck, surplus
from sim.steps import Steps

__all__ = ["AmaranthEngine"]


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
        self._request: tuple[Steps, Callable[[int], bool], Callable[[int], bool], Callable[[int], None]]
        self._answer: Run

    def run(
        self,
        steps: Steps,
        *,
        offer: Callable[[int], bool] = always,
        take: Callable[[int], bool] = always,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Run:
        """Reset the core, feed it with ``steps`` and collect every result; see `Engine.run`."""
        check_width(self.config, steps)
        self._request = (steps, offer, take, progress)
        if self._simulator is None:
            self._simulator = Simulator(self._fragment)
            self._simulator.add_clock(1e-6)
            self._simulator.add_testbench(self._testbench)
        else:
            self._simulator.reset()
        with nullcontext() if self._waves is None else self._simulator.write_vcd(str(self._waves)):
            self._simulator.run()
        return self._answer

    async def _testbench(self, ctx: object) -> None:
        steps, offer, take, progress = self._request
        core = self._core
        expected = int(steps.last.sum())
        size = core.config.rows * core.config.columns * 4
        words = steps.words()
        pending: int | None = None
        accepted = cycle = 0
        idle = done = 0
        results: list[NDArray[np.uint32]] = []
        handshakes = np.zeros((2, 2, 2, 2), np.int64)
        while accepted < len(steps) or len(results) < expected:
            if pending is None and accepted < len(steps) and offer(cycle):
                pending = next(words)
                ctx.set(core.step.payload.as_value(), pending)  # type: ignore[attr-defined]
            ctx.set(core.step.valid, pending is not None)  # type: ignore[attr-defined]
            ctx.set(core.result.ready, taking := take(cycle))  # type: ignore[attr-defined]
            _, _, ready, valid, payload = await ctx.tick().sample(  # type: ignore[attr-defined]
                core.step.ready, core.result.valid, core.result.payload.as_value()
            )
            handshakes[int(pending is not None), ready, valid, int(taking)] += 1
            if pending is not None and ready:
                pending = None
                accepted += 1
                progress(accepted)
            if taking and valid:
                if len(results) == expected:
                    raise surplus(core.config, cycle)
                results.append(np.frombuffer(payload.to_bytes(size, "little"), "<u4"))
            cycle += 1
            if done != (done := accepted + len(results)):
                idle = 0
            elif taking and (pending is not None or accepted == len(steps)):
                idle += 1
                if idle > patience(core.config):
                    raise stuck(core.config, accepted, cycle)
        shape = (-1, core.config.rows, core.config.columns)
        self._answer = Run(np.array(results, np.uint32).reshape(shape), cycle, handshakes)

"""Engines of the hardware quantiser: compiled, and Amaranth's own simulator."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Protocol

import numpy as np
from amaranth.sim import Simulator
from numpy.typing import NDArray

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.errors import ToolError
from hwgen.rtl.quantiser.quantiser import Quantiser
from hwgen.verilog import design
from sim.engines.compiled import loaded

__all__ = ["DRIVER", "AmaranthQuantiser", "CompiledQuantiser", "Quantised", "QuantiserEngine", "TensorScaleWords"]

DRIVER = "quantiser.cc"
"""The file that clocks it."""
_RESULT_BYTES = 10
_PATIENCE = 1000
_ALWAYS = np.ones(1, bool)


class TensorScaleWords(NamedTuple):
    """What the tensor scale's ports take."""

    fraction: int
    """Its significand without the leading one."""
    exponent: int


class Quantised(NamedTuple):
    """What a quantiser answered.

    ``codes``: uint8 (n, 16). ``scales``: uint8 (n,). ``invalid``, ``saturated``: bool (n,). ``cycles``: from the first
    one until the last result was taken.
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.uint8]
    invalid: NDArray[np.bool_]
    saturated: NDArray[np.bool_]
    cycles: int


class QuantiserEngine(Protocol):
    """A quantiser that runs."""

    config: QuantiserConfig

    def run(
        self,
        blocks: NDArray[Any],
        scale: TensorScaleWords,
        offer: NDArray[np.bool_] = _ALWAYS,
        take: NDArray[np.bool_] = _ALWAYS,
    ) -> Quantised:
        """Quantise blocks.

        Parameters
        ----------
        blocks
            Words of numbers, uint32 or uint16 as the input is, (n, 16).
        scale
            The tensor scale.
        offer, take
            Cycles in which a block is offered, and a result taken, over and over; what is offered stays until it is
            accepted.

        Raises
        ------
        ToolError
            Nothing comes any more, or there is a result without a block.
        """


def _taken_apart(results: NDArray[np.uint8], cycles: int) -> Quantised:
    codes = np.stack([results[:, :8] & 15, results[:, :8] >> 4], axis=2).reshape(-1, BLOCK)
    flags = results[:, 9]
    return Quantised(codes, results[:, 8].copy(), (flags & 1).astype(bool), (flags >> 1 & 1).astype(bool), cycles)


def _lost(config: QuantiserConfig) -> ToolError:
    return ToolError(f"{config.name}: a result is missing, or is one too many")


class CompiledQuantiser:
    """A quantiser compiled to machine code.

    Parameters
    ----------
    config
        The quantiser.

    Raises
    ------
    InputError
        There is no C++ compiler, or it cannot compile the simulator.
    """

    def __init__(self, config: QuantiserConfig) -> None:
        self.config = config
        self._attach(loaded(design(Quantiser, config, "core"), DRIVER))

    def _attach(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._library.hwgen_create.restype = ctypes.c_void_p
        self._library.hwgen_destroy.argtypes = [ctypes.c_void_p]
        self._library.hwgen_destroy.restype = None
        self._library.hwgen_quantise.restype = ctypes.c_uint64

    def run(
        self,
        blocks: NDArray[Any],
        scale: TensorScaleWords,
        offer: NDArray[np.bool_] = _ALWAYS,
        take: NDArray[np.bool_] = _ALWAYS,
    ) -> Quantised:
        """Quantise blocks; see `QuantiserEngine.run`."""
        words = np.ascontiguousarray(blocks, "<u4" if self.config.numbers.width == 32 else "<u2")
        results = np.empty((len(words), _RESULT_BYTES), np.uint8)
        patterns = [_Pattern(pattern) for pattern in (offer, take)]
        ports = [ctypes.byref(ctypes.c_uint16(scale.fraction)), ctypes.byref(ctypes.c_int8(scale.exponent))]
        core = ctypes.c_void_p(self._library.hwgen_create())
        self._prepare(core, words)
        try:
            cycles = self._library.hwgen_quantise(
                core,
                *ports,
                ctypes.c_void_p(words.ctypes.data),
                ctypes.c_uint64(len(words)),
                *map(ctypes.byref, patterns),
                ctypes.c_uint64(_PATIENCE + sum(len(pattern) for pattern in (offer, take))),
                ctypes.c_void_p(results.ctypes.data),
            )
        finally:
            self._library.hwgen_destroy(core)
        if not cycles:
            raise _lost(self.config)
        return _taken_apart(results, cycles)

    def _prepare(self, core: ctypes.c_void_p, words: NDArray[Any]) -> None:
        """What comes before a run."""


class _Pattern(ctypes.Structure):
    """The driver's ``struct pattern``."""

    _fields_ = [("bits", ctypes.c_void_p), ("period", ctypes.c_uint64)]

    def __init__(self, bits: NDArray[np.bool_]) -> None:
        self.kept = np.ascontiguousarray(bits, np.uint8)
        super().__init__(self.kept.ctypes.data, len(self.kept))


class AmaranthQuantiser:
    """A quantiser in Amaranth's own simulator.

    Parameters
    ----------
    config
        The quantiser.
    """

    def __init__(self, config: QuantiserConfig) -> None:
        self.config = config

    def run(
        self,
        blocks: NDArray[Any],
        scale: TensorScaleWords,
        offer: NDArray[np.bool_] = _ALWAYS,
        take: NDArray[np.bool_] = _ALWAYS,
    ) -> Quantised:
        """Quantise blocks; see `QuantiserEngine.run`."""
        words = np.ascontiguousarray(blocks, "<u4" if self.config.numbers.width == 32 else "<u2")
        core = Quantiser(self.config)
        results: list[bytes] = []
        simulator = Simulator(core)
        simulator.add_clock(1e-6)
        cycles = 0

        async def testbench(ctx: Any) -> None:
            nonlocal cycles
            ctx.set(core.tensor_fraction, scale.fraction)
            ctx.set(core.tensor_exponent, scale.exponent)
            accepted, idle, pending = 0, 0, False
            patience = _PATIENCE + len(offer) + len(take)
            while len(results) < len(words):
                if not pending and accepted < len(words) and offer[cycles % len(offer)]:
                    pending = True
                    ctx.set(core.block.payload.as_value(), int.from_bytes(words[accepted].tobytes(), "little"))
                ctx.set(core.block.valid, pending)
                ctx.set(core.result.ready, taking := bool(take[cycles % len(take)]))
                _, _, ready, valid, payload = await ctx.tick().sample(
                    core.block.ready, core.result.valid, core.result.payload.as_value()
                )
                moved = False
                if taking and valid:
                    if len(results) == accepted:
                        raise _lost(self.config)
                    results.append(payload.to_bytes(_RESULT_BYTES, "little"))
                    moved = True
                if pending and ready:
                    pending, accepted, moved = False, accepted + 1, True
                cycles += 1
                idle = 0 if moved else idle + 1
                if idle > patience:
                    raise _lost(self.config)

        simulator.add_testbench(testbench)
        simulator.run()
        return _taken_apart(np.frombuffer(b"".join(results), np.uint8).reshape(-1, _RESULT_BYTES), cycles)

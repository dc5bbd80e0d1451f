"""A core that holds mutants, compiled once; one of them at a time is run."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hwgen.config import TensorCoreConfig
from hwgen.rtl.hierarchy import ModuleSet
from sim.engines.compiled import CompiledEngine, Feed, build, source
from sim.engines.run import Run
from sim.mutate.design import SELECT, SELECT_WIDTH

__all__ = ["MutantEngine", "linked"]

_SELECT = f"""
extern "C" __attribute__((visibility("default"))) void hwgen_select(void *handle, uint32_t number) {{
    static_cast<core *>(handle)->i_{SELECT} = value<{SELECT_WIDTH}>{{{{number}}}};
}}
extern "C" __attribute__((visibility("default"))) void hwgen_reset(void *handle) {{
    core &top = *static_cast<core *>(handle);
    top.i_rst = bit{{{{1}}}};
    top.eval();
    top.commit();
    top.i_rst = bit{{{{0}}}};
}}
"""


def linked(texts: Mapping[str, str], added: str, driver: str = "driver.cc") -> ctypes.CDLL:
    """The simulator of modules with mutants as a library; the top is ``core``.

    Parameters
    ----------
    texts
        The modules, see `sim.mutate.design.planted`.
    added
        C++ behind the simulator's own.
    driver
        The file that clocks it, as in `sim.engines.compiled.source`.

    Raises
    ------
    InputError
        There is no C++ compiler, or it cannot compile the simulator.
    """
    modules = ModuleSet(lambda block, name, modules: "")
    modules.texts = dict(texts)
    with tempfile.TemporaryDirectory(prefix="hwgen-") as temporary:
        built = Path(temporary) / "mutants.so"
        build(source(modules, driver) + added, built)
        return ctypes.CDLL(str(built))


class MutantEngine(CompiledEngine):
    """The compiled engine of a core that holds mutants.

    Parameters
    ----------
    config
        The core.
    texts
        Its modules with the mutants, see `sim.mutate.design.planted`; the top is ``core``.

    Attributes
    ----------
    number : int
        The mutant to run; 0 is the core as it is.
    before : int
        Cycles of traffic before each run, after which the core is reset; none by default.

    Raises
    ------
    InputError
        There is no C++ compiler, or it cannot compile the simulator.
    """

    name = "mutants"

    def __init__(self, config: TensorCoreConfig, texts: Mapping[str, str]) -> None:
        self.config = config
        self._attach(linked(texts, _SELECT))
        self._library.hwgen_select.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
        self._library.hwgen_reset.argtypes = [ctypes.c_void_p]
        self.number = self.before = 0

    def _run(self, core: int, feed: Feed, progress: Callable[[int], None]) -> Run:
        self._library.hwgen_select(core, self.number)
        if self.before:
            self._interrupted(core, feed)
            self._library.hwgen_reset(core)
        return super()._run(core, feed, progress)

    def _interrupted(self, core: int, feed: Feed) -> None:
        """Some cycles of a run that ends in their midst, whatever it answers."""
        cut = Feed(feed.steps[: self.before], self.before, *feed.decisions.decide)
        cut.sent.more()
        cut.supplied.more()
        cut.decisions.more(0, self.before)
        self._library.hwgen_run(core, *cut.arguments(self.before))

"""Designs on their way through synthesis, and what takes them there."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.mapping import area
from hwgen.mapping.cache import Cache
from hwgen.mapping.yosys import TIME_LIMIT, Recipe
from hwgen.rtl.element import Element
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.verilog import design, verilog

__all__ = ["DESIGNS", "KINDS", "TOPS", "Design", "Flow", "buildable"]

DESIGNS: tuple[type[Block], ...] = (TensorCore, LaneArray)
"""The blocks of a configuration that are measured."""

KINDS: dict[str, type[Block]] = {"lane array": LaneArray, "element": TensorCore, "core": TensorCore}
"""By scope, the block whose netlists hold it."""

TOPS = {"lane array": LaneArray.module_name, "element": Element.module_name, "core": TensorCore.module_name}
"""By scope, its top module."""


def buildable(library: Library) -> tuple[type[Block], ...]:
    """Those of `DESIGNS` that a library has the cells for: without flip-flops the lane array alone."""
    return DESIGNS if library.flip_flops() else (LaneArray,)


# Mapped modules are a hundred thousand objects, and none in a circle. To look for circles after every 700 new ones took
# 7 % of a build.
_OBJECTS = 100_000


@dataclass(frozen=True)
class Flow:
    """What all syntheses of a measurement have in common.

    Parameters
    ----------
    library
        Cells to map to.
    cache
        Directory of synthesis results; None keeps none.
    workers
        Processes at once; -1 is one for each core.
    time_limit
        Seconds for each synthesis.
    progress
        Called with what is being done, how much of it is done and how much there is.
    """

    library: Library
    cache: Path | None = None
    workers: int = -1
    time_limit: float = TIME_LIMIT
    progress: Callable[[str, int, int], None] = lambda what, done, total: None

    def synthesise(self, jobs: Iterable[area.Job], what: str) -> dict[area.Identity, area.Body]:
        """Run syntheses; ``what`` is their name for the progress display."""
        return area.run(
            jobs,
            self.library,
            cache=Cache(self.cache),
            workers=self.workers,
            time_limit=self.time_limit,
            progress=lambda done, total: self.progress(what, done, total),
        )

    def each(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], what: str) -> Iterator[Any]:
        """Results of ``function`` for the arguments of each task, in order, from processes side by side."""
        self.progress(what, 0, len(tasks))
        library = pickle.dumps(self.library)
        calls = (delayed(_with_library)(library, function, _without(self.library, task)) for task in tasks)
        results = Parallel(n_jobs=self.workers, return_as="generator")(calls)
        for done, result in enumerate(results, start=1):
            yield result
            self.progress(what, done, len(tasks))


class _Library:
    """Where the library was among the arguments of a task."""


def _without(library: Library, task: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_Library() if argument is library else argument for argument in task)


def _with_library(packed: bytes, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """Call a function in a process that unpacks a library once, and so keeps what it finds out about its cells."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *thresholds[1:])
    try:
        return function(*(_unpacked(packed) if isinstance(argument, _Library) else argument for argument in task))
    finally:
        gc.set_threshold(*thresholds)


@lru_cache(maxsize=2)
def _unpacked(packed: bytes) -> Library:
    library: Library = pickle.loads(packed)
    return library


@dataclass(frozen=True)
class Design:
    """One block of one configuration: the core, composed of its modules, or the lane array, flat.

    Parameters
    ----------
    config
        The configuration.
    kind
        Class of the block.
    """

    config: TensorCoreConfig
    kind: type[Block]

    @cached_property
    def source(self) -> area.Source:
        """What synthesis needs. It rides along where a design goes to another process."""
        return _source(self)

    @property
    def key(self) -> tuple[TensorCoreConfig, str]:
        """What its syntheses go by."""
        return self.config, self.kind.module_name

    def plan(
        self, recipes: Mapping[str, Collection[Recipe]] | Collection[Recipe], variants: Iterable[int]
    ) -> list[area.Job]:
        """Its syntheses, see `hwgen.mapping.area.plan`."""
        return area.plan(self.key, self.source, recipes, variants)

    def plan_chosen(self, recipes: Mapping[str, Recipe], variants: Iterable[int]) -> list[area.Job]:
        """Its syntheses, each module by its recipe."""
        return self.plan({module: [how] for module, how in recipes.items()}, variants)

    def chosen(
        self, bodies: Mapping[area.Identity, area.Body], recipes: Mapping[str, Recipe], run: int
    ) -> dict[str, area.Body]:
        """The mapped modules of one run, each by its recipe."""
        return {module: bodies[self.key, module, how.name, run] for module, how in recipes.items()}

    def assembled(
        self, bodies: Mapping[area.Identity, area.Body], recipes: Mapping[str, Recipe], run: int, library: Library
    ) -> dict[str, area.Body]:
        """As `chosen`, with buffer trees."""
        return area.buffered(self.chosen(bodies, recipes, run), self.source, library)


# Elaboration takes seconds, and designs are made anew wherever they are needed.
@lru_cache(maxsize=64)
def _source(made: Design) -> area.Source:
    config, top = made.config, made.kind.module_name
    modules = design(made.kind, config, top)
    return area.Source(verilog(modules), top, modules.instances, made.kind is LaneArray, config.clock_gating)

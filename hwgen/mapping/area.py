"""A design synthesised module by module, and its area block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from joblib import Parallel, delayed

from hwgen.cells.library import Library
from hwgen.mapping.cache import Cache
from hwgen.mapping.perturb import MODULE, shuffled
from hwgen.mapping.yosys import TIME_LIMIT, Recipe, fingerprint, synthesise
from hwgen.netlist.bodies import copied_cells
from hwgen.netlist.fanout import Loads, limit_fanout
from hwgen.netlist.graph import Netlist

__all__ = [
    "BLOCKS",
    "Body",
    "Identity",
    "Job",
    "Source",
    "block_of",
    "buffered",
    "by_block",
    "by_run",
    "cells_by_block",
    "clock_gate_area",
    "counts",
    "in_element",
    "own_area",
    "plan",
    "ranked",
    "run",
    "sequential_area",
    "without_ties",
]

Body = dict[str, Any]
"""A mapped module as Yosys' ``write_json`` gives it."""

Identity = tuple[Hashable, str, str, int]
"""Design (whatever names it), module, recipe and variant of one synthesis."""

# A mapping of these takes ten times as long as one of the others.
_SLOW = ("accumulate", "lane_array", "dot_product")

BLOCKS = {
    "operand_decoder": "operand decoders",
    "operand_decoder_b": "operand decoders",
    "dot_product": "dot products",
    "largest_exponent": "dot products",
    "last_adder": "dot products",
    "significand_products": "dot products",
    "term_exponents": "scale products",
    "scale_product": "scale products",
    "product_exponents": "scale products",
    "product_distances": "scale products",
    "term_distances": "scale products",
    "accumulate": "align, add, normalise, round",
    "aligned_sum": "align, add, normalise, round",
    "aligned_products": "align, add, normalise, round",
    "element": "registers and control",
    "tensor_core": "registers and control",
    "lane_array": "lane array",
    "largest_magnitude": "maximum",
    "block_scale": "block scales",
    "block_scale1": "block scales",
    "scale_division": "block scales",
    "scale_division1": "block scales",
    "chosen_scale": "block scales",
    "quantiser_lane": "numbers",
    "errorless_lane": "numbers",
    "choice": "choice",
    "quantiser": "registers and control",
}
"""Modules that are synthesised on their own, each once, and the block a report counts them under.

Every other module is flattened into the one that holds it.
"""


@dataclass(frozen=True)
class Source:
    """What synthesis needs of one design.

    Parameters
    ----------
    verilog
        Text with all modules.
    top
        Top module.
    instances
        For every module, how many instances of which modules it holds directly.
    flat
        Synthesise the whole as one module.
    clock_gating
        Put clock gates before registers that share an enable, see `hwgen.mapping.yosys.synthesise`.
    """

    verilog: str
    top: str
    instances: Mapping[str, Mapping[str, int]]
    flat: bool = False
    clock_gating: bool = False

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {found[1]: found[0] for found in MODULE.finditer(self.verilog)}

    def extract(self, module: str, boxes: Collection[str]) -> str:
        """Text of one module and what is below it, boxes included.

        Whatever else the design holds must not show in the result: the same module of another design
        is to give the same netlist.
        """
        wanted = [module]
        for name in wanted:
            if name not in boxes or name == module:
                wanted += [child for child in self.instances[name] if child not in wanted]
        return "\n".join(self._texts[name] for name in self._texts if name in wanted)


@dataclass(frozen=True)
class Job:
    """Synthesis of one module of one design by one recipe in one variant; ``key`` says whose it is."""

    key: Hashable
    source: Source
    module: str
    boxes: tuple[str, ...]
    recipe: Recipe
    variant: int = 0

    @property
    def identity(self) -> Identity:
        """What the result is filed under."""
        return self.key, self.module, self.recipe.name, self.variant

    @cached_property
    def verilog(self) -> str:
        """Text to synthesise."""
        return shuffled(self.source.extract(self.module, self.boxes), self.variant)


def plan(
    key: Hashable,
    source: Source,
    recipes: Mapping[str, Collection[Recipe]] | Collection[Recipe],
    variants: Iterable[int],
) -> list[Job]:
    """The syntheses that a design needs: every distinct module of `BLOCKS`, or the whole if it is flat.

    Parameters
    ----------
    key
        What tells the design from others.
    source
        The design.
    recipes
        Recipes for every module, or by module.
    variants
        Variants of each, see `hwgen.mapping.perturb`.
    """
    modules = {source.top: ()} if source.flat else source.instances
    return [
        Job(key, source, module, tuple(child for child in children if child in BLOCKS), recipe, variant)
        for module, children in modules.items()
        if module in BLOCKS
        for recipe in (recipes[module] if isinstance(recipes, Mapping) else recipes)
        for variant in variants
    ]


def run(
    jobs: Iterable[Job],
    library: Library,
    *,
    cache: Cache,
    workers: int = -1,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Identity, Body]:
    """Run syntheses side by side; equal ones once.

    Parameters
    ----------
    jobs
        What to run.
    library
        What to map to.
    cache
        Results of earlier runs.
    workers
        Processes at once; -1 is one for each core.
    time_limit
        Seconds for each.
    progress
        Called with the number of syntheses done, and how many there are.

    Returns
    -------
    dict
        Mapped module bodies by `Job.identity`.
    """
    wanted: dict[str, list[Job]] = {}
    for job in jobs:
        what = job.verilog, job.module, library, job.recipe, job.boxes, job.variant
        wanted.setdefault(fingerprint(*what, job.source.clock_gating), []).append(job)
    bodies: dict[Identity, Body] = {}

    def one(digest: str, job: Job) -> tuple[str, Body]:
        body = cache.get(digest)
        if body is None:
            what = job.verilog, job.module, library, job.recipe, job.boxes, job.variant
            body = synthesise(*what, time_limit, job.source.clock_gating)
            cache.put(digest, body)
        return digest, body

    # What takes long comes first, so that no process is left alone with it at the end.
    ordered = sorted(wanted.items(), key=lambda each: each[1][0].module not in _SLOW)
    # Threads: the work is in the processes they start.
    parallel = Parallel(n_jobs=workers, prefer="threads", return_as="generator_unordered")
    found = parallel(delayed(one)(digest, same[0]) for digest, same in ordered)
    progress(0, len(wanted))
    for done, (digest, body) in enumerate(found, start=1):
        bodies |= dict.fromkeys((job.identity for job in wanted[digest]), body)
        progress(done, len(wanted))
    return bodies


def own_area(body: Body, library: Library) -> float:
    """Area in um2 of a module's own cells, without its instances of other modules."""
    return sum(library.cells[cell["type"]].area for cell in body["cells"].values() if cell["type"] in library.cells)


def counts(source: Source, top: str = "") -> dict[str, int]:
    """How often each module of `BLOCKS` occurs below ``top`` (the source's top by default), itself included."""
    top = top or source.top
    found = {top: 1}
    if not source.flat:
        for child, number in source.instances[top].items():
            if child in BLOCKS:
                for module, inner in counts(source, child).items():
                    found[module] = found.get(module, 0) + number * inner
    return found


def ranked(
    jobs: Iterable[Job], bodies: Mapping[Identity, Body], library: Library
) -> dict[tuple[Hashable, str], dict[Recipe, float]]:
    """For every module of every design, its recipes with their mean areas over ``jobs``, the smallest first."""
    areas: dict[tuple[Hashable, str], dict[Recipe, list[float]]] = {}
    for job in jobs:
        found = areas.setdefault((job.key, job.module), {})
        found.setdefault(job.recipe, []).append(own_area(bodies[job.identity], library))
    means = {key: {recipe: sum(own) / len(own) for recipe, own in found.items()} for key, found in areas.items()}
    return {key: dict(sorted(found.items(), key=lambda pair: pair[1])) for key, found in means.items()}


def without_ties(areas: Mapping[Recipe, float], tolerance: float, order: Sequence[Recipe]) -> list[Recipe]:
    """Recipes from the smallest up, but before all the first of ``order`` within ``tolerance`` um2 of the smallest."""
    near = [how for how in order if how in areas and areas[how] <= min(areas.values()) + tolerance]
    return list(dict.fromkeys([*near[:1], *areas]))


def buffered(modules: Mapping[str, Body], source: Source, library: Library) -> dict[str, Body]:
    """The modules of one run of one design, with buffer trees on their nets, see `hwgen.netlist.fanout`."""
    done: dict[str, Body] = {}
    loads: dict[str, Loads] = {}

    def visit(module: str) -> None:
        children = () if source.flat else [child for child in source.instances[module] if child in BLOCKS]
        for child in children:
            if child not in done:
                visit(child)
        # Of its own is what a tree changes: the cells, and the nets at their pins.
        done[module] = {**modules[module], "cells": copied_cells(modules[module])}
        loads[module] = limit_fanout(done[module], library, loads)

    visit(source.top)
    return done


def by_run(runs: Sequence[Mapping[str, Body]], source: Source, top: str, library: Library) -> dict[str, list[float]]:
    """Area in um2 of each block below ``top``, one for each run, all modules of a run in the same variant."""
    found: dict[str, list[float]] = {}
    for module, number in counts(source, top).items():
        block = found.setdefault(BLOCKS[module], [0.0] * len(runs))
        for index, modules in enumerate(runs):
            block[index] += number * own_area(modules[module], library)
    return {block: found[block] for block in dict.fromkeys(BLOCKS.values()) if block in found}


def cells_by_block(
    modules: Mapping[str, Body], source: Source, top: str, library: Library
) -> dict[str, dict[str, int]]:
    """How many of each cell of the library the blocks below ``top`` hold, by block and name of the cell."""
    found: dict[str, Counter[str]] = {}
    for module, number in counts(source, top).items():
        block = found.setdefault(BLOCKS[module], Counter())
        for cell in modules[module]["cells"].values():
            if cell["type"] in library.cells:
                block[cell["type"]] += number
    return {block: dict(found[block]) for block in dict.fromkeys(BLOCKS.values()) if block in found}


def block_of(path: str) -> str:
    """Block of `BLOCKS` that a module path of a netlist belongs to."""
    return BLOCKS[path.rsplit("/", 1)[-1]]


def in_element(path: str) -> bool:
    """Whether a module path of a core's netlist is within a processing element."""
    return path.split("/")[1:2] == ["element"]


def by_block(values: Mapping[str, float]) -> dict[str, float]:
    """Add up figures by module path to figures by block, in the order of `BLOCKS`."""
    result = dict.fromkeys(BLOCKS.values(), 0.0)
    for path, value in values.items():
        result[block_of(path)] += value
    return {block: value for block, value in result.items() if value}


def sequential_area(netlist: Netlist) -> float:
    """Area of the flip-flops in um2; clock gates are in the area of the block that holds them, and not in this."""
    return sum(len(group.cells) * group.cell.area for group in netlist.groups if group.cell.is_flip_flop)


def clock_gate_area(netlist: Netlist) -> float:
    """Area of the clock gates in um2."""
    return sum(len(group.cells) * group.cell.area for group in netlist.groups if group.cell.clock_gate is not None)

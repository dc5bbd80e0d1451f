"""A design synthesised module by module, and its area block by block."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed

from hwgen.synth.library import Library
from hwgen.synth.netlist import Netlist, link
from hwgen.synth.yosys import Recipe, synthesise

_MODULE = re.compile(r"^module (\w+)\b.*?^endmodule$", re.DOTALL | re.MULTILINE)

__all__ = ["BLOCKS", "Job", "Source", "assemble", "block_of", "by_block", "plan", "run", "sequential_area"]

BLOCKS = {
    "operand_decoder": "operand decoders",
    "dot_product": "dot products",
    "term_exponents": "scale products",
    "scale_product": "scale products",
    "accumulate": "align, add, normalise, round",
    "element": "registers and control",
    "tensor_core": "registers and control",
    "lane_array": "lane array",
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
    """

    verilog: str
    top: str
    instances: Mapping[str, Mapping[str, int]]
    flat: bool = False

    def extract(self, module: str, boxes: Collection[str]) -> str:
        """Text of one module and what is below it, boxes included.

        Whatever else the design holds must not show in the result: the same module of another design
        is to give the same netlist.
        """
        texts = {found[1]: found[0] for found in _MODULE.finditer(self.verilog)}
        wanted = [module]
        for name in wanted:
            if name not in boxes or name == module:
                wanted += [child for child in self.instances[name] if child not in wanted]
        return "\n".join(texts[name] for name in texts if name in wanted)


@dataclass(frozen=True)
class Job:
    """Synthesis of one module of one design; ``key`` says whose it is."""

    key: str
    source: Source
    module: str
    boxes: tuple[str, ...]


def plan(key: str, source: Source) -> list[Job]:
    """The syntheses that a design needs: one for each distinct module of `BLOCKS`, or one if it is flat."""
    if source.flat:
        return [Job(key, source, source.top, ())]
    return [
        Job(key, source, module, tuple(child for child in children if child in BLOCKS))
        for module, children in source.instances.items()
        if module in BLOCKS
    ]


def run(
    jobs: Iterable[Job],
    library: Library,
    recipe: Recipe,
    workers: int = -1,
    done: Callable[[Job], None] = lambda job: None,
) -> dict[tuple[str, str], dict[str, Any]]:
    """Run syntheses side by side.

    Parameters
    ----------
    jobs
        What to run.
    library, recipe
        What to map to, and how.
    workers
        Processes at once; -1 is one for each core.
    done
        Called after each job.

    Returns
    -------
    dict
        Mapped module bodies by (key, module).
    """
    listed = list(jobs)

    def one(job: Job) -> tuple[Job, dict[str, Any]]:
        return job, synthesise(job.source.extract(job.module, job.boxes), job.module, library, recipe, job.boxes)

    bodies = {}
    # Threads: the work is in the processes they start.
    parallel = Parallel(n_jobs=workers, prefer="threads", return_as="generator_unordered")
    for job, body in parallel(delayed(one)(job) for job in listed):
        bodies[job.key, job.module] = body
        done(job)
    return bodies


def assemble(
    bodies: Mapping[tuple[str, str], dict[str, Any]], key: str, source: Source, library: Library, top: str = ""
) -> Netlist:
    """Link the modules of one design (or of the part below ``top``) into a flat netlist."""
    own = {module: body for (owner, module), body in bodies.items() if owner == key}
    return link(own, top or source.top, library)


def block_of(path: str) -> str:
    """Block of `BLOCKS` that a module path of a netlist belongs to."""
    return BLOCKS[path.rsplit("/", 1)[-1]]


def by_block(values: Mapping[str, float]) -> dict[str, float]:
    """Add up figures by module path to figures by block, in the order of `BLOCKS`."""
    result = dict.fromkeys(BLOCKS.values(), 0.0)
    for path, value in values.items():
        result[block_of(path)] += value
    return {block: value for block, value in result.items() if value}


def sequential_area(netlist: Netlist) -> float:
    """Area of the flip-flops in um2."""
    return sum(len(group.cells) * group.cell.area for group in netlist.groups if group.cell.sequential is not None)

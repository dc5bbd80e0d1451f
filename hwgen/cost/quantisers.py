"""How many quantisers a grid has to have, so that none of them holds up what `hwgen.cost.grid` counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hwgen.config.quantiser import BLOCK

if TYPE_CHECKING:  # its arithmetic is compiled, and what compiles takes half a second to import
    from hwgen.cost.grid import GridRun

__all__ = ["needed"]


def needed(run: GridRun) -> int:
    """Quantisers for all cores; one takes a block of 16 numbers in a cycle, as those of `hwgen quantiser` do.

    Behind the cores every core has as many as keep up with the GEMM that has most to quantise in a cycle, in the mean
    over its cycles without DRAM. A pass over DRAM is shared by all of them.
    """
    cores = run.arrangement.cores
    in_a_pass = run.pass_bytes > 0
    behind = np.where(in_a_pass, 0, run.quantised) / (run.core_cycles * cores * float(BLOCK))
    moved = run.dram_read_bytes + run.dram_write_bytes
    cycles = run.dram_cycles * run.pass_bytes / np.maximum(moved, 1)
    passed = np.divide(run.quantised, cycles * BLOCK, out=np.zeros(len(cycles)), where=cycles > 0)
    each = np.ceil(behind).astype(np.int64)
    return int(max((each * cores).max(), np.ceil(passed).max()))

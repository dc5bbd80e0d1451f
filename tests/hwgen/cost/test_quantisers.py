"""How many quantisers keep up, counted by hand."""

import numpy as np

from hwgen.config import NAMED
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import Memory, fixed, run
from hwgen.cost.quantisers import needed
from hwgen.cost.results import results_of

CORE = NAMED["nvfp4-blackwell"]  # 8 x 8 outputs, 64 products deep


def ran(depths, precision="quantised", roles=None, memory=None, count=64):
    gemms = Gemms(512, 512, depths)
    readers = np.append(np.arange(1, len(gemms)), -1)
    results = results_of(CORE, gemms, roles or ["linear"] * len(gemms), gemms.n, readers, precision, "unfused")
    return run(CORE, gemms, fixed(gemms, 1, count // 8, 8), memory or Memory(1 << 24), 1.0, results)


def test_behind_a_core_as_many_as_its_shortest_sums_need():
    # 64 results in 16 steps, 8 and 2: 4, 8, 32 numbers a cycle, and a few cycles for latency.
    assert [needed(ran([depth])) for depth in (1024, 512, 128)] == [64, 64, 128]
    assert needed(ran([64])) == 64 * 4
    assert needed(ran([1024, 128, 512])) == 128
    assert needed(ran([128], count=8)) == 16
    # Logits are no operands.
    assert needed(ran([64], roles=["logits"])) == 0


def test_a_pass_needs_what_dram_can_bring():
    """BF16 in, 4.5 bits out: 2.5625 bytes a number. At 1 TB/s and 1 GHz that are 390 numbers a cycle, 24.4 blocks."""
    assert needed(ran([64], "bf16", memory=Memory(1 << 24, 1e12))) == 25
    assert needed(ran([64], "bf16", memory=Memory(1 << 24, 1e10))) == 1

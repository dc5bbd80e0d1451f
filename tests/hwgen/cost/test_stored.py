import numpy as np
import pytest

from hwgen.config import NAMED
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import Memory, fixed, run
from hwgen.cost.schedule import schedule
from hwgen.cost.stored import row_bytes, step_bytes


@pytest.mark.parametrize(("name", "step", "row"), [("multi-small", 8, 100), ("mx-multi-small", 9, 104)])
def test_rows_in_both_rates(name: str, step: int, row: int) -> None:
    """In FP4 blocks of 9 bytes; in FP8 bytes, and with scales one in each step, stored one for 32 elements."""
    core = NAMED[f"mixfp4-{name}"]
    half, k = np.array([False, True]), np.array([100, 100])
    assert step_bytes(core, half, core.a).tolist() == [9, step]
    assert row_bytes(core, half, k, core.a).tolist() == [7 * 9, row]


def test_scales_at_half_the_rate_are_read_with_each_row():
    """A byte for a row in each step enters the core; in the memory there is one for 32 elements."""
    plain, scaled = NAMED["mixfp4-multi-small"], NAMED["mixfp4-mx-multi-small"]
    gemms = Gemms([7, 7], 9, 100, half=[False, True])
    without, found = schedule(plain, gemms), schedule(scaled, gemms)
    rows = plain.rows + plain.columns
    assert (found.operand_bytes - without.operand_bytes).tolist() == [0, int(without.tiles[1]) * 13 * rows]
    memory = Memory(1 << 20)
    (one, other) = (run(core, gemms, fixed(gemms, 1, 1, 1), memory, 1.0) for core in (plain, scaled))
    assert (other.dram_read_bytes - one.dram_read_bytes).tolist() == [0, (7 + 9) * 4]
    assert (other.operand_bytes - one.operand_bytes).tolist() == [0, int(without.tiles[1]) * 13 * rows]

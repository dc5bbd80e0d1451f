"""The longest path inside of a part of a netlist."""

import numpy as np
import pytest

from hwgen.timing.analysis import analyse
from hwgen.timing.inner import longest_inside
from hwgen.timing.paths import by_block


def registers(netlist):
    return np.concatenate([group.cells for group in netlist.groups if group.cell.clock_pin is not None])


def test_the_whole_is_one_part(mac, real):
    """Then it is the longest path between registers, step by step."""
    timing = analyse(mac)
    assert longest_inside(mac, timing, [np.arange(mac.n_cells)]) == timing.paths["reg_to_reg"]


def test_a_path_that_leaves_does_not_count(mac, real):
    """Without one gate of the longest path, a part has another that is no longer; without all registers, none."""
    timing = analyse(mac)
    whole = timing.paths["reg_to_reg"]
    names = {mac.cell_name(cell): cell for cell in range(mac.n_cells)}
    everything = np.arange(mac.n_cells)
    gate = names[whole[len(whole) // 2].cell]
    other = longest_inside(mac, timing, [np.setdiff1d(everything, [gate])])
    assert other[-1].arrival <= whole[-1].arrival
    assert gate not in {names[step.cell] for step in other}
    first, last = names[whole[0].cell], names[whole[-1].cell]
    ends = longest_inside(mac, timing, [np.setdiff1d(everything, [first, last])])
    assert not {first, last} & {names[step.cell] for step in ends}
    assert longest_inside(mac, timing, [np.setdiff1d(everything, registers(mac))]) == []
    assert longest_inside(mac, timing, []) == []


def test_the_longest_of_all_parts(mac, real):
    timing = analyse(mac)
    everything = np.arange(mac.n_cells)
    whole = timing.paths["reg_to_reg"]
    parts = [everything[: mac.n_cells // 2], everything]
    assert longest_inside(mac, timing, parts) == whole
    # What is in either of two parts, but not in one, is no path inside.
    path = {mac.cell_name(cell): cell for cell in range(mac.n_cells)}
    mine = np.array(sorted({path[step.cell] for step in whole[: len(whole) // 2]}))
    rest = np.setdiff1d(everything, mine)
    inner = longest_inside(mac, timing, [mine, rest])
    assert inner != whole


def test_times_are_those_of_the_whole(mac, real):
    """Slews come from outside as well: each step is as slow as it is in the whole."""
    timing = analyse(mac)
    whole = timing.paths["reg_to_reg"]
    names = {mac.cell_name(cell): cell for cell in range(mac.n_cells)}
    own = np.array(sorted({names[step.cell] for step in whole}))
    found = longest_inside(mac, timing, [own])
    assert [step.cell for step in found] == [step.cell for step in whole]
    assert found[-1].arrival == pytest.approx(whole[-1].arrival, abs=1e-12)
    assert by_block(found) == pytest.approx(by_block(whole))

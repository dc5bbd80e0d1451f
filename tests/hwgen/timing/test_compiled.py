"""Compiled timing against `analyse`, which shares no kernel with it; what a change leaves against timing anew."""

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.timing.analysis import analyse
from hwgen.timing.compiled import compile_timing
from hwgen.timing.loads import assumptions
from hwgen.timing.wires import Wires


def drives(library):
    """Cells with the same pins and functions, flip-flops too."""
    found = {}
    for cell in library.cells.values():
        if cell.dont_use or any(pin.function is None for pin in cell.pins.values() if pin.direction == "output"):
            continue
        state = str(cell.sequential and (cell.sequential.next_state, cell.sequential.clear, cell.sequential.preset))
        functions = [(name, str(cell.pins[name].function)) for name in sorted(cell.outputs)]
        found.setdefault(str((sorted(cell.inputs), functions, state)), []).append(cell)
    return [family for family in found.values() if len(family) > 1]


def random_wires(netlist, seed=1):
    random = np.random.default_rng(seed)
    return Wires(random.uniform(0, 3, netlist.n_nets), random.uniform(0, 2, netlist.n_nets), "placed")


def same(compiled, timing, netlist):
    """Every driven net has the load, slew and arrival of `analyse`, where something arrives."""
    driven = compiled.net_of >= 0
    driven[netlist.clock_net] = False
    nets = compiled.net_of[driven]
    assert compiled.delay == pytest.approx(timing.delay, rel=1e-9)
    assert compiled.state.load[nets] == pytest.approx(timing.load[driven], rel=1e-9)
    assert compiled.state.slew[nets] == pytest.approx(timing.slew[driven], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("placed", [False, True])
def test_same_figures(mac, placed):
    wires = random_wires(mac) if placed else None
    compiled = compile_timing(mac, wires=wires)
    timing = analyse(mac, wires=wires)
    same(compiled, timing, mac)
    # Each step of each longest path arrives when it does there.
    names = {mac.net_name(net): net for net in range(mac.n_nets)}
    for kind, steps in timing.paths.items():
        if kind in ("reg_to_reg", "reg_to_out"):
            for step in steps:
                edges = compiled.state.arrival[compiled.net_of[names[step.net]]]
                assert edges.max() >= step.arrival - 1e-9 or step.arc.startswith("setup")
    assert compiled.slack(2.5).min() == pytest.approx(2.5 - timing.delay, rel=1e-9)


def test_a_change_is_followed(mac, real):
    """Cells swapped one by one, with updates, are as the netlist timed anew, and as it was once swapped back."""
    families = drives(real)
    compiled = compile_timing(mac, wires=random_wires(mac), families=families)
    before = [values.copy() for values in compiled.state]
    by_name = {cell.name: family for family in families for cell in family}
    cells = compiled.cells()
    random = np.random.default_rng(2)
    nodes = [node for node, cell in enumerate(cells) if cell.name in by_name]
    chosen = random.choice(nodes, size=min(40, len(nodes)), replace=False).tolist()
    assert chosen
    moved = 0
    for node in chosen:
        family = by_name[cells[node].name]
        visited = compiled.change(node, family[random.integers(len(family))])
        assert 1 <= visited <= len(cells)
        moved += compiled.cells()[node].name != cells[node].name
    assert moved
    after = [values.copy() for values in compiled.state]
    compiled.reload()
    for incremental, anew in zip(after, compiled.state, strict=True):
        assert incremental == pytest.approx(anew, rel=1e-9, abs=1e-12)
    assert not np.array_equal(before[3], after[3])
    for node in chosen:
        compiled.change(node, cells[node])
    for again, first in zip(compiled.state, before, strict=True):
        assert again == pytest.approx(first, rel=1e-9, abs=1e-12)


SETTINGS = {"input_slew": 0.1, "output_load": 5.0, "wire_load": 1.0, "clock_slew": 0.2}


@pytest.fixture
def twins(make, tiny):
    """Two copies of an inverter and a register; the second copy comes late and drives two ports."""
    part = make(
        {"clk": ("input", [2]), "a": ("input", [3]), "q": ("output", [5])},
        {"v": ("INV", {"A": 3, "Y": 4}), "r": ("DFF", {"CK": 2, "RN": "1", "D": 4, "Q": 5})},
    )
    cells = {
        "i": ("INV", {"A": 3, "Y": 4}),
        "first": ("part", {"clk": 2, "a": 3, "q": 5}),
        "second": ("part", {"clk": 2, "a": 4, "q": 6}),
    }
    body = make({"clk": ("input", [2]), "a": ("input", [3]), "x": ("output", [5]), "y": ("output", [6, 6])}, cells)
    return link({"t": body, "part": part}, "t", tiny)


def test_folded(twins, tiny):
    """Copies are as late as the latest, and drive what the most loaded drives."""
    assumed = assumptions(tiny, **SETTINGS)
    names = [twins.cell_name(cell) for cell in range(twins.n_cells)]
    classes = np.array([0 if name == "i" else 1 if name.endswith("v") else 2 for name in names])
    folded = compile_timing(twins, assumed, classes=classes)
    flat = analyse(twins, **SETTINGS)
    assert sorted(folded.copies.tolist()) == [0, 1, 2, 2]
    assert folded.graph.meet.sum() == 1
    assert folded.delay == pytest.approx(flat.delay, rel=1e-12)
    x, y = (int(twins.ports[name].nets[0]) for name in "xy")
    assert folded.net_of[x] == folded.net_of[y]
    # Two ports of 5 fF and two wires.
    assert folded.state.load[folded.net_of[x]].tolist() == [12.0, 12.0]
    # The input's load is that of one netlist: the inverter, one copy's pin and two wires.
    a = folded.net_of[int(twins.ports["a"].nets[0])]
    assert folded.state.load[a].tolist() == [6.0, 6.0]
    inverter = int(np.flatnonzero(folded.copies == 1)[0])
    folded.change(inverter, tiny.cells["INV"])
    assert folded.state.load[a].tolist() == [6.0, 6.0]


def test_what_cannot_be_folded(make, tiny):
    """Two inverters one behind the other would be a loop; cells of two kinds are no copies."""
    cells = {
        "u": ("INV", {"A": 2, "Y": 3}),
        "v": ("INV", {"A": 3, "Y": 4}),
        "n": ("NAND2", {"A": 4, "B": 2, "Y": 5}),
    }
    chain = link({"t": make({"a": ("input", [2]), "y": ("output", [5])}, cells)}, "t", tiny)
    numbers = {chain.cell_name(cell): cell for cell in range(3)}
    classes = np.zeros(3, dtype=np.int64)
    classes[numbers["n"]] = 1
    with pytest.raises(InputError, match="t has a combinational loop once equal cells are folded"):
        compile_timing(chain, classes=classes)
    with pytest.raises(InputError, match="of several kinds"):
        compile_timing(chain, classes=np.zeros(3, dtype=np.int64))
    with pytest.raises(InputError, match="wires of 3 nets"):
        compile_timing(chain, wires=Wires(np.zeros(3), np.zeros(3), "placed"))
    with pytest.raises(InputError, match="NAND2 has other pins than INV"):
        compile_timing(chain, families=[[tiny.cells["INV"], tiny.cells["NAND2"]]])


def test_nothing_to_time(make, tiny):
    body = make({"a": ("input", [2]), "y": ("output", ["1", 2])}, {})
    compiled = compile_timing(link({"t": body}, "t", tiny))
    assert compiled.delay == 0.0
    assert compiled.slack(3.0).min() == 3.0

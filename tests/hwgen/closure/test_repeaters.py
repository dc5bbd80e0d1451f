"""Repeaters: a placed core that computes what it did."""

from hwgen.cells import libraries, reader
from hwgen.closure.classes import classes
from hwgen.closure.repeaters import insert_repeaters
from hwgen.config import TensorCoreConfig
from hwgen.layout import lay_out, technology_of
from hwgen.measure.netlists.checks import check_core
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.netlist.fanout import TREE, tree_buffer
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing.compiled import compile_timing
from hwgen.timing.loads import assumptions


def test_a_core_with_repeaters(cache, mapped):
    """All nets of the top module are critical: it is faster, its trees by fanout are gone, and it computes the same."""
    library = reader.load(libraries.path("generic7"))
    config = TensorCoreConfig("four", "nvfp4", "nvfp4", rows=2, columns=2, groups=1, pipeline=("decoded", "terms"))
    modules = mapped(Design(config, TensorCore), Flow(library, cache))
    top = TensorCore.module_name
    netlist = link(modules, top, library)
    layout = lay_out(netlist, technology_of(library))
    folded = _folded(layout, library)
    before = [name for name in modules[top]["cells"] if name.startswith(TREE)]
    assert before

    none, places = insert_repeaters(modules, layout, folded, 1e3)
    assert not places
    assert none[top]["cells"] == modules[top]["cells"]

    more, places = insert_repeaters(modules, layout, folded, 0.01)
    assert modules[top]["cells"].keys() >= set(before)  # what was given is as it was
    names = more[top]["cells"]
    assert not [name for name in names if name.startswith(TREE)]
    assert places
    buffer = tree_buffer(library)
    assert sorted(places) == sorted(name for name in names if name.startswith("$repeater$"))
    assert all(0 <= x <= layout.die[0] and 0 <= y <= layout.die[1] for x, y in places.values())
    # Trees lead to ports, too: one of them is behind a repeater, and goes by its name there.
    made = {bit for name in places for bit in names[name]["connections"][buffer.outputs[0]]}
    outputs = {name: port["bits"] for name, port in more[top]["ports"].items() if port["direction"] == "output"}
    assert [name for name, bits in outputs.items() if not made.isdisjoint(bits)]
    assert all(more[top]["netnames"][name]["bits"] == bits for name, bits in outputs.items())
    assert modules[top]["ports"]["step__ready"]["bits"] != outputs["step__ready"]
    linked = link(more, top, library)
    assert check_core(linked, config, 1000) >= 1000
    assert linked.n_cells == netlist.n_cells - len(before) + len(places)
    # Trees are built anew from what they lead to in the end.
    placed = lay_out(linked, technology_of(library))
    again, few = insert_repeaters(more, placed, _folded(placed, library), 0.01)
    assert sorted(few) == sorted(name for name in again[top]["cells"] if name.startswith("$repeater$"))
    assert check_core(link(again, top, library), config, 1000) >= 1000


def _folded(layout, library):
    netlist = layout.netlist
    families = [family for family in library.families() if len(family) > 1]
    return compile_timing(netlist, assumptions(library), layout.wires(), classes(netlist).number, families=families)

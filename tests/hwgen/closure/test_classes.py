"""Cells of equal modules are of one class."""

from hwgen.closure.classes import classes
from hwgen.netlist.link import link


def test_classes(make, tiny):
    leaf = make(
        {"a": ("input", [2]), "y": ("output", [4])}, {"u": ("INV", {"A": 2, "Y": 3}), "v": ("INV", {"A": 3, "Y": 4})}
    )
    cells = {
        "i": ("leaf", {"a": 2, "y": 3}),
        "j": ("leaf", {"a": 3, "y": 4}),
        "u": ("INV", {"A": 4, "Y": 5}),
    }
    found = link({"t": make({"a": ("input", [2]), "y": ("output", [5])}, cells), "leaf": leaf}, "t", tiny)
    numbers, names = classes(found)
    assert sorted(names) == [("leaf", "u"), ("leaf", "v"), ("t", "u")]
    for cell in range(found.n_cells):
        path = found.cell_name(cell)
        module = "leaf" if "." in path else "t"
        assert names[numbers[cell]] == (module, path.rsplit(".", 1)[-1])

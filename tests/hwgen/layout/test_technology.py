"""Technologies: known ones by name, others scaled; every library's cells are whole numbers of sites."""

import math
from dataclasses import replace

import pytest

from hwgen.cells import libraries, reader
from hwgen.errors import InputError
from hwgen.layout.technology import TECHNOLOGIES, technology_of


def test_areas_are_whole_sites(real):
    technology = technology_of(real)
    assert technology in TECHNOLOGIES.values()
    sites = [cell.area / (technology.row_height * technology.site) for cell in real.cells.values()]
    off = [number for number in sites if abs(number - round(number)) > 0.02]
    # One cell of sg13g2 has an area of 5.979 sites in its Liberty file.
    assert len(off) <= 1


def test_generic_libraries_are_their_models():
    for name, model in (("generic7", "asap7"), ("generic130", "sky130_fd_sc_hd")):
        technology = technology_of(reader.load(libraries.path(name)))
        assert technology.name == name
        assert replace(technology, name=TECHNOLOGIES[model].name) == TECHNOLOGIES[model]


def test_unknown_library_is_scaled(tiny):
    technology = technology_of(tiny)
    # The NAND2 of 1.5 um2: twice as high as wide, four sites.
    assert technology.row_height == pytest.approx(math.sqrt(3))
    assert 4 * technology.site * technology.row_height == pytest.approx(1.5)
    assert technology.capacitance == TECHNOLOGIES["asap7"].capacitance
    assert technology.resistance == pytest.approx(TECHNOLOGIES["asap7"].resistance * 0.05832 / 1.5, rel=1e-3)
    assert "NAND2" in technology.source


def test_unknown_library_without_gates(tiny):
    bare = replace(tiny, cells={"INV": tiny.cells["INV"]})
    with pytest.raises(InputError, match="library tiny: its technology is unknown"):
        technology_of(bare)


@pytest.mark.parametrize(
    ("field", "value"),
    [("row_height", 0.0), ("site", -1.0), ("capacitance", -0.1), ("resistance", math.nan), ("detour", 0.99)],
)
def test_bad_figures(field, value):
    with pytest.raises(InputError, match=f"technology asap7: {field} = "):
        replace(TECHNOLOGIES["asap7"], **{field: value})

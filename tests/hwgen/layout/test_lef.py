"""LEF: shapes that are read, and what is wrong with others, in one line."""

import gzip

import pytest

from hwgen.errors import InputError
from hwgen.layout.lef import read_lef
from hwgen.layout.technology import TECHNOLOGIES

TECHNICAL = """
VERSION 5.7 ;
UNITS
  DATABASE MICRONS 1000 ;
END UNITS
LAYER met1
  TYPE ROUTING ;
  SPACINGTABLE PARALLELRUNLENGTH 0 WIDTH 0 0.14 ;
END met1
SITE pad
  CLASS PAD ; SIZE 1 BY 20 ;
END pad
SITE unit
  CLASS CORE ;
  SIZE 0.46 BY 2.72 ;
END unit
END LIBRARY
"""
CELLS = """
BUSBITCHARS "[]" ;
MACRO inv  # an inverter
  CLASS CORE ;
  ORIGIN 0 0 ;
  SIZE 1.38 BY 2.72 ;
  PIN A
    DIRECTION INPUT ;
    PORT
      LAYER li1 ;
        RECT 0.10 1.00 0.30 1.20 ;
        RECT MASK 2 0.30 1.00 0.50 1.60 ;
    END
  END A
  PIN Y
    PORT LAYER li1 ; POLYGON 1.0 0.5 1.2 0.5 1.2 2.1 1.0 2.1 ; END
  END Y
  PIN VPB
    DIRECTION INOUT ;
  END VPB
  OBS
    LAYER li1 ; RECT 0 0 1 1 ;
  END
END inv
MACRO tall
  SIZE 1.38 BY 5.44 ;
END tall
END LIBRARY
"""
SKY130 = TECHNOLOGIES["sky130_fd_sc_hd"]


@pytest.fixture
def write(tmp_path):
    def written(text, name="cells.lef"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return written


def test_shapes(write, tmp_path):
    packed = tmp_path / "cells.lef.gz"
    packed.write_bytes(gzip.compress(CELLS.encode()))
    for cells in (write(CELLS), packed):
        shapes = read_lef([write(TECHNICAL, "tech.lef"), cells])
        assert shapes.site == (0.46, 2.72)
        assert shapes.rows_of(TECHNOLOGIES["asap7"]).site == 0.46
        assert set(shapes.macros) == {"inv", "tall"}
        assert shapes.width("inv", SKY130) == 1.38
        assert shapes.pin("inv", "A") == pytest.approx((0.30 - 0.69, 1.30 - 1.36))
        assert shapes.pin("inv", "Y") == pytest.approx((1.1 - 0.69, 1.3 - 1.36))


def test_what_is_missing(write):
    shapes = read_lef([write(CELLS)])
    assert shapes.site is None
    assert shapes.rows_of(SKY130) is SKY130
    with pytest.raises(InputError, match="no MACRO nand"):
        shapes.width("nand", SKY130)
    with pytest.raises(InputError, match=r"MACRO tall is 5.44 um high; expected one row, 2.72"):
        shapes.width("tall", SKY130)
    with pytest.raises(InputError, match="MACRO inv has no PIN VPB with a shape"):
        shapes.pin("inv", "VPB")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no MACRO"),
        ("module top; endmodule", "ends in the midst"),
        ("MACRO", "ends in the midst of it; expected a name"),
        ("MACRO a SIZE 1 BY 2 ;", "ends in the midst of it; expected END a"),
        ("MACRO a SIZE 1 BY ; END a", "line 1: SIZE 1; expected at least 2 numbers"),
        ("MACRO a SIZE 1 BY nan ; END a", "line 1: SIZE 1 nan; expected at least 2 numbers"),
        ("MACRO a SIZE 0 BY 1 ; END a", "line 1: SIZE 0 BY 1; expected 'WIDTH BY HEIGHT'"),
        ("MACRO a\n END a", "line 2: MACRO a has no SIZE"),
        ("MACRO a\n SIZE 1 BY 1 ; END b", "line 2: END b in MACRO a; expected END a"),
        ("MACRO a SIZE 1 BY 1 ; END a MACRO a SIZE 1 BY 1 ; END a", "MACRO a is there twice"),
        ("MACRO a SIZE 1 BY 1 ; PIN x RECT 1 2 3 ; END x END a", "RECT 1 2 3; expected at least 4 numbers"),
        ("MACRO a SIZE 1 BY 1 ; PIN x END", "ends in the midst of it; expected x"),
        ("LAYER met1 TYPE ROUTING ;", "ends in the midst of it; expected END met1"),
    ],
)
def test_wrong_files(write, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read_lef([write(text)])
    assert "\n" not in str(caught.value)


def test_unreadable(tmp_path):
    with pytest.raises(InputError, match=r"none\.lef"):
        read_lef([tmp_path / "none.lef"])
    for content in (b"\xff\xfe\x00", gzip.compress(b"x" * 100)[:15]):
        (tmp_path / "bad.lef").write_bytes(content)
        with pytest.raises(InputError, match="is not a LEF file"):
            read_lef([tmp_path / "bad.lef"])

"""The package as a whole; `tests/hwgen/test_verilog.py` has the committed copies."""

import re

import pytest

from hwgen.errors import InputError
from hwgen.package import contents
from hwgen.package.constraints import Clock

FOLDER = (
    "addends.hex",
    "Makefile",
    "axis.f",
    "axis_sim.f",
    "config.mk",
    "constraint.sdc",
    "core.svg",
    "datapath.svg",
    "lint.vlt",
    "results.hex",
    "rtl.f",
    "sim.f",
    "steps.hex",
)


def names(config):
    stems = ("tb", "pkg", "structs", "axis_slice", "axis", "axis_tb")
    inside = [*FOLDER, *(f"{config.identifier}_{stem}.sv" for stem in stems)]
    return {f"{config.name}.{suffix}" for suffix in ("v", "json", "core")} | {
        f"{config.name}/{name}" for name in inside
    }


def test_files(tiny, package):
    assert {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()} == names(tiny)


def test_no_path_is_absolute(tiny, package):
    for name in names(tiny):
        text = (package / name).read_text()
        assert str(package) not in text
        assert not re.search(r"(?:^|[\s\"'=])/\w", text), name


def test_the_clock_is_all_that_depends_on_it(tiny):
    base, other = contents.texts(tiny), contents.texts(tiny, Clock(3.25, "chosen"))
    assert [name for name in base if base[name] != other[name]] == ["tiny/constraint.sdc"]


def test_something_in_the_way(tiny, tmp_path):
    (tmp_path / "tiny").write_text("in the way")
    with pytest.raises(InputError, match="cannot write"):
        contents.write(tiny, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]

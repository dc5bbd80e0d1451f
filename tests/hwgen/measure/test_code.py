"""The code that a result depends on."""

from pathlib import Path

import pytest

from hwgen.measure import code as module
from hwgen.measure.code import GATES_ALONE, NAMES_ALONE, behind, digest
from hwgen.measure.formats.table import _SEARCHING
from hwgen.measure.kept import BUILDING


def test_what_builds_is_behind_a_build_and_what_renders_is_not() -> None:
    found = behind(BUILDING)
    assert found > {
        "hwgen.closure.sizing",
        "hwgen.jit",
        "hwgen.layout.coloquinte_process",  # a process of its own: nothing imports it
        "hwgen.mapping.area",
        "hwgen.measure.search.score",
        "hwgen.measure.search.tries",
        "hwgen.report.schema",
        "hwgen.rtl.tensor_core",
        "sim.golden.quantize",
        "sim.random",
    }
    # A build knows nothing of the search that asks for it; a kept search hangs on both.
    assert behind(_SEARCHING) > {_SEARCHING, "hwgen.measure.search.selection", "hwgen.measure.search.score"}
    rooms = {"hwgen.cli", "hwgen.cost", "hwgen.package", "hwgen.report.markdown", "sim.accuracy", "sim.mutate"}
    assert not [name for name in found if any(name.startswith(room) for room in rooms)]
    assert not found & {*NAMES_ALONE, "hwgen.measure.formats.table", "hwgen.measure.power"}


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Modules of a house of three rooms."""
    written = {
        "hwgen.measure.top": "from hwgen.a import one\nfrom hwgen.report import schema\n",
        "hwgen.a": "",
        "hwgen.a.one": "from ..b import two as other\n",
        "hwgen.a.process": "def run(): return 1\n",
        "hwgen.b.two": "",
        "hwgen.report.schema": "",
        "hwgen.report.tables": "",
        "hwgen.c.four": "import hwgen.measure.top\n",
    }
    paths = {}
    for name, text in written.items():
        paths[name] = tmp_path / f"{name}.py" if name != "hwgen.a" else tmp_path / "a" / "__init__.py"
        paths[name].parent.mkdir(exist_ok=True)
        paths[name].write_text(text)
    monkeypatch.setattr(module, "_paths", lambda: paths)
    for each in (behind, digest):
        each.cache_clear()
    yield paths
    for each in (behind, digest):
        each.cache_clear()


def test_imports_are_followed_and_rooms_count_as_a_whole(texts: dict[str, Path]) -> None:
    top = {"hwgen.measure.top"}
    assert behind("hwgen.measure.top") == top | {
        *("hwgen.a", "hwgen.a.one", "hwgen.a.process", "hwgen.b.two", "hwgen.report.schema")
    }
    assert behind("hwgen.c.four") == behind("hwgen.measure.top") | {"hwgen.c.four"}


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("hwgen.b.two", "x = 1\n", False),
        ("hwgen.a.process", "def run(): return 2\n", False),
        ("hwgen.a.process", '"""Said."""\ndef run(): return 1  # too\n', True),
        ("hwgen.report.tables", "x = 1\n", True),
        ("hwgen.c.four", "x = 1\n", True),
    ],
)
def test_what_changes_a_digest(texts: dict[str, Path], name: str, text: str, same: bool) -> None:
    before = digest("hwgen.measure.top")
    texts[name].write_text(text)
    digest.cache_clear()
    assert (digest("hwgen.measure.top") == before) == same


@pytest.mark.parametrize(("gates", "same"), [("hwgen.b.two", True), ("hwgen.b", True), ("hwgen.b.tw", False)])
def test_netlists_stand_for_what_describes_gates_alone(
    texts: dict[str, Path], monkeypatch: pytest.MonkeyPatch, gates: str, same: bool
) -> None:
    monkeypatch.setattr(module, "GATES_ALONE", (gates,))
    before = [digest("hwgen.measure.top", netlists=netlists) for netlists in (True, False)]
    texts["hwgen.b.two"].write_text("x = 1\n")
    digest.cache_clear()
    after = [digest("hwgen.measure.top", netlists=netlists) for netlists in (True, False)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [same, False]


def test_what_says_what_ports_mean_is_behind_a_build() -> None:
    """Gates alone are behind it, too, where there is no netlist."""
    gates = {name for name in behind(BUILDING) if name.startswith(GATES_ALONE)}
    assert {each for each in GATES_ALONE for name in gates if name.startswith(each)} == {*GATES_ALONE}
    ports = {"hwgen.rtl.tensor_core", "hwgen.rtl.lane_array", "hwgen.rtl.hierarchy", "hwgen.rtl.decode.operand"}
    assert ports <= behind(BUILDING) - gates
    assert digest(BUILDING) != digest(BUILDING, netlists=True)

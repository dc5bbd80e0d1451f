"""The code that a result depends on."""

from pathlib import Path

import pytest

from hwgen.measure import code as module
from hwgen.measure.code import NAMES_ALONE, behind, digest
from hwgen.measure.kept import BUILDING


def test_what_builds_is_behind_a_build_and_what_renders_is_not() -> None:
    found = behind(BUILDING)
    assert found > {
        "hwgen.closure.sizing",
        "hwgen.jit",
        "hwgen.layout.coloquinte_process",  # a process of its own: nothing imports it
        "hwgen.mapping.area",
        "hwgen.measure.reach",
        "hwgen.measure.selection",
        "hwgen.report.schema",
        "hwgen.rtl.tensor_core",
        "sim.golden.quantize",
        "sim.random",
    }
    rooms = {"hwgen.cli", "hwgen.cost", "hwgen.package", "hwgen.report.markdown", "sim.accuracy", "sim.mutate"}
    assert not [name for name in found if any(name.startswith(room) for room in rooms)]
    assert not found & {*NAMES_ALONE, "hwgen.measure.formats", "hwgen.measure.power"}


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

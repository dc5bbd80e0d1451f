"""The harness: which mutants it takes, and that its notes and its report are about the sources as they are."""

import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

_SPEC = importlib.util.spec_from_file_location("mutation_figures", Path(__file__).with_name("figures.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
figures = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = figures  # dataclasses look for it there
_SPEC.loader.exec_module(figures)


def test_every_file_that_computes_figures_has_its_tests() -> None:
    rooms = ("hwgen/cells", "hwgen/timing", "hwgen/power", "hwgen/cost")
    there = {str(path.relative_to(figures.ROOT)) for room in rooms for path in (figures.ROOT / room).glob("*.py")}
    # The grammar of Liberty files: what it reads wrongly has no figure.
    there -= {f"{room}/__init__.py" for room in rooms} | {"hwgen/cells/liberty.py"}
    assert set(figures.SUITES) == there | {
        "hwgen/measure/quantisers/table.py",
        "hwgen/stats.py",
        "sim/golden/quantize.py",
    }
    for file, tests in figures.SUITES.items():
        assert (figures.ROOT / file).is_file()
        assert all((figures.ROOT / name).is_file() for name in tests)


def _is_there(file: str, text: str) -> bool:
    """Whether a file has these lines, one after the other."""
    lines = [line.strip() for line in (figures.ROOT / file).read_text(encoding="utf-8").splitlines()]
    wanted = text.splitlines()
    return any(lines[at : at + len(wanted)] == wanted for at in range(len(lines)))


@pytest.mark.parametrize("note", figures.notes(), ids=lambda note: f"{note.file}:{note.function}:{note.after[:30]}")
def test_a_note_is_about_lines_that_are_there(note) -> None:
    assert _is_there(note.file, note.before)
    assert note.before != note.after
    assert len(note.reason) > 20


def test_the_report_is_what_the_tool_said() -> None:
    report = json.loads(figures.REPORT.read_text(encoding="utf-8"))
    assert report["conditions"]["mutants"] == sum(report["outcomes"].values()) == figures.COUNT
    assert report["outcomes"]["survived"] == 0
    for name, count in report["outcomes"].items():
        assert count == sum(each[name] for each in report["by_file"].values())
    assert figures.REPORT.with_suffix(".md").read_text(encoding="utf-8") == figures.markdown(report)
    reasons = {(note.file, note.function, note.before, note.after): note.reason for note in figures.notes()}
    for mutant in report["not_killed"]:
        where = tuple(mutant[name] for name in ("file", "function", "before", "after"))
        # The report is of the code of its day: lines that were replaced since have no note any more.
        if _is_there(mutant["file"], mutant["before"]):
            assert mutant["reason"] == reasons[where]


@dataclass
class _Mutation:
    module_path: str
    start_pos: tuple[int, int]
    operator_name: str = "core/NumberReplacer"
    operator_args: dict = field(default_factory=dict)
    definition_name: str | None = "f"
    occurrence: int = 0


def _items(file: str, places: list[tuple[int, int]]) -> list[SimpleNamespace]:
    return [SimpleNamespace(mutations=(_Mutation(file, at, occurrence=n),)) for n, at in enumerate(places)]


def _places(text: str, wanted: str) -> list[int]:
    return [place for place, character in enumerate(text) if character == wanted]


def test_annotations_are_left_out() -> None:
    source = "x: int | None = 1 | 2\ndef f(a: int | str = 3 | 4) -> A | B:\n    pass\n"
    spans = figures.annotations(source)
    bars = [(line, column) for line, text in enumerate(source.splitlines(), 1) for column in _places(text, "|")]
    inside = [any(first <= bar < last for first, last in spans) for bar in bars]
    assert inside == [True, False, True, False, True]


def test_the_sample_stays_where_the_code_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    lines = [f"x{number} = {number} + {number}" for number in range(200)]
    (tmp_path / "a.py").write_text("\n".join(lines) + "\n")

    def chosen(shift: int, seed: int = 1) -> set[str]:
        places = [(number + 1 + shift, 5) for number in range(200)]
        found, available = figures.sampled(_items("a.py", places), 20, seed)
        assert available == 200
        text = (tmp_path / "a.py").read_text().splitlines()
        return {text[item.mutations[0].start_pos[0] - 1] for item in found["a.py"]}

    first = chosen(0)
    assert len(first) == 20
    assert chosen(0, seed=2) != first
    (tmp_path / "a.py").write_text("\n".join(["# something else", "", *lines]) + "\n")
    assert chosen(2) == first


def test_a_survivor_is_equivalent_only_with_a_note() -> None:
    diff = "--- mutation diff ---\n--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n def f():\n"
    diff += "-    return 1 + 2\n+    return 1 - 2\n"
    item = SimpleNamespace(mutations=(_Mutation("f.py", (2, 13), "core/ReplaceBinaryOperator_Add_Sub"),))
    note = figures.Note("f.py", "f", "return 1 + 2", "return 1 - 2", "no figure depends on it")

    def outcome(killed: bool, notes: list, output: str = "1 failed, 3 passed") -> str:
        result = SimpleNamespace(diff=diff, is_killed=killed, output=output)
        return figures.judged(item, result, notes).outcome

    assert outcome(False, [note]) == "equivalent"
    assert outcome(True, [note]) == "killed"
    assert outcome(True, [], "timeout") == outcome(True, [], "...") == "stopped"
    assert outcome(False, []) == "survived"
    other = figures.Note("f.py", "g", "return 1 + 2", "return 1 - 2", "another function")
    assert outcome(False, [other]) == "survived"


def test_a_report_names_what_survived() -> None:
    mutant = figures.Mutant("f.py", 2, "f", "NumberReplacer(offset=1)", "x = 1", "x = 2", "survived")
    report = figures.document([mutant], 10, 3)
    assert report["outcomes"] == {"killed": 0, "stopped": 0, "equivalent": 0, "survived": 1}
    text = figures.markdown(report)
    assert "`f.py`, line 2, `f`" in text
    assert "- x = 1\n+ x = 2" in text

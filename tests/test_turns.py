"""Slow tests take turns: each is in one part of the suite, quick ones are in all."""

import json
from types import SimpleNamespace

import pytest


class Item:
    """Of a test what a choice among tests looks at."""

    def __init__(self, nodeid: str, **marks: tuple[int, ...]) -> None:
        self.nodeid = nodeid
        self.marks = marks

    def get_closest_marker(self, name: str) -> SimpleNamespace | None:
        return SimpleNamespace(args=self.marks[name]) if name in self.marks else None


@pytest.fixture
def conftest(request):
    """The conftest of all tests."""
    names = request.config.pluginmanager.list_name_plugin()
    (found,) = [plugin for name, plugin in names if name == str(request.config.rootpath / "tests/conftest.py")]
    return found


@pytest.fixture
def left(conftest, tmp_path, monkeypatch):
    """Which of some tests are run, by turn."""
    monkeypatch.setattr(conftest, "SECONDS", tmp_path / "seconds.json")
    seconds = {"cases": {"a.py::slow": 1.0, "c.py::slow": 2.0}, "fixtures": {"b.py": 30}}
    conftest.SECONDS.write_text(json.dumps(seconds))
    items = [Item("a.py::quick"), *(Item(f"a.py::slow[{i}]") for i in range(20))]
    items += [*(Item(f"b.py::test_{i}") for i in range(3)), Item("c.py::slow"), Item("a.py::marked", in_full=())]
    items += [Item(f"d.py::sampled[{i}]", sampled=(4,)) for i in range(8)]

    def run(turn: int | None, all_cases: bool = False) -> list[str]:
        kept, config = list(items), SimpleNamespace(option=SimpleNamespace(turn=turn, all_cases=all_cases))
        config.hook = SimpleNamespace(pytest_deselected=lambda items: None)
        conftest.pytest_collection_modifyitems(config, kept)
        return [item.nodeid for item in kept]

    return run


QUICK = ["a.py::quick", "d.py::sampled[0]", "d.py::sampled[4]"]


def test_each_slow_one_has_one_turn(left, conftest):
    parts = [left(turn) for turn in range(conftest.TURNS)]
    slow = [name for part in parts for name in part if name not in QUICK]
    assert all(set(QUICK) <= set(part) for part in parts)
    assert len(slow) == len(set(slow)) == 24
    assert sorted(slow) == sorted(set(left(None)) - set(QUICK))
    # Cases of one test are spread over turns; the tests of a file with slow fixtures are not.
    assert all(any("a.py::slow" in name for name in part) for part in parts)
    assert [sum("b.py" in name for name in part) for part in parts].count(3) == 1


def test_all_cases_are_all(left):
    assert len(left(None, all_cases=True)) == len(left(3, all_cases=True)) == 34


def test_what_is_slow_is_there(conftest):
    """A test that is gone has no turn."""
    seconds = json.loads(conftest.SECONDS.read_text("utf-8"))
    root = conftest.SECONDS.parents[1]
    for name in [*seconds["cases"], *seconds["fixtures"]]:
        file, _, test = name.partition("::")
        assert f"def {test}" in (root / file).read_text("utf-8"), f"{name}: make test-all ARGS=--note-seconds"

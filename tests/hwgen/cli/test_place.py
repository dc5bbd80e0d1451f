"""`hwgen place` refuses in one line, before any work."""

import pytest


@pytest.fixture
def no_synthesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwgen.measure.netlists.placement.placed", None)


def test_refused(refused, no_synthesis: None, tmp_path) -> None:
    assert "unknown configuration 'nvfp4-smal'" in refused("place", "--config", "nvfp4-smal")
    assert "no MACRO" in refused("place", "--lef", _written(tmp_path / "empty.lef", "VERSION 5.7 ;"))
    assert "none.lef" in refused("place", "--lef", "none.lef")
    assert "leave one of them out" in refused("place", "--library", "generic7", "--liberty", "x.lib")
    for value in ("0", "0.0001", "1.5"):
        assert f"--utilisation {value}: must be a share from 0.05 to 1" in refused("place", "--utilisation", value)
    assert "--picture 'core.txt': must end in .png" in refused("place", "--picture", "core.txt")
    assert "'plain' is not a directory" in refused("place", "--picture", f"{_written(tmp_path / 'plain', '')}/x.png")


def test_a_placer_that_is_not_there_is_refused_before_any_work(refused, no_synthesis: None, monkeypatch) -> None:
    monkeypatch.setattr("hwgen.layout.coloquinte.is_installed", lambda: False)
    monkeypatch.setattr("hwgen.measure.netlists.flow.Flow.synthesise", None)
    for command in ("place", "compare", "formats"):
        assert "--placer coloquinte: is not installed" in refused(command, "--placer", "coloquinte")
    assert "--placer other: must be one of embedded, coloquinte" in refused("place", "--placer", "other")


def test_a_library_of_which_nothing_is_left(refused) -> None:
    assert "no rising-edge D flip-flop" in refused("place", "--dont-use", "*")


def _written(path, text: str) -> str:
    path.write_text(text)
    return path.name

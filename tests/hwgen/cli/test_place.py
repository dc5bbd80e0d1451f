"""`hwgen place` refuses in one line, before any work."""

import pytest


@pytest.fixture
def no_synthesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwgen.measure.placement.placed", None)


def test_refused(refused, no_synthesis: None, tmp_path) -> None:
    assert "unknown configuration 'nvfp4-smal'" in refused("place", "--config", "nvfp4-smal")
    assert "no MACRO" in refused("place", "--lef", _written(tmp_path / "empty.lef", "VERSION 5.7 ;"))
    assert "none.lef" in refused("place", "--lef", "none.lef")
    assert "leave one of them out" in refused("place", "--library", "generic7", "--liberty", "x.lib")
    assert "--utilisation" in refused("place", "--utilisation", "1.5")
    assert "'plain' is not a directory" in refused("place", "--picture", f"{_written(tmp_path / 'plain', '')}/x.png")


def _written(path, text: str) -> str:
    path.write_text(text)
    return path.name

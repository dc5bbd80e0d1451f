import os
from pathlib import Path

import pytest

from hwgen.errors import InputError
from hwgen.files import cache_directory, write_text


def test_a_file_is_written_with_its_directories(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b; c.txt"
    write_text(path, "ä\n")
    write_text(path, "second\n")
    assert path.read_text(encoding="utf-8") == "second\n"
    assert os.listdir(path.parent) == [path.name]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.txt"
    write_text(path, "old\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match=r"cannot write '.*kept\.txt': No space left on device"):
        write_text(path, "new\n")
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == [path.name]


def test_a_file_in_the_way_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_text(tmp_path / "file" / "x.txt", "")


def test_the_cache_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
    assert cache_directory("synthesis") == Path("/some/where/hwgen/synthesis")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory("engines") == Path.home() / ".cache/hwgen/engines"


def test_without_a_home_there_is_no_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", homeless)
    assert cache_directory("synthesis") is None

import errno
import os
import tempfile
from pathlib import Path

import pytest

from hwgen.errors import InputError, StorageError
from hwgen.files import cache_directory, check_directory, check_file, place_for, write_text


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
    with pytest.raises(StorageError, match=r"cannot write '.*kept\.txt': No space left on device"):
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


def test_a_place_is_checked_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_directory(tmp_path / "a" / "b")
    check_file(tmp_path / "a" / "b.txt")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file' is not a directory"):
        check_directory(tmp_path / "file" / "b")
    with pytest.raises(InputError, match="is a directory"):
        check_file(tmp_path)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    # Permissions do not tell of a file system that takes no files.
    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(InputError, match=r"cannot write '.*out': Read-only file system"):
        check_directory(tmp_path / "out")


def test_a_place_for_a_file_that_is_written_by_others(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.txt"
    with place_for(path) as place:
        place.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    with pytest.raises(UnicodeEncodeError), place_for(path) as place:
        place.write_text("half \ud800", "utf-8")
    assert path.read_text() == "whole"
    assert os.listdir(path.parent) == [path.name]
    with pytest.raises(StorageError, match="No space left"), place_for(path):
        raise OSError(errno.ENOSPC, "No space left on device")

"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hwgen.errors import InputError, StorageError

__all__ = [
    "OF_THE_MACHINE",
    "cache_directory",
    "check_directory",
    "check_file",
    "place_for",
    "unwritten",
    "write_all",
    "write_bytes",
    "write_text",
]

OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors of a write that no other path would mend."""


def cache_directory(name: str) -> Path | None:
    """``hwgen/NAME`` in the user's cache directory (XDG Base Directory Specification); None without a home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "hwgen" / name
    except RuntimeError:
        return None


def unwritten(path: Path | str | None, error: OSError) -> InputError | StorageError:
    """What to raise where a file cannot be written: whose fault it is decides on the exit status."""
    kind = StorageError if error.errno in OF_THE_MACHINE else InputError
    return kind(f"cannot write {str(path)!r}: {error.strerror}")


def check_directory(path: Path) -> None:
    """Check that files can be written to a directory, which need not be there yet; before long work.

    Raises
    ------
    InputError
        Something that is no directory is in the way, or it may not be written to.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise InputError(f"cannot write to {str(path)!r}: {error.strerror}") from None
    nearest = Path(path)
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise InputError(f"cannot write to {str(path)!r}: {str(nearest)!r} is not a directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {str(path)!r}: no permission for {str(nearest)!r}")
    try:
        # Permissions do not tell all: a superuser has them in a file system that takes no files.
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise unwritten(path, error) from None


def check_file(path: Path) -> None:
    """Check that a file can be written, or written anew; before long work.

    Raises
    ------
    InputError
        It is a directory, or as from `check_directory`.
    """
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: is a directory")
    check_directory(path.parent)


@contextmanager
def place_for(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; renamed to ``path`` at the end, removed where that is not reached.

    Raises
    ------
    InputError, StorageError
        The file cannot be written.
    """
    temporary = path.parent / f".{secrets.token_hex(8)}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise unwritten(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write files beside their places, and rename them only when all are written.

    Raises
    ------
    InputError, StorageError
        A file cannot be written; nothing new is left behind.
    """
    temporaries: dict[Path, Path] = {}
    path = None
    try:
        for path, content in files.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            path.parent.mkdir(parents=True, exist_ok=True)
            # Known before it is there, so that a run that is ended in between leaves nothing behind.
            temporaries[path] = path.parent / f".{secrets.token_hex(8)}.partial"
            with open(temporaries[path], "xb") as file:
                file.write(content)
        for path in files:
            os.replace(temporaries[path], path)
            del temporaries[path]
    except OSError as error:
        raise unwritten(path, error) from None
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write one file; see `write_all`."""
    write_all({Path(path): content})


def write_text(path: Path, content: str) -> None:
    """Write ``content`` as UTF-8; see `write_all`."""
    write_bytes(path, content.encode("utf-8"))

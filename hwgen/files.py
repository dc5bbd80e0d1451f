"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from hwgen.errors import InputError

__all__ = ["cache_directory", "check_directory", "write_all", "write_bytes", "write_text"]


def cache_directory(name: str) -> Path | None:
    """``hwgen/NAME`` in the user's cache directory (XDG Base Directory Specification); None without a home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "hwgen" / name
    except RuntimeError:
        return None


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


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write files beside their places, and rename them only when all are written.

    Raises
    ------
    InputError
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
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write one file; see `write_all`."""
    write_all({Path(path): content})


def write_text(path: Path, content: str) -> None:
    """Write ``content`` as UTF-8; see `write_all`."""
    write_bytes(path, content.encode("utf-8"))

"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hwgen.errors import InputError

__all__ = ["check_directory", "write_bytes", "write_text"]


def check_directory(path: Path) -> None:
    """Check that files can be written to a directory, which need not be there yet; before long work.

    Raises
    ------
    InputError
        Something that is no directory is in the way, or it may not be written to.
    """
    nearest = Path(path)
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise InputError(f"cannot write to {str(path)!r}: {str(nearest)!r} is not a directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {str(path)!r}: no permission for {str(nearest)!r}")


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and rename it into place.

    Raises
    ------
    InputError
        The file cannot be written; nothing is left behind.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # mkstemp is private to the user; a result is as readable as any new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None


def write_text(path: Path, content: str) -> None:
    """Write ``content`` as UTF-8; see `write_bytes`."""
    write_bytes(path, content.encode("utf-8"))

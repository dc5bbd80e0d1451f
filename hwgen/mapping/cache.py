"""Synthesis results, kept by the content of everything that went into them.

An entry is written beside and renamed, so a run that is ended at any moment leaves whole entries only, and two
runs at once at worst do the same work twice. Each entry carries the digest of its own text; one that does not
match is dropped and made anew.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from hwgen.errors import InputError, StorageError
from hwgen.files import write_bytes

__all__ = ["Cache"]


class Cache:
    """Mapped modules by key.

    Parameters
    ----------
    directory
        Where the entries are; None keeps nothing. If it cannot be written to, nothing is kept either.
    """

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    def _path(self, key: str) -> Path | None:
        return None if self.directory is None else self.directory / key[:2] / f"{key}.json.gz"

    def get(self, key: str) -> dict[str, Any] | None:
        """The entry of ``key``, or None if there is none or it is damaged."""
        path = self._path(key)
        if path is None:
            return None
        try:
            digest, _, text = gzip.decompress(path.read_bytes()).partition(b"\n")
        except (OSError, EOFError, zlib.error):
            return None
        if hashlib.sha256(text).hexdigest().encode() != digest:
            return None
        return json.loads(text)

    def put(self, key: str, body: dict[str, Any]) -> None:
        """Keep ``body`` as the entry of ``key``."""
        path = self._path(key)
        if path is None:
            return
        text = json.dumps(body, separators=(",", ":")).encode()
        entry = hashlib.sha256(text).hexdigest().encode() + b"\n" + text
        # A cache that cannot be written to costs time, never a result.
        with contextlib.suppress(InputError, StorageError):
            write_bytes(path, gzip.compress(entry, compresslevel=4, mtime=0))

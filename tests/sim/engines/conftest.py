"""Engines, made once per configuration."""

import functools

import pytest

from sim.engines import AmaranthEngine, CompiledEngine, available


@pytest.fixture(scope="session")
def compiled():
    """The compiled engine of a configuration."""
    if not available():
        pytest.skip("no C++ compiler: set CXX, or put c++, g++ or clang++ on PATH")
    return functools.cache(CompiledEngine)


@pytest.fixture(scope="session")
def python():
    """The Python engine of a configuration."""
    return functools.cache(AmaranthEngine)

"""Engines, made once per configuration."""

import functools
import itertools

import numpy as np
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


@pytest.fixture(scope="session")
def covering():
    """24 choices of 11 things: every three of these occur in all eight combinations; in the first twelve every two do.

    An orthogonal array from the squares modulo 11, as Paley's Hadamard matrices are, and its complement.
    """
    squares = {n * n % 11 for n in range(1, 11)}
    half = [[(column - row) % 11 in squares for column in range(11)] for row in range(11)] + [[True] * 11]
    choices = np.array(half + [[not there for there in row] for row in half])
    for rows, strength in ((choices[:12], 2), (choices, 3)):
        for columns in itertools.combinations(range(11), strength):
            assert len(np.unique(rows[:, columns], axis=0)) == 2**strength
    return choices

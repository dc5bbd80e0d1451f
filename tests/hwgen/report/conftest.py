from pathlib import Path

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.report.flow import Flow
from hwgen.report.measure import Overhead, Stimulus, measure
from hwgen.synth import libraries, library
from hwgen.synth.yosys import RECIPES


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where measurements of one and the same core find its syntheses."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def overhead(cache: Path) -> Overhead:
    """A measurement of the smallest pair of cores."""
    pair = [TensorCoreConfig(f"{name}-single", name, rows=1, columns=1, groups=1) for name in ("nvfp4", "mixfp4")]
    cells = library.load(libraries.path("generic7"))
    return measure(
        *pair,
        Flow(cells, cache),
        [RECIPES["area"]],
        stimulus=Stimulus(streams=16, tiles=2, steps_per_tile=8),
        runs=6,
        vectors=2000,
    )

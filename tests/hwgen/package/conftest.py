"""Packages that all tests of this folder share."""

import shutil
from dataclasses import replace

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.package import contents

# Two tiles take turns; one row of A and two of B, so that no test passes with both confused.
TINY = TensorCoreConfig("tiny", "mixfp4", "mixfp4", rows=1, columns=2, groups=1, pipeline=("terms", "aligned"))

SLOTTED = replace(TINY, name="slotted", slot="split")


@pytest.fixture(scope="session")
def tiny():
    return TINY


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """Directory with the package of the tiny core."""
    directory = tmp_path_factory.mktemp("package")
    contents.write(TINY, directory)
    return directory


@pytest.fixture(scope="session")
def slotted(tmp_path_factory):
    """Directory with the package of a core that has steps at half the rate, too."""
    directory = tmp_path_factory.mktemp("slotted")
    contents.write(SLOTTED, directory)
    return directory


@pytest.fixture
def tool():
    """Where a program is; a test that needs one that is not installed is skipped."""

    def find(name):
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed")
        return path

    return find

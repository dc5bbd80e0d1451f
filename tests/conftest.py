import os

import pytest
from hypothesis import Phase, settings
from xdist.scheduler import LoadScopeScheduling

# Of a mutant, only whether a test fails is asked, not by which smallest example; the same examples for each.
settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], derandomize=True, database=None)
if "HWGEN_MAPPED" in os.environ:
    settings.load_profile("mutants")


class FixturesMadeOnce(LoadScopeScheduling):
    """Tests that share fixtures which take long are for one worker: those of a file, and all measurements."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return "measurements" if file.startswith(("tests/hwgen/measure/", "tests/hwgen/report/")) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FixturesMadeOnce(config, log)

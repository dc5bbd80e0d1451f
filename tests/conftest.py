import pytest
from xdist.scheduler import LoadScopeScheduling


class FixturesMadeOnce(LoadScopeScheduling):
    """Tests that share fixtures which take long are for one worker: those of a file, and all measurements."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return "measurements" if file.startswith(("tests/hwgen/measure/", "tests/hwgen/report/")) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FixturesMadeOnce(config, log)

import gc
import json
import os
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from xdist.scheduler import LoadScopeScheduling

# Of a mutant, only whether a test fails is asked, not by which smallest example; the same examples for each.
settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], derandomize=True, database=None)
if "HWGEN_MAPPED" in os.environ:
    settings.load_profile("mutants")

# Netlists and elaborated designs are many objects that stay: to look through all of them again and again for cyclic
# garbage takes a third of an elaboration.
gc.set_threshold(100_000, 20, 20)

# Seconds that each case of a test takes, and the fixtures of a file; written by --note-seconds.
SECONDS = Path(__file__).parent / "seconds.json"
SLOW_CASE, SLOW_FIXTURES = 0.5, 20
TURNS = 12

# These share a measurement.
TOGETHER = ("tests/hwgen/measure/test_overhead.py", "tests/hwgen/report/markdown/test_overhead.py")


def file_of(nodeid):
    file = nodeid.partition("::")[0]
    return TOGETHER[0] if file in TOGETHER else file


def test_of(nodeid):
    return nodeid.partition("[")[0]


class FixturesMadeOnce(LoadScopeScheduling):
    """Tests that share fixtures which take long are for one worker. The longest come first.

    So no worker is left alone with a long one at the end. On a fresh checkout the first measurement compiles all
    kernels, and a second one waits until that is done.
    """

    def __init__(self, config, log):
        super().__init__(config, log)
        self.seconds = json.loads(SECONDS.read_text("utf-8"))

    def _split_scope(self, nodeid):
        return file_of(nodeid)

    def _length(self, file):
        tests = (test_of(nodeid) for nodeid in self.workqueue[file])
        return self.seconds["fixtures"].get(file, 0) + sum(self.seconds["cases"].get(test, 0) for test in tests)

    def _assign_work_unit(self, node):
        self.workqueue.move_to_end(max(self.workqueue, key=self._length), last=False)
        super()._assign_work_unit(node)


class SecondsNoted:
    """Writes `SECONDS` at the end of a run."""

    def __init__(self):
        self.cases, self.calls, self.fixtures = Counter(), Counter(), Counter()

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.cases[test_of(report.nodeid)] += 1
            self.calls[test_of(report.nodeid)] += report.duration
        elif report.when == "setup":
            self.fixtures[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self):
        means = {test: seconds / self.cases[test] for test, seconds in self.calls.items()}
        slow = {
            "cases": {test: round(means[test], 1) for test in sorted(means) if means[test] >= SLOW_CASE},
            "fixtures": {file: round(s) for file, s in sorted(self.fixtures.items()) if s >= SLOW_FIXTURES},
        }
        SECONDS.write_text(json.dumps(slow, indent=1) + "\n", "utf-8")


def pytest_addoption(parser):
    parser.addoption("--all-cases", action="store_true", help="run what is slow, sampled or in_full, too")
    parser.addoption("--turn", type=int, help=f"which of {TURNS} parts of the slow tests to run, from 0 on")
    parser.addoption("--note-seconds", action="store_true", help=f"write {SECONDS.name}; with --all-cases")


def pytest_configure(config):
    if hasattr(config, "workerinput"):  # a worker may not see another day than the others
        config.option.turn = config.workerinput["turn"]
        return
    if config.option.turn is None and config.args_source is config.ArgsSource.TESTPATHS:
        config.option.turn = date.today().toordinal() % TURNS
    if config.option.note_seconds:
        config.pluginmanager.register(SecondsNoted())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["turn"] = node.config.option.turn


def pytest_report_header(config):
    if config.option.turn is None or config.option.all_cases:
        return None
    return f"slow tests: part {config.option.turn} of {TURNS} (--turn {config.option.turn}), all by --all-cases"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what takes long, unless it is asked for with ``--all-cases``.

    Of a test marked ``sampled(n)`` every n-th case is left, the first among them, and of one marked ``in_full`` none.
    Where the whole suite is run, slow cases and files with slow fixtures take turns besides: each day others run.
    """
    if config.option.all_cases:
        return
    seconds = json.loads(SECONDS.read_text("utf-8"))
    met, turns, kept, left_out = Counter(), {}, [], []
    for item in items:
        mark = item.get_closest_marker("sampled")
        test, file = test_of(item.nodeid), file_of(item.nodeid)
        out = item.get_closest_marker("in_full") or (mark is not None and met[test] % mark.args[0])
        met[test] += 1
        if not out and config.option.turn is not None and (file in seconds["fixtures"] or test in seconds["cases"]):
            whole = file if file in seconds["fixtures"] else item.nodeid
            out = turns.setdefault(whole, len(turns) % TURNS) != config.option.turn
        (left_out if out else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FixturesMadeOnce(config, log)

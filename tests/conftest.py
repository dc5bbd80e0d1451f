import gc
import os
from collections import Counter

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


# What takes long comes first, so that no worker is left alone with it at the end; the longest before all others. On a
# fresh checkout the first measurement compiles all kernels. A second one waits until that is done.
LONGEST = (
    "a measurement",
    "tests/hwgen/test_verilog.py",
    "tests/sim/engines/test_half_rate.py",
    "tests/sim/engines/test_random.py",
    "tests/sim/engines/test_corners.py",
    "tests/sim/engines/test_exact.py",
    "tests/hwgen/measure/test_at_clock.py",
    "tests/hwgen/measure/test_explore.py",
    "tests/hwgen/measure/test_placement.py",
    "tests/hwgen/rtl/test_stream_proof.py",
    "tests/hwgen/rtl/accumulate/test_stepwise_proof.py",
    "tests/hwgen/rtl/test_dot_proof.py",
    "tests/hwgen/closure/test_close.py",
    "tests/sim/engines/test_pipelines.py",
    "tests/hwgen/rtl/test_dot.py",
    "tests/hwgen/rtl/test_tensor_core.py",
    "tests/hwgen/formats/test_new_format.py",
    "tests/hwgen/test_cli.py",
    "tests/hwgen/rtl/decode/test_operand.py",
    "tests/hwgen/measure/test_power.py",
    "tests/hwgen/measure/test_kept.py",
    "tests/hwgen/measure/test_clock.py",
    "tests/sim/engines/test_formats.py",
    "tests/sim/engines/test_streams.py",
    "tests/hwgen/rtl/accumulate/test_round_sum.py",
    "tests/hwgen/rtl/accumulate/test_stepwise.py",
    "tests/hwgen/measure/test_export.py",
    "tests/robustness/test_kill.py",
    "tests/robustness/test_fuzz.py",
    "tests/hwgen/layout/test_layout.py",
    "tests/test_distribution.py",
)


class FixturesMadeOnce(LoadScopeScheduling):
    """Tests that share fixtures which take long are for one worker: those of a file, and all of one measurement."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        shared = ("tests/hwgen/measure/test_overhead.py", "tests/hwgen/report/markdown/test_overhead.py")
        return "a measurement" if file in shared else file

    def _assign_work_unit(self, node):
        waiting = min(self.workqueue, key=lambda scope: LONGEST.index(scope) if scope in LONGEST else len(LONGEST))
        self.workqueue.move_to_end(waiting, last=False)
        super()._assign_work_unit(node)


def pytest_addoption(parser):
    parser.addoption("--all-cases", action="store_true", help="run what is marked as sampled or in_full, too")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Of a test marked ``sampled(n)`` run every n-th case, the first among them, and of one marked ``in_full`` none.

    With ``--all-cases`` run all of them.
    """
    if config.getoption("all_cases"):
        return
    met, kept, left_out = Counter(), [], []
    for item in items:
        mark = item.get_closest_marker("sampled")
        test = item.nodeid.partition("[")[0]
        out = item.get_closest_marker("in_full") or (mark is not None and met[test] % mark.args[0])
        (left_out if out else kept).append(item)
        met[test] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FixturesMadeOnce(config, log)

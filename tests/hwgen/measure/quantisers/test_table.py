"""What quantisers take, from the figures of their runs; and recipes to meet a clock."""

from types import SimpleNamespace

import pytest

from hwgen.config import NAMED
from hwgen.config.quantiser import QUANTISERS
from hwgen.errors import InputError
from hwgen.measure.quantisers import table
from hwgen.measure.requests import QuantiserRequest
from hwgen.measure.workloads.cores import Conditions, find, measured
from hwgen.power.consumption import DYNAMIC, Consumption
from hwgen.report import schema
from hwgen.report.shipped import shipped

BASELINE, CANDIDATE = QUANTISERS["nvfp4-quantiser"], QUANTISERS["mixfp4-quantiser"]
CORE = NAMED["nvfp4-blackwell"]


def request(**fields):
    return QuantiserRequest(BASELINE, (CANDIDATE,), 1.0, cores=(CORE,), **fields)


def run(areas, delay=0.9, dynamic=160.0, leakage=32.0):
    kinds = dict.fromkeys(DYNAMIC, 0.0) | {DYNAMIC[0]: dynamic}
    return table._Run(areas, delay, 100.0, 1000, Consumption({"numbers": kinds}, {"numbers": leakage}), 3200)


def test_shares_of_a_core():
    """A tile of 8 x 8 results in each step of 64 products takes four quantisers; with longer sums one is enough.

    Eight rows of 64 numbers that a step reads take 32.
    """
    measured = SimpleNamespace(cores={CORE.name: SimpleNamespace(area_um2=50_000.0)}, path=SimpleNamespace(name="a"))
    found = table._shares(request(), {BASELINE.name: 1000.0, CANDIDATE.name: 2500.0}, [measured])
    told = {(each.quantiser, each.k): (each.results, each.quantisers, each.share, each.more) for each in found}
    assert told == {
        (BASELINE.name, 64): (64, 4, 0.08, 0),
        (CANDIDATE.name, 64): (64, 4, 0.2, 0.12),
        (BASELINE.name, 1024): (4, 1, 0.02, 0),
        (CANDIDATE.name, 1024): (4, 1, 0.05, 0.03),
        (BASELINE.name, 4096): (1, 1, 0.02, 0),
        (CANDIDATE.name, 4096): (1, 1, 0.05, 0.03),
        (BASELINE.name, None): (512, 32, 0.64, 0),
        (CANDIDATE.name, None): (512, 32, 1.6, 0.96),
    }


def test_figures_of_runs():
    runs = {
        BASELINE.name: [run({"numbers": 800.0}), run({"numbers": 1000.0})],
        CANDIDATE.name: [run({"numbers": 1500.0, "choice": 300.0}, 1.0, 320.0)] * 2,
    }
    found = {(each.metric, each.block): each.record() for each in table._figures(runs, 2.0)}
    assert found["area", "total"].values == {BASELINE.name: 900.0, CANDIDATE.name: 1800.0}
    assert found["area", "total"].overhead.value == 1
    assert found["area", "choice"].overhead is None
    assert found["area", "choice"].contribution.value == pytest.approx(1 / 3)
    assert found["critical path", "total"].values[CANDIDATE.name] == 1.0
    # 160 fJ in a cycle, and 32 nW in 2 ns, of 16 numbers.
    assert found["energy per number", "total"].values[BASELINE.name] == pytest.approx(10 + 0.064 / 16)
    assert found["sequential area", "total"].values[BASELINE.name] == 100
    assert found["cells", "total"].unit == "cells"


def test_one_name_twice():
    both = QuantiserRequest(BASELINE, (BASELINE,), 1.0)
    with pytest.raises(InputError, match="baseline and candidate are both 'nvfp4-quantiser'"):
        table.measure(both, None)
    twice = QuantiserRequest(BASELINE, (CANDIDATE, CANDIDATE), 1.0)
    with pytest.raises(InputError, match="candidate 'mixfp4-quantiser' is there twice"):
        table.measure(twice, None)


def test_what_rules_lose(monkeypatch):
    """The same numbers as in docs/quantiser.md, in its order; fewer tensors are enough for that."""
    monkeypatch.setattr(table, "SHAPE", (16, 4096))
    gap = QUANTISERS["mixfp4-gap-quantiser"]
    none, full, cheap = table.errors((BASELINE, CANDIDATE, gap))
    assert none.equal is None
    assert full.equal["gaussian"] > 0.99 > 0.85 > cheap.equal["gaussian"] > 0.75
    assert none.decibels["gaussian"] > 1.4 > 0.35 > cheap.decibels["gaussian"] > 0.15 > 0.01 > full.decibels["gaussian"]


def test_a_core_of_another_library_or_clock_is_refused(tmp_path):
    """Its area says nothing of these quantisers; what cores there are is found before any work."""
    library = SimpleNamespace(name="generic7", digest="0" * 64, avoided=())
    with pytest.raises(InputError, match=r"no report on nvfp4-blackwell, generic7 at 1 ns, in .*'hwgen compare'"):
        table.measure(request(), SimpleNamespace(library=library))
    report = schema.load(shipped() / "overhead-blackwell.json")
    library.digest = report.conditions.flow.library.sha256
    assert measured([CORE], tmp_path, Conditions("generic7", library.digest, (), 1.0)) == [CORE]
    assert measured([CORE], tmp_path, Conditions("generic7", library.digest, (), 2.0)) == []
    # Several reports have this one.
    assert find([NAMED["nvfp4-small"]], tmp_path, Conditions("generic7", library.digest, (), 1.0)).clock_ns == 1
    with pytest.raises(InputError, match=r"no report on nvfp4-blackwell, generic7 at 2 ns,"):
        table.measure(QuantiserRequest(BASELINE, (CANDIDATE,), 2.0, cores=(CORE,)), SimpleNamespace(library=library))

"""Every goal can be met, and what is none cannot."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import NAMED, PIPELINE_REGISTERS, TensorCoreConfig, named
from hwgen.errors import ToolError
from hwgen.formats import BLOCK_FORMATS
from hwgen.measure.formats.rows import BASELINE, rows_of, with_products
from sim import verify
from sim.verify.goals import exponent_span, goals, largest_sum

CORES = {
    "nvfp4": TensorCoreConfig("core", "nvfp4", "nvfp4", 2, 2, 1),
    "mixfp4": TensorCoreConfig("core", "mixfp4", "mixfp4", 2, 2, 1, rounding="nearest_even"),
    "weights": TensorCoreConfig("core", "nvfp4", "mixfp4", 2, 2, 2, fraction_bits=39),
    "three": TensorCoreConfig("core", "nvfp4", "nvfp4", 1, 3, 3, fraction_bits=33, pipeline=("operands", "total")),
    "excluded": TensorCoreConfig("core", "mixfp4", "mixfp4", 2, 2, 2, empty_blocks="excluded", pipeline=("terms",)),
    "excluded, G = 1": TensorCoreConfig("core", "nvfp4", "nvfp4", 2, 2, 1, empty_blocks="excluded"),
    "exact": TensorCoreConfig("core", "mixfp4", "mixfp4", 2, 2, 1, numerics="exact", largest_depth=8192),
    "nvint4": TensorCoreConfig("core", "nvint4", "nvint4", 2, 2, 2),
    "exact integers": TensorCoreConfig(
        *("core", "int8", "int4", 4, 3, 1, "booth"), pipeline=(), numerics="exact", accumulator="carry_save"
    ),
    "short exact integers": TensorCoreConfig("core", "int4", "int4", 2, 2, 2, pipeline=("tree",), numerics="exact"),
}
"""Cores between which every kind of goal occurs."""


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_every_goal_can_be_met(core, oracle):
    """Those of the streams apart, which take a core."""
    outcome = verify.verify(oracle(core), 24_000 * core.macs_per_step, seed=3, workers=1)
    assert outcome.failure is None
    assert [goal for goal in outcome.missed() if not goal.startswith(("handshakes", "C and its step"))] == []


# The cores of tests/sim/engines/test_streams.py, so that they are compiled once.
@pytest.mark.parametrize(
    "pipeline",
    [("operands", "terms"), (), ("sums", "total"), PIPELINE_REGISTERS],
    ids=["T1", "T1, no registers", "T2", "T5"],
)
def test_every_handshake_can_be_met(pipeline, compiled):
    config = TensorCoreConfig("tiny", "nvfp4", "nvfp4", 1, 2, 1, pipeline=pipeline)
    outcome = verify.verify(compiled(config), 40_000 * config.macs_per_step, workers=1)
    assert outcome.failure is None
    assert outcome.missed() == []
    assert outcome.complete_at is not None
    assert 0 < outcome.complete_at <= outcome.steps == 40_000
    assert outcome.counts["handshakes"].sum() == outcome.cycles > outcome.steps
    summary = outcome.as_dict()
    assert summary["goals"] == summary["hit"] == sum(goal.reachable.sum() for goal in goals(config).values())
    assert summary["mismatch"] is None


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_what_is_no_goal_has_a_reason(core):
    for name, goal in goals(core).items():
        assert goal.name == name
        assert goal.reachable.shape == tuple(len(labels) for _, labels in goal.axes)
        assert goal.reachable.any()
        assert bool(goal.reason) == (not goal.reachable.all()), name


def test_every_change_of_modes_and_types_can_be_met(compiled):
    """Under gaps and stalls, in a core without registers, where a step that waits is the one on offer."""
    config = TensorCoreConfig("tiny", "nvfp4", "nvfp4", 1, 2, 1, slot="full")
    outcome = verify.verify(compiled(config), 8_000 * config.macs_per_step, workers=1)
    assert outcome.failure is None
    assert not [goal for goal in outcome.missed() if goal.startswith(("handshakes", "C and its", "modes"))]
    assert not [goal for goal in outcome.missed() if " in a row" in goal]


def test_goals_follow_from_the_configuration():
    nvfp4, mixfp4, weights, exact = (goals(CORES[name]) for name in ("nvfp4", "mixfp4", "weights", "exact"))
    assert nvfp4["code pairs"].reachable.size == 16 * 256
    assert mixfp4["code pairs"].reachable.size == 16 * 256 * 4
    assert weights["code pairs"].reachable.size == 32 * 256 * 2
    assert "distance of terms" not in nvfp4
    assert weights["distance of terms"].reachable.shape == (1, 2 * 29 + 1)
    assert exponent_span(CORES["mixfp4"]) == 30
    assert "C against the sum" in exact
    assert "shift of C" not in exact
    # 512 steps of 16 products of 7 x 7, in half-units, by 448 x 448 twice doubled.
    assert largest_sum(CORES["exact"]) == 512 * 16 * 49 * (448**2 * 4 << 20) // 4


def test_documented_number_of_goals():
    total = sum(int(goal.reachable.sum()) for goal in goals(NAMED["mixfp4-small"]).values())
    page = Path(__file__).parents[3] / "docs" / "verification.md"
    assert f"All {total:,} goals of `mixfp4-small`" in page.read_text("utf-8")


def _documented_rows():
    """Goals, and multiply-accumulates that meet them all, by core."""
    page = (Path(__file__).parents[3] / "docs" / "verification.md").read_text("utf-8")
    found = re.findall(r"^\| `([\w-]+-small)` \| ([\d,]+) \| ([\d,]+) \|$", page, re.M)
    return {name: tuple(int(number.replace(",", "")) for number in numbers) for name, *numbers in found}


def test_documented_goals_of_every_row_of_the_table_of_formats():
    """What rows are compared with comes first."""
    documented = _documented_rows()
    cores = [row.config for row in rows_of() if row.config is not None]
    baselines = [with_products(BASELINE, products) for products in sorted({core.depth for core in cores})]
    assert list(documented) == list(dict.fromkeys(core.name for core in (*baselines, *cores)))
    for name, (total, _) in documented.items():
        assert total == sum(int(goal.reachable.sum()) for goal in goals(named(name)).values()), name


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [*reversed(_documented_rows())])
def test_goals_of_a_row_are_met_as_documented(name, oracle):
    """Those of the streams apart, which take a core."""
    _, macs = _documented_rows()[name]
    outcome = verify.verify(oracle(named(name)), macs, workers=1)
    assert outcome.failure is None
    assert [goal for goal in outcome.missed() if not goal.startswith(("handshakes", "C and its step"))] == []


def test_a_goal_that_is_missed_is_named(oracle):
    outcome = verify.verify(oracle(CORES["mixfp4"]), 1, workers=1)
    assert outcome.steps == 1
    assert not outcome.complete
    assert outcome.complete_at is None
    missed = outcome.missed()
    assert (
        any(name.startswith("code pairs: lane 0, tag A E2M1, tag B E1M2, A 0, B 0") for name in missed)
        or len(missed) > 10_000
    )
    assert "24 ones and a one behind: negative" in missed or outcome.counts["24 ones and a one behind"].all()


def test_an_event_that_is_excluded_is_an_error(oracle, monkeypatch):
    core = CORES["mixfp4"]
    known = goals(core)
    known["results"] = dataclasses.replace(known["results"], reachable=np.zeros(14, bool), reason="none")
    monkeypatch.setattr("sim.verify.campaign.goals", lambda config: known)
    with pytest.raises(ToolError, match=r"coverage: results: .* has happened, which the goals exclude"):
        verify.verify(oracle(core), 20_000, workers=1)


def test_a_scale_without_nan_has_no_goal_with_one():
    scale = dataclasses.replace(BLOCK_FORMATS["nvfp4"].scale, nan=None)
    form = dataclasses.replace(BLOCK_FORMATS["nvfp4"], name="plain", scale=scale)
    found = goals(TensorCoreConfig("core", form, "nvfp4", 1, 1, 2))
    kinds = found["kinds of scales"]
    assert [label for label in kinds.missed(np.zeros(kinds.reachable.shape)) if "A NaN" in label] == []
    assert any("B NaN" in label for label in kinds.missed(np.zeros(kinds.reachable.shape)))
    assert found["C"].reachable[0, :, 2].all()
    assert not goals(TensorCoreConfig("core", form, form, 1, 1, 2))["C"].reachable[:, :, 2].any()

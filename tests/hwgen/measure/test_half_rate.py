"""Power of steps at half the rate: FP8 on the cores that also multiply FP4."""

import csv as csv_module
import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED, TensorCoreConfig
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.conditions import half_rates_alike
from hwgen.measure.netlists.checks import core_inputs
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.stimulus import HALF_RATE_ELEMENTS, Stimulus, half_rate
from hwgen.measure.overhead import Overhead, measure
from hwgen.measure.power import situations, study
from hwgen.netlist.link import link
from hwgen.power.activity import simulate
from hwgen.report import check, schema
from hwgen.report.markdown import overhead as overhead_tables
from hwgen.report.markdown import power as power_tables
from hwgen.report.schema import HALF_RATE, Cycles
from hwgen.rtl.tensor_core import TensorCore
from hwgen.stats import Estimate
from sim import golden
from sim.steps import ELEMENT_TYPES, elements

PAIR = [
    TensorCoreConfig(f"{name}-multi-single", name, name, rows=1, columns=1, groups=1, slot="full")
    for name in ("nvfp4", "mixfp4")
]
PLAIN, MIXED = PAIR
STIMULUS = Stimulus(streams=4, steps_per_tile=16, timed=4)
AT_HALF = dataclasses.replace(STIMULUS, elements=HALF_RATE_ELEMENTS)


@pytest.fixture(scope="module")
def flow(cache: Path) -> Flow:
    return Flow(reader.load(libraries.path("generic7")), cache, workers=1)


@pytest.fixture(scope="module")
def measured(flow: Flow) -> Overhead:
    return measure(*PAIR, flow, [RECIPES["area"]], stimulus=STIMULUS, runs=1, vectors=2000)


@pytest.mark.parametrize("hold", [1, 4])
def test_steps_are_quantised_tensors(hold: int) -> None:
    stimulus = dataclasses.replace(AT_HALF, hold=hold)
    config = dataclasses.replace(MIXED, rows=2, columns=2, groups=2)
    (steps, *_), (others, *_) = (stimulus.steps(config, each.formats) for each in PAIR)
    assert steps.half.all()
    assert set(steps.a_types) == set(steps.b_types) == {ELEMENT_TYPES["e4m3"]}
    assert not steps.a_scales.any()
    np.testing.assert_array_equal(steps.bits(), others.bits())  # formats of FP4 say nothing
    assert stimulus.depth(config) == 16 * 8 * 2
    assert half_rate(config, dataclasses.replace(STIMULUS, hold=hold)).depth == 256
    if hold > 1:
        np.testing.assert_array_equal(steps.c[4:], steps.expected()[:-4])
        return
    assert len(steps) == 16
    a, b = (elements(codes.swapaxes(0, 1).reshape(2, -1)) for codes in (steps.a_codes, steps.b_codes))
    magnitudes = np.abs(golden.UNSCALED_ELEMENTS["e4m3"].table[a])
    assert 20 < magnitudes.max() <= 448
    assert len(np.unique(a)) > 100
    c = steps.c[0].view(np.float32)
    expected = golden.unscaled_gemm(a, b, c, k_per_step=16)
    np.testing.assert_array_equal(steps.expected()[-1].view(np.float32), expected)


def test_figures_are_of_fp8(measured: Overhead) -> None:
    report = measured.report()
    assert report.conditions.half_rate == schema.HalfRate("e4m3", 128, {"element": 8, "core": 8}, Cycles(60, 60))
    for scope in ("element", "core"):
        for metric in ("total power", "total power, no glitches", "dynamic power", "leakage power"):
            own, half = (report.find(scope, f"{metric}{end}").values for end in ("", HALF_RATE))
            assert own.keys() == half.keys() == {config.name for config in PAIR}
            assert all(value > 0 for value in half.values())
            assert (own == half) is (metric == "leakage power")  # generic7's does not hang on states
        total = report.find(scope, f"total power{HALF_RATE}").values
        for name, value in total.items():
            parts = [report.find(scope, f"{kind} power{HALF_RATE}").values[name] for kind in ("dynamic", "leakage")]
            assert sum(parts) == pytest.approx(value)
            energy = report.find(scope, f"energy per MAC{HALF_RATE}").values[name]
            assert energy * 8 / report.conditions.clock_ns * 1e-3 == pytest.approx(value)
            blocks = report.blocks(scope, f"dynamic power{HALF_RATE}").values()
            assert sum(each.values[name] for each in blocks) == pytest.approx(parts[0])
    assert not [entry for entry in report.results if entry.scope == "lane array" and HALF_RATE in entry.metric]


def test_nothing_is_said_of_a_core_without_a_slot(overhead: Overhead) -> None:
    report = overhead.report()
    assert "half_rate" not in schema.to_json(report)["conditions"]
    assert "half rate" not in overhead_tables.markdown(report, "p.png").lower()
    assert "half rate" not in schema.as_text(report)


def test_it_is_written(measured: Overhead, tmp_path: Path) -> None:
    report, path = measured.report(), tmp_path / "overhead.json"
    path.write_text(schema.as_text(report), encoding="utf-8")
    assert schema.load(path) == report
    text = overhead_tables.markdown(report, "p.png")
    assert "## At half the rate" in text
    assert "| core | energy per MAC | fJ |" in text
    assert "K = 128" in text
    header, rows = overhead_tables.summary(report)
    assert header[-1] == "total power, half rate"
    assert rows[0][-1] == ""
    assert rows[-1][-1].endswith("%")
    metrics = {row["metric"] for row in csv_module.DictReader(io.StringIO(overhead_tables.csv(report)))}
    assert {"total power, half rate", "energy per MAC, half rate"} < metrics


def _with_overhead(report: schema.OverheadReport, low: float, high: float) -> schema.OverheadReport:
    """The same with another interval of the core's power at half the rate."""
    estimate = Estimate((low + high) / 2, low, high)
    wanted = report.find("core", f"total power{HALF_RATE}")
    results = [dataclasses.replace(each, overhead=estimate) if each is wanted else each for each in report.results]
    return dataclasses.replace(report, results=tuple(results))


@pytest.mark.parametrize(("low", "high", "words"), [(-0.01, 0.02, "lies in"), (0.001, 0.02, "is outside of")])
def test_an_overhead_at_half_the_rate_is_told(measured: Overhead, low: float, high: float, words: str) -> None:
    report = _with_overhead(measured.report(), low, high)
    assert f"{words} the interval of the core's power" in overhead_tables.markdown(report, "p.png")
    found = [each for each in check.findings(report) if "half the rate" in each]
    assert len(found) == (low > 0)


def test_selectors_of_blocks_do_not_reach_elements(
    flow: Flow, mapped: Callable[[Design, Flow], dict[str, Any]]
) -> None:
    """Whatever stands where block scales and their selectors do, no net of an element toggles more or less."""
    netlist = link(mapped(Design(MIXED, TensorCore), flow), "tensor_core", flow.library)
    (steps,) = dataclasses.replace(AT_HALF, streams=1).steps(MIXED, MIXED.formats)
    rng = np.random.default_rng(7)
    scales = [rng.integers(0, 256, steps.a_scales.shape).astype(np.uint8) for _ in "ab"]
    drawn = dataclasses.replace(steps, a_scales=scales[0], b_scales=scales[1])
    inside = np.array([path.split("/")[1:2] == ["element"] for path in netlist.blocks])[netlist.cell_block]
    nets = np.unique(np.concatenate([group.outputs[inside[group.cells]].ravel() for group in netlist.groups]))
    nets = nets[nets > 1]
    found = [simulate(netlist, core_inputs(MIXED, [each]), warmup=MIXED.latency).toggles for each in (steps, drawn)]
    assert (found[0] != found[1]).any()  # the scales themselves
    assert found[0][nets].sum() > 0
    np.testing.assert_array_equal(found[0][nets], found[1][nets])


def test_a_study_of_power_has_both_rates(flow: Flow) -> None:
    report = study(*PAIR, flow, [RECIPES["area"]], stimulus=STIMULUS, runs=1, vectors=2000)
    entry = report.at("half rate", "core")
    for name, milliwatts in entry.milliwatts.items():
        assert entry.operands[name].a == entry.operands[name].b == schema.Operand("e4m3", 0.0)
        energy = entry.femtojoules_per_mac[name]
        assert energy == pytest.approx(milliwatts * 1e3 * report.conditions.clock_ns / 8)
    assert report.conditions.macs_per_cycle["core"] == 16
    assert schema.from_json(schema.to_json(report)) == report
    text = power_tables.markdown(report, "p.png")
    assert "| half rate |" in text
    assert "8 in a cycle of the core" in text
    others = {kind: report.at(f"half rate, {kind.upper()}", "core") for kind in ("e5m2", "e2m3", "e3m2", "e2m1")}
    for kind, other in others.items():
        assert {operands.a for operands in other.operands.values()} == {schema.Operand(kind, 0.0)}
        assert f"| half rate, {kind.upper()} |" in text
    # Elements of two significant bits keep the rest of a multiplier still.
    assert others["e2m1"].milliwatts[PLAIN.name] < entry.milliwatts[PLAIN.name]


def test_half_the_rate_takes_cores_that_read_the_same_bits() -> None:
    scaled = NAMED["mixfp4-mx-multi-small"]
    for pair, found in (
        ((NAMED["nvfp4-multi-small"], scaled), False),
        ((NAMED["nvfp4-mx-multi-small"], scaled), True),
    ):
        assert half_rates_alike(*pair) is found
        assert ("half rate" in [each.name for each in situations(*pair, STIMULUS)]) is found


def test_half_the_rate_takes_two_cores_with_a_slot() -> None:
    plain = dataclasses.replace(PLAIN, name="plain", slot="none")
    for pair, found in ((PAIR, True), ((plain, MIXED), False), ((PLAIN, plain), False)):
        assert ("half rate" in [each.name for each in situations(*pair, STIMULUS)]) is found

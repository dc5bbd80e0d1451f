import csv as csv_module
import dataclasses
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.energy import core_activity
from hwgen.measure.netlists.export import WAVES, as_mapped
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.stimulus import TRAFFIC, Stimulus
from hwgen.measure.power import SHARES, situations, study
from hwgen.netlist.link import link
from hwgen.power.estimate import KINDS
from hwgen.power.glitch import Gates
from hwgen.report import schema
from hwgen.report.markdown import power as power_tables
from hwgen.report.plots.power import power_png
from hwgen.report.schema import PowerReport
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing
from sim import tensors

PAIR = [TensorCoreConfig(f"{name}-single", name, name, rows=1, columns=1, groups=1) for name in ("nvfp4", "mixfp4")]
STIMULUS = Stimulus(streams=4, tiles=1, steps_per_tile=16, timed=4)


@pytest.fixture(scope="module")
def flow(cache: Path) -> Flow:
    return Flow(reader.load(libraries.path("generic7")), cache, workers=1)


@pytest.fixture(scope="module")
def report(flow: Flow) -> PowerReport:
    return study(*PAIR, flow, [RECIPES["area"]], stimulus=STIMULUS, runs=6, vectors=2000)


def total(report: PowerReport, situation: str, name: str, scope: str = "core") -> float:
    return report.at(situation, scope).milliwatts[name]


def test_every_situation_is_there(report: PowerReport) -> None:
    names = [entry.situation for entry in report.results if entry.scope == "core"]
    assert names == [each.name for each in situations(*PAIR, STIMULUS)]
    assert {"at work", "both on nvfp4 operands", "B held for 4 steps", "stalled"} < set(names)
    assert len(names) == 2 + len(SHARES) + len(tensors.KINDS) - 1 + 1 + len(TRAFFIC) - 1
    for entry in report.results:
        assert entry.runs == 6
        assert entry.overhead.low <= entry.overhead.value <= entry.overhead.high


def test_blocks_and_kinds_add_up(report: PowerReport) -> None:
    for entry in report.results:
        for name, blocks in entry.milliwatts_by_block_and_kind.items():
            assert all(set(kinds) == set(KINDS) for kinds in blocks.values())
            parts = sum(sum(kinds.values()) for kinds in blocks.values())
            assert parts == pytest.approx(entry.milliwatts[name])
            macs = report.conditions.macs_per_cycle[entry.scope]
            energy = entry.milliwatts[name] * 1e3 * report.conditions.clock_ns / macs
            if entry.situation in TRAFFIC:
                continue
            assert entry.femtojoules_per_mac[name] == pytest.approx(energy)


def test_what_the_data_does(report: PowerReport) -> None:
    base, other = (config.name for config in PAIR)
    same = "both on nvfp4 operands"
    assert total(report, "at work", other) != total(report, same, other)
    assert total(report, "at work", base) == total(report, same, base) == total(report, "50 % E1M2 blocks", base)
    for situation, low, high in ((same, 0, 0), ("100 % E1M2 blocks", 1, 1), ("50 % E1M2 blocks", 0.2, 0.8)):
        operands = report.at(situation, "core").operands
        for operand in (operands[other].a, operands[other].b):
            assert low <= operand.e1m2_share <= high
        assert operands[base].a.e1m2_share == operands[base].b.e1m2_share == 0


def test_every_run_meets_the_clock(report: PowerReport) -> None:
    slowest = report.conditions.slowest_ns
    assert slowest is not None
    assert slowest.keys() == {config.name for config in PAIR}
    assert 0.9 * report.conditions.clock_ns < max(slowest.values()) <= report.conditions.clock_ns


def test_all_blocks_e2m1_are_the_bits_of_the_baseline() -> None:
    none = dataclasses.replace(STIMULUS, e1m2=0.0)
    for some, plain in zip(none.steps(PAIR[1], PAIR[1].formats), STIMULUS.steps(PAIR[1], PAIR[0].formats), strict=True):
        np.testing.assert_array_equal(some.bits(), plain.bits())


@pytest.mark.parametrize("traffic", TRAFFIC)
def test_traffic_is_what_it_says(flow: Flow, traffic: str, mapped: Callable[[Design, Flow], dict[str, Any]]) -> None:
    netlist = link(mapped(Design(PAIR[0], TensorCore), flow), "tensor_core", flow.library)
    gates = Gates(netlist, timing.analyse(netlist))
    found = core_activity(gates, PAIR[0], PAIR[0].formats, dataclasses.replace(STIMULUS, traffic=traffic))
    last = {port: found.outputs[port][-3:, :, 0] for port in ("step__ready", "result__valid")}
    assert (last["step__ready"] == (traffic != "stalled")).all()
    if traffic != "busy":
        assert (last["result__valid"] == (traffic == "stalled")).all()


def test_a_core_at_rest_spends_clock_and_leakage_only(report: PowerReport) -> None:
    for config in PAIR:
        for situation in ("idle", "stalled"):
            for entry in report.results:
                if (entry.situation, entry.scope) != (situation, "core"):
                    continue
                kinds = entry.milliwatts_by_block_and_kind[config.name].values()
                assert entry.femtojoules_per_mac[config.name] is None
                clock = sum(block["clock"] + block["clock_tree"] + block["leakage"] for block in kinds)
                assert clock == pytest.approx(entry.milliwatts[config.name])
        assert total(report, "idle", config.name) < total(report, "idle, inputs toggle", config.name)
        assert total(report, "idle, inputs toggle", config.name) < 0.5 * total(report, "at work", config.name)


def test_it_is_written_as_text_and_picture(report: PowerReport, tmp_path: Path) -> None:
    path = tmp_path / "power.json"
    path.write_text(schema.as_text(report), encoding="utf-8")
    assert schema.load(path) == report
    text = power_tables.markdown(report, "picture.png")
    for words in ("# Power of mixfp4-single against nvfp4-single", "<picture.png>", "## Core at work", "## At rest"):
        assert words in text
    rows = list(csv_module.DictReader(io.StringIO(power_tables.csv(report))))
    assert len(rows) == len(report.results)
    picture = matplotlib.image.imread(io.BytesIO(power_png(report)), format="png")
    assert picture.std() > 0.05


def test_shares_are_for_formats_that_have_them() -> None:
    twice = NAMED["nvfp4-small"], dataclasses.replace(NAMED["nvfp4-small"], name="other")
    assert not any("E1M2" in each.name for each in situations(*twice, Stimulus()))
    both = [
        each for each in situations(NAMED["mixfp4-small"], NAMED["mixfp4-blackwell"], Stimulus()) if "E1M2" in each.name
    ]
    assert all(each.of(0) == each.of(1) for each in both)


def test_both_ways_to_feed_operands_are_reported() -> None:
    pair = NAMED["nvfp4-small"], NAMED["mixfp4-small"]

    def held(configs: tuple[TensorCoreConfig, TensorCoreConfig], stimulus: Stimulus) -> dict[str, int]:
        return {each.name: each.stimulus.hold for each in situations(*configs, stimulus) if "held" in each.name}

    assert held(pair, Stimulus()) == {"B held for 4 steps": 4}
    assert held(pair, Stimulus(hold=2)) == {"B held for 1 step": 1}
    exact = dataclasses.replace(pair[0], numerics="exact"), dataclasses.replace(pair[1], numerics="exact")
    assert held(exact, Stimulus()) == {}


def test_export(flow: Flow, report: PowerReport) -> None:
    conditions = report.conditions
    config = PAIR[1]
    texts = as_mapped(config, conditions.chosen_recipes[config.name], flow, 10.0, STIMULUS, True)
    assert set(texts) == {"v", "saif", "vcd", "sdc", "spef", "tcl"}
    nets = dict(re.findall(r"^    \((\S+) .*\(TC (\d+)\)", texts["saif"], re.MULTILINE))
    assert re.match(
        r"// mixfp4-single, generic7.*\n// internal \S+ mW, .* total \S+ mW\.\n// Wires \S+ fF per fanout.*\n"
        r"// Longest path \S+ ns\.\nmodule tensor_core \(",
        texts["v"],
    )
    wires = re.findall(r"^  wire (\w+);", texts["v"], re.MULTILINE)
    assert set(wires) <= set(nets)
    duration = float(re.search(r"\(DURATION (\d+)\)", texts["saif"])[1])
    assert int(nets["clk"]) == 2 * duration / 10_000
    for one in re.findall(r"\(T0 (-?\d+)\) \(T1 (-?\d+)\)", texts["saif"]):
        assert sum(map(int, one)) == duration
        assert min(map(int, one)) >= 0
    head, body = texts["vcd"].split("$dumpvars")
    (clock,) = re.findall(r"\$var wire 1 (\S+) clk \$end", head)
    # The clock has a period of 10 ns, and rises at 0.
    edges = re.findall(rf"^#(\d+)\n(?:[01]\S+\n)*?([01]){re.escape(clock)}$", body, re.MULTILINE)
    assert [int(stamp) for stamp, _ in edges] == [5_000_000 * place for place in range(1, 2 * WAVES)]
    assert [int(level) for _, level in edges] == [place % 2 for place in range(2 * WAVES - 1)]
    stamps = np.array([int(stamp) for stamp in re.findall(r"^#(\d+)$", body, re.MULTILINE)])
    assert (np.diff(stamps) > 0).all()
    assert body.count("\n") > 2000
    with pytest.raises(InputError, match=r"clock of 1 ns: the netlist to export takes"):
        as_mapped(config, conditions.chosen_recipes[config.name], flow, 1.0, STIMULUS, False)

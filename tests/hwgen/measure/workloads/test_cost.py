"""From a report on overheads to the cost of a workload."""

import copy
import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import Memory
from hwgen.cost.model import CORE_PARTS, HALF_RATE_PART, PARTS, EnergyCosts, core_parts
from hwgen.cost.workloads import HALF_RATE, Workload, at_half_rate, load, model
from hwgen.errors import InputError
from hwgen.measure.workloads import cost
from hwgen.measure.workloads.cores import find, read
from hwgen.measure.workloads.cost import Machine, document
from hwgen.report import schema
from hwgen.report.markdown import cost as cost_tables
from hwgen.report.plots import cost as cost_plots
from hwgen.report.schema import BANDWIDTH, CORES
from hwgen.report.shipped import shipped
from hwgen.stats import Ratio

REPORTS = Path(__file__).parents[4] / "reports"
PAIR = [NAMED["nvfp4-blackwell"], NAMED["mixfp4-blackwell"]]
FIGURES = {
    # metric: unit, baseline, candidate, interval of the overhead
    "area": ("um2", 60000.0, 63000.0, (0.04, 0.06)),
    "critical path": ("ns", 8.0, 8.4, (0.0, 0.1)),
    "dynamic power": ("mW", 80.0, 84.0, (0.03, 0.08)),
    "clock power": ("mW", 3.0, 3.03, (0.01, 0.01)),
    "clock tree power": ("mW", 0.2, 0.2, (0.0, 0.0)),
    "leakage power": ("mW", 0.05, 0.06, (0.15, 0.25)),
}


def overheads(figures=FIGURES, designs=PAIR, library="cells"):
    """The JSON of a report on overheads, with these figures."""
    names = [config.name for config in designs]
    report = json.loads((REPORTS / "overhead-blackwell.json").read_text())
    report["designs"] = [config.as_dict() for config in designs]
    report["conditions"].update(clock_ns=10.0, runs=16, slowest_ns=None)
    report["conditions"]["flow"]["library"].update(name=library, dont_use=[])
    report["results"] = [
        {
            "scope": "core",
            "metric": metric,
            "block": "total",
            "unit": unit,
            "runs": 16,
            "values": dict(zip(names, (one, other), strict=True)),
            "overhead": {"value": other / one - 1, "low": low, "high": high},
            "contribution": None,
            "baseline_against_itself": None,
        }
        for metric, (unit, one, other, (low, high)) in figures.items()
    ]
    return report


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(overheads()))
    return path


MACHINE = Machine(16, None, Memory(1 << 22, 2e11), EnergyCosts(), 10.0)
GIVEN = {"phase": "decode", "batch": 4, "sequence": 500}


@pytest.fixture
def content(report):
    return document(read(report, PAIR), MACHINE, model("llama-3.1-8b", *GIVEN.values()), GIVEN)


def total(content, metric):
    return next(entry for entry in content.totals if entry.metric == metric)


def test_cores_as_measured(report):
    found = read(report, PAIR)
    core = found.cores["nvfp4-blackwell"]
    assert (found.library, found.clock_ns, found.runs) == ("cells", 10.0, 16)
    # 80 mW at 10 ns are 800 pJ a cycle.
    assert (core.active_fj, core.clock_fj, core.clock_tree_fj) == pytest.approx((800e3, 30e3, 2e3))
    assert (core.area_um2, core.leakage_mw) == (60000.0, 0.05)
    assert found.ratios["area"].value == pytest.approx(1.05)
    assert (found.ratios["active"].low, found.ratios["active"].high) == (1.03, 1.08)


def test_a_gated_core_without_a_step_has_a_clock_of_its_own(tmp_path):
    path = tmp_path / "gated.json"
    resting = {
        "clock power, idle": ("mW", 0.1, 0.11, (0.1, 0.1)),
        "clock tree power, idle": ("mW", 0.01, 0.01, (0.0, 0.0)),
    }
    path.write_text(json.dumps(overheads({**FIGURES, **resting})))
    found = read(path, PAIR)
    core = found.cores["nvfp4-blackwell"]
    assert (core.active_fj, core.clock_fj, core.clock_tree_fj) == pytest.approx((800e3, 1e3, 0.1e3))
    assert found.ratios["clock"].value == pytest.approx(1.1)
    assert found.ratios["active"].low == 1.03


def test_the_other_way_round(report):
    found = read(report, PAIR[::-1])
    assert list(found.cores) == ["mixfp4-blackwell", "nvfp4-blackwell"]
    assert found.ratios["area"].value == pytest.approx(1 / 1.05)
    assert found.ratios["area"].low == pytest.approx(1 / 1.06)


def test_a_clock_must_be_met_by_the_slowest_run(tmp_path):
    """And by the mean, where a report does not say what single runs take."""
    content = overheads()
    path = tmp_path / "x.json"
    for slowest, expected in ((None, 8.0), ({PAIR[0].name: {"core": 8.3}, PAIR[1].name: {"core": 8.9}}, 8.3)):
        content["conditions"]["slowest_ns"] = slowest
        path.write_text(json.dumps(content))
        assert read(path, PAIR).cores["nvfp4-blackwell"].critical_path_ns == expected


def test_one_core_alone(report):
    found = read(report, PAIR[1:])
    assert list(found.cores) == ["mixfp4-blackwell"]
    assert found.ratios == {}
    given = {"phase": "prefill", "batch": 1, "sequence": 100}
    content = document(found, MACHINE, model("qwen3-8b", *given.values()), given)
    assert all(entry.overhead is None for entry in content.totals)
    assert "overhead" not in cost_tables.markdown(content, "x.png")
    assert cost_plots.cost_png(content).startswith(b"\x89PNG")


def test_the_idle_power_is_that_of_netlists_at_rest():
    """Clock, its tree and leakage: all that a study of power sees in idle cores of the same designs.

    A core that is stalled has a few clock gates less open than one that waits for a step.
    """
    compared = 0
    for path in sorted(REPORTS.glob("power*.json")):
        power = schema.load(path)
        designs = [TensorCoreConfig(**design.settings) for design in power.designs]
        for other in sorted(REPORTS.glob("overhead*.json")):
            overhead = schema.load(other)
            one, two = overhead.conditions, power.conditions
            if overhead.designs != power.designs or (one.clock_ns, one.flow.library) != (
                two.clock_ns,
                two.flow.library,
            ):
                continue
            found = read(other, designs)
            for entry in power.results:
                if entry.scope == "core" and entry.situation in ("idle", "stalled"):
                    for name, core in found.cores.items():
                        clock = (core.clock_fj + core.clock_tree_fj) * 1e-3 / found.clock_ns
                        spent = clock + core.leakage_mw
                        most = 0.01 if entry.situation == "idle" else 0.06
                        assert spent * (1 - most) <= entry.milliwatts[name] <= spent * 1.01
                        compared += 1
    if not compared:
        pytest.skip("no studies of power and overhead of the same designs at the same clock")


def changed(**figures):
    return overheads({**FIGURES, **figures})


def test_reports_are_found(tmp_path):
    (tmp_path / "junk.json").write_text("{")
    (tmp_path / "a.json").write_text(json.dumps(overheads(library="one")))
    (tmp_path / "other.json").write_text(json.dumps(overheads(designs=[NAMED["nvfp4-small"], NAMED["mixfp4-small"]])))
    assert find(PAIR, tmp_path).path == tmp_path / "a.json"
    assert find(PAIR, tmp_path).library == "one"
    (tmp_path / "b.json").write_text(json.dumps(overheads(library="two")))
    with pytest.raises(InputError, match=r"several reports.*a\.json.*b\.json"):
        find(PAIR, tmp_path)
    (tmp_path / "c.json").write_text(json.dumps(overheads(library="generic7")))
    assert find(PAIR, tmp_path).path.name == "c.json"
    avoiding = changed(area=("um2", 1.0, 2.0, (0.9, 1.1)))
    avoiding["conditions"]["flow"]["library"].update(name="generic7", dont_use=["AOI*"])
    (tmp_path / "d.json").write_text(json.dumps(avoiding))
    assert find(PAIR, tmp_path).path.name == "c.json"
    mapped = changed(area=("um2", 50000.0, 51000.0, (0.01, 0.03)))
    mapped["conditions"]["flow"]["library"].update(name="generic7")
    mapped["conditions"]["closing"] = None
    (tmp_path / "as-mapped.json").write_text(json.dumps(mapped))
    assert find(PAIR, tmp_path).path.name == "c.json"


def test_the_usual_clock_and_new_operands_go_first(tmp_path):
    """And if that leaves several, the message says what each is of."""

    def write(name, clock_ns, hold, area):
        content = changed(area=("um2", area, area + 1, (0.0, 0.1)))
        content["conditions"]["flow"]["library"].update(name="generic7")
        content["conditions"]["clock_ns"] = clock_ns
        content["conditions"]["stimulus"]["hold"] = hold
        (tmp_path / name).write_text(json.dumps(content))

    write("slow.json", 2.0, 1, 50.0)
    write("fast.json", 0.8, 1, 70.0)
    several = r"several reports on nvfp4-blackwell and mixfp4-blackwell: choose one with --report of "
    with pytest.raises(
        InputError, match=several + r".*fast\.json \(generic7, 0\.8 ns\), .*slow\.json \(generic7, 2 ns\)"
    ):
        find(PAIR, tmp_path)
    write("held.json", 1.0, 4, 61.0)
    write("usual.json", 1.0, 1, 60.0)
    assert find(PAIR, tmp_path).path.name == "usual.json"
    write("again.json", 1.0, 1, 62.0)
    with pytest.raises(InputError, match=r"again\.json \(generic7, 1 ns, beside mixfp4-blackwell\), "):
        find(PAIR[:1], tmp_path)


def test_a_study_of_searches_is_no_other_report(tmp_path):
    """What a core takes is in the report of one search; that of several has the first of these again."""
    several = changed(area=("um2", 60000.0, 99999.0, (0.6, 0.7)))
    first = {"search": 0, "slack_ns": 0.0, "lanes": {}, "values": {}, "overheads": {}}
    several["conditions"]["searches"] = [first, {**first, "search": 1}]
    (tmp_path / "searches.json").write_text(json.dumps(several))
    assert find(PAIR, tmp_path).path.name == "searches.json"
    (tmp_path / "one.json").write_text(json.dumps(overheads()))
    assert find(PAIR, tmp_path).path.name == "one.json"


def test_reports_that_say_the_same_are_as_good_as_one(tmp_path):
    """A core that was measured beside two others."""
    (tmp_path / "a.json").write_text(json.dumps(overheads()))
    (tmp_path / "b.json").write_text(json.dumps(changed(area=("um2", 60000.0, 99999.0, (0.6, 0.7)))))
    assert find(PAIR[:1], tmp_path).cores["nvfp4-blackwell"].area_um2 == 60000
    with pytest.raises(InputError, match="several reports on mixfp4-blackwell: choose one with --report"):
        find(PAIR[1:], tmp_path)


def test_reports_come_with_the_package(tmp_path, monkeypatch):
    assert shipped() == REPORTS
    # As if measured on the present designs.
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "overhead-blackwell.json").write_text(json.dumps(overheads(library="generic7")))
    monkeypatch.setattr("hwgen.measure.workloads.cores.shipped", lambda: tmp_path / "shipped")
    found = find(PAIR, tmp_path / "absent")
    assert (found.path, found.library) == (tmp_path / "shipped" / "overhead-blackwell.json", "generic7")
    # What was measured here goes first.
    (tmp_path / "mine.json").write_text(json.dumps(overheads(library="mine")))
    assert find(PAIR, tmp_path).library == "mine"
    own = TensorCoreConfig("own", "nvfp4", "nvfp4", 2, 2, 1)
    with pytest.raises(InputError, match=r"no report on own in .* hwgen itself: 'hwgen compare' .*--report takes one"):
        find([own], tmp_path)


def test_bad_reports_are_named(tmp_path):
    path = tmp_path / "x.json"

    def expect(content, message, configs=PAIR):
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match=message) as caught:
            read(path, configs)
        assert "\n" not in str(caught.value)

    expect([], "not a report of hwgen")
    expect(json.loads((REPORTS / "power.json").read_text()), "kind 'power'")
    expect(overheads(), "is on nvfp4-blackwell and mixfp4-blackwell, not on nvfp4-small", [NAMED["nvfp4-small"]])
    other = TensorCoreConfig("nvfp4-blackwell", "nvfp4", "nvfp4", 8, 8, 4, pipeline=())
    expect(overheads(), "another configuration of that name", [other, PAIR[1]])
    for metric in FIGURES:
        figures = {key: value for key, value in FIGURES.items() if key != metric}
        expect(overheads(figures), rf"damaged \(KeyError.*{metric}")
    damaged = overheads()
    damaged["results"][0]["values"] = None
    expect(damaged, "damaged")
    damaged = overheads()
    damaged["conditions"]["clock_ns"] = "fast"
    expect(damaged, "damaged")


def test_totals_are_sums_over_the_gemms(content):
    for design in ("nvfp4-blackwell", "mixfp4-blackwell"):
        seconds = sum(entry.count * entry.values[design].seconds for entry in content.results)
        joules = sum(entry.count * sum(entry.values[design].joules.values()) for entry in content.results)
        assert total(content, "time per token").values[design] == pytest.approx(seconds / 4)
        assert total(content, "throughput").values[design] == pytest.approx(4 / seconds)
        assert total(content, "energy per token").values[design] == pytest.approx(joules / 4)
    area = total(content, "area of the cores").values
    assert area == pytest.approx({"nvfp4-blackwell": 16 * 0.06, "mixfp4-blackwell": 16 * 0.063})


def test_the_interval_is_carried_through(content):
    cores = total(content, "energy of the cores per token").overhead
    whole = total(content, "energy per token").overhead
    # Between those of a core at work and of one at rest; the memory, equal for both, thins it out.
    assert 0.01 < cores.low < cores.value < cores.high < 0.08
    ratio = whole.value / cores.value
    assert 0 < ratio < 1
    assert whole.low == pytest.approx(ratio * cores.low)
    assert whole.high == pytest.approx(ratio * cores.high)
    per_area = total(content, "throughput per area of the cores").overhead
    assert [per_area.value, per_area.low, per_area.high] == pytest.approx([1 / 1.05 - 1, 1 / 1.06 - 1, 1 / 1.04 - 1])


def test_fewer_runs_give_no_interval(tmp_path):
    figures = {key: (*value[:3], (None, None)) for key, value in FIGURES.items()}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(overheads(figures)))
    content = document(read(path, PAIR), MACHINE, model("llama-3.1-8b", *GIVEN.values()), GIVEN)
    assert total(content, "energy per token").overhead.low is None
    assert total(content, "energy per token").overhead.value > 0
    assert cost_plots.cost_png(content).startswith(b"\x89PNG")
    assert "[" not in cost_tables.markdown(content, "x.png").split("![")[0]


def test_what_is_varied(content):
    for varied, here in ((BANDWIDTH, 2e11), (CORES, 16)):
        entries = [entry for entry in content.sensitivity if entry.varied == varied]
        assert len(entries) == 9
        (same,) = (entry for entry in entries if entry.value == here)
        for figure, metric in (("seconds", "time per token"), ("joules", "energy per token")):
            per_token = total(content, metric).values
            assert getattr(same, figure) == pytest.approx({name: 4 * value for name, value in per_token.items()})
    seconds = [entry.seconds["nvfp4-blackwell"] for entry in content.sensitivity if entry.varied == BANDWIDTH]
    assert seconds == sorted(seconds, reverse=True)


def test_renderings(content, tmp_path):
    (tmp_path / "cost.json").write_text(schema.as_text(content))
    assert schema.load(tmp_path / "cost.json") == content
    rows = list(csv.DictReader(io.StringIO(cost_tables.csv(content))))
    assert len(rows) == 2 * len(content.results)
    first = content.results[0].values["nvfp4-blackwell"]
    assert float(rows[0]["seconds"]) == pytest.approx(first.seconds)
    assert float(rows[0]["joules_clock_tree"]) == pytest.approx(first.joules["clock tree"])
    text = cost_tables.markdown(content, "odd name.png")
    assert "![Roofline, time and energy by GEMM, sensitivity](<odd name.png>)" in text
    for entry in content.results:
        assert f"| {entry.gemm} |" in text
        assert set(entry.values["nvfp4-blackwell"].joules) == set(PARTS) > set(CORE_PARTS) == set(schema.CORE_PARTS)
    assert "arXiv 2407.21783" in text
    header, lines = cost_tables.summary(content)
    assert [len(line) for line in lines] == [len(header)] * len(content.totals)
    picture = cost_plots.cost_png(content)
    assert picture.startswith(b"\x89PNG")
    assert picture == cost_plots.cost_png(copy.deepcopy(content))


def test_lists_of_many_gemms_and_strange_names(report, tmp_path):
    rows = [f"{'$x$ | y' if number == 3 else f'layer {number}'}, {number + 1}, 20, 30" for number in range(40)]
    (tmp_path / "many.csv").write_text("name, m, n, k\n" + "\n".join(rows))
    workload = load(tmp_path / "many.csv", "decode", 1, 1)
    content = document(read(report, PAIR), MACHINE, workload, {"phase": "decode", "batch": 1, "sequence": 1})
    assert total(content, "energy per pass").unit == "J"
    assert cost_plots.cost_png(content).startswith(b"\x89PNG")
    table = [line for line in cost_tables.markdown(content, "x.png").splitlines() if line.startswith("| $x$")]
    assert [line.replace(r"\|", "").count(" | ") for line in table] == [14]


def test_a_gemm_that_is_too_large_to_count_is_named(report, tmp_path):
    given = {"phase": "decode", "batch": 1, "sequence": 1}
    (tmp_path / "mine.csv").write_text(f"name, m, n, k\nsmall, 1, 1, 16\nhuge one, 1, {1 << 61}, 1\n")
    with pytest.raises(InputError, match=r"mine: GEMM huge one: too large: at most 2\^62 bytes or cycles"):
        document(read(report, PAIR), MACHINE, load(tmp_path / "mine.csv", "decode", 1, 1), given)


def lengths(axis):
    """Of the bars of a panel, from its first row to the last; both designs of a row, and their parts, added up."""
    found = [0.0] * len(axis.get_yticks())
    for bar in axis.patches:
        found[round(bar.get_y() + bar.get_height() / 2)] += bar.get_width()
    return found


@pytest.mark.parametrize("shapes", [5, 100, 3000])
def test_a_picture_of_thousands_of_gemms_can_be_read(report, tmp_path, shapes):
    rows = [f"layer {number}, {100 + 7 * (number % shapes)}, 1000, 1000" for number in range(3000)]
    (tmp_path / "many.csv").write_text("name, m, n, k\n" + "\n".join(rows))
    workload = load(tmp_path / "many.csv", "decode", 1, 1)
    content = document(read(report, PAIR), MACHINE, workload, {"phase": "decode", "batch": 1, "sequence": 1})
    figure = cost_plots.cost_figure(content)
    shown = min(shapes, 11)
    others = 3000 - shown * 3000 // shapes
    title = figure.get_suptitle()
    assert (f"The {shown} shapes of most energy" in title) == (f"{others:,} other GEMMs" in title) == (others > 0)
    for axis in figure.axes[1:3]:
        labels = [label.get_text() for label in axis.get_yticklabels()]
        assert len(labels) == shown + (others > 0)
        assert labels[-1] == f"{others:,} others" or not others
        assert ("alike" in labels[0]) == (shapes < 3000)
        # Also where nearly all is in the others: the bars beside theirs are as long as can be.
        drawn = lengths(axis)
        assert max(drawn[:shown]) >= 0.75 * max(drawn)
    energies = lengths(figure.axes[2])[:shown]
    assert energies == sorted(energies, reverse=True)
    # Equal shapes are one bar, which has the energy of all.
    joules = dict.fromkeys((entry.m for entry in content.results), 0.0)
    for entry in content.results:
        joules[entry.m] += sum(sum(values.joules.values()) for values in entry.values.values())
    assert energies == pytest.approx(sorted(joules.values(), reverse=True)[:shown])


def test_area_with_quantisers_counts_as_many_as_keep_up(report):
    """64 results of scores in two steps of 10 ns are two blocks a cycle; a quantiser takes one."""
    measured = read(report, PAIR)
    given = {"phase": "prefill", "batch": 1, "sequence": 2048}
    workload = model("llama-3.1-8b", *given.values())
    areas = dict(zip((core.name for core in PAIR), (1000.0, 2500.0), strict=True))
    measured = replace(measured, ratios={**measured.ratios, "quantiser area": Ratio(2.5, 2.4, 2.75)})
    machine = replace(MACHINE, quantiser_um2=areas, buffer_mm2_per_mib=0.5)
    content = document(measured, machine, workload, given)
    assert content.conditions.assumptions.quantisers == dict.fromkeys(areas, 32)
    both = total(content, "area of cores and quantisers")
    assert list(both.values.values()) == pytest.approx([0.96 + 0.032, 1.008 + 0.08])
    assert both.overhead.value == pytest.approx(1.088 / 0.992 - 1)
    # All bounds low, or all high.
    assert both.overhead.low == pytest.approx((0.96 * 1.04 + 0.032 * 2.4) / 0.992 - 1)
    assert both.overhead.high == pytest.approx((0.96 * 1.06 + 0.032 * 2.75) / 0.992 - 1)
    rate = total(content, "throughput").values["nvfp4-blackwell"]
    per_area = total(content, "throughput per area of cores and quantisers")
    assert per_area.values["nvfp4-blackwell"] == pytest.approx(rate / 0.992)
    assert total(content, "area of cores, quantisers and buffer").values["nvfp4-blackwell"] == pytest.approx(2.992)
    assert "Quantisers: 32 (nvfp4-blackwell) and 32" in cost_tables.markdown(content, "x.png")
    # Where no report compares the two there is no interval.
    apart = replace(measured, ratios={key: each for key, each in measured.ratios.items() if key != "quantiser area"})
    found = total(document(apart, machine, workload, given), "area of cores and quantisers").overhead
    assert found == schema.Estimate(pytest.approx(1.088 / 0.992 - 1))
    assert "their area is not included" in cost_tables.markdown(document(measured, MACHINE, workload, given), "x.png")


def test_nothing_to_quantise_takes_no_quantiser(report, tmp_path):
    """Logits stay as they are."""
    (tmp_path / "mine.csv").write_text("name,m,n,k,role\nhead,16,32000,4096,logits\n")
    measured, gemms = read(report, PAIR), load(tmp_path / "mine.csv", *GIVEN.values())
    machine = replace(MACHINE, quantiser_um2=dict.fromkeys((core.name for core in PAIR), 1000.0))
    content = document(measured, machine, gemms, GIVEN)
    assert set(content.conditions.assumptions.quantisers.values()) == {0}
    assert total(content, "area of the cores").overhead is not None
    assert not [each.metric for each in content.totals if "quantisers" in each.metric]
    assert cost_tables.markdown(content, "x.png")


def test_mean_power_is_energy_over_time(content):
    power, energy, time = (total(content, metric) for metric in ("mean power", "energy per token", "time per token"))
    for name in content.names:
        assert power.values[name] == pytest.approx(energy.values[name] / time.values[name])


def test_what_the_buffer_cannot_feed_is_said(report):
    measured = read(report, PAIR)
    workload = model("llama-3.1-8b", *GIVEN.values())
    content = document(measured, replace(MACHINE, memory=Memory(250_000, 2e11)), workload, GIVEN)
    shown = {entry.value for entry in content.sensitivity if entry.varied == schema.CORES}
    cut = [entry for entry in content.left_out if entry.varied == schema.CORES]
    assert {*shown, *(float(entry.choice) for entry in cut)} == {16 * 2.0**power for power in range(-4, 5)}
    assert cut
    assert all("needs" in entry.why for entry in cut)
    text = cost_tables.markdown(content, "x.png")
    assert f"- {cut[0].choice}: {cut[0].why}." in text.split("## Sensitivity to the number of cores")[1]
    assert schema.from_json(schema.to_json(content)) == content
    plenty = document(measured, MACHINE, workload, GIVEN)
    assert plenty.left_out is None
    assert "Not in the table" not in cost_tables.markdown(plenty, "x.png")


def test_area_with_a_buffer_counts_both(report):
    measured = read(report, PAIR)
    workload = model("llama-3.1-8b", *GIVEN.values())
    machine = replace(MACHINE, buffer_mm2_per_mib=0.5)
    content = document(measured, machine, workload, GIVEN)
    # 16 cores of 0.06 and 0.063 mm2 beside 4 MiB.
    both = total(content, "area of cores and buffer")
    assert list(both.values.values()) == pytest.approx([0.96 + 2, 1.008 + 2])
    assert both.overhead.value == pytest.approx(3.008 / 2.96 - 1)
    assert both.overhead.low == pytest.approx(0.04 * 0.96 / 2.96)
    per_area = total(content, "throughput per area of cores and buffer")
    assert per_area.overhead.value == pytest.approx(2.96 / 3.008 - 1)
    rate = total(content, "throughput").values["mixfp4-blackwell"]
    assert per_area.values["mixfp4-blackwell"] == pytest.approx(rate / 3.008)
    assert "0.5 mm2 per MiB" in cost_tables.markdown(content, "x.png")
    without = document(measured, MACHINE, workload, GIVEN)
    assert all("buffer" not in entry.metric for entry in without.totals)
    assert "its area is not included" in cost_tables.markdown(without, "x.png")


def test_the_quantiser_is_as_given_or_said_to_be_missing(report):
    measured = read(report, PAIR)
    workload = model("llama-3.1-8b", *GIVEN.values())

    def made(energies):
        return document(measured, replace(MACHINE, costs=EnergyCosts(quantiser_fj=energies)), workload, GIVEN)

    none, same, more = (made(each) for each in ({}, {c.name: 50.0 for c in PAIR}, {PAIR[0].name: 50, PAIR[1].name: 90}))
    elements = {
        design: sum(entry.count * entry.values[design].quantised for entry in none.results)
        for design in ("nvfp4-blackwell", "mixfp4-blackwell")
    }
    # Per token and layer: Q, K, V; scores of 500 tokens in 32 heads; values; O; one of gate and up; down. No logits.
    assert set(elements.values()) == {4 * 32 * (6144 + 32 * 500 + 4096 + 4096 + 14336 + 4096)}
    for content, energies in ((same, (50, 50)), (more, (50, 90))):
        for (design, number), fj in zip(elements.items(), energies, strict=True):
            spent = sum(entry.count * entry.values[design].joules["quantiser"] for entry in content.results)
            assert spent == pytest.approx(number * fj * 1e-15)
    overheads = [total(each, "energy per token").overhead.value for each in (none, same, more)]
    assert overheads[2] > overheads[0] > overheads[1], "an equal quantiser thins the overhead out"
    texts = [cost_tables.markdown(each, "x.png") for each in (none, same, more)]
    assert "Quantiser: its energy is not included; none was given, and no report has it." in texts[0]
    said = "50 fJ (nvfp4-blackwell) and 50 fJ (mixfp4-blackwell) for each element, "
    assert f"{said}as given, without an interval." in texts[1]
    machine = replace(MACHINE, costs=EnergyCosts(quantiser_fj={c.name: 50.0 for c in PAIR}), quantiser_report="q.json")
    assert f"{said}from q.json. Both" in cost_tables.markdown(document(measured, machine, workload, GIVEN), "x.png")
    assert ["Both designs have the same" in text for text in texts] == [False, True, False]


def test_alternatives_are_passes_of_their_own(report):
    measured = read(report, PAIR)
    given = {"phase": "decode", "batch": 16, "sequence": 500}
    workloads = [model("qwen3-30b-a3b", *given.values(), routing) for routing in ("expected", "even")]
    content = document(measured, MACHINE, workloads[0], given, workloads[1])
    found = {(entry.varied, entry.choice): entry for entry in content.alternatives}
    assert [choice for varied, choice in found if varied == "results"] == ["quantised", "bf16", "fp32"]
    assert [choice for varied, choice in found if varied == "attention"] == ["fused", "unfused"]
    assert [choice for varied, choice in found if varied == "experts"] == ["expected", "even"]
    assert [choice for varied, choice in found if varied == "idle cores"] == ["gated", "stepping"]
    for change in (
        {"results": "bf16"},
        {"results": "fp32"},
        {"attention": "unfused"},
        {"idle_gated": False},
    ):
        alone = document(measured, replace(MACHINE, **change), workloads[0], given, workloads[1])
        (key,), (value,) = change.keys(), change.values()
        entry = found["idle cores", "stepping"] if key == "idle_gated" else found[key, value]
        for name in ("nvfp4-blackwell", "mixfp4-blackwell"):
            assert entry.joules[name] == pytest.approx(16 * total(alone, "energy per token").values[name])
            assert entry.seconds[name] == pytest.approx(16 * total(alone, "time per token").values[name])
        assert entry.overhead == total(alone, "energy per token").overhead
        # The first of each is what is assumed.
        first = next(each for each in alone.alternatives if each.varied == entry.varied)
        assert first.seconds == entry.seconds
    even = document(measured, MACHINE, workloads[1], given, workloads[0])
    assert found["experts", "even"].joules["nvfp4-blackwell"] == pytest.approx(
        16 * total(even, "energy per token").values["nvfp4-blackwell"]
    )
    text = cost_tables.markdown(content, "x.png")
    assert "| results | **quantised** |" in text
    assert "| experts | even |" in text
    # What a dense model without attention does not have is not varied.
    assert {entry.varied for entry in _list_of_one(measured).alternatives} == {"results", "idle cores"}


def _list_of_one(measured):
    workload = Workload(
        *(
            "one",
            "",
            ("x",),
            Gemms(8, 8, 64),
            np.ones(1, np.int64),
            ("",),
            None,
            frozenset(),
            ("linear",),
            np.array([8]),
            np.array([1]),
        ),
        *(np.array([-1]), False, "even", np.zeros(1, bool)),
    )
    content = document(measured, MACHINE, workload, {"phase": "decode", "batch": 1, "sequence": 1})
    assert content.conditions.assumptions.attention is content.conditions.assumptions.experts is None
    return content


def test_a_report_from_before_the_assumptions_is_read(content):
    """Its keys are null, and it is rendered without them."""
    old = schema.to_json(content)
    del old["alternatives"], old["conditions"]["assumptions"]
    for key in ("buffer_mm2_per_mib", "buffer_mw_per_mib"):
        del old["conditions"]["memory"][key]
    for entry in old["results"]:
        for found in entry["values"].values():
            for key in ("pass_bytes", "buffer_bytes", "quantised", "busy"):
                del found[key]
            for key in ("quantiser", "buffer leakage"):
                del found["joules"][key]
    report = schema.from_json(old)
    text = cost_tables.markdown(report, "x.png")
    assert "What the assumptions change" not in text
    assert "| energy per token |" in text
    assert cost_plots.cost_png(report).startswith(b"\x89PNG")
    assert len(list(csv.DictReader(io.StringIO(cost_tables.csv(report))))) == 2 * len(report.results)


def test_a_slower_clock_than_the_cores_were_built_for_is_said(report):
    measured = read(report, PAIR)
    workload = model("llama-3.1-8b", *GIVEN.values())
    said = "the cores were built for 10 ns and run at 20 ns"
    texts = [
        cost_tables.markdown(document(measured, replace(MACHINE, clock_ns=clock), workload, GIVEN), "x.png")
        for clock in (10.0, 20.0)
    ]
    assert [said in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.001234, "s", "1.234 ms"),
        (1.5e12, "B/s", "1.5 TB/s"),
        (0, "J", "0 J"),
        (0.5, "1", "50.0 %"),
        (3, "mm2", "3 mm2"),
    ],
)
def test_quantities(value, unit, text):
    assert cost_tables.quantity(value, unit) == text


def test_a_given_clock_changes_time_and_leakage_alone(report):
    measured = read(report, PAIR)
    workload = model("llama-3.1-8b", *GIVEN.values())
    endless = Memory(1 << 40, math.inf)
    slow, fast = (
        cost.document(measured, Machine(16, (1, 2, 8), endless, EnergyCosts(), clock), workload, GIVEN)
        for clock in (20.0, 10.0)
    )
    for one, other in zip(slow.results, fast.results, strict=True):
        for name in ("nvfp4-blackwell", "mixfp4-blackwell"):
            a, b = one.values[name], other.values[name]
            assert a.seconds == pytest.approx(2 * b.seconds)
            assert a.joules["leakage"] == pytest.approx(2 * b.joules["leakage"])
            assert a.joules["active"] == b.joules["active"]


SLOTTED = [NAMED[f"{name}-multi-blackwell"] for name in ("nvfp4", "mixfp4")]
AT_HALF = {**FIGURES, "dynamic power, half rate": ("mW", 120.0, 123.0, (0.02, 0.03))}


def half_rate_report(path, figures=AT_HALF, half=True):
    """A report on two cores with a slot."""
    text = overheads(figures, SLOTTED)
    if half:
        cycles = {"settled": 10, "timed": 5}
        macs = {"element": 32, "core": 2048}
        text["conditions"]["half_rate"] = {"elements": "e4m3", "depth": 64, "macs_per_cycle": macs, "cycles": cycles}
    path.write_text(json.dumps(text))
    return path


def test_attention_at_half_the_rate(tmp_path):
    """By hand: steps, operand bytes, energy and time of scores and values in FP8; everything else as it was."""
    measured = read(half_rate_report(tmp_path / "x.json"), SLOTTED)
    core = measured.cores["nvfp4-multi-blackwell"]
    assert core.half_rate_fj == pytest.approx(1.5 * core.active_fj)
    plain = model("llama-3.1-8b", *GIVEN.values())
    machine = replace(MACHINE, shape=(1, 4, 4))
    both = [document(measured, machine, at_half_rate(plain, which), GIVEN) for which in HALF_RATE]
    assert document(measured, machine, plain, GIVEN) == both[0]
    assert "half_rate" not in json.dumps(schema.to_json(both[0]))
    for before, after in zip(both[0].results, both[1].results, strict=True):
        for name, found in after.values.items():
            other, half = before.values[name], after.gemm in ("scores", "values")
            assert after.half_rate is (True if half else None)
            # K = 128 and 500 take 2 and 8 steps of 64, 4 and 16 of 32.
            assert found.steps == (2 if half else 1) * other.steps
            joules = found.joules["active, half rate"]
            if not half:
                assert joules == 0
                assert found.joules["active"] == other.joules["active"]
                continue
            assert found.joules["active"] == 0
            assert joules == pytest.approx(2 * other.joules["active"] * (1.5 if name.startswith("nv") else 123 / 84))
            # A byte for an element in place of 9 for 16, twice as many steps of half as many elements.
            assert found.operand_bytes == pytest.approx(other.operand_bytes * 16 / 9)
            assert found.core_cycles > other.core_cycles
    written = {entry.gemm: entry.values["nvfp4-multi-blackwell"].dram_write_bytes for entry in both[1].results}
    assert written["Q, K, V"] == 4 * 6144  # what attention reads: a byte an element, without scales
    assert written["O"] == 4 * 4096 * 9 // 16
    # What is written as FP8 passes no quantiser of FP4: of Q, K, V and scores none.
    for entry, before in zip(both[1].results, both[0].results, strict=True):
        for name, found in entry.values.items():
            fp8 = entry.gemm in ("Q, K, V", "scores")
            assert found.quantised == (0 if fp8 else before.values[name].quantised)
            assert before.values[name].quantised or entry.gemm == "LM head"
    assert both[1].conditions.assumptions.half_rate == "attention"
    joules = [
        {entry.choice: entry.joules for entry in each.alternatives if entry.varied == "half rate"} for each in both
    ]
    assert [list(each) for each in joules] == [["none", "attention"], ["attention", "none"]]
    assert joules[0] == joules[1]
    assert schema.from_json(schema.to_json(both[1])) == both[1]
    cores = total(both[1], "energy of the cores per token")
    steps = sum(
        entry.count * sum(entry.values["nvfp4-multi-blackwell"].joules[part] for part in core_parts((HALF_RATE_PART,)))
        for entry in both[1].results
    )
    assert cores.values["nvfp4-multi-blackwell"] == pytest.approx(steps / 4)
    assert 0.0 < cores.overhead.low < cores.overhead.value < cores.overhead.high < 0.08
    text = cost_tables.markdown(both[1], "x.png")
    assert "| scores (FP8) |" in text
    assert "scores and values are in FP8" in text
    assert cost_plots.cost_png(both[1]).startswith(b"\x89PNG")


def test_gemms_of_a_list_at_half_the_rate(tmp_path):
    """Two of three, of which the first writes what the second reads."""
    path = tmp_path / "mine.csv"
    path.write_text("name,m,n,k,rate\nup,64,256,128,half\ngate,64,256,128,half\ndown,64,128,256,\n")
    measured = read(half_rate_report(tmp_path / "x.json"), SLOTTED)
    found = document(measured, replace(MACHINE, shape=(1, 4, 4)), load(path, *GIVEN.values()), GIVEN)
    assert [entry.half_rate for entry in found.results] == [True, True, None]
    assert [entry.values["nvfp4-multi-blackwell"].quantised for entry in found.results] == [0, 64 * 256, 64 * 128]
    assert found.conditions.assumptions.half_rate == "listed"
    assert not [entry for entry in found.alternatives if entry.varied == "half rate"]
    assert "- Half rate: GEMMs of which the list says so are in FP8" in cost_tables.markdown(found, "x.png")
    with pytest.raises(InputError, match="--half-rate attention: mine has no GEMM with the role 'scores' or 'values'"):
        at_half_rate(load(path, *GIVEN.values()), "attention")


def test_a_report_without_power_at_half_the_rate_is_refused(tmp_path):
    measured = read(half_rate_report(tmp_path / "x.json", FIGURES, False), SLOTTED)
    work = at_half_rate(model("llama-3.1-8b", *GIVEN.values()), "attention")
    with pytest.raises(InputError, match="nvfp4-multi-blackwell: what a step at half the rate takes is not in the rep"):
        document(measured, MACHINE, work, GIVEN)
    with pytest.raises(InputError, match="damaged"):
        read(half_rate_report(tmp_path / "y.json", FIGURES), SLOTTED)

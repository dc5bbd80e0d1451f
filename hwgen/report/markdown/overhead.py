"""The overhead of one design over another as CSV and Markdown."""

from __future__ import annotations

from statistics import fmean

import pandas as pd

from hwgen.report.form import (
    counted,
    cycles_words,
    flow_lines,
    half_rate_lines,
    hold_words,
    lacking,
    number,
    operand_words,
    percent,
    recipe_lines,
    table,
)
from hwgen.report.schema import HALF_RATE, SAME_OPERANDS, SEARCHED, TOTAL, OverheadReport
from hwgen.stats import Estimate, across

__all__ = ["PLACEMENT", "beside", "bounds", "csv", "markdown", "summary"]

PLACEMENT = "-placement.png"
"""End of the name of the picture of the placed cores."""

_HEADLINES = ("area", "critical path", "total power", SAME_OPERANDS, "total power, no glitches")
_AT_HALF_RATE = ("total power", "total power, no glitches", "leakage power", "energy per MAC")
_OWN = ("area", "total power")
_HIERARCHY = {"lane array": "one flat module", "element": "composed of blocks", "core": "composed of blocks"}
_ABSOLUTE = {
    "area": "least area",
    "wire length": "least area",
    "critical path": "least area",
    "total power": "least energy",
    "energy per MAC": "least energy",
}
"""Figures that stand beside the overheads of netlists built for a clock, and what those netlists were built for."""


_SCOPES = {
    "lane array": "Lane array: the products of one sum, with decoders of their own, combinational, one flat module.",
    "element": "Element: one processing element with its registers.",
    "core": "Core: the whole array with operand decoders, registers and control.",
}

_LANES_ALONE = (
    "**{} has no flip-flop.** So no core can be built, and lane arrays alone are compared: there are no registers, no"
    " accumulation and no clock tree. Overheads of cores are much smaller than those of lane arrays."
)


def bounds(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """Columns of an estimate in a CSV file, empty where there is none."""
    return {f"{name}_{key}": getattr(estimate, key, None) for key in ("value", "low", "high")}


def csv(report: OverheadReport) -> str:
    """All figures, a row each: library, scope, block, metric, unit, a column per design, overhead."""
    rows = [
        {
            "library": report.conditions.flow.library.name,
            "scope": entry.scope,
            "block": entry.block,
            "metric": entry.metric,
            "unit": entry.unit,
            **entry.values,
            "runs": entry.runs,
            **bounds("overhead", entry.overhead),
            **bounds("contribution", entry.contribution),
            **bounds("self", entry.baseline_against_itself),
        }
        for entry in report.results
    ]
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def _built_for(report: OverheadReport) -> str:
    """Library, clock and wires of netlists that were built for a clock; nothing for others."""
    conditions = report.conditions
    if conditions.physical is None:
        return ""
    wires = "placed wires" if conditions.physical.wires == "placed" else "wires by fanout"
    return f"{conditions.flow.library.name}, {conditions.clock_ns:g} ns, {wires}"


def summary(report: OverheadReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the overheads that most readers come for, a row for each scope."""
    known = {(entry.scope, entry.metric): entry.overhead for entry in report.results if entry.block == TOTAL}
    # An element of a closed core has no path of its own.
    headlines = [each for each in _HEADLINES if any(metric == each for _, metric in known)]
    shown = (*headlines, *([f"total power{HALF_RATE}"] if report.conditions.half_rate else []))
    rows = [[scope, *(percent(known.get((scope, metric))) for metric in shown)] for scope in report.scopes]
    where = _built_for(report)
    return [f"overhead ({where})" if where else "overhead", *shown], rows


def _absolute(report: OverheadReport) -> list[str]:
    """What both designs take, as they were built for a clock."""
    rows = [
        [scope, _HIERARCHY[scope], metric, entry.unit, purpose]
        + [number(entry.values[name]) for name in report.names]
        + [percent(entry.overhead)]
        for scope in report.scopes
        for metric, purpose in _ABSOLUTE.items()
        for entry in report.results
        if (entry.scope, entry.metric, entry.block) == (scope, metric, TOTAL)
    ]
    header = ["scope", "hierarchy", "figure", "unit", "built for", *report.names, "overhead"]
    return ["", f"## What both take: {_built_for(report)}", "", *table(header, rows, 3)]


def _closings(report: OverheadReport) -> list[str]:
    """How netlists met the clock that they were built for."""
    closing = report.conditions.closing
    if closing is None:
        return []
    rows = [
        [
            *(name, scope, f"least {purpose}", f"`{found.lanes_and_slot}`"),
            *(f"{found.clock_ns:g}", f"{found.clock_ns - found.slack_ns:.4g}", f"{found.slack_ns:+.3f}", found.block),
            *(f"{found.resized:,.0f}", f"{found.buffers:,.0f}", str(found.changed or 0)),
            ", ".join(f"{module} {how}" for module, how in found.recipes.items()),
        ]
        for name, purposes in closing.items()
        for purpose, scopes in purposes.items()
        for scope, found in scopes.items()
    ]
    header = ["design", "scope", "built for", "lanes", "clock, ns", "best clock, ns", "slack, ns", "path in"]
    header += ["cells resized", "buffers", "other recipe, runs", "recipes"]
    return [
        "",
        "## How the clock was met",
        "",
        "*Best clock* is the longest path of the slowest run, set-up included; its slack is negative where it misses"
        " the clock. Most of that path lies in the block named. Resized cells and buffers are means over the runs, and"
        " count once for each module. *Other recipe* counts the runs that were late, or took much more area or energy"
        " than the others, until the module on the path took another recipe.",
        "",
        *table(header, rows, 0),
        *lacking(found for purposes in closing.values() for scopes in purposes.values() for found in scopes.values()),
    ]


def _searches(report: OverheadReport) -> list[str]:
    """What independent searches came to, and how far apart they are."""
    searches, units = report.conditions.searches, ("um2", "mW")
    if searches is None:
        return []
    rows = [
        [
            str(each.search),
            "; ".join(f"{name} {', '.join(purposes.values())}" for name, purposes in each.lanes.items()),
            *(
                cell
                for metric in SEARCHED
                for cell in (
                    *(number(each.values[metric][name]) for name in report.names),
                    percent(each.overheads[metric]),
                )
            ),
            f"{1000 * each.slack_ns:+.0f}",
        ]
        for each in searches
    ]
    apart = all(each.first_run is not None for each in searches)
    header = ["search", "lanes for area, energy"]
    for metric, unit in zip(SEARCHED, units, strict=True):
        header += [*(f"{metric} of {name}, {unit}" for name in report.names), f"overhead of {metric}"]
    lines = [
        "",
        "## Independent searches",
        "",
        "A search finds lanes and recipes. Each row is a search of its own, on other perturbations and other operands."
        f" {'Each is measured by runs of its own' if apart else 'All are measured by the same runs'}. Intervals in rows"
        " are those of the runs, so they know nothing of luck in a search. All other figures on this page are of"
        " search 0.",
        "",
        *table([*header, "slack, ps"], rows, len(header) - 1),
        "",
    ]
    for metric in SEARCHED:
        overheads = report.searched(metric)
        low, high = (f"{100 * of(overheads):+.2f} %" for of in (min, max))
        # Runs that all searches have leave their noise in the mean: no interval over searches knows of it.
        mean = percent(across(overheads)) if apart else f"{100 * fmean(overheads):+.2f} %"
        lines.append(f"- Overhead of {metric}: {low} to {high}; mean over the searches {mean}.")
        for name in report.names:
            values = [each.values[metric][name] for each in searches]
            most = 100 * (max(values) / min(values) - 1)
            lines.append(f"- {name}, {metric}: searches differ by up to {most:.2f} %.")
    return lines


def _missed(report: OverheadReport) -> list[str]:
    """By how much cores miss the clock that they were built for."""
    closing = report.conditions.closing or {}
    late = [
        (name, found)
        for name, purposes in closing.items()
        for found in [min((scopes[report.whole] for scopes in purposes.values()), key=lambda each: each.slack_ns)]
        if found.slack_ns < -1e-9
    ]
    if not late:
        return []
    who = "; ".join(f"{name} by {-found.slack_ns:.3g} ns, held by {found.block}" for name, found in late)
    clock = report.conditions.clock_ns
    return ["", f"**The clock of {late[0][1].clock_ns:g} ns is missed:** {who}. Power is stated at {clock:g} ns."]


def _half_rate(report: OverheadReport) -> list[str]:
    """What steps of FP8 cost, and whether the candidate's second format shows there."""
    half = report.conditions.half_rate
    if half is None:
        return []
    found = [
        report.find(scope, f"{metric}{HALF_RATE}")
        for scope in report.scopes
        if scope in half.macs_per_cycle
        for metric in _AT_HALF_RATE
    ]
    rows = [
        [entry.scope, entry.metric.removesuffix(HALF_RATE), entry.unit]
        + [number(entry.values[name]) for name in report.names]
        + [percent(entry.overhead)]
        for entry in found
    ]
    overhead = report.find("core", f"total power{HALF_RATE}").overhead
    lines = [
        "",
        "## At half the rate",
        "",
        f"Steps of {half.elements.upper()} x {half.elements.upper()}, {half.macs_per_cycle['core']:,}"
        " multiply-accumulates in a cycle of the core. The netlists are the same. Both designs work on the same bits.",
        "",
        *table(["scope", "figure", "unit", *report.names, "overhead"], rows, 3),
    ]
    if overhead is not None and overhead.low is not None and overhead.high is not None:
        within = "lies in" if overhead.low <= 0 <= overhead.high else "is outside of"
        lines += [
            "",
            f"No overhead at all, which a format that takes no part in such steps should have, {within} the interval of"
            f" the core's power: {percent(overhead)}.",
        ]
    return lines


def _attribution(report: OverheadReport, scope: str) -> list[list[str]]:
    """Rows of the table that says which block brings which part of a scope's extra area; they add up to the last."""
    rows = []
    for block, entry in report.blocks(scope, "area").items():
        one, other = (entry.values[name] for name in report.names)
        rows.append([block, number(one), number(other), f"{other - one:+.1f}", percent(entry.contribution)])
    if rows:
        total = report.find(scope, "area")
        one, other = (total.values[name] for name in report.names)
        rows.append(["total", number(one), number(other), f"{other - one:+.1f}", percent(total.overhead)])
    return rows


def _paths(report: OverheadReport) -> list[str]:
    """Which part of the critical paths of core and element lies in each block."""
    conditions, lines = report.conditions, []
    for scope, paths in (("core", conditions.critical_path), ("element", conditions.element_path)):
        if paths is None or scope not in report.scopes:
            continue
        blocks = list(dict.fromkeys(block for shares in paths.values() for block in shares))
        lines += ["", f"## Who holds the critical path of the {scope}", ""]
        if scope == "element" and conditions.closing is not None:
            lines += ["It is the longest path in the core from a register of an element to one of the same.", ""]
        lines += table(
            ["block", *report.names],
            [[block, *(f"{100 * paths[name].get(block, 0):.0f} %" for name in report.names)] for block in blocks],
            2,
        )
    return lines


def _head(report: OverheadReport, picture: str) -> list[str]:
    """What was compared, the overheads, and what they mean."""
    baseline, candidate = report.names
    conditions, cores = report.conditions, report.whole == "core"
    header, overheads = summary(report)
    same = conditions.operands[baseline]
    formats = same.a.format if same.a.format == same.b.format else f"{same.a.format} (A) and {same.b.format} (B)"
    return [
        f"# {candidate} against {baseline}",
        "",
        f"Array of {report.designs[0].shape}, library {conditions.flow.library.name}, clock {conditions.clock_ns:g} ns."
        " Overhead = (candidate - baseline) / baseline.",
        *_missed(report),
        *([] if cores else ["", _LANES_ALONE.format(conditions.flow.library.name)]),
        "",
        f"Ratio of the means over {counted(conditions.runs, 'pair')} of runs, each pair under the same perturbation,"
        " power also on the same tensors, with its 95 % interval (docs/method.md).",
        "",
        *table(header, overheads, len(header) - 1),
        "",
        " ".join(_SCOPES[scope] for scope in report.scopes),
        "",
        "Total power: both designs work on the same tensors, each quantised to its own format. The figure holds the"
        " cost of the hardware and the different switching of the data."
        + (
            f" *Same operands*: both work on the same bits, tensors in {formats}. That is what the hardware for a"
            " second format costs a stream that does not use it."
            if SAME_OPERANDS in header
            else ""
        )
        + " *No glitches*: as total power, but every net toggles at most once a cycle."
        + (" *Half rate*: steps of FP8, see below." if conditions.half_rate else ""),
        "",
        "*Nets into the scope* is what drivers outside spend on nets that enter it: the input pins of a design are part"
        " of its cost." + (" An element's power is the mean over the array." if cores else ""),
        "",
        f"![Area and dynamic power by block](<{picture}>)",
        *([] if conditions.placement is None else ["", f"![The placed cores, by block](<{beside(picture)}>)"]),
    ]


def beside(picture: str) -> str:
    """File name of the picture of the placed cores, from that of the plot."""
    return picture.removesuffix(".png") + PLACEMENT


def _wires(report: OverheadReport) -> list[str]:
    """Where wires come from, and how netlists met the clock, as list items."""
    conditions = report.conditions
    physical, closing = conditions.physical, conditions.closing
    if physical is None or closing is None:
        return [
            "- Netlists: as they are mapped, of the least area at any delay; nothing is placed or sized for the clock."
        ]
    lines = []
    if physical.wires == "placed":
        assert physical.utilisation is not None
        lines.append(
            f"- Wires: every netlist is placed ({physical.placer} placer, {100 * physical.utilisation:.0f} % of the"
            f" rows filled). A wire has the length of a Steiner tree over its pins, times {physical.detour:g};"
            f" {physical.capacitance_ff_per_um:.4g} fF and {1e3 * (physical.resistance_kohm_per_um or 0):.3g} ohm per"
            f" um ({physical.source})."
        )
    tried = f", which are the configurations' own and {' and '.join(conditions.lanes)}," if conditions.lanes else ""
    if conditions.slots:
        tried += f" among the slots {', '.join(conditions.slots)}"
    if conditions.selected_from is not None:
        lines.append(f"- Lanes and recipes: as {conditions.selected_from} had them; nothing was searched for here.")
    closure = (
        "- Closure: each netlist is sized and buffered until it meets the clock with these wires, set-up time included."
        " Area and delay are of netlists for least area, power is of netlists for least energy."
    )
    if conditions.lanes is not None:
        closure += (
            f" A search chose among{f' the lanes{tried} and among' if report.whole == 'core' else ''} the recipes, for"
            " each purpose, on netlists of other perturbations than those measured."
        )
    return [*lines, closure]


def _conditions(report: OverheadReport) -> list[str]:
    conditions, cores = report.conditions, report.whole == "core"
    stimulus = conditions.stimulus
    cycles = "; ".join(f"{scope}: {cycles_words(found)}" for scope, found in conditions.cycles.items())
    checked = "; ".join(
        f"{name} "
        + (f"{counted(found.results, 'result')} and " if cores else "")
        + f"{counted(found.lane_sums, 'lane sum')} in each of {counted(conditions.runs, 'run')}"
        for name, found in conditions.checked.items()
    )
    if conditions.slowest_ns is None:
        clock = "the mean over the runs of the core meets it. What single runs take was not recorded."
    else:
        each = {name: report.slowest_of(name) for name in report.names}
        slowest = "; ".join(
            f"{name} " + ", ".join(f"{scope} {delay:.4g} ns" for scope, delay in found.items())
            for name, found in each.items()
        )
        longest = max(delay for found in each.values() for delay in found.values())
        who = "scope" if longest <= conditions.clock_ns else "core"
        clock = f"every run of every {who} meets it. The slowest: {slowest}."
    of_placement = ", wires from where the placement has the loads" if conditions.physical else ""
    tree = f" Clock tree: estimated, buffers with {conditions.flow.largest_fanout} loads each{of_placement}."
    return [
        *flow_lines(conditions.flow, report.designs, conditions.physical),
        *([] if conditions.closing else recipe_lines(conditions.chosen_recipes)),
        *_wires(report),
        "- Hierarchy: the lane array is one flat module"
        + ("; element and core are composed of blocks synthesised on their own." if cores else "."),
        f"- Clock: {conditions.clock_ns:g} ns ({1000 / conditions.clock_ns:.4g} MHz); {clock}",
        f"- Power: from gate-level simulation of the netlists of each run, one step per cycle ({cycles}). Gate delays"
        " of the timing analysis, inertial; inputs change with the clock edge."
        f" {stimulus.tensors.capitalize()} tensors (seed {stimulus.seed}, others in every run), K = {stimulus.depth};"
        f" C gaussian with a standard deviation of 1000.{hold_words(stimulus)}" + (tree if cores else ""),
        *(f"- Operands of {name}: {operand_words(found)}." for name, found in conditions.operands.items()),
        *half_rate_lines(conditions.half_rate),
        f"- Checks: every netlist gave the golden model's bits on random vectors: {checked}.",
        "- Spread: ratio of the means over pairs of runs under the same perturbation (order of the assignments before"
        " synthesis, of the cells after it) and, for power, with the same tensors; 95 % bootstrap interval.",
    ]


def markdown(report: OverheadReport, picture: str) -> str:
    """The report for readers; ``picture`` is the file name of the plot beside it."""
    baseline, _ = report.names
    conditions = report.conditions
    lines = _head(report, picture)
    if conditions.closing is not None:
        lines += [*_absolute(report), *_closings(report), *_searches(report)]
    lines += _half_rate(report)
    own = [
        [scope, *(percent(report.find(scope, metric).baseline_against_itself) for metric in _OWN)]
        for scope in report.scopes
    ]
    if all(row[1] for row in own):
        lines += [
            "",
            f"What the method makes of no difference: {baseline} against itself, two sets of"
            f" {counted(conditions.runs, 'run')} drawn from its own.",
            "",
            *table(["scope", *_OWN], own, len(_OWN)),
        ]
    for scope in report.scopes:
        if rows := _attribution(report, scope):
            lines += ["", f"## Where the extra area of the {scope} sits", ""]
            header = ["block", *(f"{name}, um2" for name in report.names), "extra, um2", "overhead of the whole"]
            lines += table(header, rows, 4)
    lines += _paths(report)
    for scope in report.scopes:
        rows = [
            [entry.metric, entry.block, "" if entry.unit == "1" else entry.unit]
            + [number(entry.values[name]) for name in report.names]
            + [percent(entry.overhead)]
            for entry in report.results
            if entry.scope == scope
        ]
        lines += ["", f"## {scope.capitalize()}", ""]
        lines += table(["metric", "block", "unit", *report.names, "overhead"], rows, 3)
    lines += ["", "## Conditions", "", *_conditions(report), ""]
    return "\n".join(lines)

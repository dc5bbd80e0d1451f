"""An overhead as a JSON document, and its renderings as CSV and Markdown."""

from __future__ import annotations

from typing import Any

import pandas as pd

from hwgen.measure.figures import SCOPES
from hwgen.measure.overhead import Overhead
from hwgen.report.form import SCHEMA, SCHEMA_VERSION, flow_lines, number, percent, table

__all__ = ["KIND", "csv", "document", "find", "find_blocks", "markdown", "summary"]

KIND = "overhead"
"""``kind`` of these reports."""

_HEADLINES = ("area", "critical path", "total power", "total power, same operands", "total power, no glitches")
_OWN = ("area", "total power")


def document(overhead: Overhead) -> dict[str, Any]:
    """The report as one JSON document, see ``docs/report-schema.md``."""
    return {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "kind": KIND,
        "designs": [config.as_dict() for config in (overhead.baseline, overhead.candidate)],
        "conditions": overhead.conditions,
        "results": [
            {
                "configuration": {"baseline": overhead.baseline.name, "candidate": overhead.candidate.name},
                "library": overhead.conditions["library"]["name"],
                **figure.as_dict(),
            }
            for figure in overhead.figures
        ],
    }


def find(report: dict[str, Any], scope: str, metric: str, block: str = "total") -> dict[str, Any]:
    """The entry of ``results`` with the given scope, metric and block."""
    for entry in report["results"]:
        if (entry["scope"], entry["metric"], entry["block"]) == (scope, metric, block):
            return entry
    raise KeyError(f"{scope}, {metric}, {block}")


def find_blocks(report: dict[str, Any], scope: str, metric: str) -> dict[str, dict[str, Any]]:
    """The entries of ``results`` that a scope's total is the sum of, by block; none where nothing is attributed."""
    return {
        entry["block"]: entry
        for entry in report["results"]
        if (entry["scope"], entry["metric"]) == (scope, metric) and entry["block"] != "total"
    }


def csv(report: dict[str, Any]) -> str:
    """All figures, a row each: library, scope, block, metric, unit, a column per design, overhead."""
    rows = [
        {
            **{key: entry[key] for key in ("library", "scope", "block", "metric", "unit")},
            **entry["values"],
            "runs": entry["runs"],
            **{f"overhead_{key}": value for key, value in entry["overhead"].items()},
            **{f"contribution_{key}": value for key, value in entry["contribution"].items()},
            **{f"self_{key}": value for key, value in entry["baseline_against_itself"].items()},
        }
        for entry in report["results"]
    ]
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def summary(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the overheads that most readers come for, a row for each scope."""
    rows = [[scope, *(percent(find(report, scope, metric)["overhead"]) for metric in _HEADLINES)] for scope in SCOPES]
    return ["overhead", *_HEADLINES], rows


def _attribution(report: dict[str, Any], scope: str, names: tuple[str, str]) -> list[list[str]]:
    """Rows of the table that says which block brings which part of a scope's extra area; they add up to the last."""
    rows = []
    for block, entry in find_blocks(report, scope, "area").items():
        one, other = (entry["values"][name] for name in names)
        rows.append([block, number(one), number(other), f"{other - one:+.1f}", percent(entry["contribution"])])
    if rows:
        total = find(report, scope, "area")
        one, other = (total["values"][name] for name in names)
        rows.append(["total", number(one), number(other), f"{other - one:+.1f}", percent(total["overhead"])])
    return rows


def markdown(report: dict[str, Any], picture: str) -> str:
    """The report for readers.

    Parameters
    ----------
    report
        See `document`.
    picture
        File name of the plot beside the report.
    """
    baseline, candidate = report["designs"]
    conditions = report["conditions"]
    library, stimulus = conditions["library"], conditions["stimulus"]
    names = (baseline["name"], candidate["name"])
    formats = " x ".join(dict.fromkeys((baseline["a"], baseline["b"])))
    lines = [
        f"# {names[1]} against {names[0]}",
        "",
        f"Array of {baseline['rows']} x {baseline['columns']} outputs, G = {baseline['groups']}, library"
        f" {library['name']}, clock {conditions['clock_ns']:g} ns. Overhead = (candidate - baseline) / baseline.",
        "",
        f"Ratio of the means over {conditions['runs']} pairs of runs, each pair under the same perturbation, power also"
        " on the same tensors, with its 95 % interval (docs/method.md).",
        "",
        *table(*summary(report), len(_HEADLINES)),
        "",
        "Lane array: 16 lanes with decoders of their own, combinational, one flat module. Element: one processing"
        " element with its registers. Core: the whole array with operand decoders, registers and control.",
        "",
        "Total power: both designs work on the same tensors, each quantised to its own format, so the"
        " figure holds the cost of the hardware and the different switching of the data. *Same operands*: both"
        f" work on the same bits, tensors in {formats}: what the hardware for a second format costs a stream"
        " that does not use it. *No glitches*: as total power, but every net toggles at most once a cycle.",
        "",
        "*Nets into the scope* is what drivers outside spend on nets that enter it: the input pins of a design are part"
        " of its cost. An element's power is the mean over the array.",
        "",
        f"![Area and dynamic power by block](<{picture}>)",
    ]
    own = [
        [scope, *(percent(find(report, scope, metric)["baseline_against_itself"]) for metric in _OWN)]
        for scope in SCOPES
    ]
    if all(row[1] for row in own):
        lines += [
            "",
            f"What the method makes of no difference: {names[0]} against itself, two sets of {conditions['runs']} runs"
            " drawn from its own.",
            "",
            *table(["scope", *_OWN], own, len(_OWN)),
        ]
    for scope in SCOPES:
        rows = _attribution(report, scope, names)
        if rows:
            lines += ["", f"## Where the extra area of the {scope} sits", ""]
            lines += table(
                ["block", f"{names[0]}, um2", f"{names[1]}, um2", "extra, um2", "overhead of the whole"], rows, 4
            )
    paths = conditions["critical_path"]
    blocks = list(dict.fromkeys(block for shares in paths.values() for block in shares))
    lines += ["", "## Who holds the critical path of the core", ""]
    lines += table(
        ["block", *names],
        [[block, *(f"{100 * paths[name].get(block, 0):.0f} %" for name in names)] for block in blocks],
        2,
    )
    for scope in SCOPES:
        rows = [
            [entry["metric"], entry["block"], "" if entry["unit"] == "1" else entry["unit"]]
            + [number(entry["values"][name]) for name in names]
            + [percent(entry["overhead"])]
            for entry in report["results"]
            if entry["scope"] == scope
        ]
        lines += ["", f"## {scope.capitalize()}", ""]
        lines += table(["metric", "block", "unit", *names, "overhead"], rows, 3)
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in stimulus["e1m2_share_of_blocks_of_a"].items())
    each = "; ".join(
        f"{name} {found['results']:,} results and {found['lane sums']:,} lane sums in each of {found['runs']} runs"
        for name, found in conditions["checked_each_run"].items()
    )
    cycles = "; ".join(
        f"{scope}: {found['settled']:,} cycles for what settles, {found['timed']:,} of them with gate delays"
        for scope, found in stimulus["cycles_per_run"].items()
    )
    lines += [
        "",
        "## Conditions",
        "",
        *flow_lines(conditions),
        *(
            f"- Recipes of {name}: " + ", ".join(f"{module} {how}" for module, how in found.items()) + "."
            for name, found in conditions["chosen_recipes"].items()
        ),
        f"- Hierarchy: {conditions['hierarchy']}.",
        f"- Power: at {1000 / conditions['clock_ns']:.4g} MHz, from gate-level simulation of the netlists of each run,"
        f" one step per cycle ({cycles}). Gate delays {stimulus['delays']}. {stimulus['tensors'].capitalize()} tensors"
        f" (seed {stimulus['seed']}, others in every run), K = {stimulus['depth']}. E1M2 blocks of A: {shares}. Clock"
        f" tree: estimated, buffers with {conditions['largest_fanout']} loads each.",
        f"- Checks: every netlist gave the golden model's bits on random vectors: {each}.",
        f"- Spread: {conditions['spread']}.",
        "",
    ]
    return "\n".join(lines)

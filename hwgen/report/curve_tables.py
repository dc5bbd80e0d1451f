"""Area-delay curves as a JSON document, and its renderings as CSV and Markdown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from hwgen.report.curve import Best, Curve, Point
from hwgen.report.form import SCHEMA, SCHEMA_VERSION, flow_lines, number, percent, table

__all__ = ["KIND", "csv", "document", "markdown", "summary"]

KIND = "area-delay"
"""``kind`` of these reports."""


def _entries(curve: Curve) -> list[dict[str, Any]]:
    names = curve.baseline.name, curve.candidate.name
    first = 0, len(curve.points[0])

    def entry(best: Best, metric: str, field: str, unit: str, limit: str, limit_unit: str) -> dict[str, Any]:
        values, points = {}, {}
        for name, ours, index, offset in zip(names, curve.points, best.chosen, first, strict=True):
            values[name] = None if index is None else float(np.mean(getattr(ours[index], field)))
            points[name] = None if index is None else offset + index
        return {
            "configuration": {"baseline": names[0], "candidate": names[1]},
            "library": curve.conditions["library"]["name"],
            "scope": "core",
            "block": "total",
            "metric": metric,
            "unit": unit,
            "limit": {"metric": limit, "unit": limit_unit, "value": best.limit},
            "runs": curve.conditions["runs"],
            "values": values,
            "points": points,
            "overhead": asdict(best.overhead) if best.overhead else {"value": None, "low": None, "high": None},
        }

    return [
        *(entry(best, "area", "areas", "um2", "critical path", "ns") for best in curve.at_clock),
        *(entry(best, "critical path", "delays", "ns", "area", "um2") for best in curve.at_area),
    ]


def _point(point: Point, name: str) -> dict[str, Any]:
    return {
        "configuration": name,
        "pipeline": list(point.config.pipeline),
        "latency": point.config.latency,
        "interleave": point.config.interleave,
        "checked": point.checked,
        "recipes": {module: how.name for module, how in point.recipes.items()},
        "area": {"unit": "um2", "runs": point.areas, "value": float(np.mean(point.areas))},
        "critical path": {
            "unit": "ns",
            "runs": point.delays,
            "value": float(np.mean(point.delays)),
            "shares": point.path,
        },
    }


def document(curve: Curve) -> dict[str, Any]:
    """The curves as one JSON document, see ``docs/report-schema.md``."""
    configs = curve.baseline, curve.candidate
    return {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "kind": KIND,
        "designs": [config.as_dict() for config in configs],
        "conditions": curve.conditions,
        "points": [
            _point(point, config.name) for config, ours in zip(configs, curve.points, strict=True) for point in ours
        ],
        "results": _entries(curve),
        "means": {"area": asdict(curve.mean_at_clock), "critical path": asdict(curve.mean_at_area)},
    }


def csv(report: dict[str, Any]) -> str:
    """All points, a row each."""
    rows = [
        {
            "library": report["conditions"]["library"]["name"],
            "configuration": point["configuration"],
            "pipeline": " ".join(point["pipeline"]),
            "latency": point["latency"],
            "interleave": point["interleave"],
            "recipes": " ".join(f"{module}:{how}" for module, how in point["recipes"].items()),
            "area_um2": point["area"]["value"],
            "critical_path_ns": point["critical path"]["value"],
            "runs": len(point["area"]["runs"]),
            "checked": point["checked"],
        }
        for point in report["points"]
    ]
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def _pipeline(point: dict[str, Any]) -> str:
    return ", ".join(point["pipeline"]) or "none"


def _holder(point: dict[str, Any]) -> str:
    """The block that holds most of the critical path."""
    shares = point["critical path"]["shares"]
    most = max(shares, key=shares.__getitem__)
    return f"{most} ({100 * shares[most]:.0f} %)"


def _rows(report: dict[str, Any], metric: str) -> list[list[str]]:
    names = [config["name"] for config in report["designs"]]
    rows = []
    for entry in report["results"]:
        if entry["metric"] == metric:
            values = [entry["values"][name] for name in names]
            rows.append(
                [
                    number(entry["limit"]["value"]),
                    *("not met" if value is None else number(value) for value in values),
                    percent(entry["overhead"]),
                ]
            )
    rows.append(["mean over the range", "", "", percent(report["means"][metric])])
    return rows


def summary(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the areas at equal clocks."""
    names = [config["name"] for config in report["designs"]]
    return ["clock, ns", *(f"{name}, um2" for name in names), "overhead of area"], _rows(report, "area")


def markdown(report: dict[str, Any], picture: str) -> str:
    """The curves for readers.

    Parameters
    ----------
    report
        See `document`.
    picture
        File name of the plot beside the report.
    """
    baseline, candidate = report["designs"]
    conditions = report["conditions"]
    names = (baseline["name"], candidate["name"])
    header, rows = summary(report)
    lines = [
        f"# Area against delay: {names[1]} and {names[0]}",
        "",
        f"Whole core, array of {baseline['rows']} x {baseline['columns']} outputs, G = {baseline['groups']}, library"
        f" {conditions['library']['name']}. Each design takes the pipeline and, module by module, the recipes that suit"
        " it best; every pipeline takes one step per cycle. Means over"
        f" {conditions['runs']} perturbed runs of each module; 95 % intervals hold what the choice among points does"
        " (docs/method.md). Curves of recipes and pipelines are staircases: near a step of one design a single clock"
        " or area says more of the step than of the design; the geometric mean over the range says more.",
        "",
        f"![Area against delay, and the overhead at equal clock](<{picture}>)",
        "",
        "## At equal clock",
        "",
        *table(header, rows, 4),
        "",
        "## At equal area",
        "",
        *table(
            ["area, um2", *(f"{name}, ns" for name in names), "overhead of clock period"],
            _rows(report, "critical path"),
            4,
        ),
        "",
        "## What was chosen at each clock",
        "",
    ]
    chosen = [
        [
            number(entry["limit"]["value"]),
            name,
            _pipeline(point),
            str(point["latency"]),
            str(point["interleave"]),
            _holder(point),
        ]
        for entry in report["results"]
        if entry["metric"] == "area"
        for name in names
        if entry["points"][name] is not None
        for point in [report["points"][entry["points"][name]]]
    ]
    lines += table(
        ["clock, ns", "design", "pipeline registers", "latency", "tiles at once", "holds the critical path"], chosen, 0
    )
    lines += ["", "## All points", ""]
    lines += table(
        ["design", "pipeline registers", "recipes other than area", "critical path held by", "checked", "ns", "um2"],
        [
            [
                point["configuration"],
                _pipeline(point),
                ", ".join(f"{module} {how}" for module, how in point["recipes"].items() if how != "area") or "none",
                _holder(point),
                "yes" if point["checked"] else "no",
                number(point["critical path"]["value"]),
                number(point["area"]["value"]),
            ]
            for point in sorted(
                report["points"], key=lambda point: (names.index(point["configuration"]), point["area"]["value"])
            )
        ],
        2,
    )
    checked = conditions["checked_each_netlist"]
    lines += [
        "",
        "## Conditions",
        "",
        *flow_lines(conditions),
        f"- Checks: {checked['netlists']} netlists, all that figures at equal clock or area rest on, gave the golden"
        f" model's bits on {checked['results']:,} random results each.",
        f"- Spread: {conditions['spread']}.",
        "",
    ]
    return "\n".join(lines)

"""Explorations as a JSON document, and its renderings as CSV and Markdown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from hwgen.measure.explore import Best, Exploration, Point, front
from hwgen.report.form import SCHEMA, SCHEMA_VERSION, flow_lines, number, percent, table

__all__ = ["KIND", "csv", "document", "markdown", "summary"]

KIND = "exploration"
"""``kind`` of these reports."""


def _entries(found: Exploration) -> list[dict[str, Any]]:
    names = found.baseline.name, found.candidate.name
    first = 0, len(found.points[0])

    def entry(best: Best, metric: str, field: str, unit: str, limit: str, limit_unit: str) -> dict[str, Any]:
        values, points = {}, {}
        for name, ours, index, offset in zip(names, found.points, best.chosen, first, strict=True):
            values[name] = None if index is None else float(np.mean(getattr(ours[index], field)))
            points[name] = None if index is None else offset + index
        return {
            "configuration": {"baseline": names[0], "candidate": names[1]},
            "library": found.conditions["library"]["name"],
            "scope": "core",
            "block": "total",
            "metric": metric,
            "unit": unit,
            "limit": {"metric": limit, "unit": limit_unit, "value": best.limit},
            "runs": found.conditions["runs"],
            "values": values,
            "points": points,
            "overhead": asdict(best.overhead) if best.overhead else {"value": None, "low": None, "high": None},
        }

    return [
        *(entry(best, "area", "areas", "um2", "critical path", "ns") for best in found.at_clock),
        *(entry(best, "energy", "energies", "fJ/MAC", "critical path", "ns") for best in found.energy_at_clock),
        *(entry(best, "critical path", "delays", "ns", "area", "um2") for best in found.at_area),
    ]


def _point(point: Point, name: str, on_front: bool) -> dict[str, Any]:
    return {
        "configuration": name,
        "dot": point.config.dot,
        "pipeline": list(point.config.pipeline),
        "leading_zeros": point.config.leading_zeros,
        "latency": point.config.latency,
        "interleave": point.config.interleave,
        "checked": point.checked,
        "front": on_front,
        "recipes": {module: how.name for module, how in point.recipes.items()},
        "area": {"unit": "um2", "runs": point.areas, "value": float(np.mean(point.areas))},
        "critical path": {
            "unit": "ns",
            "runs": point.delays,
            "value": float(np.mean(point.delays)),
            "shares": point.path,
        },
        "energy": {"unit": "fJ/MAC", "runs": point.energies, "value": float(np.mean(point.energies))},
    }


def document(found: Exploration) -> dict[str, Any]:
    """An exploration as one JSON document, see ``docs/report-schema.md``."""
    configs = found.baseline, found.candidate
    return {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "kind": KIND,
        "designs": [config.as_dict() for config in configs],
        "conditions": found.conditions,
        "points": [
            _point(point, config.name, index in best)
            for config, ours in zip(configs, found.points, strict=True)
            for best in [front(ours)]
            for index, point in enumerate(ours)
        ],
        "results": _entries(found),
        "means": {metric: asdict(mean) for metric, mean in found.means.items()},
        "wires": {name: {dot: list(rows) for dot, rows in dots.items()} for name, dots in found.wires.items()},
    }


def csv(report: dict[str, Any]) -> str:
    """All points, a row each."""
    rows = [
        {
            "library": report["conditions"]["library"]["name"],
            "configuration": point["configuration"],
            "dot": point["dot"],
            "pipeline": " ".join(point["pipeline"]),
            "leading_zeros": point["leading_zeros"],
            "latency": point["latency"],
            "interleave": point["interleave"],
            "recipes": " ".join(f"{module}:{how}" for module, how in point["recipes"].items()),
            "area_um2": point["area"]["value"],
            "critical_path_ns": point["critical path"]["value"],
            "energy_fj_per_mac": point["energy"]["value"],
            "front": point["front"],
            "runs": len(point["area"]["runs"]),
            "checked": point["checked"],
        }
        for point in report["points"]
    ]
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def _pipeline(point: dict[str, Any]) -> str:
    registers = ", ".join(point["pipeline"]) or "none"
    return registers if point["leading_zeros"] == "counted" else f"{registers}; leading zeros {point['leading_zeros']}"


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


def _recipes(point: dict[str, Any]) -> str:
    return ", ".join(f"{module} {how}" for module, how in point["recipes"].items() if how != "area") or "none"


def _kinds(report: dict[str, Any], name: str) -> list[list[str]]:
    """The smallest core of each micro-architecture, in the pipeline that all of them were tried with."""
    ours = [p for p in report["points"] if p["configuration"] == name and p["leading_zeros"] == "counted"]
    if not ours:
        return []
    dots = list(dict.fromkeys(point["dot"] for point in ours))
    pipelines = {dot: {tuple(point["pipeline"]) for point in ours if point["dot"] == dot} for dot in dots}
    common = sorted(set.intersection(*pipelines.values()), key=len)
    if not common:
        return []
    smallest = {
        dot: min(
            (point for point in ours if point["dot"] == dot and tuple(point["pipeline"]) == common[0]),
            key=lambda point: point["area"]["value"],
        )
        for dot in dots
    }
    metrics = ("area", "critical path", "energy")
    least = {metric: min(point[metric]["value"] for point in smallest.values()) for metric in metrics}
    rows = []
    for dot, point in sorted(smallest.items(), key=lambda item: item[1]["area"]["value"]):
        values = [point[metric]["value"] for metric in metrics]
        wires = report["wires"][name][dot]
        rows.append(
            [
                name,
                f"`{dot}`",
                str(wires[0]),
                str(wires[1]),
                *(f"{number(v)} ({v / least[m] - 1:+.1%})" for m, v in zip(metrics, values, strict=True)),
            ]
        )
    return rows


def markdown(report: dict[str, Any], picture: str) -> str:
    """The exploration for readers.

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
    by_name = {
        name: sorted(
            (point for point in report["points"] if point["configuration"] == name),
            key=lambda point: point["area"]["value"],
        )
        for name in names
    }
    lines = [
        f"# Micro-architectures, pipelines and recipes: {names[1]} and {names[0]}",
        "",
        f"Whole core, array of {baseline['rows']} x {baseline['columns']} outputs, G = {baseline['groups']}, library"
        f" {conditions['library']['name']}. Both designs are built in the same ways: each takes the micro-architecture"
        " of the dot product, the pipeline and, module by module, the recipes that suit it best; every pipeline takes"
        f" one step per cycle. Means over {conditions['runs']} perturbed runs of each module; 95 % intervals hold what"
        " the choice among points does (docs/method.md). Such curves are staircases: near a step of one design a single"
        " clock or area says more of the step than of the design; the geometric mean over the range says more.",
        "",
        f"![Area, delay and energy of every way to build them, and the overhead at equal clock](<{picture}>)",
        "",
    ]
    kinds = [row for name in names for row in _kinds(report, name)]
    if kinds:
        lines += [
            "## What each micro-architecture costs",
            "",
            "The smallest core of each; in parentheses how much more it takes than the best of its design. Wires: what"
            " the decoders of one row of A and of B hand over to every element of that row.",
            "",
            *table(["design", "dot product", "wires, A", "wires, B", "um2", "critical path, ns", "fJ/MAC"], kinds, 5),
            "",
        ]
    lines += [
        "## Smallest area at equal clock",
        "",
        *table(header, rows, 4),
        "",
        "## Least energy at equal clock",
        "",
        *table(["clock, ns", *(f"{name}, fJ/MAC" for name in names), "overhead of energy"], _rows(report, "energy"), 4),
        "",
        "Energy per multiply-accumulate at work, glitches and clock tree included, without leakage.",
        "",
        "## Shortest clock period at equal area",
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
            {"area": "smallest", "energy": "least energy"}[entry["metric"]],
            name,
            f"`{point['dot']}`",
            _pipeline(point),
            str(point["latency"]),
            str(point["interleave"]),
            _holder(point),
        ]
        for entry in report["results"]
        if entry["metric"] in ("area", "energy")
        for name in names
        if entry["points"][name] is not None
        for point in [report["points"][entry["points"][name]]]
    ]
    lines += table(
        [
            *("clock, ns", "what for", "design", "dot product", "pipeline registers", "latency", "tiles at once"),
            "holds the critical path",
        ],
        chosen,
        0,
    )
    lines += ["", "## All points", "", "On the front: no other one is as good in area, delay and energy at once.", ""]
    lines += table(
        [
            *("design", "dot product", "pipeline registers", "recipes other than area", "critical path held by"),
            *("front", "checked", "ns", "um2", "fJ/MAC"),
        ],
        [
            [
                name,
                f"`{point['dot']}`",
                _pipeline(point),
                _recipes(point),
                _holder(point),
                "yes" if point["front"] else "no",
                "yes" if point["checked"] else "no",
                *(number(point[metric]["value"]) for metric in ("critical path", "area", "energy")),
            ]
            for name, points in by_name.items()
            for point in points
        ],
        3,
    )
    checked, stimulus = conditions["checked_each_netlist"], conditions["stimulus"]
    lines += [
        "",
        "## Conditions",
        "",
        *flow_lines(conditions),
        f"- Operands: {stimulus['tensors']} tensors, seed {stimulus['seed']}, each design's in its own format; energy"
        f" is a mean over {stimulus['settled']:,} cycles of each run, {stimulus['timed']} of them with gate delays.",
        f"- Checks: {checked['netlists']} netlists, all that figures at equal clock or area and the fronts rest on,"
        f" gave the golden model's bits on {checked['results']:,} random results each.",
        f"- Spread: {conditions['spread']}.",
        "",
    ]
    return "\n".join(lines)

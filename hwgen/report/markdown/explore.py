"""Explorations as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from hwgen.report.form import counted, cycles_words, flow_lines, number, percent, table
from hwgen.report.schema import ExplorationReport, Point

__all__ = ["MEANS", "csv", "markdown", "summary"]

MEANS: dict[str, Callable[[Point], float]] = {
    "area": lambda point: float(np.mean(point.areas_um2)),
    "critical path": lambda point: float(np.mean(point.delays_ns)),
    "energy": lambda point: float(np.mean(point.energies_fj_per_mac)),
}
"""Means over the runs of a point: um2, ns, fJ per multiply-accumulate."""


def csv(report: ExplorationReport) -> str:
    """All points, a row each."""
    rows = [
        {
            "library": report.conditions.flow.library.name,
            "configuration": point.design,
            "dot": point.dot,
            "pipeline": " ".join(point.pipeline),
            "leading_zeros": point.leading_zeros,
            "latency": point.latency,
            "interleave": point.interleave,
            "recipes": " ".join(f"{module}:{how}" for module, how in point.recipes.items()),
            "area_um2": MEANS["area"](point),
            "critical_path_ns": MEANS["critical path"](point),
            "energy_fj_per_mac": MEANS["energy"](point),
            "front": point.front,
            "runs": len(point.areas_um2),
            "checked": point.checked,
        }
        for point in report.points
    ]
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def _pipeline(point: Point) -> str:
    registers = ", ".join(point.pipeline) or "none"
    return registers if point.leading_zeros == "counted" else f"{registers}; leading zeros {point.leading_zeros}"


def _holder(point: Point) -> str:
    """The block that holds most of the critical path."""
    shares = point.critical_path
    most = max(shares, key=shares.__getitem__)
    return f"{most} ({100 * shares[most]:.0f} %)"


def _rows(report: ExplorationReport, metric: str) -> list[list[str]]:
    rows = [
        [
            number(entry.limit.value),
            *("not met" if value is None else number(value) for value in (entry.values[name] for name in report.names)),
            percent(entry.overhead),
        ]
        for entry in report.results
        if entry.metric == metric
    ]
    means = report.means
    mean = {"area": means.area, "energy": means.energy, "critical path": means.critical_path}[metric]
    return [*rows, ["mean over the range", "", "", percent(mean)]]


def summary(report: ExplorationReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the areas at equal clocks."""
    return ["clock, ns", *(f"{name}, um2" for name in report.names), "overhead of area"], _rows(report, "area")


def _recipes(point: Point) -> str:
    return ", ".join(f"{module} {how}" for module, how in point.recipes.items() if how != "area") or "none"


def _kinds(report: ExplorationReport, name: str) -> list[list[str]]:
    """The smallest core of each micro-architecture, in the pipeline that all of them were tried with."""
    ours = [point for point in report.points if point.design == name and point.leading_zeros == "counted"]
    if not ours:
        return []
    dots = list(dict.fromkeys(point.dot for point in ours))
    pipelines = {dot: {point.pipeline for point in ours if point.dot == dot} for dot in dots}
    common = sorted(set.intersection(*pipelines.values()), key=len)
    if not common:
        return []
    smallest = {
        dot: min((point for point in ours if point.dot == dot and point.pipeline == common[0]), key=MEANS["area"])
        for dot in dots
    }
    least = {metric: min(mean(point) for point in smallest.values()) for metric, mean in MEANS.items()}
    return [
        [
            name,
            f"`{dot}`",
            *map(str, report.wires[name][dot]),
            *(
                f"{number(value)} ({value / least[metric] - 1:+.1%})"
                for metric, mean in MEANS.items()
                for value in [mean(point)]
            ),
        ]
        for dot, point in sorted(smallest.items(), key=lambda item: MEANS["area"](item[1]))
    ]


def _chosen(report: ExplorationReport) -> list[list[str]]:
    """What was chosen at each clock, and for what."""
    return [
        [
            number(entry.limit.value),
            {"area": "smallest", "energy": "least energy"}[entry.metric],
            name,
            f"`{point.dot}`",
            _pipeline(point),
            str(point.latency),
            str(point.interleave),
            _holder(point),
        ]
        for entry in report.results
        if entry.metric in ("area", "energy")
        for name in report.names
        for place in [entry.points[name]]
        if place is not None
        for point in [report.points[place]]
    ]


def _points(report: ExplorationReport) -> list[list[str]]:
    """All points, by design and area."""
    return [
        [
            name,
            f"`{point.dot}`",
            _pipeline(point),
            _recipes(point),
            _holder(point),
            "yes" if point.front else "no",
            "yes" if point.checked else "no",
            *(number(MEANS[metric](point)) for metric in ("critical path", "area", "energy")),
        ]
        for name in report.names
        for point in sorted((point for point in report.points if point.design == name), key=MEANS["area"])
    ]


def _conditions(report: ExplorationReport) -> list[str]:
    conditions = report.conditions
    stimulus, cycles, checked = conditions.stimulus, conditions.cycles, conditions.checked
    return [
        *flow_lines(conditions.flow, report.designs),
        f"- Operands: {stimulus.tensors} tensors, seed {stimulus.seed}, each design's in its own format; energy is a"
        f" mean over each run's {cycles_words(cycles)}.",
        f"- Checks: {counted(checked.netlists, 'netlist')}, all that figures at equal clock or area and the fronts rest"
        f" on, gave the golden model's bits on {counted(checked.results, 'random result')} each.",
        "- Spread: 95 % bootstrap interval over the runs; each resample chooses its own best points. Which points there"
        " are comes from one pilot run.",
    ]


def markdown(report: ExplorationReport, picture: str) -> str:
    """The exploration for readers; ``picture`` is the file name of the plot beside it."""
    names = report.names
    conditions = report.conditions
    lines = [
        f"# Micro-architectures, pipelines and recipes: {names[1]} and {names[0]}",
        "",
        f"Whole core, array of {report.designs[0].shape}, library {conditions.flow.library.name}. Both designs are"
        " built in the same ways: each takes the micro-architecture of the dot product, the pipeline and, module by"
        " module, the recipes that suit it best. Every pipeline takes one step per cycle. A point meets a clock if its"
        " slowest run does. Means over"
        f" {counted(conditions.runs, 'perturbed run')} of each module; 95 % intervals hold what the choice among points"
        " does (docs/method.md). Such curves are staircases: near a step of one design a single clock or area says more"
        " of the step than of the design. The geometric mean over the range says more.",
        "",
        f"![Area, delay and energy of every way to build them, and the overhead at equal clock](<{picture}>)",
        "",
    ]
    if kinds := [row for name in names for row in _kinds(report, name)]:
        lines += [
            "## What each micro-architecture costs",
            "",
            "The smallest core of each; in parentheses how much more it takes than the best of its design. Wires: what"
            " the decoders of one row of A and of B hand over to every element of that row.",
            "",
            *table(["design", "dot product", "wires, A", "wires, B", "um2", "critical path, ns", "fJ/MAC"], kinds, 5),
            "",
        ]
    header, rows = summary(report)
    chosen = ["clock, ns", "what for", "design", "dot product", "pipeline registers", "latency", "tiles at once"]
    points = ["design", "dot product", "pipeline registers", "recipes other than area", "critical path held by"]
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
        *table([*chosen, "holds the critical path"], _chosen(report), 0),
        "",
        "## All points",
        "",
        "On the front: no other one is as good in area, delay and energy at once.",
        "",
        *table([*points, "front", "checked", "ns", "um2", "fJ/MAC"], _points(report), 3),
        "",
        "## Conditions",
        "",
        *_conditions(report),
        "",
    ]
    return "\n".join(lines)

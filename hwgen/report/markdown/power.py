"""A study of power as a JSON document, and its renderings as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from hwgen.config import TensorCoreConfig
from hwgen.measure.power import SCOPES, Study
from hwgen.power.estimate import KINDS
from hwgen.report.form import SCHEMA, SCHEMA_VERSION, flow_lines, number, percent, table
from hwgen.stats import against_itself

__all__ = ["KIND", "csv", "document", "markdown", "summary"]

KIND = "power"
"""``kind`` of these reports."""


def document(
    baseline: TensorCoreConfig, candidate: TensorCoreConfig, studies: Sequence[Study], conditions: dict[str, Any]
) -> dict[str, Any]:
    """The report as one JSON document, see ``docs/report-schema.md``."""
    results = []
    for study in studies:
        for scope in SCOPES:
            runs = study.milliwatts[scope]
            own = against_itself(runs[baseline.name])
            means = {name: float(np.mean(values)) for name, values in runs.items()}
            femtojoules = 1e3 * conditions["clock_ns"] / conditions["macs_per_cycle"][scope]
            results.append(
                {
                    "situation": study.name,
                    "scope": scope,
                    "configuration": {"baseline": baseline.name, "candidate": candidate.name},
                    "library": conditions["library"]["name"],
                    "runs": len(runs[baseline.name]),
                    "e1m2_share": study.e1m2,
                    "milliwatts": means,
                    "femtojoules_per_mac": {
                        name: value * femtojoules if study.busy else None for name, value in means.items()
                    },
                    "overhead": asdict(study.overhead(scope)),
                    "baseline_against_itself": {"value": None, "low": None, "high": None}
                    if own is None
                    else asdict(own),
                    "milliwatts_by_block_and_kind": study.parts[scope],
                }
            )
    return {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "kind": KIND,
        "designs": [config.as_dict() for config in (baseline, candidate)],
        "conditions": conditions,
        "results": results,
    }


def _names(report: dict[str, Any]) -> tuple[str, str]:
    baseline, candidate = (design["name"] for design in report["designs"])
    return baseline, candidate


def csv(report: dict[str, Any]) -> str:
    """A row for every situation and scope."""
    rows = [
        {
            **{key: entry[key] for key in ("library", "situation", "scope", "runs", "e1m2_share")},
            **{f"{name}_mw": value for name, value in entry["milliwatts"].items()},
            **{f"{name}_fj_per_mac": value for name, value in entry["femtojoules_per_mac"].items()},
            **{f"overhead_{key}": value for key, value in entry["overhead"].items()},
            **{f"self_{key}": value for key, value in entry["baseline_against_itself"].items()},
        }
        for entry in report["results"]
    ]
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def summary(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each situation, at the core."""
    names = _names(report)
    rows = [
        [entry["situation"], *(f"{entry['milliwatts'][name]:.4g}" for name in names), percent(entry["overhead"])]
        for entry in report["results"]
        if entry["scope"] == "core"
    ]
    return ["power of the core", *(f"{name}, mW" for name in names), "overhead"], rows


def markdown(report: dict[str, Any], picture: str) -> str:
    """The report for readers; ``picture`` is the file name of the plot beside it."""
    baseline, _ = report["designs"]
    names = _names(report)
    conditions, results = report["conditions"], report["results"]
    stimulus, clock = conditions["stimulus"], conditions["clock_ns"]
    lines = [
        f"# Power of {names[1]} against {names[0]}",
        "",
        f"Array of {baseline['rows']} x {baseline['columns']} outputs, G = {baseline['groups']}, library"
        f" {conditions['library']['name']}, clock {clock:g} ns ({1000 / clock:.4g} MHz). Overhead = (candidate -"
        f" baseline) / baseline: ratio of the means over {conditions['runs']} pairs of runs ({results[-1]['runs']} from"
        " the third line on), each pair under the same perturbation and on the same tensors, with its 95 % interval."
        " Glitches included.",
        "",
        *table(*summary(report), 3),
        "",
        "At work: a step in every cycle, tensors quantised to the format of each core. E1M2 blocks: that share of all"
        " blocks, drawn at random, is stored as E1M2; the baseline has the same tensors in its own format. Idle: no"
        " step is offered, and the inputs hold still or toggle. Stalled: steps are offered, results are not taken.",
        "",
        f"![Power by block and kind, and overhead by situation](<{picture}>)",
    ]
    for entry in results[: len(SCOPES)]:
        own = entry["baseline_against_itself"]
        lines += ["", f"## {entry['scope'].capitalize()} at work", ""]
        for name in names:
            parts = entry["milliwatts_by_block_and_kind"][name]
            rows = [
                [block, *(number(kinds[kind]) for kind in KINDS), number(sum(kinds.values()))]
                for block, kinds in parts.items()
            ]
            totals = [sum(kinds[kind] for kinds in parts.values()) for kind in KINDS]
            rows.append(["total", *map(number, totals), number(sum(totals))])
            header = [f"{name}, mW", *(kind.replace("_", " ") for kind in KINDS), "total"]
            lines += [*table(header, rows, len(KINDS) + 1), ""]
        lines += [
            "Energy per MAC: "
            + ", ".join(f"{name} {entry['femtojoules_per_mac'][name]:.4g} fJ" for name in names)
            + f". Overhead {percent(entry['overhead'])}"
            + (f"; {names[0]} against itself {percent(own)}." if own["value"] is not None else "."),
        ]
    total = {entry["situation"]: entry["milliwatts"] for entry in results if entry["scope"] == "core"}
    (still,) = (entry for entry in results if (entry["situation"], entry["scope"]) == ("idle", "core"))

    def both(share: Callable[[str], float]) -> str:
        return " and ".join(f"{100 * share(name):.1f} %" for name in names)

    def clock_share(name: str) -> float:
        blocks = still["milliwatts_by_block_and_kind"][name].values()
        return sum(kinds["clock"] + kinds["clock_tree"] for kinds in blocks) / total["idle"][name]

    idle = both(lambda name: total["idle"][name] / total["at work"][name])
    toggling = both(lambda name: (total["idle, inputs toggle"][name] - total["idle"][name]) / total["at work"][name])
    lines += [
        "",
        "## At rest",
        "",
        f"An idle core consumes {idle} of what it does at work ({', '.join(names)}). The clock is"
        f" {both(clock_share)} of that, which is what gating it could save at most. Inputs that toggle meanwhile add"
        f" {toggling} of the power at work.",
        "",
        "## Conditions",
        "",
        *flow_lines(conditions),
        *(
            f"- Recipes of {name}: " + ", ".join(f"{module} {how}" for module, how in found.items()) + "."
            for name, found in conditions["chosen_recipes"].items()
        ),
        f"- Stimulus: {stimulus['tensors']} tensors (seed {stimulus['seed']}, others in every run), K ="
        f" {stimulus['depth']}. In each run {stimulus['cycles_per_run']['settled']:,} cycles for what settles,"
        f" {stimulus['cycles_per_run']['timed']:,} of them with gate delays {stimulus['delays']}; at rest the second"
        " half of each stream.",
        f"- Blocks in an E1M2 format at work: {100 * results[0]['e1m2_share']:.0f} % in A of {names[1]}.",
        f"- Clock tree: estimated, buffers with {conditions['largest_fanout']} loads each.",
        f"- Checks: {conditions['results_checked_each_run']:,} results of every netlist equal the golden model's.",
        "",
    ]
    return "\n".join(lines)

"""A study of power as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from hwgen.report.form import (
    counted,
    cycles_words,
    flow_lines,
    half_rate_lines,
    hold_words,
    number,
    operand_words,
    percent,
    recipe_lines,
    table,
)
from hwgen.report.markdown.overhead import bounds
from hwgen.report.schema import PowerReport, Situation

__all__ = ["csv", "markdown", "summary"]


def csv(report: PowerReport) -> str:
    """A row for every situation and scope."""
    rows = [
        {
            "library": report.conditions.flow.library.name,
            "situation": entry.situation,
            "scope": entry.scope,
            "runs": entry.runs,
            **{
                f"{name}_e1m2_share_of_{side}": operand.e1m2_share
                for name, found in entry.operands.items()
                for side, operand in (("a", found.a), ("b", found.b))
            },
            **{f"{name}_mw": value for name, value in entry.milliwatts.items()},
            **{f"{name}_fj_per_mac": value for name, value in entry.femtojoules_per_mac.items()},
            **bounds("overhead", entry.overhead),
            **bounds("self", entry.baseline_against_itself),
        }
        for entry in report.results
    ]
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def summary(report: PowerReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each situation, at the core."""
    rows = [
        [entry.situation, *(f"{entry.milliwatts[name]:.4g}" for name in report.names), percent(entry.overhead)]
        for entry in report.results
        if entry.scope == "core"
    ]
    return ["power of the core", *(f"{name}, mW" for name in report.names), "overhead"], rows


def _at_work(entry: Situation, names: tuple[str, ...]) -> list[str]:
    """Power of one scope by block and kind, of each design."""
    lines = ["", f"## {entry.scope.capitalize()} at work", ""]
    for name in names:
        parts = entry.milliwatts_by_block_and_kind[name]
        kinds = list(next(iter(parts.values())))
        rows = [
            [block, *(number(found[kind]) for kind in kinds), number(sum(found.values()))]
            for block, found in parts.items()
        ]
        totals = [sum(found[kind] for found in parts.values()) for kind in kinds]
        rows.append(["total", *map(number, totals), number(sum(totals))])
        lines += [*table([f"{name}, mW", *(kind.replace("_", " ") for kind in kinds), "total"], rows, len(kinds) + 1)]
        lines += [""]
    own = entry.baseline_against_itself
    each = ", ".join(f"{name} {entry.femtojoules_per_mac[name] or 0:.4g} fJ" for name in names)
    itself = f"; {names[0]} against itself {percent(own)}" if own else ""
    return [*lines, f"Energy per MAC: {each}. Overhead {percent(entry.overhead)}{itself}."]


def _at_rest(report: PowerReport) -> str:
    """What a core spends that has nothing to do."""
    names = report.names
    work, idle, toggling = (report.at(which, "core") for which in ("at work", "idle", "idle, inputs toggle"))

    def both(share: Callable[[str], float]) -> str:
        return " and ".join(f"{100 * share(name):.1f} %" for name in names)

    def clock_share(name: str) -> float:
        blocks = idle.milliwatts_by_block_and_kind[name].values()
        return sum(kinds["clock"] + kinds["clock_tree"] for kinds in blocks) / idle.milliwatts[name]

    resting = both(lambda name: idle.milliwatts[name] / work.milliwatts[name])
    more = both(lambda name: (toggling.milliwatts[name] - idle.milliwatts[name]) / work.milliwatts[name])
    gated = any(design.settings.get("clock_gating") for design in report.designs)
    could = "" if gated else ", which is what gating it could save at most"
    return (
        f"An idle core consumes {resting} of what it does at work ({', '.join(names)}). The clock is"
        f" {both(clock_share)} of that{could}. Inputs that toggle meanwhile add {more} of the power at work."
    )


def _held(report: PowerReport) -> bool:
    """Whether a situation is one of operands held."""
    return any(entry.situation.startswith("B held") for entry in report.results)


def markdown(report: PowerReport, picture: str) -> str:
    """The report for readers; ``picture`` is the file name of the plot beside it."""
    baseline, candidate = report.names
    conditions, results = report.conditions, report.results
    stimulus, clock = conditions.stimulus, conditions.clock_ns
    drawn = stimulus.tensors if stimulus.layer is None else f"{stimulus.tensors}, B: {stimulus.layer}"
    scopes = list(dict.fromkeys(entry.scope for entry in results))
    held = " B held: its rows stay for that many steps, while those of A are others in each." if _held(report) else ""
    slow = ""
    if half := conditions.half_rate:
        kind = half.elements.upper()
        slow = (
            f" Half rate: steps of {kind} x {kind}, or of the type that is named, the same bits for both, with half as"
            f" many multiply-accumulates: {half.macs_per_cycle['core']:,} in a cycle of the core."
        )
    met = "every run meets it" if conditions.slowest_ns else "the mean over the runs meets it"
    lines = [
        f"# Power of {candidate} against {baseline}",
        "",
        f"Array of {report.designs[0].shape}, library {conditions.flow.library.name}, clock {clock:g} ns"
        f" ({1000 / clock:.4g} MHz). Overhead = (candidate - baseline) / baseline: ratio of the means over"
        f" {counted(conditions.runs, 'pair')} of runs ({results[-1].runs} from the third line on), each pair under the"
        " same perturbation and on the same tensors, with its 95 % interval. Glitches included.",
        "",
        *table(*summary(report), 3),
        "",
        "At work: a step in every cycle, tensors quantised to the format of each core. E1M2 blocks: that share of all"
        " blocks, drawn at random, is stored as E1M2; the baseline has the same tensors in its own format. Idle: no"
        " step is offered, and the inputs hold still or toggle. Stalled: steps are offered, results are not taken."
        + held
        + slow,
        "",
        f"![Power by block and kind, and overhead by situation](<{picture}>)",
    ]
    for entry in results[: len(scopes)]:
        lines += _at_work(entry, report.names)
    lines += [
        "",
        "## At rest",
        "",
        _at_rest(report),
        "",
        "## Conditions",
        "",
        *flow_lines(conditions.flow, report.designs),
        *recipe_lines(conditions.chosen_recipes),
        f"- Clock: {clock:g} ns; {met}.",
        f"- Stimulus: {drawn} tensors (seed {stimulus.seed}, others in every run), K = {stimulus.depth}."
        f"{hold_words(stimulus)} In each run"
        f" {cycles_words(conditions.cycles)}. These are those of the timing analysis, inertial; inputs change with the"
        " clock edge. At rest: the second half of"
        " each stream.",
        *(f"- Operands of {name} at work: {operand_words(found)}." for name, found in results[0].operands.items()),
        *half_rate_lines(conditions.half_rate),
        f"- Clock tree: estimated, buffers with {conditions.flow.largest_fanout} loads each.",
        f"- Checks: {counted(conditions.results_checked_each_run, 'result')} of every netlist equal the golden"
        " model's.",
        "",
    ]
    return "\n".join(lines)

"""What makes a result unstable, in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from hwgen.cells import libraries, reader
from hwgen.report.form import counted
from hwgen.report.markdown.formats import notes
from hwgen.report.precision import WITHIN, asked, half_width
from hwgen.report.schema import (
    HALF_RATE,
    SEARCHED,
    TOTAL,
    Closing,
    CostReport,
    Design,
    ExplorationReport,
    FlowConditions,
    FormatsReport,
    LayerReport,
    LibrariesReport,
    Library,
    OverheadReport,
    PowerReport,
    QuantiserReport,
    Report,
)
from hwgen.stats import FEWEST, Estimate

__all__ = ["another_library", "findings"]


def findings(report: Report, within: float = WITHIN) -> list[str]:
    """What a reader should know before relying on a report, a sentence each; nothing where all is well.

    Parameters
    ----------
    report
        Of any kind.
    within
        Half-width that intervals should have at most, as a fraction.
    """
    if isinstance(report, OverheadReport):
        return list(_overhead(report, within))
    if isinstance(report, PowerReport):
        return list(_power(report, within))
    if isinstance(report, ExplorationReport):
        return list(_exploration(report, within))
    if isinstance(report, CostReport):
        return list(_few(report.conditions.measured.runs))
    if isinstance(report, FormatsReport):
        return list(_formats(report, within))
    if isinstance(report, LibrariesReport):
        return list(_libraries(report, within))
    if isinstance(report, QuantiserReport):
        return list(_quantisers(report, within))
    if isinstance(report, LayerReport):
        return list(_layer(report))
    return []


@cache
def _digest(library: str) -> str:
    return reader.load(libraries.path(library)).digest


def another_library(report: Report) -> list[str]:
    """A sentence where a default library has changed since the measurement."""
    return [
        f"measured with another {library.name} than the one of this version: measure anew"
        for library in _libraries_of(report)
        if library.name in libraries.names() and library.sha256 != _digest(library.name)
    ]


def _libraries_of(report: Report) -> list[Library]:
    """The libraries that a report was measured with; one of costs only names its own."""
    if isinstance(report, LibrariesReport):
        return [of.conditions.flow.library for of in report.conditions.tables.values()]
    if isinstance(report, OverheadReport | ExplorationReport | PowerReport | FormatsReport | QuantiserReport):
        return [report.conditions.flow.library]
    return []


def _quantisers(report: QuantiserReport, within: float) -> Iterator[str]:
    conditions = report.conditions
    yield from _few(conditions.runs)
    for metric in ("area", "energy per number"):
        known = [
            (figure.overhead.high - figure.overhead.low, candidate, figure.overhead)
            for candidate in report.candidates
            for figure in report.figures(candidate)
            if (figure.metric, figure.block) == (metric, TOTAL)
            if figure.overhead is not None and figure.overhead.low is not None and figure.overhead.high is not None
        ]
        if known:
            _, candidate, overhead = max(known, key=lambda each: each[0])
            yield from _wide(f"{metric} of {candidate}", overhead, within)
    for name, slowest in conditions.slowest_ns.items():
        if slowest > conditions.clock_ns * (1 + 1e-9):
            yield (
                f"{name} takes {slowest:.4g} ns: the clock of {conditions.clock_ns:g} ns that energy is stated at is"
                " not met"
            )


def _overhead(report: OverheadReport, within: float) -> Iterator[str]:
    conditions = report.conditions
    yield from _few(conditions.runs)
    figures = [*(report.find(scope, "area") for scope in report.scopes), report.find(report.whole, "total power")]
    for figure in figures:
        what = f"{figure.metric} of the {figure.scope}"
        yield from _wide(what, figure.overhead, within)
    yield from _apart(report, within)
    if conditions.half_rate is not None:
        # Glitches hang on which path is a little longer, so power without them says more of what has no part.
        for metric in ("total power", "total power, no glitches"):
            yield from _leaks(metric, report.find("core", f"{metric}{HALF_RATE}").overhead)
    if conditions.closing is None:
        yield from _recipes(conditions.chosen_recipes)
    else:
        yield from _closed(conditions.closing)
    yield from _ungated(report.designs, conditions.flow)
    if conditions.slowest_ns is None:
        yield _UNKNOWN


def _power(report: PowerReport, within: float) -> Iterator[str]:
    conditions = report.conditions
    yield from _few(conditions.runs)
    for entry in report.results:
        if entry.scope == "core":
            what = f"power of the core, {entry.situation}"
            yield from _wide(what, entry.overhead, within)
    if conditions.half_rate is not None:
        yield from _leaks("total power", report.at("half rate", "core").overhead)
    yield from _recipes(conditions.chosen_recipes)
    yield from _ungated(report.designs, conditions.flow)
    if conditions.slowest_ns is None:
        yield _UNKNOWN


def _exploration(report: ExplorationReport, within: float) -> Iterator[str]:
    yield from _few(report.conditions.runs)
    yield from _ungated(report.designs, report.conditions.flow)
    means = report.means
    for what, mean in (("area", means.area), ("energy", means.energy), ("clock period", means.critical_path)):
        yield from _wide(f"{what}, mean over the range", mean, within)


def _formats(report: FormatsReport, within: float) -> Iterator[str]:
    said = notes(report)
    yield from _few(min((row.runs for row in report.results if row.runs), default=FEWEST))
    for row in report.results:
        if row.row in said:
            yield f"{row.row}: {said[row.row]}"
        for metric in ("area", "total power"):
            found = row.find("core", metric)
            if found is not None:
                yield from _wide(f"{row.row}: {metric} of the core", found.overhead, asked(found.overhead, within))
    yield from _ungated(report.designs, report.conditions.flow)


def _libraries(report: LibrariesReport, within: float) -> Iterator[str]:
    counts = (len(each.values) for row in report.results for core in row.cores.values() for each in core.figures)
    yield from _few(min(counts, default=FEWEST))
    for row in report.results:
        for label, core in row.cores.items():
            if core.not_measured is not None:
                yield f"{row.row} on {label}: not measured: {core.not_measured}"
            elif not core.met and core.slowest_ns is not None:
                yield f"{row.row} on {label}: misses the clock: takes {core.slowest_ns:.4g} ns"
            for each in core.figures:
                what = f"{row.row} on {label}: {each.metric} of the core"
                yield from _wide(what, each.overhead, asked(each.overhead, within))


_UNKNOWN = "whether every run meets the clock was not recorded: measure anew"


def _ungated(designs: Sequence[Design], flow: FlowConditions) -> Iterator[str]:
    asked = [design.name for design in designs if design.settings.get("clock_gating")]
    if asked and flow.clock_gate is None:
        yield f"{' and '.join(asked)}: clock_gating had no effect, for {flow.library.name} has no clock gate"


def _few(runs: int) -> Iterator[str]:
    if runs < FEWEST:
        yield f"{counted(runs, 'run')} of each module: there is no interval below {FEWEST}; give more with --runs"


def _points(share: float) -> str:
    return f"{100 * share:.2g}"


def _wide(what: str, estimate: Estimate | None, within: float) -> Iterator[str]:
    half = half_width(estimate)
    if estimate is not None and within < half < math.inf:
        yield (
            f"{what}: the overhead of {100 * estimate.value:+.2f} % is known to +-{_points(half)} points, asked for are"
            f" +-{_points(within)}; give more --runs"
        )


def _apart(report: OverheadReport, within: float) -> Iterator[str]:
    """Searches whose overheads differ by more than an interval that is asked for is wide."""
    for metric in SEARCHED:
        found = report.searched(metric)
        if found and max(found) - min(found) > 2 * within:
            yield (
                f"{metric} of the {report.whole}: {len(found)} searches find overheads from {100 * min(found):+.2f} to"
                f" {100 * max(found):+.2f} %; the interval of one search does not have that"
            )


def _leaks(metric: str, overhead: Estimate | None) -> Iterator[str]:
    if overhead is None or overhead.low is None or overhead.high is None:
        return
    if not overhead.low <= 0 <= overhead.high:
        yield (
            f"{metric} of the core at half the rate: the overhead is {100 * overhead.low:+.2f} to"
            f" {100 * overhead.high:+.2f} %, which leaves out zero: what the designs differ in shows where it has no"
            " part, by its registers, by leakage, or by other recipes and sizes"
        )


def _recipes(chosen: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    (one, ours), (other, theirs) = chosen.items()
    for module, how in ours.items():
        if module in theirs and theirs[module] != how:
            yield (
                f"{module}: recipe {how} in {one}, {theirs[module]} in {other}; the overhead, of power above all, is"
                " one of recipes as well as of formats"
            )


def _closed(closing: Mapping[str, Mapping[str, Mapping[str, Closing]]]) -> Iterator[str]:
    """Of what was built for each purpose: clocks that are missed, unlike lanes and recipes."""
    (one, ours), (other, theirs) = closing.items()
    for purpose, scopes in ours.items():
        for scope, mine in scopes.items():
            its = theirs[purpose][scope]
            for name, each in ((one, mine), (other, its)):
                if each.slack_ns < 0:
                    took = f"the slowest run takes {each.clock_ns - each.slack_ns:.4g} ns"
                    yield (
                        f"{scope} of {name} for least {purpose}: {took} and misses {each.clock_ns:g} ns, so its cost is"
                        " a bound"
                    )
            unlike = []
            if mine.lanes_and_slot != its.lanes_and_slot:
                unlike.append(f"{mine.lanes_and_slot} in {one}, {its.lanes_and_slot} in {other}")
            if modules := [name for name, how in mine.recipes.items() if its.recipes.get(name, how) != how]:
                unlike.append(f"other recipes for {', '.join(modules)}")
            if unlike:
                yield (
                    f"{scope} for least {purpose}: {'; '.join(unlike)}; the overhead is one of these as well as of"
                    " formats"
                )


def _layer(report: LayerReport) -> Iterator[str]:
    for row in report.results:
        if row.saturated:
            yield (
                f"{row.name}: {row.saturated:,} of {row.blocks:,} blocks saturate: their numbers are beyond those of"
                " the calibration"
            )

"""What a report on overheads says of two cores, as the cost model wants it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.cost.model import HALF_RATE_PART, CoreCost, Ratio
from hwgen.errors import InputError
from hwgen.measure.netlists.clock import usual_of
from hwgen.report import schema
from hwgen.report.damaged import of_reports
from hwgen.report.schema import HALF_RATE, IDLE, OverheadReport
from hwgen.report.shipped import shipped

__all__ = ["Conditions", "MeasuredCores", "find", "measured", "read"]

_METRICS = {
    "active": "dynamic power",
    "clock": "clock power",
    "clock tree": "clock tree power",
    "leakage": "leakage power",
}
"""What a report calls the power of each part of `hwgen.cost.model.CORE_PARTS`."""
_CLOCK = ("clock", "clock tree")
_DEFAULT_LIBRARY = "generic7"


@dataclass(frozen=True)
class MeasuredCores:
    """What was measured of one core, or of two under one flow.

    Parameters
    ----------
    path
        The report.
    conditions
        Cells, and the clock period that its power is stated at.
    placed
        Whether wires are those of a placement; else they are by fanout, without delay.
    runs
        Perturbed syntheses behind each figure.
    cores
        By name, in the order asked for.
    ratios
        Second core over the first, by ``area`` and part of `hwgen.cost.model.core_parts`; empty for one core.
    closing
        By name and purpose (``area``, ``energy``) how the cores met their clock, and by which lanes; of netlists as
        mapped nothing.
    """

    path: Path
    conditions: Conditions
    placed: bool
    runs: int
    cores: dict[str, CoreCost]
    ratios: dict[str, Ratio]
    closing: Mapping[str, Mapping[str, schema.Closing]] = field(default_factory=dict, compare=False)

    @property
    def library(self) -> str:
        """Name of the cell library."""
        return self.conditions.library

    @property
    def clock_ns(self) -> float:
        """Clock period in ns."""
        return self.conditions.clock_ns


def _command(configs: Sequence[TensorCoreConfig]) -> str:
    """How to measure what no report holds."""
    names = [config.name for config in configs]
    if len(names) == 1:
        return "'hwgen compare' measures it beside another"
    if all(NAMED.get(config.name) == config for config in configs):
        return f"'hwgen compare --baseline {names[0]} --candidate {names[1]}' measures them"
    return "'hwgen compare' measures them, --baseline and --candidate taking files as well as names"


def _designs(configs: Sequence[TensorCoreConfig]) -> list[schema.Design]:
    return [schema.Design(config.as_dict()) for config in configs]


def _on_the_default(report: OverheadReport) -> bool:
    library = report.conditions.flow.library
    return library.name == _DEFAULT_LIBRARY and not library.dont_use


def _at_a_clock(report: OverheadReport) -> bool:
    return report.conditions.closing is not None


def _at_the_usual_clock(report: OverheadReport) -> bool:
    conditions = report.conditions
    period = usual_of(conditions.flow.library.name)
    return period is not None and math.isclose(conditions.clock_ns, period)


def _of_new_operands(report: OverheadReport) -> bool:
    """Operands change with every step, where others hold one of them for some steps."""
    return report.conditions.stimulus.hold == 1


def _of_one_search(report: OverheadReport) -> bool:
    return report.conditions.searches is None


_PREFERRED = (_on_the_default, _at_a_clock, _at_the_usual_clock, _of_new_operands, _of_one_search)
"""Of several reports, those of which the first says yes; of several of these, of which the second does; and so on."""


@dataclass(frozen=True)
class Conditions:
    """What figures of other hardware hold for that a core is to stand beside.

    Parameters
    ----------
    library, digest
        Name of the cell library, and SHA-256 of its text.
    dont_use
        Patterns of the cells that were left alone.
    clock_ns
        Clock period.
    """

    library: str
    digest: str
    dont_use: tuple[str, ...]
    clock_ns: float

    @classmethod
    def of(cls, library: schema.Library, clock_ns: float) -> Conditions:
        """Those of a report."""
        return cls(library.name, library.sha256, library.dont_use, clock_ns)

    def hold_for(self, library: schema.Library, clock_ns: float) -> bool:
        """Whether a report on these cells at this clock has the same."""
        return self.of(library, self.clock_ns) == self and math.isclose(clock_ns, self.clock_ns)

    def __str__(self) -> str:
        return f"{self.library} at {self.clock_ns:g} ns"


def _candidates(
    configs: Sequence[TensorCoreConfig], directory: Path, beside: Conditions | None
) -> list[tuple[Path, OverheadReport]]:
    """Reports on overheads in ``directory`` that hold these configurations; of several, the preferred ones."""
    found: list[tuple[Path, OverheadReport]] = []
    for path in sorted(directory.glob("*.json")) if directory.is_dir() else []:
        try:
            report = schema.load(path)
        except InputError:
            continue  # another file, or one of another version: not what is looked for
        if not isinstance(report, OverheadReport) or report.whole != "core":
            continue
        conditions = report.conditions
        if beside is not None and not beside.hold_for(conditions.flow.library, conditions.clock_ns):
            continue
        if all(design in report.designs for design in _designs(configs)):
            found.append((path, report))
    for preferred in _PREFERRED:
        found = [(path, report) for path, report in found if preferred(report)] or found
    return found


def find(configs: Sequence[TensorCoreConfig], directory: Path, beside: Conditions | None = None) -> MeasuredCores:
    """Read the report on overheads that holds these configurations: one in ``directory``, else one of the package.

    Of several, that on the default library with all its cells; of several of these, that of netlists sized for a clock,
    not of those as mapped; then at the usual clock of the library, with new operands in every step, and not of several
    searches. Reports that say the same of the cores are as good as one: a core may have been measured beside several
    others.

    Parameters
    ----------
    configs
        The cores, baseline first.
    directory
        Where to look first; need not be there.
    beside
        What the report is to hold for; None takes any. Of several that hold for it, that of the most runs.

    Raises
    ------
    InputError
        There is none, or several that say different things, or the one is damaged.
    """
    names = " and ".join(config.name for config in configs)
    candidates = _candidates(configs, directory, beside) or _candidates(configs, shipped(), beside)
    found = [read(path, configs) for path, _ in candidates]
    if not found:
        which, hint = ("", "; --report takes one from elsewhere") if beside is None else (f", {beside},", "")
        raise InputError(
            f"no report on {names}{which} in {str(directory)!r} or among those of hwgen itself:"
            f" {_command(configs)}{hint}"
        )
    if beside is not None:
        return max(found, key=lambda each: each.runs)
    if any(replace(other, path=found[0].path) != found[0] for other in found[1:]):
        choices = []
        for each, (path, report) in zip(found, candidates, strict=True):
            # A core alone may have been measured beside several others.
            others = [f", beside {name}" for name in report.names if name not in each.cores]
            choices.append(f"{path} ({each.library}, {each.clock_ns:g} ns{''.join(others)})")
        raise InputError(f"several reports on {names}: choose one with --report of {', '.join(choices)}")
    return found[0]


def measured(configs: Sequence[TensorCoreConfig], directory: Path, beside: Conditions) -> list[TensorCoreConfig]:
    """Those cores, each alone, that `find` finds a report on."""

    def found(config: TensorCoreConfig) -> bool:
        return bool(_candidates([config], directory, beside) or _candidates([config], shipped(), beside))

    return [config for config in configs if found(config)]


def read(path: Path, configs: Sequence[TensorCoreConfig]) -> MeasuredCores:
    """Read what a report on overheads says of one or two cores.

    Parameters
    ----------
    path
        A report of kind ``overhead``.
    configs
        The cores, baseline first.

    Raises
    ------
    InputError
        Unreadable, of another kind, damaged, or about other configurations.
    """
    report = schema.load(path)
    if not isinstance(report, OverheadReport):
        raise InputError(f"report {str(path)!r}: kind {report.kind!r}; must be one of 'hwgen compare'")
    if report.whole != "core":
        raise InputError(f"report {str(path)!r}: has lane arrays alone; a core takes cells with flip-flops")
    with of_reports(path):
        found = _measured(path, report, configs)
        _check(found)
    return found


def _check(found: MeasuredCores) -> None:
    """Raise ValueError for figures that no core has."""
    positive = {"clock_ns": found.clock_ns}
    from_zero: dict[str, float] = {}
    for name, core in found.cores.items():
        positive |= {f"area of {name}": core.area_um2, f"critical path of {name}": core.critical_path_ns}
        energies = core.active_fj, core.clock_fj, core.clock_tree_fj, core.leakage_mw, core.half_rate_fj or 0.0
        from_zero |= {f"power of {name}": min(energies)}
    positive |= {f"overhead of {part}, as a ratio": ratio.value for part, ratio in found.ratios.items()}
    for what, value in positive.items():
        if value <= 0:
            raise ValueError(f"{what} is {value:g}, must be above 0")
    for what, value in from_zero.items():
        if value < 0:
            raise ValueError(f"{what} is {value:g}, must not be below 0")


def _measured(path: Path, report: OverheadReport, configs: Sequence[TensorCoreConfig]) -> MeasuredCores:
    for config, design in zip(configs, _designs(configs), strict=True):
        if config.name not in report.names:
            raise InputError(
                f"report {str(path)!r}: is on {' and '.join(report.names)}, not on {config.name}; {_command(configs)}"
            )
        if design not in report.designs:
            raise InputError(
                f"report {str(path)!r}: its {config.name} is another configuration of that name; {_command(configs)}"
            )
    conditions = report.conditions
    # With clock gates, a cycle without a step is not what the clock costs at work.
    gated = any(figure.metric.endswith(IDLE) for figure in report.results)
    metrics = {part: f"{metric}{IDLE}" if gated and part in _CLOCK else metric for part, metric in _METRICS.items()}

    if conditions.half_rate is not None:
        metrics[HALF_RATE_PART] = f"{_METRICS['active']}{HALF_RATE}"

    def value(part: str, name: str) -> float:
        return report.find("core", metrics.get(part, part)).values[name]

    def cycle_fj(part: str, name: str) -> float:
        return value(part, name) * 1e3 * conditions.clock_ns  # mW ns are pJ

    cores = {
        config.name: CoreCost(
            config=config,
            area_um2=value("area", config.name),
            # The slowest netlist where it is known: each one behind a figure is to meet a clock.
            critical_path_ns=report.slowest_of(config.name).get("core") or value("critical path", config.name),
            active_fj=cycle_fj("active", config.name),
            clock_fj=cycle_fj("clock", config.name),
            clock_tree_fj=cycle_fj("clock tree", config.name),
            leakage_mw=value("leakage", config.name),
            half_rate_fj=None if conditions.half_rate is None else cycle_fj(HALF_RATE_PART, config.name),
        )
        for config in configs
    }
    ratios = {}
    if len(configs) == 2:
        straight = configs[0].name == report.names[0]
        for key, metric in (("area", "area"), *metrics.items()):
            overhead = report.find("core", metric).overhead
            if overhead is None:
                raise KeyError(f"overhead of {metric}")
            ratio = Ratio.of(overhead)
            ratios[key] = ratio if straight else ratio.inverse
    closing = conditions.closing or {}
    return MeasuredCores(
        path,
        Conditions.of(conditions.flow.library, conditions.clock_ns),
        conditions.physical is not None and conditions.physical.wires == "placed",
        conditions.runs,
        cores,
        ratios,
        {
            config.name: {purpose: scopes["core"] for purpose, scopes in closing.get(config.name, {}).items()}
            for config in configs
        },
    )

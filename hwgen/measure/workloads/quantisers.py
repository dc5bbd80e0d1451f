"""What a report on quantisers says of those that write the operands of measured cores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hwgen.config.quantiser import QUANTISERS
from hwgen.errors import InputError
from hwgen.measure.workloads.cores import MeasuredCores
from hwgen.report import schema
from hwgen.report.schema import QuantiserReport
from hwgen.report.shipped import shipped
from hwgen.stats import Ratio

__all__ = ["QuantiserCosts", "find", "read"]

_NAME = "quantisers.json"
_ENERGY, _AREA = "energy per number", "area"


@dataclass(frozen=True)
class QuantiserCosts:
    """Energy of the quantisers beside some cores.

    Parameters
    ----------
    fj
        Of an element, in fJ, by name of the core; nothing where it is not included.
    ratio
        Of the second core's quantiser to the first one's, with the interval of the report; None where it has none.
    path
        The report; None without one.
    um2
        Area, by name of the core; nothing where it is not included.
    area
        Ratio of the areas, as ``ratio``.
    """

    fj: dict[str, float]
    ratio: Ratio | None = None
    path: Path | None = None
    um2: dict[str, float] = field(default_factory=dict)
    area: Ratio | None = None


def find(measured: MeasuredCores, directory: Path) -> QuantiserCosts:
    """What the quantisers beside some cores take, by ``quantisers.json`` in a directory or of the package.

    Parameters
    ----------
    measured
        The cores, and the library they are of.
    directory
        Where to look first; need not be there.

    Returns
    -------
    QuantiserCosts
        Nothing where no report is of the library and the clock, and has the quantiser of each core.
    """
    for path in (directory / _NAME, shipped() / _NAME):
        if path.is_file():
            try:
                return read(path, measured)
            except InputError:
                continue  # of another library or clock, or without one of the quantisers: not what is looked for
    return QuantiserCosts({})


def read(path: Path, measured: MeasuredCores) -> QuantiserCosts:
    """Energies and areas of the quantisers that write operand A of some cores.

    Each is the one that is called by the format of the operand, with the rule and the widths that it has by default.

    Parameters
    ----------
    path
        A report of kind ``quantisers``.
    measured
        The cores.

    Raises
    ------
    InputError
        Unreadable, of another kind, library or clock, or without a quantiser of a core.
    """
    report = schema.load(path)
    if not isinstance(report, QuantiserReport):
        raise InputError(f"report {str(path)!r}: kind {report.kind!r}; must be one of 'hwgen quantiser compare'")
    library, clock_ns = report.conditions.flow.library, report.conditions.clock_ns
    if not measured.conditions.hold_for(library, clock_ns):
        wanted = measured.conditions
        what = f"{library.name} at {clock_ns:g} ns"
        if what == str(wanted):
            what += ", of another text" if library.sha256 != wanted.digest else ", with other cells left out"
        raise InputError(f"report {str(path)!r}: is of {what}; must be of {wanted}, as the cores are")
    figures = {
        metric: [each for each in report.results if (each.metric, each.block) == (metric, schema.TOTAL)]
        for metric in (_ENERGY, _AREA)
    }
    values = {
        metric: {name: value for figure in found for name, value in figure.values.items()}
        for metric, found in figures.items()
    }
    taken = {}
    for core in measured.cores.values():
        name = f"{core.config.formats[0].name}-quantiser"
        if name not in values[_ENERGY] or report.conditions.quantisers[name] != QUANTISERS[name].as_dict():
            raise InputError(
                f"report {str(path)!r}: has no {name}, which {core.config.name} needs;"
                " 'hwgen quantiser compare' measures it where there is one"
            )
        taken[core.config.name] = name
    return QuantiserCosts(
        fj={core: values[_ENERGY][name] for core, name in taken.items()},
        ratio=_ratio(figures[_ENERGY], *taken.values()),
        path=path,
        um2={core: values[_AREA][name] for core, name in taken.items()},
        area=_ratio(figures[_AREA], *taken.values()),
    )


def _ratio(figures: Iterable[schema.Figure], first: str, second: str | None = None) -> Ratio | None:
    """Of two quantisers, with the interval of the comparison of both if there is one."""
    if first == second:
        return Ratio(1, 1, 1)
    for figure in figures:
        if figure.overhead is not None and {*figure.values} == {first, second}:
            ratio = Ratio.of(figure.overhead)
            return ratio if next(iter(figure.values)) == first else ratio.inverse
    return None

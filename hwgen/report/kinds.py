"""Tables and plot of each kind of report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hwgen.errors import InputError
from hwgen.report import form
from hwgen.report.markdown import cost, explore, overhead, power
from hwgen.report.plots import cost as cost_plots
from hwgen.report.plots import overhead as plots

__all__ = ["FORMS", "rendered", "rendered_anew"]

FORMS: dict[str, tuple[Any, Callable[[dict[str, Any]], bytes]]] = {
    overhead.KIND: (overhead, plots.overhead_png),
    explore.KIND: (explore, plots.explore_png),
    power.KIND: (power, plots.power_png),
    cost.KIND: (cost, cost_plots.cost_png),
}
"""Module of the tables, and the function that draws the plot, by kind."""


def rendered(report: dict[str, Any], out: Path, stem: str) -> dict[Path, bytes]:
    """Everything about a report that follows from its JSON, by file."""
    picture = out / f"{stem}.png"
    texts, draw = FORMS[report["kind"]]
    return {
        out / f"{stem}.md": texts.markdown(report, picture.name).encode(),
        out / f"{stem}.csv": texts.csv(report).encode(),
        picture: draw(report),
    }


def rendered_anew(path: Path) -> dict[Path, bytes]:
    """Everything that follows from the JSON of a report, beside it.

    Raises
    ------
    InputError
        It is not a report, of no known kind, or damaged.
    """
    content = form.load(path)
    if content["kind"] not in list(FORMS):
        raise InputError(f"report {str(path)!r}: kind {content['kind']!r}; this hwgen knows {', '.join(FORMS)}")
    try:
        return rendered(content, path.parent, path.stem)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"report {str(path)!r}: damaged ({reason}); write it anew") from None

"""``hwgen formats``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hwgen.cli import options
from hwgen.cli.study import Settings, found_before, reported
from hwgen.cli.types import POINTS, SEED, Late, Names, constant
from hwgen.measure.requests import FormatsRequest

if TYPE_CHECKING:
    from hwgen.measure.netlists.flow import Flow
    from hwgen.report.schema import Report

__all__ = ["command"]


@click.command("formats")
@click.option(
    "--rows",
    "names",
    cls=Late,
    late=lambda: (
        "Rows, with commas, of: "
        + ", ".join(constant("hwgen.measure.formats.rows:every")())
        + ". FORMAT-2x16 has two blocks of 16 in a step, but mxfp4-2x16 one of 32 in two sums."
        + " Or a TOML file of a format of your own."
        + f" {', '.join(constant('hwgen.measure.formats.rows:RULES'))} has the core of another row;"
        + f" without a core, with the reason: {', '.join(constant('hwgen.measure.formats.rows:NOT_BUILT'))}."
        + "  [default: all of these]"
    ),
)
@options.measuring("formats", FormatsRequest.runs)
@options.recipe
@options.clock("core is built for")
@options.wires
@options.placer
@options.lanes("for each row those that can multiply its formats")
@click.option(
    "--within",
    type=POINTS,
    default=100 * FormatsRequest.half_width,
    show_default=True,
    help=(
        "Add runs until area and power of a core are known to so many percentage points; where it takes more than its"
        " baseline, to so many percent of its own."
    ),
)
@click.option(
    "--search",
    is_flag=True,
    help="Search for lanes and recipes of every row, even where a report that comes with hwgen has what was found.",
)
@options.kind
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the tensors.")
@click.option(
    "--model",
    type=Names("hwgen.measure.formats.losses:MODELS"),
    metavar="NAME",
    help="Measure errors on a trained model, too: minilm (extra 'workloads', some minutes for all rows).",
)
def command(
    names: str | None,
    recipe: str | None,
    clock: float | None,
    wires: str | None,
    placer: str | None,
    lanes: tuple[str, ...],
    within: float,
    search: bool,
    kind: str,
    seed: int,
    model: str | None,
    runs: int,
    **settings: Any,
) -> None:
    """Build a core for every block format at one clock: what it costs over NVFP4, and what it loses.

    Lanes and recipes are those of reports that come with hwgen, for rows that they have by the same search. A
    measurement that was killed goes on where it was. Writes NAME.md, .csv, .json and .png to the reports directory,
    and NAME-error.png: error against area and energy.
    """
    from hwgen.mapping import yosys
    from hwgen.measure.formats.rows import BASELINE, row_name, rows_of
    from hwgen.measure.formats.table import measure_formats
    from hwgen.measure.netlists.stimulus import Stimulus
    from hwgen.measure.recorded import rows_found_before

    rows = rows_of([] if names is None else [name.strip() for name in names.split(",")])
    options.check_formats(row.config for row in rows if row.config is not None)
    recipes = None if recipe is None else [yosys.recipe(recipe)]
    request = FormatsRequest(
        BASELINE,
        rows,
        Stimulus(tensors=kind, seed=seed),
        recipe,
        clock,
        options.physical(wires, placer),
        _lanes(lanes),
        runs,
        within / 100,
        model=model,
    )

    measured = Settings(**settings)
    built = any(row.config is not None for row in rows)
    found = found_before(request, measured, rows_found_before) if built and not search else {}
    request = replace(request, selected={name: selected for name, (_, selected) in found.items()})

    def document(flow: Flow) -> Report:
        for report in dict.fromkeys(path for path, _ in found.values()):
            taken = ", ".join(row_name(name) for name, (path, _) in found.items() if path == report)
            said = f"lanes and recipes of {taken} as {report.name} has them; --search looks for them anew"
            click.echo(f"hwgen: {said}", err=True)
        return measure_formats(request, flow, recipes)

    reported(request, document, measured)


def _lanes(asked: tuple[str, ...]) -> tuple[str, ...]:
    """Lanes to choose from besides those of the configurations."""
    options.check_lanes(asked)
    return () if asked == ("none",) else asked or options.LANES

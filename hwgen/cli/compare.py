"""``hwgen compare``, also ``hwgen synth``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hwgen.cli import options
from hwgen.cli.study import Settings, reported
from hwgen.cli.types import PERIOD_NS, SEED, Late, constant
from hwgen.measure.requests import WIRES, OverheadRequest, Physical

if TYPE_CHECKING:
    from hwgen.measure.flow import Flow
    from hwgen.report.schema import Report

__all__ = ["command"]


@click.command("compare")
@options.measurement(None, OverheadRequest.runs)
@click.option(
    "--recipe",
    cls=Late,
    late=lambda: f"One of: {', '.join(constant('hwgen.mapping.yosys:RECIPES'))}.  [default: the best for each module]",
)
@click.option(
    "--clock", type=PERIOD_NS, help="Clock period in ns that every core is built for.  [default: 1 for generic7]"
)
@click.option(
    "--wires",
    type=click.Choice(WIRES),
    default=WIRES[0],
    show_default=True,
    help="Where wires come from: a placement of every netlist, or the number of a net's loads.",
)
@click.option("--placer", default=Physical.placer, show_default=True, help="embedded, or coloquinte if installed.")
@click.option(
    "--as-mapped",
    is_flag=True,
    help="Take netlists as they are mapped, of least area at any delay: nothing is placed, sized or built for a clock.",
)
@options.kind
@options.hold
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the tensors.")
def command(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    clock_gating: bool,
    recipe: str | None,
    clock: float | None,
    wires: str,
    placer: str,
    as_mapped: bool,
    kind: str,
    hold: int,
    seed: int,
    runs: int,
    **settings: Any,
) -> None:
    """Synthesise two configurations and report what the second costs over the first.

    Writes NAME.md, .csv, .json and .png to the reports directory.
    """
    from hwgen.mapping import yosys
    from hwgen.measure.stimulus import Stimulus

    pair = options.pair(size, baseline, candidate, clock_gating)
    recipes = None if recipe is None else [yosys.recipe(recipe)]
    physical = None if as_mapped else Physical(wires, placer)
    request = OverheadRequest(*pair, Stimulus(tensors=kind, seed=seed, hold=hold), recipe, clock, physical, runs)

    def document(flow: Flow) -> Report:
        if as_mapped:
            from hwgen.measure.overhead import measure

            return measure(*pair, flow, recipes, clock_ns=clock, stimulus=request.stimulus, runs=runs).report()
        from hwgen.measure.at_clock import measure_at_clock
        from hwgen.measure.clock import usual

        return measure_at_clock(request, clock or usual(flow.library), flow, recipes).report()

    reported(request, document, Settings(**settings))

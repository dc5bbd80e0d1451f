"""``hwgen compare``, also ``hwgen synth``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hwgen.cli import options
from hwgen.cli.study import Settings, reported
from hwgen.cli.types import PERIOD_NS, SEED, Late, constant
from hwgen.measure.requests import PLACERS, WIRES, OverheadRequest, Physical

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
    "--clock",
    type=PERIOD_NS,
    help="Clock period in ns.  [default: what both designs meet, with 5 % to spare; with --closed, 1 for generic7]",
)
@click.option(
    "--closed",
    is_flag=True,
    help="Place, size and buffer every netlist until it meets the clock; areas then are of netlists for least area,"
    " power of netlists for least energy.",
)
@click.option(
    "--wires",
    type=click.Choice(WIRES),
    default=WIRES[0],
    show_default=True,
    help="With --closed, where wires come from: a placement of every netlist, or the number of a net's loads.",
)
@click.option(
    "--placer",
    type=click.Choice(PLACERS),
    default=Physical.placer,
    show_default=True,
    help="With --closed and placed wires; coloquinte comes with the extra 'place'.",
)
@options.kind
@options.hold
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the tensors.")
def command(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    clock_gating: bool | None,
    recipe: str | None,
    clock: float | None,
    wires: str,
    placer: str,
    closed: bool,
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
    physical = Physical(wires, placer) if closed else None
    request = OverheadRequest(*pair, Stimulus(tensors=kind, seed=seed, hold=hold), recipe, clock, physical, runs)

    def document(flow: Flow) -> Report:
        if not closed:
            from hwgen.measure.overhead import measure

            return measure(*pair, flow, recipes, clock_ns=clock, stimulus=request.stimulus, runs=runs).report()
        from hwgen.measure.at_clock import measure_at_clock
        from hwgen.measure.clock import usual

        return measure_at_clock(request, clock or usual(flow.library), flow, recipes).report()

    reported(request, document, Settings(**settings))

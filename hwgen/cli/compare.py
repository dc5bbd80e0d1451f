"""``hwgen compare``, also ``hwgen synth``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hwgen.cli import options
from hwgen.cli.study import Settings, reported
from hwgen.cli.types import PERIOD_NS, SEED, Late, constant
from hwgen.measure.requests import OverheadRequest

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
    "--clock", type=PERIOD_NS, help="Clock period in ns.  [default: what both designs meet, with 5 % to spare]"
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
    request = OverheadRequest(*pair, Stimulus(tensors=kind, seed=seed, hold=hold), recipe, clock, runs)

    def document(flow: Flow) -> Report:
        from hwgen.measure.overhead import measure

        return measure(*pair, flow, recipes, clock_ns=clock, stimulus=request.stimulus, runs=runs).report()

    reported(request, document, Settings(**settings))

"""``hwgen explore``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hwgen.cli import options
from hwgen.cli.study import Settings, reported
from hwgen.cli.types import PERIOD_NS, Late, Names, constant
from hwgen.measure.requests import ExploreRequest

if TYPE_CHECKING:
    from hwgen.measure.netlists.flow import Flow
    from hwgen.report.schema import Report

__all__ = ["command"]


@click.command("explore")
@options.measurement("explore", ExploreRequest.runs)
@click.option("--clock", "clocks", type=PERIOD_NS, multiple=True, help="In ns; repeat it.  [default: eight]")
@click.option(
    "--dot",
    "dots",
    multiple=True,
    cls=Late,
    late=lambda: (
        f"Micro-architecture of the dot product, of: {', '.join(constant('hwgen.config:DOTS'))}. Repeat it."
        "  [default: all, in one pipeline]"
    ),
)
@click.option(
    "--pipeline",
    "pipelines",
    multiple=True,
    cls=Late,
    late=lambda: (
        "Registers of a pipeline, with commas, of:"
        f" {', '.join(constant('hwgen.config:PIPELINE_REGISTERS'))}; or none. Repeat it.  [default: several]"
    ),
)
@click.option(
    "--leading-zeros",
    multiple=True,
    type=Names("hwgen.config:LEADING_ZEROS"),
    help="How sums are normalised. Repeat it.  [default: counted, in some pipelines anticipated too]",
)
def command(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    clock_gating: bool | None,
    clocks: tuple[float, ...],
    dots: tuple[str, ...],
    pipelines: tuple[str, ...],
    leading_zeros: tuple[str, ...],
    runs: int,
    **settings: Any,
) -> None:
    """Search micro-architectures, pipelines and recipes of both designs for the least area, delay and energy.

    Writes NAME.md, .csv, .json and .png to the reports directory.
    """
    from hwgen.measure.explore.study import explore
    from hwgen.measure.explore.ways import variants

    pair = options.pair(size, baseline, candidate, clock_gating)
    ways = tuple(() if text == "none" else tuple(text.split(",")) for text in pipelines)
    request = ExploreRequest(*pair, dots, ways, leading_zeros, clocks, runs)
    # A wrong register or name is told now, not after the first syntheses.
    for config in pair:
        variants(config, dots, ways, leading_zeros)

    def document(flow: Flow) -> Report:
        found = explore(
            *pair, flow, dots=dots, pipelines=ways, leading_zeros=leading_zeros, clocks_ns=clocks, runs=runs
        )
        return found.report()

    reported(request, document, Settings(**settings))

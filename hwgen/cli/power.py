"""``hwgen power``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwgen.cli import options
from hwgen.cli.study import Settings, reported
from hwgen.cli.types import DIRECTORY, PERIOD_NS, SEED
from hwgen.measure.requests import PowerRequest

if TYPE_CHECKING:
    from hwgen.measure.netlists.flow import Flow
    from hwgen.report.schema import PowerReport

__all__ = ["command"]


@click.command("power")
@options.measurement("power", PowerRequest.runs)
@click.option(
    "--clock", type=PERIOD_NS, help="Clock period in ns.  [default: what both designs meet, with 5 % to spare]"
)
@options.kind
@options.hold
@click.option("--layer", help="Weight matrix of all-MiniLM-L6-v2 as B (extra 'workloads').")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the tensors.")
@click.option("--saif", is_flag=True, help="Write netlist and switching activity of both, NAME-CONFIG.v and .saif.")
@click.option(
    "--export",
    "directory",
    type=DIRECTORY,
    help="Write netlist, SDC, SPEF, SAIF and a script of OpenSTA for both, to DIRECTORY/CONFIG/.",
)
@click.option("--vcd", is_flag=True, help="And waveforms with all glitches, NAME-CONFIG.vcd.")
def command(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    clock_gating: bool | None,
    clock: float | None,
    kind: str,
    hold: int,
    layer: str | None,
    seed: int,
    saif: bool,
    vcd: bool,
    directory: Path | None,
    runs: int,
    **settings: Any,
) -> None:
    """Report power with glitches: by block and kind, by tensor statistics, share of E1M2 blocks, and at rest.

    Writes NAME.md, .csv, .json and .png to the reports directory.
    """
    from hwgen.measure.netlists.export import as_mapped
    from hwgen.measure.netlists.stimulus import Stimulus
    from hwgen.measure.power import study
    from hwgen.power.opensta_script import FILES
    from sim import tensors

    pair = options.pair(size, baseline, candidate, clock_gating)
    if layer is not None:
        tensors.minilm(layer)  # a wrong name is named now, not after the syntheses
    stimulus = Stimulus(tensors=kind, seed=seed, layer=layer, hold=hold)
    request = PowerRequest(*pair, stimulus, clock, runs)

    def document(flow: Flow) -> PowerReport:
        return study(*pair, flow, clock_ns=clock, stimulus=stimulus, runs=runs)

    def files(report: PowerReport, flow: Flow) -> dict[str | Path, bytes]:
        recipes, period = report.conditions.chosen_recipes, report.conditions.clock_ns
        found: dict[str | Path, bytes] = {}
        for config in pair if saif or vcd or directory is not None else ():
            for kind, text in as_mapped(config, recipes[config.name], flow, period, stimulus, vcd).items():
                if kind in ("v", "saif", "vcd") and (saif or vcd):
                    found[f"-{config.name}.{kind}"] = text.encode()
                if kind in FILES and directory is not None:
                    found[directory / config.name / FILES[kind]] = text.encode()
        return found

    reported(request, document, Settings(**settings), files)

"""``hwgen verilog``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hwgen.cli.options import json_option, out
from hwgen.cli.output import print_json, progress
from hwgen.cli.types import FILE, PERIOD_NS, Late, constant
from hwgen.errors import InputError
from hwgen.files import check_directory, check_file

if TYPE_CHECKING:
    from hwgen.config import TensorCoreConfig
    from hwgen.package.constraints import Clock

__all__ = ["command"]


def _clock_help() -> str:
    period = constant("hwgen.package.constraints:DEFAULT_CLOCK").period_ns
    return f"Clock period of the constraints in ns.  [default: {period:g}]"


@click.command("verilog")
@click.argument("configurations", metavar="[CONFIG]...", nargs=-1)
@out(Path("rtl_out"))
@click.option("--clock", type=PERIOD_NS, cls=Late, late=_clock_help)
@click.option(
    "--report",
    "report_file",
    type=FILE,
    help="Take period and lanes from what 'hwgen compare' measured instead.",
)
@click.option(
    "--purpose",
    type=click.Choice(["area", "energy"]),
    help="Which of the lanes of a report: those of least area, or of least energy.  [default: area]",
)
@click.option(
    "--time-unit",
    type=click.Choice(["ns", "ps"]),
    help="Unit of the constraints, which is that of your Liberty files.  [default: that of the platform]",
)
@json_option
def command(
    configurations: tuple[str, ...],
    out: Path,
    clock: float | None,
    report_file: Path | None,
    purpose: str | None,
    time_unit: str | None,
    as_json: bool,
) -> None:
    """Write Verilog of configurations (names or TOML files; all named ones by default), for a flow of your own.

    With it go manifest, testbench and vectors, file lists, constraints, and files for FuseSoC and
    OpenROAD-flow-scripts; see docs/downstream.md.
    """
    from hwgen.config import NAMED
    from hwgen.package import contents
    from hwgen.package.layout import Layout
    from sim.counterpart import resolved

    chosen = [resolved(name) for name in configurations or NAMED]
    if purpose is not None and report_file is None:
        raise InputError(f"--purpose {purpose}: is of a report; give that with --report")
    names = [config.name for config in chosen]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"configuration {twice[0]!r} is given twice, and both would be written to the same file")
    for config in chosen:
        layout = Layout(config)
        for name in (layout.verilog, layout.manifest, layout.core_file):
            check_file(out / name)
        check_directory(out / layout.inside(""))
    cores = [_constrained(config, clock, report_file, purpose or "area") for config in chosen]
    written = []
    with progress() as update:
        for number, (config, period) in enumerate(cores):
            update("Verilog", number, len(chosen))
            if time_unit is not None:
                period = replace(period, platform=replace(period.platform, time_unit=time_unit))
            paths = contents.write(config, out, period)
            written.append({"configuration": config.name, "files": [str(path) for path in paths]})
    if as_json:
        print_json(written)
    else:
        for entry in written:
            click.echo("  ".join(entry["files"]))


def _constrained(
    config: TensorCoreConfig, clock: float | None, report_file: Path | None, purpose: str
) -> tuple[TensorCoreConfig, Clock]:
    """The core, with the lanes of a report if there is one, and the clock of its constraints."""
    from hwgen.package.constraints import DEFAULT_CLOCK, Clock

    if clock is not None and report_file is not None:
        raise InputError("--report gives the clock period: leave --clock out")
    if clock is not None:
        return config, Clock(clock, "as given to 'hwgen verilog --clock'")
    if report_file is None:
        return config, DEFAULT_CLOCK
    from hwgen.measure.workloads import cores
    from hwgen.package.platform import platform_of

    measured = cores.read(report_file, [config])
    longest = measured.cores[config.name].critical_path_ns
    # A file's name may hold anything.
    source = f"that of report {report_file.name!a}, where the slowest netlist of 'hwgen compare' takes"
    wires = "placed wires" if measured.placed else "wires by fanout"
    words = f"{source} {longest:.4g} ns with {measured.library} and {wires}"
    how = measured.closing[config.name].get(purpose)
    if how is None:
        words += ", as mapped"
    else:
        config = how.of(config)
        words += f"; it has these lanes {how.lanes_and_slot} for least {purpose}"
        words += "; there, inputs arrive and outputs are due at clock edges"
    return config, Clock(measured.clock_ns, words, platform_of(measured.library))

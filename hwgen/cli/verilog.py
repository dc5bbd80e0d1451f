"""``hwgen verilog``."""

from __future__ import annotations

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
@click.option("--report", "report_file", type=FILE, help="Take the period from what 'hwgen compare' measured instead.")
@json_option
def command(
    configurations: tuple[str, ...], out: Path, clock: float | None, report_file: Path | None, as_json: bool
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
    names = [config.name for config in chosen]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"configuration {twice[0]!r} is given twice, and both would be written to the same file")
    for config in chosen:
        layout = Layout(config)
        for name in (layout.verilog, layout.manifest, layout.core_file):
            check_file(out / name)
        check_directory(out / layout.inside(""))
    clocks = [_constrained(config, clock, report_file) for config in chosen]
    written = []
    with progress() as update:
        for number, (config, period) in enumerate(zip(chosen, clocks, strict=True)):
            update("Verilog", number, len(chosen))
            paths = contents.write(config, out, period)
            written.append({"configuration": config.name, "files": [str(path) for path in paths]})
    if as_json:
        print_json(written)
    else:
        for entry in written:
            click.echo("  ".join(entry["files"]))


def _constrained(config: TensorCoreConfig, clock: float | None, report_file: Path | None) -> Clock:
    """The clock of a core's constraints."""
    from hwgen.package.constraints import DEFAULT_CLOCK, Clock

    if clock is not None and report_file is not None:
        raise InputError("--report gives the clock period: leave --clock out")
    if clock is not None:
        return Clock(clock, "as given to 'hwgen verilog --clock'")
    if report_file is None:
        return DEFAULT_CLOCK
    from hwgen.measure.workloads import cores
    from hwgen.package.platform import platform_of

    measured = cores.read(report_file, [config])
    longest = measured.cores[config.name].critical_path_ns
    # A file's name may hold anything.
    source = f"that of report {report_file.name!a}, where the slowest netlist of 'hwgen compare' takes"
    wires = "placed wires" if measured.placed else "wires by fanout"
    words = f"{source} {longest:.4g} ns with {measured.library} and {wires}"
    return Clock(measured.clock_ns, words, platform_of(measured.library))

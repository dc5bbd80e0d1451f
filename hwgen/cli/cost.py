"""``hwgen cost``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from hwgen.cli.options import REPORTS, config, json_option, out
from hwgen.cli.study import check_files, written
from hwgen.cli.types import FILE, FROM_ZERO, GRID, MOST_CORES, PERIOD_NS, POSITIVE, Late, Names, Number, constant
from hwgen.errors import InputError

__all__ = ["command"]


_MIB = Number("a number of MiB from 0.001 to below 1e12", lambda number: 0.001 <= number < 1e12)
_GB_PER_SECOND = Number("a number of GB/s from 1e-06 to below 1e12", lambda number: 1e-6 <= number < 1e12)
_ELEMENTS = Number("a number of elements from 1 to below 1e12", lambda number: 1 <= number < 1e12)


def _energy(what: str, source: str) -> dict[str, Any]:
    """An energy whose default is another module's."""
    return {"type": FROM_ZERO, "cls": Late, "late": lambda: f"{what}  [default: {constant(source):g}]"}


_MACHINE = (
    click.option("--cores", type=click.IntRange(1, MOST_CORES), help="Arranged anew for each GEMM.  [default: 64]"),
    click.option("--grid", type=GRID, metavar="[Bx]PxQ", help="ROWSxCOLUMNS of cores instead, or BATCHxROWSxCOLUMNS."),
    click.option("--clock", type=PERIOD_NS, help="Clock period in ns.  [default: that of the report]"),
    click.option("--buffer", "buffer_mib", type=_MIB, default=8, show_default=True, help="In MiB."),
    click.option("--dram", "dram_gb", type=_GB_PER_SECOND, default=819.2, show_default=True, help="In GB/s."),
    click.option(
        "--operands", type=_ELEMENTS, help="FP4 elements a cycle of the buffer.  [default: all that cores take]"
    ),
    click.option("--single-buffered", is_flag=True, help="Nothing is loaded while cores work."),
    click.option("--result-bytes", type=click.IntRange(1, 8), default=4, show_default=True, help="An output in DRAM."),
    click.option("--buffer-energy", **_energy("pJ per byte.", "hwgen.cost.model:SRAM_PJ_PER_BYTE")),
    click.option("--dram-energy", **_energy("pJ per byte.", "hwgen.cost.model:DRAM_PJ_PER_BYTE")),
)
"""Options of the machine that the GEMMs run on."""


def _machine(command: Any) -> Any:
    for option in reversed(_MACHINE):
        command = option(command)
    return command


@click.command("cost")
@click.option("--model", cls=Late, late=lambda: f"One of: {', '.join(constant('hwgen.cost.workloads:models')())}.")
@click.option("--gemms", "gemm_list", type=FILE, help="List of GEMMs instead, CSV or TOML.")
@click.option("--phase", type=Names("hwgen.cost.workloads:PHASES"), default="decode", show_default=True)
@click.option("--batch", type=POSITIVE, default=1, show_default=True, help="Sequences.")
@click.option("--sequence", type=POSITIVE, default=2048, show_default=True, help="Tokens of each; in decode, attended.")
@config("mixfp4-blackwell")
@click.option("--vs", "baseline", help="Configuration to compare with, of the same shape.")
@click.option(
    "--report",
    "report_file",
    type=FILE,
    help="What 'hwgen compare' measured.  [default: in reports/, else what comes with hwgen]",
)
@_machine
@click.option("--timeloop", is_flag=True, help="Write NAME-CONFIG.ert.yaml, .art.yaml and .lib.yaml of each core, too.")
@out(REPORTS)
@click.option("--name", "stem", default="cost", show_default=True, help="Name of the report's files.")
@json_option
def command(
    model: str | None,
    gemm_list: Path | None,
    phase: str,
    batch: int,
    sequence: int,
    name: str,
    baseline: str | None,
    report_file: Path | None,
    timeloop: bool,
    out: Path,
    stem: str,
    as_json: bool,
    **machine: Any,
) -> None:
    """Time and energy of a model's GEMMs on a grid of cores, and what one format costs over another.

    What a core costs comes from a report of 'hwgen compare'. Writes NAME.md, .csv, .json and .png to the
    reports directory.
    """
    from hwgen.cost import export, workloads
    from hwgen.measure import core_costs, cost
    from hwgen.measure.conditions import check_pair
    from hwgen.report.shipped import shipped
    from sim.counterpart import resolved

    if model is not None and gemm_list is not None:
        raise InputError("give one of --model and --gemms, not both")
    if model is None and gemm_list is None:
        raise InputError(f"give --model, one of {', '.join(workloads.models())}, or --gemms with a list of your own")
    configs = [resolved(each) for each in ([name] if baseline is None else [baseline, name])]
    if len(configs) == 2:
        check_pair(*configs)
    check_files(out, stem)
    given = (phase, batch, sequence)
    workload = workloads.load(gemm_list, *given) if gemm_list else workloads.model(model or "", *given)
    measured = core_costs.read(report_file, configs) if report_file else core_costs.find(configs, REPORTS)
    built = _built(measured, **machine)
    content = cost.document(measured, built, workload, {"phase": phase, "batch": batch, "sequence": sequence})
    exports = {
        out / f"{stem}-{core.config.name}.{suffix}": text.encode()
        for core in (measured.cores.values() if timeloop else ())
        for suffix, text in export.exported(core, built.clock_ns, measured.library).items()
    }
    if report_file is None and measured.path.parent == shipped():
        names = " and ".join(measured.cores)
        click.echo(
            f"hwgen: {str(REPORTS)!r} has no report on {names}: {measured.path.name} is taken, which comes with hwgen",
            err=True,
        )
    written(content, out, stem, as_json, exports)


def _built(
    measured: Any,
    cores: int | None,
    grid: tuple[int, int, int] | None,
    clock: float | None,
    buffer_mib: float,
    dram_gb: float,
    operands: float | None,
    single_buffered: bool,
    result_bytes: int,
    buffer_energy: float | None,
    dram_energy: float | None,
) -> Any:
    """The machine (`hwgen.measure.cost.Machine`) that the options describe, with the measured cores."""
    from hwgen.cost.grid import Memory
    from hwgen.cost.model import DRAM_PJ_PER_BYTE, SRAM_PJ_PER_BYTE, EnergyCosts
    from hwgen.measure import cost
    from hwgen.measure.clock import clock_period

    if cores is not None and grid is not None:
        raise InputError("--grid says how many cores there are: leave --cores out")
    memory = Memory(
        buffer_bytes=buffer_mib * (1 << 20),
        dram_bytes_per_second=dram_gb * 1e9,
        operands_per_cycle=math.inf if operands is None else operands,
        double_buffered=not single_buffered,
        result_bytes=result_bytes,
    )
    costs = EnergyCosts(
        SRAM_PJ_PER_BYTE if buffer_energy is None else buffer_energy,
        DRAM_PJ_PER_BYTE if dram_energy is None else dram_energy,
    )
    longest = max(core.critical_path_ns for core in measured.cores.values())
    clock_ns = measured.clock_ns if clock is None else clock_period(clock, longest, measured.library)
    return cost.Machine(math.prod(grid) if grid else cores or 64, grid, memory, costs, clock_ns)

"""``hwgen quantiser``: the commands on hardware quantisers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwgen.cli.options import REPORTS, jobs, json_option, libraries, out
from hwgen.cli.output import print_coverage, print_json, print_missed, print_table, progress
from hwgen.cli.study import Settings, check_files, written
from hwgen.cli.types import JOBS, MACS, PERIOD_NS, POSITIVE, SEED, Names
from hwgen.errors import InputError, ToolError
from hwgen.files import cache_directory, check_file, write_all

if TYPE_CHECKING:
    from hwgen.cells.library import Library
    from hwgen.config import TensorCoreConfig
    from hwgen.config.quantiser import QuantiserConfig
    from sim.verify.quantisers import Comparison

__all__ = ["command"]

_NAMES = "hwgen.config.quantiser:QUANTISERS"
_USUAL_CORES = ("nvfp4-blackwell", "mixfp4-blackwell")


@click.group("quantiser")
def command() -> None:
    """Verify, write and measure hardware quantisers, see docs/quantiser.md."""


def _varied(name: str, selection: str | None, error_bits: int | None, tensor_scale_bits: int | None) -> QuantiserConfig:
    """A named quantiser with other widths or another rule of choice."""
    from hwgen.config.quantiser import named_quantiser

    config = named_quantiser(name)
    if not config.chooses and error_bits is not None:
        raise InputError(f"--error-bits {error_bits}: {name} has one candidate, and no errors; leave it out")
    given: dict[str, Any] = {
        "selection": selection,
        "error_bits": error_bits,
        "tensor_scale_bits": tensor_scale_bits,
    }
    return replace(config, **{field: value for field, value in given.items() if value is not None})


@command.command("verify")
@click.argument("name", metavar="[QUANTISER]", default="mixfp4-quantiser", type=Names(_NAMES))
@click.option("--elements", type=MACS, default=1e8, show_default=True, help="Numbers to compare, at least.")
@click.option("--selection", type=Names("hwgen.config.quantiser:SELECTIONS"), help="Rule of choice.")
@click.option("--error-bits", type=int, help="Bits of an error.")
@click.option("--tensor-scale-bits", type=int, help="Bits of the significand of a tensor scale.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of what is drawn.")
@click.option("--jobs", type=JOBS, default=-1, help="Threads at once.  [default: one for each core]")
@json_option
def verify_command(
    name: str,
    elements: float,
    selection: str | None,
    error_bits: int | None,
    tensor_scale_bits: int | None,
    seed: int,
    jobs: int,
    as_json: bool,
) -> None:
    """Compare the RTL of a quantiser, mixfp4-quantiser by default, with the golden model, bit for bit.

    Every BF16 number comes alone in a block, and beside a block scale of every exponent; then drawn
    tensors, ties, and any bits. Ends at the first block that differs, with status 1. So does a run of
    6.7e7 numbers or more that misses a coverage goal. Needs a C++ compiler.
    """
    from sim.engines.quantisers import CompiledQuantiser
    from sim.verify.quantisers import ENOUGH, verify

    config = _varied(name, selection, error_bits, tensor_scale_bits)
    with progress() as update:
        update("compilation", 0, 1)
        engine = CompiledQuantiser(config)
        update("compilation", 1, 1)
        outcome = verify(engine, int(elements), seed, jobs, lambda done, total: update("numbers", done, total))
    missed = outcome.missed()
    if as_json:
        click.echo(json.dumps({"quantiser": config.name, **outcome.as_dict(), "seed": seed}))
    else:
        _print_comparison(config.name, outcome, seed)
        print_missed(missed)
    if missed and outcome.done >= ENOUGH:
        raise ToolError(f"{config.name}: {len(missed)} coverage goals were not met, the first: {missed[0]}")


def _print_comparison(name: str, outcome: Comparison, seed: int) -> None:
    found = outcome.as_dict()
    shown: list[tuple[str, int | float | str | None]] = [
        *(("quantiser", name), ("elements", found["elements"]), ("cycles", found["cycles"])),
        *(("seconds", found["seconds"]), ("CPU seconds", found["cpu_seconds"])),
        ("elements per second", found["elements_per_second"]),
        *(("goals", found["goals"]), ("hit", found["hit"]), ("complete after", found["complete_after"])),
        ("seed", seed),
    ]
    print_table(
        ["verification", "value"],
        [[key, f"{value:,}" if isinstance(value, int) else str(value)] for key, value in shown],
    )
    print_table(["batch", "numbers"], [[kind, f"{count:,}"] for kind, count in found["batches"].items()])
    print_coverage(found["coverage"])


@command.command("verilog")
@click.argument("names", metavar="[QUANTISER]...", nargs=-1, type=Names(_NAMES))
@out(Path("rtl_out"))
@json_option
def verilog_command(names: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Write Verilog of quantisers (of all named ones by default).

    With each go a manifest of its ports, waivers for Verilator's lint and a picture.
    """
    from hwgen.config.quantiser import QUANTISERS
    from hwgen.package.lint import quantiser_waivers
    from hwgen.package.quantiser_diagram import quantiser_svg
    from hwgen.package.wires import named
    from hwgen.verilog.quantiser import quantiser_manifest, quantiser_verilog

    chosen = list(dict.fromkeys(names)) or list(QUANTISERS)
    for name in chosen:
        for suffix in ("v", "json", "vlt", "svg"):
            check_file(out / f"{name}.{suffix}")
    entries = []
    with progress() as update:
        for number, name in enumerate(chosen):
            update("Verilog", number, len(chosen))
            config = QUANTISERS[name]
            manifest = json.dumps(quantiser_manifest(config).as_dict(), indent=2) + "\n"
            files = {
                out / f"{name}.v": named(quantiser_verilog(config)),
                out / f"{name}.json": manifest,
                out / f"{name}.vlt": quantiser_waivers(name),
                out / f"{name}.svg": quantiser_svg(config),
            }
            write_all({path: text.encode() for path, text in files.items()})
            entries.append({"quantiser": name, "files": [str(path) for path in files]})
    if as_json:
        print_json(entries)
    else:
        for entry in entries:
            click.echo("  ".join(entry["files"]))


@command.command("diagram")
@click.argument("names", metavar="[QUANTISER]...", nargs=-1, type=Names(_NAMES))
@out(Path())
def diagram_command(names: tuple[str, ...], out: Path) -> None:
    """Draw quantisers (all named ones by default) as NAME.svg: modules, ports, registers and the rule of choice."""
    from hwgen.config.quantiser import QUANTISERS
    from hwgen.package.quantiser_diagram import quantiser_svg

    places = {name: out / f"{name}.svg" for name in names or QUANTISERS}
    for path in places.values():
        check_file(path)
    write_all({path: quantiser_svg(QUANTISERS[name]).encode() for name, path in places.items()})
    for path in places.values():
        click.echo(path)


@command.command("compare")
@click.option("--baseline", default="nvfp4-quantiser", show_default=True, type=Names(_NAMES), help="Quantiser.")
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    type=Names(_NAMES),
    default=["mixfp4-quantiser"],
    show_default=True,
    help="Quantiser to compare with it; repeat it for several.",
)
@libraries
@click.option("--clock", type=PERIOD_NS, help="Clock period in ns.  [default: 1 in 7 nm]")
@click.option(
    "--close", "closed", is_flag=True, help="Size and buffer netlists for the clock; else they are as mapped."
)
@click.option("--runs", type=POSITIVE, default=6, show_default=True, help="Perturbed syntheses of each module.")
@click.option(
    "--core",
    "cores",
    multiple=True,
    type=Names("hwgen.config:NAMED"),
    help="Core to state them as a share of, from reports of 'hwgen compare' on this library at this clock; repeat it"
    " for several.  [default: nvfp4-blackwell and mixfp4-blackwell, where there are such reports]",
)
@click.option("--no-cache", is_flag=True, help="Synthesise anew, and keep nothing.")
@jobs
@out(REPORTS, "Directory of the report.")
@click.option("--name", "stem", default="quantisers", show_default=True, help="Name of the report.")
@json_option
def compare_command(
    baseline: str,
    candidates: tuple[str, ...],
    library: str | None,
    liberty: tuple[Path, ...],
    dont_use: tuple[str, ...],
    clock: float | None,
    closed: bool,
    runs: int,
    cores: tuple[str, ...],
    no_cache: bool,
    jobs: int,
    out: Path,
    stem: str,
    as_json: bool,
) -> None:
    """Measure what quantisers cost over another, and beside cores.

    Area, critical path and energy of all from perturbed syntheses; each netlist is compared with the golden
    model. Beside them stands the noise of each on drawn tensors. Writes NAME.md, .csv, .json and .png.
    """
    from hwgen.config import NAMED
    from hwgen.config.quantiser import QUANTISERS
    from hwgen.measure.netlists.clock import usual
    from hwgen.measure.netlists.flow import Flow
    from hwgen.measure.quantisers.table import measure
    from hwgen.measure.requests import QuantiserRequest
    from hwgen.report.check import findings

    check_files(out, stem)
    cells = Settings(library, liberty, dont_use, no_cache, jobs, None, None, out, stem, as_json).cells
    clock_ns = clock or usual(cells)
    chosen = [NAMED[core] for core in dict.fromkeys(cores)] or _usual_cores(cells, clock_ns)
    quantisers = tuple(QUANTISERS[candidate] for candidate in candidates)
    request = QuantiserRequest(QUANTISERS[baseline], quantisers, clock_ns, closed, runs, tuple(chosen))
    with progress() as update:
        report = measure(
            request, Flow(cells, None if no_cache else cache_directory("synthesis"), jobs, progress=update)
        )
    written(report, out, stem, as_json, {})
    for sentence in findings(report):
        click.echo(f"hwgen: {sentence}", err=True)


def _usual_cores(cells: Library, clock_ns: float) -> list[TensorCoreConfig]:
    """The cores of ``--core``'s default that were measured alike; the others are named on stderr."""
    from hwgen.config import NAMED
    from hwgen.measure.workloads.cores import Conditions, measured

    alike = Conditions(cells.name, cells.digest, cells.avoided, clock_ns)
    found = measured([NAMED[name] for name in _USUAL_CORES], REPORTS, alike)
    if missing := [name for name in _USUAL_CORES if name not in {core.name for core in found}]:
        click.echo(f"hwgen: no report on {' and '.join(missing)}, {alike}: shares of them are left out", err=True)
    return found

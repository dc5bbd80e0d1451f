"""The ``hwgen`` command."""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from joblib import parallel, parallel_config
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hwgen import __version__
from hwgen.cells import libraries, reader
from hwgen.cells.library import Library
from hwgen.config import DOTS, LEADING_ZEROS, NAMED, PIPELINE_REGISTERS, TensorCoreConfig, resolve, resolve_pair
from hwgen.cost import export, workloads
from hwgen.cost.grid import Memory
from hwgen.cost.model import DRAM_PJ_PER_BYTE, SRAM_PJ_PER_BYTE, EnergyCosts
from hwgen.cost.schedule import RESULT_BYTES
from hwgen.errors import InputError, ToolError
from hwgen.files import cache_directory, check_directory, write_all
from hwgen.mapping.cache import Cache
from hwgen.mapping.yosys import RECIPES, TIME_LIMIT, recipe
from hwgen.measure import core_costs, cost
from hwgen.measure.explore import PIPELINES, variants
from hwgen.measure.explore import RUNS as EXPLORE_RUNS
from hwgen.measure.explore import explore as explored
from hwgen.measure.flow import Flow
from hwgen.measure.overhead import RUNS, check_pair, clock_period, fingerprint, measure
from hwgen.measure.power import RUNS as POWER_RUNS
from hwgen.measure.power import exported, study
from hwgen.measure.stimulus import Stimulus
from hwgen.package import contents
from hwgen.package.constraints import DEFAULT_CLOCK, Clock
from hwgen.report import form
from hwgen.report.markdown import cost as cost_tables
from hwgen.report.markdown import explore as explore_tables
from hwgen.report.markdown import overhead as tables
from hwgen.report.markdown import power as power_tables
from hwgen.report.plots import cost as cost_plots
from hwgen.report.plots import overhead as plots
from sim import engines, golden, tensors
from sim import verify as verification
from sim.steps import gather, schedule

__all__ = ["cli", "main"]

_REPORTS = Path("reports")
_RTL = Path("rtl_out")
_SHOWN = 20
"""Coverage goals that are listed where they are missed."""


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress display on standard error, if that is a terminal; yields ``update(what, done, total)``."""
    quiet = quiet or not sys.stderr.isatty()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as display:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = display.add_task(what, total=total)
            display.update(tasks[what], completed=done, total=total)

        yield update


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    table = Table(*header)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: let the table take what it needs.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output, and nothing else.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="hwgen")
def cli() -> None:
    """RTL generator and hardware cost model for NVFP4 and MixFP4 tensor cores."""


@cli.command()
@json_option
def configs(as_json: bool) -> None:
    """List the named configurations."""
    if as_json:
        click.echo(json.dumps([config.as_dict() for config in NAMED.values()], indent=2))
        return
    header = ["name", "A", "B", "outputs", "G", "MAC/cycle", "latency"]
    rows = [
        [
            config.name,
            config.operand_format("a"),
            config.operand_format("b"),
            f"{config.rows} x {config.columns}",
            str(config.groups),
            str(config.macs_per_step),
            str(config.latency),
        ]
        for config in NAMED.values()
    ]
    _print_table(header, rows)


@cli.command()
@click.argument("configurations", metavar="[CONFIG]...", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=_RTL, show_default=True, help="Directory.")
@click.option(
    "--clock", type=float, help=f"Clock period of the constraints in ns.  [default: {DEFAULT_CLOCK.period_ns:g}]"
)
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path),
    help="Take the period from what 'hwgen compare' measured instead.",
)
@json_option
def verilog(
    configurations: tuple[str, ...], out: Path, clock: float | None, report_file: Path | None, as_json: bool
) -> None:
    """Write Verilog of configurations (names or TOML files; all named ones by default), for a flow of your own.

    With it go manifest, testbench and vectors, file lists, constraints, and files for FuseSoC and
    OpenROAD-flow-scripts; see docs/downstream.md.
    """
    chosen = [resolve(name) for name in configurations or NAMED]
    check_directory(out)
    names = [config.name for config in chosen]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"configuration {twice[0]!r} is given twice, and both would be written to the same file")
    clocks = [_constrained(config, clock, report_file) for config in chosen]
    written = []
    with _progress(as_json) as update:
        for number, (config, period) in enumerate(zip(chosen, clocks, strict=True)):
            update("Verilog", number, len(chosen))
            paths = contents.write(config, out, period)
            written.append({"configuration": config.name, "files": [str(path) for path in paths]})
    if as_json:
        click.echo(json.dumps(written, indent=2))
    else:
        for entry in written:
            click.echo("  ".join(entry["files"]))


def _constrained(config: TensorCoreConfig, clock: float | None, report_file: Path | None) -> Clock:
    """The clock of a core's constraints."""
    if clock is not None and report_file is not None:
        raise InputError("--report gives the clock period: leave --clock out")
    if clock is not None:
        return Clock(_clock(clock), "as given to 'hwgen verilog --clock'")
    if report_file is None:
        return DEFAULT_CLOCK
    measured = core_costs.read(report_file, [config])
    longest = measured.cores[config.name].critical_path_ns
    # A file's name may hold anything.
    source = f"that of report {report_file.name!a}, where 'hwgen compare' measured a critical path of"
    return Clock(measured.clock_ns, f"{source} {longest:.4g} ns with {measured.library}, wires without delay")


def _from_file(file: Path | None, name: str | None, rows: int | None, letter: str) -> tensors.Tensor | None:
    """An operand from a file, if there is one."""
    if file is None:
        if name is not None:
            raise InputError(f"--{letter}-name {name!r}: names a tensor of a file; give the file with --{letter}")
        return None
    tensor = tensors.load(file, name)
    if rows is not None and rows != tensor.shape[0]:
        option = {"a": "m", "b": "n"}[letter]
        raise InputError(f"--{option} {rows}: {str(file)!r} has {tensor.shape[0]} rows; leave --{option} out")
    return tensor


positive = click.IntRange(min=1, max=1 << 24)


@cli.command()
@click.option("--config", "name", default="mixfp4-small", show_default=True, help="Configuration: name or TOML file.")
@click.option("--m", type=positive, help="Rows of A, generated.  [default: 16]")
@click.option("--n", type=positive, help="Rows of B, generated.  [default: 16]")
@click.option("--k", type=positive, help="Depth, generated.  [default: 64]")
@click.option("--tensors", "kind", type=click.Choice(tensors.KINDS), default=tensors.KINDS[0], show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of what is generated.")
@click.option("--a", "a_file", type=click.Path(path_type=Path), help="A (M x K) from a .npy or .safetensors file.")
@click.option("--a-name", help="Tensor of the --a file.")
@click.option("--b", "b_file", type=click.Path(path_type=Path), help="B (N x K) from a .npy or .safetensors file.")
@click.option("--b-name", help="Tensor of the --b file.")
@click.option("--model", type=click.Choice(["minilm"]), help="Take B from a trained model (extra 'workloads').")
@click.option("--layer", help="Weight matrix of --model; a wrong name lists those there are.")
@click.option("--engine", default="auto", show_default=True, help="auto, python or compiled.")
@click.option("--gaps", type=click.FloatRange(0, 0.99), default=0.0, help="Share of cycles without a step offered.")
@click.option("--stalls", type=click.FloatRange(0, 0.99), default=0.0, help="Share of cycles without a result taken.")
@click.option("--replay", type=click.Path(path_type=Path), help="Vectors instead, as 'hwgen verify' writes them.")
@json_option
@click.pass_context
def simulate(
    context: click.Context,
    name: str,
    m: int | None,
    n: int | None,
    k: int | None,
    kind: str,
    seed: int,
    a_file: Path | None,
    a_name: str | None,
    b_file: Path | None,
    b_name: str | None,
    model: str | None,
    layer: str | None,
    engine: str,
    gaps: float,
    stalls: float,
    replay: Path | None,
    as_json: bool,
) -> None:
    """Run a GEMM, D = A B^T, through the RTL, cycle by cycle, and compare every bit with the golden model.

    Any shape will do: what the tiles have over the edge is filled with zero blocks. Exits with status 1 if
    a bit differs.
    """
    if replay is not None:
        _replay(context, replay, engine, as_json)
        return
    config = resolve(name)
    if (layer is None) != (model is None):
        raise InputError("--model and --layer belong together")
    if model is not None and (b_file is not None or b_name is not None or n is not None):
        raise InputError("--model gives B: leave --b, --b-name and --n out")
    a = _from_file(a_file, a_name, m, "a")
    b = tensors.minilm(layer) if layer is not None else _from_file(b_file, b_name, n, "b")
    depths = {tensor.shape[1] for tensor in (a, b) if tensor is not None} | ({k} if k is not None else set())
    if len(depths) > 1:
        found = [f"{letter} has K = {tensor.shape[1]}" for letter, tensor in (("A", a), ("B", b)) if tensor is not None]
        found += [f"--k is {k}"] if k is not None else []
        raise InputError(f"depth: {', '.join(found)}; they must be the same")
    depth = depths.pop() if depths else 64
    if a is None:
        a = tensors.generate(kind, (m or 16, depth), seed)
    if b is None:
        b = tensors.generate(kind, (n or 16, depth), seed + 1)

    padding = ((0, 0), (0, -a.shape[1] % golden.BLOCK))
    quantized = []
    for letter, file, tensor in (("A", a_file, a), ("B", b_file, b)):
        origin = letter if file is None else f"{letter} from {str(file)!r}"
        if tensor.size == 0:
            raise InputError(f"{origin}: is empty, {tensor.shape}; must have rows and columns")
        try:
            quantized.append(golden.quantize(np.pad(tensor, padding), config.operand_format(letter.lower())))
        except golden.InputError as error:
            raise InputError(f"{origin}: {error}") from None
    qa, qb = quantized
    steps = schedule(config, qa, qb)
    for option, share in (("--gaps", gaps), ("--stalls", stalls)):
        if not 0 <= share < 1:  # NaN passes click's range
            raise InputError(f"{option} {share:g}: must be a share from 0 to below 1")
    core = _engine(config, engine)
    generator = np.random.default_rng(seed)
    # Drawn ahead, so that every engine sees the same pattern.
    length = 1 << 16
    offered, taken = (engines.Pattern(generator.random(length) >= share) for share in (gaps, stalls))
    with _progress(as_json) as update:
        run = core.run(
            steps,
            offer=offered,
            take=taken,
            progress=lambda done: update("steps", done, len(steps)),
        )
    expected = golden.accumulate(
        qa, qb, None, config.groups, config.numerics, fraction_bits=config.fraction_bits, rounding=config.rounding
    ).view(np.uint32)
    got = gather(config, run.results, *expected.shape)
    different = np.argwhere(got != expected)
    macs = a.shape[0] * b.shape[0] * a.shape[1]
    outcome = {
        "configuration": config.name,
        "engine": core.name,
        "m": a.shape[0],
        "n": b.shape[0],
        "k": a.shape[1],
        "macs": macs,
        "steps": len(steps),
        "cycles": run.cycles,
        "utilisation": macs / (run.cycles * config.macs_per_step),
        "outputs": int(expected.size),
        "mismatches": len(different),
    }
    if as_json:
        click.echo(json.dumps(outcome, indent=2))
    else:
        rows = [[key, f"{value:.4f}" if isinstance(value, float) else str(value)] for key, value in outcome.items()]
        _print_table(["GEMM", "value"], rows)
    if len(different):
        row, column = different[0]
        raise _MismatchError(
            f"D[{row}, {column}] is 0x{got[row, column]:08x}, the golden model says 0x{expected[row, column]:08x}"
        )


def _engine(config: TensorCoreConfig, name: str) -> engines.Engine:
    """The engine of that name; a word where it is not the fast one for want of a compiler."""
    core = engines.engine(config, name)
    if name == "auto" and (reason := engines.missing()):
        click.echo(f"hwgen: no C++ compiler, {reason}: the Python simulator is thousands of times slower", err=True)
    return core


def _replay(context: click.Context, path: Path, engine: str, as_json: bool) -> None:
    """Run the vectors of a file."""
    given = click.core.ParameterSource.COMMANDLINE
    for parameter in context.command.params:
        name = str(parameter.name)
        if context.get_parameter_source(name) is given and name not in ("replay", "engine", "as_json"):
            raise InputError(f"--replay brings its own stimulus: leave {parameter.opts[0]} out")
    stimulus = verification.load(path)
    steps = stimulus.steps
    core = _engine(steps.config, engine)
    mismatch = verification.check(core, stimulus)
    outcome = {
        "configuration": steps.config.name,
        "engine": core.name,
        "steps": len(steps),
        "outputs": int(steps.last.sum()) * steps.config.rows * steps.config.columns,
        "mismatch": mismatch.reason if mismatch else None,
    }
    if as_json:
        click.echo(json.dumps(outcome, indent=2))
    else:
        _print_table(["vectors", "value"], [[key, str(value)] for key, value in outcome.items()])
    if mismatch:
        raise _MismatchError(mismatch.reason)


class _MismatchError(Exception):
    """Hardware and golden model differ."""


@cli.command()
@click.option("--config", "name", default="mixfp4-small", show_default=True, help="Configuration: name or TOML file.")
@click.option("--macs", type=float, default=1e8, show_default=True, help="Multiply-accumulates to compare.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the stimulus.")
@click.option("--engine", default="auto", show_default=True, help="auto, python or compiled.")
@click.option("--jobs", type=int, default=-1, help="Processes at once.  [default: one for each core]")
@click.option("--complete", is_flag=True, help="Exit with status 1 if a coverage goal was not met.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path(), show_default=True, help="Directory for a reproducer."
)
@json_option
def verify(name: str, macs: float, seed: int, engine: str, jobs: int, complete: bool, out: Path, as_json: bool) -> None:
    """Compare the RTL with the golden model on constrained-random steps, and report coverage.

    Ends at the first bit that differs, with status 1 and a file of as few steps as will show it, for
    'hwgen simulate --replay'.
    """
    config = resolve(name)
    if not 1 <= macs <= 1e13:  # NaN is neither
        raise InputError(f"--macs {macs:g}: must be a number from 1 to 1e13")
    if jobs != -1 and not 1 <= jobs <= 256:
        raise InputError(f"--jobs {jobs}: must be from 1 to 256, or -1 for one a core")
    check_directory(out)
    core = _engine(config, engine)
    with _progress(as_json) as update:
        outcome = verification.verify(
            core, int(macs), seed, jobs, progress=lambda done, total: update("steps", done, total)
        )
        path = out / f"verify-{config.name}-{seed}.npz"
        if outcome.failure:
            verification.reproduce(outcome, core, path, lambda done, most: update("shrinking", done, most))
    summary = {**outcome.as_dict(), "reproducer": str(path) if outcome.failure else None}
    missed = outcome.missed()
    if as_json:
        click.echo(json.dumps(summary))
    else:
        _print_coverage(summary, missed)
    if outcome.failure:
        command = shlex.join(["hwgen", "simulate", "--replay", str(path)])
        raise _MismatchError(
            f"seed {seed}, batch {outcome.failure.batch}, {outcome.failure.mismatch.reason}; {command}"
        )
    if complete and missed:
        raise ToolError(f"{len(missed)} coverage goals were not met, the first: {missed[0]}")


def _print_coverage(summary: dict[str, Any], missed: list[str]) -> None:
    """What was run, and what it has covered."""
    groups = summary.pop("coverage")
    values = ((key, f"{value:,}" if isinstance(value, int) else str(value)) for key, value in summary.items())
    _print_table(["verification", "value"], [[key, value] for key, value in values])
    rows = [
        [name, str(group["goals"]), str(group["hit"]), f"{group['events']:,}", f"{group['fewest']:,}"]
        for name, group in groups.items()
    ]
    _print_table(["coverage", "goals", "hit", "events", "fewest"], rows)
    for name in missed[:_SHOWN]:
        click.echo(f"missed: {name}")
    if more := len(missed[_SHOWN:]):
        click.echo(f"missed: and {more} more, see --json")


def _measurement(stem: str, runs: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options of every command that synthesises two designs and writes a report."""
    options = (
        click.option(
            "--config",
            "size",
            help="Size of both designs, nvfp4-SIZE and mixfp4-SIZE, or a TOML file without a format.  [default: small]",
        ),
        click.option("--baseline", help="Configuration instead: name or TOML file."),
        click.option("--candidate", help="Configuration instead: name or TOML file."),
        click.option(
            "--library", "library_name", default="generic7", show_default=True, help="generic7 or generic130."
        ),
        click.option(
            "--liberty",
            type=click.Path(path_type=Path),
            multiple=True,
            help="Liberty file instead, plain or gzip; repeat it for a library of several files.",
        ),
        click.option("--dont-use", multiple=True, help="Cells to leave alone, with wildcards; repeat it for several."),
        click.option(
            "--runs",
            type=click.IntRange(min=1),
            default=runs,
            show_default=True,
            help="Perturbed syntheses of each module; 6 or more for an interval.",
        ),
        click.option("--no-cache", is_flag=True, help="Synthesise anew, and keep nothing."),
        click.option(
            "--jobs",
            type=click.IntRange(min=-1, max=256),
            default=-1,
            help="Processes at once.  [default: one for each core]",
        ),
        click.option(
            "--time-limit",
            type=click.FloatRange(min=1),
            default=TIME_LIMIT,
            show_default=True,
            help="Seconds per synthesis.",
        ),
        click.option("--backend", help="joblib back end, such as threading or dask.  [default: this machine]"),
        click.option("--out", type=click.Path(path_type=Path), default=_REPORTS, show_default=True, help="Directory."),
        click.option("--name", "stem", default=stem, show_default=True, help="Name of the report's files."),
        json_option,
    )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _pair(size: str | None, baseline: str | None, candidate: str | None) -> tuple[TensorCoreConfig, TensorCoreConfig]:
    if size is not None and (baseline is not None or candidate is not None):
        raise InputError("--config names both designs: leave --baseline and --candidate out")
    if baseline is None or candidate is None:
        pair = resolve_pair(size or "small")
        return resolve(baseline) if baseline else pair[0], resolve(candidate) if candidate else pair[1]
    return resolve(baseline), resolve(candidate)


def _clock(value: float) -> float:
    if not 0 < value < 1e6:
        raise InputError(f"--clock {value:g}: must be a period in ns above 0 and below 1e6")
    return value


@contextmanager
def _backend(name: str | None) -> Iterator[None]:
    """What joblib runs processes with inside of the context."""
    # The others of its own cannot give results in the order they are done.
    known = sorted({"loky", "threading", "sequential", *parallel.EXTERNAL_BACKENDS})
    if name is None:
        yield
        return
    if name not in known:
        raise InputError(f"--backend {name!r}: joblib knows {', '.join(known)}")
    try:
        chosen = parallel_config(name)
    except (ImportError, ValueError) as error:
        raise InputError(f"--backend {name!r}: {' '.join(str(error).split())}") from None
    with chosen:
        yield


def _check_files(out: Path, stem: str) -> None:
    """Check where a report goes, before any long work."""
    if Path(stem).name != stem or stem in ("", ".", "..") or len(os.fsencode(stem)) > 200:
        raise InputError(f"--name {stem!r}: must be a plain file name of at most 200 bytes")
    check_directory(out)


def _reported(
    measured: Callable[[Flow], dict[str, Any]],
    key: Callable[[Library], str],
    *,
    library_name: str,
    liberty: tuple[Path, ...],
    dont_use: tuple[str, ...],
    no_cache: bool,
    jobs: int,
    time_limit: float,
    backend: str | None,
    out: Path,
    stem: str,
    as_json: bool,
    more: Callable[[dict[str, Any], Flow], dict[str, bytes]] = lambda report, flow: {},
) -> None:
    """Make a report, or take it from the cache; write its files, print its summary.

    ``more`` gives further files of a report, by what follows its name.
    """
    cells = reader.load(list(liberty) or [libraries.path(library_name)]).without(dont_use)
    if jobs == 0:
        raise InputError("--jobs 0: must be at least 1, or -1 for one for each core")
    if not time_limit < float("inf"):
        raise InputError(f"--time-limit {time_limit:g}: must be a number of seconds")
    _check_files(out, stem)
    kept = Cache(None if no_cache else cache_directory("synthesis"))
    digest = key(cells)
    # A wrong back end is named also where there is nothing left to run.
    with _backend(backend):
        report = kept.get(digest)
        with _progress(as_json) as update:
            flow = Flow(cells, kept.directory, jobs, time_limit, update)
            if report is None:
                report = measured(flow)
                kept.put(digest, report)
            further = {out / f"{stem}{name}": content for name, content in more(report, flow).items()}
    files = {out / f"{stem}.json": form.json_text(report).encode(), **_rendered(report, out, stem), **further}
    write_all(files)
    if as_json:
        click.echo(form.json_text(report), nl=False)
    else:
        _print_table(*_FORMS[report["kind"]][0].summary(report))
        click.echo("  ".join(map(str, files)))


@cli.command()
@_measurement("overhead", RUNS)
@click.option("--recipe", "recipe_name", help=f"One of: {', '.join(RECIPES)}.  [default: the best for each module]")
@click.option("--clock", type=float, help="Clock period in ns.  [default: what both designs meet, with 5 % to spare]")
@click.option("--tensors", "kind", type=click.Choice(tensors.KINDS), default=tensors.KINDS[0], show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the tensors.")
def compare(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    recipe_name: str | None,
    clock: float | None,
    kind: str,
    seed: int,
    runs: int,
    **options: Any,
) -> None:
    """Synthesise two configurations and report what the second costs over the first.

    Writes NAME.md, .csv, .json and .png to the reports directory.
    """
    pair = _pair(size, baseline, candidate)
    how = None if recipe_name is None else [recipe(recipe_name)]
    clock = None if clock is None else _clock(clock)
    stimulus = Stimulus(tensors=kind, seed=seed)
    _reported(
        lambda flow: tables.document(measure(*pair, flow, how, clock_ns=clock, stimulus=stimulus, runs=runs)),
        lambda cells: fingerprint(cells, *pair, how, clock, stimulus, runs),
        **options,
    )


@cli.command()
@_measurement("explore", EXPLORE_RUNS)
@click.option("--clock", "clocks", type=float, multiple=True, help="Clock period in ns; repeat it.  [default: eight]")
@click.option(
    "--dot",
    "dots",
    multiple=True,
    help=f"Micro-architecture of the dot product, of: {', '.join(DOTS)}. Repeat it.  [default: all, in one pipeline]",
)
@click.option(
    "--pipeline",
    "pipelines",
    multiple=True,
    help=f"Registers of a pipeline, with commas, of: {', '.join(PIPELINE_REGISTERS)}; or none. Repeat it."
    f"  [default: {len(PIPELINES)} pipelines]",
)
@click.option(
    "--leading-zeros",
    multiple=True,
    type=click.Choice(LEADING_ZEROS),
    help="How sums are normalised. Repeat it.  [default: counted, in some pipelines anticipated too]",
)
def explore(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    clocks: tuple[float, ...],
    dots: tuple[str, ...],
    pipelines: tuple[str, ...],
    leading_zeros: tuple[str, ...],
    runs: int,
    **options: Any,
) -> None:
    """Search micro-architectures, pipelines and recipes of both designs for the least area, delay and energy.

    Writes NAME.md, .csv, .json and .png to the reports directory.
    """
    pair = _pair(size, baseline, candidate)
    wanted = [_clock(clock) for clock in clocks]
    ways = [() if text == "none" else tuple(text.split(",")) for text in pipelines]
    # A wrong register or name is told now, not after the first syntheses.
    for config in pair:
        variants(config, dots, ways, leading_zeros)
    _reported(
        lambda flow: explore_tables.document(
            explored(*pair, flow, dots=dots, pipelines=ways, leading_zeros=leading_zeros, clocks_ns=wanted, runs=runs)
        ),
        lambda cells: fingerprint(cells, "explore", *pair, dots, ways, leading_zeros, wanted, runs),
        **options,
    )


@cli.command()
@_measurement("power", POWER_RUNS)
@click.option("--clock", type=float, help="Clock period in ns.  [default: what both designs meet, with 5 % to spare]")
@click.option("--tensors", "kind", type=click.Choice(tensors.KINDS), default=tensors.KINDS[0], show_default=True)
@click.option("--layer", help="Weight matrix of all-MiniLM-L6-v2 as B (extra 'workloads').")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the tensors.")
@click.option("--saif", is_flag=True, help="Write netlist and switching activity of both, NAME-CONFIG.v and .saif.")
@click.option("--vcd", is_flag=True, help="And waveforms with all glitches, NAME-CONFIG.vcd.")
def power(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    clock: float | None,
    kind: str,
    layer: str | None,
    seed: int,
    saif: bool,
    vcd: bool,
    runs: int,
    **options: Any,
) -> None:
    """Report power with glitches: by block and kind, by tensor statistics, share of E1M2 blocks, and at rest.

    Writes NAME.md, .csv, .json and .png to the reports directory.
    """
    pair = _pair(size, baseline, candidate)
    clock = None if clock is None else _clock(clock)
    if layer is not None:
        tensors.minilm(layer)  # a wrong name is named now, not after the syntheses
    stimulus = Stimulus(tensors=kind, seed=seed, layer=layer)

    def more(report: dict[str, Any], flow: Flow) -> dict[str, bytes]:
        conditions = report["conditions"]
        return {
            f"-{config.name}.{suffix}": text.encode()
            for config in (pair if saif or vcd else ())
            for suffix, text in exported(
                config, conditions["chosen_recipes"][config.name], flow, conditions["clock_ns"], stimulus, vcd
            ).items()
        }

    _reported(
        lambda flow: power_tables.document(*pair, *study(*pair, flow, clock_ns=clock, stimulus=stimulus, runs=runs)),
        lambda cells: fingerprint(cells, "power", *pair, clock, stimulus, runs),
        more=more,
        **options,
    )


def _above_zero(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value < 1e12:
        raise InputError(f"{parameter.opts[0]} {value:g}: must be a number above 0 and below 1e12")
    return value


def _from_zero(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0 <= value < 1e12:
        raise InputError(f"{parameter.opts[0]} {value:g}: must be a number from 0 to below 1e12")
    return value


def _shape(text: str | None) -> tuple[int, int, int] | None:
    """Cores along the batch, M and N."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.strip().isdecimal() and 0 < int(part) <= _MOST_CORES for part in parts):
        raise InputError(f"--grid {text!r}: must be ROWSxCOLUMNS or BATCHxROWSxCOLUMNS of cores, such as 4x8")
    sizes = [int(part) for part in parts]
    if math.prod(sizes) > _MOST_CORES:
        raise InputError(f"--grid {text!r}: must have at most {_MOST_CORES} cores")
    batch, rows, columns = sizes if len(sizes) == 3 else [1, *sizes]
    return batch, rows, columns


_MOST_CORES = 1 << 16


@cli.command("cost")
@click.option("--model", help=f"One of: {', '.join(workloads.models())}.")
@click.option("--gemms", "gemm_list", type=click.Path(path_type=Path), help="List of GEMMs instead, CSV or TOML.")
@click.option("--phase", type=click.Choice(workloads.PHASES), default="decode", show_default=True)
@click.option("--batch", type=positive, default=1, show_default=True, help="Sequences.")
@click.option("--sequence", type=positive, default=2048, show_default=True, help="Tokens of each; in decode, attended.")
@click.option(
    "--config", "name", default="mixfp4-blackwell", show_default=True, help="Configuration: name or TOML file."
)
@click.option("--vs", "baseline", help="Configuration to compare with, of the same shape.")
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path),
    help="What 'hwgen compare' measured.  [default: in reports/, else what comes with hwgen]",
)
@click.option("--cores", type=click.IntRange(1, _MOST_CORES), help="Arranged anew for each GEMM.  [default: 64]")
@click.option("--grid", "shape", metavar="[Bx]PxQ", help="ROWSxCOLUMNS of cores instead, or BATCHxROWSxCOLUMNS.")
@click.option("--clock", type=float, help="Clock period in ns.  [default: that of the report]")
@click.option("--buffer", "buffer_mib", type=float, callback=_above_zero, default=8, show_default=True, help="In MiB.")
@click.option("--dram", "dram_gb", type=float, callback=_above_zero, default=819.2, show_default=True, help="In GB/s.")
@click.option(
    "--operands",
    type=float,
    callback=_above_zero,
    help="FP4 elements a cycle of the buffer.  [default: all that cores take]",
)
@click.option("--single-buffered", is_flag=True, help="Nothing is loaded while cores work.")
@click.option(
    "--result-bytes", type=click.IntRange(1, 8), default=RESULT_BYTES, show_default=True, help="An output in DRAM."
)
@click.option(
    "--buffer-energy", type=float, callback=_from_zero, default=SRAM_PJ_PER_BYTE, show_default=True, help="pJ per byte."
)
@click.option(
    "--dram-energy", type=float, callback=_from_zero, default=DRAM_PJ_PER_BYTE, show_default=True, help="pJ per byte."
)
@click.option("--timeloop", is_flag=True, help="Write NAME-CONFIG.ert.yaml, .art.yaml and .lib.yaml of each core, too.")
@click.option("--out", type=click.Path(path_type=Path), default=_REPORTS, show_default=True, help="Directory.")
@click.option("--name", "stem", default="cost", show_default=True, help="Name of the report's files.")
@json_option
def cost_command(
    model: str | None,
    gemm_list: Path | None,
    phase: str,
    batch: int,
    sequence: int,
    name: str,
    baseline: str | None,
    report_file: Path | None,
    cores: int | None,
    shape: str | None,
    clock: float | None,
    buffer_mib: float,
    dram_gb: float,
    operands: float | None,
    single_buffered: bool,
    result_bytes: int,
    buffer_energy: float,
    dram_energy: float,
    timeloop: bool,
    out: Path,
    stem: str,
    as_json: bool,
) -> None:
    """Time and energy of a model's GEMMs on a grid of cores, and what one format costs over another.

    What a core costs comes from a report of 'hwgen compare'. Writes NAME.md, .csv, .json and .png to the
    reports directory.
    """
    if (model is None) == (gemm_list is None):
        raise InputError(f"give --model, one of {', '.join(workloads.models())}, or --gemms with a list of your own")
    if cores is not None and shape is not None:
        raise InputError("--grid says how many cores there are: leave --cores out")
    configs = [resolve(each) for each in ([name] if baseline is None else [baseline, name])]
    if len(configs) == 2:
        check_pair(*configs)
    _check_files(out, stem)
    given = (phase, batch, sequence)
    workload = workloads.load(gemm_list, *given) if gemm_list is not None else workloads.model(model or "", *given)
    fixed = _shape(shape)
    memory = Memory(
        buffer_bytes=buffer_mib * (1 << 20),
        dram_bytes_per_second=dram_gb * 1e9,
        operands_per_cycle=math.inf if operands is None else operands,
        double_buffered=not single_buffered,
        result_bytes=result_bytes,
    )
    costs = EnergyCosts(buffer_energy, dram_energy)
    measured = core_costs.read(report_file, configs) if report_file else core_costs.find(configs, _REPORTS)
    longest = max(core.critical_path_ns for core in measured.cores.values())
    clock_ns = measured.clock_ns if clock is None else clock_period(_clock(clock), longest, measured.library)
    number = math.prod(fixed) if fixed else cores or 64
    machine = cost.Machine(number, fixed, memory, costs, clock_ns)
    content = cost.document(measured, machine, workload, {"phase": phase, "batch": batch, "sequence": sequence})
    files = {out / f"{stem}.json": form.json_text(content).encode(), **_rendered(content, out, stem)}
    for each in measured.cores.values() if timeloop else ():
        for suffix, text in export.exported(each, clock_ns, measured.library).items():
            files[out / f"{stem}-{each.config.name}.{suffix}"] = text.encode()
    write_all(files)
    if as_json:
        click.echo(form.json_text(content), nl=False)
    else:
        _print_table(*cost_tables.summary(content))
        click.echo("  ".join(map(str, files)))


_FORMS: dict[str, tuple[Any, Callable[[dict[str, Any]], bytes]]] = {
    tables.KIND: (tables, plots.overhead_png),
    explore_tables.KIND: (explore_tables, plots.explore_png),
    power_tables.KIND: (power_tables, plots.power_png),
    cost_tables.KIND: (cost_tables, cost_plots.cost_png),
}
"""Tables and plot of each kind of report."""


def _rendered(report: dict[str, Any], out: Path, stem: str) -> dict[Path, bytes]:
    """Everything about a report that follows from its JSON, by file."""
    picture = out / f"{stem}.png"
    texts, draw = _FORMS[report["kind"]]
    return {
        out / f"{stem}.md": texts.markdown(report, picture.name).encode(),
        out / f"{stem}.csv": texts.csv(report).encode(),
        picture: draw(report),
    }


@cli.command()
@click.argument("files", metavar="[REPORT.json]...", type=click.Path(path_type=Path), nargs=-1)
def report(files: tuple[Path, ...]) -> None:
    """Render tables and plots anew from reports (of all in the reports directory by default)."""
    chosen = list(files) or sorted(_REPORTS.glob("*.json"))
    if not chosen:
        raise InputError(f"no report in {str(_REPORTS)!r}: 'hwgen synth' writes one")
    for path in chosen:
        content = form.load(path)
        if content["kind"] not in list(_FORMS):
            raise InputError(f"report {str(path)!r}: kind {content['kind']!r}; this hwgen knows {', '.join(_FORMS)}")
        try:
            rendered = _rendered(content, path.parent, path.stem)
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"report {str(path)!r}: damaged ({reason}); write it anew") from None
        write_all(rendered)
        for written in rendered:
            click.echo(written)


cli.add_command(compare, "synth")


def main() -> None:
    """Run the command line; bad input is one line and status 2."""
    # An ended run takes its tools with it, however it is ended; what nohup has it ignore stays ignored.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        status = cli.main(prog_name="hwgen", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        status = 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        status = _say("interrupted", 130)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "hwgen"
        status = _say(f"{error.format_message()} (see {command} --help)", 2)
    except click.ClickException as error:
        status = _say(error.format_message(), 2)
    except (InputError, golden.InputError) as error:
        status = _say(str(error), 2)
    except MemoryError:
        status = _say("out of memory: choose a smaller --m, --n, --k or configuration", 2)
    except _MismatchError as error:
        status = _say(f"mismatch: {error}", 1)
    except ToolError as error:
        status = _say(str(error), 1)
    except BrokenPipeError:
        # Whoever read has seen enough; keep the interpreter from flushing into the void.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except OSError as error:
        status = _say(f"{error.strerror or error}: {error.filename or 'standard output'}", 1)
    sys.exit(status if isinstance(status, int) else 0)


def _say(message: str, status: int) -> int:
    line = " ".join(message.split())
    if len(line) > 2 * _HALF_LINE:  # it quotes a file, and what stands there may be of any length
        line = f"{line[:_HALF_LINE]} ... {line[-_HALF_LINE:]}"
    click.echo(f"hwgen: {line}", err=True)
    return status


_HALF_LINE = 1000

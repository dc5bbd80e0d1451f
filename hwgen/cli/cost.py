"""``hwgen cost``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwgen.cli.options import REPORTS, config, given, json_option, out
from hwgen.cli.study import check_files, written
from hwgen.cli.types import FILE, FROM_ZERO, GRID, MOST_CORES, PERIOD_NS, POSITIVE, Late, Names, Number, Whole, constant
from hwgen.errors import InputError
from hwgen.files import check_file

if TYPE_CHECKING:
    from hwgen.config import TensorCoreConfig
    from hwgen.cost.workloads import Workload

__all__ = ["command"]


_MIB = Number("a number of MiB from 0.001 to below 1e12", lambda number: 0.001 <= number < 1e12)
_GB_PER_SECOND = Number("a number of GB/s from 1e-06 to below 1e12", lambda number: 1e-6 <= number < 1e12)
_BALANCE = Number("a number of FLOP per byte from 1e-06 to below 1e12", lambda number: 1e-6 <= number < 1e12)
_ELEMENTS = Number("a number of elements from 1 to below 1e12", lambda number: 1 <= number < 1e12)


_SEVEN_NM = ("generic7", "asap7")
"""What the names of the libraries begin with that the default area of the buffer is for."""


def _first(what: str, source: str) -> str:
    """Help of an option whose choices another module has; the first is the default."""
    return f"{what}.  [default: {constant(source)[0]}]"


def _energy(what: str, source: str) -> dict[str, Any]:
    """An energy whose default is another module's."""
    return {"type": FROM_ZERO, "cls": Late, "late": lambda: f"{what}  [default: {constant(source):g}]"}


class _QuantiserEnergy(click.ParamType):
    """fJ of an element: one number for all designs, or NAME=FJ of each, separated by commas."""

    name = "fJ"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | dict[str, float]:
        if "=" not in value:
            return FROM_ZERO.convert(value, param, ctx)
        found = {}
        for part in value.split(","):
            name, _, energy = part.partition("=")
            if name.strip() in found:
                raise InputError(f"--quantiser-energy {value!r}: {name.strip()} is there twice; must be there once")
            found[name.strip()] = FROM_ZERO.convert(energy, param, ctx)
        return found


def _machines() -> str:
    found = constant("hwgen.cost.machines:MACHINES")
    return f"What the machine begins with: {', '.join(found)}; see docs/cost.md.  [default: {next(iter(found))}]"


_MACHINE = (
    click.option("--machine", "preset", type=Names("hwgen.cost.machines:MACHINES"), cls=Late, late=_machines),
    click.option("--cores", type=Whole(1, MOST_CORES), help="Arranged anew for each GEMM.  [default: the machine's]"),
    click.option("--grid", type=GRID, metavar="[Bx]PxQ", help="ROWSxCOLUMNS of cores instead, or BATCHxROWSxCOLUMNS."),
    click.option("--clock", type=PERIOD_NS, help="Clock period in ns.  [default: that of the report]"),
    click.option("--buffer", "buffer_mib", type=_MIB, help="In MiB.  [default: the machine's]"),
    click.option("--dram", "dram_gb", type=_GB_PER_SECOND, help="In GB/s.  [default: the machine's]"),
    click.option("--balance", type=_BALANCE, help="FLOP per byte of DRAM instead.  [default: the machine's]"),
    click.option(
        "--operands", type=_ELEMENTS, help="FP4 elements a cycle of the buffer.  [default: all that cores take]"
    ),
    click.option("--single-buffered", is_flag=True, help="Nothing is loaded while cores work."),
    click.option(
        "--results",
        type=Names("hwgen.cost.results:RESULTS"),
        cls=Late,
        late=lambda: _first("How results leave the chip", "hwgen.cost.results:RESULTS"),
    ),
    click.option(
        "--attention",
        type=Names("hwgen.cost.results:ATTENTION"),
        cls=Late,
        late=lambda: _first("Whether scores stay on the chip", "hwgen.cost.results:ATTENTION"),
    ),
    click.option(
        "--idle-cores",
        type=Names("hwgen.report.schema:IDLE_CORES"),
        cls=Late,
        late=lambda: _first("Cores without an output", "hwgen.report.schema:IDLE_CORES"),
    ),
    click.option(
        "--quantiser-energy",
        type=_QuantiserEnergy(),
        metavar="FJ",
        help="fJ of an element quantised; NAME=FJ,NAME=FJ for each design.  [default: as measured, see --quantisers]",
    ),
    click.option(
        "--quantisers",
        "quantiser_report",
        type=FILE,
        help="What 'hwgen quantiser compare' measured.  [default: quantisers.json in reports/, else what comes with"
        " hwgen, if it is of the cores' library, cells and clock; else their energy is not included]",
    ),
    click.option("--buffer-energy", **_energy("pJ per byte.", "hwgen.cost.model:SRAM_PJ_PER_BYTE")),
    click.option(
        "--buffer-area",
        type=FROM_ZERO,
        cls=Late,
        late=lambda: (
            f"mm2 per MiB.  [default: {constant('hwgen.cost.model:SRAM_MM2_PER_MIB'):.3g} with a 7 nm library, else not"
            " included]"
        ),
    ),
    click.option("--buffer-leakage", type=FROM_ZERO, help="mW per MiB.  [default: not included]"),
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
@click.option(
    "--experts",
    "routing",
    type=Names("hwgen.cost.workloads:ROUTING"),
    cls=Late,
    late=lambda: _first("How many experts share the tokens", "hwgen.cost.workloads:ROUTING"),
)
@click.option(
    "--half-rate",
    type=Names("hwgen.cost.workloads:HALF_RATE"),
    cls=Late,
    late=lambda: _first("GEMMs in FP8, on cores with a slot", "hwgen.cost.workloads:HALF_RATE"),
)
@click.option(
    "--skip-masked",
    type=POSITIVE,
    metavar="QUERIES",
    help="In prefill, leave masked scores out, for blocks of so many queries.  [default: all are computed]",
)
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
@click.option(
    "--accelforge",
    is_flag=True,
    help="Write NAME-CONFIG.hwcomponents.py and .accelforge.yaml of each core and its machine, too.",
)
@out(REPORTS)
@click.option("--name", "stem", default="cost", show_default=True, help="Name of the report's files.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: str | None,
    gemm_list: Path | None,
    phase: str,
    batch: int,
    sequence: int,
    routing: str | None,
    half_rate: str | None,
    skip_masked: int | None,
    name: str,
    baseline: str | None,
    report_file: Path | None,
    timeloop: bool,
    accelforge: bool,
    out: Path,
    stem: str,
    as_json: bool,
    **machine: Any,
) -> None:
    """Time and energy of a model's GEMMs on a grid of cores, and what one format costs over another.

    What a core costs comes from a report of 'hwgen compare'. Writes NAME.md, .csv, .json and .png to the
    reports directory.
    """
    from hwgen.cost import workloads
    from hwgen.cost.masked import without_masked
    from hwgen.measure.conditions import check_pair
    from hwgen.measure.workloads import cores, cost
    from sim.counterpart import resolved

    if model is not None and gemm_list is not None:
        raise InputError("give one of --model and --gemms, not both")
    if model is None and gemm_list is None:
        raise InputError(f"give --model, one of {', '.join(workloads.models())}, or --gemms with a list of your own")
    configs = [resolved(each) for each in ([name] if baseline is None else [baseline, name])]
    if len(configs) == 2:
        check_pair(*configs)
    check_files(out, stem)
    workload, rerouted = _workloads(
        model, gemm_list, (phase, batch, sequence), routing or workloads.ROUTING[0], half_rate, configs
    )
    _check_options(context, workload, gemm_list or model)
    if skip_masked is not None:
        workload, rerouted = (without_masked(each, sequence, skip_masked) for each in (workload, rerouted))
    measured = cores.read(report_file, configs) if report_file else cores.find(configs, REPORTS)
    measured, built = _built(measured, **machine)
    content = cost.document(
        measured,
        built,
        workload,
        {"phase": phase, "batch": batch if "sequences" in workload.symbols else 1, "sequence": sequence},
        rerouted if workload.routed else None,
    )
    exports = {
        out / f"{stem}-{core.config.name}.{suffix}": text.encode()
        for core in measured.cores.values()
        for suffix, text in _exported(core, built, measured.library, timeloop, accelforge).items()
    }
    for path in exports:
        check_file(path)
    if report_file is None:
        _say_if_shipped(measured)
    written(content, out, stem, as_json, exports)


def _say_if_shipped(measured: Any) -> None:
    """Say that the report on the cores is none of the user's."""
    from hwgen.report.shipped import shipped

    if measured.path.parent == shipped():
        names = " and ".join(measured.cores)
        click.echo(
            f"hwgen: {str(REPORTS)!r} has no report on {names}: {measured.path.name} is taken, which comes with hwgen",
            err=True,
        )


def _check_options(context: click.Context, workload: Workload, source: Path | str | None) -> None:
    """Refuse options that a workload has nothing for."""
    prefill = context.params["phase"] == "prefill"
    # In decode a sequence has one query, however long it is.
    read_by = {
        "phase": {"queries"},
        "batch": {"sequences"},
        "sequence": {"context", "queries"} if prefill else {"context"},
        "skip-masked": {"queries"},
    }
    for option, symbols in read_by.items():
        if given(context, option.replace("-", "_")) and not symbols & workload.symbols:
            names = " or ".join(repr(name) for name in sorted(symbols))
            where = "" if option != "sequence" or prefill else ", in decode"
            raise InputError(
                f"--{option}: no size of GEMM list {str(source)!r} has the symbol {names}{where}; leave it out"
            )
    if (block := context.params["skip_masked"]) is not None and not prefill:
        raise InputError(f"--skip-masked {block}: in decode no scores are masked; leave it out")
    if (attention := context.params["attention"]) is not None and "scores" not in workload.roles:
        raise InputError(f"--attention {attention}: {source} has no GEMM of the role 'scores'; leave it out")
    if (routing := context.params["routing"]) is not None and not workload.routed:
        raise InputError(f"--experts {routing}: {source} has no experts; leave it out")


def _workloads(
    model: str | None,
    gemm_list: Path | None,
    given: tuple[str, int, int],
    routing: str,
    half_rate: str | None,
    configs: Sequence[TensorCoreConfig],
) -> list[Any]:
    """The workload, and the same with each other routing; ``given`` are phase, batch and sequence."""
    from hwgen.cost import workloads

    which = half_rate or workloads.HALF_RATE[0]
    found = [
        workloads.at_half_rate(
            workloads.load(gemm_list, *given, each) if gemm_list else workloads.model(model or "", *given, each), which
        )
        for each in (routing, *(other for other in workloads.ROUTING if other != routing))
    ]
    asked = (
        f"--half-rate {which}" if which != workloads.HALF_RATE[0] else f"GEMM list {str(gemm_list)!r}: rate = 'half'"
    )
    for each in configs if found[0].gemms.half.any() else ():
        if not each.slotted:
            raise InputError(f"{asked}: {each.name} has no slot; give a core with one, or leave it out")
    return found


def _exported(core: Any, built: Any, library: str, timeloop: bool, accelforge: bool) -> dict[str, str]:
    """Texts for other tools, by what follows the name of a file."""
    from hwgen.cost import components, export

    found = export.exported(core, built.clock_ns, library) if timeloop else {}
    if not accelforge:
        return found
    return found | {
        "hwcomponents.py": components.component_model(core, built.clock_ns, library),
        "accelforge.yaml": components.architecture(
            core, built.clock_ns, library, built.cores, built.memory, built.costs, built.buffer_mm2
        ),
    }


def _built(
    measured: Any,
    preset: str | None,
    clock: float | None,
    grid: tuple[int, int, int] | None,
    results: str | None,
    attention: str | None,
    idle_cores: str | None,
    quantiser_energy: float | dict[str, float] | None,
    quantiser_report: Path | None,
    buffer_energy: float | None,
    buffer_area: float | None,
    buffer_leakage: float | None,
    dram_energy: float | None,
    **memory: Any,
) -> Any:
    """The measured cores, with the spread of their quantisers, and the machine that the options describe."""
    from hwgen.cost.machines import MACHINES
    from hwgen.cost.model import DRAM_PJ_PER_BYTE, SRAM_MM2_PER_MIB, SRAM_PJ_PER_BYTE, EnergyCosts
    from hwgen.cost.results import ATTENTION, RESULTS
    from hwgen.measure.netlists.clock import clock_period
    from hwgen.measure.workloads import cost
    from hwgen.report.schema import IDLE_CORES

    name = preset or next(iter(MACHINES))
    longest = max(core.critical_path_ns for core in measured.cores.values())
    clock_ns = measured.clock_ns if clock is None else clock_period(clock, longest, measured.library)
    (macs,) = {core.config.macs_per_step for core in measured.cores.values()}
    cores, fed_by = _fed(MACHINES[name], grid, 2e9 * macs / clock_ns, **memory)
    quantisers = _quantisers(quantiser_energy, quantiser_report, measured)
    costs = EnergyCosts(
        SRAM_PJ_PER_BYTE if buffer_energy is None else buffer_energy,
        DRAM_PJ_PER_BYTE if dram_energy is None else dram_energy,
        buffer_leakage,
        quantisers.fj,
    )
    if buffer_area is None and measured.library.startswith(_SEVEN_NM):
        buffer_area = SRAM_MM2_PER_MIB
    machine = cost.Machine(
        cores,
        grid,
        fed_by,
        costs,
        clock_ns,
        results=results or RESULTS[0],
        attention=attention or ATTENTION[0],
        idle_gated=idle_cores in (None, IDLE_CORES[0]),
        buffer_mm2_per_mib=buffer_area,
        preset=name,
        quantiser_report=None if quantisers.path is None else quantisers.path.name,
        quantiser_um2=quantisers.um2,
    )
    return _beside(measured, quantisers), machine


def _beside(measured: Any, quantisers: Any) -> Any:
    """The measured cores with the spread of their quantisers, where that is known."""
    from hwgen.cost.model import QUANTISER_AREA, QUANTISER_PART

    spreads = {QUANTISER_PART: quantisers.ratio, QUANTISER_AREA: quantisers.area}
    known = {part: ratio for part, ratio in spreads.items() if ratio is not None}
    return replace(measured, ratios={**measured.ratios, **known})


def _fed(
    begin: Any,
    grid: tuple[int, int, int] | None,
    core_flops: float,
    cores: int | None,
    buffer_mib: float | None,
    dram_gb: float | None,
    balance: float | None,
    operands: float | None,
    single_buffered: bool,
) -> tuple[int, Any]:
    """How many cores there are, and what feeds them (`hwgen.cost.grid.Memory`).

    ``begin`` is the preset, ``core_flops`` are the FLOP/s of a core.
    """
    from hwgen.cost.grid import Memory

    if cores is not None and grid is not None:
        raise InputError("--grid says how many cores there are: leave --cores out")
    if dram_gb is not None and balance is not None:
        raise InputError("--balance says what bandwidth there is: leave --dram out")
    number = math.prod(grid) if grid else cores or begin.cores
    flops = number * core_flops
    if dram_gb is None:
        dram_gb = begin.dram_gb(flops) if balance is None else flops / balance * 1e-9
    return number, Memory(
        buffer_bytes=(begin.buffer_mib if buffer_mib is None else buffer_mib) * (1 << 20),
        dram_bytes_per_second=dram_gb * 1e9,
        operands_per_cycle=math.inf if operands is None else operands,
        double_buffered=not single_buffered,
    )


def _quantisers(energy: float | dict[str, float] | None, report: Path | None, measured: Any) -> Any:
    """What the quantisers take (`hwgen.measure.workloads.quantisers.QuantiserCosts`)."""
    from hwgen.measure.workloads import quantisers

    if energy is None:
        return quantisers.read(report, measured) if report else quantisers.find(measured, REPORTS)
    if report is not None:
        raise InputError("--quantiser-energy says what quantisers take: leave --quantisers out")
    names = list(measured.cores)
    if not isinstance(energy, dict):
        return quantisers.QuantiserCosts(dict.fromkeys(names, energy))
    if set(energy) != set(names):
        raise InputError(
            f"--quantiser-energy: says {', '.join(energy)}; must say each of {', '.join(names)}, or one number for all"
        )
    return quantisers.QuantiserCosts({name: energy[name] for name in names})

"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hwgen.cli.types import DIRECTORY, FILE, JOBS, MOST_RUNS, PERIOD_NS, SECONDS, Late, Names, Whole, constant
from hwgen.errors import InputError, ToolError
from hwgen.files import check_file, place_for
from hwgen.measure.netlists.physical import PLACERS, WIRES, Physical

if TYPE_CHECKING:
    from hwgen.config import TensorCoreConfig
    from hwgen.formats import BlockFormat
    from sim.engines import Engine

__all__ = [
    "LANES",
    "REPORTS",
    "check_formats",
    "check_lanes",
    "check_placer",
    "check_waves",
    "chosen_slots",
    "clock",
    "config",
    "engine",
    "given",
    "hold",
    "jobs",
    "json_option",
    "kind",
    "lanes",
    "libraries",
    "made_engine",
    "measurement",
    "measuring",
    "out",
    "pair",
    "physical",
    "placer",
    "recipe",
    "slots",
    "vcd",
    "wires",
]

Command = TypeVar("Command", bound=Callable[..., Any])

LANES = ("merged-timed", "merged-binary", "signed", "booth", "shifted-carry-save")
"""Lanes that are tried besides those of the configurations."""

REPORTS = Path("reports")
"""Where reports are written to and looked for by default."""

hold = click.option(
    "--hold",
    type=Whole(1, 64),
    default=1,
    show_default=True,
    help="Steps for which the rows of B stay while those of A change.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output, and nothing else.")

engine = click.option("--engine", default="auto", show_default=True, help="auto, python or compiled.")

jobs = click.option("--jobs", type=JOBS, default=-1, help="Processes at once.  [default: one for each core]")

kind = click.option(
    "--tensors", "kind", type=Names("sim.tensors:KINDS"), default="gaussian", show_default=True, help="To draw."
)


recipe = click.option(
    "--recipe",
    cls=Late,
    late=lambda: f"One of: {', '.join(constant('hwgen.mapping.yosys:RECIPES'))}.  [default: the best for each module]",
)

wires = click.option(
    "--wires",
    type=click.Choice(WIRES),
    show_default=WIRES[0],
    help="Where wires come from: a placement of every netlist, or the number of a net's loads.",
)

placer = click.option(
    "--placer",
    type=click.Choice(PLACERS),
    show_default=Physical.placer,
    help="What places netlists; coloquinte comes with the extra 'place'.",
)


def clock(use: str) -> Callable[[Command], Command]:
    """The clock period that every core is built for; ``use`` goes on behind "every"."""
    return click.option(
        "--clock",
        type=PERIOD_NS,
        cls=Late,
        late=lambda: (
            f"Clock period in ns that every {use}.  [default: "
            + ", ".join(f"{name} {period:g}" for name, period in constant("hwgen.measure.netlists.clock:USUAL").items())
            + "]"
        ),
    )


def lanes(which: str) -> Callable[[Command], Command]:
    """Lanes to choose from; ``which`` says for what, or which of them."""
    return click.option(
        "--lanes",
        multiple=True,
        cls=Late,
        late=lambda: (
            f"Lanes to choose from besides those of the configurations, {which}; repeat it for several, of "
            f"{', '.join(constant('hwgen.config:DOTS'))}, or none.  [default: {', '.join(LANES)}]"
        ),
    )


def slots(command: Command) -> Command:
    """Slots to choose from, of cores that multiply FP8, too."""
    return click.option(
        "--slots",
        multiple=True,
        cls=Late,
        late=lambda: (
            "Slots to choose from besides those of the configurations, for each purpose, where both have one; repeat it"
            f" for several, of {', '.join(_slots())}, or none.  [default: all]"
        ),
    )(command)


def _slots() -> tuple[str, ...]:
    return tuple(name for name in constant("hwgen.config:SLOTS") if name != "none")


def chosen_slots(asked: tuple[str, ...], pair: Iterable[TensorCoreConfig]) -> tuple[str, ...]:
    """The slots that a search tries: those asked for, or by default all, where both configurations have one."""
    known = _slots()
    for name in asked:
        if name not in known and asked != ("none",):
            raise InputError(f"--slots {name}: must be one of {', '.join(known)}, or none alone")
    if without := [config.name for config in pair if not config.slotted]:
        if asked:
            raise InputError(f"--slots {' '.join(asked)}: {without[0]} has no slot to choose; leave it out")
        return ()
    return () if asked == ("none",) else asked or known


def physical(wires: str | None, placer: str | None) -> Physical:
    """How netlists are built, from what `wires` and `placer` give."""
    found = Physical(wires or Physical.wires, placer or Physical.placer)
    check_placer(found.placer)
    if placer is not None and not found.placed:
        raise InputError(f"--placer {placer}: has no meaning with --wires {wires}, where nothing is placed")
    return found


def check_placer(name: str) -> None:
    """Refuse what is no placer, and one that is not installed, before any work."""
    from hwgen.layout.coloquinte import is_installed

    if name not in PLACERS:
        raise InputError(f"--placer {name}: must be one of {', '.join(PLACERS)}")
    if name == "coloquinte" and not is_installed():
        raise InputError(
            "--placer coloquinte: is not installed; pip install '.[place]' in the checkout, or take embedded"
        )


def check_lanes(asked: tuple[str, ...]) -> None:
    """Refuse what is no name of lanes, and `none` beside others."""
    from hwgen.config import DOTS

    for name in asked:
        if name not in DOTS and asked != ("none",):
            raise InputError(f"--lanes {name}: must be one of {', '.join(DOTS)}, or none alone")


def check_formats(configs: Iterable[TensorCoreConfig]) -> None:
    """Refuse formats of one name that two files describe, each in its own text: figures go by names of formats."""
    known: dict[str, BlockFormat] = {}
    for each in configs:
        for form in each.formats:
            if known.setdefault(form.name, form) != form:
                raise InputError(
                    f"format {form.name!r} of {each.name!r}: another file describes one of that name; rename it in one"
                    " of them"
                )


def config(default: str) -> Callable[[Command], Command]:
    """The configuration that a command is about."""
    return click.option(
        "--config", "name", default=default, show_default=True, help="Configuration: name or TOML file."
    )


def given(context: click.Context, option: str) -> bool:
    """Whether the command line has an option, by its parameter's name; not whether it has its default."""
    return context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


def out(default: Path, what: str = "Directory.") -> Callable[[Command], Command]:
    """The directory that is written to."""
    return click.option("--out", type=DIRECTORY, default=default, show_default=True, help=what)


vcd = click.option(
    "--vcd", type=FILE, help="Write waveforms of every signal to this file; runs in the Python simulator."
)


def check_waves(file: Path | None, engine: str, other: Path | None = None) -> None:
    """Check what `vcd` gives, before any work; it must not go over another file of the command."""
    if file is not None:
        if other is not None and file.resolve() == other.resolve():
            raise InputError(f"--vcd {str(file)!r}: is another file of this command; give another name")
        if engine == "compiled":
            raise InputError("--vcd: the compiled simulator keeps no waveforms; leave --engine out, or say python")
        check_file(file)


@contextmanager
def made_engine(config: TensorCoreConfig, name: str, waves: Path | None = None) -> Iterator[Engine]:
    """The engine of that name; a word where it is not the fast one for want of a compiler.

    Parameters
    ----------
    config
        The core.
    name
        What `engine` gives.
    waves
        What `vcd` gives; the file is there behind the context, also of a core that fails.
    """
    from sim import engines

    if waves is not None and name in ("auto", "python"):
        failed: ToolError | None = None
        with place_for(waves) as place:
            try:
                yield engines.AmaranthEngine(config, place)
            except ToolError as error:  # what its waveforms are wanted for
                failed = error
        if failed is not None:
            raise failed
        return
    core = engines.engine(config, name)
    if name == "auto" and (reason := engines.missing()):
        click.echo(f"hwgen: no C++ compiler, {reason}: the Python simulator is thousands of times slower", err=True)
    yield core


def pair(
    size: str | None, baseline: str | None, candidate: str | None, clock_gating: bool | None = None
) -> tuple[TensorCoreConfig, TensorCoreConfig]:
    """The two configurations that `measurement`'s options name."""
    from hwgen.config import resolve_pair
    from sim.counterpart import resolved

    if clock_gating is not None:
        first, second = pair(size, baseline, candidate)
        return replace(first, clock_gating=clock_gating), replace(second, clock_gating=clock_gating)

    if size is not None and (baseline is not None or candidate is not None):
        raise InputError("--config names both designs: leave --baseline and --candidate out")
    if baseline is not None and candidate is not None:
        found = resolved(baseline), resolved(candidate)
        check_formats(found)
        return found
    for given, other in ((baseline, "--candidate"), (candidate, "--baseline")):
        if given is not None:
            raise InputError(f"{given!r} alone: name what it is compared with, with {other}")
    if size == "":
        raise InputError("--config '': must be a size, such as small, or a TOML file")
    return resolve_pair(size or "small")


def measurement(stem: str | None, runs: int) -> Callable[[Command], Command]:
    """Options of every command that synthesises two designs and writes a report.

    ``stem`` is the default name of the report; None is that of `hwgen.cli.study.default_stem`.
    """
    designs = (
        click.option(
            "--config",
            "size",
            help="Size of both designs, nvfp4-SIZE and mixfp4-SIZE, or a TOML file without a format.  [default: small]",
        ),
        click.option("--baseline", help="Configuration instead: name or TOML file."),
        click.option("--candidate", help="Configuration instead: name or TOML file."),
        click.option(
            "--clock-gating/--no-clock-gating",
            default=None,
            help="Set clock_gating in both configurations, or take it out; as they have it by default.",
        ),
    )

    def decorate(command: Command) -> Command:
        return _with(measuring(stem, runs)(command), designs)

    return decorate


def libraries(command: Command) -> Command:
    """Options of every command that synthesises: which cells it takes."""
    options = (
        click.option("--library", help="generic7 or generic130.  [default: generic7]"),
        click.option(
            "--liberty",
            type=FILE,
            multiple=True,
            help="Liberty file instead, plain or gzip; repeat it for a library of several files.",
        ),
        click.option("--dont-use", multiple=True, help="Cells to leave alone, with wildcards; repeat it for several."),
    )
    return _with(command, options)


def measuring(stem: str | None, runs: int) -> Callable[[Command], Command]:
    """Options of every command that synthesises designs and writes a report; ``stem`` as for `measurement`."""
    options = (
        libraries,
        click.option(
            "--runs",
            type=Whole(1, MOST_RUNS),
            default=runs,
            show_default=True,
            help="Perturbed syntheses of each module; 6 or more for an interval.",
        ),
        click.option("--no-cache", is_flag=True, help="Synthesise anew, and keep nothing."),
        jobs,
        click.option(
            "--time-limit",
            type=SECONDS,
            cls=Late,
            late=lambda: f"Seconds per synthesis.  [default: {constant('hwgen.mapping.yosys:TIME_LIMIT'):g}]",
        ),
        click.option(
            "--backend", help="joblib back end, such as threading; or dask (extra 'cluster').  [default: this machine]"
        ),
        out(REPORTS),
        click.option(
            "--name",
            "stem",
            default=stem,
            show_default=stem or "CANDIDATE-over-BASELINE-LIBRARY",
            help="Name of the report's files.",
        ),
        json_option,
    )

    def decorate(command: Command) -> Command:
        return _with(command, options)

    return decorate


def _with(command: Command, options: Iterable[Callable[[Command], Command]]) -> Command:
    """A command with options, in their order."""
    for option in reversed(tuple(options)):
        command = option(command)
    return command

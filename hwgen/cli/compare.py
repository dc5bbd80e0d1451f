"""``hwgen compare``, also ``hwgen synth``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwgen.cli import options
from hwgen.cli.study import Settings, found_before, reported
from hwgen.cli.types import DIRECTORY, FILE, MOST_SEARCHES, SEED, Whole
from hwgen.errors import InputError
from hwgen.measure.requests import OverheadRequest

if TYPE_CHECKING:
    from hwgen.config import TensorCoreConfig
    from hwgen.mapping.yosys import Recipe
    from hwgen.measure.netlists.flow import Flow
    from hwgen.report.schema import OverheadReport, Report

__all__ = ["command"]


@click.command("compare")
@options.measurement(None, OverheadRequest.runs)
@options.recipe
@options.clock("netlist is built for, and may miss by 5 %")
@click.option(
    "--as-mapped",
    is_flag=True,
    help="Take netlists as they are mapped, of the least area: nothing is placed or sized. The clock then is what both"
    " designs meet, with 5 % to spare, or --clock, for which faster recipes are taken.",
)
@options.wires
@options.placer
@options.lanes("for each purpose")
@options.slots
@click.option(
    "--search",
    is_flag=True,
    help="Search for lanes, slots and recipes even where a report that comes with hwgen has what such a search found.",
)
@click.option(
    "--choices",
    type=FILE,
    help="Search nothing: a TOML file says which lanes, slot and recipes each configuration takes. See docs/method.md.",
)
@click.option(
    "--searches",
    type=Whole(1, MOST_SEARCHES),
    default=OverheadRequest.searches,
    show_default=True,
    help="Independent searches. Figures are of the first; what the others find is measured, too, and the report says"
    " how far apart they are. From 6 on there is an interval. Each takes as long as the first.",
)
@click.option(
    "--export",
    "directory",
    type=DIRECTORY,
    help="Write netlist, SDC, SPEF, SAIF and a script of OpenSTA for both cores, of the first run, to"
    " DIRECTORY/CONFIG/area/ and energy/: what was built for least area, and for least energy. With --as-mapped there"
    " is one netlist, in DIRECTORY/CONFIG/, as 'hwgen power --export' writes it: the wires are by fanout.",
)
@options.kind
@options.hold
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the tensors.")
def command(
    size: str | None,
    baseline: str | None,
    candidate: str | None,
    clock_gating: bool | None,
    recipe: str | None,
    clock: float | None,
    wires: str | None,
    placer: str | None,
    as_mapped: bool,
    lanes: tuple[str, ...],
    slots: tuple[str, ...],
    search: bool,
    choices: Path | None,
    searches: int,
    kind: str,
    hold: int,
    seed: int,
    directory: Path | None,
    runs: int,
    **settings: Any,
) -> None:
    """Build two configurations for a clock and report what the second costs over the first. Also called synth.

    Every netlist is placed, sized and buffered: once for least area, which areas are of, and once for least energy,
    which power is of.

    A measurement that was killed goes on where it was. Writes NAME.md, .csv, .json and .png to the reports directory,
    and NAME-placement.png: the placed cores.

    Of cells without flip-flops no core can be built. Then lane arrays alone are compared: dot products of one sum,
    with decoders of their own.
    """
    from hwgen.mapping import yosys
    from hwgen.measure.netlists.stimulus import Stimulus

    pair = options.pair(size, baseline, candidate, clock_gating)
    recipes = None if recipe is None else [yosys.recipe(recipe)]
    physical = None if as_mapped else options.physical(wires, placer)
    _check_together(as_mapped, choices, recipe, wires, placer, lanes, slots, search, searches)
    searched = not as_mapped and choices is None
    tried_slots = options.chosen_slots(slots, pair) if searched else ()
    tried = _lanes(lanes, pair, tried_slots) if searched else ()
    stimulus = Stimulus(tensors=kind, seed=seed, hold=hold)
    request = OverheadRequest(*pair, stimulus, recipe, clock, physical, tried, tried_slots, runs, searches=searches)
    measured = Settings(**settings)
    said = ""
    # Searches that are to be independent of one another are all made here.
    if choices is not None or (searched and not search and searches == 1):
        request, said = _selected(request, measured, choices)

    def document(flow: Flow) -> Report:
        if said:
            click.echo(said, err=True)
        _check_cores(directory, flow)
        flow.library.check_for_synthesis(sequential=False)
        if not flow.library.flip_flops():
            click.echo(f"hwgen: {flow.library.name} has no flip-flop: lane arrays alone are measured", err=True)
        return _measured(request, flow, recipes)

    def files(report: OverheadReport, flow: Flow) -> dict[str | Path, bytes]:
        _check_cores(directory, flow)
        return {} if directory is None else _exported(request, report, flow, directory)

    reported(request, document, measured, files)


def _measured(request: OverheadRequest, flow: Flow, recipes: list[Recipe] | None) -> Report:
    if request.physical is None:
        from hwgen.measure.overhead import measure

        return measure(
            request.baseline,
            request.candidate,
            flow,
            recipes,
            clock_ns=request.clock_ns,
            stimulus=request.stimulus,
            runs=request.runs,
        ).report()
    from hwgen.measure.at_clock import measure_at_clock

    return measure_at_clock(request, flow, recipes).report()


def _check_cores(directory: Path | None, flow: Flow) -> None:
    """Refuse to write netlists of cores, where there are none."""
    if directory is not None and not flow.library.flip_flops():
        raise InputError(f"--export: {flow.library.name} has no flip-flop, so no core to write; leave it out")


def _selected(request: OverheadRequest, settings: Settings, choices: Path | None) -> tuple[OverheadRequest, str]:
    """With what a file says of both configurations, or else a report that comes with hwgen; and words for it."""
    from hwgen.measure.choices import choices_in
    from hwgen.measure.recorded import pair_found_before

    if choices is None:
        if (found := found_before(request, settings, pair_found_before)) is None:
            return request, ""
        path, selected = found
        words = f"hwgen: lanes and recipes as {path.name} has them; --search looks for them anew"
        return replace(request, selected=selected), words
    if not settings.cells.flip_flops():
        raise InputError(f"--choices: {settings.cells.name} has no flip-flop, so no core to choose for; leave it out")
    selected = choices_in(choices, (request.baseline, request.candidate), settings.cells)
    return replace(request, selected=selected), f"hwgen: lanes and recipes as {choices.name} has them"


def _check_together(
    as_mapped: bool,
    choices: Path | None,
    recipe: str | None,
    wires: str | None,
    placer: str | None,
    lanes: tuple[str, ...],
    slots: tuple[str, ...],
    search: bool,
    searches: int,
) -> None:
    """Refuse what only placed netlists have, and what says how to search, or what to take, where a file says it."""
    searching = {
        f"--lanes {' '.join(lanes)}": lanes,
        f"--slots {' '.join(slots)}": slots,
        "--search": search,
        f"--searches {searches}": searches > 1,
    }
    if as_mapped:
        placing = {f"--wires {wires}": wires, f"--placer {placer}": placer}
        _refuse({**placing, **searching}, "--as-mapped, where nothing is placed")
    if choices is not None:
        others = {"--as-mapped": as_mapped, f"--recipe {recipe}": recipe, **searching}
        _refuse(others, "--choices, which says what is taken; leave one of them out")


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse options, by what was written, that have no meaning beside another one."""
    for words, value in given.items():
        if value:
            raise InputError(f"{words}: has no meaning with {why}")


def _exported(request: OverheadRequest, report: OverheadReport, flow: Flow, directory: Path) -> dict[str | Path, bytes]:
    """The netlists of both cores for OpenSTA, by file."""
    from hwgen.measure.netlists.export import as_built, as_mapped
    from hwgen.power.opensta_script import FILES

    conditions, found = report.conditions, dict[str | Path, bytes]()
    for config in (request.baseline, request.candidate):
        how = flow, conditions.clock_ns, request.stimulus
        if conditions.closing is None or request.physical is None:
            written = {"": as_mapped(config, conditions.chosen_recipes[config.name], *how)}
        else:
            cores = {purpose: scopes["core"] for purpose, scopes in conditions.closing[config.name].items()}
            written = as_built(config, cores, request.physical, *how)
        found |= {
            directory / config.name / purpose / FILES[kind]: text.encode()
            for purpose, texts in written.items()
            for kind, text in texts.items()
        }
    return found


def _lanes(
    asked: tuple[str, ...], pair: tuple[TensorCoreConfig, TensorCoreConfig], slots: tuple[str, ...]
) -> tuple[str, ...]:
    """Lanes to choose from besides those of the configurations; by default those that go with one of them.

    A slot that is tried may go with lanes that the slot of the configurations does not go with.
    """
    from hwgen.measure.recorded import tried

    options.check_lanes(asked)
    if asked == ("none",):
        return ()
    for name in asked:
        for config in pair:
            if not config.takes(name, config.slot, *slots):
                replace(config, dot=name)
    return asked or tuple(tried(options.LANES, *pair, slots=slots))

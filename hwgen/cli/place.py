"""``hwgen place``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hwgen.cli.options import check_placer, config, jobs, json_option, libraries
from hwgen.cli.output import print_json, print_table, progress
from hwgen.cli.study import Settings
from hwgen.cli.types import FILE, SEED, UTILISATION
from hwgen.errors import InputError
from hwgen.files import cache_directory, check_file, write_bytes

__all__ = ["command"]


@click.command("place")
@config("nvfp4-small")
@libraries
@click.option("--placer", default="embedded", show_default=True, help="embedded, or coloquinte (extra 'place').")
@click.option("--lef", type=FILE, multiple=True, help="LEF file with the cells' shapes; repeat it for several.")
@click.option("--flat", is_flag=True, help="Place all cells together, not one element for all.")
@click.option("--utilisation", type=UTILISATION, default=0.7, show_default=True, help="Share of the rows to fill.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Of the placement.")
@click.option("--picture", type=FILE, help="Draw the core, coloured by block, to this PNG file.")
@click.option("--no-cache", is_flag=True, help="Synthesise anew, and keep nothing.")
@jobs
@json_option
def command(
    name: str,
    library: str | None,
    liberty: tuple[Path, ...],
    dont_use: tuple[str, ...],
    placer: str,
    lef: tuple[Path, ...],
    flat: bool,
    utilisation: float,
    seed: int,
    picture: Path | None,
    no_cache: bool,
    jobs: int,
    as_json: bool,
) -> None:
    """Place a core, and report the die, the lengths of wires and their capacitance by block.

    The core is synthesised once, for least area.
    """
    from hwgen.layout.lef import read_lef
    from hwgen.measure.netlists.flow import Flow
    from hwgen.measure.netlists.placement import drawn, figures, placed
    from sim.counterpart import resolved

    chosen = resolved(name)
    check_placer(placer)
    if picture is not None:
        if picture.suffix.lower() != ".png":
            raise InputError(f"--picture {str(picture)!r}: must end in .png")
        check_file(picture)
    shapes = read_lef(lef) if lef else None
    cells = Settings(library, liberty, dont_use, no_cache, jobs, None, None, Path(), None, as_json).cells
    cells.check_for_synthesis(sequential=True)
    with progress() as update:
        flow = Flow(cells, None if no_cache else cache_directory("synthesis"), jobs, progress=update)
        layout = placed(chosen, flow, utilisation, placer, "flat" if flat else "array", seed, shapes)
    found = figures(layout)
    if picture is not None:
        write_bytes(picture, drawn(layout, chosen.name))
    if as_json:
        print_json({"configuration": chosen.name, **found})
        return
    blocks: dict[str, dict[str, float]] = found.pop("blocks")
    print_table([chosen.name, ""], [[what.replace("_", " "), _said(value)] for what, value in found.items()])
    rows = [[block, *map(_said, values.values())] for block, values in blocks.items()]
    print_table(["block", *(key.replace("_", " ") for key in next(iter(blocks.values())))], rows)


def _said(value: Any) -> str:
    """A figure as a table has it."""
    if isinstance(value, str):
        return value
    return f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"

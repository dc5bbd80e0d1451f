"""``hwgen diagram``."""

from __future__ import annotations

from pathlib import Path

import click

from hwgen.cli.options import config, out
from hwgen.files import check_file, write_all

__all__ = ["command"]


@click.command("diagram")
@config("mixfp4-small")
@out(Path())
def command(name: str, out: Path) -> None:
    """Draw a core and the datapath of one element as NAME-core.svg and NAME-datapath.svg."""
    from hwgen.package.diagram import core_svg, datapath_svg
    from sim.counterpart import resolved

    chosen = resolved(name)
    places = {kind: out / f"{chosen.name}-{kind}.svg" for kind in ("core", "datapath")}
    for path in places.values():
        check_file(path)
    write_all({places["core"]: core_svg(chosen).encode(), places["datapath"]: datapath_svg(chosen).encode()})
    for path in places.values():
        click.echo(path)

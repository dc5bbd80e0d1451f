"""``hwgen report``."""

from __future__ import annotations

from pathlib import Path

import click

from hwgen.cli.options import REPORTS
from hwgen.cli.types import FILE
from hwgen.errors import InputError
from hwgen.files import write_all

__all__ = ["command"]


@click.command("report")
@click.argument("files", metavar="[REPORT.json]...", type=FILE, nargs=-1)
def command(files: tuple[Path, ...]) -> None:
    """Render tables and plots anew from reports (of all in the reports directory by default)."""
    chosen = list(files) or sorted(REPORTS.glob("*.json"))
    if not chosen:
        raise InputError(f"no report in {str(REPORTS)!r}: 'hwgen compare' writes one")
    from hwgen.report.kinds import rendered_anew

    for path in chosen:
        written = rendered_anew(path)
        write_all(written)
        for each in written:
            click.echo(each)

"""``hwgen site``."""

from __future__ import annotations

from pathlib import Path

import click

from hwgen.cli.options import REPORTS
from hwgen.cli.types import FILE
from hwgen.files import check_file, write_bytes

__all__ = ["command"]

_PAGE = Path("build/site.html")


@click.command("site")
@click.option("--reports", type=FILE, default=REPORTS, show_default=True, help="Directory of the reports.")
@click.option("--out", type=FILE, default=_PAGE, show_default=True, help="The page.")
def command(reports: Path, out: Path) -> None:
    """One HTML page of all reports, to be explored in a browser; it needs no network.

    Everything on it comes from the JSON of the reports directory. Takes the extra 'site'.
    """
    from hwgen.site.page import page

    check_file(out)
    write_bytes(out, page(reports))
    click.echo(out)

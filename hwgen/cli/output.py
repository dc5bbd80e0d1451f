"""What a command prints: JSON or tables on standard output, progress on standard error."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sim.verify.coverage import CoverageFigures

__all__ = ["Update", "print_coverage", "print_json", "print_missed", "print_table", "progress"]

Update = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

_MINUTE = 60.0
_SHOWN = 20
"""Coverage goals that are listed where they are missed."""


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, indent=2))


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table, numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*header)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: let the table take what it needs.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def print_coverage(groups: Mapping[str, CoverageFigures]) -> None:
    """Print how many goals of each group were met."""
    rows = [
        [name, str(group["goals"]), str(group["hit"]), f"{group['events']:,}", f"{group['fewest']:,}"]
        for name, group in groups.items()
    ]
    print_table(["coverage", "goals", "hit", "events", "fewest"], rows)


def print_missed(missed: Sequence[str]) -> None:
    """Print the first goals that were not met, and how many more there are."""
    for name in missed[:_SHOWN]:
        click.echo(f"missed: {name}")
    if more := len(missed[_SHOWN:]):
        click.echo(f"missed: and {more} more, see --json")


@contextmanager
def progress() -> Iterator[Update]:
    """Progress on standard error: bars with the time that is left on a terminal, a line a minute elsewhere."""
    with _bars() if sys.stderr.isatty() else _lines() as update:
        yield update


@contextmanager
def _bars() -> Iterator[Update]:
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as display:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = display.add_task(what, total=total)
            display.update(tasks[what], completed=done, total=total)

        yield update


@contextmanager
def _lines() -> Iterator[Update]:
    started = time.monotonic()
    latest: list[tuple[str, int, int]] = []
    ended = threading.Event()

    def update(what: str, done: int, total: int) -> None:
        latest[:] = [(what, done, total)]

    def tell() -> None:
        # A clock of its own: one step of the work may take many minutes.
        while not ended.wait(_MINUTE):
            minutes = round((time.monotonic() - started) / 60)
            for what, done, total in latest:
                click.echo(f"hwgen: {what}: {done:,} of {total:,} after {minutes} min", err=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield update
    finally:
        ended.set()
        teller.join()

"""``hwgen configs``."""

from __future__ import annotations

import click

from hwgen.cli.options import json_option
from hwgen.cli.output import print_json, print_table

__all__ = ["command"]


@click.command("configs")
@json_option
def command(as_json: bool) -> None:
    """List the named configurations."""
    from hwgen.config import NAMED

    if as_json:
        print_json(
            [
                {**config.as_dict(), "macs_per_step": config.macs_per_step, "latency": config.latency}
                for config in NAMED.values()
            ]
        )
        return
    header = ["name", "A", "B", "outputs", "G", "MAC/cycle", "latency"]
    rows = [
        [
            config.name,
            config.a.name,
            config.b.name,
            f"{config.rows} x {config.columns}",
            str(config.groups),
            str(config.macs_per_step),
            str(config.latency),
        ]
        for config in NAMED.values()
    ]
    print_table(header, rows)

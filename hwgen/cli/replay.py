"""``hwgen replay``."""

from __future__ import annotations

from pathlib import Path

import click

from hwgen.cli.options import check_waves, engine, json_option, made_engine, vcd
from hwgen.cli.output import print_json, print_table
from hwgen.cli.types import FILE
from hwgen.errors import MismatchError

__all__ = ["command"]


@click.command("replay")
@click.argument("vectors", type=FILE)
@engine
@vcd
@json_option
def command(vectors: Path, engine: str, vcd: Path | None, as_json: bool) -> None:
    """Run the steps of a file that 'hwgen verify' wrote, and compare every bit with the golden model.

    Exits with status 1 if a bit differs.
    """
    from sim import verify

    check_waves(vcd, engine, vectors)
    stimulus = verify.load(vectors)
    steps = stimulus.steps
    with made_engine(steps.config, engine, vcd) as core:
        mismatch = verify.check(core, stimulus)
    outcome = {
        "configuration": steps.config.name,
        "engine": core.name,
        "steps": len(steps),
        "outputs": int(steps.last.sum()) * steps.config.rows * steps.config.columns,
        "mismatch": mismatch.reason if mismatch else None,
    }
    if as_json:
        print_json(outcome)
    else:
        print_table(["vectors", "value"], [[key, str(value)] for key, value in outcome.items()])
    if mismatch:
        raise MismatchError(f"mismatch: {mismatch.reason}")

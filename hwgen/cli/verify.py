"""``hwgen verify``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from hwgen.cli.options import config, engine, jobs, json_option, made_engine, out
from hwgen.cli.output import print_coverage, print_missed, print_table, progress
from hwgen.cli.types import MACS, SEED
from hwgen.errors import MismatchError, StorageError, ToolError
from hwgen.files import check_file

__all__ = ["command"]


@click.command("verify")
@config("mixfp4-small")
@click.option("--macs", type=MACS, default=1e8, show_default=True, help="Multiply-accumulates to compare.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the stimulus.")
@engine
@jobs
@click.option("--complete", is_flag=True, help="Exit with status 1 if a coverage goal was not met.")
@out(Path(), "Directory for a reproducer.")
@json_option
def command(
    name: str, macs: float, seed: int, engine: str, jobs: int, complete: bool, out: Path, as_json: bool
) -> None:
    """Compare the RTL with the golden model on constrained-random steps, and report coverage.

    Ends at the first bit that differs, with status 1 and a file of as few steps as will show it, for
    'hwgen replay'.
    """
    from sim import verify
    from sim.counterpart import resolved

    core_config = resolved(name)
    path = out / f"verify-{core_config.name}-{seed}.npz"
    check_file(path)
    lost = ""
    with progress() as update, made_engine(core_config, engine) as core:
        outcome = verify.verify(core, int(macs), seed, jobs, lambda done, total: update("steps", done, total))
        if outcome.failure:
            try:
                verify.reproduce(outcome, core, path, lambda done, most: update("shrinking", done, most))
            except StorageError as error:
                lost = str(error)  # that they differ is what matters, and the seed shows it again
    summary = {**outcome.as_dict(), "reproducer": str(path) if outcome.failure and not lost else None}
    missed = outcome.missed()
    if as_json:
        click.echo(json.dumps(summary))
    else:
        _print_coverage(summary, missed)
    if outcome.failure:
        again = lost or shlex.join(["hwgen", "replay", str(path)])
        raise MismatchError(
            f"mismatch: seed {seed}, batch {outcome.failure.batch}, {outcome.failure.mismatch.reason}; {again}"
        )
    if complete and missed:
        raise ToolError(f"{len(missed)} coverage goals were not met, the first: {missed[0]}")


def _print_coverage(summary: dict[str, Any], missed: list[str]) -> None:
    """What was run, and what it has covered."""
    groups = summary.pop("coverage")
    values = ((key, f"{value:,}" if isinstance(value, int) else str(value)) for key, value in summary.items())
    print_table(["verification", "value"], [[key, value] for key, value in values])
    print_coverage(groups)
    print_missed(missed)

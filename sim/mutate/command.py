"""What the commands that plant mutants have in common: what they print of a run, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import click
from joblib import Parallel, delayed

from hwgen.config import TensorCoreConfig
from hwgen.config.quantiser import QuantiserConfig
from hwgen.errors import InputError, ToolError
from sim.mutate.report import Outcome

__all__ = ["check_none_alive", "started", "told"]

_Of = TypeVar("_Of", TensorCoreConfig, QuantiserConfig)


def told(configs: Sequence[_Of], found: Callable[[_Of], Iterable[Outcome]]) -> list[Outcome]:
    """All outcomes of some designs, a process for each; prints survivors, and how many mutants were killed.

    Parameters
    ----------
    configs
        The designs.
    found
        What becomes of the mutants of one.
    """
    outcomes: list[Outcome] = []
    runs = Parallel(n_jobs=-1, return_as="generator")(delayed(_all)(found, config) for config in configs)
    for config, mine in zip(configs, runs, strict=True):
        for outcome in mine:
            if outcome.killed is None:
                mutant, fate = outcome.mutant, f"equivalent ({outcome.proof})" if outcome.proof else "ALIVE"
                click.echo(f"{config.name} {mutant.module} {mutant.cell} {mutant.operator}: {mutant.detail}: {fate}")
        click.echo(f"{config.name}: {len(mine)} mutants, {sum(o.killed is not None for o in mine)} killed")
        outcomes += mine
    return outcomes


def _all(found: Callable[[_Of], Iterable[Outcome]], config: _Of) -> list[Outcome]:
    return list(found(config))


def check_none_alive(outcomes: Iterable[Outcome]) -> None:
    """Check that no mutant is left.

    Raises
    ------
    ToolError
        Some are neither killed nor proven equivalent.
    """
    if alive := sum(outcome.alive for outcome in outcomes):
        raise ToolError(f"{alive} mutants are neither killed nor proven equivalent")


def started(command: click.Command) -> None:
    """Run a command; what it fails with ends the process with one line, and its status."""
    try:
        command(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("hwgen: interrupted", err=True)
        sys.exit(130)
    except (InputError, ToolError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"hwgen: {message}", err=True)
        sys.exit(1 if isinstance(error, ToolError) else 2)

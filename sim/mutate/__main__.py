"""``python -m sim.mutate``: plant mutants into several cores and write reports/mutation.md and .json."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from hwgen.config import TensorCoreConfig, resolve
from hwgen.errors import InputError
from hwgen.files import check_directory, write_all
from hwgen.formats import NVFP4, UE4M3
from sim.mutate.campaign import STEPS
from sim.mutate.command import check_none_alive, started, told
from sim.mutate.report import as_dict, tables
from sim.mutate.run import CORES, mutate
from sim.steps import Steps

_CORNERS = Path(__file__).parents[2] / "tests" / "sim" / "engines" / "test_corners.py"


def _corners(config: TensorCoreConfig) -> Steps | None:
    """Steps of the directed tests, which are of E4M3 scales for blocks of 16."""
    if any((form.scale, form.size) != (UE4M3, NVFP4.size) for form in (config.a, config.b)):
        return None
    tests = runpy.run_path(str(_CORNERS))
    steps: Steps = tests["steps_of"](config, list(tests["tiles_of"](config, list(tests["corners"](config)))))
    return steps


@click.command()
@click.option("--config", "names", multiple=True, help="Element of this core instead, name or TOML file; repeat it.")
@click.option("--mutants", type=click.IntRange(1, 60_000), default=150, show_default=True, help="Mutants of each core.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Chooses mutants and stimulus.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("reports"), show_default=True, help="Directory.")
def main(names: tuple[str, ...], mutants: int, seed: int, out: Path) -> None:
    """Plant mutants into the RTL; the status is 1 if one is neither killed nor proven equivalent.

    The cores are `sim.mutate.run.CORES`, or those that are given, with one row and one column.
    """
    cores = [replace(resolve(name), rows=1, columns=1) for name in names] or CORES
    if not _CORNERS.is_file():
        raise InputError(
            f"{_CORNERS.name} is not there: mutation testing needs the project's tests, run it in a checkout"
        )
    check_directory(out)
    outcomes = told(cores, partial(mutate, count=mutants, seed=seed, corners=_corners))
    content = {
        out / "mutation.md": tables(outcomes, seed, STEPS),
        out / "mutation.json": json.dumps(as_dict(outcomes, seed, STEPS), indent=1) + "\n",
    }
    write_all({path: text.encode() for path, text in content.items()})
    check_none_alive(outcomes)


if __name__ == "__main__":
    started(main)

"""``hwgen error``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwgen.cli.options import json_option
from hwgen.cli.output import print_json, print_table, progress
from hwgen.cli.types import FILE, SEED, Names, NamesOrFiles
from hwgen.errors import InputError

if TYPE_CHECKING:
    from sim.accuracy import Row
    from sim.golden import BlockFormat

__all__ = ["command"]


@click.command("error")
@click.option(
    "--format",
    "formats",
    type=NamesOrFiles("sim.golden:FORMATS"),
    metavar="NAME",
    multiple=True,
    help="Format, or a TOML file of formats of your own; repeat it for several. A wrong name lists those there are."
    "  [default: all]",
)
@click.option("--file", type=FILE, help="A matrix of yours (rows x K), from a .npy or .safetensors file, instead.")
@click.option("--name", help="Tensor of the --file file.")
@click.option("--seed", type=SEED, help="Seed of the tensors that are drawn.  [default: 0]")
@click.option(
    "--model", type=click.Choice(["minilm"]), help="Measure on a trained model, too (extra 'workloads', 2 minutes)."
)
@click.option(
    "--weights",
    type=Names("sim.golden:FORMATS"),
    metavar="NAME",
    help="Format of the weights of --model in every row.  [default: that of the row]",
)
@json_option
def command(
    formats: tuple[str, ...],
    file: Path | None,
    name: str | None,
    seed: int | None,
    model: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Print what each format loses: signal-to-quantisation-noise ratios in dB, for every rule of quantisation.

    Tensors are drawn: gaussian, heavy-tailed, and with outlier channels. With --model also the weights and activations
    of all-MiniLM-L6-v2, and the similarity of its embeddings to those in FP32. See docs/accuracy.md.
    """
    if file is None and name is not None:
        raise InputError(f"--name {name!r}: is a tensor of a file; give that with --file")
    if file is not None and seed is not None:
        raise InputError("--seed and --file: with a file nothing is drawn; leave one of them out")
    if weights is not None and model is None:
        raise InputError(f"--weights {weights}: is of a model; give that with --model")

    from hwgen.config import is_path
    from sim import accuracy, golden, tensors
    from sim.accuracy.rows import rules
    from sim.counterpart import described

    if file is None:
        inputs: dict[str, Any] = accuracy.drawn(seed=accuracy.SEED if seed is None else seed)
    else:
        tensor = tensors.load(file, name)
        inputs = {"file": tensor}
        _check_signal(file, tensor)
    choices: list[tuple[BlockFormat, str]] = [
        (golden.CATALOGUE[form], rule) for form, rule in accuracy.CHOICES if not formats or form in formats
    ]
    known: dict[str, str] = {}
    for path in filter(is_path, formats):
        own = described(path)
        if not own:
            raise InputError(f"--format {path}: describes no format of its own; a table [formats.NAME] does")
        for form in own:
            if form in known:
                raise InputError(f"--format {path}: format {form!r} is in {known[form]}, too; rename it in one of them")
            known[form] = path
        choices += [(form, rule) for form in own.values() for rule in rules(form)]
    with progress() as update:
        trained = accuracy.minilm_model() if model else None
        try:
            rows = accuracy.table(
                choices, inputs, trained, lambda done, total: update("formats", done, total), weights=weights
            )
        except golden.ArgumentError as error:
            raise InputError(f"{file}: {error}" if file else str(error)) from None
    if as_json:
        conditions = {
            "drawn": None if file else {"shape": accuracy.SHAPE, "seed": accuracy.SEED if seed is None else seed},
            "file": str(file) if file else None,
            "model": model,
            "sentences": len(accuracy.SENTENCES) if model else None,
        }
        print_json({**conditions, "rows": [row.as_dict() for row in rows]})
    else:
        _print(rows, list(inputs))


def _check_signal(file: Path, tensor: Any) -> None:
    """Check that a tensor has an energy that errors can be compared with."""
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        signal = np.square(tensor, dtype=float).sum()
    if signal == 0:
        raise InputError(f"{file}: holds nothing but zeros, or numbers whose squares are, so there is no signal")
    if not signal < np.inf:
        most = np.abs(tensor).max()
        raise InputError(f"{file}: has numbers up to {most:g}; their squares must add up within float64")


def _print(rows: list[Row], inputs: list[str]) -> None:
    header = ["format", "rule", "bits", *inputs]
    cells = [[row.format, row.rule, f"{row.bits:g}", *(f"{row.decibels[name]:.2f}" for name in inputs)] for row in rows]
    if any(row.model for row in rows):
        header += ["weights", "worst", "activations", "worst", "similarity", "worst"]
    for row, line in zip(rows, cells, strict=True):
        if row.model is not None:
            noises = (row.model.weights, row.model.activations)
            line += [f"{number:.2f}" for noise in noises for number in (noise.mean, noise.worst)]
            line += [f"{row.model.similarity:.4f}", f"{row.model.worst_similarity:.4f}"]
    print_table(header, cells)

"""Rows of the table of formats, by name.

A row is a format with a named core, ``FORMAT-small``. ``FORMAT-2x16`` is the same format with two of its blocks of 16
in a step: so many more products are added up at once. Any number of blocks that a core takes will do. A path of a TOML
file is the core that it holds, which may have formats of a user's own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace

from hwgen.config import NAMED, TensorCoreConfig, is_path
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS
from hwgen.measure.requests import Row
from sim.counterpart import resolved

__all__ = ["BASELINE", "NOT_BUILT", "SIZE", "TWICE", "known", "not_comparable", "row_name", "rows_of", "with_products"]

SIZE = "small"

NOT_BUILT = {
    "four-over-six": "is a rule by which NVFP4's scales are found (arXiv 2512.02010): the core is that of nvfp4",
    "bipolar": "arXiv 2409.17870 computes bit by bit, in several cycles; every core here finishes a product in one",
    "int4-fp16": "weights of 4 bits times FP16 have elements of 16 bits; lanes here take codes of 8 at most",
    "l-mul": "arXiv 2410.00907 adds floating-point codes, so every product is inexact; lanes here give exact integers",
    "opt1": "arXiv 2503.06342 is an accumulator of integers, not a format: it holds two words that it never adds up",
}
"""Rows of the literature that have no core of their own here, by name, and why."""

BASELINE = NAMED[f"nvfp4-{SIZE}"]
"""What all rows are compared with."""

TWICE = ("mixfp4-2x16",)
"""Rows of the default table with two blocks in a step, besides the baseline's: beside formats with blocks of 32."""

_MOST_GROUPS = 8
"""Blocks of a core in a step."""

_BLOCKS = re.compile(r"(?P<name>.+)-(?P<groups>[2-8])x(?P<size>\d+)")


def known() -> tuple[str, ...]:
    """Names of the rows that have a core, in the order of the named configurations; slots are no formats."""
    end = f"-{SIZE}"
    return tuple(name.removesuffix(end) for name, core in NAMED.items() if name.endswith(end) and not core.slotted)


def row_name(configuration: str) -> str:
    """Name of the row that a core of a name is measured for."""
    return configuration.removesuffix(f"-{SIZE}")


def with_products(config: TensorCoreConfig, products: int) -> TensorCoreConfig | None:
    """A core with so many products for an output in a step; None if that is no number of blocks that it can take.

    Parameters
    ----------
    config
        The core with one block in a step.
    products
        How many are asked for.
    """
    groups, rest = divmod(products, config.a.size)
    if rest or not 1 <= groups <= _MOST_GROUPS:
        return None
    if groups == config.groups:
        return config
    return replace(config, name=f"{row_name(config.name)}-{groups}x{config.a.size}-{SIZE}", groups=groups)


def not_comparable(config: TensorCoreConfig, baseline: TensorCoreConfig = BASELINE) -> str | None:
    """Why a core cannot be compared with a baseline; None where it can."""
    for shape in ("rows", "columns"):
        if (own := getattr(config, shape)) != (its := getattr(baseline, shape)):
            return f"has {own} {shape}, and {baseline.name} has {its}"
    if with_products(baseline, config.depth) is None:
        return (
            f"adds up {config.depth} products for an output in a cycle; that is no number of blocks of"
            f" {baseline.a.size} that {baseline.name} could take in a step: it takes 1 to {_MOST_GROUPS}"
        )
    return None


def rows_of(names: Iterable[str] = ()) -> tuple[Row, ...]:
    """Rows by name, or by path of a file; where none is named all that have a core, `TWICE` and `NOT_BUILT`.

    A format of the catalogue without a core has a row that says so.

    Raises
    ------
    InputError
        There is no such row, or one is named twice, or it cannot be compared with `BASELINE`; or a file holds no core,
        or one of a name that is taken.
    """
    found: dict[str, Row] = {}
    for name in tuple(names) or (*known(), *TWICE, *NOT_BUILT):
        row = _row(name)
        if row.name in found:
            raise InputError(f"--rows: {row.name!r} is given twice")
        if row.config is not None and (reason := not_comparable(row.config)) is not None:
            raise InputError(f"--rows: {name!r} {reason}")
        found[row.name] = row
    return tuple(found.values())


def _row(name: str) -> Row:
    if is_path(name):
        return _row_of_file(name)
    if (config := NAMED.get(f"{name}-{SIZE}")) is not None:
        return Row(name, config)
    if (parts := _BLOCKS.fullmatch(name)) is not None:
        config = NAMED.get(f"{parts['name']}-{SIZE}")
        size, groups = int(parts["size"]), int(parts["groups"])
        if config is not None and config.a.size == size:
            return Row(name, with_products(config, groups * size))
    if name in NOT_BUILT:
        return Row(name, None, NOT_BUILT[name])
    if name in BLOCK_FORMATS:
        return Row(name, None, f"no configuration {name}-{SIZE}")
    near = difflib.get_close_matches(name, (*known(), *NOT_BUILT, *BLOCK_FORMATS), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"--rows: unknown row {name!r}: known are {', '.join(known())}{hint}")


def _row_of_file(path: str) -> Row:
    config = resolved(path)
    name = row_name(config.name)
    parts = _BLOCKS.fullmatch(name)
    if name in (*known(), *NOT_BUILT) or (parts is not None and parts["name"] in known()):
        raise InputError(f"--rows: {path!r}: name = {config.name!r}: hwgen has a row {name!r}; choose another name")
    return Row(name, config)

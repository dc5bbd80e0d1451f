"""Rows of the table of formats, by name.

A row is a format with a named core, ``FORMAT-small``. ``FORMAT-2x16`` is the same format with two of its blocks of 16
in a step: so many more products are added up at once. Any number of blocks that a core takes will do. A path of a TOML
file is the core that it holds, which may have formats of a user's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from hwgen.config import NAMED, TensorCoreConfig, is_path
from hwgen.config.named import BLOCKS, MOST_BLOCKS, SIZE, find, with_blocks
from hwgen.errors import InputError, meant
from hwgen.formats import BLOCK_FORMATS
from hwgen.measure.requests import Row
from sim.counterpart import resolved

__all__ = [
    "BASELINE",
    "NOT_BUILT",
    "RULES",
    "TWICE",
    "every",
    "known",
    "not_comparable",
    "row_name",
    "rows_of",
    "with_products",
]

RULES = {"four-over-six": "nvfp4"}
"""Rows that are a rule by which the scales of another row are found, and that row: they have its core."""

NOT_BUILT = {
    "bipolar": (
        "arXiv 2409.17870 multiplies bit by bit, in as many passes as two numbers have pairs of bits, and its bits are"
        " -1 or 1, so that no code is zero; a core here takes whole products in every cycle, and the zeros that pad K"
    ),
}
"""Rows of the literature that no core here can be, by name, and what of its contract their hardware does not have."""

BASELINE = NAMED[f"nvfp4-{SIZE}"]
"""What all rows are compared with."""

_TWO_BLOCKS = "-2x16"

TWICE = tuple(f"{form}{_TWO_BLOCKS}" for form in ("mixfp4", "nvint4", "if4", "razer", "msfp12", "int4", "int8"))
"""Rows of the default table with two blocks in a step, besides the baseline's: beside formats with blocks of 32."""

_ORDER = (
    # Blocks of E2M1 or 4-bit integers that are common, or a small step from those.
    *("nvfp4", "mixfp4", "mixfp4-weights", *RULES, "nvint4"),
    *("mxfp4", "fp4-ue5m3-b16", "fp4-ue5m3-b32"),
    # With hardware of their own.
    *("if4", "razer", "blockdialect", "hif4", "msfp12"),
    # Of six and eight bits.
    *("mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e2m3", "mxfp6-e3m2", "mxint8", "w4a8"),
    # Of the literature, with other lanes.
    *("int4", "int8", "int8-exact", "opt1", "w4a8-int", "ternary", *NOT_BUILT, "int4-fp16", "l-mul"),
)
"""Rows as the table has them, each followed by that with two sums of 16; any others come last."""


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    def place(name: str) -> tuple[int, bool]:
        first = name.removesuffix(_TWO_BLOCKS)
        return _ORDER.index(first) if first in _ORDER else len(_ORDER), name != first

    return tuple(sorted(names, key=place))


def known() -> tuple[str, ...]:
    """Names of the rows that have a named core, in the order of the table; slots are no formats."""
    end = f"-{SIZE}"
    return _in_order(name.removesuffix(end) for name, core in NAMED.items() if name.endswith(end) and not core.slotted)


def every() -> tuple[str, ...]:
    """Names of the rows of the default table, in its order: all that have a core, `TWICE`, `RULES`, `NOT_BUILT`."""
    return _in_order((*known(), *TWICE, *RULES, *NOT_BUILT))


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
    if rest or not 1 <= groups <= MOST_BLOCKS:
        return None
    return config if groups == config.groups else with_blocks(config, groups)


def not_comparable(config: TensorCoreConfig, baseline: TensorCoreConfig = BASELINE) -> str | None:
    """Why a core cannot be compared with a baseline; None where it can."""
    if config.slotted:
        return f"has slot = {config.slot!r}: it multiplies FP8, too, and a row does not; measure it by hwgen compare"
    for shape in ("rows", "columns"):
        if (own := getattr(config, shape)) != (its := getattr(baseline, shape)):
            return f"has {shape} = {own}; a row has {its}, as {baseline.name}"
    if with_products(baseline, config.depth) is None:
        return (
            f"adds up {config.depth} products for an output in a cycle; that is no number of blocks of"
            f" {baseline.a.size} that {baseline.name} could take in a step: it takes 1 to {MOST_BLOCKS};"
            f" choose other groups, the blocks of {config.a.size} in a step"
        )
    return None


def rows_of(names: Iterable[str] = ()) -> tuple[Row, ...]:
    """Rows by name, or by path of a file; where none is named `every` one.

    A format of the catalogue without a core has a row that says so.

    Raises
    ------
    InputError
        There is no such row, or one is named twice, or it cannot be compared with `BASELINE`; or a file holds no core,
        or one of a name that is taken.
    """
    found: dict[str, Row] = {}
    for name in tuple(names) or every():
        row = _row(name)
        if row.name in found:
            raise InputError(f"--rows: {row.name!r} is given twice")
        if row.config is not None and (reason := not_comparable(row.config)) is not None:
            raise InputError(f"--rows: {name!r} {reason}")
        found[row.name] = row
    return tuple(found.values())


def _row(name: str) -> Row:
    if not name:
        raise InputError("--rows: has an empty name; put one between each two commas")
    if is_path(name):
        return _row_of_file(name)
    if name in RULES:
        return Row(name, None, f"its hardware is that of {RULES[name]}")
    if name in NOT_BUILT:
        return Row(name, None, NOT_BUILT[name])
    if (config := find(f"{name}-{SIZE}")) is not None:
        return Row(name, config)
    if name in BLOCK_FORMATS:
        cores = [
            row for row in known() if row != name and name in {form.name for form in NAMED[f"{row}-{SIZE}"].formats}
        ]
        which = f"; it is one format of {', '.join(cores)}" if cores else ""
        return Row(name, None, f"no configuration {name}-{SIZE}{which}")
    raise InputError(f"--rows: unknown row {name!r}; {meant(name.removesuffix(f'-{SIZE}'), every())}")


def _row_of_file(path: str) -> Row:
    config = resolved(path)
    name = row_name(config.name)
    parts = BLOCKS.fullmatch(f"{name}-{SIZE}")
    if name in every() or (parts is not None and parts["kind"] in known()):
        raise InputError(f"--rows: {path!r}: name = {config.name!r}: hwgen has a row {name!r}; choose another name")
    return Row(name, config)

"""The configuration of one tensor core, and the named configurations."""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwgen.config.reserved import RESERVED
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS, BLOCK_SIZE, BlockFormat

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["NAMED", "TensorCoreConfig", "named", "resolve", "resolve_pair"]

DOTS = ("merged", "signed", "significand", "multiplier", "e2m2")  # modules of `hwgen.rtl.lanes`
TAGS = ("both", "weights")
LEADING_ZEROS = ("counted", "anticipated")
ROUNDINGS = ("toward_zero", "nearest_even")
NUMERICS = ("blackwell", "exact")
PIPELINE_REGISTERS = ("operands", "decoded", "sums", "terms", "aligned", "total", "normal")
LOOP_REGISTERS = ("aligned", "total", "normal")  # in the accumulation loop, unless that is exact
DEFAULT_PIPELINE = ("decoded", "sums")

# Below 33 the exponent that the contract gives to a zero scale would show in results that are subnormal, and
# the datapath would have to carry it; above 39 the sum of 8 groups no longer fits the golden model's float64.
FRACTION_BITS = range(33, 40)

LARGEST_DEPTHS = range(1 << 12, (1 << 24) + 1)  # the shortest is 32 steps of 8 groups
DEFAULT_LARGEST_DEPTH = 1 << 16


@dataclass(frozen=True)
class TensorCoreConfig:
    """What the generator needs to know about one tensor core.

    Parameters
    ----------
    name
        Letters, digits, ``-`` and ``_``; names the files and, with ``_`` for ``-``, the Verilog module.
    format
        ``nvfp4`` (E2M1 blocks only) or ``mixfp4`` (E2M1 or E1M2, by the tag of each block).
    rows, columns
        Outputs of the array: M rows of A by N rows of B (1 to 64 each).
    groups
        Blocks of 16 along K that one step consumes, G (1 to 8).
    dot
        Micro-architecture of the dot product, see `hwgen.rtl.lanes`: ``merged``, ``signed``, ``significand``,
        ``multiplier``, or ``e2m2``, the literal internal format of the MixFP4 paper (``mixfp4`` with all tags only).
    tags
        Which operands of a ``mixfp4`` core have tags: ``both``, or ``weights``, the B operand alone; A is
        NVFP4 then.
    fraction_bits
        Bits kept below the largest exponent of a step (33 to 39; Blackwell: 35, arXiv 2511.10909).
    rounding
        Rounding of a step's sum to FP32: ``toward_zero`` (Blackwell) or ``nearest_even``.
    leading_zeros
        How the sum is normalised: its leading zeros are ``counted``, or ``anticipated`` beside the adder, for a
        shorter path and more area.
    pipeline
        Which registers there are besides that of the result. Before the accumulation loop: ``operands``
        (codes and scales at the edge of the array), ``decoded`` (the same behind the operand decoders), ``sums``
        (block sums, before they are scaled) and ``terms`` (scaled block sums). In the loop: ``aligned`` (words
        shifted to one exponent), ``total`` (their sum) and ``normal`` (the normalised sum, before it is rounded).
        Those in the loop interleave as many more tiles, see `interleave`.
    numerics
        ``blackwell``, every step rounds to FP32; or ``exact``, a fixed-point accumulator holds every term of
        the whole GEMM and its sum with C is rounded once, to nearest even. There ``fraction_bits``, ``rounding``
        and ``leading_zeros`` have no meaning, and no register lies in the loop: ``aligned`` (the sum of a step's
        terms) stands before it, ``total`` (with C) and ``normal`` behind.
    largest_depth
        Largest K of a GEMM that cannot overflow the accumulator, ``exact`` only (4096 to 2^24).

    Raises
    ------
    InputError
        A field is out of range; the message names it.
    """

    name: str
    format: str
    rows: int
    columns: int
    groups: int
    dot: str = "merged"
    tags: str = "both"
    fraction_bits: int = 35
    rounding: str = "toward_zero"
    leading_zeros: str = "counted"
    pipeline: tuple[str, ...] = DEFAULT_PIPELINE
    numerics: str = "blackwell"
    largest_depth: int = DEFAULT_LARGEST_DEPTH

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", self.name):
            raise InputError(
                f"name = {self.name!r}: must start with a letter and hold only letters, digits, '-' and '_'"
                " (at most 64)"
            )
        if self.identifier in RESERVED:
            raise InputError(f"name = {self.name!r}: is a reserved word of Verilog; choose another")
        self._one_of("format", tuple(BLOCK_FORMATS))
        self._one_of("dot", DOTS)
        self._one_of("tags", TAGS)
        self._one_of("rounding", ROUNDINGS)
        self._one_of("leading_zeros", LEADING_ZEROS)
        self._within("rows", range(1, 65))
        self._within("columns", range(1, 65))
        self._within("groups", range(1, 9))
        self._within("fraction_bits", FRACTION_BITS)
        if not isinstance(self.pipeline, (tuple, list)):
            raise InputError(f"pipeline = {self.pipeline!r}: must be a list of {PIPELINE_REGISTERS}")
        for register in self.pipeline:
            if register not in PIPELINE_REGISTERS:
                raise InputError(
                    f"pipeline = {list(self.pipeline)}: {register!r} is not one of {', '.join(PIPELINE_REGISTERS)}"
                )
        # One canonical order, so that equal configurations compare equal.
        ordered = tuple(register for register in PIPELINE_REGISTERS if register in self.pipeline)
        object.__setattr__(self, "pipeline", ordered)
        if self.tags != "both" and not self.block_format.tagged:
            raise InputError(f"tags = {self.tags!r}: format {self.format!r} has no tags; leave it 'both'")
        if self.dot == "e2m2" and not (self.tagged("a") and self.tagged("b")):
            raise InputError("dot = 'e2m2': an operand without E1M2 blocks has no formats to unify; use 'merged'")
        self._one_of("numerics", NUMERICS)
        self._within("largest_depth", LARGEST_DEPTHS)
        for field in _MEANINGLESS[self.numerics]:
            if (value := getattr(self, field)) != _FIELDS[field].default:
                raise InputError(f"{field} = {value!r}: has no meaning with numerics = {self.numerics!r}; leave it out")

    def _one_of(self, field: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, field)
        if value not in allowed:
            raise InputError(f"{field} = {value!r}: must be one of {', '.join(allowed)}")

    def _within(self, field: str, allowed: range) -> None:
        value = getattr(self, field)
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            raise InputError(f"{field} = {value!r}: must be a whole number from {allowed[0]} to {allowed[-1]}")

    @property
    def block_format(self) -> BlockFormat:
        """The block format."""
        return BLOCK_FORMATS[self.format]

    def tagged(self, side: str) -> bool:
        """Whether the block scales of operand ``side``, ``a`` or ``b``, have a tag that is read."""
        return self.block_format.tagged and (side == "b" or self.tags == "both")

    def operand_format(self, side: str) -> str:
        """Name of the block format of operand ``side``: ``nvfp4`` where it has no tags."""
        return self.format if self.tagged(side) else "nvfp4"

    @property
    def identifier(self) -> str:
        """The name as a Verilog identifier."""
        return self.name.replace("-", "_")

    @property
    def depth(self) -> int:
        """Elements along K that one step consumes, 16 G."""
        return BLOCK_SIZE * self.groups

    @property
    def macs_per_step(self) -> int:
        """Multiply-accumulates of one step, M N 16 G."""
        return self.rows * self.columns * self.depth

    @property
    def latency(self) -> int:
        """Clock cycles from the acceptance of a step to its result, without stalls."""
        return len(self.pipeline) + 1 + self.exact

    @property
    def exact(self) -> bool:
        """Whether the accumulator is exact; it then has a register besides that of the result."""
        return self.numerics == "exact"

    @property
    def anticipated(self) -> bool:
        """Whether leading zeros are anticipated."""
        return self.leading_zeros == "anticipated"

    @property
    def largest_steps(self) -> int | None:
        """Most steps of one tile, from first to last; None if there is no limit."""
        return -(-self.largest_depth // self.depth) if self.exact else None

    @property
    def interleave(self) -> int:
        """Cycles of the accumulation loop, T: a step continues with the result of the T-th step before it."""
        return 1 if self.exact else 1 + sum(register in LOOP_REGISTERS for register in self.pipeline)

    def as_dict(self) -> dict[str, Any]:
        """The fields that have a meaning, ready for JSON or TOML; some only where they are not the default."""
        fields = {**dataclasses.asdict(self), "pipeline": list(self.pipeline)}
        unsaid = _MEANINGLESS[self.numerics] + (() if self.exact else ("numerics",))
        unsaid += () if self.anticipated else ("leading_zeros",)
        unsaid += () if self.block_format.tagged else ("tags",)
        return {name: value for name, value in fields.items() if name not in unsaid}


_FIELDS = {field.name: field for field in dataclasses.fields(TensorCoreConfig)}
_MEANINGLESS = {"blackwell": ("largest_depth",), "exact": ("fraction_bits", "rounding", "leading_zeros")}
"""Fields that say nothing about a core, by numerics."""


def _sized(
    size: str, rows: int, columns: int, groups: int, pipeline: tuple[str, ...] = DEFAULT_PIPELINE
) -> dict[str, TensorCoreConfig]:
    kinds = (("nvfp4", "nvfp4", "both"), ("mixfp4", "mixfp4", "both"), ("mixfp4-weights", "mixfp4", "weights"))
    return {
        f"{kind}-{size}": TensorCoreConfig(f"{kind}-{size}", form, rows, columns, groups, tags=tags, pipeline=pipeline)
        for kind, form, tags in kinds
    }


NAMED: dict[str, TensorCoreConfig] = {
    **_sized("small", rows=4, columns=4, groups=1),
    **_sized("blackwell", rows=8, columns=8, groups=4, pipeline=("decoded", "sums", "terms")),
}
"""Named configurations; ``blackwell`` has the rate of one Blackwell tensor core, 4096 MAC per cycle.

In ``mixfp4-weights-*`` only operand B, the weights, is MixFP4; A is NVFP4.

Of the pipelines that keep the accumulation loop to one cycle theirs have the least product of area and energy of
the NVFP4 core (docs/datapath.md): registers before the dot product and before the scale product keep glitches from
being multiplied, and with four groups so do registers before their alignment.
"""


def named(name: str) -> TensorCoreConfig:
    """Return the named configuration ``name``.

    Raises
    ------
    InputError
        There is none; the message lists those that exist.
    """
    if name not in NAMED:
        near = difflib.get_close_matches(name, NAMED, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"unknown configuration {name!r}: known are {', '.join(NAMED)}, or a TOML file{hint}")
    return NAMED[name]


def _table(path: Path) -> dict[str, Any]:
    """A file's content, every key of which is a field; ``name`` defaults to the file's stem."""
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise InputError(f"configuration file {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # ValueError: also of an integer with thousands of digits
        reason = " ".join(str(error).split())
        raise InputError(f"configuration file {str(path)!r}: not valid TOML: {reason}") from None
    for key in table:
        if key not in _FIELDS:
            near = difflib.get_close_matches(key, _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_FIELDS)}"
            raise InputError(f"configuration file {str(path)!r}: unknown key {key!r}; {hint}")
    return {"name": path.stem, **table}


def _load(path: Path, **given: str) -> TensorCoreConfig:
    table = {**_table(path), **given}
    if given.get("format") and not BLOCK_FORMATS[given["format"]].tagged:
        table.pop("tags", None)  # of the other one of the pair
    for name, field in _FIELDS.items():
        if name not in table and field.default is dataclasses.MISSING:
            raise InputError(f"configuration file {str(path)!r}: key {name!r} is missing")
    try:
        return TensorCoreConfig(**table)
    except InputError as error:
        raise InputError(f"configuration file {str(path)!r}: {error}") from None


def resolve(name_or_path: str) -> TensorCoreConfig:
    """Return a named configuration, or read one from a TOML file.

    The file holds the fields of `TensorCoreConfig` at its top level; ``name`` defaults to the
    file's stem.

    Parameters
    ----------
    name_or_path
        A name of `NAMED`, or the path of a file; what ends in ``.toml`` or holds a path separator is
        a path.

    Raises
    ------
    InputError
        No such name, unreadable file, unknown or missing key, or a value out of range.
    """
    if _is_path(name_or_path):
        return _load(Path(name_or_path))
    return named(name_or_path)


def _is_path(name_or_path: str) -> bool:
    return name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path


def resolve_pair(size_or_path: str) -> tuple[TensorCoreConfig, TensorCoreConfig]:
    """Return the NVFP4 and the MixFP4 configuration of one size, or of one TOML file.

    The file is as for `resolve`, but without ``format``: it stands for ``nvfp4-NAME`` and ``mixfp4-NAME``.

    Parameters
    ----------
    size_or_path
        Such as ``small``, or a path; see `resolve`.

    Raises
    ------
    InputError
        As from `resolve`, or the file says which format.
    """
    if not _is_path(size_or_path):
        return named(f"nvfp4-{size_or_path}"), named(f"mixfp4-{size_or_path}")
    path = Path(size_or_path)
    table = _table(path)
    if "format" in table:
        raise InputError(f"configuration file {str(path)!r}: stands for both formats here; leave 'format' out")
    nvfp4, mixfp4 = (_load(path, format=name, name=f"{name}-{table['name']}") for name in BLOCK_FORMATS)
    return nvfp4, mixfp4

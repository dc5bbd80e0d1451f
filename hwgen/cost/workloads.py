"""GEMM lists: what a transformer computes in one pass.

A list is a TOML file::

    title = "A model"                      # optional, and so is `source`

    [[gemm]]
    name = "scores"
    m = "4 * queries"                      # whole numbers and symbols, multiplied
    n = "context"
    k = 128
    batch = "8 * sequences"                # independent products, 1 by default
    count = 32                             # layers that have this GEMM, 1 by default
    role = "scores"                        # `scores`, `values` or `logits`; `linear` by default
    operands = 128                         # columns of the result that a later GEMM reads, N by default
    combined = 2                           # rows of the result that are added up to one operand, 1 by default
    rate = "half"                          # in FP8, on cores with a slot; `full` by default
    why = "4 query heads share a key head" # optional

or a CSV file whose first line names the columns: ``name, m, n, k`` are needed, ``batch, count, role, operands,
combined, rate, experts, experts_per_token, why`` are optional. Their order and case do not matter. A first line with
semicolons or tabs and no comma says that these separate the columns. Every GEMM has a name of its own. Symbols are

=============  ==========================================================================
``sequences``  sequences in the batch
``queries``    tokens of each sequence that one pass works on: its length, or 1 in decode
``context``    tokens that each of them attends to: the sequence's length
``tokens``     ``sequences * queries``
=============  ==========================================================================

The role says what becomes of a result (`hwgen.cost.results`). Logits are not read by another GEMM. A GEMM of values
reads the scores of the last entry before it that has this role, and has its M, batch and count, and its N as K.

An entry with ``experts`` and ``experts_per_token`` is one of a mixture of experts: every one of the M tokens goes to
``experts_per_token`` of them. Those that get none do not compute. The others share the tokens evenly: none gets more
than one token more than another. How many these are is the routing:

============  ========================================================================================================
``expected``  as many as get a token on average if every token chooses at random, E (1 - (1 - k / E)^M), rounded
``even``      as many as can be, the smaller of E and k M
============  ========================================================================================================
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.cost.gemms import LARGEST_WORK, Gemms
from hwgen.errors import InputError, meant

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "HALF_RATE",
    "PHASES",
    "ROLES",
    "ROUTING",
    "Workload",
    "at_half_rate",
    "load",
    "model",
    "models",
    "which_at_half_rate",
]

PHASES = ("prefill", "decode")
"""All tokens of the sequences at once, or one more of each."""

ROLES = ("linear", "scores", "values", "logits")
"""What a GEMM is to those after it."""

ROUTING = ("expected", "even")
"""How many experts share the tokens."""

HALF_RATE = ("none", "attention")
"""Which GEMMs are in FP8, at half the rate, besides those of which a list says so."""

_RATES = ("full", "half")
_DIGITS = 19  # more make a number that is too large
_SYMBOLS = ("sequences", "queries", "context", "tokens")
_SIZES = ("m", "n", "k", "batch", "count", "operands", "combined", "experts", "experts_per_token")
_NEEDED = ("name", "m", "n", "k")
_COLUMNS = ("name", *_SIZES, "role", "rate", "why")
_SEPARATORS = (",", ";", "\t")
_LARGEST_FILE = 16 << 20


@dataclass(frozen=True)
class Workload:
    """GEMMs of one pass.

    Parameters
    ----------
    title
        What it is.
    source
        Where its shapes are from.
    names
        Of each GEMM.
    gemms
        Their shapes.
    count
        How often each is computed, int64, (L,).
    notes
        Why each has its shape.
    tokens
        Tokens that a pass works on; None where a list does not say. Sizes with ``queries`` and without ``sequences``
        are of one sequence.
    symbols
        Those that sizes are written with; ``tokens`` counts as ``sequences`` and ``queries``.
    roles
        Of each, one of `ROLES`.
    operands
        Columns of each result that a later GEMM reads, int64, (L,).
    combined
        Rows of each result that are added up to one operand, int64, (L,).
    readers
        A GEMM that reads each result: of scores that of the values, of others that of the next entry; -1 where there is
        none. int64, (L,).
    routed
        Whether it has experts.
    routing
        One of `ROUTING`.
    listed_half
        Whether the list says of each that it is in FP8, bool, (L,).
    query_block
        Queries of a block, behind whose last one no scores are computed, see `hwgen.cost.masked`; None where all are.
    """

    title: str
    source: str
    names: tuple[str, ...]
    gemms: Gemms
    count: NDArray[np.int64]
    notes: tuple[str, ...]
    tokens: int | None
    symbols: frozenset[str]
    roles: tuple[str, ...]
    operands: NDArray[np.int64]
    combined: NDArray[np.int64]
    readers: NDArray[np.int64]
    routed: bool
    routing: str
    listed_half: NDArray[np.bool_]
    query_block: int | None = None


def at_half_rate(workload: Workload, which: str) -> Workload:
    """The workload with those GEMMs in FP8 that one of `HALF_RATE` says, besides those of which the list says so.

    Raises
    ------
    InputError
        ``attention`` is asked for, which are scores and values, and the workload has none.
    """
    attention = np.isin(workload.roles, ("scores", "values"))
    if which != HALF_RATE[0] and not attention.any():
        raise InputError(f"--half-rate {which}: {workload.title} has no GEMM with the role 'scores' or 'values'")
    half = workload.listed_half | attention & (which != HALF_RATE[0])
    shapes = workload.gemms
    return replace(workload, gemms=Gemms(shapes.m, shapes.n, shapes.k, shapes.batch, half))


def which_at_half_rate(workload: Workload) -> str | None:
    """Which GEMMs are in FP8: ``attention``, or ``listed`` where the list alone says so; None where none are."""
    half = workload.gemms.half
    if not half.any():
        return None
    return HALF_RATE[1] if (half & ~workload.listed_half).any() else "listed"


def models() -> list[str]:
    """Names of the packaged models."""
    return sorted(path.name.removesuffix(".toml") for path in files("hwgen.cost.models").iterdir() if _is_list(path))


def _is_list(path: Any) -> bool:
    return str(path.name).endswith(".toml")


def model(name: str, phase: str, sequences: int, length: int, routing: str = ROUTING[0]) -> Workload:
    """The GEMMs of a packaged model.

    Parameters
    ----------
    name
        One of `models`.
    phase
        One of `PHASES`.
    sequences
        Sequences in the batch, at least 1.
    length
        Tokens of each, at least 1; in decode those that the next one attends to, itself included.
    routing
        One of `ROUTING`.

    Raises
    ------
    InputError
        There is no such model; the message names the nearest, or all there are.
    """
    known = models()
    if name not in known:
        raise InputError(f"unknown model {name!r}: neither a list of your own nor a name; {meant(name, known)}")
    text = files("hwgen.cost.models").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return _workload(f"model {name}", tomllib.loads(text), phase, sequences, length, name, routing)


def load(path: Path, phase: str, sequences: int, length: int, routing: str = ROUTING[0]) -> Workload:
    """Read a list of GEMMs from a TOML or CSV file, by its suffix; other parameters as of `model`.

    Raises
    ------
    InputError
        No such file, not readable as its suffix says, or an entry that is not as it should be.
    """
    label = f"GEMM list {str(path)!r}"
    if path.suffix.lower() not in (".toml", ".csv"):
        raise InputError(f"{label}: must end in .toml or .csv")
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise InputError(f"{label}: longer than {_LARGEST_FILE >> 20} MiB")
        text = content.decode("utf-8-sig")
        table = tomllib.loads(text) if path.suffix.lower() == ".toml" else _table(label, text)
    except OSError as error:
        raise InputError(f"{label}: {error.strerror}") from None
    except InputError:
        raise
    except (ValueError, RecursionError, csv.Error) as error:  # ValueError: also of an integer with thousands of digits
        kind = path.suffix[1:].upper()
        raise InputError(f"{label}: not valid {kind}: {' '.join(str(error).split())}") from None
    return _workload(label, table, phase, sequences, length, path.stem, routing)


def _separator(header: str) -> str:
    """What separates the columns: the first of ``,``, ``;`` and tab that the first line has."""
    return next((mark for mark in _SEPARATORS if mark in header), ",")


def _header(label: str, row: list[str]) -> list[str]:
    """Names of the columns, lower case; a column without a name has an empty one."""
    header = [name.strip().lower() for name in row]
    for name in header:
        if name and name not in _COLUMNS:
            raise InputError(f"{label}: unknown column {name!r}; {meant(name, _COLUMNS)}")
        if name and header.count(name) > 1:
            raise InputError(f"{label}: column {name!r} is there {header.count(name)} times; must be there once")
    if missing := [name for name in _NEEDED if name not in header]:
        raise InputError(f"{label}: column {missing[0]!r} is missing; its first line must have {', '.join(_NEEDED)}")
    return header


def _table(label: str, text: str) -> dict[str, Any]:
    """A CSV file as TOML would give it."""
    separator = _separator(text.partition("\n")[0])
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    header = _header(label, next(rows, []))
    entries = []
    for row in rows:
        if len(row) > len(header):
            raise InputError(f"{label}: line {rows.line_num}: has more than {len(header)} columns")
        given = {name: value.strip() for name, value in zip(header, row, strict=False) if value.strip()}
        if "" in given:
            raise InputError(f"{label}: line {rows.line_num}: {given['']!r} stands in a column without a name")
        if given:
            entries.append(given)
    return {"gemm": entries}


def _workload(
    label: str, table: Mapping[str, Any], phase: str, sequences: int, length: int, stem: str, routing: str
) -> Workload:
    symbols = _symbols(phase, sequences, length)
    entries = _entries(label, table)
    names: list[str] = []
    first: dict[str, int] = {}
    notes: list[str] = []
    shapes: list[tuple[int, int, int, int]] = []
    counts: list[int] = []
    roles: list[str] = []
    operands: list[int] = []
    combined: list[int] = []
    half: list[bool] = []
    entry_of: list[int] = []
    scores: Mapping[str, int] | None = None
    used: set[str] = set()
    routed = False
    for number, entry in enumerate(entries, start=1):
        name, where = _named(label, number, entry, first)
        first[name] = number
        size = {key: _product(where, key, entry[key], symbols) for key in _SIZES if key in entry}
        used |= {word for key in size if isinstance(entry[key], str) for word in re.findall("[a-z]+", entry[key])}
        size = {"batch": 1, "count": 1, **size}
        role = _role(where, entry.get("role", ROLES[0]), size, scores)
        scores = size if role == "scores" else scores
        routed |= "experts" in size
        halved = _is_halved(where, entry.get("rate", _RATES[0]))
        why = _reason(where, entry.get("why", ""))
        for suffix, m, products in _experts(where, size, routing):
            roles.append(role)
            half.append(halved)
            entry_of.append(number)
            operands.append(size.get("operands", size["n"]))
            combined.append(size.get("combined", 1))
            names.append(name + suffix)
            notes.append(why)
            shapes.append((m, size["n"], size["k"], size["batch"] * products))
            counts.append(size["count"])
            if m * size["n"] * size["k"] * size["batch"] * products * size["count"] >= LARGEST_WORK:
                raise InputError(f"{where}: too large; at most 2^62 multiply-accumulates can be counted")
    return Workload(
        title=" ".join(table.get("title", stem).split()),
        source=" ".join(table.get("source", "").split()),
        names=tuple(names),
        gemms=Gemms.of(shapes, half),
        count=np.array(counts, np.int64),
        notes=tuple(notes),
        tokens=_tokens(used, symbols),
        symbols=frozenset(used - {"tokens"} | ({"sequences", "queries"} if "tokens" in used else set())),
        roles=tuple(roles),
        operands=np.array(operands, np.int64),
        combined=np.array(combined, np.int64),
        readers=_readers(entry_of, roles),
        routed=routed,
        routing=routing,
        listed_half=np.array(half),
    )


def _symbols(phase: str, sequences: int, length: int) -> dict[str, int]:
    """What each of `_SYMBOLS` stands for."""
    if phase not in PHASES:
        raise InputError(f"phase {phase!r}: must be one of {', '.join(PHASES)}")
    for name, value in (("batch", sequences), ("sequence", length)):
        if value < 1:
            raise InputError(f"{name} = {value}: must be at least 1")
    queries = length if phase == "prefill" else 1
    return {"sequences": sequences, "queries": queries, "context": length, "tokens": sequences * queries}


def _tokens(used: Collection[str], symbols: Mapping[str, int]) -> int | None:
    """Tokens that a pass works on, by the symbols that its sizes are written with."""
    if {"sequences", "tokens"} & {*used}:
        return symbols["tokens"]
    return symbols["queries"] if "queries" in used else None


def _readers(entry_of: Sequence[int], roles: Sequence[str]) -> NDArray[np.int64]:
    """Of each GEMM the first one of the entry that reads its result, by entries and roles of all; -1 for none."""
    first: dict[int, int] = {}
    read_by: dict[int, int] = {}
    scored = 0
    for place, (entry, role) in enumerate(zip(entry_of, roles, strict=True)):
        first.setdefault(entry, place)
        if role == "scores":
            scored = entry
        elif role == "values":
            read_by.setdefault(scored, entry)
    return np.array([first.get(read_by.get(entry, entry + 1), -1) for entry in entry_of], np.int64)


def _entries(label: str, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The GEMMs of a list, whose other keys are checked."""
    for key in table:
        if key not in ("title", "source", "gemm"):
            raise InputError(f"{label}: unknown key {key!r}; known are title, source and [[gemm]]")
    for key in ("title", "source"):
        if not isinstance(table.get(key, ""), str):
            raise InputError(f"{label}: {key} = {table[key]!r}: must be a text")
    entries = table.get("gemm", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{label}: gemm must be a list of tables; write [[gemm]] above each entry")
    if not entries:
        raise InputError(f"{label}: holds no GEMM; a list needs at least one entry")
    return entries


def _reason(where: str, why: object) -> str:
    """What an entry says of itself, on one line."""
    if not isinstance(why, str):
        raise InputError(f"{where}: why = {why!r}: must be a text")
    return " ".join(why.split())


def _is_halved(where: str, rate: object) -> bool:
    """Whether an entry says that it is in FP8."""
    if rate not in _RATES:
        raise InputError(f"{where}: rate = {rate!r}: must be one of {', '.join(_RATES)}")
    return rate == _RATES[1]


def _named(label: str, number: int, entry: Mapping[str, Any], first: Mapping[str, int]) -> tuple[str, str]:
    """The name of an entry, and how messages call it; its keys are known and none that is needed is missing."""
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{label}: entry {number}: name = {name!r}: must be a text")
    name = " ".join(name.split())
    where = f"{label}: entry {number} ({name})"
    if name in first:
        raise InputError(f"{where}: entry {first[name]} has this name already; names must differ")
    for key in entry:
        if key not in _COLUMNS:
            raise InputError(f"{where}: unknown key {key!r}; {meant(key, _COLUMNS)}")
    for key in _NEEDED:
        if key not in entry:
            raise InputError(f"{where}: {key!r} is missing")
    return name, where


def _role(where: str, role: object, size: Mapping[str, int], scores: Mapping[str, int] | None) -> str:
    """One of `ROLES` that fits the entry's sizes and those of the scores before it."""
    if role not in ROLES:
        raise InputError(f"{where}: role = {role!r}: must be one of {', '.join(ROLES)}")
    if size.get("operands", 1) > size["n"]:
        raise InputError(f"{where}: operands = {size['operands']}: must be at most n = {size['n']}")
    if role in ("scores", "logits") and size.get("combined", 1) > 1:
        raise InputError(f"{where}: combined = {size['combined']}: results with the role {role!r} are not added up")
    if role in ("scores", "values") and "experts" in size:
        raise InputError(f"{where}: role = {role!r}: has no experts")
    if role == "values":
        if scores is None:
            raise InputError(f"{where}: role = 'values': no entry before it has the role 'scores'")
        for key, of in (("m", "m"), ("k", "n"), ("batch", "batch"), ("count", "count")):
            if size[key] != scores[of]:
                raise InputError(f"{where}: {key} = {size[key]}: its scores have {of} = {scores[of]}; must be the same")
    return str(role)


def _product(where: str, key: str, given: object, symbols: Mapping[str, int]) -> int:
    """A whole number, or a text of such and symbols, multiplied."""
    value = 1
    for factor in given.split("*") if isinstance(given, str) else [given]:
        if isinstance(factor, str):
            factor = factor.strip()
            if factor in symbols:
                value *= symbols[factor]
                continue
            if re.fullmatch("[0-9]+", factor):
                digits = factor.lstrip("0")
                factor = int(digits or "0") if len(digits) <= _DIGITS else LARGEST_WORK
        if not isinstance(factor, int) or isinstance(factor, bool) or factor < 1:
            raise InputError(
                f"{where}: {key} = {given!r}: must be a whole number of at least 1, or a product of such and"
                f" {', '.join(_SYMBOLS)}"
            )
        value *= factor
    if value >= LARGEST_WORK:
        raise InputError(f"{where}: {key} = {given!r}: too large; must be below 2^62")
    return value


def _experts(where: str, size: Mapping[str, int], routing: str) -> list[tuple[str, int, int]]:
    """What a mixture of experts makes of one entry: suffix of its name, rows, and products."""
    keys = {"experts", "experts_per_token"} & size.keys()
    if not keys:
        return [("", size["m"], 1)]
    if len(keys) == 1:
        raise InputError(f"{where}: experts and experts_per_token belong together")
    experts, each = size["experts"], size["experts_per_token"]
    if each > experts:
        raise InputError(f"{where}: experts_per_token = {each}: must be at most experts = {experts}")
    distinct = min(experts, size["m"] * each)
    if routing == "expected" and each < experts:
        # 1 - (1 - k / E)^M, exact also where k / E is small.
        distinct = max(each, round(-experts * math.expm1(size["m"] * math.log1p(-each / experts))))
    fewer, larger = divmod(size["m"] * each, distinct)
    split = [(fewer + 1, larger), (fewer, distinct - larger)]
    return [(f" [{products} experts]", rows, products) for rows, products in split if products]

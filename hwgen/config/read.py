"""Configurations by name or from a TOML file."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hwgen.config.core import DESCRIBED, FIELDS, MEANINGLESS, TensorCoreConfig
from hwgen.config.named import find, like_small, named
from hwgen.errors import InputError, meant
from hwgen.formats import BLOCK_FORMATS, MIXFP4, NVFP4, BlockFormat
from hwgen.formats.read import TABLES, formats_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["formats_in", "from_dict", "is_path", "resolve", "resolve_pair", "toml"]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Errors in here name the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"configuration file {str(path)!r}: {error.strerror}") from None
    except InputError as error:
        raise InputError(f"configuration file {str(path)!r}: {error}") from None


def toml(text: bytes) -> dict[str, Any]:
    """The content of TOML.

    Raises
    ------
    InputError
        It is none.
    """
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # ValueError: also of an integer with thousands of digits
        raise InputError(f"not valid TOML: {' '.join(str(error).split())}") from None


def _described(text: bytes) -> tuple[dict[str, Any], dict[str, BlockFormat]]:
    """The content of a file, and the formats that it describes, by name."""
    table = toml(text)
    described = formats_of(table, text.decode("utf-8-sig"))
    return {key: value for key, value in table.items() if key not in TABLES}, described


def _table(path: Path) -> dict[str, Any]:
    """A file's content, every key of which is a field; ``name`` defaults to the file's stem.

    Formats that the file describes are put in the place of their names. With some, what is not said is as in ``small``.
    """
    table, described = _described(path.read_bytes())
    if isinstance(table.get("format"), dict):
        raise InputError("unknown table 'format'; did you mean 'formats'?")
    if old := [key for key in ("format", "tags") if key in table]:
        raise InputError(f"key {old[0]!r} is gone; {_instead(table)}")
    for key in table:
        if key not in FIELDS:
            raise InputError(f"unknown key {key!r}; {meant(key, FIELDS)}")
    table = {"name": path.stem, **table}
    if not described:
        return table
    if len(described) == 1:
        table = {**dict.fromkeys("ab", next(iter(described))), **table}
    known = BLOCK_FORMATS | described
    for side in "ab":
        if side not in table:
            raise InputError(
                f"key {side!r} is missing; of formats {', '.join(described)} say which one A and which one B has"
            )
        if isinstance(name := table[side], str):
            table[side] = _known(side, name, known)
    if all(isinstance(table[side], BlockFormat) for side in "ab"):
        groups = table.get("groups")
        others = like_small(table["a"], table["b"], groups if isinstance(groups, int) and 1 <= groups <= 8 else 1)
        if table.get("numerics") == "exact":
            others.pop("fraction_bits", None)
        table = {**others, **table}
    return table


def _known(side: str, name: str, known: dict[str, BlockFormat]) -> BlockFormat:
    """The format of an operand."""
    if name not in known:
        raise InputError(f"{side} = {name!r}: is no format; {meant(name, known)}")
    return known[name]


def from_dict(fields: dict[str, Any]) -> TensorCoreConfig:
    """The configuration that `TensorCoreConfig.as_dict` gave.

    Raises
    ------
    InputError
        There is no such configuration.
    """
    texts = fields.get(DESCRIBED, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise InputError(f"{DESCRIBED} = {texts!r}: must be texts by name")
    described: dict[str, BlockFormat] = {}
    for text in dict.fromkeys(texts.values()):
        described |= _described(text.encode())[1]
    rest = {name: value for name, value in fields.items() if name != DESCRIBED}
    return TensorCoreConfig(**{**rest, **{side: described.get(rest[side], rest[side]) for side in "ab"}})


def _instead(table: dict[str, Any]) -> str:
    """What to write for the keys that named one format for both operands."""
    form = table.get("format", MIXFP4.name)
    a = NVFP4.name if table.get("tags") == "weights" else form
    return f"write a = {json.dumps(a)} and b = {json.dumps(form)}" if isinstance(form, str) else "write a and b"


def _load(path: Path, **given: Any) -> TensorCoreConfig:
    table = {**_table(path), **given}
    for name, field in FIELDS.items():
        if name not in table and field.default is dataclasses.MISSING:
            raise InputError(f"key {name!r} is missing")
    numerics = table.get("numerics", FIELDS["numerics"].default)
    for key in MEANINGLESS.get(numerics, ()) if isinstance(numerics, str) else ():
        if key in table:
            raise InputError(f"{key} = {table[key]!r}: has no meaning with numerics = {numerics!r}; leave it out")
    try:
        return TensorCoreConfig(**table)
    except InputError as error:
        stem = str(table["name"]).endswith(path.stem) and str(error).startswith("name = ")
        hint = "; or set 'name' in the file" if stem else ""
        raise InputError(f"{error}{hint}") from None


def resolve(name_or_path: str) -> TensorCoreConfig:
    """Return a named configuration, or read one from a TOML file.

    The file holds the fields of `TensorCoreConfig` at its top level; ``name`` defaults to the
    file's stem. It may describe formats of its own, see `hwgen.formats.read`. Then it needs no other field: A and B
    have the format, and the core is like ``small``.

    Parameters
    ----------
    name_or_path
        A name, see `hwgen.config.named.find`, or the path of a file; what ends in ``.toml`` or holds a path separator
        is a path.

    Raises
    ------
    InputError
        No such name, unreadable file, unknown or missing key, or a value out of range.
    """
    if is_path(name_or_path):
        path = Path(name_or_path)
        with _reading(path):
            return _load(path)
    return named(name_or_path)


def formats_in(path: Path) -> dict[str, BlockFormat]:
    """The formats that a TOML file describes, by name, be they in its core or not.

    Raises
    ------
    InputError
        Unreadable, not TOML, or a format that is not right.
    """
    with _reading(path):
        return _described(path.read_bytes())[1]


def is_path(name_or_path: str) -> bool:
    """Whether it is a path of a file, see `resolve`."""
    return name_or_path.lower().endswith(".toml") or "/" in name_or_path or "\\" in name_or_path


def _size(name: str) -> str:
    """The size in a name: the longest end of it that NVFP4 and MixFP4 have, too."""
    parts = name.split("-")
    ends = ("-".join(parts[index:]) for index in range(1, len(parts)))
    return next(end for end in ends if all(find(f"{form.name}-{end}") for form in (NVFP4, MIXFP4)))


def resolve_pair(size_or_path: str) -> tuple[TensorCoreConfig, TensorCoreConfig]:
    """Return the NVFP4 and the MixFP4 configuration of one size, or of one TOML file.

    The file is as for `resolve`, but without ``a`` and ``b``: it stands for ``nvfp4-NAME`` and ``mixfp4-NAME``.

    Parameters
    ----------
    size_or_path
        Such as ``small``, or a path; see `resolve`.

    Raises
    ------
    InputError
        As from `resolve`, or the file names a format.
    """
    if find(size_or_path) is not None:
        raise InputError(
            f"configuration {size_or_path!r}: is one design, and two are wanted: give a size, such as"
            f" {_size(size_or_path)!r}, or --baseline and --candidate"
        )
    if not is_path(size_or_path):
        return named(f"nvfp4-{size_or_path}"), named(f"mixfp4-{size_or_path}")
    path = Path(size_or_path)
    with _reading(path):
        return _pair(path)


def _pair(path: Path) -> tuple[TensorCoreConfig, TensorCoreConfig]:
    _, described = _described(path.read_bytes())
    for form in described:
        raise InputError(
            f"describes format {form!r}; give a file without one, or give this one by --baseline or --candidate"
        )
    table = _table(path)
    for key in ("a", "b"):
        if key in table:
            raise InputError(f"stands for both formats here; leave {key!r} out")
    if not isinstance(table["name"], str):
        raise InputError(f"name = {table['name']!r}: must be a text")
    nvfp4, mixfp4 = (_load(path, a=form, b=form, name=f"{form.name}-{table['name']}") for form in (NVFP4, MIXFP4))
    return nvfp4, mixfp4

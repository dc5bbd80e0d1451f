"""Configurations by name or from a TOML file."""

from __future__ import annotations

import dataclasses
import difflib
import json
import sys
from pathlib import Path
from typing import Any

from hwgen.config.core import FIELDS, MEANINGLESS, TensorCoreConfig
from hwgen.config.named import NAMED, named
from hwgen.errors import InputError
from hwgen.formats import MIXFP4, NVFP4

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["resolve", "resolve_pair"]


def _table(path: Path) -> dict[str, Any]:
    """A file's content, every key of which is a field; ``name`` defaults to the file's stem."""
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise InputError(f"configuration file {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # ValueError: also of an integer with thousands of digits
        reason = " ".join(str(error).split())
        raise InputError(f"configuration file {str(path)!r}: not valid TOML: {reason}") from None
    if old := [key for key in ("format", "tags") if key in table]:
        raise InputError(f"configuration file {str(path)!r}: key {old[0]!r} is gone; {_instead(table)}")
    for key in table:
        if key not in FIELDS:
            near = difflib.get_close_matches(key, FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(FIELDS)}"
            raise InputError(f"configuration file {str(path)!r}: unknown key {key!r}; {hint}")
    return {"name": path.stem, **table}


def _instead(table: dict[str, Any]) -> str:
    """What to write for the keys that named one format for both operands."""
    form = table.get("format", MIXFP4.name)
    a = NVFP4.name if table.get("tags") == "weights" else form
    return f"write a = {json.dumps(a)} and b = {json.dumps(form)}" if isinstance(form, str) else "write a and b"


def _load(path: Path, **given: Any) -> TensorCoreConfig:
    table = {**_table(path), **given}
    for name, field in FIELDS.items():
        if name not in table and field.default is dataclasses.MISSING:
            raise InputError(f"configuration file {str(path)!r}: key {name!r} is missing")
    numerics = table.get("numerics", FIELDS["numerics"].default)
    for key in MEANINGLESS.get(numerics, ()) if isinstance(numerics, str) else ():
        if key in table:
            raise InputError(
                f"configuration file {str(path)!r}: {key} = {table[key]!r}: has no meaning with"
                f" numerics = {numerics!r}; leave it out"
            )
    try:
        return TensorCoreConfig(**table)
    except InputError as error:
        stem = table["name"] == path.stem and str(error).startswith("name = ")
        hint = "; or set 'name' in the file" if stem else ""
        raise InputError(f"configuration file {str(path)!r}: {error}{hint}") from None


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
    if size_or_path in NAMED:
        raise InputError(
            f"configuration {size_or_path!r}: is one design, and two are wanted: give a size, such as"
            f" {size_or_path.rpartition('-')[2]!r}, or --baseline and --candidate"
        )
    if not _is_path(size_or_path):
        return named(f"nvfp4-{size_or_path}"), named(f"mixfp4-{size_or_path}")
    path = Path(size_or_path)
    table = _table(path)
    for key in ("a", "b"):
        if key in table:
            raise InputError(f"configuration file {str(path)!r}: stands for both formats here; leave {key!r} out")
    if not isinstance(table["name"], str):
        raise InputError(f"configuration file {str(path)!r}: name = {table['name']!r}: must be a text")
    nvfp4, mixfp4 = (_load(path, a=form, b=form, name=f"{form.name}-{table['name']}") for form in (NVFP4, MIXFP4))
    return nvfp4, mixfp4

"""The golden model's own description of a format that the generator knows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hwgen.config import TensorCoreConfig, formats_in, resolve
from hwgen.errors import InputError
from hwgen.formats import BlockFormat
from sim import golden

__all__ = ["counterpart", "described", "resolved"]


def counterpart(form: BlockFormat) -> golden.BlockFormat:
    """The golden model's format of the same name.

    It is in the model's catalogue; or the model reads it from the text of the user's file, by code of its own. So this
    works in every process that has the generator's format.

    Raises
    ------
    InputError
        The file does not describe a format that the golden model could quantise to; the message names the field.
    """
    if not form.definition:
        return golden.block_format(form.name)
    try:
        return golden.formats_from(form.definition)[form.name]
    except golden.ArgumentError as error:
        raise InputError(str(error)) from None


def described(path: str) -> dict[str, golden.BlockFormat]:
    """The golden model's formats of a TOML file that describes some, by name; it need not have a core.

    Raises
    ------
    InputError
        As `hwgen.config.formats_in`, or as `counterpart`.
    """
    return _counterparts(path, formats_in(Path(path)).values())


def resolved(name_or_path: str) -> TensorCoreConfig:
    """As `hwgen.config.resolve`; formats that a file describes are checked by the golden model, too.

    Raises
    ------
    InputError
        As there, or as `counterpart`.
    """
    config = resolve(name_or_path)
    _counterparts(name_or_path, config.formats)
    return config


def _counterparts(name_or_path: str, forms: Iterable[BlockFormat]) -> dict[str, golden.BlockFormat]:
    """What the golden model makes of the formats of a configuration, by name."""
    try:
        return {form.name: counterpart(form) for form in forms}
    except InputError as error:
        raise InputError(f"configuration file {name_or_path!r}: {error}") from None

"""The golden model's own description of a format that the generator knows."""

from __future__ import annotations

from hwgen.config import TensorCoreConfig, resolve
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


def described(name_or_path: str) -> dict[str, golden.BlockFormat]:
    """The golden model's formats of a configuration, by name.

    Raises
    ------
    InputError
        As `resolved`.
    """
    return _both(name_or_path)[1]


def resolved(name_or_path: str) -> TensorCoreConfig:
    """As `hwgen.config.resolve`; formats that a file describes are checked by the golden model, too.

    Raises
    ------
    InputError
        As there, or as `counterpart`.
    """
    return _both(name_or_path)[0]


def _both(name_or_path: str) -> tuple[TensorCoreConfig, dict[str, golden.BlockFormat]]:
    """A configuration, and what the golden model makes of its formats."""
    config = resolve(name_or_path)
    try:
        return config, {form.name: counterpart(form) for form in config.formats}
    except InputError as error:
        raise InputError(f"configuration file {name_or_path!r}: {error}") from None

"""Records that are a manifest's JSON: its keys are their fields, and its schema is made of them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Record"]


@dataclass(frozen=True)
class Record:
    """What JSON has field by field.

    A field with a default may be left out, and is where it has that. A field of the type ``Annotated[X, str]`` stands
    for an ``X`` that is told elsewhere: JSON has its name.
    """

    @classmethod
    def may_lack(cls) -> tuple[str, ...]:
        """Fields that the JSON need not have."""
        return tuple(field.name for field in dataclasses.fields(cls) if field.default is not dataclasses.MISSING)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        named = _by_name(type(self))
        return {
            field.name: value.name if field.name in named else _plain(value)
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }


def _by_name(record: type[Record]) -> frozenset[str]:
    """Fields of which JSON has the name."""
    hints = typing.get_type_hints(record, include_extras=True)
    told = (typing.Annotated, (str,))
    return frozenset(
        name for name, hint in hints.items() if (typing.get_origin(hint), typing.get_args(hint)[1:]) == told
    )


def _plain(value: Any) -> Any:
    """What a field holds, ready for JSON."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value

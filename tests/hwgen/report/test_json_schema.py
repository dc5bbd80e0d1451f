"""JSON Schema from annotations; that the schemas hold for what is written is in ``cli/test_schemas.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import fastjsonschema
import pytest

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.report.json_schema import json_schema


@dataclass(frozen=True)
class Inner:
    """A part.

    Parameters
    ----------
    way
        Which one.
    """

    way: Literal["up", "down"]


class Half(TypedDict, total=False):
    """What may be left out.

    Parameters
    ----------
    more
        Words.
    """

    more: str


@dataclass(frozen=True)
class Outer:
    """A whole.

    Parameters
    ----------
    count
        How many.
    share
        A fraction; null without.
    inner
        The parts.
    by_name
        Anything, by name.
    half
        The rest; null without.
    core
        A configuration.
    """

    count: int
    share: float | None
    inner: tuple[Inner, ...]
    by_name: Mapping[str, Any]
    half: Half | None
    core: Annotated[dict[str, Any], TensorCoreConfig]


GOOD: dict[str, Any] = {
    "count": 3,
    "share": None,
    "inner": [{"way": "up"}],
    "by_name": {"x": 1, "y": []},
    "half": {},
    "core": NAMED["mixfp4-small"].as_dict(),
}
SCHEMA = json_schema(Outer, "outer", 2, "An example", {"count": 3})
check = fastjsonschema.compile(SCHEMA)


def test_the_head_says_which_version_of_what_it_is() -> None:
    assert SCHEMA["$id"] == "urn:hwgen:outer:2"
    assert SCHEMA["title"] == "An example"
    assert SCHEMA["properties"]["share"]["description"] == "A fraction; null without."
    assert SCHEMA["definitions"].keys() == {"Inner", "Half", "Configuration"}


def test_what_is_of_the_form_conforms() -> None:
    for more in ({}, {"share": 1}, {"share": 0.5}, {"half": None}, {"half": {"more": "x"}}, {"unknown": 1}):
        check({**GOOD, **more})


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 4},
        {"share": "0.5"},
        {"inner": {}},
        {"inner": [{}]},
        {"inner": [{"way": "left"}]},
        {"by_name": []},
        {"half": {"more": None}},
        {"core": {"name": "x"}},
    ],
    ids=str,
)
def test_what_is_not_does_not(wrong: dict[str, Any]) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        check({**GOOD, **wrong})


@pytest.mark.parametrize("key", GOOD)
def test_no_key_may_be_missing(key: str) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        check({name: value for name, value in GOOD.items() if name != key})

"""What JSON has of a record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.report.json_schema import json_schema
from hwgen.verilog.record import Record


@dataclass(frozen=True)
class Pin(Record):
    """A pin.

    Parameters
    ----------
    name
        Its name.
    bits
        How many.
    """

    name: str
    bits: int = 1


@dataclass(frozen=True)
class Chip(Record):
    """A chip.

    Parameters
    ----------
    clock
        The pin of its clock, by name.
    pins
        All of them.
    core
        What is in it.
    words
        By pin.
    note
        What else is to be said.
    """

    clock: Annotated[Pin, str]
    pins: tuple[Pin, ...]
    core: TensorCoreConfig
    words: Mapping[str, str]
    note: str | None = None


CLOCK, DATA = Pin("clk"), Pin("d", 8)


def test_a_field_that_has_its_default_is_left_out() -> None:
    assert CLOCK.as_dict() == {"name": "clk"}
    assert DATA.as_dict() == {"name": "d", "bits": 8}
    assert Chip.may_lack() == ("note",)


def test_a_record_told_elsewhere_is_its_name() -> None:
    core = NAMED["mixfp4-small"]
    chip = Chip(CLOCK, (CLOCK, DATA), core, {"clk": "the clock"})
    assert chip.as_dict() == {
        "clock": "clk",
        "pins": [{"name": "clk"}, {"name": "d", "bits": 8}],
        "core": core.as_dict(),
        "words": {"clk": "the clock"},
    }


def test_the_schema_is_made_of_the_same_fields() -> None:
    found = json_schema(Chip, "chip", 1, "A chip", {})
    assert found["required"] == ["clock", "pins", "core", "words"]
    assert found["properties"]["clock"]["type"] == "string"
    assert found["properties"]["note"] == {"type": "string", "description": "What else is to be said."}
    assert found["definitions"]["Pin"]["required"] == ["name"]

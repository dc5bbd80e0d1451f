"""The manifest of a core, from layouts, signature and design.

::

    layouts of the payloads --> fields --> ports --> streams --> Manifest

Fields, ports and streams are found alike in every unit that has streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In

from hwgen.config import TensorCoreConfig
from hwgen.rtl.hierarchy import ModuleSet
from hwgen.rtl.tensor_core import TensorCore, addend_layout, result_layout, step_layout
from hwgen.verilog.contract import field_words, numerics, stream_rules
from hwgen.verilog.convert import core
from hwgen.verilog.ports import (
    CLOCK,
    RESET,
    SCHEMA,
    Clock,
    Dimension,
    Direction,
    Field,
    Instances,
    Manifest,
    Port,
    Reset,
    Stream,
    generator,
)

__all__ = ["describe", "fields", "ports", "streams"]

Words = Mapping[str, tuple[tuple[str, ...], str]]
"""By field: the names of its dimensions, and its meaning."""

_MEANINGS = {
    "step__payload": "one step",
    "step__valid": "a step is offered",
    "step__ready": "the core takes a step in this cycle",
    "addend__payload": "C of one tile",
    "addend__valid": "C of a tile is offered",
    "addend__ready": "the core takes C in this cycle",
    "result__payload": "one result",
    "result__valid": "a result is waiting",
    "result__ready": "the result is taken in this cycle",
}


def fields(layout: Any, words: Words, path: str = "", offset: int = 0) -> tuple[Field, ...]:
    """Leaves of a layout in bit order; arrays of arrays are one field with several dimensions.

    Parameters
    ----------
    layout
        Of the payload.
    words
        What is to be said of each field.
    path, offset
        Name of the layout, where it is a field itself, and its lowest bit.
    """
    if isinstance(layout, data.StructLayout):
        return tuple(
            entry
            for name, field in layout
            for entry in fields(field.shape, words, f"{path}.{name}".lstrip("."), offset + field.offset)
        )
    names, meaning = words[path]
    dimensions = []
    for name in names:
        assert isinstance(layout, data.ArrayLayout)
        dimensions.append(Dimension(name, layout.length, Shape.cast(layout.elem_shape).width))
        layout = layout.elem_shape
    return (Field(path, offset, Shape.cast(layout).width, tuple(dimensions), meaning),)


def _direction(flow: Any) -> Direction:
    return "input" if flow == In else "output"


def ports(unit: Any, meanings: Mapping[str, str], payloads: Mapping[str, tuple[Field, ...]]) -> tuple[Port, ...]:
    """The ports of a unit but clock and reset, in the order of its signature.

    Parameters
    ----------
    unit
        With streams as its ports, or plain signals.
    meanings
        In words, by port.
    payloads
        Fields by port, where it is a payload.
    """
    found = []
    for path, member, _ in unit.signature.flatten(unit):
        name = "__".join(map(str, path))
        width = Shape.cast(member.shape).width
        found.append(Port(name, _direction(member.flow), width, meanings[name], payloads.get(name, ())))
    return tuple(found)


def streams(unit: Any, found: Iterable[Port]) -> dict[str, Stream]:
    """The streams of a unit with these ports, by name."""
    named = {port.name: port for port in found}
    return {
        name: Stream(_direction(member.flow), *(named[f"{name}__{role}"] for role in ("valid", "ready", "payload")))
        for name, member in unit.signature.members.items()
        if f"{name}__payload" in named
    }


def _totals(modules: ModuleSet, top: str) -> dict[str, int]:
    """Instances of every module in the whole design; the top counts as one."""
    totals = dict.fromkeys(modules.instances, 0)

    def visit(name: str, copies: int) -> None:
        totals[name] += copies
        for child, count in modules.instances[name].items():
            visit(child, copies * count)

    visit(top, 1)
    return totals


def describe(config: TensorCoreConfig, modules: ModuleSet | None = None) -> Manifest:
    """Describe the Verilog of a core so that a testbench in any language can be written from it alone.

    Parameters
    ----------
    config
        Tensor core configuration.
    modules
        Its design, `core(config)`; made here if it is not given.
    """
    if modules is None:
        modules = core(config)
    resets = "the valid bits of the pipeline and of C" + (" and the order of turns" if config.interleave > 1 else "")
    top, block = modules.add(TensorCore, config)
    totals = _totals(modules, top)
    words = field_words(config)
    payloads = {
        "step__payload": fields(step_layout(config), words),
        "addend__payload": fields(addend_layout(config), words, "c"),
        "result__payload": fields(result_layout(config), words, "d"),
    }
    found = ports(block, _MEANINGS, payloads)
    return Manifest(
        schema=SCHEMA,
        generator=generator(),
        configuration=config,
        file=f"{config.name}.v",
        top=top,
        clock=Clock(CLOCK, "rising"),
        reset=Reset(
            RESET,
            "active high",
            synchronous=True,
            meaning=f"one clock edge drops every step under way and C; only {resets} have a reset",
        ),
        latency=block.latency,
        interleave=config.interleave,
        numerics=numerics(config),
        streams=streams(block, found),
        stream_rules=tuple(stream_rules(config)),
        modules={name: Instances(totals[name], children) for name, children in modules.instances.items()},
        offsets="bit 0 is the least significant bit of the port; element [x][y] of a field is its `width`"
        " bits at offset + x * stride of x + y * stride of y, with the dimensions in the order listed",
        ports=(CLOCK, RESET, *found),
    )

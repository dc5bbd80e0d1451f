"""The manifest of a core: its ports and modules as records, from layouts, signature and design.

::

    layouts of the payloads --> fields --> ports --> streams --> Manifest --> NAME.json
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In

from hwgen.config import TensorCoreConfig
from hwgen.rtl.hierarchy import Block, ModuleSet
from hwgen.rtl.tensor_core import TensorCore, addend_layout, result_layout, step_layout
from hwgen.verilog.contract import field_words, numerics, stream_rules
from hwgen.verilog.convert import core
from hwgen.verilog.ports import Dimension, Direction, Field, Manifest, Port, Stream

__all__ = ["describe"]

_CLOCK = Port("clk", "input", 1, "clock")
_RESET = Port("rst", "input", 1, "reset")
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


def _fields(layout: Any, words: Mapping[str, tuple[tuple[str, ...], str]], path: str, offset: int) -> list[Field]:
    """Leaves of a layout in bit order; arrays of arrays are one field with several dimensions."""
    if isinstance(layout, data.StructLayout):
        return [
            entry
            for name, field in layout
            for entry in _fields(field.shape, words, f"{path}.{name}".lstrip("."), offset + field.offset)
        ]
    names, meaning = words[path]
    dimensions = []
    for name in names:
        assert isinstance(layout, data.ArrayLayout)
        dimensions.append(Dimension(name, layout.length, Shape.cast(layout.elem_shape).width))
        layout = layout.elem_shape
    return [Field(path, offset, Shape.cast(layout).width, tuple(dimensions), meaning)]


def _direction(flow: Any) -> Direction:
    return "input" if flow == In else "output"


def _ports(config: TensorCoreConfig, block: Block) -> list[Port]:
    """The ports of the streams, in the order of the signature."""
    words = field_words(config)
    fields = {
        "step__payload": _fields(step_layout(config), words, "", 0),
        "addend__payload": _fields(addend_layout(config), words, "c", 0),
        "result__payload": _fields(result_layout(config), words, "d", 0),
    }
    ports = []
    for path, member, _ in block.signature.flatten(block):
        name = "__".join(map(str, path))
        width = Shape.cast(member.shape).width
        ports.append(Port(name, _direction(member.flow), width, _MEANINGS[name], tuple(fields.get(name, ()))))
    return ports


def _streams(block: Block, ports: list[Port]) -> dict[str, Stream]:
    named = {port.name: port for port in ports}
    return {
        name: Stream(_direction(member.flow), *(named[f"{name}__{role}"] for role in ("valid", "ready", "payload")))
        for name, member in block.signature.members.items()
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
    ports = _ports(config, block)
    return Manifest(
        config=config,
        top=top,
        latency=block.latency,
        ports=(_CLOCK, _RESET, *ports),
        clock=_CLOCK,
        reset=_RESET,
        reset_meaning=f"one clock edge drops every step under way and C; only {resets} have a reset",
        streams=_streams(block, ports),
        stream_rules=tuple(stream_rules(config)),
        numerics=numerics(config),
        modules={name: {"total": totals[name], "instances": children} for name, children in modules.instances.items()},
    )

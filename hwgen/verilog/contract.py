"""What a manifest says in words: meaning of the fields, rules of the streams, numerics."""

from __future__ import annotations

from typing import Any

from hwgen.config import TensorCoreConfig
from hwgen.formats import BLOCK_SIZE, ElementFormat

__all__ = ["field_words", "numerics", "stream_rules", "title"]


def title(config: TensorCoreConfig) -> str:
    """First line of a core's Verilog."""
    return f"{config.name}: tensor core, D = A B^T + C; {config.name}.json describes ports and payloads."


def _element_words(element: ElementFormat) -> str:
    magnitudes = (element.half_units(code) * 2.0**element.fold / 2 for code in range(8))
    return f"{element.name} (magnitudes of codes 0 to 7: {', '.join(f'{value:g}' for value in magnitudes)})"


def field_words(config: TensorCoreConfig) -> dict[str, tuple[tuple[str, ...], str]]:
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


def stream_rules(config: TensorCoreConfig) -> list[str]:
    """What sender, receiver and core keep to at every transfer."""
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


def numerics(config: TensorCoreConfig) -> dict[str, Any]:
    """What a core computes, as figures and as the formulas of its contract."""
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

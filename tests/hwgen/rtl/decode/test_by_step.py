"""Formats whose elements a step chooses: their decoder is MixFP4's, with the selector of all blocks from the type."""

import dataclasses

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.formats.unscaled import SELECTOR, TYPE_BITS
from hwgen.rtl.decode.operand import OperandDecoder, operand_layout
from hwgen.rtl.lane_array import LaneArray
from hwgen.verilog import design

CHOSEN = TensorCoreConfig("x", "nvfp4-e0m3", "nvfp4-e0m3", 1, 1, 2, slot="full")
TAGGED = dataclasses.replace(CHOSEN, a="mixfp4", b="mixfp4")


def _miter(selector):
    """Verilog that compares both decoders, on any row, any type and either rate; ``selector`` is in Verilog."""
    groups, codes = CHOSEN.groups, 64 * CHOSEN.groups
    size = operand_layout(TAGGED, "a").size
    scales = ", ".join(f"{selector}, scales[{7 * group + 6}:{7 * group}]" for group in reversed(range(groups)))
    common = ".codes(codes), .half(half), .element_type(element_type)"
    return f"""
module miter(
  input [{codes - 1}:0] codes, input [{7 * groups - 1}:0] scales, input half, input [{TYPE_BITS - 1}:0] element_type,
  output wrong
);
  wire [{size - 1}:0] by_step, by_block;
  one_top one({common}, .scales(scales), .operand(by_step));
  other_top other({common}, .scales({{{scales}}}), .operand(by_block));
  assign wrong = by_step != by_block;
endmodule
"""


def _proven(selector, prover):
    text = "\n".join(
        "\n".join(design(OperandDecoder, config, f"{prefix}top", "a", prefix=prefix).texts.values())
        for config, prefix in ((CHOSEN, "one_"), (TAGGED, "other_"))
    )
    return prover.proven(text, _miter(selector))


def test_the_decoder_is_that_of_mixfp4(prover):
    assert operand_layout(CHOSEN, "a") == operand_layout(TAGGED, "a")
    assert CHOSEN.a.scale_width == 7
    assert _proven(f"element_type[{SELECTOR}]", prover)


@pytest.mark.parametrize("selector", ["element_type[0]", "scales[6]", "1'b0"])
def test_the_proof_finds_another_selector(selector, prover):
    assert not _proven(selector, prover)


def test_the_lane_array_is_that_of_mixfp4():
    assert CHOSEN.b.by_block.scale_width == 8
    assert TAGGED.b.by_block is TAGGED.b
    chosen, tagged = (design(LaneArray, config, "lanes").texts for config in (CHOSEN, TAGGED))
    assert chosen == tagged

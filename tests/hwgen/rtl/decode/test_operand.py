"""Operand decoders against the golden model's formats, in simulation and by proof."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import DOTS, TensorCoreConfig
from hwgen.rtl.decode.operand import (
    StoredOperand,
    codes_layout,
    decoded_layout,
    decoder,
    operand_layout,
    scale_code_width,
    scale_layout,
)
from hwgen.rtl.lanes import lanes
from hwgen.verilog import design
from sim import golden

FORMS = {
    f"{form}-{dot}{'' if tags == 'both' else '-weights'}": TensorCoreConfig(
        "x", form, 1, 1, 1, dot=dot, tags=tags, pipeline=()
    )
    for form, tags in (("nvfp4", "both"), ("mixfp4", "both"), ("mixfp4", "weights"))
    for dot in DOTS
    if dot != "e2m2" or (form, tags) == ("mixfp4", "both")
}
forms = pytest.mark.parametrize("config", FORMS.values(), ids=FORMS)
sides = pytest.mark.parametrize("side", ["a", "b"])

CODES = np.arange(16, dtype=np.uint8)
QUARTERS = [np.abs(decode(CODES) * 4).astype(int).tolist() for decode in (golden.decode_e2m1, golden.decode_e1m2)]
"""Magnitude of every code in quarter-units, fold applied, by tag."""


def lane_value(config, lane, tag):
    """Value of a decoded lane in quarter-units, fold applied, from its fields as documented."""
    names = set(lane.shape().members)
    if "value" in names:
        # A field of five bits in two's complement, declared signed or not.
        return ((int(lane.value) + 16) % 32 - 16) << 1 + tag
    if "exponent" in names:
        magnitude = ((4 if lane.exponent else 0) | lane.mantissa) << (max(lane.exponent, 1) - 1)
    elif "significand" in names:
        magnitude = lane.significand << lane.shift + 1 + tag
    else:
        magnitude = lane.magnitude << 1 + tag
    return -magnitude if lane.sign else magnitude


def check_lane(config, side, bits, code, tag):
    lane = lanes(config).layout(side).from_bits(bits)
    assert lane_value(config, lane, tag) == QUARTERS[tag][code & 7] * (-1 if code & 8 else 1)
    if "sign" in lane.shape().members:
        assert lane.sign == code >> 3
    if "five" in lane.shape().members:
        assert lane.five == (tag == 1 and code & 7 in (5, 7))
    if "shift" in lane.shape().members:
        assert lane.shift <= (1 if config.tagged(side) else 2)


def tags(config, side):
    return (0, 1) if config.tagged(side) else (0,)


@sides
@forms
def test_element_decoder(config, side, evaluate):
    block = decoder(config, side).element_decoder(config)
    stimuli = [{"code": int(code)} | ({"tag": tag} if tag else {}) for tag in tags(config, side) for code in CODES]
    for inputs, outputs in zip(stimuli, evaluate(block, stimuli), strict=True):
        check_lane(config, side, outputs["lane"], inputs["code"], inputs.get("tag", 0))


def test_only_tagged_operands_read_bit_7():
    widths = {name: [scale_code_width(config, side) for side in "ab"] for name, config in FORMS.items()}
    assert widths["nvfp4-merged"] == [7, 7]
    assert widths["mixfp4-merged"] == [8, 8]
    assert widths["mixfp4-merged-weights"] == [7, 8]


def test_operands_that_are_decoded_alike_share_their_decoder():
    for name, config in FORMS.items():
        alike = "-weights" not in name and "signed" not in name
        assert (decoder(config, "a") is decoder(config, "b")) == alike
        assert (operand_layout(config, "a") == operand_layout(config, "b")) or not alike


def check_scale(scale, nan, byte):
    value = golden.decode_ue4m3(np.array([byte], np.uint8))[0]
    assert nan == np.isnan(value)
    assert scale.zero == (value == 0)
    assert scale.exponent >= byte >> 7
    if not nan:
        assert scale.significand * 2.0 ** (scale.exponent - 6 - 3) == value * 2 ** (byte >> 7)


@sides
@forms
def test_scale_decoder(config, side, evaluate):
    stimuli = [{"code": byte} for byte in range(256 if config.tagged(side) else 128)]
    block = decoder(config, side).scale_decoder(config)
    for inputs, outputs in zip(stimuli, evaluate(block, stimuli), strict=True):
        check_scale(scale_layout().from_bits(outputs["scale"]), outputs["nan"], inputs["code"])


@pytest.mark.parametrize("groups", [1, 3])
@sides
@pytest.mark.parametrize("form", FORMS)
def test_operand_decoder_wires_every_block_to_its_place(form, side, groups, evaluate):
    config = dataclasses.replace(FORMS[form], groups=groups)
    rng = np.random.default_rng(groups)
    rows = []
    for _ in range(40):
        codes = rng.integers(0, 16, (groups, 16)).tolist()
        scales = rng.integers(0, 256, groups)
        scales = np.where(rng.random(groups) < 0.2, scales | 0x7F, scales).tolist()
        rows.append((codes, scales))
    width = scale_code_width(config, side)
    stimuli = [
        {
            "codes": codes_layout(config).const(codes).as_value().value,
            "scales": sum((scale & (1 << width) - 1) << width * g for g, scale in enumerate(scales)),
        }
        for codes, scales in rows
    ]
    layout = operand_layout(config, side)
    for (codes, scales), outputs in zip(rows, evaluate(decoder(config, side)(config), stimuli), strict=True):
        operand = layout.from_bits(outputs["operand"])
        assert operand.nan == any(scale & 0x7F == 0x7F for scale in scales)
        for g in range(groups):
            tag = scales[g] >> 7 if config.tagged(side) else 0
            check_scale(operand.scales[g], scales[g] & 0x7F == 0x7F, scales[g] & 0x7F | tag << 7)
            if "words" in layout.members:
                negative = sum(QUARTERS[tag][code & 7] >> 1 + tag for code in codes[g] if code & 8)
                assert operand.words[g] == (tag if config.dot == "e2m2" else negative)
            for i in range(16):
                check_lane(config, side, operand.lanes[g][i].as_bits(), codes[g][i], tag)


@pytest.mark.parametrize("groups", [1, 3])
def test_a_stored_operand_is_completed(groups, evaluate):
    """What decoders hand over for a register, and what comes out behind it, against decoders without one."""
    whole = dataclasses.replace(FORMS["mixfp4-merged"], groups=groups)
    stored = dataclasses.replace(whole, pipeline=("decoded",))
    assert decoded_layout(stored, "a").size == operand_layout(stored, "a").size - 16 * groups
    rng = np.random.default_rng(groups)
    stimuli = [
        {
            "codes": int.from_bytes(rng.bytes(8 * groups), "little"),
            "scales": int.from_bytes(rng.bytes(groups), "little"),
        }
        for _ in range(200)
    ]
    # Every code with either tag, in all lanes.
    stimuli += [
        {"codes": code * (16 ** (16 * groups) // 15), "scales": scale * (256**groups // 255)}
        for code in range(16)
        for scale in (0x38, 0xB8)
    ]
    expected = [outputs["operand"] for outputs in evaluate(decoder(whole, "a")(whole), stimuli)]
    held = [{"stored": outputs["operand"]} for outputs in evaluate(decoder(stored, "a")(stored), stimuli)]
    assert [outputs["operand"] for outputs in evaluate(StoredOperand(stored), held)] == expected


def test_only_fields_that_follow_from_others_are_left_out():
    for name, config in FORMS.items():
        stored = dataclasses.replace(config, pipeline=("decoded",))
        for side in "ab":
            assert decoded_layout(config, side) == operand_layout(config, side)
            fewer = operand_layout(stored, side).size - decoded_layout(stored, side).size
            assert fewer == (16 if name == "mixfp4-merged" else 0)


# MixFP4 element decoders, proven equivalent to a table


def _miter(config, side, quarters):
    """Verilog that compares the decoder with a table of values in quarter-units."""
    layout = lanes(config).layout(side)
    fields = {name: (field.offset, field.width) for name, field in layout}

    def field(name):
        offset, width = fields[name]
        return f"lane[{offset + width - 1}:{offset}]"

    if "value" in fields:
        magnitude, decoded = None, f"$signed({field('value')}) <<< 1 <<< tag"
    elif "exponent" in fields:
        exponent, mantissa = field("exponent"), field("mantissa")
        magnitude = f"{exponent} == 0 ? {mantissa} : {{1'b1, {mantissa}}} << ({exponent} - 1)"
    elif "significand" in fields:
        magnitude = f"{{3'b000, {field('significand')}}} << {field('shift')} << 1 << tag"
    else:
        magnitude = f"{{3'b000, {field('magnitude')}}} << 1 << tag"
    if magnitude is not None:
        decoded = f"{field('sign')} ? -magnitude : magnitude"
    table = "\n".join(
        f"      5'd{16 * tag + code}: expected = {'-' if code & 8 else ''}$signed(9'd{quarters[tag][code]});"
        for tag in (0, 1)
        for code in range(16)
    )
    return f"""
module miter(input [3:0] code, input tag, output wrong);
  wire [{layout.size - 1}:0] lane;
  wire signed [8:0] magnitude = {magnitude or 0};
  wire signed [8:0] decoded = {decoded};
  reg signed [8:0] expected;
  top decoder(.code(code), .tag(tag), .lane(lane));
  always @* case ({{tag, code}})
{table}
  endcase
  assign wrong = decoded != expected;
endmodule
"""


def proven(config, side, quarters, prover):
    text = "\n".join(design(decoder(config, side).element_decoder, config, "top").texts.values())
    return prover.proven(text, _miter(config, side, quarters))


tagged_decoders = pytest.mark.parametrize(
    ("form", "side"),
    [*((f"mixfp4-{dot}", "a") for dot in DOTS), ("mixfp4-signed", "b"), ("mixfp4-merged-weights", "b")],
)


@tagged_decoders
def test_element_decoder_proven(form, side, prover):
    assert proven(FORMS[form], side, QUARTERS, prover)


@pytest.mark.parametrize(("tag", "code"), [(0, 5), (1, 15)])
@pytest.mark.parametrize(("form", "side"), [("mixfp4-merged", "a"), ("mixfp4-signed", "b")])
def test_proof_finds_a_planted_error(form, side, tag, code, prover):
    planted = [list(row) for row in QUARTERS]
    planted[tag][code] ^= 2
    assert not proven(FORMS[form], side, planted, prover)

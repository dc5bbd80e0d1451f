"""Operand decoders against the golden model's formats, in simulation and by proof."""

import dataclasses
import functools

import numpy as np
import pytest
from amaranth.hdl import Shape

from hwgen.config import DOTS, TensorCoreConfig
from hwgen.config.dots import supported
from hwgen.formats import BLOCK_FORMATS, ElementFormat
from hwgen.rtl.decode.operand import (
    ElementDecoder,
    OperandDecoder,
    ScaleDecoder,
    codes_layout,
    decoded_as,
    operand_layout,
    scale_layout,
)
from hwgen.rtl.lanes import lanes
from hwgen.verilog import design
from sim import golden

PAIRS = [("nvfp4", "nvfp4"), ("mixfp4", "mixfp4"), ("nvfp4", "mixfp4"), ("nvint4", "nvint4"), ("mixfp4", "nvint4")]
FORMS = {
    f"{a}-{b}-{dot}": TensorCoreConfig("x", a, b, 1, 1, 1, dot=dot, pipeline=())
    for a, b in PAIRS
    for dot in DOTS
    if dot in supported(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
}
DECODERS = [(name, side) for name, config in FORMS.items() for side in "ab" if decoded_as(config, side) == side]
"""Distinct decoders: that of B is A's where both are decoded alike."""
decoders = pytest.mark.parametrize(("form", "side"), DECODERS)

CODES = range(16)
INTEGERS = {name: [element.integers for element in golden.block_format(name).elements] for name in BLOCK_FORMATS}
"""The integer h of every code, by format and tag."""


def lane_value(lane, tag):
    """The integer h of a decoded lane, from its fields as documented."""
    names = set(lane.shape().members)
    if "value" in names:
        # In two's complement, declared signed or not.
        width = Shape.cast(lane.shape().members["value"]).width
        value = int(lane.value) % (1 << width)
        return value - (value >> width - 1 << width)
    if "exponent" in names:
        # Quarter-units of E2M2, E1M2's factor of 2 included.
        quarters = ((4 if lane.exponent else 0) | lane.mantissa) << (max(lane.exponent, 1) - 1)
        assert quarters % (2 << tag) == 0
        magnitude = quarters >> 1 + tag
    elif "significand" in names:
        magnitude = lane.significand << (lane.shift if "shift" in names else 0)
    else:
        magnitude = lane.magnitude
    return -magnitude if lane.sign else magnitude


@functools.cache
def check_lane(config, side, bits, code, tag):
    """Remembered: fields are few, and to take them apart takes longer than to make them."""
    lane = lanes(config).layout(side).from_bits(bits)
    wanted = INTEGERS[config.form(side).name][tag][code]
    assert lane_value(lane, tag) == wanted
    if "sign" in lane.shape().members:
        assert lane.sign == code >> 3
    if "shift" in lane.shape().members:
        assert lane.shift <= (1 if config.form(side).tagged else 2)


def tags(config, side):
    return range(len(config.form(side).elements))


@decoders
def test_element_decoder(form, side, evaluate):
    config = FORMS[form]
    block = ElementDecoder(config, side)
    stimuli = [{"code": code} | ({"tag": tag} if tag else {}) for tag in tags(config, side) for code in CODES]
    for inputs, outputs in zip(stimuli, evaluate(block, stimuli), strict=True):
        check_lane(config, side, outputs["lane"], inputs["code"], inputs.get("tag", 0))


def test_only_tagged_operands_read_bit_7():
    widths = {name: [form.scale_width for form in config.formats] for name, config in FORMS.items()}
    assert widths["nvfp4-nvfp4-merged"] == [7, 7]
    assert widths["mixfp4-mixfp4-merged"] == [8, 8]
    assert widths["nvfp4-mixfp4-merged"] == [7, 8]


def test_operands_that_are_decoded_alike_share_their_decoder():
    for name, config in FORMS.items():
        alike = config.a == config.b and "signed" not in name
        assert (decoded_as(config, "b") == "a") == alike
        assert (operand_layout(config, "a") == operand_layout(config, "b")) or not alike


def check_scale(scale, nan, byte):
    """``byte``: scale and selector; the exponent counts from that of a subnormal scale with the lowest fold."""
    value = golden.decode_ue4m3(np.array([byte], np.uint8))[0]
    assert nan == np.isnan(value)
    assert scale.zero == (value == 0)
    assert scale.exponent >= byte >> 7
    if not nan:
        assert scale.significand * 2.0 ** (scale.exponent - 6 - 3) == value * 2 ** (byte >> 7)


@decoders
def test_scale_decoder(form, side, evaluate):
    config = FORMS[form]
    scaled = config.form(side)
    stimuli = [{"code": byte} for byte in range(1 << scaled.scale_width)]
    for inputs, outputs in zip(stimuli, evaluate(ScaleDecoder(config, side), stimuli), strict=True):
        check_scale(scale_layout(scaled).from_bits(outputs["scale"]), outputs["nan"], inputs["code"])


# With three blocks everywhere; with a single one each way of two operands has it once.
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("form", "side", "groups"),
    [
        *((form, side, 3) for form, side in DECODERS),
        *((form, side, 1) for form, side in DECODERS if form.endswith("-merged")),
    ],
)
def test_operand_decoder_wires_every_block_to_its_place(form, side, groups, evaluate):
    config = dataclasses.replace(FORMS[form], groups=groups)
    rng = np.random.default_rng(groups)
    rows = []
    for _ in range(40):
        codes = rng.integers(0, 16, (groups, 16)).tolist()
        scales = rng.integers(0, 256, groups)
        scales = np.where(rng.random(groups) < 0.2, scales | 0x7F, scales).tolist()
        rows.append((codes, scales))
    width = config.form(side).scale_width
    stimuli = [
        {
            "codes": codes_layout(config, side).const(codes).as_value().value,
            "scales": sum((scale & (1 << width) - 1) << width * g for g, scale in enumerate(scales)),
        }
        for codes, scales in rows
    ]
    layout = operand_layout(config, side)
    low, size = layout["lanes"].offset, lanes(config).layout(side).size
    for (codes, scales), outputs in zip(rows, evaluate(OperandDecoder(config, side), stimuli), strict=True):
        operand = layout.from_bits(outputs["operand"])
        assert operand.nan == any(scale & 0x7F == 0x7F for scale in scales)
        for g in range(groups):
            tag = scales[g] >> 7 if config.form(side).tagged else 0
            check_scale(operand.scales[g], scales[g] & 0x7F == 0x7F, scales[g] & 0x7F | tag << 7)
            if "words" in layout.members:
                table = INTEGERS[config.form(side).name][tag]
                negative = sum(-table[code] for code in codes[g] if table[code] < 0)
                assert operand.words[g] == (tag if config.dot == "e2m2" else negative)
            for i in range(16):
                bits = outputs["operand"] >> low + (16 * g + i) * size & (1 << size) - 1
                check_lane(config, side, bits, codes[g][i], tag)


# Element decoders, proven equivalent to the golden model's tables


def _miter(config, side, tables):
    """Verilog that compares the decoder with a table of integers, by tag and code."""
    layout, form = lanes(config).layout(side), config.form(side)
    fields = {name: (field.offset, field.width) for name, field in layout}

    def field(name):
        offset, width = fields[name]
        return f"lane[{offset + width - 1}:{offset}]"

    folds = "tag" if form.tagged else "0"
    if "value" in fields:
        magnitude, decoded = None, f"$signed({field('value')})"
    elif "exponent" in fields:
        exponent, mantissa = field("exponent"), field("mantissa")
        magnitude = f"({exponent} == 0 ? {mantissa} : {{1'b1, {mantissa}}} << ({exponent} - 1)) >> 1 >> {folds}"
    elif "significand" in fields:
        magnitude = f"{{3'b000, {field('significand')}}} << {field('shift') if 'shift' in fields else 0}"
    else:
        magnitude = f"{{3'b000, {field('magnitude')}}}"
    if magnitude is not None:
        decoded = f"{field('sign')} ? -magnitude : magnitude"
    table = "\n".join(
        f"      5'd{16 * tag + code}: expected = {'-' if h < 0 else ''}$signed(9'd{abs(h)});"
        for tag, row in enumerate(tables)
        for code, h in enumerate(row)
    )
    return f"""
module miter(input [3:0] code, input tag, output wrong);
  wire [{layout.size - 1}:0] lane;
  wire signed [8:0] magnitude = {magnitude or 0};
  wire signed [8:0] decoded = {decoded};
  reg signed [8:0] expected;
  top decoder(.code(code){", .tag(tag)" if form.tagged else ""}, .lane(lane));
  always @* case ({{{"tag" if form.tagged else "1'b0"}, code}})
{table}
      default: expected = 0;
  endcase
  assign wrong = decoded != expected;
endmodule
"""


def proven(config, side, tables, prover):
    text = "\n".join(design(ElementDecoder, config, "top", decoded_as(config, side)).texts.values())
    return prover.proven(text, _miter(config, side, tables))


@decoders
def test_element_decoder_proven(form, side, prover):
    config = FORMS[form]
    assert proven(config, side, INTEGERS[config.form(side).name], prover)


@pytest.mark.parametrize(("tag", "code"), [(0, 5), (1, 15)])
@pytest.mark.parametrize(("form", "side"), [("mixfp4-mixfp4-merged", "a"), ("mixfp4-mixfp4-signed", "b")])
def test_proof_finds_a_planted_error(form, side, tag, code, prover):
    planted = [list(row) for row in INTEGERS["mixfp4"]]
    planted[tag][code] ^= 1
    assert not proven(FORMS[form], side, planted, prover)


@pytest.mark.parametrize("code", [1, 7, 8, 9, 15])
def test_a_wrong_entry_of_a_format_is_found(code, prover):
    """A fault in the record of a format becomes hardware, and the golden model, which has its own, tells."""
    values = list(BLOCK_FORMATS["nvint4"].elements[0].values)
    values[code] += 1 if code == 15 else -1
    element = ElementFormat("INT4", tuple(values), "")
    wrong = dataclasses.replace(BLOCK_FORMATS["nvint4"], name="wrong", elements=(element,))
    config = TensorCoreConfig("x", wrong, wrong, 1, 1, 1, dot="multiplier", pipeline=())
    assert not proven(config, "a", INTEGERS["nvint4"], prover)

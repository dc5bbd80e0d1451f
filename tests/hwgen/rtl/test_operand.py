"""Operand decoders against the golden model's formats, in simulation and by proof."""

import subprocess
import sys

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.operand import (
    ElementDecoder,
    OperandDecoder,
    ScaleDecoder,
    codes_layout,
    lane_layout,
    operand_layout,
    scale_code_width,
    scale_layout,
)
from hwgen.verilog import design, verilog
from sim import golden

FORMS = {
    "nvfp4": TensorCoreConfig("x", "nvfp4", 1, 1, 1),
    "folded": TensorCoreConfig("x", "mixfp4", 1, 1, 1),
    "e2m2": TensorCoreConfig("x", "mixfp4", 1, 1, 1, operand="e2m2"),
}
forms = pytest.mark.parametrize("config", FORMS.values(), ids=FORMS)
tagged_forms = pytest.mark.parametrize("config", [FORMS["folded"], FORMS["e2m2"]], ids=["folded", "e2m2"])

CODES = np.arange(16, dtype=np.uint8)
QUARTERS = [np.abs(decode(CODES) * 4).astype(int).tolist() for decode in (golden.decode_e2m1, golden.decode_e1m2)]
"""Magnitude of every code in quarter-units, fold applied, by tag."""


def lane_quarters(config, lane, tag):
    """Magnitude of a decoded lane in quarter-units, fold applied, as `lane_layout` documents it."""
    if config.operand == "e2m2":
        hidden = 4 if lane.exponent else 0
        return (hidden | lane.mantissa) << (max(lane.exponent, 1) - 1)
    return lane.significand << lane.shift + 1 + tag


def tags(config):
    return (0, 1) if config.block_format.tagged else (0,)


@forms
def test_element_decoder(config, evaluate):
    stimuli = [{"code": int(code)} | ({"tag": tag} if tag else {}) for tag in tags(config) for code in CODES]
    for inputs, outputs in zip(stimuli, evaluate(ElementDecoder(config), stimuli), strict=True):
        code, tag = inputs["code"], inputs.get("tag", 0)
        lane = lane_layout(config).from_bits(outputs["lane"])
        assert lane.sign == code >> 3
        assert lane_quarters(config, lane, tag) == QUARTERS[tag][code]
        if config.operand == "folded":
            assert lane.shift <= (1 if config.block_format.tagged else 2)


def test_only_tagged_forms_read_bit_7():
    assert [scale_code_width(config) for config in FORMS.values()] == [7, 8, 8]
    fields = {form: {name for name, _ in operand_layout(config)} for form, config in FORMS.items()}
    assert fields["nvfp4"] == fields["folded"] == fields["e2m2"] - {"tags"}


def check_scale(scale, nan, byte):
    value = golden.decode_ue4m3(np.array([byte], np.uint8))[0]
    assert nan == np.isnan(value)
    assert scale.zero == (value == 0)
    assert scale.exponent >= byte >> 7
    if not nan:
        assert scale.significand * 2.0 ** (scale.exponent - 6 - 3) == value * 2 ** (byte >> 7)


@forms
def test_scale_decoder(config, evaluate):
    stimuli = [{"code": byte} for byte in range(256 if config.block_format.tagged else 128)]
    for inputs, outputs in zip(stimuli, evaluate(ScaleDecoder(config), stimuli), strict=True):
        check_scale(scale_layout().from_bits(outputs["scale"]), outputs["nan"], inputs["code"])


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_operand_decoder_wires_every_block_to_its_place(form, groups, evaluate):
    base = FORMS[form]
    config = TensorCoreConfig("x", base.format, 1, 1, groups, operand=base.operand)
    rng = np.random.default_rng(groups)
    rows = []
    for _ in range(40):
        codes = rng.integers(0, 16, (groups, 16)).tolist()
        scales = rng.integers(0, 256, groups)
        scales = np.where(rng.random(groups) < 0.2, scales | 0x7F, scales).tolist()
        rows.append((codes, scales))
    width = 8 if config.block_format.tagged else 7
    stimuli = [
        {
            "codes": codes_layout(config).const(codes).as_value().value,
            "scales": sum((scale & (1 << width) - 1) << width * g for g, scale in enumerate(scales)),
        }
        for codes, scales in rows
    ]
    for (codes, scales), outputs in zip(rows, evaluate(OperandDecoder(config), stimuli), strict=True):
        operand = operand_layout(config).from_bits(outputs["operand"])
        assert operand.nan == any(scale & 0x7F == 0x7F for scale in scales)
        for g in range(groups):
            tag = scales[g] >> 7 if config.block_format.tagged else 0
            check_scale(operand.scales[g], scales[g] & 0x7F == 0x7F, scales[g] & 0x7F | tag << 7)
            if config.operand == "e2m2":
                assert operand.tags[g] == tag
            for i in range(16):
                lane = operand.lanes[g][i]
                assert lane.sign == codes[g][i] >> 3
                assert lane_quarters(config, lane, tag) == QUARTERS[tag][codes[g][i]]


# The MixFP4 element decoder, proven equivalent to a table

_PROVER = "from pyosys import libyosys as ys; ys.run_pass('script prove.ys', ys.Design())"

_SCRIPT = """
read_verilog decoder.v
read_verilog miter.v
hierarchy -check -top miter
proc -norom
flatten
opt
sat -verify -prove wrong 0 miter
"""


def _miter(config, quarters):
    """Verilog that compares the decoder with a table of magnitudes, both in quarter-units."""
    fields = {name: (field.offset, field.width) for name, field in lane_layout(config)}

    def field(name):
        offset, width = fields[name]
        return f"lane[{offset + width - 1}:{offset}]"

    if config.operand == "e2m2":
        exponent, mantissa = field("exponent"), field("mantissa")
        decoded = f"{exponent} == 0 ? {mantissa} : {{1'b1, {mantissa}}} << ({exponent} - 1)"
    else:
        decoded = f"{{3'b000, {field('significand')}}} << {field('shift')} << 1 << tag"
    table = "\n".join(
        f"      5'd{16 * tag + code}: expected = 6'd{quarters[tag][code]};" for tag in (0, 1) for code in range(16)
    )
    return f"""
module miter(input [3:0] code, input tag, output wrong);
  wire [{lane_layout(config).size - 1}:0] lane;
  wire [5:0] decoded = {decoded};
  reg [5:0] expected;
  element_decoder decoder(.code(code), .tag(tag), .lane(lane));
  always @* case ({{tag, code}})
{table}
  endcase
  assign wrong = decoded != expected || {field("sign")} != code[3];
endmodule
"""


def prove(config, quarters, directory):
    text = verilog(design(ElementDecoder, config, "element_decoder"))
    (directory / "decoder.v").write_text(text)
    (directory / "miter.v").write_text(_miter(config, quarters))
    (directory / "prove.ys").write_text(_SCRIPT)
    command = [sys.executable, "-c", _PROVER]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=120)


@tagged_forms
def test_element_decoder_proven(config, tmp_path):
    result = prove(config, QUARTERS, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "SAT proof finished - no model found: SUCCESS!" in result.stdout


@tagged_forms
@pytest.mark.parametrize(("tag", "code"), [(0, 5), (1, 15)])
def test_proof_finds_a_planted_error(config, tag, code, tmp_path):
    planted = [list(row) for row in QUARTERS]
    planted[tag][code] ^= 2
    result = prove(config, planted, tmp_path)
    assert result.returncode != 0
    assert "model found: FAIL!" in result.stdout

"""Names of wires: what they say, and that nothing but names changes."""

import json
import re

import pytest

from hwgen import verilog
from hwgen.config import TensorCoreConfig
from hwgen.package.wires import named


def module(*lines, wires=(), regs=()):
    """A module of these lines, with numbered wires and registers of these widths."""
    declared = [
        f"  {kind} {f'[{width - 1}:0] ' if width > 1 else ''}_{number}_;"
        for kind, widths in (("wire", wires), ("reg", regs))
        for number, width in enumerate(widths, start=len(wires) if kind == "reg" else 0)
    ]
    return "\n".join(["module m(a, b, c, z);", *declared, *lines, "endmodule"])


@pytest.mark.parametrize(
    ("lines", "widths", "expected"),
    [
        (["  assign _0_ = ~ a;", "  assign z = _0_ | b;"], [1], "  assign z = not_a | b;"),
        (["  assign _0_ = | a[3:1];", "  assign z = _0_ ^ b;"], [1], "  assign z = any_a_3_1 ^ b;"),
        (["  assign _0_ = a == 2'h3;", "  assign z = _0_ ? b : c;"], [1], "  assign z = a_is_3 ? b : c;"),
        (["  assign _0_ = a & b;", "  assign z = _0_ ^ c;"], [1], "  assign z = a_and_b ^ c;"),
        # An operand that is itself no name, and what is inverted.
        (
            ["  assign _0_ = ~ a;", "  assign _1_ = _0_ & b;", "  assign z = _1_ ^ _0_;"],
            [1, 1],
            "= not_a_and_b ^ not_a",
        ),
        # More than an operation: by where it goes, through others too.
        (["  assign _0_ = a ? b : c;", "  assign z = _0_ + b;"], [4], "  assign z = z_choice + b;"),
        (
            ["  assign _0_ = { a, b } ^ c;", "  assign _1_ = _0_ ^ { b, a };", "  assign z = ~ _1_;"],
            [2, 2],
            "  assign z_xor_2 = z_xor ^ { b, a };",
        ),
        (["  always @(posedge clk)", "    if (rst) q <= 1'h0;", "    else q <= _0_;"], [1], "    else q <= q_next;"),
        (["  assign _0_ = a ? b : c;", "    if (_0_) q <= a;"], [1], "    if (q_enable) q <= a;"),
        (["  part one (", "    .x(_0_)", "  );", "  assign z = _0_;"], [1], "    .x(one_x)"),
        # Bits that nobody reads.
        (["  assign { _0_[2], z } = a + b;"], [3], "  assign { z_wide[2], z } = a + b;"),
        (["  assign _0_ = a + b;", "  assign z = _0_[1:0];"], [3], "  assign a_plus_b_wide = a + b;"),
        (
            ["  assign { _0_[2], _1_ } = a + b;", "  assign _0_[1:0] = _1_;", "  assign z = _1_ ^ c;"],
            [3, 2],
            "  assign { z_part_wide[2], z_part } = a + b;",
        ),
        # Nothing to call it by.
        (["  assign _0_ = a;"], [1], "  assign _0_ = a;"),
        # Taken names.
        (["  assign a_and_b = c;", "  assign _0_ = a & b;", "  assign z = _0_ ^ c;"], [1], "= a_and_b_2 ^ c;"),
        (["  assign _0_ = a & b;", "  assign _1_ = a & b;", "  assign z = _0_ ^ _1_;"], [1, 1], "a_and_b ^ a_and_b_2"),
        # A loop of whole words, where no bit depends on itself.
        (["  assign _0_ = { _1_[0], a };", "  assign _1_ = { _0_[0], b };"], [2, 2], "  assign _0_ = { _1_[0], a };"),
    ],
)
def test_names(lines, widths, expected):
    text = named(module(*lines, wires=widths))
    assert expected in text
    assert named(text) == text


def test_a_wire_without_a_name_in_the_source():
    text = named(module("  wire [7:0] _signal;", "  assign _signal[6:0] = a ? b : c;", "  assign z = _signal[6:0];"))
    assert "  assign z_part_wide[6:0] = a ? b : c;" in text


def test_a_register_with_a_constant_bit():
    lines = ["    if (a) _1_ <= _0_;", "  assign z[5:1] = _1_;", "  assign z[0] = 1'h0;", "  assign _0_ = b ? a : c;"]
    text = named(module(*lines, wires=[5], regs=[5]))
    assert "    if (a) z_5_1 <= z_5_1_next;" in text


@pytest.mark.parametrize("name", ["tiny", "slotted"])
def test_names_alone_change(name, package, slotted):
    """Word by word: what has no number stays, no two wires get one name, and none that another wire has."""
    directory = {"tiny": package, "slotted": slotted}[name]
    config = TensorCoreConfig(**json.loads((directory / f"{name}.json").read_text())["configuration"])
    raw = verilog.verilog(verilog.core(config), verilog.title(config))
    made = (directory / f"{name}.v").read_text()
    modules = [re.findall(r"^module .*?^endmodule$", text, re.M | re.S) for text in (raw, made)]
    assert len(modules[0]) == len(modules[1]) > 5
    changed = 0
    for before, after in zip(*modules, strict=True):
        words = [re.findall(r"\w+|[^\w]", text) for text in (before, after)]
        names = {}
        for old, new in zip(*words, strict=True):
            assert names.setdefault(old, new) == new
            assert old == new or re.fullmatch(r"_\d+_|_signal(_\d+)?", old)
        assert len(set(names.values())) == len(names)
        changed += sum(old != new for old, new in names.items())
    assert changed > 50
    assert not re.search(r"\b_(\d|signal)", made)

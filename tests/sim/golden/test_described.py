"""Formats that the golden model reads from TOML, without the generator."""

import numpy as np
import pytest

from sim import golden

FILE = """
[elements.P]
values = [0, 1, 2, 4, 0, -1, -2, -4]
unit = 0.25
[elements.F]
exponent_bits = 2
mantissa_bits = 1
[elements.I]
integer = 4
[scales.S]
exponent_bits = 4
mantissa_bits = 3
bias = 7
nan = 127
[formats.if-again]
elements = ["F", "I"]
scale = "S"
block = 16
full_scale = 2688
factors = [7, 6]
trial = [0, 1]
[formats.powers]
elements = ["P"]
scale = "E8M0"
block = 8
rule = "ceil"
"""


def test_a_format_of_the_catalogue_written_anew() -> None:
    again, if4 = golden.formats_from(FILE)["if-again"], golden.block_format("if4")
    x = np.random.default_rng(0).standard_t(3, (8, 64))
    ours, theirs = golden.quantize(x, again), golden.quantize(x, if4)
    np.testing.assert_array_equal(ours.codes, theirs.codes)
    np.testing.assert_array_equal(ours.scales, theirs.scales)
    assert len(set(again.selected(ours.scales).ravel().tolist())) == 2
    np.testing.assert_array_equal(golden.gemm(ours, ours), golden.gemm(theirs, theirs))


def test_a_rule_of_its_own_is_the_default() -> None:
    form = golden.formats_from(FILE)["powers"]
    assert (form.elements[0].fold, form.elements[0].integers[:4]) == (-1, (0, 1, 2, 4))
    x = np.array([[0.75] + [0.0] * 7])
    # floor has 2^(floor(log2 0.75) - floor(log2 1)), ceil the power of two with which nothing saturates.
    assert golden.quantize(x, form).scales.item() == 127
    assert golden.quantize(x, form, rule="floor").scales.item() == 126
    np.testing.assert_array_equal(golden.quantize(x, form).scales, golden.quantize(x, form, rule="ceil").scales)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[elements.P]", "[elements.P", "not valid TOML"),
        ("values = [0, 1, 2", "values = [0, inf, 2", "elements.P: "),
        ("values = [0, 1, 2", "values = [0, nan, 2", "elements.P: "),
        ("values = [0, 1, 2, 4, 0, -1, -2, -4]", "values = [0, 0, 0, 0]", "elements.P: all values are zero"),
        ("values = [0, 1, 2, 4, 0, -1, -2, -4]", "values = 3", "elements.P: "),
        ("integer = 4", 'integer = "4"', "elements.I: "),
        ("bias = 7\n", "", "scales.S: 'bias' is missing"),
        ('scale = "S"', 'scale = "T"', "formats.if-again: 'T' is missing, or no name there is"),
        ("block = 16", 'block = "16"', "formats.if-again: "),
        (
            'rule = "ceil"',
            'rule = "nearest"',
            "formats.powers: rule must be one of 'floor', 'ceil', 'least-error' for powers",
        ),
        ("[formats.powers]", "[formats]\npowers = 3\n[rest]", "formats"),
    ],
)
def test_what_is_no_format_is_an_error_of_its_table(old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(golden.ArgumentError) as caught:
        golden.formats_from(FILE.replace(old, new))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

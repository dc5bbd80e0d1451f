"""Formats that the golden model reads from TOML, without the generator."""

import numpy as np
import pytest

from sim import golden
from sim.golden import parts

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
        ("values = [0, 1, 2, 4, 0, -1, -2, -4]", "values = [0, 1, true, 4]", "elements.P: values = [0, 1, True, 4]: "),
        ("unit = 0.25", "unit = 1e308", "elements.P: "),
        ("values = [0, 1, 2", "values = [0, 1e-320, 2", "elements.P: "),
        ("unit = 0.25", "unit = -1", "elements.P: unit = -1: must be a finite number above 0"),
        ("unit = 0.25", "unit = 0.25\npoint = 1.5", "elements.P: point = 1.5: must be a whole number"),
        (
            "unit = 0.25",
            "integer = 3",
            "elements.P: must have values, or integer, or exponent_bits; has values and integer",
        ),
        ("integer = 4", "integer = 9", "elements.I: integer = 9: must be from 1 to 8 bits"),
        ("mantissa_bits = 1", "mantissa_bits = 9", "elements.F: exponent_bits = 2, mantissa_bits = 9: no element"),
        ("bias = 7\n", "", "scales.S: 'bias' is missing"),
        ("bias = 7\n", "bias = 7.5\n", "scales.S: bias = 7.5: must be a whole number"),
        ("bias = 7\n", "bias = -1200\n", "scales.S: bias = -1200: must be a whole number from -256 to 256"),
        ("nan = 127", "nan = 127\nsubnormals = 1", "scales.S: subnormals = 1: must be true or false"),
        ('scale = "S"', 'scale = "T"', "formats.if-again: scale: 'T' is no name of one; known are "),
        ('elements = ["P"]', "elements = 5", "formats.powers: elements = 5: must be a list of names"),
        ('elements = ["P"]', 'elements = ["Q"]', "formats.powers: elements: 'Q' is no name of one"),
        (
            "factors = [7, 6]",
            "factors = [7, 6, 5]",
            "formats.if-again: if-again: factors must be positive, one for each",
        ),
        (
            "full_scale = 2688",
            "ful_scale = 2688",
            "formats.if-again: unknown key 'ful_scale'; known are elements, scale",
        ),
        ("full_scale = 2688", "full_scale = 0", "formats.if-again: full_scale = 0: must be a finite number above 0"),
        ("full_scale = 2688", "full_scale = -5", "formats.if-again: full_scale = -5: must be"),
        ("full_scale = 2688", "full_scale = inf", "formats.if-again: full_scale = inf: must be"),
        ("full_scale = 2688", "full_scale = true", "formats.if-again: full_scale = True: must be"),
        ("full_scale = 2688", 'full_scale = "x"', "formats.if-again: full_scale = 'x': must be"),
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


def test_two_kinds_are_other_numbers_by_their_factors() -> None:
    same = FILE.replace('["F", "I"]', '["F", "F"]').replace("trial = [0, 1]\n", "")
    scaled = golden.formats_from(same)["if-again"]
    assert scaled.factors == (7, 6)
    with pytest.raises(golden.ArgumentError, match="elements F and F are the same numbers: nothing to select"):
        golden.formats_from(same.replace("factors = [7, 6]\n", ""))
    twice = "[elements.D]\nvalues = [0, 0.5, 1, 2, 0, -0.5, -1, -2]\n" + FILE.replace("[7, 6]", "[1, 2]")
    twice = twice.replace('["F", "I"]', '["P", "D"]').replace("values = [0, 1, 2, 4, 0", "values = [0, 4, 8, 16, 0")
    with pytest.raises(golden.ArgumentError, match="elements P and D are the same numbers"):
        golden.formats_from(twice.replace("-1, -2, -4]", "-4, -8, -16]"))


def test_two_kinds_are_the_same_numbers_by_other_codes() -> None:
    same = FILE.replace('["F", "I"]', '["P", "Q"]').replace("factors = [7, 6]\n", "")
    turned = "[elements.Q]\nvalues = [0, 1, 0.5, 0.25, 0, -1, -0.5, -0.25]\n" + same
    with pytest.raises(golden.ArgumentError, match="elements P and Q are the same numbers: nothing to select"):
        golden.formats_from(turned)


@pytest.mark.parametrize(("unit", "normal"), [(1, 0), (0.25, -2), (8, 3)])
def test_a_window_takes_the_exponents_of_minifloats(unit: float, normal: int) -> None:
    cut = f"""
    [elements.F]
    exponent_bits = 2
    mantissa_bits = 1
    unit = {unit}
    [formats.cut]
    elements = ["F"]
    scale = "E8M0"
    block = 32
    window = 25
    """
    form = golden.formats_from(cut)["cut"]
    assert (form.window, form.elements[0].normal) == (25, normal)
    assert form.elements[0].values[2] == 2.0**normal
    with pytest.raises(golden.ArgumentError, match="a window takes floating-point elements"):
        golden.formats_from(cut.replace(f"unit = {unit}", "unit = 3"))


@pytest.mark.parametrize("scale", ["UE4M3", "E8M0"])
def test_a_fold_is_in_the_exponents_of_products_that_are_cut(scale: str) -> None:
    form = golden.formats_from(f"""
    [elements.F]
    exponent_bits = 3
    mantissa_bits = 2
    [formats.cut]
    elements = ["F"]
    scale = "{scale}"
    block = 16
    window = 6
    """)["cut"]
    assert form.elements[0].fold == -3
    rng = np.random.default_rng(0)
    for empty_blocks in ("included", "excluded"):
        for _ in range(100):
            codes = rng.integers(0, 64, (2, 32), np.uint8)
            scales = rng.integers(40, 60, (2, 2), np.uint8)
            scales[rng.random((2, 2)) < 0.1] = 0
            c = np.float32(rng.standard_normal() * 2.0 ** rng.integers(-160, 20))
            sides = [x.tolist() for operand in zip(codes, scales, strict=True) for x in operand]
            options = {"a": form, "b": form, "empty_blocks": empty_blocks}
            inputs = [np.array([side], np.uint8) for side in sides]
            found = golden.step(*inputs, np.array([[c]]), **options).view(np.uint32)
            assert found[0, 0] == parts.step(*sides, int(c.view(np.uint32)), **options)


def test_what_is_found_belongs_to_who_asked() -> None:
    golden.formats_from(FILE).clear()
    assert {*golden.formats_from(FILE)} == {"if-again", "powers"}
    with pytest.raises(golden.ArgumentError, match="text must be that of a TOML file; got NoneType"):
        golden.formats_from(None)  # type: ignore[arg-type]


MX = """
[elements.Q]
values = [{}]
unit = 0.015625
[formats.mx]
elements = ["Q"]
scale = "E8M0"
block = 32
"""


def test_integers_with_one_number_more_below_zero_are_as_mxint8() -> None:
    """OCP MX has emax = 0 for INT8, whose codes reach -2: a positive number must not saturate."""
    numbers = [*range(128), *range(-128, 0)]
    form, mxint8 = golden.formats_from(MX.format(", ".join(map(str, numbers))))["mx"], golden.block_format("mxint8")
    x = np.random.default_rng(3).standard_normal((64, 64))
    for rule in ("floor", "ceil"):
        ours, theirs = (golden.quantize(x, each, rule=rule) for each in (form, mxint8))
        np.testing.assert_array_equal(ours.scales, theirs.scales)
    assert golden.quantize(np.array([[1.5, 0.75] + [0.0] * 30]), form).scales.item() == 127


KINDS = """
[elements.P4]
values = [0, 1, 2, 4, 8, 16, 32, 64, 0, -1, -2, -4, -8, -16, -32, -64]
[elements.I4]
integer = 4
[scales.P]
exponent_bits = 5
mantissa_bits = 0
bias = 15
nan = 31
subnormals = false
[formats.pot]
elements = ["P4", "I4"]
scale = "P"
block = 16
"""


def test_a_scale_that_is_nan_by_one_kind_is_not_taken_where_another_kind_holds_the_block() -> None:
    """Of integers the scale is 2^18 / 4, beyond the largest, 2^15; of powers it is 2^12."""
    form = golden.formats_from(KINDS)["pot"]
    x = np.array([[2.0**18] + [2.0**13] * 15])
    for text in (KINDS, KINDS.replace('["P4", "I4"]', '["I4", "P4"]')):
        found = golden.formats_from(text)["pot"]
        np.testing.assert_array_equal(golden.dequantize(golden.quantize(x, found)), x)
    assert np.isnan(golden.dequantize(golden.quantize(x, form, np.array([[True]])))).all()

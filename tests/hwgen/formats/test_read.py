"""Formats of a user's own: the worked example of docs/how-to/add-a-format.md, and files that describe none."""

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig, from_dict, resolve
from hwgen.errors import InputError
from hwgen.formats import E2M1, INT4, UE4M3
from hwgen.formats.read import formats_of
from hwgen.measure.formats.rows import rows_of
from sim import golden
from sim.counterpart import counterpart, resolved
from sim.engines import AmaranthEngine
from sim.golden.described import _described
from sim.random import random_steps

ROOT = Path(__file__).parents[3]


def _example(page: Path) -> str:
    """The one TOML file that a page shows."""
    (found,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return found


EXAMPLE = _example(ROOT / "docs" / "how-to" / "add-a-format.md")
CUT = "rows = 1\ncolumns = 1\n" + _example(ROOT / "docs" / "formats.md")


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text("rows = 1\ncolumns = 1\n" + EXAMPLE)
    return str(path)


def test_the_worked_example(mine: str) -> None:
    config = resolved(mine)
    assert config.a is config.b
    assert [element.values[:8] for element in config.a.elements] == [
        (0, 0.5, 1, 2, 4, 8, 16, 32),
        (0, 4, 8, 12, 16, 20, 24, 28),
    ]
    assert config.a.full_scale == config.a.scale.largest * 32
    steps = random_steps(config, 60, np.random.default_rng(0))
    np.testing.assert_array_equal(AmaranthEngine(config).run(steps).results, steps.expected())


def test_both_descriptions_say_the_same(mine: str) -> None:
    form = resolve(mine).a
    other = counterpart(form)
    assert [each.integers for each in form.elements] == [each.integers for each in other.elements]
    assert [each.fold for each in form.elements] == [each.fold for each in other.elements] == [0, 3]
    assert [form.scale.value(code) for code in range(63)] == other.scale.table[:-1].tolist()
    assert (form.size, form.full_scale, form.scale_width) == (other.block, other.tensor_divisor, 7)
    assert ((1 << form.scale_width) - 1, other.tag_bit) == (other.meaningful, form.scale.width)


def test_both_kinds_of_blocks_are_taken(mine: str) -> None:
    form = counterpart(resolve(mine).a)
    powers, integers = [32.0, 16, 8, 4, 2, 1, 0.5, 0] * 2, [28.0, 24, 20, 16, 12, 8, 4, 0] * 2
    q = golden.quantize(np.array([powers, integers]), form, tensor_scale=1.0)
    assert form.selected(q.scales).ravel().tolist() == [0, 1]
    np.testing.assert_array_equal(golden.dequantize(q), [powers, integers])


def test_other_processes_and_later_ones_know_the_format(mine: str) -> None:
    config = resolve(mine)
    Path(mine).unlink()
    _described.cache_clear()
    there = pickle.loads(pickle.dumps(config))
    assert (there, counterpart(there.b)) == (config, counterpart(config.b))
    told = json.loads(json.dumps(config.as_dict()))
    assert (told["a"], told["described"]) == ("mine", {"mine": config.a.definition})
    assert from_dict(told) == config
    with pytest.raises(InputError, match="must be texts by name"):
        from_dict({**told, "described": ["mine"]})


def test_what_is_not_said_is_as_in_small(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(EXAMPLE)
    config = resolved(str(path))
    assert (config.name, config.rows, config.columns, config.groups, config.clock_gating) == ("mine", 4, 4, 1, True)
    assert "factors" in config.pipeline
    path.write_text('[formats.plain]\nelements = ["INT4"]\nscale = "E8M0"\nblock = 8\n')
    assert "factors" not in resolved(str(path)).pipeline
    assert resolved(str(path)).dot == "merged"
    # Magnitudes of seven bits take other lanes.
    path.write_text('[elements.Q8]\ninteger = 8\n[formats.plain]\nelements = ["Q8"]\nscale = "UE4M3"\nblock = 64\n')
    config = resolved(str(path))
    assert (config.dot, config.fraction_bits) == ("booth", config.bounds.most_fraction_bits(1))
    assert config.fraction_bits < 35
    path.write_text('[formats.plain]\nelements = ["E3M2"]\nscale = "UE4M3"\nblock = 16\n')
    assert resolved(str(path)).dot == "shifted-carry-save"


def test_one_operand_may_have_a_format_of_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text('a = "nvfp4"\nb = "mine"\nrows = 2\n' + EXAMPLE)
    config = resolved(str(path))
    assert (config.a.name, config.b.name, config.rows, config.columns) == ("nvfp4", "mine", 2, 4)
    assert from_dict(config.as_dict()) == config


def test_products_that_are_cut_have_their_lanes_beside_another_format(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text('a = "mxfp8-e4m3"\nb = "mxfp8-e4m3"\n' + EXAMPLE)
    assert resolved(str(path)).dot == "windowed"


def test_products_of_a_file_are_cut_to_a_window(tmp_path: Path) -> None:
    path = tmp_path / "cut.toml"
    path.write_text(CUT)
    config = resolved(str(path))
    assert (config.dot, config.a.window, counterpart(config.a).window) == ("windowed", 11, 11)
    assert config.a.full_scale == max(config.a.elements[0].values) * config.a.scale.largest
    assert counterpart(config.a).elements[0].normal == config.a.elements[0].lowest_exponent == -6
    steps = random_steps(config, 200, np.random.default_rng(0))
    np.testing.assert_array_equal(AmaranthEngine(config).run(steps).results, steps.expected())
    path.write_text(CUT.replace("window = 11", "window = 12"))
    assert (resolved(str(path)).a.window, counterpart(resolved(str(path)).a).window) == (12, 12)
    # A wider window keeps more of small products: the cut is not for show.
    assert not np.array_equal(replace(steps, config=resolved(str(path))).expected(), steps.expected())


@pytest.mark.parametrize("bits", [(1, 1), (3, 0), (5, 1)])
def test_minifloats_of_all_kinds_are_cut(bits: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "cut.toml"
    fields = "exponent_bits = {}\nmantissa_bits = {}".format(*bits)
    path.write_text(CUT.replace("exponent_bits = 4\nmantissa_bits = 2", fields).replace("full_scale = 200704", ""))
    config = resolved(str(path))
    steps = random_steps(config, 200, np.random.default_rng(0))
    np.testing.assert_array_equal(AmaranthEngine(config).run(steps).results, steps.expected())


@pytest.mark.parametrize("name", ["E2M1", "E2M3", "E3M2", "E4M3", "E5M2"])
def test_elements_of_the_catalogue_that_a_window_cuts(name: str, tmp_path: Path) -> None:
    path = tmp_path / "cut.toml"
    path.write_text(f'[formats.cut]\nelements = ["{name}"]\nscale = "E8M0"\nblock = 32\nwindow = 25\n')
    form = resolved(str(path)).a
    assert counterpart(form).elements[0].normal == form.elements[0].lowest_exponent


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[elements.T]\ninteger = 4\n", r"\[elements\]"),
        (
            "[elements.T]\ninteger = 4\n[scales.S]\nexponent_bits = 4\nmantissa_bits = 3\n",
            r"\[elements\] and \[scales\]",
        ),
        ("[formats]\n", r"\[formats\]"),
        ('a = "nvfp4"\nb = "nvfp4"\n[scales.S]\nexponent_bits = 4\nmantissa_bits = 3\n', r"\[scales\]"),
    ],
)
def test_parts_without_a_format_name_the_table_that_is_missing(text: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(
        InputError, match=rf"mine.toml': table \[formats.NAME\] is missing; the file has {found} alone$"
    ):
        resolved(str(path))


def test_what_elements_count_is_in_the_largest_number(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    form = {"elements": ["E2M1", "INT4"], "factors": [1, 2], "full_scale": 7 * 2 * 480}
    path.write_text(described(form=form))
    assert resolved(str(path)).a.full_scale == 6720
    path.write_text(described(form={**form, "factors": [2, 1]}))
    with pytest.raises(InputError, match="full_scale = 6720: must be from"):
        resolved(str(path))


def test_shorthands_are_those_of_the_catalogue() -> None:
    table = {
        "elements": {
            "F": {"exponent_bits": 2, "mantissa_bits": 1, "bias": 1},
            "I": {"integer": 4},
            "W": {"exponent_bits": 3, "mantissa_bits": 2},
        },
        "scales": {"S": {"exponent_bits": 4, "mantissa_bits": 3, "bias": 7, "nan": 127}},
        "formats": {
            "first": {"elements": ["F", "I"], "scale": "S", "block": 16},
            "wide": {"elements": ["W"], "scale": "E8M0", "block": 4},
        },
    }
    found = formats_of(table, "text")
    first, wide = found["first"], found["wide"]
    assert [element.values for element in first.elements] == [E2M1.values, INT4.values]
    assert [first.scale.value(code) for code in range(127)] == [UE4M3.value(code) for code in range(127)]
    # OCP Microscaling Formats (MX) Specification v1.0: E3M2 reaches 28, its smallest number is 1/16.
    assert (wide.elements[0].values[1], wide.elements[0].values[31], wide.elements[0].largest) == (1 / 16, 28, 448)
    assert (first.full_scale, first.definition) == (None, "text")


@pytest.fixture
def small_mx6(tmp_path: Path) -> TensorCoreConfig:
    """A core for MX6 (arXiv 2302.08007): sign and four bits, a power of two for 16, and a bit for each 2 of them."""
    path = tmp_path / "mx6.toml"
    form = '[formats.mx6]\nelements = ["T"]\nscale = "E8M0"\nblock = 16\nshifts = [2]\nscale_bytes = 2\n'
    path.write_text(f"rows = 1\ncolumns = 1\n[elements.T]\ninteger = 5\n{form}")
    return resolved(str(path))


@pytest.fixture
def mx6(small_mx6: TensorCoreConfig) -> golden.BlockFormat:
    return counterpart(small_mx6.a)


def test_sub_groups_with_shifts(small_mx6: TensorCoreConfig, mx6: golden.BlockFormat) -> None:
    config = small_mx6
    assert (config.a.shifts, config.a.shift_bits, config.a.stored_bytes) == (mx6.shifts, mx6.shift_bits, 12)
    steps = random_steps(config, 40, np.random.default_rng(3))
    np.testing.assert_array_equal(AmaranthEngine(config).run(steps).results, steps.expected())
    # One pair is large: its numbers are rounded to steps of 2, ties to even, those of the others to steps of 1.
    numbers = np.array([[27.0, 17.0, *[3.0, 5.0] * 7]])
    q = golden.quantize(numbers, mx6)
    np.testing.assert_array_equal(golden.dequantize(q), [[28.0, 16.0, *[3.0, 5.0] * 7]])
    assert golden.rules.rules(mx6) == ("floor",)


@pytest.mark.parametrize(("integer", "shifts", "stored"), [(8, "[2]", 2), (7, "[4, 2]", 4)], ids=["MX9", "two levels"])
def test_sub_groups_of_long_elements(tmp_path: Path, integer: int, shifts: str, stored: int) -> None:
    """Their codes and shifts take more than a byte."""
    path = tmp_path / "long.toml"
    form = f'[formats.long]\nelements = ["T"]\nscale = "E8M0"\nblock = 16\nshifts = {shifts}\nscale_bytes = {stored}\n'
    path.write_text(f"rows = 1\ncolumns = 1\n[elements.T]\ninteger = {integer}\n{form}")
    config = resolved(str(path))
    steps = random_steps(config, 40, np.random.default_rng(3))
    np.testing.assert_array_equal(AmaranthEngine(config).run(steps).results, steps.expected())
    form_of_model = counterpart(config.a)
    large = float(2 ** (integer - 1) - 1)
    numbers = np.array([[2 * large, large, *[3.0, 5.0] * 7]])
    again = golden.dequantize(golden.quantize(numbers, form_of_model))
    np.testing.assert_allclose(again, numbers, atol=2)


def test_factors_beside_a_window(tmp_path: Path) -> None:
    """They are in the largest term: it is that of all lanes with the largest product."""
    path = tmp_path / "factors.toml"
    form = '[formats.mine]\nelements = ["E2M1"]\nscale = "UE4M3"\nblock = 4\nwindow = 6\nfactors = [255]\n'
    path.write_text(f"rows = 1\ncolumns = 1\n{form}")
    config = resolved(str(path))
    steps = random_steps(config, 4, np.random.default_rng(1))
    ones = np.ones(4, bool)
    steps = replace(
        steps,
        a_codes=np.full_like(steps.a_codes, 7),
        b_codes=np.full_like(steps.b_codes, 7),
        a_scales=np.full_like(steps.a_scales, 0x77),
        b_scales=np.full_like(steps.b_scales, 0x77),
        c=np.zeros_like(steps.c),
        first=ones,
        last=ones,
    )
    np.testing.assert_array_equal(AmaranthEngine(config).run(steps).results, steps.expected())


# Check vectors, worked out by hand from arXiv 2302.08007: numbers, exponent of the largest, microexponents (1 where
# both of a pair are below that), integers, squared error.
MX6 = [
    (
        [0.10, -0.37, 0.80, 1.25, -2.40, 3.10, -0.05, 0.62, 4.70, -5.20, 0.00, 1.90, -1.10, 2.75, -3.60, 0.33],
        (2, "11110111"),
        [0, -1, 3, 5, -10, 12, 0, 2, 9, -10, 0, 8, -4, 11, -14, 1],
        0.1802,
    ),
    (
        [7.0, -5.9, 5.1, -4.4, 3.3, 2.2, -1.2, 0.4, 6.1, -6.6, -2.9, 1.7, 0.0, -0.8, 3.9, -5.0],
        (2, "00110110"),
        [14, -12, 10, -9, 13, 9, -5, 2, 12, -13, -12, 7, 0, -3, 8, -10],
        0.0925,
    ),
]


@pytest.mark.parametrize(("numbers", "exponents", "integers", "error"), MX6, ids="AB")
@pytest.mark.parametrize("power", [-40, 0, 30])
def test_blocks_of_mx6_by_hand(
    numbers: list[float],
    exponents: tuple[int, str],
    integers: list[int],
    error: float,
    power: int,
    mx6: golden.BlockFormat,
) -> None:
    x = np.ldexp([numbers], power)
    q = golden.quantize(x, mx6)
    (word,) = q.scales[0].tolist()
    largest, micro = exponents
    # Beside a microexponent of 0 an integer counts 2^(E - 3), beside one of 1 half of that.
    assert (word & 0xFF) - 127 == largest + power - 4
    assert [word >> 8 + pair & 1 for pair in range(8)] == [1 - int(bit) for bit in micro]
    values = [h * 2.0 ** (largest - 3 - int(micro[at // 2])) for at, h in enumerate(integers)]
    np.testing.assert_array_equal(golden.dequantize(q), np.ldexp([values], power))
    assert float(np.square(np.ldexp(golden.dequantize(q), -power) - [numbers]).sum()) == pytest.approx(error, abs=1e-9)


def test_a_block_of_mx6_beyond_all_scales_is_nan(mx6: golden.BlockFormat) -> None:
    q = golden.quantize(np.full((1, 16), 1e300), mx6, tensor_scale=1.0)
    assert q.scales[0, 0] == 0xFF
    assert not q.codes.any()
    small = golden.quantize(np.full((1, 16), 1e-300), mx6, tensor_scale=1.0)
    assert (small.scales[0, 0], small.codes.any()) == (0, False)


def test_numbers_without_a_block_scale(tmp_path: Path) -> None:
    path = tmp_path / "int4-32.toml"
    for more in ("", "scale_bytes = 0\n"):
        path.write_text(f'[formats.int4-32]\nelements = ["INT4"]\nscale = "none"\nblock = 32\n{more}')
        config = resolved(str(path))
        assert (config.a.stored_bytes, counterpart(config.a).scale_bytes, config.a.lanes) == (16, 0, 32)


def test_a_file_is_a_row(mine: str) -> None:
    with pytest.raises(InputError, match=r"--rows: '.*mine.toml' has rows = 1; a row has 4, as nvfp4-small"):
        rows_of([mine])
    Path(mine).write_text(EXAMPLE)
    (row,) = rows_of([mine])
    assert row.name == "mine"
    assert isinstance(row.config, TensorCoreConfig)
    for name in ("nvfp4", "nvfp4-small", "nvfp4-2x16"):
        Path(mine).write_text(f'name = "{name}"\n{EXAMPLE}')
        with pytest.raises(InputError, match=r"mine.toml': name = .*: hwgen has a row 'nvfp4.*'; choose another name"):
            rows_of([mine])
    Path(mine).write_text(EXAMPLE)
    with pytest.raises(InputError, match="'mine' is given twice"):
        rows_of([mine, mine])


def described(**changed: Any) -> str:
    """A file of plain elements, with other lines in the places of some."""
    element = changed.pop("element", "values = [0, 1, 2, 3, 0, -1, -2, -3]")
    scale = {"exponent_bits": 4, "mantissa_bits": 3, "bias": 7, **changed.pop("scale", {})}
    form = {"elements": ["T"], "scale": "S", "block": 16, **changed.pop("form", {})}
    name = changed.pop("name", "mine")
    lines = [changed.pop("top", ""), "[elements.T]", element, changed.pop("more", ""), "[scales.S]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in scale.items() if value is not None]
    lines += [f"[formats.{name}]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in form.items() if value is not None]
    assert not changed
    return "\n".join(lines) + "\n"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"element": "values = [0, 1, 2]"}, "elements.T: .*has 3 values"),
    ({"element": "values = 3"}, "elements.T.values = 3: must be a list"),
    ({"element": 'values = [0, "1", 0, -1]'}, "elements.T.values = .*must be a list of numbers"),
    ({"element": "values = [0, nan, 0, -1]"}, "elements.T: .*code 0x1 is nan"),
    ({"element": "values = [0, inf, 0, -1]"}, "elements.T: .*code 0x1 is inf"),
    ({"element": "values = [0, 1, 2, 2, 0, -1, -2, -3]"}, "elements.T: codes 2 and 3 are both 2; .* one code"),
    ({"element": "values = [0, 1, 0, -1e40]"}, "elements.T: .*values of .* bits in units of the smallest"),
    (
        {"element": "values = [0, 1152921504606846976, 0, 0]"},
        r"elements.T: values must be from 2\^-48",
    ),
    ({"element": "values = [1, 2, -1, -2]"}, "elements.T: .*code 0 is 1; padding needs it to be 0"),
    ({"element": "values = [0, -1, 0, 1]"}, "elements.T: .*the top bit of a code must be its sign"),
    ({"element": "integer = 9"}, "elements.T.integer = 9: must be a whole number from 2 to 8"),
    ({"element": "integer = 4\nbias = 3"}, "elements.T.bias: has no meaning with integer"),
    ({"element": "integer = 4\nunit = 0"}, "elements.T.unit = 0: must be a finite number above 0"),
    ({"element": "integer = 4\nvalues = [0, 1, 0, -1]"}, "elements.T: must have values, or integer, .*values and int"),
    ({"element": ""}, "elements.T: must have values, or integer, or exponent_bits; has none"),
    ({"element": "exponent_bits = 5\nmantissa_bits = 5"}, "elements.T: has codes of 11 bits"),
    ({"element": "exponent_bits = 4"}, "elements.T: key 'mantissa_bits' is missing"),
    ({"element": "integer = 4\nsource = 3"}, "elements.T.source = 3: must be a text"),
    ({"element": "valuez = [0, 1, 0, -1]"}, "elements.T: unknown key 'valuez'; did you mean 'values'"),
    (
        {"more": '[elements."T\\n*/"]\ninteger = 4'},
        r"elements.'T\\n\*/': a name starts with a letter and holds letters, digits",
    ),
    ({"more": '[scales."a|b"]\nbias = 3'}, r"scales.'a\|b': a name starts with a letter"),
    ({"name": '"mi\\nne"'}, r"formats.'mi\\nne': a format's name starts with a small letter"),
    ({"element": f"values = [0, 1{'0' * 400}, 0, -1]"}, "elements.T.values: has a number beyond float64"),
    ({"element": f"integer = 4\nunit = 1{'0' * 400}"}, "elements.T.unit = 1000.*: must be a finite number above 0"),
    ({"more": "[elements.E2M1]\ninteger = 4"}, "elements.E2M1: hwgen has one of that name; choose another"),
    ({"scale": {"nan": 5}}, "scales.S: .*nan = 0x5: must be the highest code, 0x7f"),
    ({"scale": {"exponent_bits": 7}}, "scales.S: .*exponent_bits = 7, mantissa_bits = 3"),
    ({"scale": {"mantissa_bits": 0}}, "scales.S: .*mantissa_bits = 0: at least 2 and 1.*subnormals = false"),
    (
        {"scale": {"exponent_bits": 0, "mantissa_bits": 0, "bias": 0}},
        "scales.S: .*has no bits, so it is always 1: subnormals must be false, and nan left out",
    ),
    (
        {"scale": {"exponent_bits": 0, "mantissa_bits": 0, "bias": 0, "subnormals": False, "nan": 0}},
        "scales.S: .*has no bits, so it is always 1",
    ),
    ({"scale": {"bias": None}}, "scales.S: key 'bias' is missing"),
    ({"scale": {"bias": 200}}, r"scales.S.bias = 200: scales from 2\^-202 to 2\^-185 are beyond FP32"),
    ({"scale": {"subnormals": 1}}, "scales.S.subnormals = 1: must be true or false"),
    ({"scale": {"zero": True}}, "scales.S: unknown key 'zero'; known are exponent_bits"),
    ({"more": "[scales.E8M0]\nbias = 3"}, "scales.E8M0: hwgen has one of that name"),
    ({"name": "nvfp4"}, "formats.nvfp4: hwgen has one of that name; choose another"),
    ({"name": "Mine"}, "formats.'Mine': a format's name starts with a small letter"),
    ({"form": {"elements": ["T", "T"]}}, r"formats.mine.elements = \['T', 'T'\]: T and T are the same, .* ambiguous"),
    ({"form": {"elements": ["T", "T", "T"]}}, "the selector is ambiguous"),
    (
        {"more": "[elements.U]\nvalues = [0, 3, 2, 1, 0, -3, -2, -1]", "form": {"elements": ["T", "U"]}},
        "T and U are the same, so that the selector is ambiguous",
    ),
    ({"form": {"window": 25}}, "formats.mine.window = 25: takes elements with an exponent each, .*; T is none of them"),
    (
        {"element": "exponent_bits = 3\nmantissa_bits = 2\nunit = 3", "form": {"window": 25}},
        "formats.mine.window = 25: takes .* a power of two as unit, .*; T is none of them",
    ),
    (
        {"element": "exponent_bits = 3\nmantissa_bits = 2", "form": {"window": 33}},
        "formats.mine.window = 33: must be a whole number from 0 to 32",
    ),
    (
        {"element": "exponent_bits = 3\nmantissa_bits = 2", "form": {"window": 3}},
        "formats.mine: .*window = 3: must keep the bits of a whole product",
    ),
    (
        {"element": "exponent_bits = 3\nmantissa_bits = 2", "form": {"window": 25, "sums": 2}},
        "formats.mine: .*window = 25: takes one kind of elements, in one sum",
    ),
    ({"form": {"elements": ["E2M1", "INT4", "S1P2"]}}, "formats.mine: .*3 elements: a selector chooses among 1, 2, 4"),
    (
        {"form": {"elements": ["E5M2"], "scale": "E8M0", "block": 32}},
        "no lanes multiply mine x mine: a = 'mine' has infinite elements; .*a = 'mine' has no window",
    ),
    (
        {"top": 'a = "mxfp8-e5m2"\nb = "mine"', "form": {"scale": "E8M0", "block": 32}},
        "no lanes multiply mxfp8-e5m2 x mine: a = 'mxfp8-e5m2' has infinite elements; .*b = 'mine' has no window",
    ),
    ({"form": {"scale": "none", "scale_bytes": 1}}, "formats.mine.scale_bytes = 1: scale none has nothing to store"),
    ({"form": {"scale": "none", "shifts": [2]}}, "formats.mine.scale = 'none': shifts must have a block scale below"),
    (
        {"form": {"scale": "none", "elements": ["E2M1", "INT4"], "scale_bytes": 1}},
        "formats.mine.scale = 'none': a selector must have a block scale below; none has no bits",
    ),
    (
        {"form": {"full_scale": 6273, "elements": ["INT4"], "scale": "UE4M3", "shifts": [8], "scale_bytes": 2}},
        "formats.mine.full_scale = 6273: must be from 0.00195312 to 6272",
    ),
    ({"top": "[format.mine]\nblock = 16"}, "unknown table 'format'; did you mean 'formats'?"),
    ({"form": {"elements": ["T", "INT4"]}}, "formats.mine: .*elements T and INT4 have codes of 3 and 4 bits"),
    ({"form": {"elements": ["E2M1", "INT4"], "scale": "E8M0"}}, "a selector of 1 bits has no place beside scale E8M0"),
    ({"form": {"elements": ["E2M1", "INT4"], "selector_bit": 5}}, "formats.mine.selector_bit = 5: must be 7: hardware"),
    ({"form": {"elements": ["E2M1", "INT4"], "selector_bit": 7.0}}, "formats.mine.selector_bit = 7.0: must be 7"),
    ({"form": {"selector_bit": 7}}, "formats.mine.selector_bit = 7: there is one kind of elements"),
    ({"form": {"elements": "T"}}, "formats.mine.elements = 'T': must be a list of names"),
    ({"form": {"elements": ["INT44"]}}, "formats.mine.elements: 'INT44' is no name of elements; did you mean 'INT4'"),
    ({"form": {"scale": "UE4M4"}}, "formats.mine.scale: 'UE4M4' is no name of scale; did you mean 'UE4M3'"),
    ({"form": {"scale": None}}, "formats.mine.scale: None is no name of scale; known are"),
    ({"form": {"block": 3}}, "formats.mine: .*a block of 3: must fill whole bytes"),
    ({"form": {"block": 256}}, "formats.mine.block = 256: must be a whole number from 1 to 128"),
    ({"form": {"block": True}}, "formats.mine.block = True: must be a whole number"),
    ({"form": {"block": None}}, "formats.mine: key 'block' is missing"),
    ({"form": {"sums": 3}}, "formats.mine: .*sums = 3: must divide the block of 16"),
    ({"form": {"full_scale": -1}}, "formats.mine.full_scale = -1: must be a finite number above 0"),
    ({"form": {"full_scale": 10**400}}, "formats.mine.full_scale = 1000.*: must be a finite number above 0"),
    ({"form": {"full_scale": 1e300}}, "formats.mine.full_scale = 1e.300: must be from 0.00195312 to 1440, the small"),
    ({"form": {"full_scale": 1e-9}}, "formats.mine.full_scale = 1e-09: must be from 0.00195312 to 1440, the smallest"),
    ({"form": {"factors": [True]}}, r"formats.mine.factors = \[True\]: must be a list of whole numbers"),
    ({"form": {"factors": [7.5]}}, r"formats.mine.factors = \[7.5\]: must be a list of whole numbers"),
    ({"form": {"scale_bytes": 5}}, "formats.mine.scale_bytes = 5: must be a whole number from 0 to 4"),
    ({"form": {"scale_bytes": 3}}, "formats.mine: .*scale_bytes = 3: must be 1, 2 or 4, or 0 without a scale"),
    ({"form": {"scale_bytes": 0}}, "formats.mine: .*scale_bytes = 0: must be 1, 2 or 4, or 0 without a scale"),
    (
        {"form": {"scale_bytes": 4}},
        "formats.mine: .*scale_bytes = 4: takes shifts; 1 or 2 hold a scale and its selector",
    ),
    ({"form": {"shifts": 2}}, "formats.mine.shifts = 2: must be a list of whole numbers from 1 to 128"),
    ({"form": {"shifts": [0]}}, r"formats.mine.shifts = \[0\]: must be a list of whole numbers from 1 to 128"),
    ({"form": {"shifts": [2]}}, "formats.mine: .*shifts of 8 bits have no place beside scale S"),
    ({"form": {"shifts": [4, 8], "scale_bytes": 2}}, "formats.mine: .*must divide one another .*longest first"),
    ({"form": {"elements": ["E2M1"], "shifts": [8], "scale_bytes": 2}}, "formats.mine: .*all whole numbers of a unit"),
    ({"form": {"blocks": 16}}, "formats.mine: unknown key 'blocks'; did you mean 'block'"),
    ({"top": "formats = 3", "name": "x"}, "not valid TOML"),
    ({"top": "row = 3"}, "unknown key 'row'; did you mean 'rows'"),
    ({"top": 'a = "mine"\nb = "nvfp5"'}, "b = 'nvfp5': is no format; did you mean 'nvfp4'"),
    ({"top": 'b = "mxfp4"\nnumerics = "exact"'}, "a = 'mine', b = 'mxfp4': have blocks of 16 and 32"),
    ({"top": 'b = "mxfp4"'}, "a = 'mine', b = 'mxfp4': have blocks of 16 and 32"),
    (
        {"element": "exponent_bits = 4\nmantissa_bits = 3", "form": {"block": 128}},
        "a step of 128 products has longer sums .*; give the formats narrower 'elements' or a shorter 'block'$",
    ),
    # What the quantiser needs, the golden model says.
    ({"form": {"rule": "floor"}}, "formats.mine: rule must be one of 'nearest', 'least-error' for mine; got 'floor'"),
    ({"form": {"nonzero": 1}}, "formats.mine: nonzero = 1: must be true or false"),
    ({"form": {"nonzero": True}, "scale": {"subnormals": False}}, "formats.mine: nonzero: .* scale S has no zero"),
    ({"form": {"trial": [1]}}, "formats.mine: mine: trial must have the index of every element once"),
    ({"form": {"trial": 3}}, "formats.mine: trial = 3: must be a list of whole numbers"),
    ({"element": "integer = 4\npreference = 5"}, "elements.T: preference = 5: must be a list of whole numbers"),
    ({"element": 'integer = 4\nsilent = ["a"]'}, r"elements.T: silent = \['a'\]: must be a list of whole numbers"),
    ({"element": "integer = 4\nsilent = [16]"}, r"elements.T: T: silent = \(16,\): must be codes, 0 to 15"),
    ({"element": "integer = 2\nsilent = [1, 3]"}, r"elements.T: T: silent = \(1, 3\): must leave zero, and a number"),
    ({"element": "integer = 2\nsilent = [0, 2]"}, r"elements.T: T: silent = \(0, 2\): must leave zero, and a number"),
    ({"element": "integer = 4\nsilent = [0]"}, r"elements.T: T: silent = \(0,\): code 0 is what zeros are filled with"),
    (
        {"element": "integer = 4\nsilent = [7, 9]", "form": {"shifts": [8], "scale_bytes": 2, "elements": ["T"]}},
        "formats.mine: mine: shifts = .* take elements without silent codes and without a preference",
    ),
    (
        {"form": {"elements": ["E2M1+5", "E2M1-5"]}},
        "formats.mine: elements: formats of the catalogue settle ties of E2M1.5 in different ways; describe it",
    ),
    ({"element": "integer = 4\npreference = [1]"}, "elements.T: T: preference must have codes"),
    (
        {"element": "values = [0, 2, 1, 3, 0, -2, -1, -3]"},
        "elements.T: T: codes 7 and 5 are neighbours and both odd; preference",
    ),
]


def test_the_largest_number_of_a_format_with_shifts_is_shifted(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    form = {"full_scale": 6272, "elements": ["INT4"], "scale": "UE4M3", "shifts": [8], "scale_bytes": 2}
    path.write_text(described(form=form))
    (found,) = golden.formats_from(resolved(str(path)).a.definition).values()
    q = golden.quantize(np.full((1, 16), 6272.0), found)
    assert q.tensor_scale == 1
    assert golden.dequantize(q)[0, 0] == 6272


@pytest.mark.parametrize(("changed", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_what_describes_no_format(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(described(**changed))
    with pytest.raises(InputError) as caught:
        resolved(str(path))
    assert str(caught.value).startswith(f"configuration file {str(path)!r}: ")
    assert re.search(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def test_formats_that_are_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for text, message in (
        ("formats = 3", "formats = 3: must be a table"),
        ("[formats]\nmine = 3", "formats.mine = 3: must be a table"),
        (f"{described()}[formats.other]\nelements = ['T']\nscale = 'S'\nblock = 8", "of formats mine, other say which"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            resolved(str(path))

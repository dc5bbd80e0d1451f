"""A format is added by describing it: the worked example of docs/how-to/add-a-format.md, and stranger ones."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.config.dots import supported
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS, BlockFormat, Bounds, ElementFormat, ScaleFormat
from sim import golden
from sim.engines import AmaranthEngine
from sim.golden import catalogue
from sim.random import negated, random_steps

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "add-a-format.md"


@pytest.fixture
def known(monkeypatch):
    """Makes formats known to the golden model for the time of a test."""

    def know(*forms):
        for form in forms:
            monkeypatch.setitem(catalogue.CATALOGUE, form.name, form)

    return know


def check(config, count, seed=0):
    """Random steps in the Python simulator, every bit against the golden model."""
    steps = random_steps(config, count, np.random.default_rng(seed))
    run = AmaranthEngine(config).run(steps)
    np.testing.assert_array_equal(run.results, steps.expected())


def test_the_worked_example(known):
    found = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, found)
    known(found["nvint3"])
    config, text = found["config"], found["text"]
    assert "module nvint3_tiny(" in text
    assert config.bounds.sum_width == (16 * 3 * 3).bit_length() + 1
    check(config, 60)
    q = golden.quantize(np.linspace(-1, 1, 64).reshape(2, 32), found["nvint3"])
    assert np.abs(golden.dequantize(q)).max() == pytest.approx(1, rel=0.1)


def both(name, tables, exponent_bits=4, mantissa_bits=3, bias=7, size=16, tag_bit=None, nan=True):
    """A format in both descriptions, its elements given by their tables."""
    width = len(tables[0]).bit_length() - 1
    last = (1 << exponent_bits + mantissa_bits) - 1 if nan else None
    scale = ScaleFormat("S", exponent_bits, mantissa_bits, bias, last, "")
    mine = [ElementFormat(f"T{index}", tuple(table), "") for index, table in enumerate(tables)]
    other = [golden.ElementFormat(e.name, width, tuple(map(float, e.values)), fold=e.fold) for e in mine]
    theirs = golden.BlockFormat(
        name,
        tuple(other),
        golden.ScaleFormat("S", exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, bias=bias, nan=last),
        1.0,
        tag_bit=tag_bit,
        block=size,
    )
    return BlockFormat(name, tuple(mine), scale, size=size, full_scale=1.0, source=""), theirs


def signed(*magnitudes):
    return (*magnitudes, *(-magnitude for magnitude in magnitudes))


def four(name, nan):
    """E2M1 times 1, 2, 4 and 8, which two bits above a scale of six select."""
    tables = [signed(*(v * 2**power for v in (0, 0.5, 1, 1.5, 2, 3, 4, 6))) for power in range(4)]
    return both(name, tables, exponent_bits=3, bias=3, tag_bit=6, nan=nan)


def check_largest(config):
    """All lanes and scales as large as they get, of either sign, beside C that just stays below the terms' exponent."""
    bounds, steps = config.bounds, random_steps(config, 48, np.random.default_rng(1))
    for form, codes, scales in ((config.a, steps.a_codes, steps.a_scales), (config.b, steps.b_codes, steps.b_scales)):
        tag, code = max(
            ((tag, code) for tag in range(len(form.elements)) for code in range(1 << form.code_width)),
            key=lambda place, form=form: abs(form.elements[place[0]].integers[place[1]]),
        )
        binade = 1 << form.scale.mantissa_bits
        codes[:] = code
        scales[:] = tag << form.scale.width | (form.scale.highest // binade * binade - 1)
    steps.a_codes[::2] = negated(config.a)[steps.a_codes[::2]]
    top = bounds.highest_exponent - 1 - max(config.a.extra_folds) - max(config.b.extra_folds)
    exponents = 127 + top + np.arange(-3, 3)[np.arange(48) // 2 % 6]
    signs = (np.arange(48) // 12 % 2 << 31).astype(np.uint32)
    c = (exponents.astype(np.uint32) << 23 | np.uint32(0x7FFFFF)) | signs
    steps.c[:] = c[:, None, None]
    steps.first[:] = steps.last[:] = True
    run = AmaranthEngine(config).run(steps)
    np.testing.assert_array_equal(run.results, steps.expected())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("groups", "zeros"), [(1, "counted"), (1, "anticipated"), (2, "counted"), (3, "anticipated")])
@pytest.mark.parametrize("tables", [[(0, 1, 0, -1)], [signed(0, 1, 2, 3)], [signed(*range(8))]], ids=["1", "3", "7"])
def test_sums_as_long_as_they_get(tables, groups, zeros, known):
    """With largest elements of 1 and 3 a single term nearly fills its word, and C makes it overflow."""
    mine, theirs = both("short", tables)
    known(theirs)
    config = TensorCoreConfig("other", mine, mine, 1, 1, groups, leading_zeros=zeros, pipeline=("normal",))
    assert (config.bounds.sum_growth(groups, 35) > (groups - 1).bit_length()) == (mine.largest < 7 and groups == 1)
    check_largest(config)


# Exact sums are as wide as elements and scales make them: with the widest of both, with tags and without NaN.
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("form", "dot", "numerics"),
    [
        (form, dot, numerics)
        for form, dot, each in [
            (both("tern", [(0, 1, 0, -1)]), "merged", ["blackwell"]),
            (both("sixth", [signed(*range(32))]), "multiplier", ["blackwell"]),
            (both("seventh", [(*range(64), *range(-64, 0))]), "multiplier", ["blackwell", "exact"]),
            (both("fine", [signed(0, 1, 2, 3)], exponent_bits=3, mantissa_bits=4, bias=3), "signed", ["blackwell"]),
            (both("long", [signed(0, 0.25, 0.5, 1)], size=32), "significand", ["blackwell", "exact"]),
            # The second table is four times as coarse, which the exponent of the block carries.
            (
                both("coarse", [signed(0, 1, 2, 3, 4, 5, 6, 7), signed(*range(0, 32, 4))], tag_bit=7),
                "merged",
                ["blackwell", "exact"],
            ),
            (four("four", nan=False), "merged", ["blackwell", "exact"]),
            (four("fournan", nan=True), "signed", ["blackwell"]),
        ]
        for numerics in each
    ],
    ids=lambda value: value[0].name if isinstance(value, tuple) else value,
)
def test_other_formats(form, dot, numerics, known):
    mine, theirs = form
    known(theirs)
    bounds = Bounds(mine, mine)
    bits = {"fraction_bits": min(max(35, bounds.least_fraction_bits), bounds.most_fraction_bits())}
    other = {} if numerics == "exact" else bits
    config = TensorCoreConfig("other", mine, mine, 1, 1, 2, dot=dot, numerics=numerics, pipeline=("sums",), **other)
    check(config, 40)


def test_two_formats_at_once(known):
    """A and B have codes and scales of their own widths."""
    narrow, wide = both("tern", [(0, 1, 0, -1)]), both("fine", [signed(*range(8))], exponent_bits=3, bias=3)
    known(narrow[1], wide[1])
    check(TensorCoreConfig("mixed", narrow[0], wide[0], 1, 2, 2, pipeline=("decoded",)), 40)


def test_formats_beyond_the_golden_model_are_refused():
    eighth, _ = both("eighth", [(*range(128), *range(-128, 0))])
    with pytest.raises(InputError, match=r"fraction_bits = 35: .* from 23 to 34 with a = 'eighth', b = 'eighth'"):
        TensorCoreConfig("other", eighth, eighth, 1, 1, 2, dot="multiplier")
    with pytest.raises(InputError, match=r"a = 'eighth', b = 'eighth', .*: blocks have longer sums"):
        TensorCoreConfig("other", eighth, eighth, 1, 1, 2, dot="multiplier", numerics="exact")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "size"), [("mixfp4", 8), ("nvfp4", 24), ("mixfp4", 24)])
def test_blocks_of_other_sizes(name, size, known):
    """Every micro-architecture, also where the number of lanes is no power of two; there with one format each."""
    other = f"{name}-{size}"
    mine = dataclasses.replace(BLOCK_FORMATS[name], name=other, size=size)
    known(dataclasses.replace(golden.block_format(name), name=other, block=size))
    dots = set(supported(mine, mine))
    if (name, size) == ("mixfp4", 24):
        dots -= {dot for dot in supported(BLOCK_FORMATS["nvfp4"], BLOCK_FORMATS["nvfp4"]) if dot != "merged"}
    for dot in sorted(dots):
        check(TensorCoreConfig("other", mine, mine, 1, 1, 2, dot=dot, pipeline=("sums",)), 25)

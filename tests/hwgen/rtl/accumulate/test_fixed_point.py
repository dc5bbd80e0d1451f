"""Widths and step sums of the fixed point against integers."""

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.fixed_point import StepSum, block_width, step_width, sum_width
from hwgen.rtl.accumulate.terms import terms_layout

# 16 products of the largest elements, times the largest scales, 448, in units of 2^-20
LARGEST = {"nvfp4": 16 * 6 * 6 * 448**2 << 20, "mixfp4": 16 * 7 * 7 * 448**2 << 20}
forms = pytest.mark.parametrize("form", LARGEST)


def exact(form, groups, **other):
    return TensorCoreConfig("x", form, form, 1, 1, groups, numerics="exact", **other)


def pack(config, terms):
    fields = [{"sign": sign, "magnitude": magnitude, "place": place} for sign, magnitude, place in terms]
    return terms_layout(config)["terms"].shape.const(fields).as_value().value


@forms
@pytest.mark.parametrize("largest_depth", [4096, 4097, 65536, 100_000, 1 << 24])
@pytest.mark.parametrize("groups", [1, 3, 8])
def test_no_sum_of_the_largest_blocks_overflows(form, largest_depth, groups):
    config = exact(form, groups, largest_depth=largest_depth)
    assert LARGEST[form].bit_length() == block_width(config)
    assert groups * LARGEST[form] < 1 << step_width(config) - 1
    steps = -(-largest_depth // (16 * groups))
    assert config.largest_steps == steps
    total = steps * groups * LARGEST[form]
    assert 1 << sum_width(config) - 2 <= total < 1 << sum_width(config) - 1


def test_widths_are_those_of_the_documentation():
    assert [sum_width(exact(form, 1)) for form in LARGEST] == [60, 61]
    assert [block_width(exact(form, 1)) for form in LARGEST] == [47, 48]


@forms
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 8])
def test_step_sum(form, groups, evaluate):
    """Every place, largest magnitudes and random ones, all signs alike and not."""
    config = exact(form, groups)
    rng = np.random.default_rng(groups)
    cases = []
    for index in range(200):
        places = rng.integers(0, 29, groups) if index % 3 else np.full(groups, index % 29)
        widths = rng.integers(0, 20, groups) if index % 2 else np.full(groups, 19)
        # What the largest scales leave room for: 16 * 12 * 12 * 14 * 14, or as many as E1M2 can be at place 30.
        magnitudes = np.minimum(rng.integers(0, 1 << 19, groups) >> 19 - widths, 16 * 12 * 12 * 14 * 14)
        if index % 5 == 0:
            magnitudes[:] = 16 * 12 * 12 * 14 * 14
        signs = rng.integers(0, 2, groups) if index % 7 else np.full(groups, index & 1)
        cases.append(list(zip(signs.tolist(), magnitudes.tolist(), places.tolist(), strict=True)))
    if form == "mixfp4":
        cases += [[(sign, 16 * 7 * 7 * 14 * 14, 30)] * groups for sign in (0, 1)]
    found = evaluate(StepSum(config), [{"terms": pack(config, terms)} for terms in cases])
    for terms, outputs in zip(cases, found, strict=True):
        want = sum((-magnitude if sign else magnitude) << place for sign, magnitude, place in terms)
        if groups == 1:
            want -= terms[0][0]  # ones' complement
        assert outputs["sum"] == want, terms

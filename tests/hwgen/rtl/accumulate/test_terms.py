"""Scale products and the exponents of terms, against integers."""

import itertools

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.terms import ScaleProduct, TermExponents, TermPlaces, term_width
from hwgen.rtl.decode.operand import scale_layout


@pytest.mark.parametrize("form", ["nvfp4", "mixfp4", "nvint4"])
def test_scale_product(form, evaluate):
    config = TensorCoreConfig("x", form, form, 1, 1, 1)
    largest = 16 * config.a.largest**2
    edges = [0, 1, -1, 2, 3, 255, 256, -256, largest, -largest, 1 - largest, largest - 1]
    rng = np.random.default_rng(1)
    stimuli = [
        {"sum": total, "a": a, "b": b}
        for total, a, b in [
            *itertools.product(edges, (0, 1, 7, 8, 15), (0, 1, 7, 8, 15)),
            *((edges[(a + b) % len(edges)], a, b) for a, b in itertools.product(range(16), repeat=2)),
            *zip(
                rng.integers(-largest, largest + 1, 500).tolist(),
                *rng.integers(0, 16, (2, 500)).tolist(),
                strict=True,
            ),
        ]
    ]
    assert (largest * 15 * 15).bit_length() == term_width(config)
    for inputs, outputs in zip(stimuli, evaluate(ScaleProduct(config), stimuli), strict=True):
        exact = inputs["sum"] * inputs["a"] * inputs["b"]
        assert outputs["magnitude"] == abs(exact)
        if exact:
            assert outputs["sign"] == (exact < 0)


@pytest.mark.parametrize(
    ("groups", "empty_blocks"),
    [*((groups, "included") for groups in (1, 2, 3, 4, 8)), (1, "excluded"), (4, "excluded")],
)
def test_term_exponents(groups, empty_blocks, evaluate):
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, groups, empty_blocks=empty_blocks)
    layout = scale_layout(config.a)
    rng = np.random.default_rng(groups)
    cases = []
    for index in range(300):
        exponents = rng.integers(0, 16, (2, groups))
        zeros = rng.random((2, groups)) < (0, 0.2, 0.8)[index % 3]
        # A zero scale leaves exponent 0, or 1 with the fold.
        cases.append((np.where(zeros, exponents & 1, exponents).tolist(), zeros.tolist()))
    # One group far above or below all others, in every place.
    for place, (low, high) in itertools.product(range(groups), ((0, 15), (15, 0), (7, 8))):
        exponents = np.full((2, groups), low)
        exponents[:, place] = high
        cases.append((exponents.tolist(), np.zeros((2, groups), bool).tolist()))
    stimuli = []
    empty = rng.integers(0, 1 << groups, len(cases)).tolist() if config.excludes_empty else [0] * len(cases)
    for (exponents, zeros), without_sum in zip(cases, empty, strict=True):
        sides = [
            sum(
                layout.const({"significand": 0 if z else 9, "exponent": e, "zero": z}).as_value().value
                << layout.size * g
                for g, (e, z) in enumerate(zip(*side, strict=True))
            )
            for side in zip(exponents, zeros, strict=True)
        ]
        stimuli.append({"a": sides[0], "b": sides[1]} | ({"empty": without_sum} if config.excludes_empty else {}))
    found = evaluate(TermExponents(config), stimuli)
    for ((a, b), (za, zb)), without_sum, outputs in zip(cases, empty, found, strict=True):
        live = [not (x or y or without_sum >> g & 1) for g, (x, y) in enumerate(zip(za, zb, strict=True))]
        # A single group keeps its exponent even where it takes no part.
        sums = [(x + y) * (alive or groups == 1) for x, y, alive in zip(a, b, live, strict=True)]
        assert outputs["exponent"] == max(sums)
        assert outputs["active"] == any(live)
        if groups > 1:
            distances = [outputs["distances"] >> 5 * g & 31 for g in range(groups)]
            assert distances == [max(sums) - each for each in sums]


@pytest.mark.parametrize("groups", [1, 3])
def test_term_places(groups, evaluate):
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, groups, numerics="exact")
    layout = scale_layout(config.a)
    cases = [
        [((a + g) % 16, (b + 5 * g) % 16) for g in range(groups)] for a, b in itertools.product(range(16), repeat=2)
    ]

    def side(exponents):
        scales = [layout.const({"significand": 9, "exponent": e, "zero": 0}).as_value().value for e in exponents]
        return sum(scale << layout.size * g for g, scale in enumerate(scales))

    stimuli = [{name: side(each) for name, each in zip("ab", zip(*case, strict=True), strict=True)} for case in cases]
    for case, outputs in zip(cases, evaluate(TermPlaces(config), stimuli), strict=True):
        assert [outputs["places"] >> 5 * g & 31 for g in range(groups)] == [a + b for a, b in case]

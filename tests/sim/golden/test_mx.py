"""The longer elements of MX, FP6 and INT8: the rules floor and ceil, and what they store, in exact arithmetic."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import rational

from sim import golden

TOPS = {
    "mxint8": Fraction(127, 64),
    "mxfp6-e2m3": Fraction(15, 2),
    "mxfp6-e3m2": Fraction(28),
    "mxfp8-e4m3": Fraction(448),
    "mxfp8-e5m2": Fraction(57344),
}
EXPONENTS = {"mxint8": 0, "mxfp6-e2m3": 2, "mxfp6-e3m2": 4, "mxfp8-e4m3": 8, "mxfp8-e5m2": 15}
"""What the specification subtracts from the exponent of the largest number."""


def blocks(top, rng):
    """Blocks of 32 whose largest numbers are powers of two, the top times those, and their neighbours, and others."""
    tops = np.array([1.0, float(top), float(top) * 1.01, 1.99, 1.5, 1.25])[np.arange(60) % 6]
    tops *= 2.0 ** rng.integers(-100, 100, 60)
    tops = np.where(rng.random(60) < 0.5, tops, np.nextafter(tops, np.where(rng.random(60) < 0.5, 0, np.inf)))
    x = rng.uniform(-1, 1, (60, 32)) * tops[:, None] * 2.0 ** rng.integers(-6, 1, (60, 32))
    x[:, 3] = tops * 0.375  # often a tie
    x[np.arange(60), rng.integers(0, 32, 60)] = tops * rng.choice([1, -1], 60)
    return x


@pytest.mark.parametrize("rule", ["floor", "ceil"])
@pytest.mark.parametrize("form", TOPS)
def test_rules_against_their_definitions(form, rule):
    x = blocks(TOPS[form], np.random.default_rng(1))
    q = golden.quantize(x, form, rule=rule)
    assert (q.tensor_scale, q.scales.dtype) == (1, np.uint8)
    table = rational.FORMATS[form].elements[0][0]
    known = [(value, code) for code, value in enumerate(table) if value is not None and abs(value) <= TOPS[form]]
    lowest = dict(reversed(known))
    values = sorted(lowest)
    low = Fraction(2) ** EXPONENTS[form]
    for row, scale, codes in zip(x.tolist(), q.scales[:, 0].tolist(), q.codes.tolist(), strict=True):
        unit = Fraction(2) ** (scale - 127)
        largest = Fraction(max(map(abs, row))) / unit
        assert low <= largest < 2 * low if rule == "floor" else TOPS[form] / 2 < largest <= TOPS[form]
        for number, code in list(zip(row, codes, strict=True))[::3]:
            exact = Fraction(number) / unit
            assert code == min((lowest[v] for v in values), key=lambda c, v=exact: (abs(table[c] - v), c % 2))


@pytest.mark.parametrize("form", TOPS)
def test_storage_and_values(form):
    element = golden.block_format(form).elements[0]
    produced = [v for v in sorted(set(element.values)) if abs(v) <= TOPS[form]]
    x = np.zeros((len(produced), 32))
    x[:, 0], x[:, 1] = produced, float(TOPS[form])  # the latter sets the scale, to 1
    q = golden.quantize(x, form)
    assert set(q.scales.ravel().tolist()) == {127}
    np.testing.assert_array_equal(golden.dequantize(q), x)
    assert q.packed.shape == (len(produced), 4 * element.width)
    again = golden.QuantizedTensor.from_packed(q.packed, q.scales, 1.0, form)
    np.testing.assert_array_equal(again.codes, q.codes)
    four = golden.quantize(np.ones((2, 32)) * 3, "mxfp4")
    if "mxfp8" in form:
        assert golden.gemm(q, q, blocks_per_step=1)[-1, -1] == 2 * TOPS[form] ** 2
        with pytest.raises(golden.ArgumentError, match=f"numerics 'exact': products of {form} and {form} are cut"):
            golden.gemm(q, q, numerics="exact")
        products = golden.gemm(q, four, blocks_per_step=1, fraction_bits=29, rounding="nearest_even")
        np.testing.assert_array_equal(products, (3 * x.sum(axis=1)[:, None] * np.ones(2)).astype(np.float32))
    else:
        np.testing.assert_array_equal(golden.gemm(q, q, blocks_per_step=1), (x @ x.T).astype(np.float32))


def test_a_nan_among_the_elements_is_in_all_results_of_its_row():
    """Beside zeros, too, and beside an infinite C."""
    codes = np.zeros((3, 64), np.uint8)
    codes[1, 40] = 0x7F
    codes[2, 3] = 0xFF
    a = golden.QuantizedTensor(codes, np.full((3, 2), 127, np.uint8), np.float32(1), "mxfp8-e4m3")
    b = golden.QuantizedTensor(np.zeros((2, 64), np.uint8), np.full((2, 2), 127, np.uint8), np.float32(1), "mxfp4")
    for c in (np.inf, 1):
        d = golden.gemm(a, b, np.full((3, 2), c, np.float32), blocks_per_step=1)
        assert (d.view(np.uint32)[1:] == 0x7FFFFFFF).all()
        assert not np.isnan(d[0]).any()
    assert np.isnan(golden.dequantize(a)[1, 40])
    assert np.isnan(golden.dequantize(a)[2, 3])
    assert not (golden.quantize(np.full((1, 32), 1e30), "mxfp8-e4m3").codes & 0x7F == 0x7F).any()


def tensor(codes, scale=127, form="mxfp8-e5m2"):
    """Some codes of one row, under one scale; zeros up to whole blocks."""
    row = np.zeros((1, -(-len(codes) // 32) * 32), np.uint8)
    row[0, : len(codes)] = codes
    return golden.QuantizedTensor(row, np.full((1, row.shape[1] // 32), scale, np.uint8), np.float32(1), form)


INFINITE = {
    # codes of A, codes of B, C, result; 0x3C is 1
    "Inf x 1": ([0x7C], [0x3C], 0, np.inf),
    "Inf x -1": ([0x7C], [0xBC], 0, -np.inf),
    "-Inf x Inf": ([0xFC], [0x7C], 1, -np.inf),
    "Inf x 0": ([0x7C], [0x00], 0, np.nan),
    "0 x -Inf": ([0x80], [0xFC], 0, np.nan),
    "1 x -Inf, small C": ([0x3C], [0xFC], 7, -np.inf),
    "Inf x subnormal": ([0x7C], [0x81], 0, -np.inf),
    "Inf - Inf in two lanes": ([0x7C, 0x3C], [0x3C, 0xFC], 0, np.nan),
    "Inf - Inf in two blocks": ([0x7C] + [0] * 63 + [0x7C], [0x3C] + [0] * 63 + [0xBC], 0, np.nan),
    "Inf + Inf in two blocks": ([0x7C] + [0] * 63 + [0x7C], [0x3C] + [0] * 63 + [0x3C], 0, np.inf),
    "Inf, C infinite, too": ([0x7C], [0x3C], np.inf, np.inf),
    "Inf, C is -Inf": ([0x7C], [0x3C], -np.inf, np.nan),
    "Inf, C is NaN": ([0x7C], [0x3C], np.nan, np.nan),
    "Inf beside NaN": ([0x7C, 0x7D], [0x3C, 0x00], 0, np.nan),
    "largest numbers": ([0x7B], [0x7B], 0, 57344.0**2),
}


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("name", INFINITE)
def test_infinite_elements(name, groups):
    """In one step, and in as many as there are blocks."""
    a, b, c, result = INFINITE[name]
    for left, right in ((a, b), (b, a)):
        d = golden.gemm(tensor(left), tensor(right), np.full((1, 1), c, np.float32), blocks_per_step=groups)
        np.testing.assert_array_equal(d, np.full((1, 1), result, np.float32))
        assert not np.isnan(d) or d.view(np.uint32) == 0x7FFFFFFF


def test_an_infinite_sum_meets_an_infinite_product_in_the_next_step():
    """A sum beyond FP32 is infinite; so is what comes behind it, and NaN where the signs differ."""
    a, b = tensor([0x7B] + [0] * 31 + [0x7C], 254), tensor([0x7B] + [0] * 31 + [0xBC], 254)
    assert np.isnan(golden.gemm(a, b, blocks_per_step=1)[0, 0])
    assert golden.gemm(a, b, blocks_per_step=2)[0, 0] == -np.inf  # the sum does not count beside it
    assert golden.gemm(a, a, blocks_per_step=1)[0, 0] == np.inf
    with pytest.raises(golden.ArgumentError, match="numerics 'exact': elements of mxfp8-e5m2 or mxfp4 may be infinite"):
        golden.gemm(a, tensor([2] * 33, form="mxfp4"), numerics="exact", blocks_per_step=1)


def test_infinity_is_read_and_not_produced():
    stored = tensor([0x7C, 0xFC, 0x7D], 100)
    np.testing.assert_array_equal(golden.dequantize(stored)[0, :3], [np.inf, -np.inf, np.nan])
    x = np.array([[1e30, -1e30, 57344, 65536, -65535, 61440] + [0] * 26])
    for rule in ("floor", "ceil"):
        assert (golden.quantize(x, "mxfp8-e5m2", rule=rule).codes & 0x7F < 0x7C).all()
    assert golden.quantize(np.full((1, 32), -65535.0), "mxfp8-e5m2", rule="floor").codes[0, 0] == 0xFB


def test_the_lowest_code_of_int8_is_read_and_not_produced():
    q = golden.quantize(np.full((1, 32), -2.0) * np.append(np.ones(31), -127 / 128), "mxint8", rule="floor")
    assert 128 not in golden.quantize(-np.linspace(0, 1.999, 64).reshape(2, 32), "mxint8").codes
    assert (q.scales[0, 0], q.codes[0, 0]) == (128, 256 - 64)
    lowest = golden.QuantizedTensor(np.full((1, 32), 128, np.uint8), q.scales * 0 + 127, np.float32(1), "mxint8")
    assert golden.dequantize(lowest).tolist() == [[-2.0] * 32]
    assert golden.gemm(lowest, lowest)[0, 0] == 128


def test_steps_of_w4a8_that_the_page_allows():
    page = (Path(__file__).parents[3] / "docs" / "golden.md").read_text(encoding="utf-8")
    assert "Three blocks in a step are the most with F = 35." in " ".join(page.split())
    a, b = (golden.quantize(np.ones((1, 384)), form) for form in ("mxfp8-e4m3", "mxfp4"))
    assert golden.gemm(a, b, blocks_per_step=3).tolist() == [[384.0]]
    with pytest.raises(golden.ArgumentError, match="fraction_bits must be 1 to 34 for 4 blocks per step; got 35"):
        golden.gemm(a, b, blocks_per_step=4)

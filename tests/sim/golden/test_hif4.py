"""HiF4: E6M2 scales, the shifts of its sub-groups, and the rule of its quantiser in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import rational

from sim import golden

FORM = golden.block_format("hif4")
HALF = Fraction(1, 2)


def to_bf16(value):
    """A positive number rounded to 8 significant bits, ties to even."""
    quantum = Fraction(2) ** (rational.floor_log2(value, -200) - 7)
    return round(value / quantum) * quantum


SCALES = [rational.scale_of("hif4", code) for code in range(255)]


def quantized(row):
    """Scale word and magnitudes of 64 numbers, by the definition."""
    sizes = [abs(Fraction(v)) for v in row]
    wanted = min(max(max(sizes) * to_bf16(Fraction(1, 7)), SCALES[0]), SCALES[-1])
    wanted = to_bf16(wanted)
    scale = min(range(255), key=lambda code: (abs(SCALES[code] - wanted), code % 2))
    inverse = to_bf16(1 / SCALES[scale])
    eights = [max(sizes[8 * i : 8 * i + 8]) * inverse >= 4 for i in range(8)]
    fours = [max(sizes[4 * i : 4 * i + 4]) * inverse / (1 + eights[i // 2]) >= 2 for i in range(16)]
    shifts = [eights[k // 8] + fours[k // 4] for k in range(64)]
    found = [min(7, int(v * inverse / 2**s * 4 + HALF)) for v, s in zip(sizes, shifts, strict=True)]
    word = scale + sum(bit << 8 + i for i, bit in enumerate(eights)) + sum(bit << 16 + i for i, bit in enumerate(fours))
    return (word if any(found) else 0), found


def blocks(rng):
    """Blocks whose largest numbers are where the scale, a bit or a code turns, and their neighbours; and any others."""
    tops = np.array([7.0, 6.99, 8.75, 7.9, 13.9, 1.0, 3.3])[np.arange(140) % 7] * 2.0 ** rng.integers(-46, 14, 140)
    x = rng.uniform(-1, 1, (140, 64)) * 2.0 ** rng.integers(-4, 1, (140, 16)).repeat(4, axis=1)
    x[:, ::7] = rng.choice([4, 2, 1, 0.875, 0.625, 0.125, -0.375, 0], (140, 10)) / 7
    x[np.arange(140), rng.integers(0, 64, 140)] = rng.choice([1, -1], 140)
    x = (x * tops[:, None]).astype(np.float32).astype(np.float64)
    near = np.nextafter(x.astype(np.float32), np.float32(np.inf)).astype(np.float64)
    x = np.where(rng.random(x.shape) < 0.2, near, x)
    x[:3] *= [[0], [2.0**-60], [2.0**60]]
    return x


def test_the_rule_is_that_of_its_definition():
    x = blocks(np.random.default_rng(1))
    q = golden.quantize(x, "hif4")
    assert (q.tensor_scale, q.scales.dtype) == (1, np.uint32)
    seen = 0
    for row, word, codes in zip(x.tolist(), q.scales[:, 0].tolist(), q.codes.tolist(), strict=True):
        wanted, found = quantized(row)
        assert word == wanted
        assert codes == [h + 8 * (v < 0 and h > 0) for v, h in zip(row, found, strict=True)]
        seen |= word
    assert seen >> 8 == (1 << 24) - 1  # every bit
    assert q.scales[0, 0] == 0
    assert q.scales[2, 0] & 0xFF == 0xFE
    assert not q.codes[:2].any()


@pytest.mark.parametrize(("code", "mantissa"), [(0xC0, 0), (0xC1, 77), (0xC2, 43), (0xC3, 18)])
def test_reciprocals_are_those_of_the_paper(code, mantissa):
    inverse = to_bf16(1 / SCALES[code])
    assert inverse / Fraction(2) ** rational.floor_log2(inverse, -200) == 1 + Fraction(mantissa, 128)


def test_every_scale():
    for code in range(255):
        assert FORM.scale.table[code] == SCALES[code]
    assert np.isnan(FORM.scale.table[255])
    assert (FORM.scale.smallest, FORM.scale.largest, FORM.scale.zero) == (2.0**-48, 49152.0, None)


def test_values_of_stored_numbers():
    """Each sub-group alone has its bit set, then all have."""
    codes = np.tile(np.arange(16, dtype=np.uint8), (26, 4))
    bits = np.append(1 << np.arange(24), [0, (1 << 24) - 1])
    q = golden.QuantizedTensor(codes, (bits << 8 | 0xC1).astype(np.uint32)[:, None], np.float32(1), "hif4")
    found = golden.dequantize(q)
    m = np.tile(np.append(np.arange(8), -np.arange(8)) / 4 * 1.25, 4)
    for row, bit in zip(found, range(26), strict=True):
        factor = np.ones(64)
        if bit < 8:
            factor[8 * bit : 8 * bit + 8] = 2
        elif bit < 24:
            factor[4 * (bit - 8) : 4 * (bit - 8) + 4] = 2
        np.testing.assert_array_equal(row, m * factor * (4 if bit == 25 else 1))
    packed = golden.QuantizedTensor.from_packed(q.packed, q.scales, 1.0, "hif4")
    np.testing.assert_array_equal(packed.codes, codes)
    assert (q.packed.nbytes + q.scales.nbytes) * 8 / codes.size == 4.5


def test_products_of_all_levels():
    """Four sums of 16 under one scale, of the largest numbers; and numbers that it quantises without error."""
    x = np.array([[7.0, 3.5, 1.75, -0.25] * 16, [7.0, 1.5, 1.75, 0.25] * 16])
    q = golden.quantize(x, "hif4")
    np.testing.assert_array_equal(golden.dequantize(q)[:, 0], [7, 7])
    d = golden.dequantize(q).astype(np.float64)
    np.testing.assert_array_equal(golden.gemm(q, q, blocks_per_step=1), d @ d.T)
    with pytest.raises(golden.ArgumentError, match="fraction_bits must be 1 to 35 for 16 blocks per step; got 36"):
        golden.gemm(q, q, blocks_per_step=4, fraction_bits=36)


def test_the_rule_and_the_format_belong_together():
    with pytest.raises(golden.ArgumentError, match="rule must be one of 'reciprocal' for hif4; got 'nearest'"):
        golden.quantize(np.ones((1, 64)), "hif4", rule="nearest")
    with pytest.raises(golden.ArgumentError, match="scales must be uint32; got uint8"):
        golden.QuantizedTensor(np.zeros((1, 64), np.uint8), np.zeros((1, 1), np.uint8), np.float32(1), "hif4")

"""Steps of NVFP4 and of FP8 against MMA-Sim (arXiv 2511.10909), where it is installed; it is on no package index.

git clone https://github.com/microsoft/MMA-Sim && pip install torch
PYTHONPATH=MMA-Sim python -m pytest tests/sim/golden/test_mma_sim.py
"""

from itertools import product

import numpy as np
import pytest
from rational import NAN

from sim import golden

torch = pytest.importorskip("torch", reason="MMA-Sim needs torch")
nv_ptx = pytest.importorskip(
    "mmasim.simulator.nv_ptx", reason="MMA-Sim is not installed (github.com/microsoft/MMA-Sim)"
)

QUALIFIER = "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
M, N, G = 16, 8, 4


def theirs(a, a_scales, b, b_scales, c):
    """Bits, uint32 (M, N)."""
    unit = nv_ptx.mma_block_scale("RTX Blackwell", QUALIFIER)
    codes = [torch.from_numpy(golden.pack(codes)) for codes in (a, b)]
    scales = [torch.from_numpy(scales.copy()).view(torch.float8_e4m3fn) for scales in (a_scales, b_scales)]
    d = unit(codes[0], codes[1].T, torch.from_numpy(c.copy()), scales[0], scales[1].T)
    return d.numpy().view(np.uint32)


def near_c(rng, sums):
    exponents = rng.integers(127 - 45, 127 + 30, sums.shape, np.uint32)
    return (rng.integers(0, 1 << 32, sums.shape, np.uint32) & 0x807FFFFF | exponents << 23).view(np.float32)


def any_finite_c(rng, sums):
    c = rng.integers(0, 1 << 32, sums.shape, np.uint32).view(np.float32)
    return np.where(np.isinf(c), np.float32(0), c)  # MMA-Sim ends in an error at infinity


def zero_c(rng, sums):
    return rng.choice(np.array([0.0, -0.0], np.float32), sums.shape)


def cancelling_c(rng, sums):
    bits = (-sums).view(np.uint32) + rng.integers(-1, 2, sums.shape).astype(np.uint32)
    return np.where(np.isfinite(sums) & (sums != 0), bits.view(np.float32), np.float32(0))


def draw(rng, kind, draw_c):
    a, b = (rng.integers(0, 16, (rows, 16 * G), np.uint8) for rows in (M, N))
    a_scales, b_scales = (rng.integers(0, 127, (rows, G), np.uint8) for rows in (M, N))
    if kind == "zero blocks":
        a.reshape(M, G, 16)[rng.random((M, G)) < 0.5] = 0
    elif kind == "cancelling sums":
        a.reshape(M, G, 2, 8)[:, :, 1] = a.reshape(M, G, 2, 8)[:, :, 0]
        b.reshape(N, G, 2, 8)[:, :, 1] = b.reshape(N, G, 2, 8)[:, :, 0] ^ 8
        a[rng.random(a.shape) < 0.02] = 1
    elif kind == "extreme scales":
        ends = np.array([0x00, 0x01, 0x07, 0x08, 0x70, 0x77, 0x7E], np.uint8)
        a_scales, b_scales = (rng.choice(ends, scales.shape) for scales in (a_scales, b_scales))
    elif kind == "NaN scales":
        a_scales[rng.random(a_scales.shape) < 0.05] = 0x7F
    operands = a, a_scales, b, b_scales
    return *operands, draw_c(rng, golden.step(*operands, np.zeros((M, N), np.float32), a="nvfp4", b="nvfp4"))


@pytest.mark.parametrize("draw_c", [near_c, any_finite_c, zero_c, cancelling_c])
@pytest.mark.parametrize("kind", ["any", "zero blocks", "cancelling sums", "extreme scales", "NaN scales"])
def test_steps_are_those_of_mma_sim(kind, draw_c):
    rng = np.random.default_rng([len(kind), len(draw_c.__name__)])
    for _ in range(8):
        operands = draw(rng, kind, draw_c)
        expected = theirs(*operands)
        np.testing.assert_array_equal(golden.step(*operands, a="nvfp4", b="nvfp4").view(np.uint32), expected)
        if kind == "NaN scales":
            assert (expected[(operands[1] == 0x7F).any(axis=1)] == NAN).all()


def test_empty_blocks_take_part_in_mma_sim():
    """So the option that leaves them out must differ from it somewhere."""
    rng = np.random.default_rng(1)
    differ = 0
    for _ in range(8):
        operands = draw(rng, "zero blocks", near_c)
        excluded = golden.step(*operands, a="nvfp4", b="nvfp4", empty_blocks="excluded")
        differ += (excluded.view(np.uint32) != theirs(*operands)).sum()
    assert differ > 0


FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
K = 32


def theirs_of_fp8(types, a, b, c, scales=()):
    """Bits, uint32 (M, N); ``scales`` are bytes of UE8M0 for rows of A and of B."""
    name = f"f32.{'.'.join(types)}.f32"
    operands = [torch.from_numpy(codes.copy()).view(FP8[of]) for of, codes in zip(types, (a, b), strict=True)]
    rows = [torch.from_numpy(each.copy()).view(torch.float8_e8m0fnu) for each in scales]
    if rows:
        unit = nv_ptx.mma_block_scale("RTX Blackwell", f"m16n8k32.block32.{name}.ue8m0")
        d = unit(operands[0], operands[1].T, torch.from_numpy(c.copy()), rows[0], rows[1].T)
    else:
        d = nv_ptx.mma("RTX Blackwell", f"m16n8k32.{name}")(operands[0], operands[1].T, torch.from_numpy(c.copy()))
    return d.numpy().view(np.uint32)


def any_c(rng, sums):
    return rng.integers(0, 1 << 32, sums.shape, np.uint32).view(np.float32)


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("draw_c", [near_c, any_c, zero_c, cancelling_c])
@pytest.mark.parametrize("specials", [False, True], ids=["finite", "any"])
@pytest.mark.parametrize("types", list(product(FP8, repeat=2)), ids="-".join)
def test_steps_of_fp8_are_those_of_mma_sim(types, specials, draw_c, scaled):
    """Of equal types and of unequal ones."""
    rng = np.random.default_rng([specials, scaled, *(len(name) for name in (draw_c.__name__, "".join(types)))])
    kinds = dict(zip("ab", types, strict=True))
    for _ in range(4):
        a, b = (rng.integers(0, 256, (rows, K), np.uint8) for rows in (M, N))
        for of, codes in zip(types, (a, b), strict=True):
            table = torch.arange(256, dtype=torch.uint8).view(FP8[of]).float().numpy()
            # A NaN or infinity in most rows would leave little else to compare.
            codes[~np.isfinite(table[codes])] = 0x81
            codes[rng.random(codes.shape) < 0.1] = 0x80
            if specials:
                codes[0, rng.integers(K)] = rng.choice(np.flatnonzero(~np.isfinite(table)))
        rows = tuple(rng.integers(127 - 15, 127 + 16, (rows, 1), np.uint8) for rows in (M, N)) if scaled else ()
        options = dict(zip(("a_scales", "b_scales"), rows, strict=False)) | kinds
        c = draw_c(rng, golden.unscaled_step(a, b, np.zeros((M, N), np.float32), **options))
        ours = golden.unscaled_step(a, b, c, **options).view(np.uint32)
        np.testing.assert_array_equal(ours, theirs_of_fp8(types, a, b, c, rows))
        if specials:
            assert not np.isfinite(np.concatenate([ours[0], ours[:, 0]]).view(np.float32)).any()


@pytest.mark.parametrize("bits", [24, 26])
def test_another_window_would_differ(bits):
    """So the comparison says how many bits are kept."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 0x78, (rows, K), np.uint8) for rows in (M, N))
    c = near_c(rng, np.zeros((M, N)))
    other = golden.unscaled_step(a, b, c, fraction_bits=bits).view(np.uint32)
    assert (other != theirs_of_fp8(("e4m3", "e4m3"), a, b, c)).any()

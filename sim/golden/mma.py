"""What a tensor core step, and a GEMM made of such steps, must compute: bit for bit.

One step multiplies an M x 16G tile of A by an N x 16G tile of B, both K-major, and adds C. For every output,
with h an element in half-units (0 1 2 3 4 6 8 12 for E2M1, 0 to 7 for E1M2), sig the significand of a block
scale in eighths (0 to 15), exp its exponent (-6 to 8; a zero scale has -126) and tag its bit 7::

    S_g = sum over 16 lanes of hA * hB
    T_g = S_g * sigA * sigB
    E_g = expA + expB + tagA + tagB                   value = T_g * 2^(E_g - 8)
    C   = sigC * 2^(expC - 23)                        expC >= -126; zero has -126
    emax = max(expC, E_0 .. E_{G-1})                  groups whose sum is zero take part
    D = round(sum of all terms, each truncated toward zero to a multiple of 2^(emax - fraction_bits))

The E1M2 factor of 2 travels in the exponent, through the tag. An exact zero is +0. A NaN scale or a NaN C
gives 0x7FFFFFFF; otherwise an infinite C passes through.

Four groups of 16, 35 fraction bits and rounding toward zero are what MMA-Sim (arXiv 2511.10909) found,
bitwise validated, for NVFP4 on Blackwell (``kind::mxf4nvf4``, K = 64). The tag is MixFP4 (arXiv 2605.31035).
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .formats import (
    BLOCK,
    E1M2_VALUES,
    E2M1_VALUES,
    SCALE_NAN,
    TAG,
    UE4M3_VALUES,
    Array,
    InputError,
    Tensor,
    as_array,
    check_blocks,
)
from .quantize import QuantizedTensor

NUMERICS = ("blackwell", "exact")
"""Names of the accumulation modes of `gemm`."""
ROUNDINGS = ("toward_zero", "nearest_even")
"""Names of the final roundings of a step to FP32."""

_NAN = np.uint32(0x7FFFFFFF)
_T_MAX = BLOCK * 12 * 12 * 15 * 15  # largest |T_g|
_MIN_EXPONENT = -126  # of FP32, and by convention of zero
_TILE = 1 << 15  # outputs per tile: the float64 working set stays in a core's L2 cache
_OPERAND_CHUNK = 1 << 20  # operand elements decoded at a time, to bound memory

# Exact in float64 and chosen so that a lane product is its share of T_g * 2^(E_g - 8).
_SCALE = np.nan_to_num(np.concatenate([UE4M3_VALUES, UE4M3_VALUES]), nan=0.0)
_MAGNITUDE = np.repeat([E2M1_VALUES, E1M2_VALUES], 128, axis=0)
_ELEMENT = (_SCALE[:, None] * np.concatenate([_MAGNITUDE, -_MAGNITUDE], axis=1)).ravel()
"""Element value times block scale, at index 16 * scale byte + code; 0 where the scale is NaN."""

_EXPONENT = np.array(
    [(max(byte >> 3 & 15, 1) - 7 if _SCALE[byte] else _MIN_EXPONENT) + (byte >> 7) for byte in range(2 * TAG)],
    dtype=np.int16,
)
"""exp + tag of a block scale."""

_NEVER_CUT = 1 << 10
_FLOOR = np.where(_SCALE > 0, _EXPONENT, _NEVER_CUT).astype(np.int16)
"""exp + tag where the block can have a non-zero sum, otherwise too large to ask for truncation."""


def step(
    a_codes: Tensor,
    a_scales: Tensor,
    b_codes: Tensor,
    b_scales: Tensor,
    c: Tensor,
    *,
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
    tags: bool = True,
) -> npt.NDArray[np.float32]:
    """Compute one step of the tensor core, D = A B^T + C, or a stack of steps that know nothing of each other.

    Parameters
    ----------
    a_codes, b_codes : array or tensor of uint8, (..., M, 16 G) and (..., N, 16 G)
        Element codes 0 to 15. Leading dimensions, which all arguments share, count the steps of a stack.
    a_scales, b_scales : array or tensor of uint8, (..., M, G) and (..., N, G)
        Block scales, tag in bit 7. Any byte is valid.
    c : array or tensor of float32, (..., M, N)
        Any bit pattern is valid.
    fraction_bits : int
        Terms are truncated to multiples of 2^(emax - fraction_bits). From 1 to `max_fraction_bits` of G,
        which is 40 for G = 4.
    rounding : {"toward_zero", "nearest_even"}
        Rounding of the sum to FP32. The alignment of terms always truncates toward zero.
    tags : bool
        False is the NVFP4-only datapath: bit 7 of every scale is ignored and every code is E2M1.

    Returns
    -------
    numpy.ndarray of float32, (..., M, N)
        In the units of C: tensor scales are not applied.

    Raises
    ------
    InputError
        Wrong type, shape or range, or an unknown rounding.

    Notes
    -----
    Products are far below the last place of the largest FP32 number, so only an infinite C gives infinity
    and the two roundings overflow alike.
    """
    a, a_bytes = _check_stack(a_codes, a_scales, ("a_codes", "a_scales"))
    b, b_bytes = _check_stack(b_codes, b_scales, ("b_codes", "b_scales"))
    if a.shape[-1] != b.shape[-1]:
        raise InputError(f"a_codes has K = {a.shape[-1]} and b_codes K = {b.shape[-1]}; they must be equal")
    if a.shape[:-2] != b.shape[:-2]:
        raise InputError(f"a_codes is a stack of {a.shape[:-2]} and b_codes of {b.shape[:-2]}; they must be equal")
    start = _check_c(c, (*a.shape[:-1], b.shape[-2]))
    groups = a_bytes.shape[-1]
    _check_rounding(groups, fraction_bits, rounding)
    if not tags:
        a_bytes, b_bytes = a_bytes & SCALE_NAN, b_bytes & SCALE_NAN
    if a.ndim == 2:
        d = _blackwell(a, a_bytes, b, b_bytes, _finite(start), groups, fraction_bits, rounding)
    else:
        d = _stack(a, a_bytes, b, b_bytes, _finite(start), fraction_bits, rounding)
    return _special(d, a_bytes, b_bytes, start)


def accumulate(
    qa: QuantizedTensor,
    qb: QuantizedTensor,
    c: Tensor | None = None,
    blocks_per_step: int = 4,
    numerics: str = "blackwell",
    *,
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
) -> npt.NDArray[np.float32]:
    """Compute a GEMM in the core's units: what the hardware puts out, before tensor scales.

    Parameters and errors are those of `gemm`.

    Returns
    -------
    numpy.ndarray of float32, (M, N)
    """
    for name, q in (("qa", qa), ("qb", qb)):
        if not isinstance(q, QuantizedTensor):
            raise InputError(f"{name} must be a QuantizedTensor, as quantize returns; got {type(q).__name__}")
    if qa.shape[1] != qb.shape[1]:
        raise InputError(f"qa has K = {qa.shape[1]} and qb K = {qb.shape[1]}; they must be equal")
    if numerics not in NUMERICS:
        raise InputError(f"numerics must be one of {', '.join(map(repr, NUMERICS))}; got {numerics!r}")
    groups = _integer(blocks_per_step, "blocks_per_step")
    if groups < 1:
        raise InputError(f"blocks_per_step must be at least 1; got {groups}")
    _check_rounding(groups, fraction_bits, rounding)
    shape = (qa.shape[0], qb.shape[0])
    start = np.zeros(shape, np.float32) if c is None else _check_c(c, shape)
    if numerics == "exact":
        d = _exact(qa, qb, _finite(start))
    else:
        d = _blackwell(qa.codes, qa.scales, qb.codes, qb.scales, _finite(start), groups, fraction_bits, rounding)
    return _special(d, qa.scales, qb.scales, start)


def gemm(
    qa: QuantizedTensor,
    qb: QuantizedTensor,
    c: Tensor | None = None,
    blocks_per_step: int = 4,
    numerics: str = "blackwell",
    *,
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
) -> npt.NDArray[np.float32]:
    """Multiply two quantised matrices, D = A B^T + C, with the rounding of the hardware.

    Parameters
    ----------
    qa, qb : QuantizedTensor, (M, K) and (N, K)
        Their formats may differ.
    c : array or tensor of float32, (M, N), optional
        C of the first step, in the core's units: tensor scales apply to it as to the products. Zero if
        absent.
    blocks_per_step : int
        G, the groups of 16 that one step takes. Step i takes C from step i - 1; the last one is padded with
        zero blocks (scale 0x00, codes 0).
    numerics : {"blackwell", "exact"}
        "blackwell" is a chain of `step`. "exact" adds every T_g * 2^(E_g - 8) of the whole GEMM and `c`
        without error and rounds once to nearest even, so that order does not matter; `blocks_per_step`,
        `fraction_bits` and `rounding` then have no effect.
    fraction_bits, rounding
        As in `step`.

    Returns
    -------
    numpy.ndarray of float32, (M, N)
        float32(float64(D) * (float64(scale of A) * float64(scale of B))), D from `accumulate`.

    Raises
    ------
    InputError
        Not quantised tensors, K differs, or wrong type, shape or range of another argument.
    """
    d = accumulate(qa, qb, c, blocks_per_step, numerics, fraction_bits=fraction_bits, rounding=rounding)
    with np.errstate(over="ignore", under="ignore"):
        result = (d.astype(np.float64) * (np.float64(qa.tensor_scale) * np.float64(qb.tensor_scale))).astype(np.float32)
    result.view(np.uint32)[np.isnan(result)] = _NAN  # conversions need not keep a NaN's bits
    return result


def max_fraction_bits(groups: int) -> int:
    """Return the largest `fraction_bits` that the model supports for steps of `groups` blocks.

    Up to it, the sum of all truncated terms is an integer below 2^53 in units of their last place, hence
    exact in float64.
    """
    bits = 1
    while groups * (_T_MAX << (bits + 1)) + (1 << (bits + 10)) <= 1 << 61:
        bits += 1
    return bits


def _blackwell(
    a: Array,
    a_bytes: Array,
    b: Array,
    b_bytes: Array,
    c: Array,
    groups: int,
    fraction_bits: int,
    rounding: str,
) -> Array:
    m, n = c.shape
    rows = min(m, 64)
    cols = min(n, max(1, _TILE // rows))
    rows = min(m, max(1, _TILE // cols))
    batch = max(1, _OPERAND_CHUNK // ((m + n) * groups * BLOCK)) * groups
    d = c.copy()
    for k in range(0, a_bytes.shape[1], batch):
        left = _operand(a, a_bytes, slice(k, k + batch), groups)
        right = _operand(b, b_bytes, slice(k, k + batch), groups)
        for i in range(0, m, rows):
            for j in range(0, n, cols):
                at = slice(i, i + rows), slice(j, j + cols)
                d[at] = _steps(left.part(at[0]), right.part(at[1]), d[at], fraction_bits, rounding)
    return d


class _Operand(NamedTuple):
    """Rows of one operand, decoded for a number of steps."""

    values: Array
    """Element times block scale, float64 (steps, rows, 16 G)."""
    exponents: Array
    """exp + tag, int16 (G, steps, rows)."""
    floors: Array
    """Lowest exp + tag of the non-zero scales, int16 (rows,)."""

    def part(self, rows: slice) -> _Operand:
        return _Operand(self.values[:, rows], self.exponents[:, :, rows], self.floors[rows])


def _operand(codes: Array, scales: Array, blocks: slice, groups: int) -> _Operand:
    scales = scales[:, blocks]
    codes = codes[:, blocks.start * BLOCK : blocks.stop * BLOCK]
    rows, count = scales.shape
    padding = -count % groups
    if padding:
        scales = np.pad(scales, ((0, 0), (0, padding)))
        codes = np.pad(codes, ((0, 0), (0, padding * BLOCK)))
    steps = (count + padding) // groups
    values = _values(codes, scales).reshape(rows, steps, -1).transpose(1, 0, 2)
    exponents = _EXPONENT[scales].reshape(rows, steps, groups).transpose(2, 1, 0)
    return _Operand(values, np.ascontiguousarray(exponents), _FLOOR[scales].min(axis=1))


def _values(codes: Array, scales: Array) -> Array:
    """Return element times block scale, float64 (rows, blocks, 16)."""
    index = scales.astype(np.intp)[:, :, None] << 4 | codes.reshape(*scales.shape, BLOCK)
    return _ELEMENT.take(index)


def _steps(a: _Operand, b: _Operand, c: Array, fraction_bits: int, rounding: str) -> Array:
    """Chain all steps of one tile. `c` is finite and holds no -0, and so do all results."""
    # Terms that need no truncation are all multiples of one last place with a sum below 2^53 of it, so a
    # float64 dot product over the whole step is exact in any order of summation.
    sums = a.values @ b.values.transpose(0, 2, 1)
    tops = a.exponents[0][:, :, None] + b.exponents[0][:, None, :]
    for left, right in zip(a.exponents[1:], b.exponents[1:], strict=True):
        np.maximum(tops, left[:, :, None] + right[:, None, :], out=tops)
    floor = int(a.floors.min()) + int(b.floors.min())
    for index, top in enumerate(tops):
        c_exponent = _exponent(c)
        np.maximum(top, c_exponent, out=top)
        total = sums[index]
        if int(top.max()) - floor > fraction_bits - 8:  # T_g counts units of 2^(E_g - 8)
            total = _truncated_groups(a.values[index], b.values[index], top, fraction_bits)
        c = _rounded(total, c, c_exponent, top, fraction_bits, rounding)
    return c


def _stack(a: Array, a_bytes: Array, b: Array, b_bytes: Array, c: Array, fraction_bits: int, rounding: str) -> Array:
    """Compute a stack of steps, in batches that stay in a core's L2 cache. `c` is as for `_steps`."""
    d = np.empty(c.shape, np.float32)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (a, a_bytes, b, b_bytes, c, d)]
    batch = max(1, _TILE // (c.shape[-2] * c.shape[-1] * max(1, a_bytes.shape[-1] // 4)))
    for start in range(0, len(flat[0]), batch):
        codes, scales, right_codes, right_scales, addend, out = (x[start : start + batch] for x in flat)
        c_exponent = _exponent(addend)
        exponents, right_exponents = _EXPONENT[scales], _EXPONENT[right_scales]
        top = c_exponent
        for group in range(scales.shape[-1]):
            top = np.maximum(top, exponents[:, :, None, group] + right_exponents[:, None, :, group])
        left, right = (
            _values(x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])).reshape(x.shape)
            for x, y in ((codes, scales), (right_codes, right_scales))
        )
        total = _truncated_groups(left, right, top, fraction_bits)
        out[...] = _rounded(total, addend, c_exponent, top, fraction_bits, rounding)
    return d


def _rounded(total: Array, c: Array, c_exponent: Array, top: Array, fraction_bits: int, rounding: str) -> Array:
    """Add the truncated C to the sum of the truncated groups, which is overwritten, and round to float32."""
    addend = c.astype(np.float64)
    cut = top - c_exponent > fraction_bits - 23
    if cut.any():
        # + 0.0 turns -0 into +0: a dot product may be -0, and -0 + -0 would remain -0.
        addend[cut] = _truncate(addend[cut], top[cut], fraction_bits) + 0.0
    total += addend
    # FP32 subnormals need no care: a sum below 2^-126 is the (truncated) C alone, every other one is a
    # multiple of 2^(-12 - fraction_bits).
    if rounding == "toward_zero":
        bits = total.view(np.int64)
        bits &= -1 << 29  # the significand of FP32 is 29 bits shorter
    return total.astype(np.float32)


def _exponent(c: Array) -> Array:
    """Return expC (int16) of finite float32 values."""
    biased = (c.view(np.uint32) >> 23).astype(np.int16) & 0xFF
    return np.maximum(biased, 1) - np.int16(127)


def _truncated_groups(a: Array, b: Array, top: Array, fraction_bits: int) -> Array:
    """Return the sum of the truncated groups of steps: values (..., M, 16 G) and (..., N, 16 G) to (..., M, N)."""
    total = np.zeros(top.shape)
    for group in range(a.shape[-1] // BLOCK):
        lanes = slice(group * BLOCK, (group + 1) * BLOCK)
        total += _truncate(a[..., lanes] @ b[..., lanes].swapaxes(-1, -2), top, fraction_bits)
    return total


def _truncate(term: Array, top: Array, fraction_bits: int) -> Array:
    """Truncate toward zero to multiples of 2^(top - fraction_bits)."""
    shift = fraction_bits - top.astype(np.int64)
    up, down = ((1023 + exponent << 52).view(np.float64) for exponent in (shift, -shift))
    return np.trunc(term * up) * down


_EXACT_UNIT = 20  # every T_g * 2^(E_g - 8) is a multiple of 2^-20
_EXACT_BLOCKS = 32  # of at most 16 * (7 * 448)^2 each, below 2^53 units: exact in a float64 dot product
_EXACT_FLUSH = 1 << 10  # int64 holds the sum of this many chunks


def _exact(qa: QuantizedTensor, qb: QuantizedTensor, c: Array) -> Array:
    m, n = c.shape
    rows = max(1, (1 << 20) // n)
    low = np.zeros((m, n), np.int64)
    high = np.zeros((m, n), np.int64)
    for count, k in enumerate(range(0, qa.scales.shape[1], _EXACT_BLOCKS), start=1):
        blocks, lanes = slice(k, k + _EXACT_BLOCKS), slice(k * BLOCK, (k + _EXACT_BLOCKS) * BLOCK)
        left = _values(qa.codes[:, lanes], qa.scales[:, blocks]).reshape(m, -1)
        right = _values(qb.codes[:, lanes], qb.scales[:, blocks]).reshape(n, -1)
        left *= 2.0**_EXACT_UNIT
        for i in range(0, m, rows):
            low[i : i + rows] += (left[i : i + rows] @ right.T).astype(np.int64)
        if count % _EXACT_FLUSH == 0:
            high += low >> 32
            low &= 0xFFFFFFFF
    high += low >> 32
    low &= 0xFFFFFFFF
    scale = 2.0**-_EXACT_UNIT
    return _round_sum(high * (scale * 2.0**32), low * scale, c.astype(np.float64))


def _round_sum(x: Array, y: Array, z: Array) -> Array:
    """Return x + y + z, rounded once to nearest even in float32.

    The sum is first rounded to odd in float64, which keeps the last rounding right (Boldo and Melquiond,
    "Emulation of FMA and correctly rounded sums", 2008).
    """
    inner, inner_rest = _two_sum(y, z)
    outer, outer_rest = _two_sum(x, inner)
    rest, last = _two_sum(outer_rest, inner_rest)
    total, rest = _two_sum(outer, rest)
    # x + y + z = total + rest + last, and rest + last is less than a last place of total. Only its sign
    # matters, which rounding keeps.
    rest += last
    even = total.view(np.int64) & 1 == 0
    odd = np.nextafter(total, np.copysign(np.inf, rest))
    return np.where((rest != 0) & even, odd, total).astype(np.float32)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return float64(a + b) and its error, which is exact (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _finite(c: Array) -> Array:
    """Return `c` with +0 in place of NaN, infinity and -0."""
    return np.where(np.isfinite(c), c, np.float32(0)) + np.float32(0)


def _special(d: Array, a_scales: Array, b_scales: Array, c: Array) -> Array:
    """Overwrite what is not finite: a NaN scale or NaN C wins over an infinite C."""
    np.copyto(d, c, where=np.isinf(c))
    bits = d.view(np.uint32)
    bits[np.isnan(c)] = _NAN
    bits[(a_scales & SCALE_NAN == SCALE_NAN).any(axis=-1)] = _NAN
    bits.swapaxes(-1, -2)[(b_scales & SCALE_NAN == SCALE_NAN).any(axis=-1)] = _NAN
    return d


def _check_stack(codes: Tensor, scales: Tensor, names: tuple[str, str]) -> tuple[Array, Array]:
    """`check_blocks` of a stack: codes (..., rows, K) and scales (..., rows, K/16)."""
    stack, bytes_ = as_array(codes, names[0]), as_array(scales, names[1])
    if stack.ndim <= 2 or 0 in stack.shape:
        return check_blocks(stack, bytes_, names)
    if bytes_.shape[:-1] != stack.shape[:-1]:
        raise InputError(f"{names[1]} is {bytes_.shape} and {names[0]} {stack.shape}; all but the last must be equal")
    check_blocks(stack.reshape(-1, stack.shape[-1]), bytes_.reshape(-1, bytes_.shape[-1]), names)
    return stack, bytes_


def _check_c(c: Tensor, shape: tuple[int, ...]) -> Array:
    checked = as_array(c, "c")
    if checked.dtype != np.float32:
        raise InputError(f"c must be float32; got {checked.dtype}")
    if checked.shape != shape:
        raise InputError(f"c must be {shape}, rows of A by rows of B; got {checked.shape}")
    return checked


def _check_rounding(groups: int, fraction_bits: int, rounding: str) -> None:
    if rounding not in ROUNDINGS:
        raise InputError(f"rounding must be one of {', '.join(map(repr, ROUNDINGS))}; got {rounding!r}")
    largest = max_fraction_bits(groups)
    if not 1 <= _integer(fraction_bits, "fraction_bits") <= largest:
        raise InputError(f"fraction_bits must be 1 to {largest} for {groups} blocks per step; got {fraction_bits}")


def _integer(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be an integer; got {value!r}") from None

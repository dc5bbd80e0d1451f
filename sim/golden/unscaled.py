"""Steps without block scales: each product is aligned by itself. This is the `fp8` mode of a multi-precision core.

One step multiplies an M x K tile of A by an N x K tile of B, both K-major, and adds C. All elements of A have one type,
and so have all of B. The two types may differ. sA and sB are significands of elements in eighths, rA and rB their
exponents, with which value = s * 2^(r - 3). For every output::

    p_k = sA * sB * 2^(r_k - 6)                       r_k = rA + rB; a product is not normalised
    C   = sigC * 2^(expC - 23)                        expC >= -126
    q   = max(r_k of products that are not zero, expC if C is not zero) - fraction_bits
    D   = round(sum of all p_k and C, each truncated toward zero to a multiple of 2^q)

====  ========  =========  ====  =========  =============================
type  bits      s, at most bias  r          NaN, infinity
====  ========  =========  ====  =========  =============================
e4m3  7 to 0    15         7     -6 to 8    NaN 0x7F, 0xFF; no infinity
e5m2  7 to 0    14         15    -14 to 15  infinity 0x7C, 0xFC; NaN above
e2m3  5 to 0    15         1     0 to 2     none
e3m2  5 to 0    14         3     -2 to 4    none
e2m1  3 to 0    12         1     0 to 2     none
====  ========  =========  ====  =========  =============================

A code is one byte in every type. Shorter types have the low bits of it, and the bits above are ignored. Subnormal
elements have the lowest r and s below 8.

A product of zero takes no part, and neither does a C of zero. If no term is left the result is +0. So an exact zero is
+0, and a C of -0 with products of zero alone gives +0. Where all products are zero D is C, subnormals included, unless
`fraction_bits` is below 23 and cuts it.

A NaN element, a NaN C, infinity times zero, and infinities of both signs among the products of a step and C give
0x7FFFFFFF. Otherwise an infinite product or C gives infinity of its sign. Finite operands never give infinity: products
are below 2^32, and vanish beside a C that is near the end of FP32.

K = 32, 25 fraction bits and rounding toward zero are those of Blackwell's ``kind::f8f6f4``. For E4M3 and E5M2 MMA-Sim
(arXiv 2511.10909) and sf-tensor/tcgen05 say so independently. For E2M3, E3M2, E2M1 and unequal types sf-tensor/tcgen05
is the only source. docs/unscaled.md says what none of them has shown. `parts` has the same in pieces, in Python's
integers.

With scales there is one UE8M0 byte for each row and for each 32 elements along K, as in ``kind::mxf8f6f4``. eA and eB
are those of the scales, -127 to 127::

    p_k = sA * sB * 2^(r_k - 6)                       r_k = rA + rB + eA + eB

All else is as above. Only what was said of ends is not: results may be subnormal, and those of 2^128 and above are
infinite, whatever the rounding. What is zero after rounding is +0. The byte 255 is NaN, which gives 0x7FFFFFFF whatever
the elements are. The byte 127 is 1: a step with that byte alone is a step without scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .checks import ArgumentError, Array, Tensor, check_numbers, check_unsigned
from .element import E2M1, E2M3, E3M2, E4M3, E5M2, ElementFormat
from .fp32 import (
    MIN_EXPONENT,
    NAN,
    check_c,
    check_integer,
    check_rounding,
    check_stacks,
    exponents_of,
    narrowed,
    of_any_exponent,
    powers,
)
from .quantize import check_finite, found_scale

UNSCALED_ELEMENTS = {element.name.lower(): element for element in (E4M3, E5M2, E2M3, E3M2, E2M1)}
"""Element types of operands without block scales, by name."""

_ABSENT = np.int8(-64)  # exponent of an element that makes no term: with any other one, below those of all products
_LOWEST = np.int8(-28)  # exponent of a product
_TILE = 1 << 15  # outputs per tile: the working set stays in a core's L2 cache

SCALED_BLOCK = 32
"""Elements along K that share a scale, where there are scales."""
_ONE = 127  # the scale of 1
_NO_SCALE = 255  # the one that is NaN
# With scales exponents are int16.
_ABSENT_OF_ANY = np.int16(-1 << 10)
_LOWEST_OF_ANY = _LOWEST - np.int16(2 * _ONE)


_Elements = tuple[ElementFormat, ...]
"""Types of an operand. The codes of type i are counted from 256 i on."""


class _Way(NamedTuple):
    """How steps are computed."""

    a: _Elements
    b: _Elements
    k: int
    """Products of a step."""
    fraction_bits: int
    rounding: str
    scaled: bool
    """Whether blocks of the operands have scales."""


class _Operand(NamedTuple):
    """One operand of a step: an array for each k, of a shape that broadcasts to the outputs."""

    values: Array
    """Elements, float64, NaN and infinity among them."""
    exponents: Array
    """Their exponents, int8; `_ABSENT` for zero, NaN and infinity. With scales int16, and `_ABSENT_OF_ANY` or less."""


class _Stored(NamedTuple):
    """One operand as it is given."""

    codes: Array
    """(steps, rows, K)"""
    scales: Array | None
    """(steps, rows, blocks), if there are any."""

    def part(self, stack: slice, rows: slice, one: slice) -> tuple[Array, Array | None]:
        """Return codes of some steps, rows and elements, K first, and the scale of each of them."""
        codes = np.moveaxis(self.codes[stack, rows, one], -1, 0)
        if self.scales is None:
            return codes, None
        blocks = np.arange(self.codes.shape[-1])[one] // SCALED_BLOCK
        return codes, np.moveaxis(self.scales[stack, rows], -1, 0)[blocks]


def unscaled_step(
    a_codes: Tensor,
    b_codes: Tensor,
    c: Tensor,
    *,
    a: str | Sequence[str] = "e4m3",
    b: str | Sequence[str] = "e4m3",
    fraction_bits: int = 25,
    rounding: str = "toward_zero",
    a_scales: Tensor | None = None,
    b_scales: Tensor | None = None,
) -> npt.NDArray[np.float32]:
    """Compute one step without block scales, D = A B^T + C, or a stack of steps that know nothing of each other.

    With `a_scales` and `b_scales` it is a step with UE8M0 scales.

    Parameters
    ----------
    a_codes, b_codes : array or tensor of uint8, (..., M, K) and (..., N, K)
        Element codes, one in a byte. Any byte is valid: bits above those of the type are ignored. K is 32 on
        Blackwell, and may be any positive number here. Leading dimensions, which all arguments share, count the steps
        of a stack.
    c : array or tensor of float32, (..., M, N)
        Any bit pattern is valid.
    a, b : {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}
        Element types of the operands. Of a stack with one leading dimension also a list with the type of each step.
    fraction_bits : int
        Terms are truncated to multiples of 2^(largest exponent - fraction_bits). From 1 to
        `max_unscaled_fraction_bits`, which is 46 for K = 32.
    rounding : {"toward_zero", "nearest_even"}
        Rounding of the sum to FP32. The alignment of terms always truncates toward zero.
    a_scales, b_scales : array or tensor of uint8, (..., M, blocks) and (..., N, blocks), optional
        UE8M0 scales, one for each `SCALED_BLOCK` elements along K, the last of which may be fewer. Both or neither.

    Returns
    -------
    numpy.ndarray of float32, (..., M, N)
        In the units of C: scales of tensors are not applied.

    Raises
    ------
    ArgumentError
        Wrong type, shape or range, or an unknown name.
    """
    left, right = _check_codes(a_codes, "a_codes"), _check_codes(b_codes, "b_codes")
    check_stacks(left, right)
    start = check_c(c, (*left.shape[:-1], right.shape[-2]))
    scales = _check_scales(a_scales, b_scales, left, right)
    left, of_left = _typed(left, a, "a")
    right, of_right = _typed(right, b, "b")
    way = _way(of_left, of_right, left.shape[-1], fraction_bits, rounding, scales[0] is not None)
    return _chained(_Stored(left, scales[0]), _Stored(right, scales[1]), start, way)


def unscaled_gemm(
    a_codes: Tensor,
    b_codes: Tensor,
    c: Tensor | None = None,
    k_per_step: int = 32,
    *,
    a: str = "e4m3",
    b: str = "e4m3",
    fraction_bits: int = 25,
    rounding: str = "toward_zero",
    a_scales: Tensor | None = None,
    b_scales: Tensor | None = None,
) -> npt.NDArray[np.float32]:
    """Multiply two matrices of elements without block scales, D = A B^T + C: a chain of `unscaled_step`.

    Parameters
    ----------
    a_codes, b_codes : array or tensor of uint8, (M, K) and (N, K)
        As in `unscaled_step`. A stack of GEMMs has leading dimensions, which all arguments share.
    c : array or tensor of float32, (M, N), optional
        C of the first step. Zero if absent.
    k_per_step : int
        Products of one step. Step i takes C from step i - 1. The last one may have fewer, which is as if zeros filled
        it up.
    a, b, fraction_bits, rounding, a_scales, b_scales
        As in `unscaled_step`. Blocks are counted from the first element on, not from the first of a step.

    Returns
    -------
    numpy.ndarray of float32, (M, N)
        As in `unscaled_step`.

    Raises
    ------
    ArgumentError
        Wrong type, shape or range, or an unknown name.
    """
    left, right = _check_codes(a_codes, "a_codes"), _check_codes(b_codes, "b_codes")
    check_stacks(left, right)
    shape = (*left.shape[:-1], right.shape[-2])
    start = np.zeros(shape, np.float32) if c is None else check_c(c, shape)
    scales = _check_scales(a_scales, b_scales, left, right)
    types, products = ((_element(a, "a"),), (_element(b, "b"),)), _products(k_per_step, "k_per_step")
    way = _way(*types, products, fraction_bits, rounding, scales[0] is not None)
    return _chained(_Stored(left, scales[0]), _Stored(right, scales[1]), start, way)


def quantize_unscaled(x: Tensor, element: str = "e4m3") -> tuple[npt.NDArray[np.uint8], np.float32]:
    """Quantise a tensor to elements without block scales, under one scale for the tensor.

    The tensor scale is float32(max|x| / the largest element): the largest number of a tensor becomes the largest
    element. Elements are rounded to nearest, ties to the even code. This is common practice for FP8, per tensor.

    Parameters
    ----------
    x : array or tensor of numbers
        Of any shape.
    element : {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}
        Type of the elements.

    Returns
    -------
    codes : numpy.ndarray of uint8
        Of the shape of `x`.
    tensor_scale : numpy.float32
        What a value is to be multiplied by, outside the core; 1 for a tensor of zeros.

    Raises
    ------
    ArgumentError
        Wrong type, an unknown name, an empty tensor, a NaN or infinity (the first is named), or a tensor scale beyond
        the float32 range.
    """
    kind, tensor = _element(element, "element"), check_numbers(x, "x")
    if not tensor.size:
        raise ArgumentError(f"x must have elements; got {tensor.shape}")
    check_finite(tensor)
    scale = found_scale(max(float(tensor.max()), -float(tensor.min())), kind.largest)
    return kind.encode(tensor.astype(np.float64) / float(scale)), scale


def max_unscaled_fraction_bits(k: int, a: str = "e4m3", b: str = "e4m3") -> int:
    """Return the largest `fraction_bits` that the model supports for steps of `k` products of two types.

    Up to it, the sum of all truncated terms is an integer of at most 2^53 in units of 2^q, hence exact in float64.

    Raises
    ------
    ArgumentError
        Unknown types, or `k` is not positive.
    """
    return _max_fraction_bits(_products(k, "k"), (_element(a, "a"),), (_element(b, "b"),))


def _max_fraction_bits(k: int, a: _Elements, b: _Elements) -> int:
    # With F fraction bits a product is at most sA * sB * 2^(F - 6) units of 2^q, and C below 2^(F + 1).
    largest = k
    for elements in (a, b):
        largest *= max(max(map(abs, each.significands)) << 3 - each.mantissa_bits for each in elements)
    return ((1 << 53 + 6) // (largest + (1 << 1 + 6))).bit_length() - 1


@lru_cache(maxsize=1 << len(UNSCALED_ELEMENTS))
def _tables(elements: _Elements) -> tuple[Array, Array]:
    """Return values (float64) and exponents (int8; `_ABSENT` for zero, NaN and infinity) by byte, type after type."""
    values, exponents = [], []
    for element in elements:
        codes = np.arange(256) & (1 << element.width) - 1
        own = element.table[codes]
        values.append(own)
        exponents.append(np.where(np.isfinite(own) & (own != 0), element.exponents[codes], _ABSENT).astype(np.int8))
    return np.concatenate(values), np.concatenate(exponents)


def _chained(a: _Stored, b: _Stored, c: Array, way: _Way) -> Array:
    """Chain the steps of every GEMM of a stack, tile by tile."""
    d = np.empty(c.shape, np.float32)
    left, right = (_Stored(_flat(codes), None if scales is None else _flat(scales)) for codes, scales in (a, b))
    start, out = _flat(c), _flat(d)
    # Infinity times zero and infinities of both signs are NaN, which is what the contract says, too.
    with np.errstate(invalid="ignore"):
        for stack, rows, cols in _tiles(out.shape):
            tile = start[stack, rows, cols]
            for k in range(0, left.codes.shape[-1], way.k):
                one = slice(k, k + way.k)
                x, y = _a(left.part(stack, rows, one), way), _b(right.part(stack, cols, one), way)
                tile = _step(x, y, tile, way)
            out[stack, rows, cols] = tile
    return d


def _flat(stack: Array) -> Array:
    """Return a stack of matrices with one leading dimension."""
    return stack.reshape(-1, *stack.shape[-2:])


def _tiles(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice, slice]]:
    """Cut a stack of outputs, (steps, M, N), into parts of `_TILE` and fewer."""
    count, m, n = shape
    cols = min(n, max(_TILE // m, 512))
    rows = min(m, _TILE // cols)
    batch = max(1, _TILE // (rows * cols))
    for stack in range(0, count, batch):
        for i in range(0, m, rows):
            for j in range(0, n, cols):
                yield slice(stack, stack + batch), slice(i, i + rows), slice(j, j + cols)


def _a(part: tuple[Array, Array | None], way: _Way) -> _Operand:
    codes, scales = part
    return _operand(codes[..., :, None], None if scales is None else scales[..., :, None], way.a)


def _b(part: tuple[Array, Array | None], way: _Way) -> _Operand:
    codes, scales = part
    return _operand(codes[..., None, :], None if scales is None else scales[..., None, :], way.b)


def _operand(codes: Array, scales: Array | None, elements: _Elements) -> _Operand:
    values, exponents = _tables(elements)
    along = np.ascontiguousarray(codes)
    if scales is None:
        return _Operand(values[along], exponents[along])
    wide = np.where(exponents == _ABSENT, _ABSENT_OF_ANY, exponents)
    own = scales.astype(np.int16) - np.int16(_ONE)
    factors = np.where(scales == _NO_SCALE, np.nan, np.ldexp(1.0, own))
    return _Operand(values[along] * factors, wide[along] + own)


def _step(a: _Operand, b: _Operand, c: Array, way: _Way) -> Array:
    """Compute steps: operands (K, steps, M, 1) and (K, steps, 1, N) and C (steps, M, N) to D."""
    # Without scales a C of zero has an exponent, below those of all products: it says nothing. One that is no number
    # says what is of no consequence.
    c_exponents = exponents_of(c)
    if way.scaled:
        c_exponents = np.where(c == 0, _ABSENT_OF_ANY, c_exponents)
    up, down = powers(way.fraction_bits - np.maximum(_tops(a.exponents, b.exponents, way), c_exponents))
    # + 0.0 turns -0 into +0, which a sum of zeros of any sign then remains.
    total = np.trunc(c.astype(np.float64) * up) + 0.0
    product = np.empty_like(total)
    for x, y in zip(a.values, b.values, strict=True):
        np.multiply(x, y, out=product)
        product *= up
        np.trunc(product, out=product)
        total += product
    total *= down
    # Without scales sums below 2^-126 are C alone: with products they are multiples of 2^(_LOWEST - fraction_bits).
    d = of_any_exponent(total, way.rounding) if way.scaled else narrowed(total, way.rounding)
    d.view(np.uint32)[np.isnan(d)] = NAN
    return d


def _tops(a: Array, b: Array, way: _Way) -> Array:
    """Return the largest exponent of the products of every output that are not zero; without any, the lowest expC."""
    top = a[0] + b[0]
    exponent = np.empty_like(top)
    for x, y in zip(a[1:], b[1:], strict=True):
        np.add(x, y, out=exponent)
        np.maximum(top, exponent, out=top)
    return np.where(top < (_LOWEST_OF_ANY if way.scaled else _LOWEST), top.dtype.type(MIN_EXPONENT), top)


def _check_codes(codes: Tensor, name: str) -> Array:
    checked = check_unsigned(codes, name)
    if checked.ndim < 2 or 0 in checked.shape:
        raise ArgumentError(f"{name} must be (..., rows, K), all positive; got {checked.shape}")
    return checked


def _check_scales(a: Tensor | None, b: Tensor | None, left: Array, right: Array) -> tuple[Array | None, Array | None]:
    """Return the scales of both operands, whose codes these are, as arrays; or none."""
    if a is None and b is None:
        return None, None
    found = []
    for scales, codes, name in ((a, left, "a_scales"), (b, right, "b_scales")):
        if scales is None:
            raise ArgumentError(f"{name} is missing; give scales of both operands, or of neither")
        checked, shape = check_unsigned(scales, name), (*codes.shape[:-1], -(-codes.shape[-1] // SCALED_BLOCK))
        if checked.shape != shape:
            raise ArgumentError(f"{name} must be {shape}, one for {SCALED_BLOCK} elements; got {checked.shape}")
        found.append(checked)
    return found[0], found[1]


def _element(name: object, argument: str) -> ElementFormat:
    if not isinstance(name, str) or name not in UNSCALED_ELEMENTS:
        raise ArgumentError(f"{argument} must be one of {', '.join(map(repr, UNSCALED_ELEMENTS))}; got {name!r}")
    return UNSCALED_ELEMENTS[name]


def _typed(codes: Array, types: str | Sequence[str], argument: str) -> tuple[Array, _Elements]:
    """Return the codes of an operand as `_Elements` says, and its types."""
    if not isinstance(types, list | tuple) or codes.ndim != 3:
        return codes, (_element(types, argument),)
    if len(types) != len(codes):
        raise ArgumentError(f"{argument} must have one type for each of {len(codes)} steps; got {len(types)}")
    for name in types:
        _element(name, argument)
    own = [name for name in UNSCALED_ELEMENTS if name in types]
    first = {name: np.uint16(256 * index) for index, name in enumerate(own)}
    places = np.array([first[name] for name in types], np.uint16)
    return codes + places[:, None, None], tuple(UNSCALED_ELEMENTS[name] for name in own)


def _products(k: int, name: str) -> int:
    count = check_integer(k, name)
    if count < 1:
        raise ArgumentError(f"{name} must be at least 1; got {count}")
    return count


def _way(a: _Elements, b: _Elements, k: int, fraction_bits: int, rounding: str, scaled: bool) -> _Way:
    check_rounding(rounding)
    largest = _max_fraction_bits(k, a, b)
    if not 1 <= check_integer(fraction_bits, "fraction_bits") <= largest:
        raise ArgumentError(f"fraction_bits must be 1 to {largest} for {k} products per step; got {fraction_bits}")
    return _Way(a, b, k, fraction_bits, rounding, scaled)

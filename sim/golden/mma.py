"""What a tensor core step, and a GEMM made of such steps, must compute: bit for bit.

One step multiplies an M x 16G tile of A by an N x 16G tile of B, both K-major, and adds C. For every output,
with h an element in half-units (value = h * 2^(fold - 1); other units are below), sig the significand of a block scale
in eighths (0 to 15; of E8M0 1), exp its exponent (UE4M3: -6 to 8, UE5M3: -14 to 16, E8M0: -127 to 127) and fold that
of the block's elements::

    S_g = sum over 16 lanes of hA * hB
    T_g = S_g * sigA * sigB
    E_g = expA + expB + foldA + foldB                 value = T_g * 2^(E_g - 8)
    C   = sigC * 2^(expC - 23)                        expC >= -126; zero has -126
    emax = max(expC, E_0 .. E_{G-1})                  blocks with a zero scale take no part
    D = round(sum of all terms, each truncated toward zero to a multiple of 2^(emax - fraction_bits))

==========  ===================  =====
elements    h, magnitudes        fold
==========  ===================  =====
E2M1        0 1 2 3 4 6 8 12     0
E1M2, INT4  0 1 2 3 4 5 6 7      1
==========  ===================  =====

Longer elements have integers with more bits behind the point, value = h * 2^(fold - point), and a fold of 0: E2M3 in
eighths (point 3), E3M2 in sixteenths (point 4), INT8 in 64ths (point 6), E4M3 in units of 2^-9, E5M2 in units of
2^-16, FP16 in units of 2^-24. So E_g has no share of the elements in it.

A block is 16 lanes but where the format says otherwise, and its value T_g * 2^(E_g - u), with u both points and the
mantissa bits of both scales. A format may multiply the significand of a scale by a factor, in which IF4's kinds of
elements differ: 7 and 6, in eighths, so u has three more bits for each such operand (see `BlockFormat`). A format may
also add up a block in parts, which are groups with one scale then. Where sub-groups are shifted (HiF4), the integer of
an element is h * 2^s, s the number of its sub-groups whose bit is set. Where both formats have a window F_w, products
are cut before they are added; those of FP16 are, whatever the other operand is. With r_k the exponent of product k, the
sum of those of its elements (E4M3: -6 to 8 each, subnormals -6; E5M2 and FP16: -14 to 15, subnormals -14; integers that
of the largest, INT4: 2)::

    r   = max(r_k of products that are not zero), the lowest there is if there are none
    S_g = sum over all lanes of the products, each truncated toward zero to a multiple of 2^(r - F_w), in that unit
    E_g = expA + expB + r                             value = T_g * 2^(E_g - F_w)

Where both formats are additive (L-Mul), a product is what `golden.additive` says: its value, its exponent r_k, which is
that after the carry, and its significand of 3 bits behind the point. The lowest r is then that of an exponent field of
0: -14 for E4M3. All else is as above.

So C has no say in what a product loses. In Blackwell's ``kind::mxf8f6f4`` it has: there the products of a step and C
are cut in one window of 25 bits (arXiv 2511.10909).

A NaN scale, a NaN C, or a NaN among the elements of a row gives 0x7FFFFFFF, whatever that element is multiplied by;
otherwise an infinite C passes through. Elements may be infinite, too (E5M2, FP16). Infinity times zero gives
0x7FFFFFFF, and so do infinities of both signs among the products of a step and C, in whichever lanes and groups they
are. Elements count here, not their scales. Otherwise an infinite product gives infinity of its sign. The next step of a
GEMM takes that as its C, as it takes a sum that was beyond FP32.

With E8M0 scales sums have exponents far beyond those of FP32. Then 2^128 and above is infinite, whatever the rounding,
and results below 2^-126 are subnormal: they are rounded to a multiple of 2^-149. C = 0 has exponent -126, so terms are
never kept below 2^(-126 - fraction_bits). What is zero after rounding is +0, as an exact zero is.

The contract has a version, `CONTRACT`, and one point that hardware has not decided: whether a block whose sum S_g is
zero takes part in emax (see `EMPTY_BLOCKS`). C = 0 always takes part, with exponent -126. `parts` has the same in
pieces, in Python's integers.

Four groups of 16, 35 fraction bits and rounding toward zero are what MMA-Sim (arXiv 2511.10909) found,
bitwise validated, for NVFP4 on Blackwell (``kind::mxf4nvf4``, K = 64). The tag is MixFP4 (arXiv 2605.31035).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import additive
from .block import BlockFormat
from .catalogue import block_format
from .checks import ArgumentError, Array, Tensor, as_array
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
    truncate,
)
from .quantize import QuantizedTensor
from .window import common_window, cut_sums

CONTRACT = "mma-sim-2026-01"
"""Version of the contract: what MMA-Sim's model of January 2026 says of ``kind::mxf4nvf4``."""
NUMERICS = ("blackwell", "exact")
"""Names of the accumulation modes of `gemm`."""
EMPTY_BLOCKS = ("included", "excluded")
"""What a block with S_g = 0 does: it takes part in emax with its E_g, as in `CONTRACT`; or it takes no part."""

_NO_PART = -(1 << 12)  # exponent of a zero scale: with any other, and any fold, below that of every C
_TILE = 1 << 15  # outputs per tile: the float64 working set stays in a core's L2 cache
_OPERAND_CHUNK = 1 << 20  # operand elements decoded at a time, to bound memory
_NEVER_CUT = 1 << 10
_NOTHING = np.empty((0, 0, 0))


class _Tables(NamedTuple):
    """What the arithmetic needs of one format, by scale byte."""

    name: str
    """Name of the format."""
    width: int
    """Bits of an element code, its shift among them."""
    block: int
    """Elements of a group: a block, or one of its sums."""
    products: Array
    """Element value times block scale and factor, float64, at index 2^width * scale byte + code; 0 under NaN scales.

    Codes and scale bytes are those that `BlockFormat.spread` returns.
    """
    elements: Array
    """Element value alone, at the same index; its sign alone where codes are added."""
    element_exponents: Array
    """Exponents of elements, int16, at the same index, or fields of codes that are added; empty where none is."""
    scales: Array
    """Block scale times factor, float64; 0 for NaN."""
    exponents: Array
    """exp + fold, int16."""
    floors: Array
    """exp + fold where the block can have a non-zero sum, otherwise too large to ask for truncation; int16."""
    nans: Array
    """Whether the scale is NaN."""
    element_nans: Array | None
    """Whether the element is, at the same index as `products`; None if none can be."""
    infinities: Array | None
    """Sign of an infinite element, 0 of others, float64 at the same index; None if none can be."""


@lru_cache(maxsize=64)
def _tables(form: BlockFormat) -> _Tables:
    scales = form.all_scales
    codes = form.scale_codes(scales)
    values = form.scale.table[codes]
    folds = np.array([element.fold for element in form.elements])[form.selected(scales)]
    numbers = np.nan_to_num(values, nan=0.0) * form.weights[form.selected(scales)]
    exponents = [form.scale.exponent(int(c)) if v else _NO_PART for c, v in zip(codes, numbers, strict=True)]
    raised = (np.array(exponents) + folds).astype(np.int16)
    tables = form.element_tables[form.selected(scales)]
    elements, nans = np.where(np.isfinite(tables), tables, 0.0), np.isnan(tables)
    infinities = np.where(np.isinf(tables), np.sign(tables), 0.0)
    alone, own = elements, _NOTHING
    if len(form.elements) == 1 and not form.shifts:
        own = np.tile(form.elements[0].exponents, len(scales))
    if form.additive:
        alone, own = (np.tile(of(form.elements[0]), len(scales)) for of in (additive.signs, additive.fields))
    return _Tables(
        form.name,
        form.spread_width,
        form.lanes,
        (elements * numbers[:, None]).ravel(),
        alone.ravel(),
        own.ravel(),
        numbers,
        raised,
        np.where(numbers > 0, raised, np.int16(_NEVER_CUT)),
        np.isnan(values),
        nans.ravel() if nans.any() else None,
        infinities.ravel() if infinities.any() else None,
    )


class _Pair(NamedTuple):
    """What follows for the terms of two formats."""

    unit: int
    """value = T_g * 2^(E_g - unit)."""
    largest: int
    """Largest |T_g|."""
    lowest: int
    """Lowest E_g of a T_g that is not zero."""
    top: float
    """Largest |T_g| * 2^(E_g - unit)."""
    window: int | None
    """The F_w that products are cut by; None if they are not."""
    lowest_product: int
    """Lowest exponent of a product, where they are."""
    folds: int
    """Of both elements, where they are: exponents of products include them."""
    added: int | None
    """Bits of the mantissa where codes are added in the place of products; None elsewhere."""
    wide: bool
    """Whether sums with terms in them may be subnormal, or infinite."""
    infinite: bool
    """Whether elements may be infinite."""


@lru_cache(maxsize=256)
def _pair(a: BlockFormat, b: BlockFormat) -> _Pair:
    if a.block != b.block:
        raise ArgumentError(f"a has blocks of {a.block} and b of {b.block}; they must be equal")
    if a.sums != b.sums:
        raise ArgumentError(f"a adds up blocks in {a.sums} sums and b in {b.sums}; they must be equal")
    unit, largest, lowest, top = 0, a.lanes, 0, float(a.lanes)
    for form in (a, b):
        unit += form.point + form.scale.mantissa_bits + form.factor_bits
        kinds = zip(form.elements, form.factors or (1,) * len(form.elements), strict=True)
        largest *= max(abs(h) * factor for element, factor in kinds for h in element.integers) << len(form.shifts)
        largest *= (2 << form.scale.mantissa_bits) - 1
        lowest += int(_tables(form).floors.min())
        top *= float(np.abs(_tables(form).products).max())
    window, lowest_product, folds, added = common_window(a, b), 0, 0, None
    if a.additive != b.additive or (a.additive and a.elements != b.elements):
        raise ArgumentError(f"a = {a.name!r} with b = {b.name!r}: codes are added of two formats of the same elements")
    if window is not None:
        (left,), (right,) = a.elements, b.elements
        product = max(map(abs, left.significands)) * max(map(abs, right.significands))
        behind = left.mantissa_bits + right.mantissa_bits
        lowest_product = int(left.exponents.min()) + int(right.exponents.min())
        if a.additive:
            added = behind = left.mantissa_bits
            product, lowest_product = (2 << added) - 1, additive.lowest_exponent(left)
            top *= 2.0  # no product is as much as twice the exact one of large numbers
        unit, largest = window, a.lanes * product << window - behind
        for form in (a, b):
            largest *= max(form.factors, default=1) * ((2 << form.scale.mantissa_bits) - 1)
            unit += form.scale.mantissa_bits + form.factor_bits
        folds = left.fold + right.fold
        lowest += lowest_product - folds
    infinite = any(_tables(form).infinities is not None for form in (a, b))
    pair = _Pair(unit, largest, lowest, top, window, lowest_product, folds, added, False, infinite)
    bits = _max_fraction_bits(pair, 1)
    if bits < 1:
        raise ArgumentError(
            f"a = {a.name!r} with b = {b.name!r}: their products are beyond what this model adds exactly"
        )
    # Else a sum with products in it is normal, and products vanish beside a C that could overflow.
    return pair._replace(wide=lowest - bits < MIN_EXPONENT or top > 2.0**74)


class _Way(NamedTuple):
    """How a step is computed."""

    pair: _Pair
    groups: int
    fraction_bits: int
    rounding: str
    excluded: bool
    """Whether empty blocks are."""


def step(
    a_codes: Tensor,
    a_scales: Tensor,
    b_codes: Tensor,
    b_scales: Tensor,
    c: Tensor,
    *,
    a: str | BlockFormat = "mixfp4",
    b: str | BlockFormat = "mixfp4",
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
    empty_blocks: str = "included",
) -> npt.NDArray[np.float32]:
    """Compute one step of the tensor core, D = A B^T + C, or a stack of steps that know nothing of each other.

    Parameters
    ----------
    a_codes, b_codes : array or tensor of uint8, (..., M, block G) and (..., N, block G)
        Element codes, with 4 bits 0 to 15; uint16 of FP16. Leading dimensions, which all arguments share, count the
        steps of a stack.
    a_scales, b_scales : array or tensor of uint8, (..., M, G) and (..., N, G)
        Block scales; uint16 in formats whose scales take two bytes. Any byte is valid; bits without a meaning in a
        format are ignored.
    c : array or tensor of float32, (..., M, N)
        Any bit pattern is valid.
    a, b : str or BlockFormat
        Formats of the operands, by name or as records. An NVFP4 tensor, whose scales have bit 7 clear, is a valid
        MixFP4 tensor, with equal results.
    fraction_bits : int
        Terms are truncated to multiples of 2^(emax - fraction_bits). From 1 to `max_fraction_bits` of G,
        which is 40 for G = 4 and MixFP4.
    rounding : {"toward_zero", "nearest_even"}
        Rounding of the sum to FP32. The alignment of terms always truncates toward zero.
    empty_blocks : {"included", "excluded"}
        Whether a block whose sum S_g is zero takes part in emax. "included": it does, by its scales. "excluded": it
        does not. A zero C takes part in both, with exponent -126, so emax is never below -126. Hardware has not
        decided between the two: no claim of bit equality with a machine covers steps with such blocks.

    Returns
    -------
    numpy.ndarray of float32, (..., M, N)
        In the units of C: tensor scales are not applied.

    Raises
    ------
    ArgumentError
        Wrong type, shape or range, or an unknown rounding.

    Notes
    -----
    But with scales such as E8M0, products are far below the last place of the largest FP32 number, so only an infinite
    C gives infinity.
    """
    a_form, b_form = block_format(a, "a"), block_format(b, "b")
    pair = _pair(a_form, b_form)
    a_stack, a_bytes = _check_stack(a_form, a_codes, a_scales, ("a_codes", "a_scales"))
    b_stack, b_bytes = _check_stack(b_form, b_codes, b_scales, ("b_codes", "b_scales"))
    check_stacks(a_stack, b_stack)
    start = check_c(c, (*a_stack.shape[:-1], b_stack.shape[-2]))
    stored = _stored(a_form, a_stack, a_bytes), _stored(b_form, b_stack, b_bytes)
    groups = stored[0].scales.shape[-1]
    way = _way(pair, groups, fraction_bits, rounding, empty_blocks)
    compute = _blackwell if a_stack.ndim == 2 else _stack
    return _special(compute(*stored, _computed(start, pair), way), *stored, start, pair)


def accumulate(
    qa: QuantizedTensor,
    qb: QuantizedTensor,
    c: Tensor | None = None,
    blocks_per_step: int = 4,
    numerics: str = "blackwell",
    *,
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
    empty_blocks: str = "included",
) -> npt.NDArray[np.float32]:
    """Compute a GEMM in the core's units: what the hardware puts out, before tensor scales.

    Parameters and errors are those of `gemm`.

    Returns
    -------
    numpy.ndarray of float32, (M, N)
    """
    for name, q in (("qa", qa), ("qb", qb)):
        if not isinstance(q, QuantizedTensor):
            kind = f"{type(q).__module__}.{type(q).__qualname__}"  # there may be two copies of this package
            raise ArgumentError(f"{name} must be a {QuantizedTensor.__module__}.QuantizedTensor; got {kind}")
    if qa.shape[1] != qb.shape[1]:
        raise ArgumentError(f"qa has K = {qa.shape[1]} and qb K = {qb.shape[1]}; they must be equal")
    if numerics not in NUMERICS:
        raise ArgumentError(f"numerics must be one of {', '.join(map(repr, NUMERICS))}; got {numerics!r}")
    groups = check_integer(blocks_per_step, "blocks_per_step")
    if groups < 1:
        raise ArgumentError(f"blocks_per_step must be at least 1; got {groups}")
    pair = _pair(qa.form, qb.form)
    exact = numerics == "exact"
    if exact and pair.window is not None:
        raise ArgumentError(
            f"numerics 'exact': products of {qa.format} and {qb.format} are cut to a window; use 'blackwell'"
        )
    if exact and pair.infinite:
        raise ArgumentError(
            f"numerics 'exact': elements of {qa.format} or {qb.format} may be infinite; use 'blackwell'"
        )
    sums = qa.form.sums
    way = _way(pair, groups * sums, 1 if exact else fraction_bits, rounding, empty_blocks)
    shape = (qa.shape[0], qb.shape[0])
    start = np.zeros(shape, np.float32) if c is None else check_c(c, shape)
    left, right = (_stored(q.form, q.codes, q.scales) for q in (qa, qb))
    compute = _exact if exact else _blackwell
    return _special(compute(left, right, _computed(start, pair), way), left, right, start, pair)


def gemm(
    qa: QuantizedTensor,
    qb: QuantizedTensor,
    c: Tensor | None = None,
    blocks_per_step: int = 4,
    numerics: str = "blackwell",
    *,
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
    empty_blocks: str = "included",
) -> npt.NDArray[np.float32]:
    """Multiply two quantised matrices, D = A B^T + C, with the rounding of the hardware.

    Parameters
    ----------
    qa, qb : QuantizedTensor, (M, K) and (N, K)
        Each says its own format; they may differ.
    c : array or tensor of float32, (M, N), optional
        C of the first step, in the core's units: tensor scales apply to it as to the products. Zero if
        absent.
    blocks_per_step : int
        G, the blocks that one step takes. Step i takes C from step i - 1; the last one is padded with
        zero blocks (scale 0x00, codes 0).
    numerics : {"blackwell", "exact"}
        "blackwell" is a chain of `step`. "exact" adds every T_g * 2^(E_g - 8) of the whole GEMM and `c`
        without error and rounds once to nearest even, so that order does not matter; `blocks_per_step`,
        `fraction_bits`, `rounding` and `empty_blocks` then have no effect.
    fraction_bits, rounding, empty_blocks
        As in `step`.

    Returns
    -------
    numpy.ndarray of float32, (M, N)
        float32(float64(D) * (scale of A * scale of B)), D from `accumulate`; the scales are tensor scales, see
        `QuantizedTensor.core_scale`.

    Raises
    ------
    ArgumentError
        Not quantised tensors, K differs, or wrong type, shape or range of another argument.
    """
    d = accumulate(
        qa,
        qb,
        c,
        blocks_per_step,
        numerics,
        fraction_bits=fraction_bits,
        rounding=rounding,
        empty_blocks=empty_blocks,
    )
    with np.errstate(over="ignore", under="ignore"):
        result = (d.astype(np.float64) * (qa.core_scale * qb.core_scale)).astype(np.float32)
    result.view(np.uint32)[np.isnan(result)] = NAN  # conversions need not keep a NaN's bits
    return result


def max_fraction_bits(groups: int, a: str | BlockFormat = "mixfp4", b: str | BlockFormat = "mixfp4") -> int:
    """Return the largest `fraction_bits` that the model supports for steps of `groups` blocks of two formats.

    Up to it, the sum of all truncated terms is an integer below 2^53 in units of their last place, hence
    exact in float64.

    Raises
    ------
    ArgumentError
        Unknown formats, or formats that the model cannot multiply.
    """
    left = block_format(a, "a")
    return _max_fraction_bits(_pair(left, block_format(b, "b")), groups * left.sums)


@lru_cache(maxsize=256)
def _max_fraction_bits(pair: _Pair, groups: int) -> int:
    bits = 0
    while groups * (pair.largest << (bits + 1)) + (1 << (bits + 2 + pair.unit)) <= 1 << 53 + pair.unit:
        bits += 1
    return bits


class _Stored(NamedTuple):
    """One operand as it is stored, but for the bits of shifts, which stand above the codes."""

    codes: Array
    """uint8 or uint16 (..., rows, K)."""
    scales: Array
    """uint8 (..., rows, groups)."""
    tables: _Tables

    def along(self, blocks: slice) -> _Stored:
        """Return some blocks of a matrix."""
        lanes = slice(blocks.start * self.tables.block, blocks.stop * self.tables.block)
        return _Stored(self.codes[:, lanes], self.scales[:, blocks], self.tables)

    def look_up(self, table: Array) -> Array:
        """Return a table of `_Tables`, by scale byte and code, for every element: (..., rows, blocks, block)."""
        blocks = self.codes.reshape(*self.scales.shape, self.tables.block)
        return table.take(self.scales.astype(np.intp)[..., None] << self.tables.width | blocks)

    @property
    def nan_rows(self) -> Array:
        """Whether a scale or an element of a row is NaN, (..., rows)."""
        found = np.asarray(self.tables.nans[self.scales].any(axis=-1))
        if self.tables.element_nans is not None:
            found = found | np.asarray(self.look_up(self.tables.element_nans).any(axis=(-2, -1)))
        return found


def _stored(form: BlockFormat, codes: Array, scales: Array) -> _Stored:
    spread, alone = form.spread(codes, scales)
    return _Stored(spread, np.repeat(alone, form.sums, axis=-1), _tables(form))


class _Operand(NamedTuple):
    """One operand, decoded for a number of steps."""

    values: Array
    """Element times block scale, float64 (steps, rows, 16 G)."""
    exponents: Array
    """exp + fold, int16 (G, steps, rows)."""
    elements: Array
    """Element alone, or its sign where codes are added, float64 (steps, rows, 16 G).

    Empty where nothing needs it: without a window, and where empty blocks are included.
    """
    scales: Array
    """Block scales, float64 (G, steps, rows); empty as `elements` is."""
    own: Array
    """Exponents of the elements, or fields of their codes, int16 (steps, rows, 16 G); empty without a window."""
    infinities: Array
    """Signs of infinite elements, 0 of others, float64 (steps, rows, 16 G); empty where no element may be."""
    signs: Array
    """Signs of all elements, of the same shape."""

    def part(self, rows: slice) -> _Operand:
        return _Operand(
            self.values[:, rows],
            self.exponents[:, :, rows],
            self.elements[:, rows],
            self.scales[:, :, rows],
            self.own[:, rows],
            self.infinities[:, rows],
            self.signs[:, rows],
        )

    def step(self, index: int) -> _Operand:
        one = slice(index, index + 1)
        return _Operand(
            self.values[one],
            self.exponents[:, one],
            self.elements[one],
            self.scales[:, one],
            self.own[one],
            self.infinities[one],
            self.signs[one],
        )


def _operand(stored: _Stored, way: _Way, cut: bool) -> _Operand:
    """Decode a stack of steps; or a matrix, which is cut into steps along K."""

    def by_step(x: Array) -> Array:
        return x.reshape(len(x), scales.shape[-1] // way.groups, -1).transpose(1, 0, 2) if cut else x

    codes, scales, tables = stored
    by_group = (2, 0, 1)
    exponents = by_step(tables.exponents[scales]).transpose(by_group)
    if cut:  # for many tiles
        exponents = np.ascontiguousarray(exponents)
    elements = alone = own = infinities = signs = _NOTHING
    if way.pair.window is not None:
        own = by_step(stored.look_up(tables.element_exponents).reshape(codes.shape))
    if way.excluded or way.pair.window is not None:
        elements = by_step(stored.look_up(tables.elements).reshape(codes.shape))
        alone = by_step(tables.scales[scales]).transpose(by_group)
    if way.pair.infinite:
        signs = np.sign(by_step(stored.look_up(tables.elements).reshape(codes.shape)))
        infinities = np.zeros_like(signs)
        if tables.infinities is not None:
            infinities = by_step(stored.look_up(tables.infinities).reshape(codes.shape))
        signs = signs + infinities
    return _Operand(
        by_step(stored.look_up(tables.products).reshape(codes.shape)),
        exponents,
        elements,
        alone,
        own,
        infinities,
        signs,
    )


def _blackwell(a: _Stored, b: _Stored, c: Array, way: _Way) -> Array:
    """Chain the steps of a GEMM. `c` holds no -0, and so do all results; finite unless elements may not be."""
    m, n = c.shape
    rows = min(m, 64)
    cols = min(n, max(1, _TILE // rows))
    rows = min(m, max(1, _TILE // cols))
    batch = max(1, _OPERAND_CHUNK // ((m + n) * way.groups * a.tables.block)) * way.groups
    d = c.copy()
    for k in range(0, a.scales.shape[1], batch):
        parts = [_padded(x.along(slice(k, k + batch)), way.groups) for x in (a, b)]
        left, right = (_operand(x, way, cut=True) for x in parts)
        floors, right_floors = (x.tables.floors[x.scales].min(axis=1) for x in parts)
        for i in range(0, m, rows):
            for j in range(0, n, cols):
                at = slice(i, i + rows), slice(j, j + cols)
                floor = int(floors[at[0]].min()) + int(right_floors[at[1]].min())
                d[at] = _steps(left.part(at[0]), right.part(at[1]), d[at], floor, way)
    return d


def _padded(stored: _Stored, groups: int) -> _Stored:
    """Fill the last step with zero blocks."""
    codes, scales, tables = stored
    padding = -scales.shape[1] % groups
    if not padding:
        return stored
    codes, scales = (np.pad(x, ((0, 0), (0, n))) for x, n in ((codes, padding * tables.block), (scales, padding)))
    return _Stored(codes, scales, tables)


def _steps(a: _Operand, b: _Operand, c: Array, floor: int, way: _Way) -> Array:
    """Chain all steps of one tile. `floor` is no larger than any E_g of a term that is not zero."""
    # Terms that need no truncation are all multiples of one last place with a sum below 2^53 of it, so a
    # float64 dot product over the whole step is exact in any order of summation.
    if way.pair.window is not None:
        for index in range(len(a.values)):
            c_exponent = exponents_of(c)
            top, total = (x[0] for x in _windowed(a.step(index), b.step(index), c_exponent, way))
            c = _or_infinite(_rounded(total, c, c_exponent, top, way), c, a.step(index), b.step(index), way)
        return c
    sums = a.values @ b.values.transpose(0, 2, 1)
    for index, top in enumerate(_tops(a, b)):
        c_exponent = exponents_of(c)
        np.maximum(top, c_exponent, out=top)
        total = sums[index]
        truncates = int(top.max()) - floor > way.fraction_bits - way.pair.unit
        # Without empty blocks emax can only be lower: what truncates nothing above does not below.
        if way.excluded and (truncates or (_cuts(top, c_exponent, way) & (c != 0)).any()):
            top, total = (x[0] for x in _without_empty(a.step(index), b.step(index), c_exponent, way))
        elif truncates:
            total = _truncated_groups(a.values[index], b.values[index], top, way)
        c = _or_infinite(_rounded(total, c, c_exponent, top, way), c, a.step(index), b.step(index), way)
    return c


def _tops(a: _Operand, b: _Operand) -> Array:
    """Return the largest E_g of every output, int16 (steps, M, N)."""
    tops = a.exponents[0][:, :, None] + b.exponents[0][:, None, :]
    for left, right in zip(a.exponents[1:], b.exponents[1:], strict=True):
        np.maximum(tops, left[:, :, None] + right[:, None, :], out=tops)
    return tops


def _stack(a: _Stored, b: _Stored, c: Array, way: _Way) -> Array:
    """Compute a stack of steps, in batches that stay in a core's L2 cache. `c` is as for `_blackwell`."""
    d = np.empty(c.shape, np.float32)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (a.codes, a.scales, b.codes, b.scales, c, d)]
    batch = max(1, _TILE // (c.shape[-2] * c.shape[-1] * max(1, way.groups // 4)))
    for start in range(0, len(flat[0]), batch):
        codes, scales, right_codes, right_scales, addend, out = (x[start : start + batch] for x in flat)
        left = _operand(_Stored(codes, scales, a.tables), way, cut=False)
        right = _operand(_Stored(right_codes, right_scales, b.tables), way, cut=False)
        c_exponent = exponents_of(addend)
        if way.pair.window is not None:
            top, total = _windowed(left, right, c_exponent, way)
        elif way.excluded:
            top, total = _without_empty(left, right, c_exponent, way)
        else:
            top = np.maximum(_tops(left, right), c_exponent)
            total = _truncated_groups(left.values, right.values, top, way)
        out[...] = _or_infinite(_rounded(total, addend, c_exponent, top, way), addend, left, right, way)
    return d


def _or_infinite(d: Array, c: Array, a: _Operand, b: _Operand, way: _Way) -> Array:
    """Return steps of finite products `d`, (..., M, N), with NaN and infinity where infinite products say so."""
    if not way.pair.infinite or not (a.infinities.any() or b.infinities.any()):
        return d
    right, right_signs = (x.swapaxes(-1, -2) for x in (b.infinities, b.signs))
    # Of the infinite products of an output: how many there are, and how many more are positive than negative.
    count, excess = np.zeros(1), np.zeros(1)
    for x, y in ((a.infinities, right_signs), (a.signs - a.infinities, right)):
        count, excess = count + np.abs(x) @ np.abs(y), excess + x @ y
    by_zero = np.abs(a.infinities) @ (right_signs == 0) + (a.signs == 0) @ np.abs(right)
    shape = d.shape
    positive, negative, no_number = (x.reshape(shape) > 0 for x in (count + excess, count - excess, by_zero))
    no_number |= (positive | (c == np.inf)) & (negative | (c == -np.inf)) | np.isnan(c)
    d = np.where(positive, np.float32(np.inf), np.where(negative, np.float32(-np.inf), d))
    return np.where(no_number, np.float32(np.nan), d)


def _rounded(total: Array, c: Array, c_exponent: Array, top: Array, way: _Way) -> Array:
    """Add the truncated C to the sum of the truncated groups, which is overwritten, and round to float32."""
    addend = c.astype(np.float64)
    cut = _cuts(top, c_exponent, way)
    if cut.any():
        # + 0.0 turns -0 into +0: a dot product may be -0, and -0 + -0 would remain -0.
        addend[cut] = truncate(addend[cut], top[cut], way.fraction_bits) + 0.0
    total += addend
    if way.pair.wide:
        return of_any_exponent(total, way.rounding)
    # FP32 subnormals need no care: a sum below 2^-126 is the (truncated) C alone, every other one is a
    # multiple of 2^(lowest - fraction_bits), which `_way` has checked.
    return narrowed(total, way.rounding)


def _cuts(top: Array, c_exponent: Array, way: _Way) -> Array:
    """Return where C has places below 2^(top - fraction_bits)."""
    return top - c_exponent > way.fraction_bits - 23


def _truncated_groups(a: Array, b: Array, top: Array, way: _Way) -> Array:
    """Return the sum of the truncated groups of steps: values (..., M, 16 G) and (..., N, 16 G) to (..., M, N)."""
    total = np.zeros(top.shape)
    block = a.shape[-1] // way.groups
    for group in range(way.groups):
        lanes = slice(group * block, (group + 1) * block)
        total += truncate(a[..., lanes] @ b[..., lanes].swapaxes(-1, -2), top, way.fraction_bits)
    return total


def _without_empty(a: _Operand, b: _Operand, c_exponent: Array, way: _Way) -> tuple[Array, Array]:
    """Return emax without empty blocks and the sum of the truncated groups, (steps, M, N) each."""
    top = np.broadcast_to(c_exponent, (len(a.values), *c_exponent.shape[-2:]))
    block = a.elements.shape[-1] // way.groups
    terms = []
    for group in range(way.groups):
        lanes = slice(group * block, (group + 1) * block)
        sums = a.elements[..., lanes] @ b.elements[..., lanes].swapaxes(-1, -2)
        exponents = a.exponents[group][:, :, None] + b.exponents[group][:, None, :]
        top = np.maximum(top, np.where(sums != 0, exponents, np.int16(MIN_EXPONENT)))
        terms.append(sums * a.scales[group][:, :, None] * b.scales[group][:, None, :])
    total = np.zeros(top.shape)
    for term in terms:
        total += truncate(term, top, way.fraction_bits)
    return top, total


def _windowed(a: _Operand, b: _Operand, c_exponent: Array, way: _Way) -> tuple[Array, Array]:
    """Return emax and the sum of the truncated groups of products that are cut to a window, (steps, M, N) each."""
    assert way.pair.window is not None
    top = np.broadcast_to(c_exponent, (len(a.values), *c_exponent.shape[-2:]))
    block = a.elements.shape[-1] // way.groups
    terms = []
    for group in range(way.groups):
        lanes = slice(group * block, (group + 1) * block)
        products = a.elements[:, :, None, lanes] * b.elements[:, None, :, lanes]
        of_a, of_b = a.own[:, :, None, lanes], b.own[:, None, :, lanes]
        lowest, bits = way.pair.lowest_product, way.pair.added
        if bits is None:
            own = of_a + of_b
        else:
            products, own = additive.from_fields(products, of_a, of_b, bits, lowest)
        sums, largest = cut_sums(products, own, lowest, way.pair.window)
        exponents = a.exponents[group][:, :, None] + b.exponents[group][:, None, :] + (largest - way.pair.folds)
        said = exponents if not way.excluded else np.where(sums != 0, exponents, np.int16(MIN_EXPONENT))
        top = np.maximum(top, said)
        terms.append(sums * a.scales[group][:, :, None] * b.scales[group][:, None, :])
    total = np.zeros(top.shape)
    for term in terms:
        total += truncate(term, top, way.fraction_bits)
    return top, total


_EXACT_FLUSH = 1 << 10  # int64 holds the sum of this many chunks, each at most 2^53


def _exact(a: _Stored, b: _Stored, c: Array, way: _Way) -> Array:
    m, n = c.shape
    rows = max(1, (1 << 20) // n)
    low = np.zeros((m, n), np.int64)
    high = np.zeros((m, n), np.int64)
    unit = way.pair.unit - way.pair.lowest  # every T_g * 2^(E_g - 8) is a multiple of 2^-unit
    # Blocks whose sum stays below 2^53 units: exact in a float64 dot product.
    chunk = int(2.0 ** (53 - unit) / way.pair.top)
    if not chunk:
        formats = " and ".join(dict.fromkeys(stored.tables.name for stored in (a, b)))
        raise ArgumentError(
            f"numerics 'exact': the products of one block of {formats} are beyond what this model adds exactly"
        )
    for count, k in enumerate(range(0, a.scales.shape[1], chunk), start=1):
        parts = (stored.along(slice(k, k + chunk)) for stored in (a, b))
        left, right = (x.look_up(x.tables.products).reshape(x.codes.shape) for x in parts)
        left *= 2.0**unit
        for i in range(0, m, rows):
            low[i : i + rows] += (left[i : i + rows] @ right.T).astype(np.int64)
        if count % _EXACT_FLUSH == 0:
            high += low >> 32
            low &= 0xFFFFFFFF
    high += low >> 32
    low &= 0xFFFFFFFF
    scale = 2.0**-unit
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


def _computed(c: Array, pair: _Pair) -> Array:
    """Return `c` with +0 in place of -0 and NaN, and of infinity unless infinite products may meet it."""
    kept = ~np.isnan(c) if pair.infinite else np.isfinite(c)
    return np.where(kept, c, np.float32(0)) + np.float32(0)


def _special(d: Array, a: _Stored, b: _Stored, c: Array, pair: _Pair) -> Array:
    """Overwrite what is not finite: a NaN scale, element or C wins over an infinite C."""
    if not pair.infinite:
        np.copyto(d, c, where=np.isinf(c))
    bits = d.view(np.uint32)
    bits[np.isnan(c)] = NAN
    if pair.infinite:
        bits[np.isnan(d)] = NAN
    bits[a.nan_rows] = NAN
    bits.swapaxes(-1, -2)[b.nan_rows] = NAN
    return d


def _check_stack(form: BlockFormat, codes: Tensor, scales: Tensor, names: tuple[str, str]) -> tuple[Array, Array]:
    """`BlockFormat.check` of a stack: codes (..., rows, K) and scales (..., rows, K/16)."""
    stack, bytes_ = as_array(codes, names[0]), as_array(scales, names[1])
    if stack.ndim <= 2 or 0 in stack.shape:
        return form.check(stack, bytes_, names)
    if bytes_.shape[:-1] != stack.shape[:-1]:
        raise ArgumentError(
            f"{names[1]} is {bytes_.shape} and {names[0]} {stack.shape}; all but the last must be equal"
        )
    form.check(stack.reshape(-1, stack.shape[-1]), bytes_.reshape(-1, bytes_.shape[-1]), names)
    return stack, bytes_


def _way(pair: _Pair, groups: int, fraction_bits: int, rounding: str, empty_blocks: str) -> _Way:
    check_rounding(rounding)
    if empty_blocks not in EMPTY_BLOCKS:
        raise ArgumentError(f"empty_blocks must be one of {', '.join(map(repr, EMPTY_BLOCKS))}; got {empty_blocks!r}")
    largest = _max_fraction_bits(pair, groups)
    if not 1 <= check_integer(fraction_bits, "fraction_bits") <= largest:
        raise ArgumentError(f"fraction_bits must be 1 to {largest} for {groups} blocks per step; got {fraction_bits}")
    return _Way(pair, groups, fraction_bits, rounding, empty_blocks == "excluded")

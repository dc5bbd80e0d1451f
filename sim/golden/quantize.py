"""Quantisation to a block format, and back.

Each tensor has one FP32 tensor scale; each block of elements along K has one block scale. Where a format has several
kinds of elements, all are tried on every block and the one with the smallest squared error is kept, of equal ones that
which is tried first. `rules` has what else there is to choose.

Sources: the choice by squared error, ties to E1M2, and its top of 7, MixFP4 (arXiv 2605.31035); two-level scaling
with 2688 = 448 * 6, NVIDIA's NVFP4; the same with 3136 = 448 * 7, NVINT4 (arXiv 2510.25602); UE5M3 scales without a
tensor scale, arXiv 2601.19026.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from . import rules
from .block import BlockFormat
from .catalogue import block_format
from .checks import ArgumentError, Array, Tensor, as_array, check_numbers, first_true
from .codes import pack, unpack
from .levels import by_power, by_reciprocal

BLOCK = 16
"""Elements that share one block scale, in most formats of the catalogue."""

_CHUNK = 1 << 18  # elements quantised at a time, to bound memory


@dataclass(frozen=True, eq=False)
class QuantizedTensor:
    """A matrix in a block format; K runs along the rows, as both operands of a GEMM need it.

    Attributes
    ----------
    codes : numpy.ndarray of uint8, (rows, K)
        Element codes, 0 to 15 if they have 4 bits, one per byte; uint16 if they have more than 8. `packed` has them as
        they are stored.
    scales : numpy.ndarray of uint8, (rows, K / block)
        Block scales; uint16 or uint32 where the format stores two or four bytes. In NVFP4, MixFP4 and NVINT4: UE4M3 in
        bits 6..0; in bit 7 the tag of MixFP4 (0 E2M1, 1 E1M2), zero in formats without tag.
    tensor_scale : numpy.float32
        Positive and finite. Applied outside the tensor core.
    format : str
        Name of the block format, such as "nvfp4". A `BlockFormat` may be given instead, whose name it becomes.
    form : BlockFormat
        The block format. Not to be given.

    Raises
    ------
    ArgumentError
        On construction, where any of the above does not hold.
    """

    codes: Array
    scales: Array
    tensor_scale: np.float32
    format: str | BlockFormat
    form: BlockFormat = field(init=False, repr=False)

    def __post_init__(self) -> None:
        form = block_format(self.format)
        codes, scales = form.check(self.codes, self.scales, ("codes", "scales"))
        object.__setattr__(self, "format", form.name)
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "scales", scales)
        if not isinstance(self.tensor_scale, np.float32) or not 0 < self.tensor_scale < np.inf:
            raise ArgumentError(f"tensor_scale must be a positive finite numpy.float32; got {self.tensor_scale!r}")
        unused = scales & ((1 << 8 * form.scale_type.itemsize) - 1 ^ form.meaningful)
        if unused.any():
            where = first_true(unused > 0)
            bit = int(unused[tuple(where)]).bit_length() - 1
            raise ArgumentError(f"scales{where} has bit {bit} set, which has no meaning in {form.name}; clear it")
        if form.by_tensor and np.ptp(form.selected(scales)):
            raise ArgumentError(f"scales select both kinds of elements; a tensor of {form.name} has one")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and K."""
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def e1m2(self) -> npt.NDArray[np.bool_]:
        """Which blocks are E1M2, (rows, K / 16), none in formats without tag; `quantize` takes the same.

        In formats of your own: which blocks have another than the first of the elements.
        """
        return self.form.selected(self.scales) > 0

    @property
    def core_scale(self) -> np.float64:
        """What a number of the core is multiplied by: the tensor scale, over the `gain` of formats with factors."""
        return np.float64(self.tensor_scale) / self.form.gain

    @property
    def packed(self) -> npt.NDArray[np.uint8]:
        """The codes as they are stored, side by side, the first ones lowest: uint8 (rows, width K / 8).

        Codes of 4 bits are two in a byte, element 2i in the low nibble.
        """
        return pack(self.codes, self.form.width)

    @classmethod
    def from_packed(
        cls, packed: Tensor, scales: Tensor, tensor_scale: Tensor, fmt: str | BlockFormat
    ) -> QuantizedTensor:
        """Take a tensor from its stored form, such as that of an NVFP4 checkpoint.

        Parameters
        ----------
        packed : array or tensor of uint8, (rows, width K / 8)
            Codes side by side, see `packed`.
        scales : array or tensor of uint8, uint16, uint32 or float8_e4m3fn, (rows, K / block)
            Block scales in the order of the rows; a layout that some kernel wants must be undone first.
        tensor_scale : float
            What the products of code and block scale are multiplied by, a number that float32 holds. Some
            checkpoints store its inverse.
        fmt : str or BlockFormat
            One of `FORMATS`, or a record of that kind.

        Returns
        -------
        QuantizedTensor

        Raises
        ------
        ArgumentError
            As on construction, or `tensor_scale` is no number that float32 holds.
        """
        bytes_ = as_array(scales, "scales")
        if bytes_.dtype.name == "float8_e4m3fn":
            bytes_ = bytes_.view(np.uint8)
        return cls(unpack(packed, block_format(fmt).width), bytes_, given_scale(tensor_scale), fmt)


def padded(x: Tensor, fmt: str | BlockFormat = "nvfp4") -> Array:
    """Return `x` with zeros up to the next whole block of its last dimension.

    Zeros add nothing to a product, and change neither scale nor format of the block that they share: every format
    holds them without error. They do change the mean magnitude of a tensor, so the rule "absmean" takes
    `quantize_padded`.

    Parameters
    ----------
    x : array or tensor of float16, bfloat16, float32, float64 or integers, (..., K)
    fmt : str or BlockFormat
        The format whose blocks they are.

    Returns
    -------
    numpy.ndarray, (..., block ceil(K / block))
        `x` itself where K is a multiple of the block.

    Raises
    ------
    ArgumentError
        Unknown format, wrong type, or no dimension.
    """
    block = block_format(fmt).block
    values = check_numbers(x, "x")
    if values.ndim == 0:
        raise ArgumentError("x must have at least one dimension; got a scalar")
    missing = -values.shape[-1] % block
    if not missing:
        return values
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])


def quantize(
    x: Tensor,
    fmt: str | BlockFormat,
    e1m2: npt.NDArray[np.bool_] | None = None,
    *,
    tensor_scale: Tensor | None = None,
    rule: str | None = None,
) -> QuantizedTensor:
    """Quantise a matrix to a block format.

    All arithmetic is float64. The tensor scale is float32(max|x| / divisor), where the divisor is 2688 for NVFP4 and
    MixFP4 and 3136 for NVINT4; it is 1 where the format has none. Per block and element format the block scale is
    cast(max|b| / (top * tensor scale)), cast to E4M3 or UE5M3, top 6 for E2M1 and 7 for E1M2 and INT4, and the
    codes are nearest to x / (block scale * tensor scale); both round ties to the even code and saturate. The
    squared errors of a block are added in the order of its elements, first to last, so the choice of format does not
    depend on memory layout. Element formats are tried in the order that the format says, and of those with equal errors
    the first is taken: MixFP4 chooses E2M1 only where its error is strictly lower, IF4 takes INT4 only so. In IF4 an
    INT4 element counts 6/7, so both kinds have the top 6 and one scale; codes are nearest to x / (block scale * tensor
    scale) * 7 / 6 there, and values are code * block scale * tensor scale * 6 / 7.

    NVFP4 with E0M3 has one kind of elements in a tensor: that with the smaller squared error of the whole tensor, added
    in no given order, and of equal errors E2M1.

    A block whose codes are all zero is stored as scale 0x00 and codes 0. One too large for the "floor" of MXFP4, from
    2^130 on, is stored as scale NaN and codes 0. A non-zero tensor so small that its
    tensor scale would be zero takes the smallest float32 subnormal as its tensor scale.

    Parameters
    ----------
    x : array or tensor of float16, bfloat16, float32, float64 or integers, (rows, K)
        All finite; integers within +-2^53. Blocks run along K, which must be a multiple of the block, see
        `padded`; for blocks along the rows give the transpose, for more dimensions reshape to two.
    fmt : str or BlockFormat
        One of `FORMATS`, or a record of that kind.
    e1m2 : array of bool, (rows, K / 16), optional
        Which blocks are E1M2, whatever their error: for studies of the hardware. MixFP4 only, and formats of your own
        with two kinds of elements, where it is the second one.
    tensor_scale : float, optional
        The tensor scale, a positive number that float32 holds, in place of the one above: for tensors that share
        one, or whose range is known beforehand. What lies beyond the range of the format saturates.
    rule : str, optional
        How the scale of a block follows from its numbers, one of `RULES` that the format has, see `golden.rules`. The
        above is "nearest", the default but for MXFP4. "four-over-six" is for E2M1 alone: each block is tried with a top
        of 6 and of 4, and of NVFP4 the divisor is 1536. MXFP4 has "floor", the default, and "ceil". "least-error" tries
        scales beside those, and takes that of least squared error. HiF4 has "reciprocal". Formats
        without block scales have "unscaled", which has a tensor scale alone, or of FP16 none; ternary numbers
        "absmean", by default, by their mean magnitude.

    Returns
    -------
    QuantizedTensor

    Raises
    ------
    ArgumentError
        Unknown format, a rule that it has not, wrong type or shape, a NaN or infinity (the first is named), or a tensor
        scale beyond the float32 range.
    """
    form = block_format(fmt)
    chosen_rule = rules.checked(form, rule)
    tensor = check_numbers(x, "x")
    if tensor.ndim != 2 or 0 in tensor.shape or tensor.shape[1] % form.block:
        hint = " (see padded)" if tensor.ndim == 2 and tensor.size else ""
        raise ArgumentError(f"x must be (rows, K), K a positive multiple of {form.block}{hint}; got {tensor.shape}")
    check_finite(tensor)

    if e1m2 is not None:
        wanted = (tensor.shape[0], tensor.shape[1] // form.block)
        if form.tag_bit is None:
            raise ArgumentError(f"e1m2 is given, and {form.name} has no E1M2 blocks; the format is mixfp4")
        if len(form.elements) > 2:
            raise ArgumentError(f"e1m2 chooses between two kinds of elements; {form.name} has {len(form.elements)}")
        if not isinstance(e1m2, np.ndarray) or e1m2.dtype != np.bool_ or e1m2.shape != wanted:
            raise ArgumentError(f"e1m2 must be an array of bool, {wanted}, one for each block")
        if form.by_tensor and e1m2.any() and not e1m2.all():
            raise ArgumentError(f"e1m2 differs from block to block; {form.name} has one kind of elements in a tensor")
    elif form.by_tensor:
        return _of_one_kind(tensor, form, tensor_scale, chosen_rule)

    scale = _tensor_scale(tensor, form, chosen_rule) if tensor_scale is None else given_scale(tensor_scale)
    rows, k = tensor.shape
    codes = np.empty((rows, k), form.code_type)
    scales = np.empty((rows, k // form.block), form.scale_type)
    step = max(1, _CHUNK // k)
    for start in range(0, rows, step):
        part = slice(start, start + step)
        blocks = tensor[part].astype(np.float64).reshape(-1, form.block)
        chosen = None if e1m2 is None else e1m2[part].ravel()
        part_scales, part_codes = _quantize_blocks(blocks, float(scale), form, chosen, chosen_rule)
        codes[part] = part_codes.reshape(-1, k)
        scales[part] = part_scales.reshape(-1, k // form.block)
    if form.by_tensor and e1m2 is not None:
        scales |= e1m2 * form.scale_type.type(1 << (form.tag_bit or 0))  # of zero blocks, too
    return QuantizedTensor(codes, scales, scale, fmt)


def _tensor_scale(tensor: Array, form: BlockFormat, rule: str) -> np.float32:
    """Return the tensor scale of a tensor of finite numbers."""
    divisor = rules.tensor_divisor(form, rule)
    return np.float32(1) if divisor is None else found_scale(rules.reference(tensor, rule), divisor)


def quantize_padded(
    x: Tensor, fmt: str | BlockFormat, *, tensor_scale: Tensor | None = None, rule: str | None = None
) -> QuantizedTensor:
    """Quantise a matrix whose rows may end within a block: `quantize` of it `padded`, by a tensor scale of its own.

    Parameters
    ----------
    x : array or tensor of float16, bfloat16, float32, float64 or integers, (rows, K)
        All finite.
    fmt, tensor_scale, rule
        As in `quantize`.

    Returns
    -------
    QuantizedTensor, (rows, block ceil(K / block))

    Raises
    ------
    ArgumentError
        As `quantize`.
    """
    form, tensor = block_format(fmt), check_numbers(x, "x")
    filled = padded(tensor, fmt)
    if tensor_scale is None and filled is not tensor and filled.ndim == 2 and filled.size:
        check_finite(tensor)
        tensor_scale = _tensor_scale(tensor, form, rules.checked(form, rule))
    return quantize(filled, fmt, tensor_scale=tensor_scale, rule=rule)


def _of_one_kind(tensor: Array, form: BlockFormat, tensor_scale: Tensor | None, rule: str) -> QuantizedTensor:
    """Return the tensor with the elements of the kind that has the smaller squared error in all."""
    shape = tensor.shape[0], tensor.shape[1] // form.block
    best: tuple[Array, QuantizedTensor] | None = None
    for index in form.order:
        q = quantize(tensor, form, np.full(shape, bool(index)), tensor_scale=tensor_scale, rule=rule)
        values = form.values(q.codes, q.scales) * q.core_scale
        with np.errstate(over="ignore", under="ignore"):
            error = np.square(tensor - values).sum()
        if best is None or _is_less(error, best[0]):
            best = error, q
    assert best is not None
    return best[1]


def dequantize(q: QuantizedTensor) -> npt.NDArray[np.float32]:
    """Return code * block scale * tensor scale, rounded once to nearest even.

    Parameters
    ----------
    q : QuantizedTensor

    Returns
    -------
    numpy.ndarray of float32, (rows, K)
        NaN in blocks whose scale is NaN; infinity where the product is beyond the float32 range.
    """
    if not isinstance(q, QuantizedTensor):
        raise ArgumentError(f"q must be a QuantizedTensor, as quantize returns; got {type(q).__name__}")
    values = q.form.values(q.codes, q.scales)
    values *= np.float64(q.tensor_scale)
    values /= q.form.gain
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32)


def given_scale(tensor_scale: Tensor) -> np.float32:
    """Return a tensor scale as float32 once it is known to be one number, positive and finite, that float32 holds."""
    found = as_array(tensor_scale, "tensor_scale")
    if found.size != 1 or found.dtype.kind not in "fiu":
        raise ArgumentError(f"tensor_scale must be one number; got {found.dtype} {found.shape}")
    given = float(found.reshape(()))
    with np.errstate(over="ignore", under="ignore"):
        scale = np.float32(given)
    if float(scale) != given:
        raise ArgumentError(f"tensor_scale must be a number that float32 holds; got {given!r}")
    if not 0 < scale < np.inf:
        raise ArgumentError(f"tensor_scale must be positive and finite; got {given!r}")
    return scale


def check_finite(tensor: Array) -> None:
    """Refuse a tensor x that has a NaN or an infinity, and name the first."""
    finite = np.isfinite(tensor)
    if not finite.all():
        where = first_true(~finite)
        raise ArgumentError(f"x{where} is {tensor[tuple(where)]}; every element must be finite")


def found_scale(peak: float, divisor: float) -> np.float32:
    """Return the tensor scale of a tensor from its largest magnitude, or what else it is proportional to."""
    if peak == 0:
        return np.float32(1)
    with np.errstate(over="ignore", under="ignore"):
        scale = np.float64(peak / divisor).astype(np.float32)
    if np.isinf(scale):
        raise ArgumentError(f"x has magnitude {peak:g}: x / {divisor:g} must be within the float32 range")
    return np.maximum(scale, np.finfo(np.float32).smallest_subnormal)


def _quantize_blocks(
    blocks: Array, tensor_scale: float, form: BlockFormat, e1m2: npt.NDArray[np.bool_] | None, rule: str
) -> tuple[Array, Array]:
    """Return scales (n,) and codes (n, block) of float64 blocks (n, block)."""
    peaks = np.abs(blocks).max(axis=1)
    with np.errstate(under="ignore", over="ignore"):
        if form.shifts:
            quantised = by_reciprocal if rule == "reciprocal" else by_power
            return quantised(blocks / tensor_scale, form)
        first, *others = ((index, _best(blocks, peaks, tensor_scale, form, index, rule)) for index in form.order)
    index, (scales, codes, error) = first
    scales = scales | index << (form.tag_bit or 0)
    for index, (other_scales, other_codes, other_error) in others:
        assert form.tag_bit is not None
        better = _is_less(other_error, error) if e1m2 is None else e1m2 == index
        scales = np.where(better, other_scales | index << form.tag_bit, scales)
        codes = np.where(better[:, None], other_codes, codes)
        error = np.where(better, other_error, error)
    scales[~codes.any(axis=1) & ~np.isnan(form.scale.table[form.scale_codes(scales)])] = 0
    return scales, codes


def _is_less(error: Array, than: Array) -> Array:
    """Return where an error is the smaller one; NaN, of a block whose scale is NaN, is larger than any number."""
    return (error < than) | (np.isnan(than) & ~np.isnan(error))


_Candidate = tuple[Array, Array, Array]
"""Scales (n,), codes (n, block) and squared errors (n,)."""


def _best(blocks: Array, peaks: Array, tensor_scale: float, form: BlockFormat, index: int, rule: str) -> _Candidate:
    """Return the best that a rule makes of one element format; of equal errors the first."""
    first, *others = (
        _candidate(blocks, peaks, tensor_scale, form, index, rule, top, step)
        for top in rules.tops(form, index, rule)
        for step in rules.steps(form, rule)
    )
    scales, codes, error = first
    for other_scales, other_codes, other_error in others:
        better = _is_less(other_error, error)
        scales = np.where(better, other_scales, scales)
        codes = np.where(better[:, None], other_codes, codes)
        error = np.where(better, other_error, error)
    return scales, codes, error


def _candidate(
    blocks: Array,
    peaks: Array,
    tensor_scale: float,
    form: BlockFormat,
    index: int,
    rule: str,
    top: float,
    step: int,
) -> _Candidate:
    """Return blocks with scales that make the largest number of each ``top``, or ``step`` codes beside those."""
    element = form.elements[index]
    scales = rules.scale_codes(form.scale, top, peaks, tensor_scale, rule).astype(form.scale_type)
    if step:
        scales = np.clip(scales.astype(np.int64) + step, 0, form.scale.last).astype(form.scale_type)
    if form.nonzero and form.scale.zero is not None:
        scales = np.maximum(scales, form.scale_type.type(form.scale.zero + 1))
    unit = form.scale.table[scales] * tensor_scale
    divisor = np.where(unit > 0, unit, np.inf)  # a scale of zero makes every code zero
    numbers = blocks / divisor[:, None]
    # value * scale * tensor_scale is exact in any order.
    first, own = (form.factors[i] if form.factors else 1 for i in (0, index))
    if own != first:
        codes = element.encode(numbers * first / own)
        values = element.table[codes] * unit[:, None] * own / first
    else:
        codes = element.encode(numbers)
        values = element.table[codes] * unit[:, None]
    squares = np.square(blocks - values)
    error = squares[:, 0].copy()
    for lane in range(1, blocks.shape[1]):
        error += squares[:, lane]
    return scales, codes, error

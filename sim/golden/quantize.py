"""Block quantisation to NVFP4 and MixFP4, and back.

Each tensor has one FP32 tensor scale; each block of 16 elements along K has one UE4M3 block scale. MixFP4
tries E2M1 and E1M2 on every block and keeps the one with the smaller squared error.

Sources: the choice by squared error, ties to E1M2, and its top of 7, MixFP4 (arXiv 2605.31035); two-level scaling
with 2688 = 448 * 6, NVIDIA's NVFP4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .formats import (
    BLOCK,
    E1M2_BOUNDS,
    E1M2_VALUES,
    E2M1_BOUNDS,
    E2M1_VALUES,
    SCALE_NAN,
    SIGN,
    TAG,
    UE4M3_BOUNDS,
    UE4M3_VALUES,
    Array,
    InputError,
    Tensor,
    as_array,
    check_blocks,
    check_float,
    first_true,
    nearest,
    pack,
    unpack,
)

FORMATS = ("nvfp4", "mixfp4")
"""Names of the tensor formats."""

_TOP = 2688.0  # 448 * 6: the largest block scale times the largest E2M1 magnitude
_CHUNK = 1 << 18  # elements quantised at a time, to bound memory


@dataclass(frozen=True, eq=False)
class QuantizedTensor:
    """A matrix in a block format; K runs along the rows, as both operands of a GEMM need it.

    Attributes
    ----------
    codes : numpy.ndarray of uint8, (rows, K)
        Element codes 0 to 15, one per byte; `golden.pack` makes the storage format.
    scales : numpy.ndarray of uint8, (rows, K / 16)
        Block scales: UE4M3 in bits 6..0, the format tag in bit 7 (0 E2M1, 1 E1M2).
    tensor_scale : numpy.float32
        Positive and finite. Applied outside the tensor core.
    format : str
        "nvfp4", where no scale has bit 7 set, or "mixfp4".

    Raises
    ------
    InputError
        On construction, where any of the above does not hold.
    """

    codes: Array
    scales: Array
    tensor_scale: np.float32
    format: str

    def __post_init__(self) -> None:
        _check_format(self.format)
        codes, scales = check_blocks(self.codes, self.scales, ("codes", "scales"))
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "scales", scales)
        if not isinstance(self.tensor_scale, np.float32) or not 0 < self.tensor_scale < np.inf:
            raise InputError(f"tensor_scale must be a positive finite numpy.float32; got {self.tensor_scale!r}")
        if self.format == "nvfp4" and self.scales.max() >= TAG:
            where = first_true(self.scales >= TAG)
            raise InputError(f"scales{where} has bit 7 set, which nvfp4 does not use; the format is mixfp4")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and K."""
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def e1m2(self) -> npt.NDArray[np.bool_]:
        """Which blocks are E1M2, (rows, K / 16); `quantize` takes the same."""
        return self.scales >= TAG

    @property
    def packed(self) -> npt.NDArray[np.uint8]:
        """The codes as they are stored, two in a byte, element 2i in the low nibble: uint8 (rows, K / 2)."""
        return pack(self.codes)

    @classmethod
    def from_packed(cls, packed: Tensor, scales: Tensor, tensor_scale: Tensor, fmt: str) -> QuantizedTensor:
        """Take a tensor from its stored form, such as that of an NVFP4 checkpoint.

        Parameters
        ----------
        packed : array or tensor of uint8, (rows, K / 2)
            Two codes in a byte, see `packed`.
        scales : array or tensor of uint8 or float8_e4m3fn, (rows, K / 16)
            Block scales in the order of the rows; a layout that some kernel wants must be undone first.
        tensor_scale : float
            What the products of code and block scale are multiplied by, a number that float32 holds. Some
            checkpoints store its inverse.
        fmt : {"nvfp4", "mixfp4"}

        Returns
        -------
        QuantizedTensor

        Raises
        ------
        InputError
            As on construction, or `tensor_scale` is no number that float32 holds.
        """
        found = as_array(tensor_scale, "tensor_scale")
        if found.size != 1 or found.dtype.kind not in "fiu":
            raise InputError(f"tensor_scale must be one number; got {found.dtype} {found.shape}")
        given = float(found.reshape(()))
        with np.errstate(over="ignore", under="ignore"):
            scale = np.float32(given)
        if float(scale) != given:
            raise InputError(f"tensor_scale must be a number that float32 holds; got {given!r}")
        bytes_ = as_array(scales, "scales")
        if bytes_.dtype.name == "float8_e4m3fn":
            bytes_ = bytes_.view(np.uint8)
        return cls(unpack(packed), bytes_, scale, fmt)


def padded(x: Tensor) -> Array:
    """Return `x` with zeros up to the next multiple of 16 of its last dimension.

    Zeros add nothing to a product, and change neither scale nor format of the block that they share: both formats
    hold them without error.

    Parameters
    ----------
    x : array or tensor of float16, bfloat16, float32 or float64, (..., K)

    Returns
    -------
    numpy.ndarray, (..., 16 ceil(K / 16))
        `x` itself where K is a multiple of 16.

    Raises
    ------
    InputError
        Wrong type, or no dimension.
    """
    values = check_float(x, "x")
    if values.ndim == 0:
        raise InputError("x must have at least one dimension; got a scalar")
    missing = -values.shape[-1] % BLOCK
    if not missing:
        return values
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])


def quantize(x: Tensor, fmt: str, e1m2: npt.NDArray[np.bool_] | None = None) -> QuantizedTensor:
    """Quantise a matrix to NVFP4 or MixFP4.

    All arithmetic is float64. The tensor scale is float32(max|x| / 2688). Per block and format the block
    scale is E4M3(max|b| / (top * tensor scale)), top 6 for E2M1 and 7 for E1M2, and the codes are nearest to
    |x| / (block scale * tensor scale); both round ties to the even code and saturate. The squared errors of a
    block are added in the order of its elements, first to last, so the choice of format does not depend on
    memory layout. E2M1 is chosen only where its error is strictly lower.

    A block whose codes are all zero is stored as scale 0x00 and codes 0. A non-zero tensor so small that its
    tensor scale would be zero takes the smallest float32 subnormal as its tensor scale.

    Parameters
    ----------
    x : array or tensor of float16, bfloat16, float32 or float64, (rows, K)
        All finite. Blocks run along K, which must be a multiple of 16, see `padded`; for blocks along the rows
        give the transpose, for more dimensions reshape to two.
    fmt : {"nvfp4", "mixfp4"}
    e1m2 : array of bool, (rows, K / 16), optional
        Which blocks are E1M2, whatever their error: for studies of the hardware. MixFP4 only.

    Returns
    -------
    QuantizedTensor

    Raises
    ------
    InputError
        Unknown format, wrong type or shape, a NaN or infinity (the first is named), or a tensor scale beyond
        the float32 range.
    """
    _check_format(fmt)
    tensor = check_float(x, "x")
    if tensor.ndim != 2 or 0 in tensor.shape or tensor.shape[1] % BLOCK:
        hint = " (see padded)" if tensor.ndim == 2 and tensor.size else ""
        raise InputError(f"x must be (rows, K), K a positive multiple of {BLOCK}{hint}; got {tensor.shape}")
    finite = np.isfinite(tensor)
    if not finite.all():
        where = first_true(~finite)
        raise InputError(f"x{where} is {tensor[tuple(where)]}; every element must be finite")

    if e1m2 is not None:
        wanted = (tensor.shape[0], tensor.shape[1] // BLOCK)
        if fmt != "mixfp4":
            raise InputError(f"e1m2 is given, and {fmt} has no E1M2 blocks; the format is mixfp4")
        if not isinstance(e1m2, np.ndarray) or e1m2.dtype != np.bool_ or e1m2.shape != wanted:
            raise InputError(f"e1m2 must be an array of bool, {wanted}, one for each block")

    tensor_scale = _tensor_scale(max(float(tensor.max()), -float(tensor.min())))
    rows, k = tensor.shape
    codes = np.empty((rows, k), np.uint8)
    scales = np.empty((rows, k // BLOCK), np.uint8)
    step = max(1, _CHUNK // k)
    for start in range(0, rows, step):
        part = slice(start, start + step)
        blocks = tensor[part].astype(np.float64).reshape(-1, BLOCK)
        chosen = None if e1m2 is None else e1m2[part].ravel()
        part_scales, part_codes = _quantize_blocks(blocks, float(tensor_scale), fmt, chosen)
        codes[part] = part_codes.reshape(-1, k)
        scales[part] = part_scales.reshape(-1, k // BLOCK)
    return QuantizedTensor(codes, scales, tensor_scale, fmt)


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
        raise InputError(f"q must be a QuantizedTensor, as quantize returns; got {type(q).__name__}")
    tagged = np.repeat(q.scales >= TAG, BLOCK, axis=1)
    magnitude = np.where(tagged, E1M2_VALUES[q.codes & 7], E2M1_VALUES[q.codes & 7])
    magnitude *= np.repeat(UE4M3_VALUES[q.scales & SCALE_NAN], BLOCK, axis=1)
    magnitude *= np.float64(q.tensor_scale)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(q.codes >= SIGN, -magnitude, magnitude).astype(np.float32)


def _check_format(fmt: Any) -> None:
    if fmt not in FORMATS:
        raise InputError(f"format must be one of {', '.join(map(repr, FORMATS))}; got {fmt!r}")


def _tensor_scale(peak: float) -> np.float32:
    if peak == 0:
        return np.float32(1)
    with np.errstate(over="ignore", under="ignore"):
        scale = np.float64(peak / _TOP).astype(np.float32)
    if np.isinf(scale):
        raise InputError(f"x has magnitude {peak:g}: x / {_TOP:g} must be within the float32 range")
    return np.maximum(scale, np.finfo(np.float32).smallest_subnormal)


def _quantize_blocks(
    blocks: Array, tensor_scale: float, fmt: str, e1m2: npt.NDArray[np.bool_] | None
) -> tuple[Array, Array]:
    """Return scales (n,) and codes (n, 16) of float64 blocks (n, 16)."""
    magnitude = np.abs(blocks)
    with np.errstate(under="ignore"):
        scales, codes, error = _candidate(magnitude, tensor_scale, E2M1_VALUES, E2M1_BOUNDS)
        if fmt == "mixfp4":
            e1m2_scales, e1m2_codes, e1m2_error = _candidate(magnitude, tensor_scale, E1M2_VALUES, E1M2_BOUNDS)
            keep = error < e1m2_error if e1m2 is None else ~e1m2
            scales = np.where(keep, scales, e1m2_scales | TAG)
            codes = np.where(keep[:, None], codes, e1m2_codes)
    scales[~codes.any(axis=1)] = 0
    codes[(blocks < 0) & (codes > 0)] |= SIGN
    return scales, codes


def _candidate(magnitude: Array, tensor_scale: float, values: Array, bounds: Array) -> tuple[Array, Array, Array]:
    """Return scales (n,), unsigned codes (n, 16) and squared errors (n,) of one element format."""
    scales = nearest(magnitude.max(axis=1) / (values[-1] * tensor_scale), UE4M3_BOUNDS)
    unit = UE4M3_VALUES[scales] * tensor_scale
    divisor = np.where(unit > 0, unit, np.inf)  # a scale of zero makes every code zero
    codes = nearest(magnitude / divisor[:, None], bounds)
    # value * scale * tensor_scale is exact in any order; the sign cancels in the square.
    squares = np.square(magnitude - values[codes] * unit[:, None])
    error = squares[:, 0].copy()
    for lane in range(1, BLOCK):
        error += squares[:, lane]
    return scales, codes, error

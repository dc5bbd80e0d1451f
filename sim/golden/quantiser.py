"""What a hardware quantiser computes, bit for bit: codes and scale bytes of FP32 blocks.

docs/quantiser.md has the contract.
`quantize` is what a format asks for, in float64. This is what a datapath of whole numbers does: block scales by a short
division, codes by comparison with midpoints, and a choice between two candidates by errors of a few bits. Scales and
codes of a candidate are exact; only the choice, and scales by a reciprocal, may differ from `quantize`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import rules
from .aligned import INFINITY, MAGNITUDE, Aligned, Candidate, TensorScale, fields
from .block import BlockFormat
from .catalogue import block_format
from .checks import ArgumentError, Array, Tensor, as_array
from .element import E2M1, ElementFormat
from .fp32 import check_integer
from .magnitudes import CrestFactor, Gap, SecondLargest
from .quantize import QuantizedTensor, given_scale
from .quotient import ue4m3
from .scale import UE4M3
from .selection import AbsoluteError, ByError, LargestError, SampledError, Selection, SquaredError

SELECTIONS: tuple[type[Selection], ...] = (
    *(SquaredError, AbsoluteError, LargestError, SampledError),
    *(CrestFactor, SecondLargest, Gap),
)
"""Rules by which a hardware quantiser chooses between two candidates."""

QUANTISERS = (("nvfp4", "nearest"), ("nvfp4", "four-over-six"), ("mixfp4", "nearest"), ("nvint4", "nearest"))
"""Formats that it quantises to, each with a rule for the scales, see `golden.rules`."""

_NAN = (1 << UE4M3.width) - 1
"""Scale byte of a block with a NaN or an infinity."""
_SIGNIFICAND = 24
"""Bits of an FP32 significand."""
_SMALLEST, _LARGEST = 2.0**-100, 2.0**126
"""Range of tensor scales: below, subnormal numbers could count; above, the reciprocal is subnormal."""
_CHUNK = 1 << 11  # blocks at a time: what is computed of them stays in a cache


class _Kind(NamedTuple):
    """A candidate for all blocks."""

    element: ElementFormat
    top: int
    """What the largest number of a block becomes."""
    tag: int
    """Added to the scale byte."""


@dataclass(frozen=True, eq=False)
class HardwareResult:
    """What a hardware quantiser puts out.

    Parameters
    ----------
    tensor : QuantizedTensor
        Codes, scale bytes and the tensor scale.
    invalid : numpy.ndarray of bool, (rows, K / 16)
        Blocks with a NaN or an infinity. Their scale byte is 0x7F, which is NaN, and their codes are 0.
    saturated : numpy.ndarray of bool, (rows, K / 16)
        Blocks whose scale would be above 448, in the candidate that was chosen: the tensor scale is too small.
    second : numpy.ndarray of bool, (rows, K / 16)
        Blocks for which the second candidate was chosen.
    tie : numpy.ndarray of bool, (rows, K / 16)
        Blocks with equal measures of errors in both candidates; the first is chosen then.
    """

    tensor: QuantizedTensor
    invalid: npt.NDArray[np.bool_]
    saturated: npt.NDArray[np.bool_]
    second: npt.NDArray[np.bool_]
    tie: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Quantiser:
    """A hardware quantiser: its format and its widths.

    Parameters
    ----------
    format : str
        "nvfp4", "mixfp4" or "nvint4".
    rule : str, optional
        How the scale of a block follows from its numbers, see `golden.rules`. The default is "nearest"; NVFP4 has
        "four-over-six", too.
    selection : Selection, optional
        How it chooses between two candidates. The default is `SquaredError` with 8 bits. Formats with one candidate
        take none.
    tensor_scale_bits : int
        Bits of the significand of a tensor scale, 1 to 24: all below are zero. With 1 it is a power of two.
    reciprocal_bits : int, optional
        Block scales are found by multiplication with a reciprocal of the tensor scale that has so many bits, 6 to 24,
        and the largest number of a block is cut to as many. The default is a division, which is exact.

    Raises
    ------
    ArgumentError
        On construction: a field is not as above.
    """

    format: str = "mixfp4"
    rule: str | None = None
    selection: Selection | None = None
    tensor_scale_bits: int = 8
    reciprocal_bits: int | None = None

    def __post_init__(self) -> None:
        names = list(dict.fromkeys(name for name, _ in QUANTISERS))
        if self.format not in names:
            raise ArgumentError(f"format must be one of {', '.join(map(repr, names))}; got {self.format!r}")
        known = [rule for name, rule in QUANTISERS if name == self.format]
        if self.rule is not None and self.rule not in known:
            raise ArgumentError(
                f"rule must be one of {', '.join(map(repr, known))} for {self.format}; got {self.rule!r}"
            )
        object.__setattr__(self, "rule", self.rule or known[0])
        if len(self._kinds) > 1:
            object.__setattr__(self, "selection", SquaredError() if self.selection is None else self.selection)
        self._check_selection()
        _check_bits(self.tensor_scale_bits, "tensor_scale_bits", range(1, _SIGNIFICAND + 1))
        if self.reciprocal_bits is not None:
            _check_bits(self.reciprocal_bits, "reciprocal_bits", range(6, _SIGNIFICAND + 1))
        if isinstance(self.selection, ByError) and self.selection.bits > self.tensor_scale_bits + 7:
            most = self.tensor_scale_bits + 7
            raise ArgumentError(
                f"{self.selection.name}: with tensor_scale_bits = {self.tensor_scale_bits} errors have {most} bits"
                f" at most; got bits = {self.selection.bits}"
            )

    def _check_selection(self) -> None:
        if self.selection is None:
            return
        place = f"{self.format} with rule {self.rule!r}"
        if not isinstance(self.selection, Selection):
            raise ArgumentError(f"selection must be a rule such as SquaredError(8); got {self.selection!r}")
        if len(self._kinds) < 2:
            raise ArgumentError(f"selection is given, and {place} has one candidate; leave it out")
        if (self.format, self.rule) not in self.selection.pairs:
            fits = ", ".join(each.name for each in SELECTIONS if (self.format, self.rule) in each.pairs)
            raise ArgumentError(f"selection must be one of {fits} for {place}; got {self.selection.name}")

    @property
    def form(self) -> BlockFormat:
        """Format of what it puts out."""
        return block_format(self.format)

    @property
    def _kinds(self) -> tuple[_Kind, ...]:
        """Candidates; of two the second is taken where it is better."""
        if self.rule == "four-over-six":
            return _Kind(E2M1, 6, 0), _Kind(E2M1, 4, 0)
        form = self.form
        return tuple(
            _Kind(form.elements[index], int(form.elements[index].largest), index << (form.tag_bit or 0))
            for index in form.order
        )

    def tensor_scale(self, x: Tensor) -> np.float32:
        """Return the tensor scale that software is to give for a tensor: max|x| / divisor, rounded up to its bits.

        Parameters
        ----------
        x : array or tensor of float32, float16 or bfloat16, (rows, K)
            NaN and infinity are left out. The divisor is that of `quantize`: 2688, 3136 for NVINT4, 1536 for
            Four-over-Six.

        Returns
        -------
        numpy.float32
            1 for a tensor of zeros; 2^-100 for one that is too small for its own.
        """
        values = _checked(x)
        finite = np.abs(values[np.isfinite(values)])
        peak = float(finite.max()) if finite.size else 0.0
        divisor = rules.tensor_divisor(self.form, str(self.rule))
        assert divisor is not None
        return np.float32(1) if peak == 0 else self._rounded_up(peak / divisor)

    def tensor_scale_of(self, reciprocal: Tensor) -> np.float32:
        """Return the tensor scale that software is to give where its reciprocal is stored: rounded up to its bits.

        Parameters
        ----------
        reciprocal : float
            Divisor / max|x|, a positive number that float32 holds, as kernels for NVFP4 keep it for activations.

        Returns
        -------
        numpy.float32
            The least number of `tensor_scale_bits` bits that is 1 / reciprocal or more; 2^-100 at least.

        Raises
        ------
        ArgumentError
            Not such a number, or so small that no tensor scale is as large.
        """
        # Products of both have 48 bits at most, so no quotient is as near to a number of so few bits as float64 rounds.
        found = self._rounded_up(1 / float(given_scale(reciprocal)))
        self._taken_apart(found)
        return found

    def _rounded_up(self, value: float) -> np.float32:
        fraction, exponent = np.frexp(value)
        up = np.ceil(np.ldexp(fraction, self.tensor_scale_bits))
        with np.errstate(over="ignore"):
            return np.maximum(np.float32(np.ldexp(up, exponent - self.tensor_scale_bits)), np.float32(_SMALLEST))

    def reciprocal(self, tensor_scale: Tensor) -> np.float32:
        """Return the reciprocal of a tensor scale that software is to give: to nearest, of `reciprocal_bits` bits.

        Raises
        ------
        ArgumentError
            The tensor scale is not as in `quantize`, or the quantiser takes no reciprocal.
        """
        if self.reciprocal_bits is None:
            raise ArgumentError("reciprocal_bits is None: this quantiser divides, and takes no reciprocal")
        significand, exponent = self._reciprocal(self._taken_apart(given_scale(tensor_scale)))
        return np.float32(np.ldexp(float(significand), exponent))

    def quantize(self, x: Tensor, tensor_scale: Tensor | None = None) -> HardwareResult:
        """Quantise a matrix as the hardware does.

        Parameters
        ----------
        x : array or tensor of float32, float16 or bfloat16, (rows, K)
            Blocks of 16 run along K. float16 and bfloat16 are widened, which is exact. NaN and infinity are taken.
        tensor_scale : float, optional
            From 2^-100 to 2^126, a number of `tensor_scale_bits` bits. The default is that of the method of this name.

        Returns
        -------
        HardwareResult

        Raises
        ------
        ArgumentError
            Wrong type or shape, or a tensor scale that is not as above.
        """
        values = _checked(x)
        if values.ndim != 2 or 0 in values.shape or values.shape[1] % self.form.block:
            hint = " (see padded)" if values.ndim == 2 and values.size else ""
            raise ArgumentError(
                f"x must be (rows, K), K a positive multiple of {self.form.block}{hint}; got {values.shape}"
            )
        given = self.tensor_scale(values) if tensor_scale is None else given_scale(tensor_scale)
        scale = self._taken_apart(given)
        words = np.ascontiguousarray(values).view(np.uint32).reshape(-1, self.form.block)
        codes = np.empty(words.shape, np.uint8)
        scales = np.empty(len(words), np.uint8)
        flags = np.empty((4, len(words)), np.bool_)
        for start in range(0, len(words), _CHUNK):
            part = slice(start, start + _CHUNK)
            codes[part], scales[part], flags[:, part] = self._blocks(words[part], scale)
        rows, k = values.shape
        tensor = QuantizedTensor(codes.reshape(rows, k), scales.reshape(rows, -1), given, self.format)
        return HardwareResult(tensor, *flags.reshape(len(flags), rows, -1))

    def _blocks(self, words: Array, scale: TensorScale) -> tuple[Array, Array, Array]:
        """Return codes (n, 16), scale bytes (n,) and what else a result has (4, n) of FP32 words (n, 16)."""
        bits = np.ascontiguousarray((words & MAGNITUDE).view(np.int32).T)
        invalid = bits.max(axis=0) >= INFINITY
        if invalid.any():
            bits[:, invalid] = 0
        aligned = Aligned(bits, scale)
        found = [self._scales(aligned.peaks, kind.top, scale) for kind in self._kinds]
        candidates = [
            Candidate(aligned, kind.element, scales) for kind, (scales, _) in zip(self._kinds, found, strict=True)
        ]
        codes, scales, saturated = candidates[0].codes, found[0][0] | self._kinds[0].tag, found[0][1]
        second = tie = np.zeros(len(words), np.bool_)
        if self.selection is not None:
            second, tie = self.selection.second(aligned, (candidates[0], candidates[1]))
            second &= ~saturated
            codes = np.where(second, candidates[1].codes, codes)
            scales = np.where(second, found[1][0] | self._kinds[1].tag, scales)
            saturated = np.where(second, found[1][1], saturated)
        signed = _signed(codes, np.ascontiguousarray((words >> 31).astype(np.bool_).T), self._kinds[0].element)
        scales = np.where(scales & (1 << UE4M3.width) - 1 > 0, scales, 0)
        return signed.T, np.where(invalid, _NAN, scales).astype(np.uint8), np.stack([invalid, saturated, second, tie])

    def _scales(self, peaks: Array, top: int, scale: TensorScale) -> tuple[Array, Array]:
        """Return codes of UE4M3 (n,), and where they saturate, of the largest magnitudes as integers (n,)."""
        significands, exponents = (each.astype(np.int64) for each in fields(peaks))
        exponents -= 150
        if self.reciprocal_bits is None:
            return ue4m3(significands, top * scale.significand, exponents - scale.exponent + scale.bits - 1)
        significand, exponent = self._reciprocal(scale)
        lost = _SIGNIFICAND - self.reciprocal_bits
        return ue4m3((significands >> lost) * significand, top, exponents + lost + exponent)

    def _reciprocal(self, scale: TensorScale) -> tuple[int, int]:
        """Return the nearest to 1 / tensor scale as a number of `reciprocal_bits` bits and the exponent of its unit."""
        assert self.reciprocal_bits is not None
        # The quotient is above 2^(bits - 1) and at most 2^bits. None is half-way between two whole numbers.
        n = self.reciprocal_bits + scale.bits - 1
        significand = (2 * (1 << n) + scale.significand) // (2 * scale.significand)
        return significand, scale.bits - 1 - scale.exponent - n

    def _taken_apart(self, tensor_scale: np.float32) -> TensorScale:
        value = float(tensor_scale)
        if not _SMALLEST <= value <= _LARGEST:
            raise ArgumentError(f"tensor_scale must be from 2^-100 to 2^126; got {value!r}")
        fraction, exponent = np.frexp(value)
        significand = np.ldexp(fraction, self.tensor_scale_bits)
        if significand % 1:
            raise ArgumentError(
                f"tensor_scale must have a significand of {self.tensor_scale_bits} bits, see Quantiser.tensor_scale;"
                f" got {value!r}"
            )
        return TensorScale(int(significand), int(exponent) - 1, self.tensor_scale_bits)


def _signed(codes: Array, negative: Array, element: ElementFormat) -> Array:
    """Return codes of numbers with their signs; that of zero is 0."""
    opposite = np.array([element.integers.index(-h) for h in element.integers[:8]], np.uint8)
    # Code 8 may stand for zero as well; the lowest code is the one that is produced.
    return np.where(negative, opposite[codes], codes)


def _checked(x: Tensor) -> Array:
    values = as_array(x, "x")
    if values.dtype.kind != "f" or values.dtype.itemsize > 4:
        raise ArgumentError(f"x must be float32, float16 or bfloat16, as the hardware takes it; got {values.dtype}")
    return values.astype(np.float32, copy=False)


def _check_bits(value: int, name: str, possible: range) -> None:
    if check_integer(value, name) not in possible:
        raise ArgumentError(f"{name} must be {possible[0]} to {possible[-1]}; got {value}")

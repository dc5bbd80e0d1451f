"""Block formats: elements that share a scale, and how a block selects what its elements are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .additive import check_added
from .checks import ArgumentError, Array, Tensor, check_codes, check_unsigned
from .element import ElementFormat
from .scale import ScaleFormat


@dataclass(frozen=True)
class BlockFormat:
    """A tensor format: blocks of elements along K, a scale byte for each block, an FP32 scale for the tensor.

    The value of an element is that of its code, times the block scale, times the tensor scale. With `factors` those of
    one kind of elements count less than those of another: each is also multiplied by its factor over the first one's. A
    core has no such fraction: it multiplies the significand of the block scale by the factor, in units of 2^-n with n
    the bits of the largest factor. So its numbers are `gain` times as large as they should be, which the tensor scale
    makes good, outside.

    Parameters
    ----------
    name : str
        Name, also in the catalogue.
    elements : tuple of ElementFormat
        What the elements of a block may be: one format, or 2, 4, 8 ... of equal width among which a selector chooses.
    scale : ScaleFormat
        Of the low bits of a scale byte. Bits above it have no meaning, but for the selector.
    tensor_divisor : float or None
        Where the tensor scale is not given, it is float32(max|x| / tensor_divisor): the largest element times the
        largest block scale. None if the format has no tensor scale: it is then 1.
    tag_bit : int or None
        Lowest bit of the selector, the field of the scale byte that is the index of the block's element format. It has
        n bits for 2^n of them. None with one of them.
    block : int
        Elements of a block. Their codes fill whole bytes.
    sums : int
        Parts of a block whose products a step adds up exactly, each for itself. They have the scale of the block.
    factors : tuple of int
        As above, positive, one for each of the elements; none if all count alike.
    nonzero : bool
        Whether `quantize` takes the smallest scale above zero where the nearest one is zero.
    scale_bytes : int
        Bytes of a scale and its selector as they are stored, 1, 2 or 4. Where others say the scale byte, it is all of
        them. 0 where blocks have no scale; arrays of scales then hold zeros, and what else they have is not read.
    trial : tuple of int
        The order in which `quantize` tries the elements; of those with equal errors it takes the first. Indices into
        `elements`; if there are none, from the last to the first.
    always_cut : bool
        Whether the window is that of products with any format, be it without one.
    rule : str
        The rule by which `quantize` finds scales by default, one of those that `golden.rules` has for such a format;
        if it is empty, the first of them.
    window : int or None
        Where both operands have one, or one is always cut: the F of 2^(r - F), of which a product is made a multiple
        before it is added, truncated toward zero on its magnitude. r is the largest exponent of a product in the block
        that is not zero; that of a product is the sum of those of its elements. None if products are added exactly, but
        with what is always cut.
    shifts : tuple of int
        Lengths of sub-groups of a block, the longest first. Each sub-group has a bit, and where it is set its elements
        count twice as much; an element has a sub-group of each length. The bits stand directly above the scale, those
        of the longest first, and of one length in the order of the elements.
    additive : bool
        Whether the product of two elements is that of L-Mul, see `golden.additive`. Such a format needs a window, and
        both operands must be such formats.
    by_tensor : bool
        Whether all blocks of a tensor have the same one of two kinds of elements. All scale bytes then have the same
        selector, those of zero blocks, too.

    Raises
    ------
    ArgumentError
        On construction: elements of unequal width, or not as many as the selector chooses from, or a selector that is
        not above the scale, or codes of a block that do not fill whole bytes, or parts that are not equal, or factors
        or an order that do not fit the elements, or sub-groups that do not nest, or elements that may be infinite under
        a scale that may be zero.
    """

    name: str
    elements: tuple[ElementFormat, ...]
    scale: ScaleFormat
    tensor_divisor: float | None
    tag_bit: int | None = None
    block: int = 16
    sums: int = 1
    factors: tuple[int, ...] = ()
    trial: tuple[int, ...] = ()
    nonzero: bool = False
    scale_bytes: int = 1
    window: int | None = None
    always_cut: bool = False
    rule: str = ""
    shifts: tuple[int, ...] = ()
    by_tensor: bool = False
    additive: bool = False

    def __post_init__(self) -> None:
        count = len(self.elements)
        fits = count == 1 if self.tag_bit is None else count > 1 and not count & count - 1
        if not fits or len({(element.width, element.point) for element in self.elements}) != 1:
            wanted = "one element format" if self.tag_bit is None else "2, 4, 8 ... element formats of equal width"
            found = ", ".join(f"{element.name} of {element.width} bits" for element in self.elements) or "none"
            raise ArgumentError(f"{self.name}: must have {wanted}; got {found}")
        if self.scale_bytes not in (1, 2, 4) and (self.scale_bytes or self.scale.width):
            raise ArgumentError(
                f"{self.name}: scale_bytes must be 1, 2 or 4, or 0 where there is no scale; got {self.scale_bytes}"
            )
        if self.scale_bytes > 2 and not self.shifts:
            raise ArgumentError(f"{self.name}: scale_bytes must be 1 or 2 without shifts; got {self.scale_bytes}")
        stored = 8 * self.scale_bytes
        if self.tag_bit is not None and not self.scale.width <= self.tag_bit <= stored - self.selector_bits:
            raise ArgumentError(
                f"{self.name}: tag_bit = {self.tag_bit}: a selector of {self.selector_bits} bits must be above the"
                f" {self.scale.width} bits of the scale and within the {stored} that are stored"
            )
        if self.block < 1 or self.block * self.width % 8:
            raise ArgumentError(
                f"{self.name}: the codes of a block must fill whole bytes; got {self.block} of {self.width} bits"
            )
        if self.sums < 1 or self.block % self.sums:
            raise ArgumentError(f"{self.name}: sums must divide the block of {self.block}; got {self.sums}")
        if self.factors and (len(self.factors) != count or min(self.factors) < 1):
            raise ArgumentError(f"{self.name}: factors must be positive, one for each element; got {self.factors}")
        divisor = self.tensor_divisor
        if divisor is not None and not 0 < divisor < np.inf:
            raise ArgumentError(f"{self.name}: tensor_divisor must be a finite number above 0; got {divisor}")
        if self.window is not None and (count > 1 or self.elements[0].normal is None or self.sums > 1):
            raise ArgumentError(f"{self.name}: a window takes floating-point elements of one kind, in one sum")
        if self.width > 8 and self.scale.width:
            raise ArgumentError(f"{self.name}: elements of {self.width} bits take no scale of a block")
        if self.additive:
            self._check_additive()
        if any(element.infinities for element in self.elements) and self.scale.zero is not None:
            raise ArgumentError(f"{self.name}: infinite elements take a scale without zero; {self.scale.name} has one")
        if self.shifts:
            self._check_shifts()
        if self.by_tensor and count != 2:
            raise ArgumentError(f"{self.name}: by_tensor takes two kinds of elements; got {count}")
        if self.trial and sorted(self.trial) != list(range(count)):
            raise ArgumentError(f"{self.name}: trial must have the index of every element once; got {self.trial}")
        self._check_kinds()

    def _check_kinds(self) -> None:
        if len(self.elements) == 1:
            return
        factors = self.factors or (1,) * len(self.elements)
        known: dict[frozenset[float], str] = {}
        for element, factor in zip(self.elements, factors, strict=True):
            numbers = frozenset(value * factor for value in element.values)
            if numbers in known:
                kinds = f"{known[numbers]} and {element.name}"
                raise ArgumentError(f"{self.name}: elements {kinds} are the same numbers: nothing to select")
            known[numbers] = element.name

    def _check_additive(self) -> None:
        if self.window is None:
            raise ArgumentError(f"{self.name}: additive takes a window that products are cut to")
        check_added(self.elements[0])

    def _check_shifts(self) -> None:
        (element, *others), place = self.elements, f"{self.name}: shifts = {self.shifts}:"
        if others or self.factors or self.window is not None:
            raise ArgumentError(f"{place} take elements of one kind, without factors and without a window")
        if not all(outer > inner and outer % inner == 0 for outer, inner in pairwise((2 * self.lanes, *self.shifts))):
            raise ArgumentError(
                f"{place} must divide one another and the {self.lanes} products of a sum, longest first"
            )
        if self.scale.width + self.shift_bits > 8 * self.scale_bytes:
            raise ArgumentError(
                f"{place} {self.shift_bits} bits have no room above the {self.scale.width} bits of the scale; got"
                f" scale_bytes = {self.scale_bytes}"
            )
        if set(element.integers) != set(range(-max(element.integers), max(element.integers) + 1)):
            raise ArgumentError(f"{place} take elements that are all whole numbers of a unit up to the largest")
        if element.silent or element.preference:
            raise ArgumentError(f"{place} take elements without silent codes and without a preference")

    def __hash__(self) -> int:
        return hash(self.name)  # formats are keys of caches, and their tables are long

    @property
    def point(self) -> int:
        """Bits behind the point of the elements' integers."""
        return self.elements[0].point

    @property
    def width(self) -> int:
        """Bits of an element code."""
        return self.elements[0].width

    @property
    def code_type(self) -> np.dtype[Any]:
        """Type of an array of element codes."""
        return self.elements[0].code_type

    @property
    def lanes(self) -> int:
        """Products that a step adds up exactly before it aligns anything."""
        return self.block // self.sums

    @property
    def block_bytes(self) -> int:
        """Bytes of the codes of a block."""
        return self.block * self.width // 8

    @property
    def selector_bits(self) -> int:
        """Bits of the selector."""
        return (len(self.elements) - 1).bit_length()

    @property
    def meaningful(self) -> int:
        """Mask of the bits of a scale byte that have a meaning."""
        selector = len(self.elements) - 1 << (self.tag_bit or 0)
        return (1 << self.scale.width + self.shift_bits) - 1 | selector

    @property
    def shift_bits(self) -> int:
        """Bits of all sub-groups of a block."""
        return sum(self.block // length for length in self.shifts)

    @property
    def spread_width(self) -> int:
        """Bits of a code with its shift above it, see `spread`."""
        return self.width + len(self.shifts).bit_length()

    @property
    def factor_bits(self) -> int:
        """The n of the unit 2^-n of a factor; 0 without factors."""
        return max(self.factors, default=0).bit_length()

    @property
    def gain(self) -> float:
        """How much larger than they should be a core has the numbers of this format."""
        return self.factors[0] * 2.0**-self.factor_bits if self.factors else 1.0

    @cached_property
    def weights(self) -> Array:
        """What the core multiplies a block by for its kind of elements, float64, by index into `elements`."""
        return np.array([factor * 2.0**-self.factor_bits for factor in self.factors or (1,) * len(self.elements)])

    @property
    def order(self) -> tuple[int, ...]:
        """`trial`, or what stands in for it."""
        return self.trial or tuple(reversed(range(len(self.elements))))

    @property
    def scale_type(self) -> np.dtype[Any]:
        """Type of an array of scale bytes: uint8, or uint16 of two bytes each, or uint32 of four."""
        return np.dtype(f"u{self.scale_bytes or 1}")

    @property
    def all_scales(self) -> Array:
        """Every scale byte there may be, as `spread` returns them: of formats with `shifts` every scale."""
        if not self.scale_bytes:
            return np.zeros(1, self.scale_type)
        if self.shifts:
            return np.arange(1 << self.scale.width).astype(np.uint8)
        return np.arange(1 << 8 * self.scale_type.itemsize).astype(self.scale_type)

    def selected(self, scales: Array) -> Array:
        """Return the index into `elements` that scale bytes select."""
        return scales >> (self.tag_bit or 0) & len(self.elements) - 1

    def scale_codes(self, scales: Array) -> Array:
        """Return the codes of the scale format in scale bytes."""
        return scales & ((1 << self.scale.width) - 1)

    def spread(self, codes: Array, scales: Array) -> tuple[Array, Array]:
        """Return codes with the shift of each above it, and scales without those bits; zeros where there are none.

        Parameters
        ----------
        codes, scales : numpy.ndarray, (..., K) and (..., K / block)
            As they are stored. Without `shifts` codes are returned as they are, and so are scales.

        Returns
        -------
        codes : numpy.ndarray of uint8 or uint16, (..., K)
            Code and 2^width times the number of set bits among those of the element's sub-groups.
        scales : numpy.ndarray of uint8, (..., K / block)
        """
        if not self.scale_bytes:
            return codes, np.zeros_like(scales)
        if not self.shifts:
            return codes, scales
        counts = np.zeros((*scales.shape, self.block), np.uint8)
        place = self.scale.width
        for length in self.shifts:
            bits = scales[..., None] >> np.arange(place, place + self.block // length, dtype=scales.dtype) & 1
            counts += np.repeat(bits.astype(np.uint8), length, axis=-1)
            place += self.block // length
        kind = np.uint8 if self.spread_width <= 8 else np.uint16
        above = counts.reshape(codes.shape).astype(kind) << self.width
        return codes.astype(kind) | above, self.scale_codes(scales).astype(np.uint8)

    @cached_property
    def element_tables(self) -> Array:
        """Values of the elements by index into `elements` and by code as `spread` returns it, float64."""
        shifted = [2.0**count for count in range(len(self.shifts) + 1)]
        never = [0.0] * ((1 << self.spread_width - self.width) - len(shifted))
        return np.array([np.concatenate([e.table * power for power in shifted + never]) for e in self.elements])

    @cached_property
    def table(self) -> Array:
        """Element times block scale by scale byte and code, float64 (256, 2^width), of two bytes (65536, 2^width).

        Without block scales (1, 2^width).

        NaN where the scale is NaN, or the element; infinite where the element is. By what `spread` returns where the
        format has `shifts`.

        As a core has them, its factors included, see above.
        """
        scales = self.all_scales
        elements = self.element_tables
        selected = self.selected(scales)
        table = elements[selected] * (self.scale.table[self.scale_codes(scales)] * self.weights[selected])[:, None]
        table.flags.writeable = False
        return table

    def values(self, codes: Array, scales: Array) -> Array:
        """Return element times block scale, float64 (..., K), of stored codes (..., K) and scales (..., K / block)."""
        spread, alone = self.spread(codes, scales)
        return np.asarray(self.table[np.repeat(alone, self.block, axis=-1), spread])

    def check(self, codes: Tensor, scales: Tensor, names: tuple[str, str]) -> tuple[Array, Array]:
        """Return codes (rows, K) and scales (rows, K / block) as arrays once types, range and shapes agree."""
        checked = check_codes(codes, names[0], self.width)
        bytes_ = check_unsigned(scales, names[1], self.scale_type.itemsize)
        if checked.ndim != 2 or 0 in checked.shape or checked.shape[1] % self.block:
            raise ArgumentError(
                f"{names[0]} must be (rows, K), K a positive multiple of {self.block}; got {checked.shape}"
            )
        expected = (checked.shape[0], checked.shape[1] // self.block)
        if bytes_.shape != expected:
            raise ArgumentError(
                f"{names[1]} must be {expected}, one per {self.block} codes of {names[0]}; got {bytes_.shape}"
            )
        return checked, bytes_

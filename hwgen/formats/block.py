"""Block formats: elements, how a block selects among them, and its scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from hwgen.errors import InputError
from hwgen.formats.element import ElementFormat
from hwgen.formats.scale import ScaleFormat

__all__ = ["BlockFormat", "Formats"]

_BYTE = 8
LONGEST_WINDOW = 32
"""Most bits behind the point of products that a block sum keeps."""
LONGEST_ADDED = 3
"""Most bits of a mantissa for which L-Mul's constant is one unit of its last place."""


@dataclass(frozen=True)
class BlockFormat:
    """A block-scaled format: consecutive elements along K share one scale and one choice of element format.

    ::

        block:  code 0 | code 1 | ... | code size-1     scale byte:  [ not read | selector or shifts | scale ]

    Parameters
    ----------
    name
        Lower-case name, which configurations use.
    elements
        The element formats that a block may take: one, or a power of two of them in the order of the selector's codes.
        Their codes have one width.
    scale
        Format of the block scale, the low bits of the scale byte. The selector stands directly above it; it has
        as many bits as it takes to choose among the elements, none if there is one.
    size
        Elements in a block.
    full_scale
        The tensor scale is max|X| over this: where the largest element of a tensor comes to lie on the grid of scale
        and element. The tensor scale is one FP32 number for a tensor and is applied outside the core. None if the
        format has none: the tensor scale is then 1.
    source
        Where the format is defined.
    sums
        Sums that the products of a block make: 1, or as many parts of the block, which are aligned and truncated each
        for itself. What is stored does not depend on it.
    scale_bytes
        Bytes of a stored scale and its selector or shifts, 1, 2 or 4; 0 where blocks have no scale. Elsewhere the scale
        byte is all of them.
    factors
        What the elements count, by selector, in proportion: (7, 6) says that those of the second kind count 6/7. None
        if all count alike. Hardware multiplies the significand of the scale by the factor, see Notes.
    definition
        Text of the file that describes the format, for those of a user's own, see `hwgen.formats.read`. The golden
        model reads it from there. Empty for those of the catalogue.
    window
        Bits behind the point of a product that are kept, by the largest exponent of a product in its block that is not
        zero, where both operands have such a limit, or one of them has ``always_cut``. A product is truncated toward
        zero, on its magnitude. None if products of other formats are added exactly.
    always_cut
        Whether products with any format are cut to the window: those of long elements are too long to be added exactly.
    shifts
        Lengths of sub-groups, the longest first. Each sub-group has a bit, and its elements count twice as much where
        it is set; an element has a sub-group of each length. The bits stand directly above the scale, those of the
        longest first, and of one length in the order of the elements.
    additive
        Whether the codes of two elements are added in the place of multiplying their numbers: L-Mul (arXiv 2410.00907),
        see Notes. Such a format needs a window, and both operands must be such formats.
    by_step
        Whether all blocks of an operand in a step have the same elements, and the step says which. The selector is then
        not in the scale byte that hardware reads. Tensors have it there all the same, in all bytes alike.

    Raises
    ------
    InputError
        The parts do not fit together; the message names the field.

    Notes
    -----
    A factor is a number of `factor_bits` behind the point. So a core has every number of such an operand too large by
    the first factor over 2^factor_bits: 7/8 for (7, 6). The tensor scale, outside the core, is divided by that. No
    fraction such as 6/7 is ever rounded.

    Codes are added without their signs: exponent and mantissa field as one integer, and 1 besides, which is L-Mul's
    2^-l for mantissas of up to 3 bits. The sum has fields of the same kind. A carry out of the mantissas goes into the
    exponent. A subnormal number is added as it is coded, as if it had a hidden bit. A product with zero is zero.
    """

    name: str
    elements: tuple[ElementFormat, ...]
    scale: ScaleFormat
    size: int
    full_scale: float | None
    source: str
    sums: int = 1
    factors: tuple[int, ...] = ()
    scale_bytes: int = 1
    window: int | None = None
    always_cut: bool = False
    definition: str = ""
    shifts: tuple[int, ...] = ()
    by_step: bool = False
    additive: bool = False

    def __post_init__(self) -> None:
        if not self.elements or len(self.elements) & len(self.elements) - 1:
            raise InputError(
                f"block format {self.name}: {len(self.elements)} elements: a selector chooses among 1, 2, 4 ... of them"
            )
        for one, other in pairwise(self.elements):
            if one.width != other.width:
                raise InputError(
                    f"block format {self.name}: elements {one.name} and {other.name} have codes of {one.width} and"
                    f" {other.width} bits; they must be equal"
                )
            if one.point != other.point:
                raise InputError(
                    f"block format {self.name}: elements {one.name} and {other.name} have {one.point} and"
                    f" {other.point} bits behind the point; they must be equal"
                )
        self._check_stored()
        if self.by_step and self.selector_bits != 1:
            raise InputError(
                f"block format {self.name}: by_step: takes two kinds of elements; this has {len(self.elements)}"
            )
        if self.size < 1 or self.size * self.code_width % _BYTE:
            raise InputError(f"block format {self.name}: a block of {self.size}: must fill whole bytes")
        if self.sums < 1 or self.size % self.sums:
            raise InputError(f"block format {self.name}: sums = {self.sums}: must divide the block of {self.size}")
        if self.factors and (len(self.factors) != len(self.elements) or min(self.factors) < 1):
            raise InputError(
                f"block format {self.name}: factors = {self.factors}: must be positive, one for each element"
            )

        if self.window is not None:
            if self.tagged or self.sums > 1:
                raise InputError(
                    f"block format {self.name}: window = {self.window}: takes one kind of elements, in one sum"
                )
            if not 2 * self.elements[0].mantissa_bits <= self.window <= LONGEST_WINDOW:
                raise InputError(
                    f"block format {self.name}: window = {self.window}: must keep the bits of a whole"
                    f" product, and be {LONGEST_WINDOW} at most"
                )

        if self.code_width > _BYTE and self.scale.width:
            raise InputError(
                f"block format {self.name}: elements of {self.code_width} bits take no scale of a block; take 'none'"
            )
        if self.additive:
            self._check_additive()
        if self.may_be_infinite and self.scale.subnormals:
            raise InputError(
                f"block format {self.name}: elements may be infinite; they take a scale without zero, and"
                f" {self.scale.name} has one"
            )
        if self.factors and not self.scale.mantissa_bits:
            raise InputError(
                f"block format {self.name}: factors = {self.factors}: scale {self.scale.name} has no significand"
            )

    def _check_stored(self) -> None:
        """Refuse a scale, a selector or shifts that have no place in what is stored with a block."""
        if self.scale_bytes not in (1, 2, 4) and (self.scale_bytes or self.scale.width):
            raise InputError(
                f"block format {self.name}: scale_bytes = {self.scale_bytes}: must be 1, 2 or 4, or 0 without a scale"
            )
        if self.shifts:
            self._check_shifts()
        elif self.scale_bytes > 2:
            raise InputError(
                f"block format {self.name}: scale_bytes = {self.scale_bytes}: takes shifts;"
                " 1 or 2 hold a scale and its selector"
            )
        if self.scale_width > self.stored_scale_width:
            stored = {0: "0 bytes", 1: "byte", 2: "two bytes", 4: "four bytes"}[self.scale_bytes]
            what = (
                f"shifts of {self.shift_bits} bits have"
                if self.shifts
                else f"a selector of {self.selector_bits} bits has"
            )
            raise InputError(
                f"block format {self.name}: {what} no place beside scale"
                f" {self.scale.name}, which takes {self.scale.width} bits of its {stored}"
            )

    def _check_additive(self) -> None:
        """Refuse elements whose codes are no exponent and mantissa, or a mantissa with another constant than 1."""
        place, element = f"block format {self.name}: additive:", self.elements[0]
        if self.window is None:
            raise InputError(f"{place} products of all exponents are cut to a window; give one")
        if self.may_be_infinite:
            raise InputError(f"{place} elements of {element.name} may be infinite, and no sum of codes is")
        if not element.coded_as_float or element.mantissa_bits > LONGEST_ADDED:
            raise InputError(
                f"{place} takes codes of sign, exponent and up to {LONGEST_ADDED} bits of mantissa; {element.name} has"
                " others"
            )

    def _check_shifts(self) -> None:
        """Refuse sub-groups that do not nest in the sums of a block, and what has no meaning beside them."""
        place = f"block format {self.name}: shifts = {self.shifts}:"
        if self.tagged or self.factors or self.window is not None:
            raise InputError(f"{place} take elements of one kind, without factors and without a window")
        # A sum of the block may be a sub-group itself.
        lengths = (2 * self.lanes, *self.shifts)
        if min(lengths) < 1 or any(outer <= inner or outer % inner for outer, inner in pairwise(lengths)):
            raise InputError(f"{place} must divide one another and the {self.lanes} products of a sum, longest first")

    @cached_property
    def selector_bits(self) -> int:
        """Bits that choose the element format, of the scale byte or of the step."""
        return (len(self.elements) - 1).bit_length()

    def holds(self, other: BlockFormat) -> bool:
        """Whether tensors of another format are valid in this one, bit for bit, as NVFP4's are in MixFP4.

        Their elements are the first ones here, so that a selector of 0 means the same. Numbers of all of them count
        alike, and so does what else is stored with a block. A step that chooses for all blocks takes no selectors.
        """
        if self.by_step and other.tagged and not other.by_step:
            return False
        first = len(other.elements)

        def stored(form: BlockFormat) -> tuple[object, ...]:
            tables = [(element.values, element.nans, element.infinities) for element in form.elements[:first]]
            return (
                tables,
                form.scale,
                form.scale_bytes,
                form.size,
                form.shifts,
                form.window,
                form.always_cut,
                form.additive,
            )

        return stored(self) == stored(other) and len({*self.weights[:first]}) == 1

    @property
    def by_block(self) -> BlockFormat:
        """The same elements and scales with the selector in the scale byte: of lanes without a step."""
        return replace(self, name=f"{self.name}-by-block", by_step=False) if self.by_step else self

    @property
    def tagged(self) -> bool:
        """Whether a selector chooses the element format."""
        return len(self.elements) > 1

    @property
    def lanes(self) -> int:
        """Products in a block sum."""
        return self.size // self.sums

    @property
    def code_width(self) -> int:
        """Bits of an element code."""
        return self.elements[0].width

    @property
    def point(self) -> int:
        """Bits behind the point of the elements' integers."""
        return self.elements[0].point

    @property
    def scale_width(self) -> int:
        """Bits of the scale byte that the hardware reads: scale and selector, or shifts."""
        return self.scale.width + (0 if self.by_step else self.selector_bits) + self.shift_bits

    @property
    def has_scales(self) -> bool:
        """Whether the hardware reads anything with a block: a scale, a selector, shifts."""
        return self.scale_width > 0

    @property
    def shift_bits(self) -> int:
        """Bits of the shifts of all sub-groups of a block."""
        return sum(self.size // length for length in self.shifts)

    @property
    def stored_scale_width(self) -> int:
        """Bits of a scale as it is stored."""
        return self.scale_bytes * _BYTE

    @property
    def stored_bytes(self) -> int:
        """Bytes of a stored block: codes and scale byte."""
        return (self.size * self.code_width + self.stored_scale_width) // _BYTE

    @property
    def may_be_nan(self) -> bool:
        """Whether a scale or an element can be NaN."""
        return self.scale.nan is not None or bool(self.nans)

    @property
    def may_be_infinite(self) -> bool:
        """Whether an element can be infinite."""
        return any(element.infinities for element in self.elements)

    @cached_property
    def integers(self) -> tuple[tuple[int, ...], ...]:
        """The integer h of every code: by selector, or by the bits of the element's sub-groups, longest lowest."""
        tables = tuple(element.integers for element in self.elements)
        if not self.shifts:
            return tables
        return tuple(tuple(h << bits.bit_count() for h in tables[0]) for bits in range(1 << len(self.shifts)))

    @cached_property
    def nans(self) -> frozenset[int]:
        """Where NaN is in the tables of `integers`, one behind the other. What lanes multiply there is never seen."""
        tables = self.elements * (1 << len(self.shifts))
        size = 1 << self.code_width
        return frozenset(size * number + code for number, element in enumerate(tables) for code in element.nans)

    @cached_property
    def largest(self) -> int:
        """Largest abs(h) of all elements."""
        return max(element.largest for element in self.elements) << len(self.shifts)

    @property
    def signed_width(self) -> int:
        """Bits that every h takes in two's complement; of INT8 no more than its codes have."""
        return 1 + max(max(h, ~h).bit_length() for table in self.integers for h in table)

    @cached_property
    def magnitudes(self) -> frozenset[int]:
        """All abs(h) of all elements."""
        return frozenset(abs(h) for table in self.integers for h in table)

    @property
    def weights(self) -> tuple[int, ...]:
        """The factors by selector; ones if there are none."""
        return self.factors or (1,) * len(self.elements)

    @property
    def factor_bits(self) -> int:
        """Bits behind the point of a factor; 0 without factors."""
        return max(self.factors, default=0).bit_length()

    @cached_property
    def significands(self) -> tuple[int, ...]:
        """What block sums are multiplied by, zero left out: significands of scales times factors, the lowest first."""
        own = {self.scale.significand(code) for code in range(self.scale.highest + 1)} - {0}
        return tuple(sorted({significand * factor for significand in own for factor in self.weights}))

    @property
    def significand_bits(self) -> int:
        """Bits of such a product; 0 where all of them are 1, so that nothing is multiplied."""
        return self.significands[-1].bit_length() if self.significands[-1] > 1 else 0

    @property
    def fraction_bits(self) -> int:
        """Bits behind the point of such a product."""
        return self.scale.mantissa_bits + self.factor_bits

    @cached_property
    def largest_weighted(self) -> int:
        """Largest abs(h) times factor."""
        kinds = zip(self.elements, self.weights, strict=True)
        return max(element.largest * factor for element, factor in kinds) << len(self.shifts)

    @cached_property
    def folds(self) -> tuple[int, ...]:
        """Folds of the elements, by selector."""
        return tuple(element.fold for element in self.elements)

    @property
    def extra_folds(self) -> tuple[int, ...]:
        """How far each element's fold is above the lowest, by selector: what the decoder of the scale adds."""
        return tuple(fold - min(self.folds) for fold in self.folds)

    @property
    def product_exponent(self) -> int:
        """An element's part of the lowest exponent of a product that is cut; where codes are added, of fields of 0."""
        element = self.elements[0]
        return element.lowest_exponent - element.fold - (1 if self.additive else 0)

    @property
    def lowest_exponent(self) -> int:
        """Lowest exponent of a block: scale exponent plus fold."""
        return self.scale.exponents[0] + min(self.folds)

    @property
    def highest_exponent(self) -> int:
        """Highest exponent of a block: scale exponent plus fold."""
        return self.scale.exponents[-1] + max(self.folds)


Formats = tuple[BlockFormat, BlockFormat]
"""Formats of A and B."""

"""What follows from a pair of formats: widths, ranges, and which shortcuts of the hardware hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hwgen.formats.block import BlockFormat

__all__ = ["Bounds"]

_LOWEST_EXPONENT = -126
"""Exponent of the smallest normal FP32 number."""
_LOWEST_BIT = -149
"""Exponent of the last bit of FP32's subnormal numbers."""
_HIGHEST_EXPONENT = 127
_FRACTION = 23
"""Fraction bits of an FP32 number."""
_DOUBLE = 53
"""Bits of a float64 significand, in which the golden model adds."""
_MOST_GROUPS = 8
_EXPONENT_BITS = 8
"""Bits of an FP32 exponent, and of the distances between exponents that the plain accumulator can tell apart."""


@dataclass(frozen=True)
class Bounds:
    """Widths and ranges of products, sums, terms and exponents of blocks of A times blocks of B.

    Parameters
    ----------
    a, b
        Formats of the operands; blocks of equal size.
    """

    a: BlockFormat
    b: BlockFormat

    @property
    def lanes(self) -> int:
        """Products in a block sum."""
        return self.a.lanes

    @property
    def window(self) -> int | None:
        """Bits behind the point of products that are kept, by the largest exponent of a block; None if all are."""
        if None in (self.a.window, self.b.window) and not (self.a.always_cut or self.b.always_cut):
            return None
        return self.b.window if self.a.window is None else self.a.window

    @property
    def may_be_infinite(self) -> bool:
        """Whether a product can be infinite."""
        return self.a.may_be_infinite or self.b.may_be_infinite

    @property
    def additive(self) -> bool:
        """Whether codes are added in the place of products."""
        return self.a.additive and self.b.additive

    @property
    def product_fraction(self) -> int:
        """Bits behind the point of a product of significands, where products are cut to a window."""
        bits = [form.elements[0].mantissa_bits for form in (self.a, self.b)]
        return max(bits) if self.additive else sum(bits)

    @property
    def window_shift(self) -> int:
        """How far a product of significands is shifted to the left in its window, where it has the largest exponent."""
        assert self.window is not None
        return self.window - self.product_fraction

    @property
    def product_span(self) -> int:
        """Largest less lowest exponent of a product, where products are cut to a window; else 0."""
        if self.window is None:
            return 0
        if self.additive:
            return sum(form.elements[0].largest_code for form in (self.a, self.b)) + 1 >> self.product_fraction
        return sum(form.elements[0].longest_shift for form in (self.a, self.b))

    @property
    def product_exponent(self) -> int:
        """Lowest exponent of a product that its block has a share of."""
        return 0 if self.window is None else self.a.product_exponent + self.b.product_exponent

    @property
    def largest_product(self) -> int:
        """Largest product of significands, where products are cut to a window."""
        if self.additive:
            return (2 << self.product_fraction) - 1
        return self.a.elements[0].largest_significand * self.b.elements[0].largest_significand

    @cached_property
    def largest_sum(self) -> int:
        """Largest magnitude of a block sum S: all lanes have the largest product."""
        if self.window is not None:
            return self.lanes * self.largest_product << self.window_shift
        return self.lanes * self.a.largest * self.b.largest

    @property
    def sum_width(self) -> int:
        """Width of S in two's complement."""
        return self.largest_sum.bit_length() + 1

    @cached_property
    def largest_term(self) -> int:
        """Largest magnitude of a term, T = S * sigA * sigB, the factors of the elements among the significands."""
        largest = self.lanes * self.a.largest_weighted * self.b.largest_weighted
        if self.window is not None:
            largest = self.largest_sum * max(self.a.weights) * max(self.b.weights)
        return largest * self.a.scale.largest_significand * self.b.scale.largest_significand

    @property
    def term_width(self) -> int:
        """Width of a term's magnitude."""
        return self.largest_term.bit_length()

    @property
    def term_fraction(self) -> int:
        """A term's value is T * 2^(E - term_fraction): what is behind the points of elements and of significands."""
        if self.window is not None:
            return self.window + self.a.fraction_bits + self.b.fraction_bits
        return sum(form.point + form.fraction_bits for form in (self.a, self.b))

    @property
    def lowest_exponent(self) -> int:
        """Lowest exponent E of a term: both scales subnormal, both folds the lowest."""
        return self.a.lowest_exponent + self.b.lowest_exponent + self.product_exponent

    @property
    def highest_exponent(self) -> int:
        """Highest exponent E of a term."""
        return self.a.highest_exponent + self.b.highest_exponent + self.product_exponent + self.product_span

    @property
    def exponent_offset(self) -> int:
        """Added to E in hardware, so that it starts at 0."""
        return -self.lowest_exponent

    @property
    def exponent_span(self) -> int:
        """Highest less lowest exponent of a term: the largest E with its offset."""
        return self.highest_exponent - self.lowest_exponent

    @property
    def exponent_bits(self) -> int:
        """Width of E with its offset."""
        return self.exponent_span.bit_length()

    def zero_is_lowest(self, fraction_bits: int) -> bool:
        """Whether a zero scale may as well have the exponent -126, beside whatever scale: it shows in no result.

        A block with a zero scale takes no part in emax. MMA-Sim gives such a scale -126 instead. Then emax may be that
        and the partner's exponent, and C is cut at 2^(emax - fraction_bits), if that is above the last bit of FP32.
        """
        partner = max(self.a.scale.exponents[-1], self.b.scale.exponents[-1])
        highest = _LOWEST_EXPONENT + partner + max(self.a.folds) + max(self.b.folds)
        return highest - fraction_bits <= _LOWEST_BIT

    @property
    def least_fraction_bits(self) -> int:
        """Fewest fraction bits of a step: what has the largest exponent is not cut, be it C's significand or a term."""
        return max(_FRACTION, self.term_fraction)

    def most_fraction_bits(self, groups: int = _MOST_GROUPS) -> int:
        """Most fraction bits of a step of so many groups whose sum the golden model adds without error.

        In units of the last place kept, terms are below largest_term * 2^(F - term_fraction) and C below 2^(F + 1).
        """
        bits, terms = self.term_fraction, groups * self.a.sums * self.largest_term
        while (terms << bits + 1 - self.term_fraction) + (1 << bits + 2) <= 1 << _DOUBLE:
            bits += 1
        return bits

    def sum_growth(self, count: int, fraction_bits: int) -> int:
        """Bits by which the sum of C and ``count`` terms is longer than an aligned term.

        Mostly those of the number of terms. C makes one more where the largest term nearly fills its word.
        """
        terms = count * self.largest_term << fraction_bits - self.term_fraction
        largest = terms + ((2 << _FRACTION) - 1 << fraction_bits - _FRACTION)
        aligned = self.term_width + fraction_bits - self.term_fraction
        return max((count - 1).bit_length(), largest.bit_length() - aligned)

    def subnormal_results(self, fraction_bits: int) -> bool:
        """Whether a sum with a term in it can be a subnormal FP32 number.

        A sum is a multiple of 2^(emax - fraction_bits), and emax is at least the lowest exponent of a term.
        """
        return self.lowest_exponent - fraction_bits < _LOWEST_EXPONENT

    def can_overflow(self, fraction_bits: int) -> bool:
        """Whether terms can reach a sum with a C of the highest exponent, so that a step overflows."""
        bits = self.term_width + self.highest_exponent - self.term_fraction
        return bits > _HIGHEST_EXPONENT - fraction_bits

    def distance_bits(self, fraction_bits: int) -> int:
        """Bits for exponents of terms, of C, and their distances; eight at least, as FP32 has them.

        A term is shifted by as much as C is ahead of the largest term and that one ahead of it, which is what C is
        ahead of the term; and by a power of two above its window, where it is to vanish. There C may be behind: then
        what the largest term is ahead counts alone.
        """
        window = self.term_width + fraction_bits - self.term_fraction
        ahead = max(_HIGHEST_EXPONENT + 1 - self.lowest_exponent, self.exponent_span) + (1 << window.bit_length())
        behind = self.highest_exponent + _HIGHEST_EXPONENT
        return max(ahead, behind, (1 << _EXPONENT_BITS) - 1).bit_length()

    def wide(self, fraction_bits: int) -> bool:
        """Whether a step takes an accumulator for subnormal and infinite sums, and for distances of any length."""
        long = self.distance_bits(fraction_bits) > _EXPONENT_BITS
        return long or self.subnormal_results(fraction_bits) or self.can_overflow(fraction_bits)

    @property
    def exact_unit(self) -> int:
        """Exact sums count units of 2^-exact_unit: a term of 1 with the lowest exponent."""
        return self.exponent_offset + self.term_fraction

    @cached_property
    def largest_exact_block(self) -> int:
        """Largest magnitude of one block in those units."""

        def largest(form: BlockFormat) -> int:
            scale = form.scale
            # The largest code need not have the largest significand: the highest one may be NaN.
            top = scale.significand(scale.highest) << scale.exponents[-1] - scale.exponents[0]
            elements = zip(form.elements, form.weights, form.extra_folds, strict=True)
            largest = max(element.largest * factor << extra for element, factor, extra in elements)
            return top * largest << len(form.shifts)

        return self.lanes * largest(self.a) * largest(self.b)

    @property
    def exact_in_double(self) -> bool:
        """Whether the golden model holds every block sum without error, in units of the smallest term."""
        return self.window is None and self.largest_exact_block <= 1 << _DOUBLE

    def exact_fits(self, blocks: int) -> bool:
        """Whether the rounding of exact sums of that many blocks is right: neither subnormal nor beyond FP32.

        Beside the sum, whose unit is 2^-exact_unit and whose magnitude is below 2^a, the adder has 25 places below the
        unit, and 25 above the sum where C is the result.
        """
        a = (blocks * self.largest_exact_block).bit_length() - self.exact_unit
        return a + _FRACTION + 2 <= _HIGHEST_EXPONENT and self.exact_unit + _FRACTION + 4 <= -_LOWEST_EXPONENT

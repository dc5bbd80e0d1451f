"""The number formats, as data.

Magnitudes are kept in half-units (multiples of 0.5) so that every table is one of integers.

Sources: MixFP4, arXiv 2605.31035 (E2M1, E1M2, E2M2 and the format tag); NVIDIA NVFP4 (blocks of 16
with an E4M3 scale); OCP 8-bit Floating Point specification, section 5 (E4M3).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BLOCK_FORMATS",
    "BLOCK_SIZE",
    "E1M2",
    "E2M1",
    "E4M3_BIAS",
    "BlockFormat",
    "ElementFormat",
]

BLOCK_SIZE = 16
"""Consecutive elements along K that share one block scale."""

E4M3_BIAS = 7
"""Exponent bias of the block scale."""


@dataclass(frozen=True)
class ElementFormat:
    """A four-bit sign-magnitude element format; bit 3 of a code is the sign.

    Parameters
    ----------
    name
        Name in the literature.
    exponent_bits, mantissa_bits
        Field widths; together three bits.
    bias
        Exponent bias; exponent field 0 holds the subnormals.
    fold
        Power of two that multiplies every value and that the block exponent carries instead
        ("folded"), so that the magnitudes below stay on the half-unit grid.
    tag
        Value of bit 7 of the block scale that selects this format.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    fold: int
    tag: int

    def half_units(self, code: int) -> int:
        """Magnitude of a code in half-units, fold not applied."""
        mantissa = code & ((1 << self.mantissa_bits) - 1)
        exponent = (code & 7) >> self.mantissa_bits
        significand = mantissa | (1 << self.mantissa_bits if exponent else 0)
        return (significand << (max(exponent, 1) - self.bias + 1)) >> self.mantissa_bits

    @property
    def largest(self) -> int:
        """Largest magnitude in half-units, fold not applied."""
        return max(self.half_units(code) for code in range(8))


E2M1 = ElementFormat("E2M1", exponent_bits=2, mantissa_bits=1, bias=1, fold=0, tag=0)
E1M2 = ElementFormat("E1M2", exponent_bits=1, mantissa_bits=2, bias=0, fold=1, tag=1)


@dataclass(frozen=True)
class BlockFormat:
    """A block-scaled format: the element formats that a block may take, by tag.

    Parameters
    ----------
    name
        ``nvfp4`` or ``mixfp4``.
    elements
        Element formats; with more than one, bit 7 of the block scale selects.
    """

    name: str
    elements: tuple[ElementFormat, ...]

    @property
    def tagged(self) -> bool:
        """Whether bit 7 of the block scale selects the element format."""
        return len(self.elements) > 1

    @property
    def largest(self) -> int:
        """Largest element magnitude in half-units."""
        return max(element.largest for element in self.elements)


BLOCK_FORMATS = {
    "nvfp4": BlockFormat("nvfp4", (E2M1,)),
    "mixfp4": BlockFormat("mixfp4", (E2M1, E1M2)),
}
"""Block formats by name."""

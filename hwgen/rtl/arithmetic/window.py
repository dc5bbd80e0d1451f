"""Windows: where the bits of a fixed-point word stand."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Window"]


@dataclass(frozen=True)
class Window:
    """The places of a fixed-point word: bit i weighs 2^(unit + i).

    Parameters
    ----------
    width
        Number of bits.
    unit
        Exponent of the lowest place.
    """

    width: int
    unit: int

    @property
    def top(self) -> int:
        """Exponent of the first place above the word."""
        return self.unit + self.width

    @property
    def emptying(self) -> int:
        """Logarithm of the smallest power of two above the width: by as many places the whole word is shifted out."""
        return self.width.bit_length()

    def down_to(self, unit: int) -> Window:
        """The same highest place, and places down to 2^unit."""
        assert unit <= self.unit, f"2^{unit} lies above the lowest place, 2^{self.unit}: bits would be lost unshifted"
        return Window(self.top - unit, unit)

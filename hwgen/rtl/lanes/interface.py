"""What a micro-architecture of the dot product says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value, ValueLike
from amaranth.lib import data

from hwgen.config import TensorCoreConfig
from hwgen.formats import BLOCK_SIZE

__all__ = ["Lanes", "half_units", "signed_half_units", "transposed"]


class Lanes(ABC):
    """One micro-architecture of the dot product.

    ::

        code, tag --[decode]--> lane --+                                decode: once per row, at the edge of the array
                          16 lanes ----+--> [word]                      word: one value per block, at the edge too
        lanes and words of A and B --[total]--> S                       total: in every processing element

    Parameters
    ----------
    config
        Tensor core configuration.

    Attributes
    ----------
    symmetric : bool
        Operands A and B are decoded alike, if both have tags or neither has.
    """

    symmetric = True

    def __init__(self, config: TensorCoreConfig) -> None:
        self.config = config

    @abstractmethod
    def layout(self, side: str) -> data.StructLayout:
        """Layout of one decoded number of operand ``side``, ``a`` or ``b``."""

    def stored_layout(self, side: str) -> data.StructLayout:
        """Layout of what a register behind the decoder holds of a number; `restored` gives the rest."""
        return self.layout(side)

    def restored(self, side: str, stored: Any) -> Mapping[str, ValueLike]:
        """Fields of `layout` for those of `stored_layout`."""
        return {name: getattr(stored, name) for name, _ in self.layout(side)}

    @abstractmethod
    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """Fields of `layout` for a code; ``tag`` is 1 in an E1M2 block, None where there are none."""

    def word_width(self, side: str) -> int:
        """Bits of the value that the decoders hand over per block, beside its lanes; 0 is none."""
        return 0

    def word(self, m: Module, side: str, lanes: Any, tag: Value | None) -> Value:
        """Value per block, of all its decoded lanes."""
        raise NotImplementedError

    @abstractmethod
    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value]) -> Value:
        """Sum S of the contract, in half-units, of the decoded lanes of both operands, and of words by side."""

    @property
    def sum_width(self) -> int:
        """Width of S: sign and 16 times the square of the largest half-unit magnitude."""
        return (BLOCK_SIZE * self.config.block_format.largest**2).bit_length() + 1


def half_units(code: Value, tag: Value | None) -> Value:
    """Magnitude of a code in half-units, 4 bits: 0 1 2 3 4 6 8 12 in E2M1, the code itself in E1M2."""
    c0, c1, c2 = code[0], code[1], code[2]
    upper = c2 if tag is None else c2 & ~tag
    return Cat(c0 & ~upper, Mux(upper, c0 & ~c1, c1), c2 & ~(upper & c1 & ~c0), upper & c1)


def signed_half_units(code: Value, tag: Value | None) -> Value:
    """A code in half-units, two's complement, 5 bits."""
    magnitude = half_units(code, tag)
    return Mux(code[3], -magnitude, magnitude)


def transposed(lanes: Any, field: str, width: int) -> list[Value]:
    """Bit by bit of a field, one word with that bit of all lanes each."""
    return [Cat(*(getattr(lane, field)[place] for lane in lanes)) for place in range(width)]

"""What a micro-architecture of the dot product says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value, ValueLike
from amaranth.lib import data

from hwgen.config import TensorCoreConfig
from hwgen.formats import E1M2, E2M1, BlockFormat
from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.arithmetic.truth_table import lookup

__all__ = ["Lanes", "is_negative", "magnitude_of", "signed_integer", "tabled_integer", "transposed"]

# Most lanes of a short sum.
_SHORT = 16


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
        Operands A and B are decoded alike, if they have one format.
    shifts_sums : bool
        Shifts of sub-groups are left to the sums; decoders of elements know nothing of them.
    holds_sums : bool
        The register ``sums`` stands before the last adder, not behind it.
    last_width : int
        Bits of each of the last two words, where an adder of its own is behind them, see `hwgen.rtl.last_adder`: sums
        are long there. 0 for lanes that add them up themselves.
    words_width : int
        Bits of each of the two words that `two_words` gives; 0 for lanes that do not.
    held : tuple of int
        Bits that no column of a carry-save tree has more of where the register ``tree`` stands: for sums of up to 16
        lanes, and for longer ones. What is before the register decides on the clock there.
    shared : bool
        The lanes also multiply the significands of a slot, see `hwgen.rtl.lanes.sharing`.
    """

    symmetric = True
    shifts_sums = False
    holds_sums = False
    last_width = 0
    words_width = 0
    held = 2, 4
    shared = False

    def __init__(self, config: TensorCoreConfig) -> None:
        self.config = config

    @abstractmethod
    def layout(self, side: str) -> data.StructLayout:
        """Layout of one decoded number of operand ``side``, ``a`` or ``b``."""

    @abstractmethod
    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """Fields of `layout` for a code.

        ``tag`` selects the element format, or has the bits of the element's sub-groups; None where there is neither.
        """

    def with_significand(self, side: str, index: int, lane: Any, significand: Value) -> Mapping[str, ValueLike]:
        """Fields of lane ``index`` of a block, where slots share lanes: of one of FP4, or of a step at half the rate.

        Either ``lane`` is zero, or ``significand``, that of element ``index // 2``.
        """
        raise NotImplementedError

    def word_width(self, side: str) -> int:
        """Bits of the value that the decoders hand over per block, beside its lanes; 0 is none."""
        return 0

    def word(self, m: Module, side: str, lanes: Any, tag: Value | None) -> Value:
        """Value per block sum, of all its decoded lanes.

        ``tag`` selects the element format, or has the bits of all sub-groups, see `hwgen.rtl.decode.operand.sum_tag`.
        """
        raise NotImplementedError

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """Sum S of the contract, of the decoded lanes of both operands, and of words by side.

        If there is a ``register``, everything on the way goes through it once: where two words are left, or a few more.
        Only of lanes without `last_width`.
        """
        raise NotImplementedError

    @property
    def says_below(self) -> bool:
        """Beside the sum there is what is one less: of long sums that are scaled, which takes abs(S)."""
        return self.last_width > 0 and not self.config.adds_sums

    def last_words(self, m: Module, a: Any, b: Any) -> tuple[list[Value], list[Value]]:
        """Words of at most `last_width` bits and single bits, whose sum is S - 1, its top bit inverted.

        They are what the register ``tree`` holds.

        Only of lanes with such a width, but for those that cut products to a window, which do it in parts.
        """
        raise NotImplementedError

    def two_words(
        self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None
    ) -> tuple[Value, Value]:
        """Two words of ``words_width`` bits, not negative, whose sum is S + `words_above`; as `total` otherwise."""
        raise NotImplementedError

    @property
    def words_above(self) -> int:
        """How far the sum of the words that `two_words` gives is above S."""
        raise NotImplementedError

    @property
    def sum_width(self) -> int:
        """Width of S, see `hwgen.formats.Bounds`."""
        return self.config.bounds.sum_width

    @property
    def _height(self) -> int:
        """The entry of ``held`` for sums as long as these."""
        return self.held[self.config.bounds.lanes > _SHORT]


def magnitude_of(form: BlockFormat, code: Value, tag: Value | None) -> Value:
    """Magnitude abs(h) of a code, as many bits as the largest one takes: from the tables of the format's elements.

    For E2M1 and for E1M2 beside it the gates are drawn by hand; the tests prove them equal to the tables.
    """
    if form.shifts or form.elements not in ((E2M1,), (E2M1, E1M2)):
        table = [abs(h) for integers in form.integers for h in integers]
        return lookup(code if tag is None else Cat(code, tag), table, form.largest.bit_length(), form.nans)
    c0, c1, c2 = code[0], code[1], code[2]
    upper = c2 if tag is None else c2 & ~tag
    return Cat(c0 & ~upper, Mux(upper, c0 & ~c1, c1), c2 & ~(upper & c1 & ~c0), upper & c1)


def is_negative(form: BlockFormat, code: Value, tag: Value | None) -> Value:
    """Whether a code is negative: its top bit, which may also be set where the magnitude is zero.

    But for formats whose -0 is a positive number: there it is what the tables say.
    """
    if all(element.signed_by_top_bit for element in form.elements):
        return code[-1]
    table = [int(h < 0) for integers in form.integers for h in integers]
    return lookup(code if tag is None else Cat(code, tag), table, 1, form.nans)


def signed_integer(form: BlockFormat, code: Value, tag: Value | None) -> Value:
    """The integer h of a code, two's complement, one bit more than its magnitude."""
    absolute = magnitude_of(form, code, tag)
    return Mux(is_negative(form, code, tag), -absolute, absolute)


def tabled_integer(form: BlockFormat, code: Value, tag: Value | None) -> Value:
    """The integer h of a code, two's complement, as few bits as that takes: from the tables of its elements."""
    table = [h & (1 << form.signed_width) - 1 for integers in form.integers for h in integers]
    return lookup(code if tag is None else Cat(code, tag), table, form.signed_width, form.nans)


def transposed(lanes: Any, field: str, width: int) -> list[Value]:
    """Bit by bit of a field, one word with that bit of all lanes each."""
    return [Cat(*(getattr(lane, field)[place] for lane in lanes)) for place in range(width)]

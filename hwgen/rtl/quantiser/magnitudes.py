"""The choice between two candidates of a block by its numbers alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.rtl.arithmetic.carry_save import add_columns
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.choice import square

__all__ = ["MagnitudeChoice"]


class MagnitudeChoice(Part):
    """Whether the numbers of a block ask for the second candidate.

    ::

        largest --> [bounds, or square] --> (quotients) --> [compare, count] --------------------------> second
        magnitudes ---------------------------------------> [squares, tree] --> (scales) --> [add] --> second

    The second largest number, and the gap of E2M1: a number counts from 3/4 of the largest one on, so only those that
    are less than two binades below it can. The crest factor: 4 x sum of Y^2 >= 13 Y_P^2, divided by 4 and subtracted.
    Y_P^2 is 0 or 1 modulo 4, so that a quarter of it, rounded up, is its upper bits and its lowest one. Blocks out of
    the range of exponents have no choice: their scale is 0, or saturates.

    Parameters
    ----------
    config
        The quantiser, with a rule by magnitudes.

    Attributes
    ----------
    largest : In(error_bits)
        The largest magnitude, from its leading one on.
    magnitudes : In(ArrayLayout(error_bits, 16))
        Numbers behind ``quotients``, see `QuantiserLane`.
    enable_quotients, enable_scales : In(1)
        Load the registers; each where the pipeline has it, ``scales`` with the crest factor only.
    second : Out(1)
        Before ``scales``; with the crest factor behind it.
    """

    module_name = "choice"

    def __init__(self, config: QuantiserConfig) -> None:
        members = {
            "largest": In(config.error_bits),
            "magnitudes": In(data.ArrayLayout(config.error_bits, BLOCK)),
            "second": Out(1),
        }
        possible = ("quotients", "scales") if config.by_crest_factor else ("quotients",)
        mine = [register for register in possible if register in config.registers]
        self.registers, self.latency = bool(mine), len(mine)
        super().__init__(config, members | {f"enable_{register}": In(1) for register in mine})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spread = self._low_crest(m) if self.config.by_crest_factor else self._near(m)
        # Of E1M2 and E2M1 the second is the coarser at the top; of 6 and 4 it is the finer.
        finer = self.config.candidates[0].evenly_spaced
        m.d.comb += self.second.eq(~spread if finer else spread)
        return m

    def _near(self, m: Module) -> Value:
        """Whether a number is in the gap; or two are from 3/4 of the largest on, itself one of them."""
        largest = self.largest
        gap = self.config.selection == "gap"
        bounds: dict[str, Value] = {"from": (largest - (largest >> 2))[: len(largest)]}
        if gap:
            bounds["below"] = (largest - (largest >> 4))[: len(largest)]
        bounds = self.held(m, "quotients", "enable_quotients", bounds)
        near = Signal(BLOCK)
        for index, magnitude in enumerate(self.magnitudes):
            counts = magnitude >= bounds["from"]
            m.d.comb += near[index].eq(counts & (magnitude < bounds["below"]) if gap else counts)
        return near.any() if gap else _two(list(near))

    def _low_crest(self, m: Module) -> Value:
        bits = self.config.error_bits
        product = Signal(2 * bits, name="largest_square")
        m.d.comb += product.eq(self.largest * self.largest)
        largest_square = self.held(m, "quotients", "enable_quotients", {"square": product})["square"]
        columns: dict[int, list[Value]] = defaultdict(list)
        for magnitude in self.magnitudes:
            for place, bit in square(magnitude, 0):
                columns[place].append(bit)
        constant = 0
        # 13/4 = 2 + 1 + 1/4. -b is the inverse of b, less 1.
        for place, word in ((1, largest_square), (0, largest_square), (0, largest_square[2:]), (0, largest_square[:1])):
            for index, bit in enumerate(word):
                columns[place + index].append(~bit)
                constant -= 1 << place + index
        width = 2 * bits + 5

        def register(values: dict[str, Value]) -> dict[str, Value]:
            return self.held(m, "scales", "enable_scales", values)

        total = add_columns(
            m, columns, width=width, constant=constant % (1 << width), register=register, name="difference"
        )
        return ~total[-1]


def _two(bits: Sequence[Value]) -> Value:
    """Whether at least two bits are set."""
    some, several = list(bits), [bits[0] & bits[1] for bits in zip(bits[::2], bits[1::2], strict=True)]
    while len(some) > 2:
        some = [one | other for one, other in zip(some[::2], some[1::2], strict=True)]
        several = [
            several[2 * pair] | several[2 * pair + 1] | (some[2 * pair] & some[2 * pair + 1])
            for pair in range(len(some) // 2)
        ]
    return several[0]

"""The choice between two candidates of a block, by their errors."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.rtl.arithmetic.carry_save import add_columns
from hwgen.rtl.hierarchy import Part

__all__ = ["Choice", "counted_lanes", "square"]


_LEFT_OUT = 3
"""Products of two bits of an error that count less than 2^(its bits less this) are not in its square."""


def counted_lanes(config: QuantiserConfig) -> range:
    """Lanes whose errors count."""
    return range(0, BLOCK, 2 if config.selection == "sampled-error" else 1)


class Choice(Part):
    """Whether the errors of the second candidate are less than those of the first.

    The sum of squares, or of magnitudes, of the second less that of the first: one carry-save tree of all partial
    products, those of the first inverted. Its sign is the answer. Or the largest of each.

    Parameters
    ----------
    config
        The quantiser, with two candidates.

    Attributes
    ----------
    errors0, errors1 : In(ArrayLayout(kept_bits, lanes))
        Of the candidates.
    enable_sums : In(1)
        Load the register ``sums``; where the pipeline has it.
    second : Out(1)
    """

    module_name = "choice"

    def __init__(self, config: QuantiserConfig) -> None:
        members = {
            f"errors{index}": In(data.ArrayLayout(bits, len(counted_lanes(config))))
            for index, bits in enumerate(config.kept_bits)
        }
        members["second"] = Out(1)
        self.registers = "sums" in config.registers
        self.latency = int(self.registers)
        if self.registers:
            members["enable_sums"] = In(1)
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        register = partial(self.held, m, "sums", "enable_sums") if self.registers else None
        if self.config.selection == "largest-error":
            found: dict[str, Value] = {}
            for name in ("errors0", "errors1"):
                found[name] = _largest(m, list(getattr(self, name)), name)
            found = found if register is None else register(found)
            m.d.comb += self.second.eq(found["errors1"] < found["errors0"])
            return m
        squares = self.config.selection != "absolute-error"
        bits, lanes = self.config.error_bits, len(self.errors0)
        width = (2 * bits if squares else bits) + lanes.bit_length()
        least = max(bits - _LEFT_OUT, 0)
        columns: dict[int, list[Value]] = defaultdict(list)
        constant = 0
        for first, second in zip(self.errors0, self.errors1, strict=True):
            for place, bit in square(second, least) if squares else enumerate(second):
                columns[place].append(bit)
            # -b is the inverse of b, less 1.
            for place, bit in square(first, least) if squares else enumerate(first):
                columns[place].append(~bit)
                constant -= 1 << place
        total = add_columns(
            m, columns, width=width, constant=constant % (1 << width), register=register, name="difference"
        )
        m.d.comb += self.second.eq(total[-1])
        return m


def square(number: Value, least: int) -> list[tuple[int, Value]]:
    """Bits of a square with their places; of two bits next to one another one product stands for the two equal ones.

    Products at places below the least are left out.
    """
    found = []
    for high in range(len(number)):
        if 2 * high >= least:
            # A bit and its product with the next lower one have the same place: the sum of both is 0, 1 or 2.
            below = number[high - 1] if high else Const(0, 1)
            found += [(2 * high, number[high] & ~below), (2 * high + 1, number[high] & below)][: 2 if high else 1]
        found += [(high + low + 1, number[high] & number[low]) for low in range(high - 1) if high + low + 1 >= least]
    return found


def _largest(m: Module, values: list[Value], name: str) -> Value:
    while len(values) > 1:
        following: list[Value] = []
        for x, y in zip(values[::2], values[1::2], strict=True):
            larger = Signal(len(x), name=f"{name}_of{len(values)}_{len(following)}")
            m.d.comb += larger.eq(Mux(x > y, x, y))
            following.append(larger)
        values = following
    return values[0]

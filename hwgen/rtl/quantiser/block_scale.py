"""The block scale of one candidate: a short division, its rounding to UE4M3, and multiples of the step W."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import Candidate, QuantiserConfig
from hwgen.rtl.arithmetic.shifters import shift_left
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.multiples import VALUES, odd_multiples, step_width

__all__ = ["BlockScale"]

_LARGEST = 0x7E
"""UE4M3 of 448."""
_STEPS = 4
"""Bits of a quotient below its leading one: three of the significand, and one to round by."""


class BlockScale(Part):
    """UE4M3 of b / (top x s), to nearest, ties to the even code; and W = S x sg x 2^shift with its odd multiples.

    ::

        fraction --> [leading one] --> [two digits of two bits] --> (quotients) --> [round] --+--> (bounds) --> code
                                                                                              |
        tensor_fraction --------------------------------------------> [S x sg, shift, multiples] --> (bounds) --> w1 ..

    The outputs stand behind ``bounds``, if the pipeline has it.

    Why it is right: the quotient of two significands is between 2/7 and 2, so that its leading one is at one of three
    places. Four more bits, and whether anything is left, round it.

    Parameters
    ----------
    config
        The quantiser.
    which
        Index of the candidate, in digits.

    Attributes
    ----------
    fraction : In
        Bits of the largest magnitude behind its leading one.
    place : In(signed(5))
        a - es of the contract, -7 to 14.
    empty : In(1)
        The scale is 0.
    tensor_fraction : In(p - 1)
        Significand of the tensor scale without its leading one.
    enable_quotients, enable_bounds, enable_codes : In(1)
        Load the registers; each where the pipeline has it.
    code : Out(7)
        Of the scale.
    saturated : Out(1)
        It should be above 448.
    live : Out(1)
        The scale is not 0.
    w1, w3 .. : Out
        Odd multiples of W, see `odd_multiples`.
    v1, v3 : Out
        Those that errors are counted from, behind ``codes``; only with two candidates.
    """

    def __init__(self, config: QuantiserConfig, which: str) -> None:
        self.candidate: Candidate = config.candidates[int(which)]
        self.module_name = f"block_scale{which if int(which) else ''}"
        members = {
            "fraction": In(config.numbers.fraction),
            "place": In(signed(5)),
            "empty": In(1),
            "tensor_fraction": In(config.tensor_scale_bits - 1),
        }
        mine = [register for register in ("quotients", "bounds", "codes") if register in config.registers]
        members |= {f"enable_{register}": In(1) for register in mine}
        self.registers, self.latency = bool(mine), len(mine)
        self.odd = odd_multiples(config, self.candidate)
        members |= {"code": Out(7), "saturated": Out(1), "live": Out(1)}
        widths = {odd: step_width(config, self.candidate, odd) for odd in self.odd}
        members |= {f"w{odd}": Out(width) for odd, width in widths.items()}
        if config.chooses:
            members |= {f"v{odd}": Out(widths[odd]) for odd in VALUES}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        significand = Cat(self.tensor_fraction, Const(1, 1))
        found = self.held(m, "quotients", "enable_quotients", self._quotient(m, significand))
        code, saturated = self._rounded(m, found)
        live = Signal()
        step = self._step(m, significand, code, found["place"])
        outputs: dict[str, Value] = {"code": code, "saturated": saturated & ~found["empty"], "live": live}
        m.d.comb += live.eq(code.any())
        products = {1: step}
        for odd in self.odd:
            if odd > 1:
                products[odd] = Signal(step_width(self.config, self.candidate, odd), name=f"times{odd}")
                m.d.comb += products[odd].eq(_times(products, odd))
            outputs[f"w{odd}"] = products[odd]
        outputs = self.held(m, "bounds", "enable_bounds", outputs)
        if self.config.chooses:
            outputs |= self.held(m, "codes", "enable_codes", {f"v{odd}": outputs[f"w{odd}"] for odd in VALUES})
        for name, value in outputs.items():
            m.d.comb += getattr(self, name).eq(value)
        return m

    def _quotient(self, m: Module, significand: Value) -> dict[str, Value]:
        """Leading bits of the quotient, whether a remainder is left, and where its code of UE4M3 begins."""
        top = self.candidate.top
        twos = (top & -top).bit_length() - 1
        divisor = Signal((((1 << self.config.tensor_scale_bits) - 1) * (top >> twos)).bit_length(), name="divisor")
        m.d.comb += divisor.eq(_times({1: significand}, top >> twos))
        thrice = Signal(len(divisor) + 2)
        m.d.comb += thrice.eq((divisor << 1) + divisor)
        point = self.config.tensor_scale_bits + 1 - twos  # bits of the divisor behind the point
        places = 2 if top == 4 else 3
        # The dividend, from 1 to 2, with the bits that are brought down and all below them.
        length = max(self.config.numbers.fraction, point + places - 1 + _STEPS)
        dividend = Cat(Const(0, length - self.config.numbers.fraction), self.fraction, Const(1, 1))

        differences = []
        for zeros in range(places):
            shifted = dividend[length - point - zeros :]
            difference = Signal(max(len(shifted), len(divisor)) + 1, name=f"difference{zeros}")
            m.d.comb += difference.eq(shifted - divisor)
            differences.append(difference)
        # Whether the leading one is at 1, or else at 1/2.
        at = [~difference[-1] for difference in differences[:-1]]

        def of_place(values: list[Value]) -> Value:
            chosen = values[-1]
            for here, value in zip(reversed(at), reversed(values[:-1]), strict=True):
                chosen = Mux(here, value, chosen)
            return chosen

        remainder: Value = of_place([difference[: len(divisor)] for difference in differences])
        bits: list[Value] = []
        for step in range(0, _STEPS, 2):
            down = of_place([dividend[length - point - zeros - step - 2 :][:2] for zeros in range(places)])
            digit, remainder = _digit(m, Cat(down, remainder), divisor, thrice, f"step{step}")
            bits = [*digit, *bits]
        below = [dividend[: length - point - zeros - _STEPS].any() for zeros in range(places)]
        zeros = of_place([Const(place, 2) for place in range(places)])
        # One less than the exponent field of the code, before rounding; what is below 0 shifts its significand.
        above, lost, field = Signal(signed(6)), Signal(3), Signal(5)
        m.d.comb += [
            above.eq(self.place + 3 - zeros),
            lost.eq(Mux(above[-1], -above, 0)),
            field.eq(Mux(above[-1], 0, above + 1)),
        ]
        return {
            "quotient": Cat(*bits),
            "sticky": remainder.any() | of_place(below),
            "lost": lost,
            "field": field,
            "empty": self.empty,
            "place": self.place[:3],
        }

    def _rounded(self, m: Module, found: dict[str, Value]) -> tuple[Signal, Signal]:
        """The code of UE4M3, and whether it should be above the largest."""
        word = Cat(found["quotient"], Const(1, 1))
        sticky = found["sticky"]
        for stage, select in enumerate(found["lost"]):
            by = 1 << stage
            sticky = sticky | (select & word[:by].any())
            shifted = Signal(5, name=f"lost{by}")
            m.d.comb += shifted.eq(Mux(select, word >> by, word))
            word = shifted
        total, code, saturated = Signal(8), Signal(7), Signal()
        up = word[0] & (sticky | word[1])
        # The leading one is the lowest bit of the field where that is not 0.
        m.d.comb += [
            total.eq(Cat(word[1:4], found["field"]) + up),
            saturated.eq(total > _LARGEST),
            code.eq(Mux(found["empty"], 0, Mux(saturated, _LARGEST, total[:7]))),
        ]
        return code, saturated

    def _step(self, m: Module, significand: Value, code: Value, place: Value) -> Value:
        """W, from the code of the scale and the low bits of a - es."""
        field = code[3:]
        normal = field.any()
        product = Signal(self.config.tensor_scale_bits + 4)
        m.d.comb += product.eq(Cat(code[:3], normal) * significand)
        distance = Signal(3)
        # The exponent field, at least 1, less 1 and less a - es; it is from 0 to 7.
        m.d.comb += distance.eq(field - normal - place)
        return shift_left(m, product, distance, width=step_width(self.config, self.candidate, 1), name="step")


def _digit(m: Module, word: Value, divisor: Value, thrice: Value, name: str) -> tuple[Value, Value]:
    """Two bits of a quotient, and the remainder; the word is less than four times the divisor."""
    left: list[Value] = []
    for times, multiple in enumerate((divisor, divisor << 1, thrice), start=1):
        difference = Signal(len(word) + 1, name=f"{name}_less{times}")
        m.d.comb += difference.eq(word - multiple)
        left.append(difference)
    one, two, three = (~difference[-1] for difference in left)
    remainder = Signal(len(divisor), name=f"{name}_remainder")
    m.d.comb += remainder.eq(Mux(two, Mux(three, left[2], left[1]), Mux(one, left[0], word)))
    return Cat(three | (one & ~two), two), remainder


def _times(products: Mapping[int, Value], odd: int) -> Value:
    """An odd multiple of ``products[1]``, by one addition; ``products`` has those below it that it is made of."""
    one = products[1]
    if odd == 1:
        return one
    if odd == 7:
        return (one << 3) - one
    high = 1 << odd.bit_length() - 1
    return (one << odd.bit_length() - 1) + products[odd - high]

"""The code of a block scale: a short division, and its rounding to UE4M3."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Member, Out

from hwgen.config.quantiser import Candidate, QuantiserConfig
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.multiples import times

__all__ = ["Division", "ScaleDivision", "low_bits"]

_LARGEST = 0x7E
"""UE4M3 of 448."""
_ABOVE = 14
"""Stands for an exponent above the highest one."""
_STEPS = 4
"""Bits of a quotient below its leading one: three of the significand, and one to round by."""


class Division(Part):
    """What divides the largest number of a block by top x s: UE4M3 of the quotient, to nearest, ties to the even code.

    Why it is right: the quotient of two significands is between 2/7 and 2, so that its leading one is at one of three
    places. Four more bits, and whether anything is left, round it.

    Parameters
    ----------
    config
        The quantiser.
    which
        Index of the candidate, in digits.
    registers
        Those of the pipeline that it may have.
    members
        Further ones of its signature.

    Attributes
    ----------
    fraction : In(fraction)
        Bits of the largest magnitude behind its leading one.
    exponent : In(signed(5))
        a - es of the contract, -7 to 13; 14 where it is above that, and the scale saturates.
    empty : In(1)
        The scale is 0.
    tensor_fraction : In(p - 1)
        Significand of the tensor scale without its leading one.
    enable_quotients .. : In(1)
        Load the registers; each where the pipeline has it.
    code : Out(7)
        Of the scale.
    saturated : Out(1)
        It should be above 448.
    """

    def __init__(
        self, config: QuantiserConfig, which: str, registers: tuple[str, ...], members: dict[str, Member]
    ) -> None:
        self.candidate: Candidate = config.candidates[int(which)]
        found = {
            "fraction": In(config.fraction),
            "exponent": In(signed(5)),
            "empty": In(1),
            "tensor_fraction": In(config.tensor_scale_bits - 1),
        }
        mine = [register for register in registers if register in config.registers]
        found |= {f"enable_{register}": In(1) for register in mine}
        self.registers, self.latency = bool(mine), len(mine)
        found |= {"code": Out(7), "saturated": Out(1)}
        super().__init__(config, found | members)

    def _divided(self, m: Module, significand: Value, beside: dict[str, Value]) -> dict[str, Value]:
        """The code, whether it saturates, and what goes beside them: behind ``quotients``."""
        most = ((1 << self.config.tensor_scale_bits) - 1) * self.candidate.top
        # Without the powers of two of the top.
        self._divisor = Signal((most // (self.candidate.top & -self.candidate.top)).bit_length(), name="divisor")
        self._thrice = Signal(len(self._divisor) + 2, name="thrice")
        found = self._quotient(m, significand) | beside
        constant = {name: value for name, value in found.items() if isinstance(value, Const)}
        registered = {name: value for name, value in found.items() if name not in constant}
        found = constant | self.held(m, "quotients", "enable_quotients", registered)
        code, saturated = self._rounded(m, found)
        outputs: dict[str, Value] = {"code": code, "saturated": saturated & ~found["empty"]}
        return outputs | {name: found[name] for name in beside}

    def _quotient(self, m: Module, significand: Value) -> dict[str, Value]:
        """Leading bits of the quotient, whether a remainder is left, and where its code of UE4M3 begins."""
        top = self.candidate.top
        twos = (top & -top).bit_length() - 1
        divisor = self._divisor
        m.d.comb += [
            divisor.eq(times(significand, top >> twos)),
            self._thrice.eq((divisor << 1) + divisor),
        ]
        point = self.config.tensor_scale_bits + 1 - twos  # bits of the divisor behind the point
        places = 2 if top == 4 else 3
        # The dividend, from 1 to 2, with the bits that are brought down and all below them.
        length = max(self.config.fraction, point + places - 1 + _STEPS)
        dividend = Cat(Const(0, length - self.config.fraction), self.fraction, Const(1, 1))

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
        # Of a short dividend all bits are in the differences.
        down: Value = Const(0, _STEPS)
        below: Value = Const(0, 1)
        if self.config.fraction > point:
            down = of_place([dividend[length - point - zeros - _STEPS :][:_STEPS] for zeros in range(places)])
        if self.config.fraction > point + _STEPS:
            below = of_place([dividend[: length - point - zeros - _STEPS].any() for zeros in range(places)])
        digit, remainder = self._digit(m, Cat(down[2:], remainder), "step0")
        zeros = of_place([Const(place, 2) for place in range(places)])
        # One less than the exponent field of the code, before rounding; what is below 0 shifts its significand.
        above, lost, field = Signal(signed(6)), Signal(3), Signal(5)
        m.d.comb += [
            above.eq(self.exponent + 3 - zeros),
            lost.eq(Mux(above[-1], -above, 0)),
            field.eq(Mux(above[-1], 0, above + 1)),
        ]
        return {
            "digit": digit,
            "remainder": remainder,
            "down": Const(0, 2) if isinstance(down, Const) else down[:2],
            "below": below,
            "lost": lost,
            "field": field,
            "empty": self.empty,
        }

    def _digit(self, m: Module, word: Value, name: str) -> tuple[Value, Value]:
        """Two bits of a quotient, and the remainder; the word is less than four times the divisor."""
        left: list[Value] = []
        for count, multiple in enumerate((self._divisor, self._divisor << 1, self._thrice), start=1):
            difference = Signal(len(word) + 1, name=f"{name}_less{count}")
            m.d.comb += difference.eq(word - multiple)
            left.append(difference)
        one, two, three = (~difference[-1] for difference in left)
        remainder = Signal(len(self._divisor), name=f"{name}_remainder")
        m.d.comb += remainder.eq(Mux(two, Mux(three, left[2], left[1]), Mux(one, left[0], word)))
        return Cat(three | (one & ~two), two), remainder

    def _rounded(self, m: Module, found: dict[str, Value]) -> tuple[Signal, Signal]:
        """The code of UE4M3, and whether it should be above the largest."""
        digit, remainder = self._digit(m, Cat(found["down"], found["remainder"]), "step1")
        word = Cat(digit, found["digit"], Const(1, 1))
        sticky = remainder.any() | found["below"]
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


class ScaleDivision(Division):
    """The division alone, of a quantiser that chooses before the code of its scale is used; for more see `Division`.

    Parameters
    ----------
    config
        The quantiser.
    which
        Index of the candidate, in digits.
    """

    def __init__(self, config: QuantiserConfig, which: str) -> None:
        self.module_name = f"scale_division{which if int(which) else ''}"
        super().__init__(config, which, ("quotients",), {})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outputs = self._divided(m, Cat(self.tensor_fraction, Const(1, 1)), {})
        m.d.comb += [getattr(self, name).eq(value) for name, value in outputs.items()]
        return m


def low_bits(exponent: Value) -> Value:
    """The low bits of a - es, as steps are made of; above the range of exponents those of the highest one."""
    return Mux(exponent == _ABOVE, _ABOVE - 1, exponent)[:3]

"""The block scale of one candidate: a short division, its rounding to UE4M3, and multiples of the step W."""

from __future__ import annotations

from functools import reduce
from operator import add

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import Candidate, QuantiserConfig
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.lane import bound_ports, value_ports
from hwgen.rtl.quantiser.multiples import bound_bits, odd_midpoints, odd_values, value_bits

__all__ = ["BlockScale"]

_LARGEST = 0x7E
"""UE4M3 of 448."""
_STEPS = 4
"""Bits of a quotient below its leading one: three of the significand, and one to round by."""


class BlockScale(Part):
    """UE4M3 of b / (top x s), to nearest, ties to the even code; and W = S x sg x 2^shift with its odd multiples.

    ::

        fraction --> [leading one, two bits] --> (quotients) --> [two bits, round] --> (scales) --+--> (bounds) --> code
                                                                                                  |
        tensor_fraction ---------------------------------> [S x sg, multiples, places] --> (bounds) --> bound1 ..

    The outputs stand behind ``bounds``, if the pipeline has it.

    Why it is right: the quotient of two significands is between 2/7 and 2, so that its leading one is at one of three
    places. Four more bits, and whether anything is left, round it. W has its leading one four to seven places below
    the power of two above the largest number.

    Parameters
    ----------
    config
        The quantiser.
    which
        Index of the candidate, in digits.

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
    enable_quotients, enable_scales, enable_bounds, enable_codes : In(1)
        Load the registers; each where the pipeline has it.
    code : Out(7)
        Of the scale.
    saturated : Out(1)
        It should be above 448.
    place, bound1, bound3 .., high3 .. : Out
        What midpoints follow from, see `QuantiserLane`.
    value1, value3 .. : Out
        What errors are counted from, behind ``codes``; only with two candidates.
    """

    def __init__(self, config: QuantiserConfig, which: str) -> None:
        self.candidate: Candidate = config.candidates[int(which)]
        self.module_name = f"block_scale{which if int(which) else ''}"
        members = {
            "fraction": In(config.fraction),
            "exponent": In(signed(5)),
            "empty": In(1),
            "tensor_fraction": In(config.tensor_scale_bits - 1),
        }
        mine = [register for register in ("quotients", "scales", "bounds", "codes") if register in config.registers]
        members |= {f"enable_{register}": In(1) for register in mine}
        self.registers, self.latency = bool(mine), len(mine)
        members |= {"code": Out(7), "saturated": Out(1)}
        self._values = value_ports(config, self.candidate) if config.chooses else {}
        ports = bound_ports(config, self.candidate) | self._values
        members |= {name: Out(bits) for name, bits in ports.items()}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        significand = Cat(self.tensor_fraction, Const(1, 1))
        most = ((1 << self.config.tensor_scale_bits) - 1) * self.candidate.top
        # Without the powers of two of the top.
        self._divisor = Signal((most // (self.candidate.top & -self.candidate.top)).bit_length(), name="divisor")
        self._thrice = Signal(len(self._divisor) + 2, name="thrice")
        found = self.held(m, "quotients", "enable_quotients", self._quotient(m, significand))
        code, saturated = self._rounded(m, found)
        outputs: dict[str, Value] = {"code": code, "saturated": saturated & ~found["empty"]}
        found = self.held(m, "scales", "enable_scales", outputs | {"exponent": found["exponent"]})
        outputs = {name: found[name] for name in outputs}
        outputs |= self._multiples(m, significand, outputs["code"], found["exponent"])
        outputs = self.held(m, "bounds", "enable_bounds", outputs)
        outputs |= self.held(m, "codes", "enable_codes", {name: outputs[name] for name in self._values})
        for name, value in outputs.items():
            m.d.comb += getattr(self, name).eq(value)
        return m

    def _quotient(self, m: Module, significand: Value) -> dict[str, Value]:
        """Leading bits of the quotient, whether a remainder is left, and where its code of UE4M3 begins."""
        top = self.candidate.top
        twos = (top & -top).bit_length() - 1
        divisor = self._divisor
        m.d.comb += [
            divisor.eq(_times(significand, top >> twos)),
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
        down = of_place([dividend[length - point - zeros - _STEPS :][:_STEPS] for zeros in range(places)])
        below = [dividend[: length - point - zeros - _STEPS].any() for zeros in range(places)]
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
            "down": down[:2],
            "below": of_place(below),
            "lost": lost,
            "field": field,
            "empty": self.empty,
            "exponent": Mux(self.exponent == 14, 13, self.exponent)[:3],
        }

    def _digit(self, m: Module, word: Value, name: str) -> tuple[Value, Value]:
        """Two bits of a quotient, and the remainder; the word is less than four times the divisor."""
        left: list[Value] = []
        for times, multiple in enumerate((self._divisor, self._divisor << 1, self._thrice), start=1):
            difference = Signal(len(word) + 1, name=f"{name}_less{times}")
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

    def _multiples(self, m: Module, significand: Value, code: Value, exponent: Value) -> dict[str, Value]:
        """Odd multiples of W, from the code of the scale and the low bits of a - es."""
        config, candidate = self.config, self.candidate
        field, normal = code[3:], code[3:].any()
        # A subnormal significand with its leading one at the top; how far the exponent is below that of field 1.
        shifted = Mux(code[2], code[:2] << 1, Mux(code[1], code[0] << 2, 0))[:3]
        lost = Mux(code[2], 0, Mux(code[1], 1, 2))
        product = Signal(config.tensor_scale_bits + 4)
        m.d.comb += product.eq(Cat(Mux(normal, code[:3], shifted), Const(1, 1)) * significand)
        carried = product[-1]
        step = Signal(len(product), name="times1")
        m.d.comb += step.eq(Mux(carried, product, product << 1))
        products: dict[int, Value] = {1: step}
        for odd in sorted({*odd_midpoints(candidate), *(odd_values(candidate) if self._values else ())} - {1}):
            products[odd] = Signal(len(step) + odd.bit_length(), name=f"times{odd}")
            m.d.comb += products[odd].eq(_times(step, odd))
        # How far W is below the largest number, modulo 8.
        below = Signal(3)
        m.d.comb += below.eq(exponent - Mux(normal, field[:3], -lost) - carried)
        # Evenly spaced midpoints are multiples of 2 W.
        place = below + (0 if candidate.evenly_spaced else 1)
        outputs: dict[str, Value] = {"place": place[:3] & code.any().replicate(3)}
        for odd in odd_midpoints(candidate):
            word = products[odd]
            if odd > 1:
                outputs[f"high{odd}"] = word[-1]
                word = Mux(word[-1], word, word << 1)[: len(word)]
            outputs[f"bound{odd}"] = _with_rest(word[:-1], bound_bits(config, odd))
        for odd, doublings in odd_values(candidate).items() if self._values else ():
            bits = value_bits(config, candidate, odd)
            word, spare = products[odd], config.tensor_scale_bits + 4 - config.error_bits - doublings
            word = word[spare:] if spare > 0 else Cat(Const(0, -spare), word)
            for stage in (1, 0):
                word = Mux((below - 3)[stage], word >> (1 << stage), word)[: len(word)]
            outputs[f"value{odd}"] = word[:bits]
        return outputs


def _with_rest(word: Value, bits: int) -> Value:
    """The upper bits of a word; the last one says whether there is a one in what is cut off."""
    spare = len(word) - bits
    return Cat(word[: spare + 1].any(), word[spare + 1 :]) if spare > 0 else word


def _times(one: Value, odd: int) -> Value:
    """An odd multiple, of at most three words."""
    if odd == 7:
        return (one << 3) - one
    words = [one << place for place in range(odd.bit_length()) if odd >> place & 1]
    return reduce(add, words)

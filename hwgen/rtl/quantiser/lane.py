"""One number of a block: aligned, compared with midpoints, its errors, its code."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import Candidate, QuantiserConfig
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.multiples import VALUES, midpoints, multiple, odd_multiples, step_width, two_levels, values

__all__ = ["ErrorlessLane", "QuantiserLane"]

_SIGNIFICAND = 24
"""Bits of an FP32 significand."""
_DISTANCE = 5
"""Bits of a shift: all of an aligned number is shifted out by 31."""


class QuantiserLane(Part):
    """Quantise one number with each candidate, and give the code of the one that is chosen.

    ::

        x --> (largest) --> [align] --> (quotients) --> (bounds) --> [compare] --> (codes) --> [error] --+
                                                                                                         |
                    code <-- (result) <-- [choose, sign] <-- (sums) <--+-- error0, error1 <-- (errors) <-+

    Registers in parentheses, where the pipeline has them.

    Why it is right: all bounds are whole multiples of the unit of aligned numbers. A number above the range is met
    only where the scale saturates; three quarters of the range are then above all bounds, and its error is saturated.

    Parameters
    ----------
    config
        The quantiser.

    Attributes
    ----------
    x : In(width)
        The number.
    exponent : In(8)
        a + 126 of the contract: exponent field of the largest number, within bounds.
    w0_1, w0_3 .., live0 : In
        Odd multiples of W of the first candidate, and whether its scale is not 0; of the second with a 1.
    v0_1, v0_3 .. : In
        Multiples of W behind ``codes``, for errors; only with two candidates.
    second : In(1)
        The second candidate is taken; only with two.
    enable_largest .. enable_result : In(1)
        Load the registers; each where there is one.
    error0, error1 : Out(error_bits)
        Errors of both candidates, behind ``errors``; only with two.
    code : Out(4)
        Behind ``result``.
    """

    module_name = "quantiser_lane"
    registers = True
    errs = True

    def __init__(self, config: QuantiserConfig) -> None:
        self.latency = config.latency
        self.errs = self.errs and config.chooses
        members = {"x": In(config.numbers.width), "exponent": In(8), "code": Out(4)}
        for index, candidate in enumerate(config.candidates):
            for odd in odd_multiples(config, candidate):
                members[f"w{index}_{odd}"] = In(step_width(config, candidate, odd))
            members[f"live{index}"] = In(1)
            if self.errs:
                members |= {f"v{index}_{odd}": In(step_width(config, candidate, odd)) for odd in VALUES}
                members[f"error{index}"] = Out(config.error_bits)
        if config.chooses:
            members["second"] = In(1)
        members |= {f"enable_{register}": In(1) for register in (*config.registers, "result")}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        x = self.held(m, "largest", "enable_largest", {"x": self.x})["x"]
        number = self._aligned(m, x)
        for register in ("quotients", "bounds"):
            number = self.held(m, register, f"enable_{register}", number)
        found: dict[str, Value] = {"sign": number["sign"]}
        if self.errs and not all(two_levels(config, candidate) for candidate in config.candidates):
            found["whole"] = number["whole"]
        for index, candidate in enumerate(config.candidates):
            steps = {odd: getattr(self, f"w{index}_{odd}") for odd in odd_multiples(config, candidate)}
            quantised = _two_levels if two_levels(config, candidate) else _compared
            code, rest = quantised(m, candidate, steps, number["whole"], number["sticky"], f"of{index}")
            found[f"code{index}"] = code & getattr(self, f"live{index}").replicate(3)
            if self.errs and rest is not None:
                found[f"rest{index}"] = rest
        found = self.held(m, "codes", "enable_codes", found)
        if self.errs:
            self._errors(m, found)
        found = self.held(m, "errors", "enable_errors", found)
        if self.errs:
            m.d.comb += [getattr(self, f"error{index}").eq(found.pop(f"error{index}")) for index in range(2)]
        found = self.held(m, "sums", "enable_sums", found)
        magnitude = Mux(self.second, found["code1"], found["code0"]) if config.chooses else found["code0"]
        with m.If(self.enable_result):
            code = Signal.like(self.code, name="result_code", reset_less=True)
            m.d.sync += code.eq(self._signed(magnitude, found["sign"]))
        m.d.comb += self.code.eq(code)
        return m

    def _errors(self, m: Module, found: dict[str, Value]) -> None:
        """Put errors in the place of what they are made of."""
        whole = found.pop("whole", None)
        for index, candidate in enumerate(self.config.candidates):
            code, rest = found[f"code{index}"], found.pop(f"rest{index}", None)
            steps = {odd: getattr(self, f"v{index}_{odd}") for odd in VALUES}
            first = [multiple(steps, times) for times in values(candidate)]
            difference = Signal(signed(self.config.bits + 2), name=f"difference{index}")
            if rest is not None:
                m.d.comb += difference.eq(rest.as_signed() - _of_four(code[:2], first))
            else:
                m.d.comb += difference.eq(whole - _doubled(code, first))
            found[f"error{index}"] = self._cut(m, difference, f"error{index}_of")

    def _aligned(self, m: Module, x: Value) -> dict[str, Value]:
        """X of the contract, whether the cut has lost anything, and the sign."""
        fraction, bits = self.config.numbers.fraction, self.config.bits
        field = x[fraction:-1]
        normal = field.any()
        distance = Signal(signed(9))
        # A subnormal number has the exponent of field 1.
        m.d.comb += distance.eq(self.exponent + Cat(~field, Const(1, 1)).as_signed() + normal)
        significand = Cat(Const(0, _SIGNIFICAND - 1 - fraction), x[:fraction], normal)
        word, sticky = significand[_SIGNIFICAND - bits :], significand[: _SIGNIFICAND - bits].any()
        for stage in range(_DISTANCE):
            by = 1 << stage
            select = distance[stage]
            shifted, lost = Signal(bits, name=f"right{by}"), Signal(name=f"lost{by}")
            m.d.comb += [shifted.eq(Mux(select, word >> by, word)), lost.eq(sticky | (select & word[:by].any()))]
            word, sticky = shifted, lost
        above, whole = distance[-1], Signal(bits)
        far = ~above & distance[_DISTANCE:-1].any()
        m.d.comb += whole.eq((word & ~far.replicate(bits)) | Cat(Const(0, bits - 2), above, above))
        return {"whole": whole, "sticky": sticky, "sign": x[-1]}

    def _cut(self, m: Module, difference: Value, name: str) -> Value:
        """Magnitude of an error, cut and saturated to its bits."""
        bits = self.config.error_bits
        low = self.config.bits - 2 - bits
        negative = difference[-1]
        exact = negative & ~difference[:low].any() if low else negative
        magnitude = Signal(len(difference) - low - 1, name=f"{name}_magnitude")
        m.d.comb += magnitude.eq((difference[low:-1] ^ negative.replicate(len(magnitude))) + exact)
        return magnitude[:bits] | magnitude[bits:].any().replicate(bits)

    def _signed(self, magnitude: Value, sign: Value) -> Value:
        values = self.config.candidates[0].element.values
        if values[15] == -values[1]:  # two's complement
            return Mux(sign, -magnitude, magnitude)[:4]
        return Cat(magnitude, sign & magnitude.any())


class ErrorlessLane(QuantiserLane):
    """A lane whose errors are not asked for."""

    module_name = "errorless_lane"
    errs = False


def _compared(
    m: Module, candidate: Candidate, steps: Mapping[int, Value], whole: Value, sticky: Value, name: str
) -> tuple[Value, None]:
    """Code of a magnitude that is compared with all midpoints at once."""
    above = [_above(whole, sticky, multiple(steps, times), code) for code, times in enumerate(midpoints(candidate))]
    code = Signal(3, name=f"{name}_code")
    m.d.comb += code.eq(_count(above))
    return code, None


def _two_levels(
    m: Module, candidate: Candidate, steps: Mapping[int, Value], whole: Value, sticky: Value, name: str
) -> tuple[Value, Value]:
    """Code of a magnitude that is cut by half of the range, and then compared with the midpoints of one half.

    And what the cut leaves: the number, less the value of code 4 if it is above the midpoint before that.
    """
    bounds = midpoints(candidate)
    upper = _above(whole, sticky, multiple(steps, bounds[3]), 3)
    rest, low = Signal(signed(len(whole) + 1), name=f"{name}_rest"), Signal(2, name=f"{name}_low")
    m.d.comb += rest.eq(whole - Mux(upper, multiple(steps, 2 * candidate.halves[4]), 0))
    above = [~rest[-1] & _above(rest[:-1], sticky, multiple(steps, bounds[code]), code) for code in range(3)]
    m.d.comb += low.eq(_count(above))
    return Cat(low, upper), rest


def _of_four(index: Value, choices: list[Value]) -> Value:
    return Mux(index[1], Mux(index[0], choices[3], choices[2]), Mux(index[0], choices[1], choices[0]))


def _doubled(code: Value, choices: list[Value]) -> Value:
    """The value of a code of E2M1: of the first four, the last two doubled for 4 and 5, and once more for 6 and 7."""
    base = _of_four(Cat(code[0], code[1] | code[2]), choices)
    return Mux(code[2], Mux(code[1], base << 2, base << 1), base)


def _above(whole: Value, sticky: Value, bound: Value, code: int) -> Value:
    """Whether a number is above the midpoint behind a code; at the midpoint if that is odd."""
    return whole >= bound if code & 1 else Cat(sticky, whole) > Cat(Const(0, 1), bound)


def _count(above: list[Value]) -> Value:
    """How many of a sorted list, three or seven, are set."""
    middle = len(above) // 2
    if not middle:
        return above[0]
    upper = above[middle]
    low, high = _count(above[:middle]), _count(above[middle + 1 :])
    return Cat(Mux(upper, high, low), upper)

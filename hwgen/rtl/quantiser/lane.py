"""One number of a block: aligned, compared with midpoints, its errors, its code."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import Candidate, QuantiserConfig
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.multiples import midpoints, multiple, odd_multiples, step_width, two_levels

__all__ = ["ErrorlessLane", "QuantiserLane"]

_SIGNIFICAND = 24
"""Bits of an FP32 significand."""
_DISTANCE = 5
"""Bits of a shift: all of an aligned number is shifted out by 31."""


class QuantiserLane(Part):
    """Quantise one number with each candidate, and give the code of the one that is chosen.

    ::

        x --> (largest) --> [align] --> (quotients) --> (bounds) --> [compare, error] --> (errors) --+--> error0, error1
                                                                                                     |
                                               code <-- (result) <-- [choose, sign] <-- (sums) <-----+

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
        for index, candidate in enumerate(config.candidates):
            steps = {odd: getattr(self, f"w{index}_{odd}") for odd in odd_multiples(config, candidate)}
            quantised = _TwoLevels if two_levels(config, candidate) else _Compared
            how = quantised(m, candidate, steps, number["whole"], number["sticky"], f"of{index}")
            found[f"code{index}"] = how.code & getattr(self, f"live{index}").replicate(3)
            if self.errs:
                found[f"error{index}"] = self._cut(m, how.difference(), f"error{index}_of")
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


class _Compared:
    """A magnitude compared with all midpoints at once.

    Attributes
    ----------
    code : Value
        How many midpoints are below; a tie goes to the even code.
    """

    def __init__(
        self,
        m: Module,
        candidate: Candidate,
        steps: Mapping[int, Value],
        whole: Value,
        sticky: Value,
        name: str,
    ) -> None:
        self.m, self.steps, self.whole, self.name = m, steps, whole, name
        above = [_above(whole, sticky, multiple(steps, times), code) for code, times in enumerate(midpoints(candidate))]
        self.code = Signal(3, name=f"{name}_code")
        m.d.comb += self.code.eq(_count(above))

    def difference(self) -> Value:
        """X less the value of the code, of E2M1; signed."""
        # The values of E2M1 are 0 to 3 halves, doubled for the codes 4 and 5, and doubled again for 6 and 7.
        high, middle, low = self.code[2], self.code[1], self.code[0]
        halves = [Const(0, 1), *(multiple(self.steps, times) for times in (2, 4, 6))]
        base = Mux(high | middle, Mux(low, halves[3], halves[2]), Mux(low, halves[1], halves[0]))
        value = Mux(high, Mux(middle, base << 2, base << 1), base)
        difference = Signal(signed(len(self.whole) + 2), name=f"{self.name}_difference")
        self.m.d.comb += difference.eq(self.whole - value)
        return difference


class _TwoLevels:
    """A magnitude cut by half of the range, and then compared with the midpoints of one half; as `_Compared`."""

    def __init__(
        self,
        m: Module,
        candidate: Candidate,
        steps: Mapping[int, Value],
        whole: Value,
        sticky: Value,
        name: str,
    ) -> None:
        self.m, self.steps, self.name = m, steps, name
        bounds = midpoints(candidate)
        upper = _above(whole, sticky, multiple(steps, bounds[3]), 3)
        self.rest = Signal(signed(len(whole) + 1), name=f"{name}_rest")
        self.low = Signal(2, name=f"{name}_low")
        m.d.comb += self.rest.eq(whole - Mux(upper, multiple(steps, 2 * candidate.halves[4]), 0))
        above = [
            ~self.rest[-1] & _above(self.rest[:-1], sticky, multiple(steps, bounds[code]), code) for code in range(3)
        ]
        m.d.comb += self.low.eq(_count(above))
        self.code = Cat(self.low, upper)
        self.values = [2 * each for each in candidate.halves[:4]]

    def difference(self) -> Value:
        """X less the value of the code; signed."""
        zero, one, two, three = (multiple(self.steps, times) if times else Const(0, 1) for times in self.values)
        value = Mux(self.low[1], Mux(self.low[0], three, two), Mux(self.low[0], one, zero))
        difference = Signal(signed(len(self.rest) + 1), name=f"{self.name}_difference")
        self.m.d.comb += difference.eq(self.rest - value)
        return difference


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

"""One number of a block: compared with midpoints, its errors, its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import Candidate, QuantiserConfig
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.multiples import (
    bound_bits,
    midpoints,
    odd_midpoints,
    odd_part,
    odd_values,
    stand_ins,
    value_bits,
    values,
)

__all__ = ["ErrorlessLane", "QuantiserLane", "bound_ports", "candidate_port", "compared", "leading", "value_ports"]

_FAR = 7
"""A number with an exponent so much below that of the largest has code 0."""


def bound_ports(config: QuantiserConfig, candidate: Candidate) -> dict[str, int]:
    """What a lane reads of a candidate to compare with midpoints: port without its direction, and bits."""
    ports = {"place": 3}
    further = {odd: up for odd, (_, up) in stand_ins(config).items()} if config.by_magnitude else {}
    for odd in odd_midpoints(candidate):
        ports[f"bound{odd}"] = bound_bits(config, odd)
        if odd > 1:
            ports[f"high{odd}"] = (1 + further.get(odd, 0)).bit_length()
    return ports


def value_ports(config: QuantiserConfig, candidate: Candidate) -> dict[str, int]:
    """What a lane reads of a candidate for errors."""
    return {f"value{odd}": value_bits(config, candidate, odd) for odd in odd_values(candidate)}


class QuantiserLane(Part):
    """Quantise one number with each candidate, and give the code of the one that is chosen.

    ::

        x --> (largest) --> [exponents] --> (quotients) --> (bounds) --> [compare] --> (codes) --> [error] --+
                                                                                                             |
                        code <-- (result) <-- [choose, sign] <-- (sums) <--+-- error0, error1 <-- (errors) <-+

    Registers in parentheses, where the pipeline has them.

    Why it is right: a midpoint is an odd multiple of W, doubled some times. A number is above it if its exponent is
    the larger one, or its significand where exponents are equal. One comparison of significands serves all midpoints
    that are the same odd multiple. A number above the range of exponents is met only where the scale saturates; three
    quarters of the range are then above all midpoints, and errors do not count.

    Parameters
    ----------
    config
        The quantiser.

    Attributes
    ----------
    x : In(9 + fraction)
        The number: FP32 or BF16 with as many bits behind its leading one as the configuration keeps.
    exponent : In(8)
        a + 126 of the contract: exponent field of the largest number, within bounds.
    place0 : In(3)
        Of the first candidate: how far W is below the largest number, and one more; 0 if the scale is 0.
    bound0_1, bound0_3 .. : In
        Significands of odd multiples of W behind the leading one.
    high0_3 .. : In
        How many places the multiple has its leading one above that of the multiplier: 0 or 1; 2 where one that is
        chosen before it is compared may stand in its place, see `stand_ins`.
    value0_1, value0_3 .. : In
        Odd multiples of W behind ``codes``; only with errors.
    second : In(1)
        The second candidate is taken; only with errors. It has ports as the first, with a 1.
    enable_largest .. enable_result : In(1)
        Load the registers; each where there is one.
    error0, error1 : Out
        Errors of both candidates, behind ``errors``; only where they count.
    magnitude : Out(error_bits)
        The number in units of the largest one's exponent, cut off, behind ``quotients``; only where the rule looks at
        it. If the rule is not the crest factor, what is below a quarter of that exponent is 0: it does not count.
    code : Out(4)
        Behind ``result``.
    """

    module_name = "quantiser_lane"
    registers = True
    errs = True

    def __init__(self, config: QuantiserConfig) -> None:
        self.latency = config.latency
        self.errs = self.errs and config.by_error
        members = {"x": In(9 + config.fraction), "exponent": In(8), "code": Out(4)}
        for index, candidate in enumerate(config.datapaths):
            ports = bound_ports(config, candidate)
            if self.errs:
                ports |= value_ports(config, candidate)
                members[f"error{index}"] = Out(config.kept_bits[index])
            members |= {candidate_port(name, index): In(bits) for name, bits in ports.items()}
        if config.by_error:
            members["second"] = In(1)
        if config.by_magnitude:
            members["magnitude"] = Out(config.error_bits)
        members |= {f"enable_{register}": In(1) for register in (*config.registers, "result")}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        x = self.held(m, "largest", "enable_largest", {"x": self.x})["x"]
        number = self._relative(m, x)
        if config.by_crest_factor:
            # Aligned beside the division: the squares have a cycle of their own.
            number["magnitude"] = _cut(number["below"], number["fraction"], config.error_bits)
        number = self.held(m, "quotients", "enable_quotients", number)
        if config.by_crest_factor:
            m.d.comb += self.magnitude.eq(number.pop("magnitude"))
        elif config.by_magnitude:
            near = _cut(number["below"][:1], number["fraction"], config.error_bits)
            m.d.comb += self.magnitude.eq(near & ~number["below"][1:].any().replicate(config.error_bits))
        for register in ("scales", "choice", "bounds"):
            number = self.held(m, register, f"enable_{register}", number)
        found: dict[str, Value] = {"sign": number["sign"]}
        if self.errs:
            found["whole"] = _cut(number["below"], number["fraction"], config.error_bits + 2)
        for index, candidate in enumerate(config.datapaths):
            bounds = {name: getattr(self, candidate_port(name, index)) for name in bound_ports(config, candidate)}
            found[f"code{index}"] = compared(m, candidate, bounds, number["below"], number["fraction"], f"of{index}")
        found = self.held(m, "codes", "enable_codes", found)
        if self.errs:
            whole = found.pop("whole")
            for index in range(len(config.datapaths)):
                found[f"error{index}"] = self._error(m, whole, found[f"code{index}"], index)
        found = self.held(m, "errors", "enable_errors", found)
        if self.errs:
            m.d.comb += [getattr(self, f"error{index}").eq(found.pop(f"error{index}")) for index in range(2)]
        found = self.held(m, "sums", "enable_sums", found)
        magnitude = Mux(self.second, found["code1"], found["code0"]) if config.by_error else found["code0"]
        with m.If(self.enable_result):
            code = Signal.like(self.code, name="result_code", reset_less=True)
            m.d.sync += code.eq(self._signed(magnitude, found["sign"]))
        m.d.comb += self.code.eq(code)
        return m

    def _relative(self, m: Module, x: Value) -> dict[str, Value]:
        """How far the exponent is below that of the largest number, saturating; what is behind the leading one."""
        shifted = self.config.error_bits + 2 if self.errs else self.config.error_bits * self.config.by_crest_factor
        bits = max(_FAR, shifted).bit_length()
        fraction, field = x[: self.config.fraction], x[self.config.fraction : -1]
        distance = Signal(signed(9))
        m.d.comb += distance.eq(self.exponent - field)
        above = distance[-1]
        # Tensor scales are so large that subnormal numbers do not count.
        far = distance[bits:-1].any() | ~field.any()
        return {
            "below": (distance[:bits] | far.replicate(bits)) & ~above.replicate(bits),
            "fraction": fraction | Cat(Const(0, len(fraction) - 1), above),
            "sign": x[-1],
        }

    def _error(self, m: Module, whole: Value, code: Value, index: int) -> Value:
        """Magnitude of an error, saturating."""
        candidate, config = self.config.candidates[index], self.config
        ports = {name: getattr(self, candidate_port(name, index)) for name in value_ports(config, candidate)}
        doublings = odd_values(candidate)

        def multiple(times: int, low: int) -> Value:
            """A multiple of W in units of an error / 2^(1 + low)."""
            if not times:
                return Const(0, 1)
            odd, twos = odd_part(times)
            return ports[f"value{odd}"][doublings[odd] - twos - low :]

        if candidate.evenly_spaced:
            value = _of_eight(code, [multiple(times, 0) for times in values(candidate)])
        else:
            value = _doubled(
                code, [multiple(times, low) for times, low in zip(values(candidate)[:4], (0, 0, 2, 2), strict=True)]
            )
        bits = config.error_bits + 3
        difference = Signal(bits, name=f"difference{index}")
        # Less the value, to nearest: its half is what is not carried in.
        inverse = ~(value | Const(0, bits + 1))[: bits + 1]
        m.d.comb += difference.eq((Cat(Const(1, 1), whole, Const(0, 1)) + inverse)[1:])
        magnitude = difference[:-1] ^ difference[-1].replicate(bits - 1)
        kept = config.kept_bits[index]
        return magnitude[:kept] | magnitude[kept:].any().replicate(kept)

    def _signed(self, magnitude: Value, sign: Value) -> Value:
        values = self.config.candidates[0].element.values
        if values[15] == -values[1]:  # two's complement
            return Mux(sign, -magnitude, magnitude)[:4]
        return Cat(magnitude, sign & magnitude.any())


class ErrorlessLane(QuantiserLane):
    """A lane whose errors are not asked for."""

    module_name = "errorless_lane"
    errs = False


def leading(fraction: Value, bits: int) -> Value:
    """So many bits of a significand from its leading one on."""
    word = Cat(fraction, Const(1, 1))
    return word[len(word) - bits :] if len(word) > bits else Cat(Const(0, bits - len(word)), word)


def _cut(below: Value, fraction: Value, bits: int) -> Value:
    """A number of so many bits in units of the largest one's exponent, what is less cut off."""
    word = leading(fraction, bits)
    for stage in reversed(range(len(below))):
        word = Mux(below[stage], word >> (1 << stage), word)[:bits]
    return word


def candidate_port(name: str, index: int) -> str:
    """The port of a candidate: its number stands behind the word."""
    word = name.rstrip("0123456789")
    odd = name[len(word) :]
    return f"{word}{index}_{odd}" if odd else f"{word}{index}"


def compared(
    m: Module, candidate: Candidate, bounds: Mapping[str, Value], below: Value, fraction: Value, name: str
) -> Signal:
    """Code of a number that is compared with all midpoints."""
    # Its exponent over that of W, and one more: 0 or less is below all midpoints.
    over = Signal(signed(max(len(below), 3) + 1), name=f"{name}_over")
    m.d.comb += over.eq(bounds["place"] - below)
    beyond: dict[int, Value] = {}
    above = []
    for code, (odd, twos) in enumerate(midpoints(candidate)):
        # Midpoints of one odd multiple all lose a tie, or all win it.
        if odd not in beyond:
            beyond[odd] = Signal(name=f"{name}_beyond{odd}")
            m.d.comb += beyond[odd].eq(_beyond(fraction, bounds[f"bound{odd}"], tie=bool(code & 1)))
        place = odd.bit_length() + twos

        def exceeds(place: int, odd: int = odd) -> Value:
            return (over > place) | ((over == place) & beyond[odd])

        found = exceeds(place)
        for bit, high in enumerate(bounds[f"high{odd}"] if odd > 1 else ()):
            found = Mux(high, exceeds(place + (1 << bit)), found)
        above.append(found)
    code = Signal(3, name=f"{name}_code")
    m.d.comb += code.eq(_count(above))
    return code


def _beyond(fraction: Value, bound: Value, *, tie: bool) -> Value:
    """Whether a significand is above another, or equal to it if ties count; both without their leading ones."""
    spare = len(fraction) - len(bound)
    if spare < 0:
        return Cat(Const(0, -spare), fraction) >= bound if tie else Cat(Const(0, -spare), fraction) > bound
    if tie:
        return fraction[spare:] >= bound
    return Cat(fraction[:spare].any(), fraction[spare:]) > Cat(Const(0, 1), bound)


def _of_four(index: Value, choices: Sequence[Value]) -> Value:
    return Mux(index[1], Mux(index[0], choices[3], choices[2]), Mux(index[0], choices[1], choices[0]))


def _of_eight(index: Value, choices: Sequence[Value]) -> Value:
    return Mux(index[2], _of_four(index, choices[4:]), _of_four(index, choices[:4]))


def _doubled(code: Value, choices: Sequence[Value]) -> Value:
    """The value of a code of E2M1: of the first four, the last two doubled for 4 and 5, and once more for 6 and 7.

    The last two have two places more at their ends.
    """
    last = Mux(code[0], choices[3], choices[2])
    high = Mux(code[1], last, last >> 1)
    low = Mux(code[1], last >> 2, Mux(code[0], choices[1], choices[0]))
    return Mux(code[2], high, low)


def _count(above: Sequence[Value]) -> Value:
    """How many of a sorted list, three or seven, are set."""
    middle = len(above) // 2
    if not middle:
        return above[0]
    upper = above[middle]
    low, high = _count(above[:middle]), _count(above[middle + 1 :])
    return Cat(Mux(upper, high, low), upper)

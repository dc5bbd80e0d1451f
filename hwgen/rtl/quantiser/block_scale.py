"""The block scale of one candidate: its code, and multiples of the step W."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib.wiring import Out

from hwgen.config.quantiser import QuantiserConfig
from hwgen.rtl.quantiser.division import Division, low_bits
from hwgen.rtl.quantiser.lane import bound_ports, value_ports
from hwgen.rtl.quantiser.multiples import odd_midpoints, odd_values
from hwgen.rtl.quantiser.step import Step

__all__ = ["BlockScale"]


class BlockScale(Division):
    """UE4M3 of b / (top x s), to nearest, ties to the even code; and W = S x sg x 2^shift with its odd multiples.

    ::

        fraction --> [leading one, two bits] --> (quotients) --> [two bits, round] --> (scales) --+--> (bounds) --> code
                                                                                                  |
        tensor_fraction ---------------------------------> [S x sg, multiples, places] --> (bounds) --> bound1 ..

    The outputs stand behind ``bounds``, if the pipeline has it.

    Parameters
    ----------
    config
        The quantiser.
    which
        Index of the candidate, in digits.

    Attributes
    ----------
    place, bound1, bound3 .., high3 .. : Out
        What midpoints follow from, see `QuantiserLane`.
    value1, value3 .. : Out
        What errors are counted from, behind ``codes``; only with two candidates.
    """

    def __init__(self, config: QuantiserConfig, which: str) -> None:
        self.module_name = f"block_scale{which if int(which) else ''}"
        candidate = config.candidates[int(which)]
        self._values = value_ports(config, candidate) if config.chooses else {}
        ports = bound_ports(config, candidate) | self._values
        registers = ("quotients", "scales", "bounds", "codes")
        super().__init__(config, which, registers, {name: Out(bits) for name, bits in ports.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        significand = Cat(self.tensor_fraction, Const(1, 1))
        divided = self._divided(m, significand, {"exponent": low_bits(self.exponent)})
        found = self.held(m, "scales", "enable_scales", divided)
        outputs = {name: found[name] for name in ("code", "saturated")}
        outputs |= self._multiples(m, significand, outputs["code"], found["exponent"])
        outputs = self.held(m, "bounds", "enable_bounds", outputs)
        outputs |= self.held(m, "codes", "enable_codes", {name: outputs[name] for name in self._values})
        for name, value in outputs.items():
            m.d.comb += getattr(self, name).eq(value)
        return m

    def _multiples(self, m: Module, significand: Value, code: Value, exponent: Value) -> dict[str, Value]:
        """Odd multiples of W, from the code of the scale and the low bits of a - es."""
        config, candidate = self.config, self.candidate
        odds = {*odd_midpoints(candidate), *(odd_values(candidate) if self._values else ())}
        step = Step(m, config, odds, significand, code, exponent)
        outputs = {"place": step.place(candidate)}
        for odd in odd_midpoints(candidate):
            outputs |= step.midpoint(odd)
        for odd in odd_values(candidate) if self._values else ():
            outputs[f"value{odd}"] = step.value(candidate, odd)
        return outputs

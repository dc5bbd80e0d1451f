"""The block scale of the candidate that is taken, where that is known before numbers are compared."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import QuantiserConfig
from hwgen.rtl.hierarchy import Part
from hwgen.rtl.quantiser.division import low_bits
from hwgen.rtl.quantiser.lane import bound_ports
from hwgen.rtl.quantiser.multiples import bound_bits, odd_midpoints, stand_ins
from hwgen.rtl.quantiser.step import Step

__all__ = ["ChosenScale"]


class ChosenScale(Part):
    """One code of two, and W = S x sg x 2^shift of it with the odd multiples that numbers are compared with.

    ::

        code0, code1, second --> [choose] --> (scales) --> [S x sg, multiples, places] --> (bounds) --> bound1 ..

    With the crest factor both codes are in ``scales``, and the choice is before ``choice``, behind it.

    Multiples of the second candidate come where those of the first would, see `stand_ins`: so lanes need not know.

    Parameters
    ----------
    config
        The quantiser, with a rule by magnitudes.

    Attributes
    ----------
    code0, code1 : In(7)
        Of the scales of both candidates.
    saturated0, saturated1 : In(1)
        They should be above 448. Where the first one is, it is taken.
    exponent : In(signed(5))
        a - es of the contract, see `Division`; before ``quotients``, the codes behind it.
    second : In(1)
        The second candidate is better; with the codes, or behind ``scales`` with the crest factor.
    tensor_fraction : In(p - 1)
        Significand of the tensor scale without its leading one.
    enable_quotients, enable_scales, enable_choice, enable_bounds : In(1)
        Load the registers; each where the pipeline has it.
    code, saturated, place, bound1, bound3 .., high3 .. : Out
        Of the candidate that is taken; behind ``bounds``. See `QuantiserLane`.
    tag : Out(1)
        Bit 7 of the scale byte; only where the candidates differ in it.
    """

    module_name = "chosen_scale"

    def __init__(self, config: QuantiserConfig) -> None:
        members = {f"code{index}": In(7) for index in range(2)} | {f"saturated{index}": In(1) for index in range(2)}
        members |= {"exponent": In(signed(5)), "second": In(1), "tensor_fraction": In(config.tensor_scale_bits - 1)}
        mine = [register for register in ("quotients", "scales", "choice", "bounds") if register in config.registers]
        self.registers, self.latency = bool(mine), len(mine)
        members |= {f"enable_{register}": In(1) for register in mine}
        members |= {"code": Out(7), "saturated": Out(1)}
        if config.tagged:
            members["tag"] = Out(1)
        ports = bound_ports(config, config.candidates[0])
        super().__init__(config, members | {name: Out(bits) for name, bits in ports.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        names = ("code0", "code1", "saturated0", "saturated1")
        found: dict[str, Value] = {name: getattr(self, name) for name in names}
        found |= self.held(m, "quotients", "enable_quotients", {"low": low_bits(self.exponent)})
        if self.config.by_crest_factor:
            found = self._chosen(self.held(m, "scales", "enable_scales", found))
            found = self.held(m, "choice", "enable_choice", found)
        else:
            found = self.held(m, "scales", "enable_scales", self._chosen(found))
        low, taken = found.pop("low"), found.pop("taken", None)
        outputs = found | self._multiples(m, found["code"], low, taken)
        if taken is not None:
            first, second = (candidate.tag for candidate in self.config.candidates)
            outputs["tag"] = Mux(taken, second, first)
        for name, value in self.held(m, "bounds", "enable_bounds", outputs).items():
            m.d.comb += getattr(self, name).eq(value)
        return m

    def _chosen(self, found: dict[str, Value]) -> dict[str, Value]:
        # What saturates with the larger top does so with the other.
        taken = self.second & ~found["saturated0"]
        chosen = {
            "code": Mux(taken, found["code1"], found["code0"]),
            "saturated": found["saturated0"] | (taken & found["saturated1"]),
            "low": found["low"],
        }
        return chosen | ({"taken": taken} if self.config.tagged else {})

    def _multiples(self, m: Module, code: Value, low: Value, taken: Value | None) -> dict[str, Value]:
        """What lanes take of the multiples of W, from the code of the scale and the low bits of a - es.

        Where both candidates have one kind of elements, it is all the same which of them is taken.
        """
        first, second = self.config.candidates
        odds = odd_midpoints(first)
        step = Step(m, self.config, odds, Cat(self.tensor_fraction, Const(1, 1)), code, low)
        midpoints = {odd: step.midpoint(odd) for odd in odds}
        outputs = {"place": step.place(first)}
        for each in midpoints.values():
            outputs |= each
        if taken is None:
            return outputs
        outputs["place"] = Mux(taken, step.place(second), outputs["place"])
        for odd, (other, up) in stand_ins(self.config).items():
            mine, its = midpoints[odd], midpoints[other]
            if other != odd:
                spare = bound_bits(self.config, odd) - bound_bits(self.config, other)
                bound, high = Cat(Const(0, spare), its[f"bound{other}"]), its[f"high{other}"]
                outputs[f"bound{odd}"] = Mux(taken, bound, mine[f"bound{odd}"])
                outputs[f"high{odd}"] = Mux(taken, high + up if up else high, mine[f"high{odd}"])
        return outputs

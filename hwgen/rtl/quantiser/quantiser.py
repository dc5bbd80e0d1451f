"""The hardware quantiser: a block of 16 numbers in, codes and a scale byte out, every cycle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.rtl.hierarchy import Part, add_child
from hwgen.rtl.quantiser.block_scale import BlockScale
from hwgen.rtl.quantiser.choice import Choice, counted_lanes
from hwgen.rtl.quantiser.chosen_scale import ChosenScale
from hwgen.rtl.quantiser.division import ScaleDivision
from hwgen.rtl.quantiser.lane import ErrorlessLane, QuantiserLane, bound_ports, candidate_port, leading, value_ports
from hwgen.rtl.quantiser.largest import LargestMagnitude
from hwgen.rtl.quantiser.magnitudes import MagnitudeChoice

__all__ = ["Quantiser", "block_layout", "quantised_layout"]

_LOWEST, _HIGHEST = -7, 13
"""Range of a - es. Above it the scale saturates, which it is to be told."""
_NAN = 0x7F


_OF_SCALES = ("quotients", "scales", "bounds", "codes")
"""Registers of a block scale."""


def block_layout(config: QuantiserConfig) -> data.StructLayout:
    """Layout of a block as it enters: ``x[i]``, FP32 or BF16."""
    return data.StructLayout({"x": data.ArrayLayout(unsigned(config.numbers.width), BLOCK)})


def quantised_layout() -> data.StructLayout:
    """Layout of a block as it leaves: ``codes[i]``, the scale byte, and two flags."""
    return data.StructLayout({"codes": data.ArrayLayout(unsigned(4), BLOCK), "scale": 8, "invalid": 1, "saturated": 1})


class Quantiser(Part):
    """Quantise blocks of 16 numbers, one per cycle.

    ::

        block --+--> [largest] --> (largest) --+--> [scale] x 1 or 2: (quotients) .. (bounds) --+--------------+
                |                              | exponent                                    | multiples    | scale byte
                +-------------------> [lane] x 16: (largest) (quotients) (bounds) .. (result) -+--> result
                                               | errors                        | second
                                               +--> [choice]: (sums) ----------+

    That is with errors. Where the rule looks at magnitudes alone, the choice is made beside the two divisions. One
    candidate is left for all that follows::

        lanes: magnitudes --> [choice] --------------------+
                                                           v second
        largest --> [division] x 2: (quotients) --> [chosen scale]: (scales) .. (bounds) --> multiples, scale byte

    A result that is not taken stalls the whole pipeline. ``block.ready`` is a combinational function of
    ``result.ready``. Reset drops every block under way.

    Cost: `hwgen quantiser compare`. Why it is right: docs/quantiser.md.

    Parameters
    ----------
    config
        The quantiser.

    Attributes
    ----------
    block : In(stream.Signature(block_layout(config)))
        Blocks.
    tensor_fraction : In(p - 1)
        Significand of the tensor scale without its leading one. It and the exponent stay as they are from the first
        block of a tensor until its last result.
    tensor_exponent : In(signed(8))
        Exponent of the tensor scale, -100 to 126.
    result : Out(stream.Signature(quantised_layout()))
        Blocks as they are quantised, in order.
    latency : int
        Cycles from the acceptance of a block to its result.
    """

    module_name = "quantiser"
    registers = True

    def __init__(self, config: QuantiserConfig) -> None:
        self.latency = config.latency
        members = {
            "block": In(stream.Signature(block_layout(config))),
            "tensor_fraction": In(config.tensor_scale_bits - 1),
            "tensor_exponent": In(signed(8)),
            "result": Out(stream.Signature(quantised_layout())),
        }
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        loads = self._control(m)
        x = [self._kept(m, index) for index in range(BLOCK)]
        lanes = [
            add_child(
                m, platform, f"lane{index}", QuantiserLane if index in counted_lanes(config) else ErrorlessLane, config
            )
            for index in range(BLOCK)
        ]
        largest = add_child(m, platform, "maximum", LargestMagnitude, config)
        m.d.comb += [largest.magnitudes[index].eq(x[index][:-1]) for index in range(BLOCK)]
        peak = self._behind(m, loads, "largest", {"peak": largest.largest})["peak"]
        scales, exponent, place, invalid = self._scales(m, platform, loads, peak)
        found = {"invalid": invalid}
        if config.by_magnitude:
            scales = [self._chosen_scale(m, platform, loads, peak, place, lanes, scales)]
        for register in ("quotients", "scales", "choice", "bounds"):
            found = self._behind(m, loads, register, found)
        for index, scale in enumerate(scales):
            found |= {f"scale{index}": scale.code, f"saturated{index}": scale.saturated}
        if config.by_magnitude and config.tagged:
            found["tag"] = scales[0].tag
        for register in ("codes", "errors", "sums"):
            found = self._behind(m, loads, register, found)
        second: Value | None = None
        if config.by_error:
            second = self._second(m, platform, loads, lanes, found)
        for index, lane in enumerate(lanes):
            m.d.comb += [
                lane.x.eq(x[index]),
                lane.exponent.eq(exponent),
                self.result.payload.codes[index].eq(lane.code),
            ]
            m.d.comb += [getattr(lane, f"enable_{register}").eq(load) for register, load in loads.items()]
            if second is not None:
                m.d.comb += lane.second.eq(second)
            for number, (candidate, scale) in enumerate(zip(config.datapaths, scales, strict=True)):
                ports = bound_ports(config, candidate)
                if config.by_error and index in counted_lanes(config):
                    ports |= value_ports(config, candidate)
                m.d.comb += [getattr(lane, candidate_port(port, number)).eq(getattr(scale, port)) for port in ports]
        self._result(m, loads["result"], found, second)
        return m

    def _kept(self, m: Module, index: int) -> Value:
        """A number without its last bits, of which one says whether they are all 0: no result depends on more."""
        number: Value = self.block.payload.x[index]
        spare = self.config.numbers.fraction - self.config.fraction
        if not spare:
            return number
        rest = Signal(name=f"rest{index}")
        m.d.comb += rest.eq(number[: spare + 1].any())
        return Cat(rest, number[spare + 1 :])

    def _control(self, m: Module) -> dict[str, Value]:
        """Which registers load: those before which a block stands, while nothing waits at the output."""
        waiting, moving = Signal(), Signal()
        m.d.comb += [
            moving.eq(~waiting | self.result.ready),
            self.block.ready.eq(moving),
            self.result.valid.eq(waiting),
        ]
        valid: Value = self.block.valid
        loads: dict[str, Value] = {}
        for register in self.config.registers:
            loads[register] = moving & valid
            following = Signal(name=f"{register}_valid")
            with m.If(moving):
                m.d.sync += following.eq(valid)
            valid = following
        with m.If(moving):
            m.d.sync += waiting.eq(valid)
        return loads | {"result": moving & valid}

    def _behind(self, m: Module, loads: dict[str, Value], register: str, values: dict[str, Value]) -> dict[str, Value]:
        """Values behind a register of the pipeline, if it is there."""
        if register not in loads:
            return dict(values)
        held = {name: Signal(len(value), name=f"{register}_{name}", reset_less=True) for name, value in values.items()}
        with m.If(loads[register]):
            m.d.sync += [held[name].eq(value) for name, value in values.items()]
        return dict(held)

    def _scales(
        self, m: Module, platform: object, loads: dict[str, Value], peak: Value
    ) -> tuple[list[Any], Value, Value, Value]:
        """Block scales of the candidates; the exponent of the block, and a - es; whether a number is none."""
        fraction = self.config.fraction
        field = peak[fraction:]
        invalid = field.all()
        # a - es; the highest exponent field with which a scale need not saturate.
        distance, highest = Signal(signed(10)), Signal(9)
        place, exponent = Signal(signed(5)), Signal(8)
        low, high = Signal(), Signal()
        m.d.comb += [
            distance.eq(field - (self.tensor_exponent + 126)),
            highest.eq(self.tensor_exponent + 126 + _HIGHEST),
            low.eq(distance < _LOWEST),
            high.eq(field > highest),
            # Too low ones have no scale, whatever is found.
            place.eq(Mux(high, _HIGHEST + 1, distance[:5].as_signed())),
            exponent.eq(Mux(high, highest[:8], field)),
        ]
        scales = []
        kind = ScaleDivision if self.config.by_magnitude else BlockScale
        for index in range(len(self.config.candidates)):
            scale = add_child(m, platform, f"scale{index}", kind, self.config, str(index))
            m.d.comb += [
                scale.fraction.eq(peak[:fraction]),
                scale.exponent.eq(place),
                scale.tensor_fraction.eq(self.tensor_fraction),
                scale.empty.eq(low | ~field.any() | invalid),
            ]
            _load(m, scale, loads, ("quotients",) if self.config.by_magnitude else _OF_SCALES)
            scales.append(scale)
        return scales, exponent, place, invalid

    def _chosen_scale(
        self,
        m: Module,
        platform: object,
        loads: dict[str, Value],
        peak: Value,
        place: Value,
        lanes: list[Any],
        divisions: list[Any],
    ) -> Any:
        """The block scale of the candidate that a rule by magnitudes takes."""
        config = self.config
        choice = add_child(m, platform, "choice", MagnitudeChoice, config)
        _load(m, choice, loads, ("quotients", "scales") if config.by_crest_factor else ("quotients",))
        m.d.comb += choice.largest.eq(leading(peak[: config.fraction], config.error_bits))
        m.d.comb += [choice.magnitudes[index].eq(lane.magnitude) for index, lane in enumerate(lanes)]
        scale = add_child(m, platform, "scale", ChosenScale, config)
        _load(m, scale, loads, ("quotients", "scales", "choice", "bounds"))
        for index, division in enumerate(divisions):
            m.d.comb += [
                getattr(scale, f"code{index}").eq(division.code),
                getattr(scale, f"saturated{index}").eq(division.saturated),
            ]
        m.d.comb += [
            scale.exponent.eq(place),
            scale.second.eq(choice.second),
            scale.tensor_fraction.eq(self.tensor_fraction),
        ]
        return scale

    def _second(
        self, m: Module, platform: object, loads: dict[str, Value], lanes: list[Any], found: dict[str, Value]
    ) -> Value:
        """Whether the second candidate is taken."""
        choice = add_child(m, platform, "choice", Choice, self.config)
        for place, index in enumerate(counted_lanes(self.config)):
            m.d.comb += [
                choice.errors0[place].eq(lanes[index].error0),
                choice.errors1[place].eq(lanes[index].error1),
            ]
        if "sums" in loads:
            m.d.comb += choice.enable_sums.eq(loads["sums"])
        # What saturates with the larger top does so with the other.
        second: Value = choice.second & ~found["saturated0"]
        return second

    def _result(self, m: Module, load: Value, found: dict[str, Value], second: Value | None) -> None:
        """Load the scale byte and the flags."""
        tags = [found.get("tag", Const(candidate.tag, 1)) for candidate in self.config.datapaths]
        bytes_ = [Cat(found[f"scale{index}"], found[f"scale{index}"].any() & tag) for index, tag in enumerate(tags)]
        saturated = [found[f"saturated{index}"] for index in range(len(bytes_))]
        scale, flag = Signal(8), Signal()
        m.d.comb += [
            scale.eq(bytes_[0] if second is None else Mux(second, bytes_[1], bytes_[0])),
            flag.eq(saturated[0] if second is None else Mux(second, saturated[1], saturated[0])),
        ]
        invalid = found["invalid"]
        held = Signal(data.StructLayout({"scale": 8, "invalid": 1, "saturated": 1}), reset_less=True)
        with m.If(load):
            m.d.sync += [
                held.scale.eq(scale | Mux(invalid, _NAN, 0)),
                held.invalid.eq(invalid),
                held.saturated.eq(flag),
            ]
        m.d.comb += [
            self.result.payload.scale.eq(held.scale),
            self.result.payload.invalid.eq(held.invalid),
            self.result.payload.saturated.eq(held.saturated),
        ]


def _load(m: Module, block: Any, loads: dict[str, Value], registers: Iterable[str]) -> None:
    """Let a block load those of its registers that the pipeline has."""
    m.d.comb += [getattr(block, f"enable_{each}").eq(loads[each]) for each in registers if each in loads]

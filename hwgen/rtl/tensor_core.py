"""Tensor core: operand decoders, the array of elements and its streams."""

from __future__ import annotations

from functools import cache
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig
from hwgen.rtl.accumulate.exact import exact_registers
from hwgen.rtl.decode.operand import OperandDecoder, StoredOperand, codes_layout, decoded_as, operand_layout
from hwgen.rtl.element import Element
from hwgen.rtl.hierarchy import Block, add_child

__all__ = ["TensorCore", "result_layout", "step_layout"]


def _rows_layout(config: TensorCoreConfig, side: str, scale_width: int) -> data.StructLayout:
    rows = config.rows if side == "a" else config.columns
    return data.StructLayout(
        {
            "codes": data.ArrayLayout(codes_layout(config, side), rows),
            "scales": data.ArrayLayout(data.ArrayLayout(unsigned(scale_width), config.groups), rows),
        }
    )


@cache
def step_layout(config: TensorCoreConfig) -> data.StructLayout:
    """Layout of one step as it enters the core.

    ``a.codes[m][g][i]`` is element i of block g of row m of A and ``a.scales[m][g]`` its block scale; ``b`` likewise
    with N rows; ``c[m][n]`` is FP32; ``first`` takes C from the payload, ``last`` sends the result out.
    """
    return data.StructLayout(
        {
            **{side: _rows_layout(config, side, config.form(side).stored_scale_width) for side in "ab"},
            "c": data.ArrayLayout(data.ArrayLayout(unsigned(32), config.columns), config.rows),
            "first": 1,
            "last": 1,
        }
    )


def result_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    """Layout of one result: ``d[m][n]``, FP32."""
    return data.ArrayLayout(data.ArrayLayout(unsigned(32), config.columns), config.rows)


def _delayed(m: Module, advance: Value, valid: Value, last: Value, name: str) -> tuple[Signal, Signal]:
    """One pipeline register of the control bits."""
    next_valid = Signal(name=f"{name}_valid")
    next_last = Signal(name=f"{name}_last", reset_less=True)
    with m.If(advance):
        m.d.sync += [next_valid.eq(valid), next_last.eq(last)]
    return next_valid, next_last


class TensorCore(Block):
    """Block-scaled matrix multiply-accumulate, D = A B^T + C, an M x N tile and K = 16 G per step.

    ::

        step --> (operands) --> [operand decoder] x (M + N) --> (decoded) --> [element] x (M N) --> result
                     |                                                            ^
                     +-- valid, first, last --> (one bit each per pipeline register)

    The accumulation loop takes T = ``config.interleave`` cycles, and T tiles share it by turns: a step without
    ``first`` continues with the result of the T-th step accepted before it, which has just gone round. So the
    core accepts one step per cycle; with T = 1, steps of one tile or of any. The first T steps after
    reset must have ``first`` set. Reset drops every step under way.

    A result that is not taken stalls the whole pipeline: ``step.ready`` is a combinational function of
    ``result.ready``. A step with ``last`` gives one result, others none.

    With T > 1 the loop is a ring of T slots, the last of them the result register::

        step --> enter? --> (aligned) --> (total) --> (normal) --> (result) --> result, where ``last`` is set
                   ^                                                   |
                   +---------------------------------------------------+

    It moves on when a step enters. While none comes it stands still, and its slots remain in their places; a
    gap costs nothing but its own cycles. Only when a result with ``last`` is still on its way it moves on
    without a step: bubbles, which change no slot, carry the result out and then bring the slots back to their
    places. A step that comes meanwhile has to wait, at most T - 1 cycles.

    With exact numerics T is 1, whatever the pipeline. The accumulators, ``sum``, are not the results, which are
    rounded behind them::

        step --> ... --> (terms) --> (aligned) --> sum --> (total) --> (normal) --> result, where ``last`` is set

    A step without ``first`` behind one with ``last`` goes on with the sum as it is, not as it was rounded.

    Parameters
    ----------
    config
        Tensor core configuration.

    Attributes
    ----------
    step : In(stream.Signature(step_layout(config)))
        Steps.
    result : Out(stream.Signature(result_layout(config)))
        Results of the steps with ``last``, in order.
    latency : int
        Cycles from the acceptance of a step to its result, if steps are accepted in all of them.
    """

    module_name = "tensor_core"
    registers = True

    def __init__(self, config: TensorCoreConfig) -> None:
        self.latency = config.latency
        super().__init__(
            config,
            {
                "step": In(stream.Signature(step_layout(config))),
                "result": Out(stream.Signature(result_layout(config))),
            },
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        payload = self.step.payload

        advance = Signal()
        waiting = Signal()  # a result is at the output
        # Steps move on towards the loop, unless one of them waits there for its turn.
        accept = Signal() if config.interleave > 1 else advance
        m.d.comb += [
            advance.eq(~waiting | self.result.ready),
            self.step.ready.eq(accept),
            self.result.valid.eq(waiting),
        ]

        valid, first, last, c = self.step.valid, payload.first, payload.last, payload.c
        sides = {}
        for name, sent in (("a", payload.a), ("b", payload.b)):
            # The bits of a scale byte that are not read go no further.
            sides[name] = side = Signal(_rows_layout(config, name, config.form(name).scale_width), name=name)
            m.d.comb += side.codes.eq(sent.codes)
            for row, scales in enumerate(sent.scales):
                m.d.comb += [side.scales[row][group].eq(scale) for group, scale in enumerate(scales)]

        def held_addend(register: str) -> tuple[Signal, Signal]:
            """``c`` and ``first`` behind a register; C loads only where it is read."""
            held_c = Signal(result_layout(config), name=f"{register}_c", reset_less=True)
            held_first = Signal(name=f"{register}_first", reset_less=True)
            m.d.sync += held_first.eq(first)
            with m.If(first):
                m.d.sync += held_c.eq(c)
            return held_c, held_first

        if "operands" in config.pipeline:
            held = {name: Signal.like(side, name=f"operands_{name}", reset_less=True) for name, side in sides.items()}
            with m.If(accept & valid):
                m.d.sync += [held[name].eq(side) for name, side in sides.items()]
                c, first = held_addend("operands")
            sides = held
            valid, last = _delayed(m, accept, valid, last, "operands")
        enable_decoded = valid
        if "decoded" in config.pipeline:
            with m.If(accept & valid):
                c, first = held_addend("decoded")
            valid, last = _delayed(m, accept, valid, last, "decoded")
        enable_sums = valid
        if "sums" in config.pipeline:
            with m.If(accept & valid):
                c, first = held_addend("sums")
            valid, last = _delayed(m, accept, valid, last, "sums")
        enable_terms = valid
        if "terms" in config.pipeline:
            valid, last = _delayed(m, accept, valid, last, "terms")
        enter, rotate, leaving = valid, advance & valid, valid & last
        controls: dict[str, Value] = {}
        if config.interleave > 1:
            enter, rotate, leaving = self._ring(m, advance, accept, valid, last)
        elif config.exact:
            controls, leaving = self._line(m, advance, valid, last)
            rotate = advance & leaving
        with m.If(advance):
            m.d.sync += waiting.eq(leaving)

        operands = []
        for name, side in sides.items():
            decoders = [
                add_child(m, platform, f"{name}{row}", OperandDecoder, config, decoded_as(config, name))
                for row in range(len(side.codes))
            ]
            for row, edge in enumerate(decoders):
                m.d.comb += [edge.codes.eq(side.codes[row]), edge.scales.eq(side.scales[row])]
            decoded = [edge.operand for edge in decoders]
            if "decoded" in config.pipeline:
                decoded = [
                    self._behind_decoder(m, platform, accept & enable_decoded, operand, name, f"decoded_{name}{row}")
                    for row, operand in enumerate(decoded)
                ]
            if "sums" in config.pipeline:
                decoded = [
                    self._scales_behind(m, accept & enable_sums, operand, name, f"sums_{name}{row}")
                    for row, operand in enumerate(decoded)
                ]
            operands.append(decoded)

        for row, a in enumerate(operands[0]):
            for column, b in enumerate(operands[1]):
                element = add_child(m, platform, f"element{row}_{column}", Element, config)
                m.d.comb += [
                    element.a.eq(a),
                    element.b.eq(b),
                    element.c.eq(c[row][column]),
                    element.first.eq(first),
                    element.enable_result.eq(rotate),
                    self.result.payload[row][column].eq(element.result),
                ]
                if "sums" in config.pipeline:
                    m.d.comb += element.enable_sums.eq(accept & enable_sums)
                if "terms" in config.pipeline:
                    m.d.comb += element.enable_terms.eq(accept & enable_terms)
                if config.interleave > 1:
                    m.d.comb += element.enter.eq(enter)
                for name, control in controls.items():
                    m.d.comb += getattr(element, name).eq(control)
        return m

    def _line(self, m: Module, advance: Value, valid: Value, last: Value) -> tuple[dict[str, Value], Value]:
        """Control of exact accumulation.

        Returns what each element is told, see `hwgen.rtl.accumulate.exact.exact_controls`, and whether a result leaves.
        """
        controls: dict[str, Value] = {}
        for register in exact_registers(self.config):
            controls[f"enable_{register}"] = advance & valid
            if register == "aligned":
                valid, last = _delayed(m, advance, valid, last, register)
                continue
            # From the accumulator on only results move.
            leaving = valid & last if register == "sum" else valid
            valid = Signal(name=f"{register}_last")
            with m.If(advance):
                m.d.sync += valid.eq(leaving)
            if register == "sum":
                controls["complete"] = valid
        return controls, valid

    def _ring(
        self, m: Module, advance: Value, accept: Signal, valid: Value, last: Value
    ) -> tuple[Signal, Signal, Value]:
        """Control of a loop of more than one cycle.

        Returns whether a step enters, whether the slots move on, and ``last`` of the slot that leaves.
        """
        config = self.config
        lasts = [Signal(name=f"{register}_last") for register in LOOP_REGISTERS if register in config.pipeline]
        bubbles = Signal(range(config.interleave))  # modulo T: 0 is every slot in its place
        turned = bubbles.any()
        enter = Signal()
        rotate = Signal()
        m.d.comb += [
            enter.eq(valid & ~turned),
            rotate.eq(advance & (valid | turned | Cat(*lasts).any())),
            accept.eq(advance & ~(valid & turned)),
        ]
        leaving: Value = enter & last
        with m.If(rotate):
            for flag in lasts:
                m.d.sync += flag.eq(leaving)
                leaving = flag
            with m.If(~enter):
                m.d.sync += bubbles.eq(Mux(bubbles == config.interleave - 1, 0, bubbles + 1))
        return enter, rotate, leaving

    def _behind_decoder(
        self, m: Module, platform: object, enable: Value, operand: Any, side: str, name: str
    ) -> data.View:
        """A row behind the register of its decoder."""
        stored = Signal.like(operand, name=name, reset_less=True)
        with m.If(enable):
            m.d.sync += stored.eq(operand)
        if stored.shape() == operand_layout(self.config, side):
            return stored
        whole = add_child(m, platform, f"{name}_whole", StoredOperand, self.config)
        m.d.comb += whole.stored.eq(stored)
        return whole.operand

    def _scales_behind(self, m: Module, enable: Value, operand: Any, side: str, name: str) -> data.View:
        """A decoded row whose scales are a register behind its lanes."""
        behind = Signal(operand_layout(self.config, side), name=name)
        scales = Signal.like(behind.scales, name=f"{name}_scales", reset_less=True)
        nan = Signal(name=f"{name}_nan", reset_less=True)
        with m.If(enable):
            m.d.sync += [scales.eq(operand.scales), nan.eq(operand.nan)]
        m.d.comb += [behind.eq(operand), behind.scales.eq(scales), behind.nan.eq(nan)]
        return behind

"""Tensor core: operand decoders, the array of elements and its streams."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.element import Element
from hwgen.rtl.hierarchy import Block, add_child
from hwgen.rtl.operand import OperandDecoder, codes_layout, scale_code_width

__all__ = ["TensorCore", "result_layout", "step_layout"]


def _rows_layout(config: TensorCoreConfig, rows: int, scale_width: int) -> data.StructLayout:
    return data.StructLayout(
        {
            "codes": data.ArrayLayout(codes_layout(config), rows),
            "scales": data.ArrayLayout(data.ArrayLayout(unsigned(scale_width), config.groups), rows),
        }
    )


def step_layout(config: TensorCoreConfig) -> data.StructLayout:
    """Layout of one step as it enters the core.

    ``a.codes[m][g][i]`` is element i of block g of row m of A and ``a.scales[m][g]`` its block scale; ``b`` likewise
    with N rows; ``c[m][n]`` is FP32; ``first`` takes C from the payload, ``last`` sends the result out.
    """
    return data.StructLayout(
        {
            "a": _rows_layout(config, config.rows, 8),
            "b": _rows_layout(config, config.columns, 8),
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

        step --> (operands) --> [operand decoder] x (M + N) --> [element] x (M N) --> result
                     |                                              ^
                     +-- valid, first, last --> (one bit each per pipeline register)

    The accumulation loop takes a single cycle, so the core accepts one step per cycle in any order of tiles.
    A result that is not taken stalls the whole pipeline: ``step.ready`` is ``result.ready`` or no
    result waiting, a combinational path. A step with ``last`` gives one result, others none.
    A step without ``first`` continues with the result of the step before it, so that the first step after
    reset must have ``first`` set. Reset drops every step under way.

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
        Cycles from the acceptance of a step to its result, without stalls.
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
        m.d.comb += [
            advance.eq(~waiting | self.result.ready),
            self.step.ready.eq(advance),
            self.result.valid.eq(waiting),
        ]

        valid, first, last, c = self.step.valid, payload.first, payload.last, payload.c
        sides = {}
        for name, sent in (("a", payload.a), ("b", payload.b)):
            # Bit 7 of a scale goes no further where it is not read.
            sides[name] = side = Signal(_rows_layout(config, len(sent.codes), scale_code_width(config)), name=name)
            m.d.comb += side.codes.eq(sent.codes)
            for row, scales in enumerate(sent.scales):
                m.d.comb += [side.scales[row][group].eq(scale) for group, scale in enumerate(scales)]

        if "operands" in config.pipeline:
            held = {name: Signal.like(side, name=f"operands_{name}", reset_less=True) for name, side in sides.items()}
            held_c = Signal(result_layout(config), name="operands_c", reset_less=True)
            held_first = Signal(name="operands_first", reset_less=True)
            with m.If(advance & valid):
                m.d.sync += [held[name].eq(side) for name, side in sides.items()]
                m.d.sync += held_first.eq(first)
                with m.If(first):
                    m.d.sync += held_c.eq(c)
            sides, c, first = held, held_c, held_first
            valid, last = _delayed(m, advance, valid, last, "operands")
        enable_terms = valid
        if "terms" in config.pipeline:
            valid, last = _delayed(m, advance, valid, last, "terms")
        with m.If(advance):
            m.d.sync += waiting.eq(valid & last)

        decoded = []
        for name, side in sides.items():
            decoders = [
                add_child(m, platform, f"{name}{row}", OperandDecoder, config) for row in range(len(side.codes))
            ]
            decoded.append(decoders)
            for row, decoder in enumerate(decoders):
                m.d.comb += [decoder.codes.eq(side.codes[row]), decoder.scales.eq(side.scales[row])]

        for row, a in enumerate(decoded[0]):
            for column, b in enumerate(decoded[1]):
                element = add_child(m, platform, f"element{row}_{column}", Element, config)
                m.d.comb += [
                    element.a.eq(a.operand),
                    element.b.eq(b.operand),
                    element.c.eq(c[row][column]),
                    element.first.eq(first),
                    element.enable_result.eq(advance & valid),
                    self.result.payload[row][column].eq(element.result),
                ]
                if "terms" in config.pipeline:
                    m.d.comb += element.enable_terms.eq(advance & enable_terms)
        return m

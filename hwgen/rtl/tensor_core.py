"""Tensor core: operand decoders, the array of elements and its streams."""

from __future__ import annotations

from functools import cache
from typing import Any

from amaranth.hdl import Module, Signal, Value, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats.unscaled import SCALE, TYPE_BITS
from hwgen.rtl import control
from hwgen.rtl.decode.operand import (
    OperandDecoder,
    codes_layout,
    decoded_as,
    late_layout,
    operand_layout,
)
from hwgen.rtl.element import Element
from hwgen.rtl.hierarchy import Block, add_child, held_apart

__all__ = ["TensorCore", "addend_layout", "read_layout", "result_layout", "step_layout"]


def _rows_layout(config: TensorCoreConfig, side: str, scale_width: int) -> data.StructLayout:
    rows = config.rows if side == "a" else config.columns
    fields = {"codes": data.ArrayLayout(codes_layout(config, side), rows)}
    if config.form(side).has_scales:
        fields["scales"] = data.ArrayLayout(data.ArrayLayout(unsigned(scale_width), config.groups), rows)
    return data.StructLayout(fields)


@cache
def step_layout(config: TensorCoreConfig) -> data.StructLayout:
    """Layout of one step as it enters the core.

    ``a.codes[m][g][i]`` is element i of block g of row m of A and ``a.scales[m][g]`` its block scale, if it has one;
    ``b`` likewise with N rows; ``first`` takes the next C, ``last`` sends the result out.

    With a slot, ``mode`` is 1 in a step at half the rate. Its rows are 8 G elements without scales, in bytes: element
    8 g + j of a row is in ``codes[m][g][2 j]``, its low half, and ``codes[m][g][2 j + 1]``. ``a_type`` and ``b_type``
    are its types, codes of `hwgen.formats.unscaled.TYPES`. With a code that is none of these every D is NaN. Steps of
    FP4 ignore both, but for the bit `hwgen.formats.unscaled.SELECTOR` where steps choose the elements of blocks.
    With ``config.half_scaled`` the byte of block 0 of a row is its E8M0 scale at half the rate; the others are ignored.
    """
    further = {"mode": 1, "a_type": TYPE_BITS, "b_type": TYPE_BITS} if config.slotted else {}
    return data.StructLayout(
        {
            **{side: _rows_layout(config, side, config.form(side).stored_scale_width) for side in "ab"},
            "first": 1,
            "last": 1,
            **further,
        }
    )


def read_layout(config: TensorCoreConfig, side: str) -> data.StructLayout:
    """Layout of what is read of an operand of a step, as `step_layout` has it: codes, scales, and with a slot its rate.

    Bit 7 of a scale is missing where it is not read. ``half``, ``element_type`` and ``half_scale`` go to the operand
    decoders, one ``half_scale`` to each.
    """
    fields = dict(_rows_layout(config, side, config.form(side).scale_width))
    shapes = {name: field.shape for name, field in fields.items()}
    if config.slotted:
        shapes |= {"half": 1, "element_type": TYPE_BITS}
    if config.half_scaled:
        shapes["half_scale"] = data.ArrayLayout(unsigned(SCALE.width), config.rows if side == "a" else config.columns)
    return data.StructLayout(shapes)


def addend_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    """Layout of the C of one tile: ``c[m][n]``, FP32."""
    return data.ArrayLayout(data.ArrayLayout(unsigned(32), config.columns), config.rows)


def result_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    """Layout of one result: ``d[m][n]``, FP32."""
    return addend_layout(config)


def _held(m: Module, enable: Value, value: Any, name: str) -> Any:
    """A value behind a register of its shape, which loads it with ``enable``."""
    held = Signal.like(value, name=name, reset_less=True)
    with m.If(enable):
        m.d.sync += held.eq(value)
    return held


class TensorCore(Block):
    """Block-scaled matrix multiply-accumulate, D = A B^T + C, an M x N tile and K = 16 G per step.

    The accumulation loop takes T = ``config.interleave`` cycles, and T tiles share it by turns: a step without
    ``first`` continues with the result of the T-th step accepted before it, which has just gone round. So the
    core accepts one step per cycle; with T = 1, steps of one tile or of any. The first T steps after
    reset must have ``first`` set. Reset drops every step under way. A result that is not taken stalls the whole
    pipeline. A step with ``last`` gives one result, others none. With exact numerics T is 1, whatever the pipeline,
    and a step without ``first`` behind one with ``last`` goes on with the sum as it is, not as it was rounded.

    C has a stream of its own, ``addend``: one for every step with ``first``, in their order. It waits in a register of
    the elements until its step enters the accumulation loop, which makes room for the next one in the same cycle: a
    tile per cycle. A step that finds no C waits, and all before it. Without it, and without a result that is not
    taken, nothing waits. C may come before its step; nobody need send one before the other.

    ``step.ready`` and ``addend.ready`` are combinational functions of ``result.ready``, and where no register stands
    before the loop of ``step`` as well; they do not depend on ``addend.valid``. Reset drops C, too.

    ::

        step --> (operands) --> [operand decoder] x (M + N) --> (decoded) --> [element] x (M N) --> result
                     |                                                            ^  ^
                     +-- valid, first, last --> [control] ------------------------+  |
        addend ----------------------------------------------------------------------+

    Registers in parentheses, where the pipeline has them; `hwgen.rtl.control` says when they load.

    Cost: reports/overhead.md has the area of the core and of its blocks, docs/datapath.md why the registers stand
    where they stand.

    Why it is right: docs/proofs.md, the stream protocol.

    Parameters
    ----------
    config
        Tensor core configuration.

    Attributes
    ----------
    step : In(stream.Signature(step_layout(config)))
        Steps.
    addend : In(stream.Signature(addend_layout(config)))
        C of the steps with ``first``, in order.
    result : Out(stream.Signature(result_layout(config)))
        Results of the steps with ``last``, in order.
    latency : int
        Cycles from the acceptance of a step to its result, if steps are accepted in all of them and C does not come
        late.
    """

    module_name = "tensor_core"
    registers = True

    def __init__(self, config: TensorCoreConfig) -> None:
        self.latency = config.latency
        super().__init__(
            config,
            {
                "step": In(stream.Signature(step_layout(config))),
                "addend": In(stream.Signature(addend_layout(config))),
                "result": Out(stream.Signature(result_layout(config))),
            },
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, payload = self.config, self.step.payload
        advance = Signal()
        waiting = Signal()  # a result is at the output
        loop, pipeline, addend = control.loop(config, advance), control.Pipeline(config), control.Addend()
        m.d.comb += [
            advance.eq(~waiting | self.result.ready),
            self.step.ready.eq(loop.accept),
            self.result.valid.eq(waiting),
        ]
        sides = {side: self._read(m, side) for side in "ab"}
        half = payload.mode if config.slotted else None
        step = control.Step(self.step.valid, payload.last, payload.first, sides, half=half)
        step = pipeline.advance(m, loop.accept, step)
        loop.advance(m, step, addend)
        ready, enable_addend = addend.advance(m, self.addend.valid, loop.takes)
        m.d.comb += self.addend.ready.eq(ready)
        with m.If(advance):
            m.d.sync += waiting.eq(loop.leaving)

        rows_a, rows_b = (self._decoded(m, platform, side, rows, pipeline) for side, rows in step.sides.items())
        late = {}
        if config.early_exponents:
            for side, rows in (("a", rows_a), ("b", rows_b)):
                late[side] = [
                    self._late(m, pipeline, operand, side, f"{side}{row}") for row, operand in enumerate(rows)
                ]
        for row, a in enumerate(rows_a):
            for column, b in enumerate(rows_b):
                element = add_child(m, platform, f"element{row}_{column}", Element, config)
                m.d.comb += [
                    element.a.eq(a),
                    element.b.eq(b),
                    element.c.eq(self.addend.payload[row][column]),
                    element.enable_addend.eq(enable_addend),
                    element.enable_result.eq(loop.rotate),
                    self.result.payload[row][column].eq(element.result),
                ]
                for name, enable in {**pipeline.enables, **loop.enables}.items():
                    m.d.comb += getattr(element, name).eq(enable)
                if config.early_exponents:
                    m.d.comb += [element.a_late.eq(late["a"][row]), element.b_late.eq(late["b"][column])]
        return m

    def _read(self, m: Module, side: str) -> data.View:
        """Codes and scales of an operand: bit 7 of a scale goes no further where it is not read."""
        sent = getattr(self.step.payload, side)
        read = Signal(read_layout(self.config, side), name=side)
        m.d.comb += read.codes.eq(sent.codes)
        if self.config.slotted:
            m.d.comb += [
                read.half.eq(self.step.payload.mode),
                read.element_type.eq(getattr(self.step.payload, f"{side}_type")),
            ]
        if self.config.half_scaled:
            m.d.comb += [read.half_scale[row].eq(scales[0]) for row, scales in enumerate(sent.scales)]
        for row, scales in enumerate(sent.scales if self.config.form(side).has_scales else ()):
            m.d.comb += [read.scales[row][group].eq(scale) for group, scale in enumerate(scales)]
        return read

    def _decoded(self, m: Module, platform: object, side: str, rows: Any, pipeline: control.Pipeline) -> list[Any]:
        """Decoded rows of an operand, behind the registers of the pipeline."""
        alike = decoded_as(self.config, side)
        edges = [
            add_child(m, platform, f"{side}{row}", OperandDecoder, self.config, alike) for row in range(len(rows.codes))
        ]
        for row, edge in enumerate(edges):
            m.d.comb += edge.codes.eq(rows.codes[row])
            if self.config.form(side).has_scales:
                m.d.comb += edge.scales.eq(rows.scales[row])
            if self.config.slotted:
                m.d.comb += [edge.half.eq(rows.half), edge.element_type.eq(rows.element_type)]
            if self.config.half_scaled:
                m.d.comb += edge.half_scale.eq(rows.half_scale[row])
        decoded, loads = [edge.operand for edge in edges], pipeline.loads
        if "decoded" in loads:
            decoded = [
                self._row_behind(m, pipeline, row, f"decoded_{side}{index}") for index, row in enumerate(decoded)
            ]
        for register, delayed in (
            ("tree", self._scales_behind),
            ("sums", self._scales_behind),
            ("factors", self._exponents_behind),
        ):
            if register in loads and not (register == "factors" and self.config.early_exponents):
                decoded = [
                    delayed(m, pipeline, register, operand, side, f"{register}_{side}{row}")
                    for row, operand in enumerate(decoded)
                ]
        return decoded

    def _row_behind(self, m: Module, pipeline: control.Pipeline, row: Any, name: str) -> Any:
        """A decoded row behind the register ``decoded``."""
        if not self.config.slotted:
            return _held(m, pipeline.loads["decoded"], row, name)
        of_half = ("slots", "significands", "half_scale")
        return held_apart(m, row, name, pipeline.loads["decoded"], of_half, pipeline.products["decoded"])

    def _scales_behind(
        self, m: Module, pipeline: control.Pipeline, register: str, operand: Any, side: str, name: str
    ) -> data.View:
        """A decoded row whose scales are a register behind its lanes."""
        enable = pipeline.loads[register]
        behind = Signal(operand_layout(self.config, side), name=name)
        scales = _held(m, enable, operand.scales, f"{name}_scales")
        m.d.comb += [behind.eq(operand), behind.scales.eq(scales)]
        self._nan_behind(m, enable, operand, behind, side, name)
        self._half_rate_behind(m, pipeline, register, operand, behind, name)
        return behind

    def _half_rate_behind(
        self, m: Module, pipeline: control.Pipeline, register: str, operand: Any, behind: Any, name: str
    ) -> None:
        """What is read of the row at half the rate beside significands, a register behind; with a slot."""
        fields = ["half_scale"] if self.config.half_scaled else []
        if self.config.slotted and not self.config.early_exponents:  # see `_late`
            fields.append("slots")
        for field in fields:
            held = _held(m, pipeline.products[register], getattr(operand, field), f"{name}_{field}")
            m.d.comb += getattr(behind, field).eq(held)

    def _nan_behind(self, m: Module, enable: Value, operand: Any, behind: Any, side: str, name: str) -> None:
        """Whether a scale of the row is NaN, a register behind; where it may be."""
        if not self.config.form(side).may_be_nan:
            return
        m.d.comb += behind.nan.eq(_held(m, enable, operand.nan, f"{name}_nan"))

    def _exponents_behind(
        self, m: Module, pipeline: control.Pipeline, register: str, operand: Any, side: str, name: str
    ) -> data.View:
        """A decoded row whose scales, but for their significands, are a register behind its significands."""
        enable = pipeline.loads[register]
        behind = Signal(operand_layout(self.config, side), name=name)
        m.d.comb += behind.eq(operand)
        self._nan_behind(m, enable, operand, behind, side, name)
        self._half_rate_behind(m, pipeline, register, operand, behind, name)
        for group, scale in enumerate(operand.scales):
            for field in [name for name, _ in scale.shape() if name != "significand"]:
                held = _held(m, enable, getattr(scale, field), f"{name}_{field}{group}")
                m.d.comb += getattr(behind.scales[group], field).eq(held)
        return behind

    def _late(self, m: Module, pipeline: control.Pipeline, operand: Any, side: str, name: str) -> data.View:
        """What is read of a decoded row behind ``factors``, where the largest exponent is found before."""
        late = Signal(late_layout(self.config, side), name=f"factors_{name}", reset_less=True)
        slots = operand.slots  # still with the lanes
        for register in ("tree", "sums"):
            if register in pipeline.loads:
                slots = _held(m, pipeline.products[register], slots, f"{register}_{name}_slots")
        with m.If(pipeline.products["factors"]):
            m.d.sync += late.slots.eq(slots)
        with m.If(pipeline.loads["factors"]):
            if self.config.form(side).may_be_nan:
                m.d.sync += late.nan.eq(operand.nan)
            if self.config.groups > 1:
                m.d.sync += [late.exponents[group].eq(scale.exponent) for group, scale in enumerate(operand.scales)]
        return late

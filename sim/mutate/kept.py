"""What registers of a core keep from one cycle to the next: a proof may take it for granted, and must show it again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from amaranth.lib import data

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig
from hwgen.config.quantiser import QuantiserConfig
from hwgen.rtl.accumulate.products import product_layout
from hwgen.rtl.accumulate.terms import terms_layout
from hwgen.rtl.decode.operand import late_layout, operand_layout
from hwgen.rtl.decode.unscaled import SLOT
from hwgen.rtl.tensor_core import read_layout
from sim.mutate.relation import Bits, Built, parsed

__all__ = ["kept"]

_SCALES = re.compile(r"(?P<stage>decoded|tree|sums)_(?P<side>[ab])\d+(?P<alone>_scales)?")
_ROW = re.compile(r"(?P<decoded>decoded_)?(element\d+_\d+_)?(?P<side>[ab])(?(decoded)\d+|_late)")
_PRODUCTS = re.compile(
    r"products"
    r"|(?P<stage>tree|sums|factors|compared)_([ab]\d+_((?P<slots>slots)|half_scale)|(products|live|largest)\d*)"
)


def kept(config: Built, registers: Sequence[str], role: str) -> dict[str, str]:
    """Verilog conditions on registers of control, and by it on others, that every cycle keeps; by what they claim.

    - Where it is known a cycle ahead that a step enters the loop, the step is there when it does.
    - In a step at half the rate significands of block scales are zero.
    - What registers hold of steps at half the rate alone is always the same in others, once one of these was there.
    - Where no step is in a stage, it says the rate of the step that left it last, and so does the next stage. Operands
      of a step say its rate, too.

    Parameters
    ----------
    config
        The core, or the quantiser.
    registers, role
        As of `sim.mutate.relation.word`.
    """
    if isinstance(config, QuantiserConfig) or config.exact:
        return {}
    held = {name: f"{role}{index}" for index, name in enumerate(registers)}
    found = {}
    before = [stage for stage in config.pipeline if stage not in LOOP_REGISTERS]
    if config.foresees and f"{before[-1]}_valid" in held:
        for name in held:
            if name == "enter" or name.endswith(".accumulate_enter"):
                found[f"{name} without a step"] = f"!{held[name]} || {held[f'{before[-1]}_valid']}"
    for register in registers if config.slotted else ():
        _, name, bits = parsed(register)
        stage = _of_significand(config, name, bits)
        if stage and {f"{stage}_valid", f"{stage}_fp4"} <= held.keys():
            flags = f"!{held[f'{stage}_valid']} || {held[f'{stage}_fp4']}"
            found[f"{register} at half the rate"] = f"{flags} || {held[register]} == 0"
        resting = _of_products(config, name, bits)
        if resting and (fp4 := held.get(f"{resting[0]}_fp4")):
            found[f"{register} in FP4"] = f"!{fp4} || {held[register]} == {resting[1]}"
    for side in "ab":
        half = read_layout(config, side)["half"].offset if config.slotted else 0
        if (name := f"operands_{side} [{half}:{half}]") in held and "operands_fp4" in held:
            found[f"rate of {side}"] = f"!{held['operands_valid']} || {held[name]} != {held['operands_fp4']}"
    for stage, later in pairwise(stage for stage in before if f"{stage}_fp4" in held):
        if valid := held.get(f"{stage}_valid"):
            found[f"rate of {later}"] = f"{valid} || {held[f'{stage}_fp4']} == {held[f'{later}_fp4']}"
    return found


def _within(bits: Bits, field: data.Field) -> bool:
    """Whether bits of a register are of one of its fields."""
    return bits is not None and field.offset <= bits[1] and bits[0] < field.offset + field.width


def _of_products(config: TensorCoreConfig, name: str, bits: Bits) -> tuple[str, int] | None:
    """The stage whose steps at half the rate alone are in a register, and what it holds in others.

    None if it holds more than that. In steps of FP4 there are elements of zero, and products that are shifted out.
    """
    if match := _ROW.fullmatch(name):
        fields = dict(operand_layout(config, match["side"]) if match["decoded"] else late_layout(config, match["side"]))
        slots = fields["slots"]
        if _within(bits, slots):
            return "decoded" if match["decoded"] else "factors", _resting(SLOT, bits, slots.offset)
        own = [fields[each] for each in ("significands", "half_scale") if each in fields]
        return ("decoded", 0) if match["decoded"] and any(_within(bits, each) for each in own) else None
    if name == "accumulate_terms":
        products = terms_layout(config)["products"]
        return ("terms", _resting(product_layout(config), bits, products.offset)) if _within(bits, products) else None
    if match := _PRODUCTS.fullmatch(name):
        if match["stage"] == "compared":
            return match["stage"], _resting(product_layout(config), bits)
        return match["stage"] or "tree", _resting(SLOT, bits) if match["slots"] else 0
    return None


def _resting(layout: data.StructLayout, bits: Bits, start: int = 0) -> int:
    """What elements or products of zero take, in these bits of a register.

    They are one behind the other in it, from the bit ``start`` on.
    """
    zero = {"exponent": 1, "zero": 1, "distance": -1}
    word = layout.const({name: value for name, value in zero.items() if name in dict(layout)}).as_value().value
    high, low = bits or (0, 0)
    return word >> (low - start) % layout.size & (1 << high - low + 1) - 1


def _of_significand(config: TensorCoreConfig, name: str, bits: Bits) -> str | None:
    """The stage whose significand of a scale is in a register; None if it holds something else."""
    if name == "factors_significands":
        return "factors"
    match = _SCALES.fullmatch(name)
    if match is None:
        return None
    scales = operand_layout(config, match["side"])["scales"]
    start = 0 if match["alone"] else scales.offset
    places = [scales.shape[group] for group in range(config.groups)]
    found = [(start + place.offset, dict(place.shape).get("significand")) for place in places]
    fields = (data.Field(field.shape, base + field.offset) for base, field in found if field)
    return match["stage"] if any(_within(bits, field) for field in fields) else None

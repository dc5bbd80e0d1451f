"""What registers of a core keep from one cycle to the next: a proof may take it for granted, and must show it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from amaranth.lib import data

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig
from hwgen.config.quantiser import QuantiserConfig
from hwgen.rtl.accumulate.products import product_layout
from hwgen.rtl.accumulate.terms import terms_layout
from hwgen.rtl.decode.operand import late_layout, operand_layout
from hwgen.rtl.decode.unscaled import SLOT
from hwgen.rtl.tensor_core import read_layout
from sim.mutate.relation import Built

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
    rates = [stage for stage in config.pipeline if f"{stage}_fp4" in held]
    for stage in rates:
        valid, fp4 = held.get(f"{stage}_valid"), held[f"{stage}_fp4"]
        for name in registers:
            if valid and _is_significand(config, name, stage):
                found[f"{name} at half the rate"] = f"!{valid} || {fp4} || {held[name]} == 0"
            resting = _of_products(config, name)
            if resting and resting[0] == stage:
                found[f"{name} in FP4"] = f"!{fp4} || {held[name]} == {resting[1]}"
    for side in "ab":
        half = read_layout(config, side)["half"].offset if config.slotted else 0
        if (name := f"operands_{side} [{half}:{half}]") in held and "operands_fp4" in held:
            found[f"rate of {side}"] = f"!{held['operands_valid']} || {held[name]} != {held['operands_fp4']}"
    for stage, later in pairwise(stage for stage in rates if stage in before):
        if valid := held.get(f"{stage}_valid"):
            found[f"rate of {later}"] = f"{valid} || {held[f'{stage}_fp4']} == {held[f'{later}_fp4']}"
    return found


def _cut(register: str) -> tuple[int, int]:
    """Highest and lowest bit of what was cut out of a register; all of it from 0 on, if it is whole."""
    span = register.partition(" ")[2]
    high, low = map(int, span.strip("[]").split(":")) if span else (0, 0)
    return high, low


def _within(register: str, fields: Iterable[data.Field]) -> data.Field | None:
    """The one of some fields of a register in which the bits lie that were cut out of it."""
    high, low = _cut(register)
    return next((each for each in fields if each.offset <= low and high < each.offset + each.width), None)


def _of_products(config: TensorCoreConfig, register: str) -> tuple[str, int] | None:
    """The stage whose steps at half the rate alone are in a register, and what it holds in others.

    None if it holds more than that. In steps of FP4 there are elements of zero, and products that are shifted out.
    """
    name = register.partition(" ")[0].rpartition(".")[2]
    if match := _ROW.fullmatch(name):
        fields = dict(operand_layout(config, match["side"]) if match["decoded"] else late_layout(config, match["side"]))
        slots = fields["slots"]
        if _within(register, [slots]):
            return "decoded" if match["decoded"] else "factors", _resting(SLOT, register, slots.offset)
        own = [fields[each] for each in ("significands", "half_scale") if each in fields]
        return ("decoded", 0) if match["decoded"] and _within(register, own) else None
    if name == "accumulate_terms":
        products = terms_layout(config)["products"]
        resting = _resting(product_layout(config), register, products.offset)
        return ("terms", resting) if _within(register, [products]) else None
    if match := _PRODUCTS.fullmatch(name):
        if match["stage"] == "compared":
            return match["stage"], _resting(product_layout(config), register)
        return match["stage"] or "tree", _resting(SLOT, register) if match["slots"] else 0
    return None


def _resting(layout: data.StructLayout, register: str, start: int = 0) -> int:
    """What elements or products of zero take, in the bits that were cut out of a register.

    They are one behind the other in it, from the bit ``start`` on.
    """
    zero = {"exponent": 1, "zero": 1, "distance": -1}
    word = layout.const({name: value for name, value in zero.items() if name in dict(layout)}).as_value().value
    high, low = _cut(register)
    return word >> (low - start) % layout.size & (1 << high - low + 1) - 1


def _is_significand(config: TensorCoreConfig, register: str, stage: str) -> bool:
    """Whether a register holds a significand of a scale, or some of its bits, of the step in this stage."""
    name = register.partition(" ")[0].rpartition(".")[2]
    if name == "factors_significands":
        return stage == "factors"
    match = _SCALES.fullmatch(name)
    if match is None or match["stage"] != stage:
        return False
    scales = operand_layout(config, match["side"])["scales"]
    start = 0 if match["alone"] else scales.offset
    places = [scales.shape[group] for group in range(config.groups)]
    found = [(start + place.offset, dict(place.shape).get("significand")) for place in places]
    fields = (data.Field(field.shape, base + field.offset) for base, field in found if field)
    return _within(register, fields) is not None

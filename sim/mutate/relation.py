"""What a proof may take for granted: which registers matter, and the ranges of inputs and of what registers hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hwgen.config import ELEMENT_REGISTERS, LOOP_REGISTERS, PIPELINE_REGISTERS, TensorCoreConfig
from hwgen.config.quantiser import QUANTISER_REGISTERS, QuantiserConfig
from hwgen.formats.unscaled import HIGHEST_PRODUCT, SCALE
from hwgen.rtl.accumulate.aligned_sum import Windows
from hwgen.rtl.accumulate.products import ProductWindows
from hwgen.rtl.accumulate.terms import emax_layout, terms_layout
from hwgen.rtl.lanes import lanes

__all__ = [
    "GUESSES",
    "Bits",
    "Built",
    "anticipated",
    "condition",
    "in_range",
    "largest_held",
    "matters_with",
    "parsed",
    "with_result",
    "word",
]

Built = TensorCoreConfig | QuantiserConfig
"""What mutants are planted into."""

Bits = tuple[int, int] | None
"""Highest and lowest bit of what was cut out of a register; None if it is whole."""

_STAGE = re.compile(rf"({'|'.join(PIPELINE_REGISTERS)})_\w+")
_QUANTISED = re.compile(rf"({'|'.join(QUANTISER_REGISTERS)})_\w+")
_RESULT = "result__valid"
"""In a flat design a register has the name of the port that it is connected to."""
_RATE = re.compile(r"\w+_(half(_terms|_exponents)?|(?P<fp4>fp4))")
_TERM = re.compile(r"compared_(magnitude|distance|sign)\d+")
_EDGE = re.compile(r"element\d+_\d+_(first|half|half_terms|half_exponents|[ab]_late)")


def parsed(register: str) -> tuple[str, str, Bits]:
    """Where a register of a flat design is, ``element0_0.``; its name there; and what of it this is."""
    path, _, span = register.partition(" ")
    high, _, low = span.strip("[]").partition(":")
    name = path.rpartition(".")[2]
    return path.removesuffix(name), name, (int(high), int(low)) if span else None


def _stage(config: TensorCoreConfig, name: str) -> str | None:
    """The pipeline register that a register of this name is part of."""
    if match := _STAGE.fullmatch(name):
        return match[1]
    if match := _EDGE.fullmatch(name):
        # What the elements are handed is the last register before them, and the mode what their lanes are.
        before = [stage for stage in config.pipeline if stage != "terms" and stage not in LOOP_REGISTERS]
        if match[1] == "half":
            before = [stage for stage in before if stage not in ELEMENT_REGISTERS]
        if match[1] == "half_exponents":
            before = [stage for stage in before if stage != "factors"]
        return before[-1] if before else None
    if name == "products" and config.slotted:
        return "tree"
    if re.fullmatch(r"(c_|nan_)?resolved", name):
        return "resolved"
    if re.fullmatch(r"scale\d+_sum", name):
        return "sums"
    return "terms" if name == "accumulate_terms" else None


def with_result(config: Built) -> bool:
    """Whether what goes out as a result is a register's content that is read where there is a result, and not else."""
    return isinstance(config, QuantiserConfig) or config.exact


GUESSES: tuple[tuple[bool, bool | None], ...] = (
    (True, None),
    (False, False),
    (False, True),
    (True, False),
    (True, True),
)
"""When registers that may differ matter, as a proof may assume: where a step is there, and at which rate; see
`matters_with`. Those without a step are of cores with a slot: a register loads when that of the rate does, and so
what it holds may matter at one rate only even where no step is.
"""


def matters_with(
    config: Built, register: str, registers: Sequence[str], there: bool = True, half: bool | None = None
) -> dict[str, bool]:
    """What other bits hold where the content of a register is read; empty if nothing says that.

    Data registers of a step matter where the step is valid, that of C where it holds one. With exact numerics
    the registers behind the accumulator hold results only. Those of a quantiser matter where there is a block. With a
    slot a register may matter at the one rate only, or at the other. In a loop of several cycles terms matter where
    they are not shifted out: a bubble takes along what was there before.

    The bits are registers of one bit, or ``&name``, whether all bits of a longer one are set, see `condition`.

    Parameters
    ----------
    config
        The core, or the quantiser.
    register
        Name in a flat design, ``element0_0.addend``, maybe with some of its bits, ``element0_0.addend [7:0]``.
    registers
        Names of all.
    there
        It matters where the step, C, the result or the block is there.
    half
        It matters in steps at this rate only, half or not; None is any.
    """
    scope, name, _ = parsed(register)
    found = []
    if isinstance(config, QuantiserConfig):
        match = _QUANTISED.fullmatch(name)
        valid = f"{match[1]}_valid" if match else _RESULT
        # Which stages hold a block is all the control that there is.
        return {valid: True} if valid in registers and not name.endswith("_valid") else {}
    stage = _stage(config, name)
    if stage is not None:
        valid = f"{stage}_valid"
        if config.exact and stage in ("resolved", "total", "normal"):
            valid = f"{stage}_last"
        found.append(valid)
    if name == "addend":
        found.append("addend_held")
    if config.exact and name == "result__payload":
        found.append(_RESULT)
    conditions = {other: True for other in found if there and other in registers and other != register}
    term = _TERM.fullmatch(name) if config.slotted and not half else None
    if term and term[1] == "sign":
        half = False
    elif term:
        half = None  # at half the rate it is zero, and read
        if condition(registers, f"&{scope}compared_ahead", ""):
            conditions[f"&{scope}compared_ahead"] = False
    if half is not None and not name.endswith(("_valid", "_last")):
        rates = {other: _at_half(config, other, stage) for other in registers if other != register}
        said = [(other, held == half) for other, held in rates.items() if held is not None]
        # Of several that say it the one beside the register is what it is read with.
        conditions |= dict(sorted(said, key=lambda pair: not pair[0].startswith(scope))[:1])
    return conditions


def _at_half(config: TensorCoreConfig, register: str, stage: str | None) -> bool | None:
    """What a register holds where the step that is in this stage is at half the rate; None if it does not say that."""
    name = register.rpartition(".")[2]
    match = _RATE.fullmatch(name)
    if stage is None or match is None or _stage(config, name) != stage:
        return None
    return match["fp4"] is None


def _decoded(config: TensorCoreConfig) -> list[str]:
    """Verilog conditions that magnitudes of decoded numbers are those of the format; none where they are no field."""
    conditions = []
    for side in "ab":
        layout = lanes(config).layout(side)
        if "magnitude" not in dict(layout):
            continue
        field = layout["magnitude"]
        others = sorted({*range(1 << field.width)} - config.form(side).magnitudes)
        for lane in range(config.bounds.lanes):
            low = lane * layout.size + field.offset
            magnitude = f"{side}[{low + field.width - 1}:{low}]"
            conditions += [f"{magnitude} != {other}" for other in others]
    return conditions


def in_range(config: Built, module: str) -> list[str]:
    """Verilog conditions that the inputs of a block keep in every core, none of them for most blocks.

    They are those of `hwgen.formats.Bounds`: the largest block sum, the largest term, and the exponents of two scales;
    a term with a zero scale is zero. Numbers that lanes multiply are of the format, but for those of a slot. With a
    slot the exponents are those of products, too. The words of a block's products at half the rate have nothing in
    their top place, which ``tests/hwgen/rtl/accumulate/test_products.py`` proves. Where they stand for a term there is
    nothing above them, which ``test_stepwise_proof.py`` there proves. In quantisers: exponents of a block with a scale,
    and of a tensor scale.

    Parameters
    ----------
    config
        The core, or the quantiser.
    module
        Name of the block's module.
    """
    if isinstance(config, QuantiserConfig):
        if module.startswith(("block_scale", "scale_division")):
            return ["empty || ($signed(exponent) >= -7 && $signed(exponent) <= 14)"]
        return ["$signed(tensor_exponent) >= -100", "$signed(tensor_exponent) <= 126"] if module == "core" else []
    if module == "dot_product" and not config.slotted:
        return _decoded(config)
    bounds = config.bounds
    largest, highest = bounds.largest_sum, bounds.exponent_span
    if module == "scale_product":
        return [f"$signed(sum) <= {largest}", f"$signed(sum) >= -{largest}"]
    if module == "aligned_sum" and config.slotted:
        products, width = ProductWindows(config), Windows.of(config).aligned_term.width
        words, top = products.words, products.below + products.words
        return [
            *(f"!further[{(group + 1) * words - 1}]" for group in range(config.groups)),
            *(
                f"(!half || terms[{(group + 1) * width - 1}:{group * width + top}] == 0)"
                for group in range(config.groups)
            ),
        ]
    if module != "accumulate" or config.adds_sums:  # block sums may be any of their width
        return []
    fields = dict(terms_layout(config))

    def part(group: int, name: str) -> str:
        field = fields["terms"].shape[group]
        base = fields["terms"].offset + field.offset
        inner = field.shape[name]
        return f"terms[{base + inner.offset + inner.width - 1}:{base + inner.offset}]"

    conditions = [f"{part(group, 'magnitude')} <= {bounds.largest_term}" for group in range(config.sums)]
    if config.exact:
        return [*conditions, *(f"{part(group, 'place')} <= {highest}" for group in range(config.sums))]
    start, width = fields["exponent"].offset, fields["exponent"].width
    exponent = f"terms[{start + width - 1}:{start}]"
    active = f"terms[{fields['active'].offset}]" if "active" in fields else "1"
    absent = [f"({active} || {part(group, 'magnitude')} == 0)" for group in range(config.sums)]
    if config.slotted:
        # Of a term, or of a product that is infinite: both count from the lowest exponent of a product. Between steps
        # a register may hold what says FP4 beside exponents of products, so no more is taken for granted.
        highest = HIGHEST_PRODUCT + 2 - emax_layout(config)[1]
        if config.half_scaled:  # the byte of NaN is the highest
            highest += 2 * ((1 << SCALE.width) - 1 - SCALE.bias)
        return [*conditions, f"{exponent} <= {highest}", *absent]
    conditions.append(f"{exponent} <= {highest if config.groups == 1 else f'({active} ? {highest} : 0)'}")
    conditions += absent
    if config.groups > 1:
        distances = [part(group, "distance") for group in range(config.sums)]
        conditions += [f"{distance} <= {exponent}" for distance in distances]
        conditions.append(" || ".join(f"({distance} == 0)" for distance in distances))
    return conditions


def largest_held(config: Built, module: str) -> dict[str, int]:
    """The largest numbers that registers of a block hold, by name: a block sum, and an exponent as FP32 has it.

    Where the inputs keep their ranges, see `in_range`, a cycle leads from such states to such states.

    Parameters
    ----------
    config
        The core.
    module
        Name of the block's module.
    """
    if isinstance(config, QuantiserConfig):
        return {}
    if module == "scale_product":
        return {"factors_magnitude": config.bounds.largest_sum}
    if module == "accumulate" and not config.exact:
        largest = max(255, 127 + config.bounds.highest_exponent)
        return {f"{register}_base": largest for register in ("compared", "aligned", "addends", "total")}
    return {}


def word(registers: Sequence[str], name: str, role: str) -> tuple[str, int] | None:
    """Verilog of a register from its lowest bit on, and how many bits are there; None if there are none.

    Parameters
    ----------
    registers
        Names of all, see `matters_with`: the register may be there as a whole, which has the width 0, or cut.
    name
        Its name.
    role
        Beginning of the names of signals, to which the number of a register is added.
    """
    if name in registers:
        return f"{role}{registers.index(name)}", 0
    parts: dict[int, tuple[int, int]] = {}
    for index, register in enumerate(registers):
        base, _, span = register.partition(" ")
        if base == name:
            high, low = map(int, span.strip("[]").split(":"))
            parts[low] = (high, index)
    found: list[str] = []
    bit = 0
    while bit in parts:
        high, index = parts[bit]
        found.insert(0, f"{role}{index}")
        bit = high + 1
    return (f"{{{', '.join(found)}}}", bit) if found else None


def condition(registers: Sequence[str], name: str, role: str) -> str | None:
    """Verilog of a register of one bit, or of ``&name``, all bits of a longer one; None if it is not there.

    Parameters are those of `word`.
    """
    found = word(registers, name.removeprefix("&"), role)
    return found and (f"(&{found[0]})" if name.startswith("&") else found[0])


def anticipated(config: Built, registers: Sequence[str]) -> list[str]:
    """Verilog condition that the registers of an accumulator keep: anticipated zeros are right, or one less.

    ``tests/hwgen/rtl/accumulate/test_stepwise_proof.py`` proves it. Without such registers in sight there is none.

    Parameters
    ----------
    config
        The core.
    registers
        Names of all, see `matters_with`. The content of the n-th is ``faultless_state<n>``.
    """
    if isinstance(config, QuantiserConfig) or not (config.anticipated and "total" in config.pipeline):
        return []
    width = Windows.of(config).sum.width

    role = "faultless_state"
    magnitude, zeros = word(registers, "total_sum", role), word(registers, "total_zeros", role)
    # Anticipation leaves a place below the sign, which is inverted. Nobody reads that place.
    above = f"total_sum [{width + 1}:{width + 1}]"
    if magnitude is None or magnitude[1] != width or zeros is None or above not in registers:
        return []
    sign = f"{role}{registers.index(above)}"
    ones = f"({magnitude[0]} ^ {{{width}{{~{sign}}}}})"
    leading = f"({ones} << {zeros[0]} >> {width - 2}) != 0 && ({ones} >> ({width} - {zeros[0]})) == 0"
    return [f"{zeros[0]} <= {width}", f"{ones} == 0 ? {sign} || {zeros[0]} >= {width - 1} : {leading}"]

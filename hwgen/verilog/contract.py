"""What a manifest says in words: meaning of the fields, rules of the streams, numerics."""

from __future__ import annotations

from dataclasses import dataclass

from hwgen.config import TensorCoreConfig
from hwgen.formats import BlockFormat, ElementFormat
from hwgen.formats.floating import FloatFormat
from hwgen.formats.unscaled import SELECTOR, TYPES
from hwgen.verilog.record import Record

__all__ = ["HalfRate", "Numerics", "field_words", "numerics", "stream_rules", "title"]


@dataclass(frozen=True)
class HalfRate(Record):
    """What a step at half the rate computes.

    Parameters
    ----------
    products
        Products of an output in a step.
    fraction_bits
        Bits that are kept below the largest exponent.
    contract
        The formulas.
    """

    products: int
    fraction_bits: int
    contract: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Numerics(Record):
    """What a core computes.

    Parameters
    ----------
    groups
        Blocks along K in a step.
    largest_depth
        Largest K that cannot overflow; of an exact accumulator.
    fraction_bits
        Bits that are kept below the largest exponent of a step; not with an exact accumulator.
    rounding
        How a step's sum is rounded to FP32; not with an exact accumulator.
    empty_blocks
        What becomes of blocks whose sum is zero, where they are excluded.
    half_rate
        What a step at half the rate computes, where there are such steps.
    contract
        The formulas, in the order of their use.
    """

    groups: int
    largest_depth: int | None = None
    fraction_bits: int | None = None
    rounding: str | None = None
    empty_blocks: str | None = None
    half_rate: HalfRate | None = None
    contract: tuple[str, ...]


def title(config: TensorCoreConfig) -> str:
    """First line of a core's Verilog."""
    return f"Tensor core {config.name}, D = A B^T + C; {config.name}.json describes ports and payloads."


def _element_words(element: ElementFormat, codes: range) -> str:
    what = "values" if len(codes) == len(element.values) else "magnitudes"
    values = ", ".join(f"{element.values[code]:g}" for code in codes)
    return f"{element.name} ({what} of codes 0 to {codes[-1]}: {values})"


def _sign_magnitude(element: ElementFormat) -> bool:
    """Whether the upper half of the table is the lower one, negated."""
    half = len(element.values) // 2
    return all(element.values[code] == -element.values[code + half] for code in range(half))


def _code_words(form: BlockFormat) -> str:
    """What a code means."""
    if isinstance(form.elements[0], FloatFormat):
        return _float_words(form.elements[0])
    count = 1 << form.code_width
    nans = [element for element in form.elements if element.nans]
    if all(map(_sign_magnitude, form.elements)):
        kinds = " or ".join(_element_words(element, range(count // 2)) for element in form.elements)
        words = f"sign-magnitude code, bit {form.code_width - 1} the sign: {kinds}"
    else:
        words = "code: " + " or ".join(_element_words(element, range(count)) for element in form.elements)
    for element in nans:
        words += "; " + " and ".join(f"0x{code:02X}" for code in element.nans) + " are NaN, not the number given"
    for element in form.elements:
        if element.infinities:
            codes = " and ".join(f"0x{code:02X}" for code in element.infinities)
            words += f"; {codes} are infinity of their sign, not the number given"
    if not form.tagged:
        return words
    chosen = "the operand's type selects" if form.by_step else _selector_place(form, " of the block's scale")
    return f"{words}; {chosen}"


def _float_words(element: FloatFormat) -> str:
    """What a long code means: its values would fill pages."""
    values, top = element.values, element.width - 1
    return (
        f"{element.name}: bit {top} the sign, bits {top - 1}..{values.fraction_bits} an exponent field of bias"
        f" {values.bias}, bits {values.fraction_bits - 1}..0 the fraction; field 0 has subnormals, the highest field"
        " infinity, or NaN where the fraction is not zero"
    )


def _selector_place(form: BlockFormat, whose: str = "") -> str:
    """Which bits of a scale select."""
    low, high = form.scale.width, form.scale_width - 1
    return f"bit {low}{whose} selects" if low == high else f"bits {high}..{low}{whose} select"


def _scale_words(form: BlockFormat) -> str:
    """What a scale byte means."""
    scale = form.scale
    if not form.has_scales:
        return "none"
    nan = "" if scale.nan is None else f", 0x{scale.nan:02X} is NaN"
    subnormals = "subnormals" if scale.subnormals else "no zero"
    words = f"block scale: bits {scale.width - 1}..0 {scale.name} (bias {scale.bias}, {subnormals}{nan})"
    if form.tagged and not form.by_step:
        kinds = ", ".join(f"{tag} = {element.name}" for tag, element in enumerate(form.elements))
        words = f"{words}; {_selector_place(form)} the element format, {kinds}"
        words = f"{words}; {_weight_words(form)}" if form.factors else words
    place = form.scale.width
    for length in form.shifts:
        count = form.size // length
        words += (
            f"; bits {place + count - 1}..{place} double sub-groups of {length}, bit {place} + j elements"
            f" {length} j to {length} j + {length - 1} of the block"
        )
        place += count
    if form.scale_width < form.stored_scale_width:
        low, high = form.scale_width, form.stored_scale_width - 1
        return f"{words}; " + (f"bit {low} is ignored" if low == high else f"bits {high}..{low} are ignored")
    return words


def _weight_words(form: BlockFormat) -> str:
    """What elements of several kinds count, and what that leaves to the tensor scale."""
    first, unit = form.factors[0], 1 << form.factor_bits
    counts = ", ".join(
        f"{element.name} counts {factor}/{first}"
        for element, factor in zip(form.elements[1:], form.factors[1:], strict=True)
    )
    return f"{counts}; the core has {first}/{unit} of every number, which the tensor scale makes good"


def field_words(config: TensorCoreConfig) -> dict[str, tuple[tuple[str, ...], str]]:
    """Names of the dimensions and meaning of every field of the payloads."""
    code = {side: _code_words(config.form(side)) for side in "ab"}
    scale = {side: _scale_words(config.form(side)) for side in "ab"}
    before = "the step before" if config.interleave == 1 else f"the step {config.interleave} steps before"
    if config.exact:
        first = f"1: begin a new sum with the next C; 0: go on with that of {before}, which last does not round"
    else:
        first = f"1: add the next C; 0: add the result of {before}"
    if config.slotted:
        code = {side: f"in steps of FP4: {words}; {_half_rate_codes(config)}" for side, words in code.items()}
        at_half = "at half the rate that of block 0 is the E8M0 scale of the row, 2^(byte - 127), 0xFF is NaN, and the"
        at_half = f"{at_half} others are ignored" if config.half_scaled else "ignored at half the rate"
        scale = {side: f"{words}; {at_half}" for side, words in scale.items()}
    return {
        "a.codes": (("m", "g", "i"), f"element i of block g of row m of A; {code['a']}"),
        "a.scales": (("m", "g"), f"scale of block g of row m of A; {scale['a']}"),
        "b.codes": (("n", "g", "i"), f"element i of block g of row n of B; {code['b']}"),
        "b.scales": (("n", "g"), f"scale of block g of row n of B; {scale['b']}"),
        "first": ((), first),
        "last": ((), "1: send the result of this step; 0: keep it for the next step"),
        **_half_rate_fields(config),
        "c": (("m", "n"), "FP32 addend of the tile"),
        "d": (("m", "n"), "FP32 result; NaN is 0x7FFFFFFF, an exact zero is +0"),
    }


def _half_rate_codes(config: TensorCoreConfig) -> str:
    """Where elements of a step at half the rate are."""
    return (
        "in steps at half the rate: codes 2 j and 2 j + 1, the former lower, are the byte of element"
        f" {config.slots} g + j of the row; of types of fewer bits it has the low ones, and those above are ignored"
    )


def _half_rate_fields(config: TensorCoreConfig) -> dict[str, tuple[tuple[str, ...], str]]:
    """Fields that a step has with a slot."""
    if not config.slotted:
        return {}
    types = ", ".join(f"{code} {element.name}" for code, element in TYPES.items())
    words = f"at half the rate: {types}; with any other every D is NaN"
    return {
        "mode": ((), "0: a step of FP4; 1: a step at half the rate, of FP8 and FP6"),
        "a_type": ((), f"type of all elements of A {words}; {_type_of_fp4(config.a)}"),
        "b_type": ((), f"type of all elements of B {words}; {_type_of_fp4(config.b)}"),
    }


def _type_of_fp4(form: BlockFormat) -> str:
    """What the type of an operand says in steps of FP4."""
    if not form.by_step:
        return "ignored in steps of FP4"
    kinds = ", ".join(f"{tag} = {element.name}" for tag, element in enumerate(form.elements))
    return f"in steps of FP4 bit {SELECTOR} selects the element format of all blocks, {kinds}, and others are ignored"


def stream_rules(config: TensorCoreConfig) -> list[str]:
    """What sender, receiver and core keep to at every transfer."""
    turns = config.interleave
    waits, sources = "its C", "result__ready"
    entrance = config.entrance
    if entrance:
        places = "1 cycle" if entrance == 1 else f"{entrance} cycles"
        late = (
            f"C may come before its step or after it. A step that has no C {places} after it was accepted, cycles with"
            " step__ready = 0 not counted, waits for it, and so does every step behind it"
        )
    else:
        late = "such a step is accepted only when its C was accepted in a cycle before"
        sources = "result__ready, step__valid and step__payload"
    stalls = "each cycle in between with step__ready = 0 adds one at most"
    if turns == 1 and not config.exact:
        stalls = "cycles with step__ready = 0 do not count"
    first = "the first step after reset must have first = 1; before it"
    interleaving = []
    if turns > 1:
        waits += " or its turn"
        first = f"the first {turns} steps after reset must have first = 1; before them"
        interleaving = [
            f"{turns} accumulators take turns, one step each, in the order in which steps are accepted; gaps"
            f" between steps do not count. So {turns} tiles go through the core together, one step of each in"
            " turn; for a tile that is missing there are steps with first = 1 and last = 0",
            f"after a gap behind a step with last the next step may have to wait for its turn, for {turns - 1}"
            " cycles at most, not counting those in which a result waits and is not taken",
        ]
    depth = []
    if config.exact:
        depth = [
            f"a tile has at most {config.largest_steps} steps, from first to last; beyond that the sum may wrap around"
        ]
    return [
        "a transfer takes place at every clock edge at which valid and ready are both 1",
        "once valid is 1 it stays 1 until the transfer, and the payload does not change meanwhile",
        "a sender must not wait for ready before it raises valid",
        f"every step with first takes one C of the addend stream, in the order of the steps; {late}",
        "the core holds one C ahead: addend__ready is 1 when it holds none, or when the step that takes it enters the"
        " accumulation loop and makes room. So a sender must not wait for ready of one stream before it raises valid of"
        " the other",
        f"step__ready is 1 when no result is waiting or result__ready is 1, and no step is waiting for {waits}",
        f"the paths from {sources} to step__ready and addend__ready are combinational, so {sources} must not"
        " depend on them in the same cycle",
        "each step with last gives one result, in the order of the steps; other steps give none",
        f"the result of a step is valid {config.latency} cycles after the one in which the step was accepted; {stalls}",
        "a result that is not taken stalls the whole core; without stalls, and with C in time, it accepts a step, and a"
        " C, in every cycle",
        f"{first} the accumulators are undefined",
        *interleaving,
        *depth,
    ]


def _term_words(config: TensorCoreConfig) -> str:
    """How a term follows from its block sum."""
    sides = [side for side in "ab" if config.form(side).significand_bits]
    if not sides:
        scaled = any(form.scale.width for form in config.formats)
        return f"T_g = S_g, since {'all block scales are powers of two' if scaled else 'there are no block scales'}"
    factors = " * ".join(f"sig{side.upper()}" for side in sides)
    if len(sides) == 1:
        form = config.form(sides[0])
        return (
            f"T_g = S_g * {factors}, with sig the significand of the block scale {_significand_of(form)};"
            " the other scales are powers of two"
        )
    return f"T_g = S_g * {factors}, with sig the significand of the block scale {_significand_words(config)}"


def _significand_of(form: BlockFormat) -> str:
    """Unit and range of the significand of a block scale, and what it is multiplied by."""
    words = f"in units of 2^-{form.scale.mantissa_bits}, 0 to {form.scale.largest_significand}"
    if not form.factors:
        return words
    kinds = zip(form.elements, form.factors, strict=True)
    times = ", ".join(f"{factor}/{1 << form.factor_bits} for {element.name}" for element, factor in kinds)
    return f"{words}, times {times}, so in units of 2^-{form.fraction_bits}"


def _significand_words(config: TensorCoreConfig) -> str:
    words = [_significand_of(form) for form in (config.a, config.b)]
    if words[0] == words[1]:
        return words[0]
    return f"({words[0]} for A; {words[1]} for B)"


def _unit_words(config: TensorCoreConfig) -> str:
    """Unit of the elements' integers."""
    units = ["half-units" if form.point == 1 else f"units of 2^-{form.point}" for form in config.formats]
    return units[0] if units[0] == units[1] else f"{units[0]} for A, {units[1]} for B"


def _window_words(config: TensorCoreConfig) -> str:
    """How products are cut before they are added."""
    bounds = config.bounds
    return (
        f" {_added_words(config) if bounds.additive else _product_words(config)}; r_g = the largest r_k of products"
        f" that are not zero, {bounds.product_exponent} without any; S_g = the sum over {bounds.lanes} lanes of the"
        " products, each truncated toward zero, on its magnitude, to a multiple of"
        f" 2^(r_g - {bounds.window}), in that unit"
    )


def _product_words(config: TensorCoreConfig) -> str:
    """What the exponent of a product is."""
    lowest = [form.product_exponent for form in config.formats]
    least = f"{lowest[0]}" if lowest[0] == lowest[1] else f"{lowest[0]} for A, {lowest[1]} for B"
    return f"r_k = the exponent of the product of lane k, the sum of those of its elements, each at least {least}"


def _added_words(config: TensorCoreConfig) -> str:
    """What stands in the place of a product."""
    bits, lowest = config.bounds.product_fraction, config.bounds.product_exponent
    return (
        "s_k = the sum of the codes of the two elements of lane k, without their signs, and of 1; m_k = the low"
        f" {bits} bits of s_k; r_k = {lowest} + (s_k >> {bits}); the product of lane k = (1 + m_k * 2^-{bits}) * 2^r_k"
        " with the sign of a product, or zero where an element is"
    )


def _nan_words(config: TensorCoreConfig) -> str:
    """What makes a result NaN."""
    if not any(form.may_be_nan for form in config.formats):
        return "a NaN C"
    kinds = [
        *(["scale"] if any(form.scale.nan is not None for form in config.formats) else []),
        *(["element"] if any(form.nans for form in config.formats) else []),
    ]
    since = " since first" if config.exact else ""
    return f"any NaN {' or '.join(kinds)}{since} in row m of A or row n of B, or a NaN C,"


def _exponent_words(config: TensorCoreConfig) -> str:
    """The exponent of a block."""
    bounds = config.bounds
    if not bounds.exponent_span:
        return f"E_g = {bounds.lowest_exponent}"
    zero = "a scale of zero has exponent -126; "
    if not any(form.scale.subnormals for form in config.formats):
        zero = ""
    elif not bounds.zero_is_lowest(config.fraction_bits):
        zero = "a block with a scale of zero takes no part in emax; "
    raised = "" if bounds.window is None else " + r_g"
    scaled = [side for side in "ab" if config.form(side).scale.width]
    exponents = "".join(f" + exp{side.upper()}" for side in scaled)
    words = f"E_g = {f'{exponents}{_fold_words(config)}{raised}'[3:]}"
    if not scaled:
        return words
    lowest = min(config.form(side).scale.exponents[0] for side in scaled)
    return f"{words}, with exp the exponent of the block scale, at least {lowest}; {zero}".rstrip("; ")


def _infinite_words(config: TensorCoreConfig) -> str:
    """What infinity makes of a result."""
    if not config.bounds.may_be_infinite:
        return "otherwise an infinite C is the result"
    may_vanish = any(form.scale.subnormals for form in config.formats)
    return (
        f"so does infinity times zero{', whatever the scales are,' if may_vanish else ','} and infinities of both signs"
        " among the products of the step and C; otherwise an infinite product or C is the result"
    )


def _fold_words(config: TensorCoreConfig) -> str:
    """What the folds of the elements add to the exponent of a block."""
    sums, notes = "", []
    for side in "ab":
        form = config.form(side)
        if form.folds == (0, 1):
            sums += f" + tag{side.upper()}"
            notes.append(f"the factor 2 of each {form.elements[1].name} block")
        elif any(form.folds):
            sums += f" + fold{side.upper()}"
            kinds = zip(form.elements, form.folds, strict=True)
            notes.append(f"fold{side.upper()} = " + ", ".join(f"{fold} for {element.name}" for element, fold in kinds))
    return f"{sums} ({'; '.join(dict.fromkeys(notes))})" if sums else ""


def numerics(config: TensorCoreConfig) -> Numerics:
    """What a core computes, as figures and as the formulas of its contract."""
    rounding = {"toward_zero": "toward zero", "nearest_even": "to nearest, ties to even"}[config.rounding]
    bounds = config.bounds
    elements = dict.fromkeys(element for form in (config.a, config.b) for element in form.elements)
    folded = [element for element in elements if element.fold]
    without = "".join(f"; {element.name} without its factor {2**element.fold}" for element in folded)
    parts = f"{config.groups} blocks g"
    if config.a.sums > 1:
        parts = f"{config.sums} parts g, {config.a.sums} of a block, which have its scale"
    exact = f" S_g = the exact sum over {bounds.lanes} lanes of hA * hB, with h the element in {_unit_words(config)}"
    if any(form.shifts for form in config.formats):
        exact += ", doubled for each of its sub-groups whose bit is set"
    blocks = [
        f"for every output (m, n) and each of the {parts}:"
        + (_window_words(config) if bounds.window is not None else exact)
        + (f" ({without[2:]})" if without else ""),
        _term_words(config),
        f"{_exponent_words(config)}; the value of the block is T_g * 2^(E_g - {bounds.term_fraction})",
    ]
    if config.exact:
        return Numerics(
            groups=config.groups,
            largest_depth=config.largest_depth,
            contract=(
                *blocks,
                "D is the FP32 number of C and the values of all blocks of all steps since first, added exactly and"
                " rounded once to nearest, ties to even; an exact zero is +0, subnormals are kept",
                f"{_nan_words(config)} gives 0x7FFFFFFF; otherwise an infinite C is the result",
            ),
        )
    none = "every" if config.wide else "an exact"
    empty = "do not" if config.excludes_empty else "take part"
    return Numerics(
        groups=config.groups,
        fraction_bits=config.fraction_bits,
        rounding=config.rounding,
        empty_blocks=config.empty_blocks if config.excludes_empty else None,
        half_rate=_half_rate(config, rounding) if config.slotted else None,
        contract=(
            *blocks,
            "C = sigC * 2^(expC - 23), with expC at least -126; zero has -126",
            f"emax is the largest of expC and all E_g; blocks whose sum is zero {empty}",
            f"every term is truncated toward zero, on its magnitude, to a multiple of"
            f" 2^(emax - {config.fraction_bits}); the truncated terms are added exactly",
            f"D is the FP32 number of that sum, rounded {rounding}; {none} zero is +0, subnormals are kept,"
            " 2^128 and above is infinite",
            f"{_nan_words(config)} gives 0x7FFFFFFF; {_infinite_words(config)}",
        ),
    )


def _half_rate(config: TensorCoreConfig, rounding: str) -> HalfRate:
    """What a step at half the rate computes."""
    factors, raised, ends, nans = "", "", "an exact zero is +0", "a NaN element, "
    if config.half_scaled:
        factors, raised, nans = ", times both scales", ", and those of both scales", "a NaN scale or element, "
        ends = "every zero is +0, subnormals are kept, 2^128 and above is infinite"
    return HalfRate(
        products=config.slots * config.groups,
        fraction_bits=config.half_fraction_bits,
        contract=(
            "for every output (m, n) and each of the products k: p_k = the product of element k of row m of A and of"
            f" row n of B{factors}; r_k = the sum of the exponents of both elements, in subnormal ones that of the"
            f" smallest normal number{raised}",
            "emax is the largest of the r_k of products that are not zero, and expC if C is not zero; if all products"
            " are zero D is C, and +0 if that is -0",
            f"every p_k and C are truncated toward zero, each on its magnitude, to a multiple of"
            f" 2^(emax - {config.half_fraction_bits}); the truncated numbers are added exactly",
            f"D is the FP32 number of that sum, rounded {rounding}; {ends}",
            f"{nans}a NaN C, a reserved type, infinity times zero, and infinities of both signs among the"
            " products and C give 0x7FFFFFFF; otherwise an infinite product or C is the result",
        ),
    )

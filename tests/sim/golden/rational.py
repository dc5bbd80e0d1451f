"""The contract in exact rational arithmetic, one output at a time: slow, and sharing nothing with the golden model.

`frozen.py` makes the frozen steps with it, and the tests compare the golden model with it.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

NAN = 0x7FFFFFFF


def minifloat(code: int, exponent_bits: int, mantissa_bits: int, bias: int) -> Fraction:
    """Value of an unsigned code with subnormals."""
    exponent, mantissa = code >> mantissa_bits, code & (1 << mantissa_bits) - 1
    assert exponent < 1 << exponent_bits
    hidden = 1 if exponent else 0
    return (hidden + Fraction(mantissa, 1 << mantissa_bits)) * Fraction(2) ** (max(exponent, 1) - bias)


def signed(code: int, magnitude: Fraction) -> Fraction:
    """Apply the sign of a sign-magnitude code of four bits."""
    return -magnitude if code & 8 else magnitude


E2M1 = [signed(code, minifloat(code & 7, 2, 1, 1)) for code in range(16)]
E1M2 = [signed(code, 2 * minifloat(code & 7, 1, 2, 0)) for code in range(16)]
S1P2 = [signed(code, Fraction(code & 7, 4)) for code in range(16)]
INT4 = [Fraction(0 if code == 8 else code - 16 if code > 8 else code) for code in range(16)]


def long_code(code: int, exponent_bits: int, mantissa_bits: int, bias: int) -> Fraction:
    """Value of a code of sign, exponent and mantissa."""
    width = exponent_bits + mantissa_bits
    magnitude = minifloat(code & (1 << width) - 1, exponent_bits, mantissa_bits, bias)
    return -magnitude if code >> width else magnitude


E2M3 = [long_code(code, 2, 3, 1) for code in range(64)]
E3M2 = [long_code(code, 3, 2, 3) for code in range(64)]
E4M3 = [None if code % 128 == 127 else long_code(code, 4, 3, 7) for code in range(256)]
E5M2 = [
    long_code(code, 5, 2, 15) if code % 128 < 0x7C else None if code % 4 else (-1) ** (code >> 7) * math.inf
    for code in range(256)
]
FP16 = [
    long_code(code, 5, 10, 15) if code % 32768 < 0x7C00 else None if code % 1024 else (-1) ** (code >> 15) * math.inf
    for code in range(65536)
]
INT8 = [Fraction(code - 256 if code > 127 else code, 64) for code in range(256)]


def razer(special: int) -> list[Fraction]:
    """E2M1 with a special value in the place of -0."""
    return [*E2M1[:8], Fraction(special), *E2M1[9:]]


def dialect(*upper: int) -> list[Fraction]:
    """Values of a dialect by its last magnitudes, in halves; those before are 0, 1, 2 ..."""
    first = (0, 1, 2, 3, 4, 6)[: 8 - len(upper)]
    return [signed(code, Fraction((*first, *upper)[code & 7], 2)) for code in range(16)]


DIALECTS = [
    *(dialect(top - low, top) for top, low in ((15, 4), (15, 6), (14, 3), (14, 5), (13, 3), (13, 5), (12, 2), (12, 4))),
    *(dialect(top - low, top) for top, low in ((11, 2), (11, 4), (10, 1), (10, 3), (9, 1), (9, 2), (8, 1))),
    dialect(5, 6, 8),
]


class Form(NamedTuple):
    """A block format; its selector stands directly above the scale."""

    elements: list[tuple[list[Fraction], int]]
    """Values by code and fold, by selector; None is NaN, and infinity is a float."""
    exponent_bits: int = 4
    mantissa_bits: int = 3
    bias: int = 7
    nan: int | None = 0x7F
    block: int = 16
    sums: int = 1
    subnormals: bool = True
    window: tuple[int, int] | None = None
    """Bits kept of a product, and the exponent of the smallest normal element."""
    beside_fp16: int | None = None
    """The exponent of the smallest normal element in products with FP16, which are cut to its window."""
    shifts: tuple[int, ...] = ()
    """Lengths of sub-groups with a bit each that doubles them, above the scale."""
    additive: bool = False
    """Whether a product is `l_mul`."""


FORMATS = {
    "nvfp4": Form([(E2M1, 0)], beside_fp16=0),
    "mixfp4": Form([(E2M1, 0), (E1M2, 1)]),
    "nvint4": Form([(INT4, 1)], beside_fp16=2),
    "fp4-ue5m3-b16": Form([(E2M1, 0)], 5, 3, 15, 0xFF),
    "fp4-ue5m3-b32": Form([(E2M1, 0)], 5, 3, 15, 0xFF, block=32),
    "mxfp4": Form([(E2M1, 0)], 8, 0, 127, 0xFF, block=32, subnormals=False),
    "mxfp4-2x16": Form([(E2M1, 0)], 8, 0, 127, 0xFF, block=32, sums=2, subnormals=False),
    "msfp12": Form([(S1P2, -1)], 8, 0, 127, 0xFF, subnormals=False),
    # A core has 7/8 of every number.
    "if4": Form([([v * 7 / 8 for v in E2M1], 0), ([v * 6 / 8 for v in INT4], 1)]),
    "razer-activations": Form([(razer(v), 0) for v in (5, -5)]),
    "razer-weights": Form([(razer(v), 0) for v in (5, -5, 8, -8)], 3, 3, 3, 0x3F),
    "blockdialect": Form([(table, 0) for table in DIALECTS], 5, 0, 15, None, block=32, subnormals=False),
    "mxint8": Form([(INT8, 0)], 8, 0, 127, 0xFF, block=32, subnormals=False),
    "mxfp6-e2m3": Form([(E2M3, 0)], 8, 0, 127, 0xFF, block=32, subnormals=False),
    "mxfp6-e3m2": Form([(E3M2, 0)], 8, 0, 127, 0xFF, block=32, subnormals=False),
    "mxfp8-e4m3": Form([(E4M3, 0)], 8, 0, 127, 0xFF, block=32, subnormals=False, window=(25, -6)),
    "mxfp8-e5m2": Form([(E5M2, 0)], 8, 0, 127, 0xFF, block=32, subnormals=False, window=(25, -14)),
    "l-mul": Form([(E4M3, 0)], 8, 0, 127, 0xFF, block=32, subnormals=False, window=(25, -7), additive=True),
    "hif4": Form([(S1P2, -1)], 6, 2, 48, 0xFF, block=64, sums=4, subnormals=False, shifts=(8, 4)),
    "int8": Form([([v * 64 for v in INT8], 6)], 0, 0, 0, None, subnormals=False, beside_fp16=6),
    "int4": Form([(INT4, 1)], 0, 0, 0, None, subnormals=False, beside_fp16=2),
    "ternary": Form([([Fraction(v) for v in (0, 1, 0, -1)], 1)], 0, 0, 0, None, subnormals=False, beside_fp16=0),
    "fp16": Form([(FP16, 0)], 0, 0, 0, None, subnormals=False, window=(25, -14)),
    "four": Form([([value * 2**fold for value in E2M1], fold) for fold in range(4)], 3, 3, 3, None),
}
"""Formats by name: those of the catalogue, and one of four elements, E2M1 times 1, 2, 4 and 8."""


def fields(form: str, byte: int) -> tuple[int, int]:
    """Code of the scale and selector in a scale byte."""
    known = FORMATS[form]
    width = known.exponent_bits + known.mantissa_bits
    return byte % 2**width, (byte >> width) % len(known.elements)


def element(form: str, byte: int) -> tuple[list[Fraction], int]:
    """Values by code and fold of the elements of a block, which its scale byte selects."""
    return FORMATS[form].elements[fields(form, byte)[1]]


def factor_of(form: str, byte: int, place: int) -> int:
    """How often an element counts, by its place in the block."""
    known, factor = FORMATS[form], 1
    lowest = known.exponent_bits + known.mantissa_bits
    for length in known.shifts:
        factor *= 2 if byte & 2 ** (lowest + place // length) else 1
        lowest += known.block // length
    return factor


def scale_of(form: str, byte: int) -> Fraction | None:
    """Value of a block scale; None if it is NaN."""
    known, code = FORMATS[form], fields(form, byte)[0]
    if code == known.nan:
        return None
    if known.subnormals:
        return minifloat(code, known.exponent_bits, known.mantissa_bits, known.bias)
    mantissa = Fraction(code % 2**known.mantissa_bits, 2**known.mantissa_bits)
    return (1 + mantissa) * Fraction(2) ** exponent_of(form, byte)


def exponent_of(form: str, byte: int) -> int:
    """Exponent of a block scale that is not NaN; that of zero is below all others."""
    known, code = FORMATS[form], fields(form, byte)[0]
    if not known.subnormals:
        return (code >> known.mantissa_bits) - known.bias
    return max(code >> known.mantissa_bits, 1) - known.bias if code else -1000


def float_bits(value: Fraction, rounding: str) -> int:
    """FP32 bits of an exact value; zero is +0, before rounding and after."""
    if value == 0:
        return 0
    sign, magnitude = (1 << 31 if value < 0 else 0), abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    quantum = Fraction(2) ** (max(exponent, -126) - 23)
    units = magnitude // quantum if rounding == "toward_zero" else round(magnitude / quantum)
    if not units:
        return 0
    biased_minus_hidden = (max(exponent, -126) + 126) << 23
    return sign | min(biased_minus_hidden + int(units), 0x7F800000)  # a carry moves into the exponent


@cache
def floor_log2(value: Fraction, lowest: int) -> int:
    """Exponent of a number, at least the lowest one."""
    exponent = lowest
    while value and abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    return exponent


def l_mul(x: int, y: int) -> Fraction:
    """L-Mul's product of E4M3 codes: mantissas added, and an eighth; from two on the exponent takes the carry."""
    if not x % 128 or not y % 128:
        return Fraction(0)
    mantissa = Fraction(x % 8 + y % 8 + 1, 8)
    exponent = x % 128 // 8 + y % 128 // 8 - 14
    while mantissa >= 1:
        mantissa, exponent = mantissa - 1, exponent + 1
    return (1 + mantissa) * Fraction(2) ** exponent * (-1 if (x ^ y) & 128 else 1)


def c_value(bits: int) -> tuple[Fraction, int]:
    """Value and exponent of a finite C."""
    exponent, mantissa = bits >> 23 & 255, bits & 0x7FFFFF
    significand = mantissa | (1 << 23 if exponent else 0)
    exponent = max(exponent, 1) - 127 if significand else -126
    value = significand * Fraction(2) ** (exponent - 23)
    return -value if bits >> 31 else value, exponent


Term = tuple[Fraction, int, bool]
"""Value of a group, its E_g, and whether the sum of its products is zero."""


def terms(
    a: Sequence[int], a_scales: Sequence[int], b: Sequence[int], b_scales: Sequence[int], forms: tuple[str, str]
) -> list[Term] | float | None:
    """Groups of one output; None for a NaN scale or element, and where infinity meets zero or its negative.

    The infinity that a product is, where one is.
    """
    found, known, infinite = [], FORMATS[forms[0]], 0.0
    block = known.block // known.sums
    pairs = [pair for pair in zip(a_scales, b_scales, strict=True) for _ in range(known.sums)]
    for group, (byte_a, byte_b) in enumerate(pairs):
        scale_a, scale_b = scale_of(forms[0], byte_a), scale_of(forms[1], byte_b)
        if scale_a is None or scale_b is None:
            return None
        (left, fold_a), (right, fold_b) = element(forms[0], byte_a), element(forms[1], byte_b)
        lanes = range(block * group, block * group + block)
        if any(left[a[k]] is None or right[b[k]] is None for k in lanes):
            return None
        factors = [(float(left[a[k]]), float(right[b[k]])) for k in lanes]  # infinity times zero is NaN, too
        infinite += sum(product for product in (x * y for x, y in factors) if not math.isfinite(product))
        if infinite:
            continue
        exponent = exponent_of(forms[0], byte_a) + exponent_of(forms[1], byte_b) + fold_a + fold_b
        places = [k % known.block for k in lanes]
        factors = [factor_of(forms[0], byte_a, place) * factor_of(forms[1], byte_b, place) for place in places]
        products = [left[a[k]] * right[b[k]] * factor for k, factor in zip(lanes, factors, strict=True)]
        windows = [FORMATS[form].window for form in forms]
        if "fp16" in forms:
            windows = [window or (25, FORMATS[form].beside_fp16) for form, window in zip(forms, windows, strict=True)]
        if None not in windows:
            bits, lowest = windows[0][0], [window[1] for window in windows]
            own = [floor_log2(left[a[k]], lowest[0]) + floor_log2(right[b[k]], lowest[1]) for k in lanes]
            if known.additive:
                products = [l_mul(a[k], b[k]) for k in lanes]
                own = [floor_log2(product, sum(lowest)) for product in products]
            largest = max((r for r, product in zip(own, products, strict=True) if product), default=sum(lowest))
            quantum = Fraction(2) ** (largest - bits)
            products = [(abs(p) // quantum * quantum) * (1 if p > 0 else -1) for p in products]
            exponent += largest - fold_a - fold_b
        total = sum(products, Fraction(0))
        found.append((total * scale_a * scale_b, exponent, total == 0))
    if math.isnan(infinite):
        return None
    return infinite or found


def special(groups: Sequence[object] | float | None, c: int) -> int | None:
    """What is not computed: NaN and infinity."""
    exponent, mantissa = c >> 23 & 255, c & 0x7FFFFF
    if groups is None or (exponent == 255 and mantissa):
        return NAN
    if isinstance(groups, float):
        of_products = 0x7F800000 if groups > 0 else 0xFF800000
        return NAN if exponent == 255 and c != of_products else of_products
    return c if exponent == 255 else None


def step_output(
    groups: list[Term] | float | None,
    c: int,
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
    empty_blocks: str = "included",
) -> int:
    """One output of a step: FP32 bits."""
    if (found := special(groups, c)) is not None:
        return found
    assert isinstance(groups, list)
    value, exponent = c_value(c)
    emax = max([exponent] + [e for _, e, empty in groups if empty_blocks == "included" or not empty])
    return float_bits(truncated_sum([value, *(v for v, _, _ in groups)], emax - fraction_bits), rounding)


def truncated_sum(values: Sequence[Fraction], exponent: int) -> Fraction:
    """Sum of values that are each truncated toward zero to a multiple of a power of two."""
    unit = Fraction(2) ** exponent
    return sum((abs(value) // unit * unit * (-1 if value < 0 else 1) for value in values), Fraction(0))


UNSCALED = {"e4m3": (E4M3, -6), "e5m2": (E5M2, -14), "e2m3": (E2M3, 0), "e3m2": (E3M2, -2), "e2m1": (E2M1, 0)}
"""Element types of steps without block scales: values by code, and the exponent of the smallest normal number."""

Products = list[tuple[Fraction, int]] | float | None
"""Products that are not zero, with their exponents; infinity where one is infinite; None for NaN."""


def products(
    a: Sequence[int],
    b: Sequence[int],
    types: tuple[str, str],
    scales: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> Products:
    """Products of one output of a step without block scales. Bits of a byte above those of the type are ignored.

    With scales, one byte for 32 elements of A and of B, a product and its exponent have their share.
    """
    if 255 in scales[0] or 255 in scales[1]:
        return None
    (left, lowest_a), (right, lowest_b) = (UNSCALED[name] for name in types)
    pairs = [(left[x % len(left)], right[y % len(right)]) for x, y in zip(a, b, strict=True)]
    if any(None in pair for pair in pairs):
        return None
    floats = [float(x) * float(y) for x, y in pairs]  # infinity times zero is NaN, too
    infinite = sum(product for product in floats if not math.isfinite(product))
    if infinite:
        return None if math.isnan(infinite) else infinite
    raised = [x + y - 254 for x, y in zip(*scales, strict=True)]
    found = []
    for k, (x, y) in enumerate(pairs):
        power = raised[k // 32] if raised else 0
        if x * y:
            own = floor_log2(x, lowest_a) + floor_log2(y, lowest_b)
            found.append((x * y * Fraction(2) ** power, own + power))
    return found


def unscaled_output(found: Products, c: int, fraction_bits: int = 25, rounding: str = "toward_zero") -> int:
    """One output of a step without block scales: FP32 bits."""
    if (known := special(found, c)) is not None:
        return known
    assert isinstance(found, list)
    terms = [*found, *([c_value(c)] if c_value(c)[0] else [])]
    if not terms:
        return 0
    largest = max(exponent for _, exponent in terms)
    return float_bits(truncated_sum([value for value, _ in terms], largest - fraction_bits), rounding)


def exact_output(groups: list[Term] | float | None, c: int) -> int:
    """One output of a GEMM that is rounded once."""
    if (found := special(groups, c)) is not None:
        return found
    assert isinstance(groups, list)
    return float_bits(c_value(c)[0] + sum(v for v, _, _ in groups), "nearest_even")


def outputs(a, a_scales, b, b_scales, c, output=step_output, forms=("mixfp4", "mixfp4"), **options):
    """FP32 bits, uint32 (M, N), of arrays: codes (M, K) and (N, K), scales (M, K / 16) and (N, K / 16), C (M, N)."""
    a, a_scales, b, b_scales = (x.tolist() for x in (a, a_scales, b, b_scales))
    bits = c.view(np.uint32).tolist()
    return np.array(
        [
            [output(terms(a[m], a_scales[m], b[n], b_scales[n], forms), bits[m][n], **options) for n in range(len(b))]
            for m in range(len(a))
        ],
        np.uint32,
    )

"""The formats that hwgen knows, one record each. To add a format is to describe it here and in the golden model."""

from __future__ import annotations

from dataclasses import replace

from hwgen.formats.block import BlockFormat
from hwgen.formats.element import ElementFormat
from hwgen.formats.floating import FloatFormat
from hwgen.formats.scale import ScaleFormat

__all__ = [
    "BLOCKDIALECT",
    "BLOCK_FORMATS",
    "E1M2",
    "E2M1",
    "E2M3",
    "E3M2",
    "E3M3",
    "E4M3",
    "E5M0",
    "E5M2",
    "E6M2",
    "E8M0",
    "FP4_UE5M3_B16",
    "FP4_UE5M3_B32",
    "FP16",
    "HIF4",
    "I8",
    "IF4",
    "INT4",
    "INT8",
    "INTEGERS_4",
    "INTEGERS_8",
    "L_MUL",
    "MIXFP4",
    "MSFP12",
    "MXFP4",
    "MXFP4_2X16",
    "MXFP6_E2M3",
    "MXFP6_E3M2",
    "MXFP8_E4M3",
    "MXFP8_E5M2",
    "MXINT8",
    "NONE",
    "NUMBERS_16",
    "NVFP4",
    "NVFP4_E0M3",
    "NVINT4",
    "RAZER_ACTIVATIONS",
    "RAZER_WEIGHTS",
    "S1P2",
    "TERNARIES",
    "TERNARY",
    "UE4M3",
    "UE5M3",
]


def _sign_magnitude(*magnitudes: float) -> tuple[float, ...]:
    """Values of all codes whose top bit is the sign of the magnitude below."""
    return (*magnitudes, *(-magnitude for magnitude in magnitudes))


E2M1 = ElementFormat(
    "E2M1", _sign_magnitude(0, 0.5, 1, 1.5, 2, 3, 4, 6), "OCP Microscaling Formats (MX) Specification v1.0, 5.3.3"
)
E1M2 = ElementFormat("E1M2", _sign_magnitude(0, 1, 2, 3, 4, 5, 6, 7), "arXiv 2605.31035, its factor of 2 included")
INT4 = ElementFormat(
    "INT4",
    (0, 1, 2, 3, 4, 5, 6, 7, 0, -7, -6, -5, -4, -3, -2, -1),
    "arXiv 2510.25602: symmetric two's complement, so no encoder writes code 8; it reads as 0",
)
S1P2 = ElementFormat(
    "S1P2",
    _sign_magnitude(*(m / 4 for m in range(8))),
    "arXiv 2602.11287: sign, one bit before the point and two behind it; no hidden bit",
)


def _with_special(special: float) -> ElementFormat:
    """E2M1 with a number in the place of -0."""
    values = (*E2M1.values[:8], float(special), *E2M1.values[9:])
    return ElementFormat(f"E2M1{special:+g}", values, f"arXiv 2501.04052: code 8 is {special:+g}")


def _dialect(index: int, *half_units: int) -> ElementFormat:
    """A dialect, by its magnitudes in half-units."""
    return ElementFormat(f"D{index}", _sign_magnitude(*(h / 2 for h in half_units)), "arXiv 2501.01144")


DIALECTS = (
    _dialect(0, 0, 1, 2, 3, 4, 6, 11, 15),
    _dialect(1, 0, 1, 2, 3, 4, 6, 9, 15),
    _dialect(2, 0, 1, 2, 3, 4, 6, 11, 14),
    _dialect(3, 0, 1, 2, 3, 4, 6, 9, 14),
    _dialect(4, 0, 1, 2, 3, 4, 6, 10, 13),
    _dialect(5, 0, 1, 2, 3, 4, 6, 8, 13),
    _dialect(6, 0, 1, 2, 3, 4, 6, 10, 12),
    _dialect(7, 0, 1, 2, 3, 4, 6, 8, 12),
    _dialect(8, 0, 1, 2, 3, 4, 6, 9, 11),
    _dialect(9, 0, 1, 2, 3, 4, 6, 7, 11),
    _dialect(10, 0, 1, 2, 3, 4, 6, 9, 10),
    _dialect(11, 0, 1, 2, 3, 4, 6, 7, 10),
    _dialect(12, 0, 1, 2, 3, 4, 6, 8, 9),
    _dialect(13, 0, 1, 2, 3, 4, 6, 7, 9),
    _dialect(14, 0, 1, 2, 3, 4, 6, 7, 8),
    _dialect(15, 0, 1, 2, 3, 4, 5, 6, 8),
)
"""The elements of BlockDialect, by number; D7 is E2M1."""


def _minifloat(exponent_bits: int, mantissa_bits: int, bias: int) -> tuple[float, ...]:
    """Values of all codes of sign, exponent and mantissa, with subnormals, all of them numbers."""
    fields = [divmod(code, 1 << mantissa_bits) for code in range(1 << exponent_bits + mantissa_bits)]
    return _sign_magnitude(
        *(
            (mantissa + (1 << mantissa_bits) * (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
            for exponent, mantissa in fields
        )
    )


def _without(values: tuple[float, ...], codes: tuple[int, ...]) -> tuple[float, ...]:
    """A table with zeros in the place of some codes."""
    return tuple(0.0 if code in codes else value for code, value in enumerate(values))


_OCP = "OCP Microscaling Formats (MX) Specification v1.0"
E2M3 = ElementFormat("E2M3", _minifloat(2, 3, bias=1), f"{_OCP}, 5.3.2", point=3)
E3M2 = ElementFormat("E3M2", _minifloat(3, 2, bias=3), f"{_OCP}, 5.3.2", point=4)
E4M3 = ElementFormat(
    "E4M3",
    _without(_minifloat(4, 3, bias=7), (0x7F, 0xFF)),
    "OCP 8-bit Floating Point Specification (OFP8) v1.0, section 5: no infinity, NaN where all other bits are ones",
    point=9,
    nans=(0x7F, 0xFF),
)
E5M2 = ElementFormat(
    "E5M2",
    _without(_minifloat(5, 2, bias=15), (*range(0x7C, 0x80), *range(0xFC, 0x100))),
    "OCP 8-bit Floating Point Specification (OFP8) v1.0, section 5: infinity and NaN as in IEEE 754",
    point=16,
    nans=(0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF),
    infinities=(0x7C, 0xFC),
)
INT8 = ElementFormat(
    "INT8",
    tuple((code - 256 * (code > 127)) / 64 for code in range(256)),
    f"{_OCP}, 5.3.4: two's complement in 64ths; no encoder writes code 128, which is -2",
    point=6,
)

I8 = ElementFormat(
    "I8",
    tuple(float(code - 256 * (code > 127)) for code in range(256)),
    "two's complement of 8 bits; no encoder writes code 128, which is -128",
    point=6,
)
FP16 = FloatFormat.of("FP16", 5, 10, "IEEE 754-2019, binary16")
TERNARY = ElementFormat(
    "ternary", (0, 1, 0, -1), "arXiv 2402.17764; that they are coded as two's complement, code 2 reading as 0, is ours"
)

NONE = ScaleFormat(
    "none",
    exponent_bits=0,
    mantissa_bits=0,
    bias=0,
    nan=None,
    source="no scale: that of a group, a row or a token is applied outside the core",
    subnormals=False,
)
UE4M3 = ScaleFormat(
    "UE4M3",
    exponent_bits=4,
    mantissa_bits=3,
    bias=7,
    nan=0x7F,
    source="OCP 8-bit Floating Point Specification (OFP8) v1.0, section 5, E4M3 without its sign",
)
UE5M3 = ScaleFormat(
    "UE5M3",
    exponent_bits=5,
    mantissa_bits=3,
    bias=15,
    nan=0xFF,
    source="arXiv 2601.19026; codes as in AMD-AGI/ALTO, ue5m3_ops.py",
)
E8M0 = ScaleFormat(
    "E8M0",
    exponent_bits=8,
    mantissa_bits=0,
    bias=127,
    nan=0xFF,
    source="OCP Microscaling Formats (MX) Specification v1.0",
    subnormals=False,
)
E6M2 = ScaleFormat(
    "E6M2",
    exponent_bits=6,
    mantissa_bits=2,
    bias=48,
    nan=0xFF,
    source="arXiv 2602.11287: 2^-48 to 1.5 * 2^15, neither subnormals nor zero",
    subnormals=False,
)
E3M3 = ScaleFormat(
    "E3M3",
    exponent_bits=3,
    mantissa_bits=3,
    bias=3,
    nan=0x3F,
    source="arXiv 2501.04052: six bits, 2^-5 to 28; bias and NaN follow from that range, the paper does not name them",
)
E5M0 = ScaleFormat(
    "E5M0",
    exponent_bits=5,
    mantissa_bits=0,
    bias=15,
    nan=None,
    source="arXiv 2501.01144: the exponent field of FP16; that all codes are powers of two is ours",
    subnormals=False,
)

NVFP4 = BlockFormat("nvfp4", (E2M1,), UE4M3, size=16, full_scale=448 * 6, source="NVIDIA, NVFP4")
MIXFP4 = BlockFormat(
    "mixfp4",
    (E2M1, E1M2),
    UE4M3,
    size=16,
    full_scale=448 * 6,
    source="arXiv 2605.31035; that selector 0 is E2M1 is ours, the paper leaves it open",
)
NVFP4_E0M3 = BlockFormat(
    "nvfp4-e0m3",
    (E2M1, E1M2),
    UE4M3,
    size=16,
    full_scale=448 * 6,
    source="flashinfer issue 3934, FlashRT pull request 146: 0 to 7 beside E2M1, chosen for an operand; not by NVIDIA",
    by_step=True,
)
NVINT4 = BlockFormat("nvint4", (INT4,), UE4M3, size=16, full_scale=448 * 7, source="arXiv 2510.25602")
FP4_UE5M3_B16 = BlockFormat(
    "fp4-ue5m3-b16",
    (E2M1,),
    UE5M3,
    size=16,
    full_scale=None,
    source="arXiv 2601.19026: no tensor scale; NVIDIA CUTLASS, mma_sm107_desc.hpp: UE5M3 scales of 16 and 32 elements",
)
FP4_UE5M3_B32 = BlockFormat("fp4-ue5m3-b32", (E2M1,), UE5M3, size=32, full_scale=None, source=FP4_UE5M3_B16.source)

MXFP4 = BlockFormat(
    "mxfp4",
    (E2M1,),
    E8M0,
    size=32,
    full_scale=None,
    source="OCP Microscaling Formats (MX) Specification v1.0: no tensor scale",
)
MXFP4_2X16 = replace(
    MXFP4,
    name="mxfp4-2x16",
    sums=2,
    source=f"{MXFP4.source}; two sums of 16 are what arXiv 2511.10909 found in Blackwell's kind::mxf4",
)
MSFP12 = BlockFormat(
    "msfp12",
    (S1P2,),
    E8M0,
    size=16,
    full_scale=None,
    source="Darvish Rouhani et al., NeurIPS 2020, as others cite it: 16 numbers with a shared exponent of 8 bits, sign"
    " and 3 bits each; that the exponent is coded as E8M0, NaN included, is ours",
)
MXFP6_E2M3 = BlockFormat("mxfp6-e2m3", (E2M3,), E8M0, size=32, full_scale=None, source=MXFP4.source)
MXFP6_E3M2 = BlockFormat("mxfp6-e3m2", (E3M2,), E8M0, size=32, full_scale=None, source=MXFP4.source)
MXINT8 = BlockFormat("mxint8", (INT8,), E8M0, size=32, full_scale=None, source=MXFP4.source)
MXFP8_E4M3 = BlockFormat(
    "mxfp8-e4m3",
    (E4M3,),
    E8M0,
    size=32,
    full_scale=None,
    source=f"{MXFP4.source}; 25 bits below the largest product are what arXiv 2511.10909 found in kind::mxf8f6f4, where"
    " C has a say in them, too",
    window=25,
)
MXFP8_E5M2 = replace(MXFP8_E4M3, name="mxfp8-e5m2", elements=(E5M2,))
L_MUL = replace(
    MXFP8_E4M3,
    name="l-mul",
    source="arXiv 2410.00907 for products of E4M3; that blocks, scales and window are those of mxfp8-e4m3 is ours, and"
    " that subnormal numbers are added as they are coded",
    additive=True,
)
INTEGERS_8 = BlockFormat("int8", (I8,), NONE, size=16, full_scale=127, source=NONE.source, scale_bytes=0)
INTEGERS_4 = BlockFormat("int4", (INT4,), NONE, size=16, full_scale=7, source=NONE.source, scale_bytes=0)
NUMBERS_16 = BlockFormat(
    "fp16",
    (FP16,),
    NONE,
    size=16,
    full_scale=None,
    source="IEEE 754-2019, binary16, as it is; sums of 16, and 25 bits below the largest product, are what MMA-Sim"
    " (arXiv 2511.10909) has for FP16 on Hopper and Blackwell, where C has a say in them, too",
    scale_bytes=0,
    window=25,
    always_cut=True,
)
TERNARIES = BlockFormat(
    "ternary",
    (TERNARY,),
    NONE,
    size=16,
    full_scale=1,
    source="arXiv 2402.17764, BitNet b1.58, the weights; their tensor scale is the mean of |X|",
    scale_bytes=0,
)
IF4 = BlockFormat(
    "if4",
    (E2M1, INT4),
    UE4M3,
    size=16,
    full_scale=448 * 6,
    source="arXiv 2603.28765; codes as in mit-han-lab/fouroversix",
    factors=(7, 6),
)
RAZER_ACTIVATIONS = BlockFormat(
    "razer-activations",
    (_with_special(5), _with_special(-5)),
    UE4M3,
    size=16,
    full_scale=448 * 6,
    source="arXiv 2501.04052, abdelfattah-lab/NVFP4-RaZeR: the sign bit of the scale is that of the special value",
)
RAZER_WEIGHTS = BlockFormat(
    "razer-weights",
    (_with_special(5), _with_special(-5), _with_special(8), _with_special(-8)),
    E3M3,
    size=16,
    full_scale=28 * 6,
    source="arXiv 2501.04052, abdelfattah-lab/NVFP4-RaZeR; which bits select the special value is ours",
)
BLOCKDIALECT = BlockFormat(
    "blockdialect",
    DIALECTS,
    E5M0,
    size=32,
    full_scale=None,
    source="arXiv 2501.01144: 9 bits of scale and dialect for a block; that they are two bytes, scale first, is ours",
    scale_bytes=2,
)

HIF4 = BlockFormat(
    "hif4",
    (S1P2,),
    E6M2,
    size=64,
    full_scale=None,
    source="arXiv 2602.11287: a bit each for 8 and for 4 elements; that scale and bits are one word, scale lowest, and"
    " that a step makes four sums of a block, is ours",
    sums=4,
    scale_bytes=4,
    shifts=(8, 4),
)

BLOCK_FORMATS: dict[str, BlockFormat] = {
    form.name: form
    for form in (
        *(NVFP4, MIXFP4, NVFP4_E0M3, NVINT4, FP4_UE5M3_B16, FP4_UE5M3_B32, MXFP4, MXFP4_2X16, MSFP12, IF4),
        *(RAZER_ACTIVATIONS, RAZER_WEIGHTS, BLOCKDIALECT, MXINT8, MXFP6_E2M3, MXFP6_E3M2, MXFP8_E4M3),
        *(MXFP8_E5M2, L_MUL, HIF4),
        *(INTEGERS_8, INTEGERS_4, TERNARIES, NUMBERS_16),
    )
}
"""Block formats by name."""

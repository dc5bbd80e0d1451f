"""The block formats that the model knows, by name.

=============  ==========  =====  ===========================================  ============
name           elements    block  scale byte                                   tensor scale
=============  ==========  =====  ===========================================  ============
nvfp4          E2M1           16  UE4M3 in bits 6..0                           max / 2688
mixfp4         E2M1, E1M2     16  UE4M3 in bits 6..0, bit 7 selects the latter max / 2688
nvfp4-e0m3     E2M1, E1M2     16  as mixfp4, bit 7 the same in a tensor        max / 2688
nvint4         INT4           16  UE4M3 in bits 6..0                           max / 3136
fp4-ue5m3-b16  E2M1           16  UE5M3                                        none
fp4-ue5m3-b32  E2M1           32  UE5M3                                        none
mxfp4          E2M1           32  E8M0                                         none
mxfp4-2x16     E2M1           32  E8M0                                         none
msfp12         S1P2           16  E8M0                                         none
if4            E2M1, INT4     16  UE4M3 in bits 6..0, bit 7 selects the latter max / 2688
razer-         E2M1 +5,       16  UE4M3 in bits 6..0, bit 7 selects the latter max / 2688
activations    E2M1 -5
razer-weights  E2M1 +5 -5     16  E3M3 in bits 5..0, bits 7..6 select          max / 168
               +8 -8
blockdialect   D0 .. D15      32  E5M0 in bits 4..0, bits 8..5 select          none
mxint8         INT8           32  E8M0                                         none
mxfp6-e2m3     E2M3           32  E8M0                                         none
mxfp6-e3m2     E3M2           32  E8M0                                         none
mxfp8-e4m3     E4M3           32  E8M0                                         none
mxfp8-e5m2     E5M2           32  E8M0                                         none
fp16           FP16           16  none                                         none
l-mul          E4M3           32  E8M0                                         none
hif4           S1P2           64  E6M2 in bits 7..0, bits 31..8 are shifts     none
int8           I8             16  none                                         max / 127
int4           INT4           16  none                                         max / 7
ternary        ternary        16  none                                         mean
=============  ==========  =====  ===========================================  ============

2688 is 448 * 6 and 3136 is 448 * 7: the largest block scale times the largest element.

Sources: NVFP4, NVIDIA; MixFP4, arXiv 2605.31035, whose text leaves the polarity of bit 7 open: it is this model's;
NVFP4 with E0M3, whose magnitudes are 0 to 7, those of E1M2: several public projects find it in Blackwell's hardware
(flashinfer issue 3934, FlashRT pull request 146), chosen for an operand of an instruction; NVIDIA does not document it.
That the factor of two between E0M3 and the half-units of E2M1 counts in the exponent of a block, as MixFP4's does, is
this model's. NVINT4, arXiv 2510.25602; UE5M3 scales, arXiv 2601.19026, which take the place of the tensor scale.
Nobody's name for E2M1 with such scales is common, so the name says its parts. MXFP4, OCP Microscaling Formats (MX)
Specification v1.0.
Of a block of MXFP4 a step makes one sum of 32, or two of 16 that are aligned each for itself: the latter is what
MMA-Sim (arXiv 2511.10909) has for Blackwell's ``kind::mxf4``. MSFP12, Darvish Rouhani et al., NeurIPS 2020, as others
cite it: block floating point, an exponent of 8 bits for 16 numbers of sign and 3 bits. We have not read how that paper
codes the exponent and how it rounds: the code of E8M0, and the rules of MXFP4, are this model's. IF4, arXiv 2603.28765
and its code (mit-han-lab/fouroversix): INT4 elements count 6/7, so that both kinds reach 6 under one scale. RaZeR,
arXiv 2501.04052 and its code (abdelfattah-lab/NVFP4-RaZeR): E2M1 with a special value in the place of -0, which the
block chooses. That bit 7 is the sign of activations' special value, and which bits select that of weights, is ours.
BlockDialect, arXiv 2501.01144: a block of 32 has one of sixteen tables, its scale and selector 9 bits, stored in two
bytes here. The order of both in them is ours. MXINT8, MXFP6 and MXFP8, the specification of MXFP4. L-Mul, arXiv
2410.00907, adds codes of E4M3 for a product; that they have the blocks, the scales and the window of mxfp8-e4m3 is
ours.
HiF4, arXiv 2602.11287 and its code (global-computing-consortium/HiFloat4): in a block of 64 each sub-group of 8, and
each of 4, has a bit that doubles it. That these 24 bits stand above the scale in a word of 32, and that a step makes
four sums of 16, is ours. int8, int4 and ternary are integers as they are: scales of groups, of rows or of tokens are
applied outside. Their blocks are what a step adds up exactly. The tensor scale of ternary weights is that of BitNet
b1.58, arXiv 2402.17764. fp16 is IEEE 754's binary16 as it is, without scale of a block or of a tensor: numbers beyond
65504 saturate. Its products are cut to a window, whatever the other operand has. The 25 bits are those that MMA-Sim
(arXiv 2511.10909) found for FP16 on Hopper and Blackwell, where C has a say in them, too.
"""

from __future__ import annotations

from typing import Any

from .block import BlockFormat
from .checks import ArgumentError
from .element import DIALECTS, E1M2, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, I8, INT4, INT8, S1P2, TERNARY
from .element import RAZER_ACTIVATIONS as ACTIVATIONS
from .element import RAZER_WEIGHTS as WEIGHTS
from .scale import E3M3, E5M0, E6M2, E8M0, NONE, UE4M3, UE5M3

NVFP4 = BlockFormat("nvfp4", (E2M1,), UE4M3, 448 * 6)
MIXFP4 = BlockFormat("mixfp4", (E2M1, E1M2), UE4M3, 448 * 6, tag_bit=7)
NVFP4_E0M3 = BlockFormat("nvfp4-e0m3", (E2M1, E1M2), UE4M3, 448 * 6, tag_bit=7, trial=(0, 1), by_tensor=True)
NVINT4 = BlockFormat("nvint4", (INT4,), UE4M3, 448 * 7)
FP4_UE5M3_B16 = BlockFormat("fp4-ue5m3-b16", (E2M1,), UE5M3, None)
FP4_UE5M3_B32 = BlockFormat("fp4-ue5m3-b32", (E2M1,), UE5M3, None, block=32)
MXFP4 = BlockFormat("mxfp4", (E2M1,), E8M0, None, block=32)
MXFP4_2X16 = BlockFormat("mxfp4-2x16", (E2M1,), E8M0, None, block=32, sums=2)
MSFP12 = BlockFormat("msfp12", (S1P2,), E8M0, None)
IF4 = BlockFormat("if4", (E2M1, INT4), UE4M3, 448 * 6, tag_bit=7, factors=(7, 6), trial=(0, 1))
RAZER_ACTIVATIONS = BlockFormat("razer-activations", ACTIVATIONS, UE4M3, 448 * 6, tag_bit=7, nonzero=True)
RAZER_WEIGHTS = BlockFormat("razer-weights", WEIGHTS, E3M3, 28 * 6, tag_bit=6, trial=(0, 1, 2, 3), nonzero=True)
BLOCKDIALECT = BlockFormat(
    "blockdialect", DIALECTS, E5M0, None, tag_bit=5, block=32, trial=tuple(range(16)), scale_bytes=2
)
MXINT8 = BlockFormat("mxint8", (INT8,), E8M0, None, block=32)
MXFP6_E2M3 = BlockFormat("mxfp6-e2m3", (E2M3,), E8M0, None, block=32)
MXFP6_E3M2 = BlockFormat("mxfp6-e3m2", (E3M2,), E8M0, None, block=32)
MXFP8_E4M3 = BlockFormat("mxfp8-e4m3", (E4M3,), E8M0, None, block=32, window=25)
MXFP8_E5M2 = BlockFormat("mxfp8-e5m2", (E5M2,), E8M0, None, block=32, window=25)
L_MUL = BlockFormat("l-mul", (E4M3,), E8M0, None, block=32, window=25, additive=True)
HIF4 = BlockFormat("hif4", (S1P2,), E6M2, None, block=64, sums=4, scale_bytes=4, shifts=(8, 4))
INTEGERS_8 = BlockFormat("int8", (I8,), NONE, 127, scale_bytes=0)
INTEGERS_4 = BlockFormat("int4", (INT4,), NONE, 7, scale_bytes=0)
NUMBERS_16 = BlockFormat("fp16", (FP16,), NONE, None, scale_bytes=0, window=25, always_cut=True)
TERNARIES = BlockFormat("ternary", (TERNARY,), NONE, 1, scale_bytes=0)

_ALL = (
    *(NVFP4, MIXFP4, NVFP4_E0M3, NVINT4, FP4_UE5M3_B16, FP4_UE5M3_B32, MXFP4, MXFP4_2X16, MSFP12, IF4),
    *(RAZER_ACTIVATIONS, RAZER_WEIGHTS, BLOCKDIALECT, MXINT8, MXFP6_E2M3, MXFP6_E3M2, MXFP8_E4M3),
    *(MXFP8_E5M2, L_MUL, HIF4),
    *(INTEGERS_8, INTEGERS_4, TERNARIES, NUMBERS_16),
)
CATALOGUE = {form.name: form for form in _ALL}
"""Block formats by name."""
FORMATS = tuple(CATALOGUE)
"""Names of the block formats."""


def block_format(fmt: str | BlockFormat | Any, name: str = "format") -> BlockFormat:
    """Return a format by its name; a `BlockFormat` is returned as it is.

    Raises
    ------
    ArgumentError
        It is neither, or no name of the catalogue. The message starts with `name`.
    """
    if isinstance(fmt, BlockFormat):
        return fmt
    if not isinstance(fmt, str) or fmt not in CATALOGUE:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, FORMATS))}; got {fmt!r}")
    return CATALOGUE[fmt]

"""Golden model of FP4 tensor cores, bit-exact, in numpy alone.

It shares no code and no tables with the hardware generator, so that it is a check on it::

    from sim import golden

    qa = golden.quantize(a, "mixfp4")  # (M, K)
    qb = golden.quantize(b, "nvint4")  # (N, K)
    d = golden.gemm(qa, qb)  # (M, N), as the hardware would compute it
"""

from .additive import additive_products
from .block import BlockFormat
from .catalogue import CATALOGUE, FORMATS, block_format
from .checks import ArgumentError
from .codes import (
    decode_e1m2,
    decode_e2m1,
    decode_int4,
    decode_ue4m3,
    encode_e1m2,
    encode_e2m1,
    encode_int4,
    encode_ue4m3,
    pack,
    unpack,
)
from .described import formats_from
from .element import ElementFormat
from .fp32 import ROUNDINGS
from .mma import CONTRACT, EMPTY_BLOCKS, NUMERICS, accumulate, gemm, max_fraction_bits, step
from .quantiser import (
    QUANTISERS,
    SELECTIONS,
    AbsoluteError,
    CrestFactor,
    Gap,
    HardwareResult,
    LargestError,
    Quantiser,
    SampledError,
    SecondLargest,
    Selection,
    SquaredError,
)
from .quantize import BLOCK, QuantizedTensor, dequantize, padded, quantize, quantize_padded
from .rules import RULES
from .scale import ScaleFormat
from .unscaled import UNSCALED_ELEMENTS, max_unscaled_fraction_bits, quantize_unscaled, unscaled_gemm, unscaled_step
from .window import window_sums

__all__ = [
    "BLOCK",
    "CATALOGUE",
    "CONTRACT",
    "EMPTY_BLOCKS",
    "FORMATS",
    "NUMERICS",
    "QUANTISERS",
    "ROUNDINGS",
    "RULES",
    "SELECTIONS",
    "UNSCALED_ELEMENTS",
    "AbsoluteError",
    "ArgumentError",
    "BlockFormat",
    "CrestFactor",
    "ElementFormat",
    "Gap",
    "HardwareResult",
    "LargestError",
    "Quantiser",
    "QuantizedTensor",
    "SampledError",
    "ScaleFormat",
    "SecondLargest",
    "Selection",
    "SquaredError",
    "accumulate",
    "additive_products",
    "block_format",
    "decode_e1m2",
    "decode_e2m1",
    "decode_int4",
    "decode_ue4m3",
    "dequantize",
    "encode_e1m2",
    "encode_e2m1",
    "encode_int4",
    "encode_ue4m3",
    "formats_from",
    "gemm",
    "max_fraction_bits",
    "max_unscaled_fraction_bits",
    "pack",
    "padded",
    "quantize",
    "quantize_padded",
    "quantize_unscaled",
    "step",
    "unpack",
    "unscaled_gemm",
    "unscaled_step",
    "window_sums",
]

"""Golden model of FP4 tensor cores, bit-exact, in numpy alone.

It shares no code and no tables with the hardware generator, so that it is a check on it::

    from sim import golden

    qa = golden.quantize(a, "mixfp4")  # (M, K)
    qb = golden.quantize(b, "mixfp4")  # (N, K)
    d = golden.gemm(qa, qb)  # (M, N), as the hardware would compute it
"""

from .formats import (
    BLOCK,
    InputError,
    decode_e1m2,
    decode_e2m1,
    decode_ue4m3,
    encode_e1m2,
    encode_e2m1,
    encode_ue4m3,
    pack,
    unpack,
)
from .mma import NUMERICS, ROUNDINGS, accumulate, gemm, max_fraction_bits, step
from .quantize import FORMATS, QuantizedTensor, dequantize, padded, quantize

__all__ = [
    "BLOCK",
    "FORMATS",
    "NUMERICS",
    "ROUNDINGS",
    "InputError",
    "QuantizedTensor",
    "accumulate",
    "decode_e1m2",
    "decode_e2m1",
    "decode_ue4m3",
    "dequantize",
    "encode_e1m2",
    "encode_e2m1",
    "encode_ue4m3",
    "gemm",
    "max_fraction_bits",
    "pack",
    "padded",
    "quantize",
    "step",
    "unpack",
]

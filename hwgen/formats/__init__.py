"""The number formats, as data: elements, scales, blocks, and what follows from a pair of them."""

from hwgen.formats.block import BlockFormat, Formats
from hwgen.formats.bounds import Bounds
from hwgen.formats.catalogue import (
    BLOCK_FORMATS,
    E1M2,
    E2M1,
    E3M3,
    E8M0,
    FP4_UE5M3_B16,
    FP4_UE5M3_B32,
    IF4,
    INT4,
    MIXFP4,
    MSFP12,
    MXFP4,
    MXFP4_2X16,
    NVFP4,
    NVINT4,
    RAZER_ACTIVATIONS,
    RAZER_WEIGHTS,
    S1P2,
    UE4M3,
    UE5M3,
)
from hwgen.formats.element import ElementFormat
from hwgen.formats.scale import ScaleFormat

__all__ = [
    "BLOCK_FORMATS",
    "E1M2",
    "E2M1",
    "E3M3",
    "E8M0",
    "FP4_UE5M3_B16",
    "FP4_UE5M3_B32",
    "IF4",
    "INT4",
    "MIXFP4",
    "MSFP12",
    "MXFP4",
    "MXFP4_2X16",
    "NVFP4",
    "NVINT4",
    "RAZER_ACTIVATIONS",
    "RAZER_WEIGHTS",
    "S1P2",
    "UE4M3",
    "UE5M3",
    "BlockFormat",
    "Bounds",
    "ElementFormat",
    "Formats",
    "ScaleFormat",
]

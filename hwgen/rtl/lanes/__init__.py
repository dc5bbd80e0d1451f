"""Micro-architectures of the 16-lane dot product, all with the same result.

Each module holds one: what the operand decoders hand over and how 16 lanes become one sum. What the sum is, is fixed
(`hwgen.rtl.dot`); a configuration chooses by ``dot``.
"""

from __future__ import annotations

from hwgen.config import TensorCoreConfig
from hwgen.rtl.lanes.e2m2 import E2M2
from hwgen.rtl.lanes.interface import Lanes
from hwgen.rtl.lanes.merged import Merged
from hwgen.rtl.lanes.multiplier import Multiplier
from hwgen.rtl.lanes.signed import Signed
from hwgen.rtl.lanes.significand import Significand

__all__ = ["LANES", "Lanes", "lanes"]

LANES: dict[str, type[Lanes]] = {
    "merged": Merged,
    "signed": Signed,
    "significand": Significand,
    "multiplier": Multiplier,
    "e2m2": E2M2,
}
"""Micro-architectures by the name that configurations know them by."""


def lanes(config: TensorCoreConfig) -> Lanes:
    """Return the micro-architecture of a configuration."""
    return LANES[config.dot](config)

"""Micro-architectures of the dot product, all with the same result.

Each module holds one: what the operand decoders hand over, and how a block's lanes become one sum. The sum itself is
fixed (`hwgen.rtl.dot`). A configuration chooses by ``dot``; `hwgen.config.DOTS` says which formats each multiplies.
"""

from __future__ import annotations

from hwgen.config import TensorCoreConfig
from hwgen.rtl.lanes.additive import Additive
from hwgen.rtl.lanes.binary import Binary
from hwgen.rtl.lanes.booth import Booth
from hwgen.rtl.lanes.e2m2 import E2M2
from hwgen.rtl.lanes.interface import Lanes
from hwgen.rtl.lanes.merged import Merged
from hwgen.rtl.lanes.merged_binary import MergedBinary
from hwgen.rtl.lanes.merged_timed import MergedTimed
from hwgen.rtl.lanes.multiplier import Multiplier
from hwgen.rtl.lanes.nested import Nested
from hwgen.rtl.lanes.quadrants import Quadrants
from hwgen.rtl.lanes.sharing import MergedFull, MergedSplit, MergedTimedFull, MergedTimedSplit, Sharing
from hwgen.rtl.lanes.shifted import Shifted
from hwgen.rtl.lanes.shifted_carry_save import ShiftedCarrySave
from hwgen.rtl.lanes.signed import Signed
from hwgen.rtl.lanes.significand import Significand
from hwgen.rtl.lanes.windowed import Windowed

__all__ = ["LANES", "SHARING", "Lanes", "Sharing", "lanes"]

LANES: dict[str, type[Lanes]] = {
    "merged": Merged,
    "merged-timed": MergedTimed,
    "merged-binary": MergedBinary,
    "signed": Signed,
    "significand": Significand,
    "binary": Binary,
    "booth": Booth,
    "shifted": Shifted,
    "shifted-carry-save": ShiftedCarrySave,
    "windowed": Windowed,
    "additive": Additive,
    "nested": Nested,
    "multiplier": Multiplier,
    "e2m2": E2M2,
}
"""Micro-architectures by the name that configurations know them by."""


SHARING: dict[tuple[str, str], type[Sharing]] = {
    ("split", "merged"): MergedSplit,
    ("split", "merged-timed"): MergedTimedSplit,
    ("full", "merged"): MergedFull,
    ("full", "merged-timed"): MergedTimedFull,
    ("quadrants", "significand"): Quadrants,
}
"""Those that multiply significands of FP8, too, by the names of the slot and of the micro-architecture."""


def lanes(config: TensorCoreConfig) -> Lanes:
    """Return the micro-architecture of a configuration."""
    return SHARING.get((config.slot, config.dot), LANES[config.dot])(config)

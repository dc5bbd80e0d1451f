"""Half-unit integers whose partial products share places, added as they come."""

from __future__ import annotations

from hwgen.rtl.lanes.merged import Merged

__all__ = ["MergedTimed"]


class MergedTimed(Merged):
    """The lanes of `Merged`, for a fast clock: each level of the tree adds the bits that are there already.

    The chain of adders has the low places of a product first, and the number of negative lanes comes last. The tree of
    `Merged` does not ask. So it waits for late bits in its first levels. It has fewer levels, but its way is longer.
    The full adders are as many.

    With 16 lanes the register ``tree`` stands where no place has more than three bits: one level of full adders before
    that of `Merged`. In an array the lanes are behind long wires, and what follows the register has time to spare. It
    holds a few bits more.

    Fields of a lane are those of `Merged`.
    """

    held = 3, 4
    _timed = True

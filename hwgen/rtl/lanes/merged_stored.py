"""Half-unit integers whose partial products share places, and registers that hold all that they take."""

from __future__ import annotations

from hwgen.rtl.lanes.interface import Lanes
from hwgen.rtl.lanes.merged import Merged

__all__ = ["MergedStored"]


class MergedStored(Merged):
    """The lanes of `Merged`; the registers behind the decoders hold ``five`` and ``ten``, too.

    `Merged` makes them behind these registers, by one gate for each number of a row, which stands on the way to a whole
    row of elements. In a fast core the gate costs more than the flip-flop that saves it.
    """

    stored_layout = Lanes.stored_layout
    restored = Lanes.restored

"""How netlists are built, besides their clock: where their wires come from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PLACERS", "WIRES", "Physical"]

WIRES = ("placed", "fanout")
"""Where the wires of a netlist come from: its placement, or the number of its loads."""

PLACERS = ("embedded", "coloquinte")
"""What places cells, see `hwgen.layout.place`."""


@dataclass(frozen=True)
class Physical:
    """How netlists are built, besides their clock.

    Parameters
    ----------
    wires
        One of `WIRES`.
    placer
        See `hwgen.layout.lay_out`; of no meaning with wires by fanout.
    utilisation
        Share of the rows that cells fill; likewise.
    """

    wires: str = "placed"
    placer: str = "embedded"
    utilisation: float = 0.7

    @property
    def placed(self) -> bool:
        """Whether wires come from a placement."""
        return self.wires == "placed"

"""What a netlist does once it has other sizes and buffers: its logic is the same, so it need not be simulated again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hwgen.netlist.graph import Netlist
from hwgen.netlist.revision import nets_before
from hwgen.power.activity import Activity
from hwgen.power.glitch import sources

__all__ = ["carried"]


def carried(activity: Activity, old: Netlist, new: Netlist) -> Activity | None:
    """The activity without delays of a netlist, from that of what it was.

    Parameters
    ----------
    activity
        Of ``old``, with the values of `hwgen.power.glitch.sources` kept.
    old, new
        The netlist before and after cells got other sizes, and buffers were put in.

    Returns
    -------
    Activity or None
        Without states, with the values of the new netlist's sources; equal to what a simulation would give. None where
        the netlist changed by more than that.
    """
    before = nets_before(old, new)
    if (before < 0).any():
        return None
    place = np.searchsorted(sources(old), before[sources(new)])
    return replace(
        activity,
        toggles=activity.toggles[before],
        ones=activity.ones[before],
        states=[],
        clocked=[],
        kept=activity.kept[:, :, place],
    )

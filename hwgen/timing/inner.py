"""The longest path inside of a part of a netlist: from a register of the part to a register of the same part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hwgen.netlist.graph import Netlist
from hwgen.timing.analysis import Timing
from hwgen.timing.arcs import Arcs, collect
from hwgen.timing.paths import FROM_REGISTER, Arrivals, PathStep, endpoints, trace

__all__ = ["longest_inside"]


def longest_inside(netlist: Netlist, timing: Timing, parts: Iterable[np.ndarray]) -> list[PathStep]:
    """The longest path that begins, runs and ends in one part; empty where there is none.

    Slews and loads are those of the whole netlist.

    Parameters
    ----------
    netlist : Netlist
    timing : Timing
        Of it.
    parts : iterable of numpy.ndarray
        Numbers of the cells of each part.
    """
    arcs = collect(netlist)
    slew, load, wire = timing.slew.reshape(-1), timing.load.reshape(-1), timing.wire_delay.reshape(-1)
    delays = arcs.delays(slew, load, wire, 0, len(arcs.start))
    stage = np.repeat(np.arange(len(arcs.bounds) - 1), np.diff(arcs.bounds))
    best: list[PathStep] = []
    for part in parts:
        inside = np.zeros(netlist.n_cells, dtype=np.bool_)
        inside[part] = True
        kept = np.flatnonzero(inside[arcs.cell])
        own = replace(
            arcs,
            **{
                name: getattr(arcs, name)[kept]
                for name in ("start", "end", "delay_table", "slew_table", "cell", "label")
            },
            bounds=np.searchsorted(stage[kept], np.arange(len(arcs.bounds))),
            follows=np.zeros(0, dtype=np.int64),  # their delays are known
        )
        arrivals = Arrivals(_times(netlist, own, delays[kept], wire), slew, load, delays[kept])
        ends = endpoints(netlist, arrivals, timing.clock_slew, inside)
        for kind in ("reg_to_reg", "reg_to_gate"):
            if kind in ends and ends[kind].delay > (best[-1].arrival if best else 0.0):
                best = trace(netlist, own, arrivals, ends[kind])
    return best


def _times(netlist: Netlist, arcs: Arcs, delays: np.ndarray, wire: np.ndarray) -> np.ndarray:
    """Arrivals at the loads that come through these arcs from the clock, ns; shape (2, places), none from inputs."""
    found = np.full((2, 2 * netlist.n_nets), -np.inf)
    clocks = 2 * netlist.clock_nets
    found[FROM_REGISTER, np.concatenate([clocks, clocks + 1])] = 0.0
    time = found[FROM_REGISTER]
    for first, last in zip(arcs.bounds[:-1].tolist(), arcs.bounds[1:].tolist(), strict=True):
        if first < last:
            end = arcs.end[first:last]
            heads = np.flatnonzero(np.diff(end, prepend=-1))
            latest = np.maximum.reduceat(time[arcs.start[first:last]] + delays[first:last], heads)
            time[end[heads]] = latest + wire[end[heads]]
    return found

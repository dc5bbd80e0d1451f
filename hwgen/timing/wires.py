"""What the wire of each net adds to its load and to its delay, as data: by fanout, or as placed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist

__all__ = ["Wires", "elmore", "per_fanout"]

_NS_PER_PS = 1e-3


@dataclass(frozen=True, slots=True)
class Wires:
    """What the wire of each net adds.

    Attributes
    ----------
    capacitance : numpy.ndarray
        Shape (n_nets,), fF.
    resistance : numpy.ndarray
        Shape (n_nets,), kohm, from the driver to its farthest load.
    kind : str
        ``fanout`` or ``placed``.

    Raises
    ------
    InputError
        The arrays are of different shapes, or hold a number that is negative or not finite.
    """

    capacitance: np.ndarray
    resistance: np.ndarray
    kind: str

    def __post_init__(self) -> None:
        if self.capacitance.ndim != 1 or self.capacitance.shape != self.resistance.shape:
            shapes = f"{self.capacitance.shape} and {self.resistance.shape}"
            raise InputError(f"wires: capacitances and resistances of shapes {shapes}; expected one of each for a net")
        for name, values in (("capacitance", self.capacitance), ("resistance", self.resistance)):
            wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
            if len(wrong):
                raise InputError(
                    f"wires: {name} {values[wrong[0]]:g} of net {wrong[0]}; expected a number of at least 0"
                )


def per_fanout(netlist: Netlist, wire_load: float) -> Wires:
    """Wires without resistance, whose capacitance is proportional to the fanout.

    Parameters
    ----------
    netlist : Netlist
    wire_load : float
        fF per fanout.
    """
    return Wires(wire_load * netlist.fanout, np.zeros(netlist.n_nets), "fanout")


def elmore(wires: Wires, load: np.ndarray) -> np.ndarray:
    """Delay of each wire by Elmore: its resistance times half its own capacitance and all that it leads to.

    Parameters
    ----------
    wires : Wires
    load : numpy.ndarray
        Shape (n_nets, 2), fF for the rising and the falling edge: pins, ports and wire.

    Returns
    -------
    numpy.ndarray
        Shape (n_nets, 2), ns from the driver to every load.
    """
    return _NS_PER_PS * wires.resistance[:, None] * (load - 0.5 * wires.capacitance[:, None])

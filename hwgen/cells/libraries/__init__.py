"""The default cell libraries: one 7 nm class, one 130 nm class, so that every report works out of the box.

========== ===== ======================= ============== ============= ================
library    cells stands in for           corner         row height    wire per fanout
========== ===== ======================= ============== ============= ================
generic7   119   ASAP7 7.5 track, RVT    0.70 V, 25 C   0.27 um       0.375 fF
generic130 126   sky130_fd_sc_hd         1.80 V, 25 C   2.72 um       4.01 fF
========== ===== ======================= ============== ============= ================

What they are: cells whose areas are the real cells' areas and whose delays, input capacitances, energies and
leakage are linear fits of ours to the real cells' characterisation, one row per output in ``NAME.csv`` with the
source of every row (how: see :mod:`hwgen.cells.libraries.generate`). They are meant for ratios between designs:
area, delay and power overheads under one flow. Every gate has three drives or more; some of the widest do not exist in
the source library and are extrapolated from like cells. generic7 has a full and a half adder, as ASAP7 has, for the
recipes that ask for them; ABC uses cells with one output only. Both have a latch-based clock gate (generic7's with the
test pin that ASAP7's has, to be tied to 0).

What they are not: nobody can make these cells. One typical corner, no hold or signal-integrity view, no recovery
and removal checks, no path from reset to output, no latches, no scan. A delay is the mean over a cell's input pins,
linear in load and slew, with a rise and a fall. ASAP7 has no multiplexer, no plain flip-flop with reset only, no
flip-flop with enable, and a flip-flop with an output that is not inverted in the quadruple drive only; so it is with
generic7. sky130's flip-flops with an inverted output have both outputs and cost as much as flip-flop and inverter;
generic130 leaves them out. Bring a foundry's Liberty for absolute figures.

The wire load is in the Liberty's ``wire_load`` group ``per_fanout``: capacitance proportional to fanout, no
resistance. Our timing and power use it unless they are given another; other tools do where they are told to. Its
length per fanout is 23.27 um at 130 nm (the ``Small`` wire load of sky130_fd_sc_hd), at 7 nm the same times the
square root of the ratio of the NAND2 areas, 2.90 um; times 0.172 fF/um (met1) and 0.129 fF/um (M3), the signal
layers of OpenROAD-flow-scripts for the two platforms.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from hwgen.errors import InputError

__all__ = ["WIRE_FF_PER_FANOUT", "names", "path"]

WIRE_FF_PER_FANOUT = {"generic7": 0.375, "generic130": 4.01}
"""Wire capacitance per fanout, fF; source in the module's docstring."""


def names() -> tuple[str, ...]:
    """Names of the default libraries, the smaller node first."""
    return tuple(WIRE_FF_PER_FANOUT)


def path(name: str) -> Path:
    """Liberty file of a default library.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    InputError
        If there is no such library.
    """
    if name not in names():
        raise InputError(f"no default library {name!r}; there are {', '.join(names())}")
    return Path(str(resources.files(__name__) / f"{name}.lib"))

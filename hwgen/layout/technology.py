"""What a placement must know of a process: height of rows, grid of sites, what a um of wire adds.

Sources. ORFS is OpenROAD-flow-scripts (https://github.com/The-OpenROAD-Project/OpenROAD-flow-scripts), its files
``flow/platforms/*/setRC.tcl`` as of 2025, figures fitted there to wires extracted from routed designs.

================== ============ ======= =============== ==================== ===================================
library            row height   site    C, fF/um        R, kohm/um           source of C and R
================== ============ ======= =============== ==================== ===================================
sky130hd           2.72 um      0.46 um 0.1745          0.648e-3             ORFS, mean of met1, met2 and met3
sg13g2             3.78 um      0.48 um 0.1731          2.07e-3              ORFS, ``set_wire_rc -signal``
asap7              0.27 um      0.054um 0.1733          32.3e-3              ORFS, ``set_wire_rc -signal``
generic130         as sky130hd, which it stands in for
generic7           as asap7, which it stands in for
================== ============ ======= =============== ==================== ===================================

In ASAP7 the layers differ much: 30 ohm per um in M2 and M3, 18 in M4 and M5, 12 to 13 in M6 and M7 (ORFS,
``asap7/setRC.tcl``). Routers take long nets to upper layers. Here nets of more than 50 um have the mean of M6 and M7.
Vias are not modelled.

Heights and sites are those of the cell libraries' LEF; every cell's area in their Liberty files is a whole number of
sites. The detour, 1.11, is by how much the lengths of a global router (Coriolis) were longer than Steiner trees over
the same pins: 1.10 to 1.12 on this project's cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hwgen.cells.library import Library
from hwgen.errors import InputError

__all__ = ["DETOUR", "TECHNOLOGIES", "Technology", "technology_of"]

DETOUR = 1.11
"""Length of a routed wire over that of its Steiner tree."""

_GATE_ASPECT = 2.0
_GATE_SITES = 4
_PITCH_ASAP7 = 0.2415


@dataclass(frozen=True, slots=True)
class Technology:
    """What a placement must know of a process.

    Attributes
    ----------
    name : str
    row_height, site : float
        um.
    capacitance : float
        fF per um of wire.
    resistance : float
        kohm per um of wire.
    source : str
        Where the figures come from.
    detour : float
        Length of a routed wire over that of its Steiner tree.
    long_from : float
        Nets with more um of wire are in upper layers.
    long_resistance : float
        kohm per um there.

    Raises
    ------
    InputError
        A figure that no process has.
    """

    name: str
    row_height: float
    site: float
    capacitance: float
    resistance: float
    source: str
    detour: float = DETOUR
    long_from: float = math.inf
    long_resistance: float = 0.0

    def __post_init__(self) -> None:
        for name in ("row_height", "site", "capacitance", "resistance", "detour", "long_resistance"):
            value = getattr(self, name)
            least = 1.0 if name == "detour" else 0.0
            may_be_least = name not in ("row_height", "site")
            if not (value > least or (may_be_least and value == least)) or not math.isfinite(value):
                bound = f"{'at least' if may_be_least else 'above'} {least:g}"
                raise InputError(f"technology {self.name}: {name} = {value!r}; expected a number {bound}")


_ORFS = "OpenROAD-flow-scripts"
_SKY130 = Technology("sky130hd", 2.72, 0.46, 0.1745, 0.648e-3, f"{_ORFS}, sky130hd: mean of met1, met2 and met3")
_ASAP7 = Technology(
    "asap7",
    0.27,
    0.054,
    0.1733,
    32.3e-3,
    f"{_ORFS}, asap7: signal wires; M6 and M7 above 50 um",
    long_from=50.0,
    long_resistance=12.5e-3,
)

TECHNOLOGIES = {
    "generic7": replace(_ASAP7, name="generic7"),
    "generic130": replace(_SKY130, name="generic130"),
    "asap7": _ASAP7,
    "sky130_fd_sc_hd": _SKY130,
    "sg13g2": Technology("sg13g2", 3.78, 0.48, 0.1731, 2.07e-3, f"{_ORFS}, ihp-sg13g2: signal wires"),
}
"""Technologies by what the names of their libraries begin with."""


def technology_of(library: Library) -> Technology:
    """The technology of a library: a known one by the library's name, else one scaled by the size of its gates.

    An unknown library's smallest 2-input NAND or NOR gate is taken to be four sites wide and half as wide as high,
    as in both 130 nm libraries. Its wires have ASAP7's capacitance per um, which is within 1 % of that of both, and
    ASAP7's resistance over the square of the gate's size.

    Parameters
    ----------
    library
        Its name, and its smallest gate.

    Raises
    ------
    InputError
        An unknown library without such a gate.
    """
    for prefix, technology in TECHNOLOGIES.items():
        if library.name.startswith(prefix):
            return technology
    gates = [gate for gate in library.gates2() if gate.area > 0]
    if not gates:
        raise InputError(
            f"library {library.name}: its technology is unknown, and no 2-input gate with an area tells the height of"
            f" rows; expected one, or a library of {', '.join(TECHNOLOGIES)}"
        )
    pitch = math.sqrt(gates[0].area)
    height = pitch * math.sqrt(_GATE_ASPECT)
    resistance = _ASAP7.resistance * (_PITCH_ASAP7 / pitch) ** 2
    return Technology(
        library.name,
        height,
        gates[0].area / height / _GATE_SITES,
        _ASAP7.capacitance,
        resistance,
        f"scaled from ASAP7 by the area of {gates[0].name}",
    )

"""Placement: where the cells of a netlist stand, and what the wires between them add.

================== ===============================================================================================
module             what it holds
================== ===============================================================================================
technology         rows, sites, capacitance and resistance of wires, by library
lef                shapes of cells from LEF files
pins               pins of a netlist by net, widths of cells
floorplan          the die, and ports at its edge
problem            what a placer gets
spread             global placement
legal              legal places near given ones, and a check of legality
detail             moves that make nets shorter
coloquinte         another placer, where it is installed
place              placers by name
array              arrays of equal elements: one placed, all get its places
steiner            lengths of wires
clock_tree         wires and buffers of the clock
layout             all of it: `lay_out`
eco                a layout for a netlist that changed a little: `adapted`
================== ===============================================================================================
"""

from hwgen.layout.eco import adapted
from hwgen.layout.layout import ARRANGEMENTS, Layout, lay_out
from hwgen.layout.technology import Technology, technology_of

__all__ = ["ARRANGEMENTS", "Layout", "Technology", "adapted", "lay_out", "technology_of"]

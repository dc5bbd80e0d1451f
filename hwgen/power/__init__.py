"""Activity, glitches and power of a mapped netlist."""

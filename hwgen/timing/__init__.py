"""Static timing analysis of a mapped netlist."""

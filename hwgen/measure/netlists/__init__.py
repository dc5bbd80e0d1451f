"""One design on its way to a netlist, and what is found of that: area, path, checks, energy."""

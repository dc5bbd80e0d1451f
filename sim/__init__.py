"""Simulation: the golden model, engines that run the RTL, and what compares the two."""

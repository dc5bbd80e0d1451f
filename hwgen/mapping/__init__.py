"""Yosys maps modules to cells: recipes, perturbed runs, their cache, and designs composed of them."""

"""Blocks of 16 numbers whose codes in many formats are published beside the definitions of the formats."""

BLOCK_A = [0.10, -0.37, 0.80, 1.25, -2.40, 3.10, -0.05, 0.62, 4.70, -5.20, 0.00, 1.90, -1.10, 2.75, -3.60, 0.33]
BLOCK_B = [7.0, -5.9, 5.1, -4.4, 3.3, 2.2, -1.2, 0.4, 6.1, -6.6, -2.9, 1.7, 0.0, -0.8, 3.9, -5.0]
BLOCK_C = [6, 4.5, -4.5, 3, 2.25, -2.25, 1.5, 0.75, 4.5, -3, 0, -0.75, 4.5, 2.25, -6, 1.5]
"""One that is exact if 4 is its largest code, not 6."""

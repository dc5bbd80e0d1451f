"""Compiled counters: the contract once more, in integers of 64 bits, and the bins of what happens on its way.

``operands`` has blocks and their scales, ``alignment`` what becomes of their terms and C in one window, ``rounding``
FP32; ``loops`` goes over the steps. What depends on formats comes in tables, see `operands.Side`.
"""

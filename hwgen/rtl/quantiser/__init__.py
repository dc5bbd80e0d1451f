"""The hardware quantiser: blocks of numbers in, codes and scale bytes out.

docs/quantiser.md has the contract.
"""

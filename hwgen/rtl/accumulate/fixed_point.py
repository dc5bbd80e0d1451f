"""Fixed point wide enough for whole GEMMs: its widths, and the terms of one step shifted into it."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.terms import terms_layout
from hwgen.rtl.arithmetic.carry_save import add_words
from hwgen.rtl.arithmetic.shifters import shift_left
from hwgen.rtl.hierarchy import Block

__all__ = ["StepSum", "block_width", "step_width", "sum_width"]


def block_width(config: TensorCoreConfig) -> int:
    """Width of the magnitude of one block, T_g * 2^E_g in units of the lowest E: 47 bits for NVFP4, 48 for MixFP4."""
    return config.bounds.largest_exact_block.bit_length()


def step_width(config: TensorCoreConfig) -> int:
    """Width of the signed sum of one step."""
    return block_width(config) + (config.sums - 1).bit_length() + 1


def sum_width(config: TensorCoreConfig) -> int:
    """Width of the signed sum of a GEMM of ``config.largest_depth`` elements along K, which cannot make it overflow."""
    assert config.largest_steps is not None
    return (config.largest_steps * config.sums * config.bounds.largest_exact_block).bit_length() + 1


class StepSum(Block):
    """The exact sum of one step's terms, in fixed point.

    ::

        terms[g].magnitude --> [<< place] --> [invert if negative] --> [carry-save tree] --> sum
        terms[g].sign -------------------------------------------------------^

    Words carry their inverted sign above the magnitude instead of extending it, as in the dot product. A single term is
    only inverted: whoever adds it on adds its sign bit, too.

    Parameters
    ----------
    config
        ``a``, ``b`` and ``groups``.

    Attributes
    ----------
    terms : In(terms_layout(config)["terms"].shape)
        Scaled block sums; or ``words``, sums of blocks without scales.
    sum : Out(signed(step_width(config)))
        Sum of T_g * 2^E_g in units of the lowest E; with one group in ones' complement, but not where it has no scale.
    latency : int
        0, combinational.
    """

    module_name = "step_sum"

    def __init__(self, config: TensorCoreConfig) -> None:
        terms = terms_layout(config)["words" if config.adds_sums else "terms"].shape
        super().__init__(config, {"terms": In(terms), "sum": Out(signed(step_width(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        groups, width = self.config.sums, block_width(self.config)
        words: list[Value] = []
        signs: list[Value] = []
        for group in range(groups):
            term = self.terms[group]
            if self.config.adds_sums:
                words.append(term[:-1])
                signs.append(term[-1])
                continue
            placed = shift_left(m, term.magnitude, term.place, width=width, name=f"term{group}")
            words.append(placed ^ term.sign.replicate(width))
            signs.append(term.sign)
        if groups == 1:
            m.d.comb += self.sum.eq(Cat(words[0], signs[0]))
            return m
        # As in the accumulator that rounds every step: with a power of two of them, the top bit of the
        # sum makes up for the extension of all signs.
        rows: list[Value] = [Cat(word, ~sign) for word, sign in zip(words, signs, strict=True)]
        if missing := (1 << (groups - 1).bit_length()) - groups:
            rows.append(Const(missing << width))
        # Two's complement lacks no carry.
        carries = [] if self.config.adds_sums else signs
        total = add_words(m, rows, carries, width=len(self.sum), name="total")
        m.d.comb += self.sum.eq(Cat(total[:-1], ~total[-1]))
        return m

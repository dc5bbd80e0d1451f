"""The step W of a block from the code of its scale, and what lanes are told of its odd multiples."""

from __future__ import annotations

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hwgen.config.quantiser import Candidate, QuantiserConfig
from hwgen.rtl.quantiser.multiples import bound_bits, odd_values, times, value_bits

__all__ = ["Step"]


class Step:
    """W = S x sg x 2^shift, with its leading one at the top, and odd multiples of it.

    W has its leading one four to seven places below the power of two above the largest number.

    Parameters
    ----------
    m
        Module that receives the logic.
    config
        The quantiser.
    odds
        The odd multiples that there are to be, besides W.
    significand
        sg, of the tensor scale.
    code
        Of the block scale.
    exponent
        Low three bits of a - es.
    """

    def __init__(
        self,
        m: Module,
        config: QuantiserConfig,
        odds: Collection[int],
        significand: Value,
        code: Value,
        exponent: Value,
    ) -> None:
        self._config, self._code = config, code
        field, normal = code[3:], code[3:].any()
        # A subnormal significand with its leading one at the top; how far the exponent is below that of field 1.
        shifted = Mux(code[2], code[:2] << 1, Mux(code[1], code[0] << 2, 0))[:3]
        lost = Mux(code[2], 0, Mux(code[1], 1, 2))
        product = Signal(config.tensor_scale_bits + 4)
        m.d.comb += product.eq(Cat(Mux(normal, code[:3], shifted), Const(1, 1)) * significand)
        carried = product[-1]
        step = Signal(len(product), name="times1")
        m.d.comb += step.eq(Mux(carried, product, product << 1))
        self._products: dict[int, Value] = {1: step}
        for odd in sorted({*odds} - {1}):
            self._products[odd] = Signal(len(step) + odd.bit_length(), name=f"times{odd}")
            m.d.comb += self._products[odd].eq(times(step, odd))
        # How far W is below the largest number, modulo 8.
        self._below = Signal(3, name="below")
        m.d.comb += self._below.eq(exponent - Mux(normal, field[:3], -lost) - carried)

    def place(self, candidate: Candidate) -> Value:
        """How far the unit of a candidate's midpoints is below the largest number, and one more; 0 if the scale is."""
        # Evenly spaced midpoints are multiples of 2 W.
        place = self._below + (0 if candidate.evenly_spaced else 1)
        return place[:3] & self._code.any().replicate(3)

    def midpoint(self, odd: int) -> dict[str, Value]:
        """An odd multiple as a lane takes it: its significand behind the leading one, and whether that moved up."""
        word = self._products[odd]
        outputs: dict[str, Value] = {}
        if odd > 1:
            outputs[f"high{odd}"] = word[-1]
            word = Mux(word[-1], word, word << 1)[: len(word)]
        outputs[f"bound{odd}"] = _with_rest(word[:-1], bound_bits(self._config, odd))
        return outputs

    def value(self, candidate: Candidate, odd: int) -> Value:
        """An odd multiple that values of a candidate are made of."""
        config, doublings = self._config, odd_values(candidate)[odd]
        word, spare = self._products[odd], config.tensor_scale_bits + 4 - config.error_bits - doublings
        word = word[spare:] if spare > 0 else Cat(Const(0, -spare), word)
        for stage in (1, 0):
            word = Mux((self._below - 3)[stage], word >> (1 << stage), word)[: len(word)]
        return word[: value_bits(config, candidate, odd)]


def _with_rest(word: Value, bits: int) -> Value:
    """The upper bits of a word; the last one says whether there is a one in what is cut off."""
    spare = len(word) - bits
    return Cat(word[: spare + 1].any(), word[spare + 1 :]) if spare > 0 else word

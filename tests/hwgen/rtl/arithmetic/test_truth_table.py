"""Functions from their tables, for all inputs."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.hierarchy import Block

INPUTS, WIDTH = 5, 3
CONFIG = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 1)


class Looked(Block):
    module_name = "looked"
    latency = 0

    def __init__(self, table, free):
        super().__init__(CONFIG, {"code": In(INPUTS), "entry": Out(WIDTH)})
        self.table, self.free = table, free

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.entry.eq(lookup(self.code, self.table, WIDTH, self.free))
        return m


@pytest.mark.parametrize("seed", range(20))
def test_every_entry_but_free_ones(seed, evaluate):
    draw = random.Random(seed)
    table = [draw.randrange(1 << WIDTH) for _ in range(1 << INPUTS)]
    free = {index for index in range(1 << INPUTS) if draw.random() < seed / 20}
    results = evaluate(Looked(table, free), [{"code": code} for code in range(1 << INPUTS)])
    found = [outputs["entry"] for outputs in results]
    assert all(index in free or entry == table[index] for index, entry in enumerate(found))


def test_a_free_entry_is_what_is_simplest(evaluate):
    """Whether a code is neither 0 nor NaN, as in E4M3: whether any bit is set is all that is left of it."""
    table = [0, *[1] * ((1 << INPUTS) - 2), 0]
    last = [{"code": len(table) - 1}]
    assert evaluate(Looked(table, ()), last) == [{"entry": 0}]
    assert evaluate(Looked(table, {len(table) - 1}), last) == [{"entry": 1}]

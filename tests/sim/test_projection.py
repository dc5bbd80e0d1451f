"""GEMMs through the RTL of quantiser and core: equal to the golden model, and every planted fault is found."""

from dataclasses import replace

import numpy as np
import pytest

from hwgen.config import named
from hwgen.config.quantiser import QUANTISERS
from hwgen.errors import MismatchError
from sim import golden
from sim.accuracy.layer import Product, Side
from sim.engines import CompiledEngine, Run, always, available
from sim.engines.quantisers import CompiledQuantiser, Quantised
from sim.projection import run_products
from sim.verify.quantisers import counterpart

CONFIG, CORE = QUANTISERS["nvfp4-quantiser"], named("nvfp4-small")


class Quantiser:
    """What the golden model says, with one bit of one field of one block changed."""

    def __init__(self, config=CONFIG, field=None, block=0, bit=1):
        self.config, self.field, self.block, self.bit = config, field, block, bit

    def run(self, blocks, scale, offer=None, take=None):
        value = np.float32(np.ldexp(scale.fraction + 128.0, scale.exponent - 7))
        result = counterpart(self.config).quantize(blocks.view(np.float32), value)
        flags = (each.ravel().copy() for each in (result.tensor.scales, result.invalid, result.saturated))
        found = Quantised(result.tensor.codes.copy(), *flags, len(blocks))
        if self.field is not None and self.block < len(blocks):
            getattr(found, self.field)[(self.block, 7) if self.field == "codes" else self.block] ^= self.bit
        return found


class Core:
    """What the golden model says, with one bit of one result changed."""

    name = "ideal"

    def __init__(self, config=CORE, flipped=None):
        self.config, self.flipped = config, flipped

    def run(self, steps, *, offer=always, supply=always, take=always, progress=lambda done: None):
        results = steps.expected()
        if self.flipped is not None:
            results[self.flipped] ^= 4
        cycles = np.arange(len(steps))
        return Run(results, len(steps), np.zeros((2,) * 6, np.int64), cycles, cycles[steps.first])


def products(count=1, weights=True):
    """GEMMs of 5 x 6 x 32, as `sim.accuracy.Datapath` gives them."""
    rng, unit, found = np.random.default_rng(3), golden.Quantiser("nvfp4"), []
    for _ in range(count):
        sides = []
        for rows in (5, 6):
            values = rng.standard_normal((rows, 32)).astype(np.float32)
            flags = unit.quantize(values)
            sides.append(Side(flags.tensor, values, flags))
        if weights:
            sides[1] = Side(golden.quantize(sides[1].values, "nvfp4"), None, None)
        found.append(Product(*sides, golden.gemm(*(side.tensor for side in sides), blocks_per_step=1)))
    return found


@pytest.mark.skipif(not available(), reason="no C++ compiler")
def test_the_rtl_equals_the_golden_model():
    quantiser, core = CompiledQuantiser(CONFIG), CompiledEngine(CORE)
    seen = []
    found = run_products(quantiser, core, "query", products(), lambda done, total: seen.append((done, total)))
    assert (found.blocks, found.gemms, found.macs, found.outputs) == (10, 1, 5 * 6 * 32, 30)
    assert found.quantiser_cycles == 10 + CONFIG.latency
    # Four tiles of two steps each; two or more tiles take turns.
    assert (found.steps >= 8, found.cycles > found.steps) == (True, True)
    assert seen[-1] == (found.steps, found.steps)
    found = run_products(quantiser, core, "scores", products(3, weights=False))
    assert (found.blocks, found.gemms, found.outputs) == (3 * 22, 3, 90)


@pytest.mark.skipif(not available(), reason="no C++ compiler")
def test_an_rtl_that_computes_something_else_is_found():
    """The quantiser of another format: its first code or scale that differs is named."""
    other = replace(QUANTISERS["nvint4-quantiser"], pipeline=None)
    with pytest.raises(MismatchError, match=r"nvint4-quantiser: query: X: code \[0, \d+\] is 0x., the golden model"):
        run_products(CompiledQuantiser(other), Core(), "query", products())


@pytest.mark.parametrize(
    ("field", "block", "words"),
    [
        ("codes", 3, r"X: code \[1, 23\] is 0x(.), the golden model says 0x(?!\1)"),
        ("scales", 9, r"X: scale \[4, 1\] is"),
        ("saturated", 0, r"X: saturated \[0, 0\] is 0x1, the golden model says 0x0"),
        ("invalid", 2, r"X: invalid \[1, 0\] is 0x1"),
        ("scales", 11, r"W: scale \[5, 1\] is"),
    ],
)
def test_a_wrong_bit_of_the_quantiser_is_found(field, block, words):
    with pytest.raises(MismatchError, match=f"nvfp4-quantiser: context, GEMM 0: {words}"):
        run_products(Quantiser(field=field, block=block), Core(), "context", products(2, weights=False))


def test_weights_do_not_go_through_the_quantiser():
    assert run_products(Quantiser(field="scales", block=11), Core(), "query", products()).blocks == 10


def test_a_wrong_bit_of_the_core_is_found():
    assert run_products(Quantiser(), Core(), "query", products()).outputs == 30
    with pytest.raises(MismatchError, match=r"nvfp4-small: query: D\[4, 2\] is 0x\w{8}, the golden model says"):
        run_products(Quantiser(), Core(flipped=(2, 0, 2)), "query", products())


def test_a_layer_of_another_core_is_found():
    """Steps of four blocks round at other places than those of one."""
    (one,) = products()
    other = one._replace(d=np.nextafter(one.d, np.float32(np.inf)))
    with pytest.raises(MismatchError, match=r"nvfp4-small: query: D\[0, 0\] with tensor scales is 0x\w+, the layer"):
        run_products(Quantiser(), Core(), "query", [other])

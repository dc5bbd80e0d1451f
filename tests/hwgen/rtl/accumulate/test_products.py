"""Products at half the rate: largest exponent, distances, and the words that they add up to."""

from operator import or_

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Value

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.products import AlignedProducts, ProductDistances, ProductExponents, ProductWindows
from hwgen.rtl.decode.unscaled import SLOT
from sim.mutate.relation import in_range


def core(groups, pipeline=(), **further):
    return TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, groups, slot="separate", pipeline=pipeline, **further)


@pytest.mark.parametrize(("groups", "early"), [(1, False), (3, False), (2, True)])
def test_exponents(groups, early, evaluate):
    config, count = core(groups, pipeline=("factors", "compared") if early else ()), 8 * groups
    assert config.early_exponents == early
    block, rng = ProductExponents(config), np.random.default_rng(groups)
    below = ProductDistances(config)
    bits = below.windows.distance_bits
    stimuli, cases = [], []
    for case in range(300):
        exponents = rng.integers(0, (31, 4, 31)[case % 3], (2, count))
        signs, zeros = rng.integers(0, 2, (2, count)), rng.random((2, count)) < (0.3, 0.1, 0.8)[case % 3]
        infinite = (rng.random((2, count)) < 0.02) & ~zeros
        cases.append((exponents, signs, zeros, infinite))
        stimuli.append(
            {
                side: sum(
                    SLOT.const({"exponent": int(e), "sign": int(s), "zero": int(z), "infinite": int(i)})
                    .as_value()
                    .value
                    << SLOT.size * place
                    for place, (e, s, z, i) in enumerate(zip(*(each[row] for each in cases[-1]), strict=True))
                )
                for row, side in enumerate("ab")
            }
        )
    found = evaluate(block, stimuli)
    handed_on = [{"largest": each["exponent"]} | ({} if early else {"exponents": each["exponents"]}) for each in found]
    distances = evaluate(below, [own | other for own, other in zip(stimuli, handed_on, strict=True)])
    for case, outputs in zip(cases, map(or_, found, distances), strict=True):
        exponents, signs, zeros, infinite = case
        sums, sign, live = exponents.sum(axis=0), signs[0] ^ signs[1], ~zeros.any(axis=0)
        largest = int(sums[live].max(initial=0))
        assert outputs["exponent"] == largest
        assert outputs["active"] == live.any()
        assert outputs["signs"] == sum(int(each) << place for place, each in enumerate(sign))
        for place in np.flatnonzero(live):
            distance = outputs["distances"] >> bits * int(place) & (1 << bits) - 1
            behind = largest - int(sums[place])
            assert (
                distance == behind
                if behind < below.windows.aligned.width
                else distance == (1 << bits) - 1 or (distance == behind and distance >= below.windows.aligned.width)
            )
        wrong = infinite.any(axis=0) & zeros.any(axis=0)
        for name, own in (("positive", 0), ("negative", 1)):
            assert outputs[name] == (wrong | (infinite.any(axis=0) & (sign == own))).any()


@pytest.mark.parametrize("bits", [23, 25, 35])
def test_words(bits, evaluate):
    config = core(1, half_fraction_bits=bits)
    block, rng = AlignedProducts(config), np.random.default_rng(bits)
    windows = ProductWindows(config)
    layout, reach = block.signature.members["products"].shape, (1 << windows.distance_bits) - 1
    stimuli, cases = [], []
    for case in range(400):
        magnitudes, signs = rng.choice([0, 1, 225, 255, 0x80], 8), rng.integers(0, 2, 8)
        if case % 2:
            magnitudes, signs = rng.integers(0, 256, 8), np.full(8, case // 2 % 2)
        distances = rng.integers(0, reach + 1 if case % 3 else 3, 8)
        sign = int(rng.integers(2))
        cases.append((magnitudes, signs, distances, sign))
        entries = zip(magnitudes, signs, distances, strict=True)
        products = [{"magnitude": int(p), "sign": int(s), "distance": int(d)} for p, s, d in entries]
        stimuli.append({"products": layout.const(products).as_value().value, "half": 1, "sign": sign})
    for case, outputs in zip(cases, evaluate(block, stimuli), strict=True):
        magnitudes, signs, distances, sign = case
        cut = (magnitudes.astype(int) << bits - 6) >> distances
        total = int((cut * np.where(signs == sign, 1, -1)).sum())
        words = [outputs["words"] >> windows.words * index & (1 << windows.words) - 1 for index in range(2)]
        assert sum(words) + bin(outputs["ones"]).count("1") == total + (1 << windows.offset)


def test_nothing_moves_in_steps_of_fp4(evaluate):
    block = AlignedProducts(core(1))
    layout = block.signature.members["products"].shape
    stimuli = [
        {"products": layout.const([{"magnitude": 0, "sign": 1, "distance": 3}] * 8).as_value().value, "sign": sign}
        for sign in (0, 1)
    ]
    assert all(outputs == {"words": 0, "ones": 0} for outputs in evaluate(block, stimuli))


@pytest.mark.parametrize("bits", [23, 25, 35])
def test_the_top_place_of_a_word_is_zero_proven(bits, prover):
    """Proofs of mutants take it for granted, see `sim.mutate.relation.in_range`."""
    config = core(1, half_fraction_bits=bits)
    width = ProductWindows(config).words
    block = AlignedProducts(config)
    taken = [each.replace("further", "word0") for each in in_range(config, "aligned_sum") if "further" in each]
    assert taken == [f"!word0[{width - 1}]"]
    ports = {name: Value.cast(getattr(block, name)) for name in ("products", "sign", "half", "words", "ones")}
    text = rtlil.convert(block, name="top", ports=list(ports.values()), emit_src=False)
    inputs = ", ".join(f"input [{len(ports[name]) - 1}:0] {name}" for name in ("products", "sign", "half"))
    miter = f"""
module miter({inputs}, output wrong);
  wire [{width - 1}:0] word0, word1;
  top block(.products(products), .sign(sign), .half(half), .words({{word1, word0}}), .ones());
  assign wrong = !({" && ".join(taken)}) || word1[{width - 1}];
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace(f"[{width - 1}];", f"[{width - 2}];"))

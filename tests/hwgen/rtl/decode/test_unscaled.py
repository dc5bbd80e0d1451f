"""Decoders of elements without block scales: every code of every type against the golden model's tables."""

import itertools

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hwgen.config import TensorCoreConfig
from hwgen.formats import unscaled
from hwgen.rtl.decode import unscaled as decoder
from hwgen.rtl.decode.unscaled import KINDS, SLOT, UnscaledDecoder
from sim import golden

CONFIG = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 1, slot="separate")
CODES = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
"""Those of the instruction descriptor of ``tcgen05``."""


def test_types_are_those_of_the_golden_model():
    assert {element.name.lower(): code for code, element in unscaled.TYPES.items()} == CODES
    assert set(CODES) == set(golden.UNSCALED_ELEMENTS)
    exponents = [golden.UNSCALED_ELEMENTS[name].exponents for name in CODES]
    finite = [golden.UNSCALED_ELEMENTS[name].table for name in CODES]
    numbers = [e[np.isfinite(v) & (v != 0)] for e, v in zip(exponents, finite, strict=True)]
    assert 2 * min(int(e.min()) for e in numbers) == unscaled.LOWEST_PRODUCT
    assert 2 * max(int(e.max()) for e in numbers) == unscaled.HIGHEST_PRODUCT


def check(name, evaluate):
    """Every byte of a type, by the tables of the golden model."""
    element = golden.UNSCALED_ELEMENTS[name]
    kind = 1 << [kind.name.lower() for kind in KINDS].index(name)
    stimuli = [{"code": code, "kind": kind} for code in range(256)]
    for code, outputs in enumerate(evaluate(UnscaledDecoder(CONFIG), stimuli)):
        slot, own = SLOT.from_bits(outputs["slot"]), code & (1 << element.width) - 1
        value = element.table[own]
        assert outputs["nan"] == np.isnan(value)
        assert slot.zero == (value == 0)
        if not np.isnan(value):
            assert slot.infinite == np.isinf(value)
            assert slot.sign == np.signbit(value) == own >> element.width - 1
        if np.isfinite(value):
            assert outputs["significand"] * 2.0 ** (slot.exponent + unscaled.LOWEST - 3) == abs(value)
            assert slot.exponent + unscaled.LOWEST == element.exponents[own]


@pytest.mark.parametrize("name", CODES)
def test_every_code(name, evaluate):
    check(name, evaluate)


def swapped(element, code):
    """Fields of E2M3 and E3M2 taken for one another."""
    mantissa = {"E2M3": 2, "E3M2": 3}.get(element.name, element.mantissa_bits)
    return code[element.width - 1], code[mantissa : element.width - 1], code[:mantissa]


def test_planted_errors_are_refused(evaluate, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(decoder, "_fields", swapped)
        for name in CODES:
            if name in ("e2m3", "e3m2"):
                with pytest.raises(AssertionError):
                    check(name, evaluate)
            else:
                check(name, evaluate)
    monkeypatch.setattr(decoder, "LOWEST", decoder.LOWEST + 1)
    with pytest.raises(AssertionError):
        check("e5m2", evaluate)


def test_types_choose_their_decoders():
    """Every code of a type, in a step at half the rate and in one of FP4."""
    element_type, half = Signal(unscaled.TYPE_BITS), Signal()
    kind, reserved = decoder.chosen_kind(element_type, half)
    seen = {}

    async def testbench(ctx):
        for code, enable in itertools.product(range(1 << unscaled.TYPE_BITS), (0, 1)):
            ctx.set(element_type, code)
            ctx.set(half, enable)
            seen[code, enable] = ctx.get(kind), ctx.get(reserved)

    simulator = Simulator(Module())
    simulator.add_testbench(testbench)
    simulator.run()
    names = [element.name.lower() for element in KINDS]
    for (code, enable), found in seen.items():
        name = next((name for name, own in CODES.items() if own == code), None)
        expected = (1 << names.index(name), 0) if name else (0, 1)
        assert found == (expected if enable else (0, 0))


def test_nothing_changes_in_steps_of_fp4(evaluate):
    stimuli = [{"code": code, "kind": 0} for code in range(256)]
    assert len({tuple(outputs.items()) for outputs in evaluate(UnscaledDecoder(CONFIG), stimuli)}) == 1
    outputs = evaluate(UnscaledDecoder(CONFIG), stimuli[:1])[0]
    slot = SLOT.from_bits(outputs["slot"])
    assert (outputs["significand"], outputs["nan"], slot.sign, slot.zero, slot.infinite) == (0, 0, 0, 1, 0)


def test_reserved_codes_are_those_without_a_type():
    reserved = set(range(1 << unscaled.TYPE_BITS)) - set(unscaled.TYPES)
    assert reserved == {2, 6, 7}
    assert not any(code in reserved for code in itertools.chain(CODES.values()))

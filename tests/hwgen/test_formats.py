"""The formats as data, against their values written out."""

import numpy as np
import pytest

from hwgen.formats import BLOCK_FORMATS, E1M2, E2M1
from sim import golden

CODES = range(8)


def test_e2m1_in_half_units():
    assert [E2M1.half_units(code) for code in CODES] == [0, 1, 2, 3, 4, 6, 8, 12]


def test_e1m2_in_half_units_fold_not_applied():
    assert [E1M2.half_units(code) for code in CODES] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert E1M2.fold == 1


@pytest.mark.parametrize(("element", "decode"), [(E2M1, golden.decode_e2m1), (E1M2, golden.decode_e1m2)])
def test_values_are_those_of_the_golden_model(element, decode):
    values = decode(np.arange(8, dtype=np.uint8))
    assert [element.half_units(code) * 2**element.fold / 2 for code in CODES] == values.tolist()


def test_sign_does_not_reach_the_magnitude():
    for element in (E2M1, E1M2):
        assert [element.half_units(code | 8) for code in CODES] == [element.half_units(code) for code in CODES]


def test_block_formats():
    assert [(name, block.tagged, block.largest) for name, block in BLOCK_FORMATS.items()] == [
        ("nvfp4", False, 12),
        ("mixfp4", True, 12),
    ]
    assert all(block.name == name for name, block in BLOCK_FORMATS.items())
    assert [element.tag for element in BLOCK_FORMATS["mixfp4"].elements] == [0, 1]
    assert all(
        element.exponent_bits + element.mantissa_bits == 3
        for block in BLOCK_FORMATS.values()
        for element in block.elements
    )

"""The sum of a step's aligned words against integers."""

import numpy as np
import pytest
from amaranth.lib import data

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.aligned_sum import AlignedSum, Windows

LARGEST = 16 * 12 * 12 * 15 * 15


def config_of(groups, fraction_bits, zeros, pipeline):
    return TensorCoreConfig(
        *("x", "mixfp4", "mixfp4", 1, 1, groups),
        fraction_bits=fraction_bits,
        leading_zeros=zeros,
        pipeline=pipeline,
    )


CONFIGS = [
    config_of(groups, fraction_bits, zeros, pipeline)
    for groups, fraction_bits, zeros, pipeline in [
        (1, 35, "counted", ()),
        (1, 33, "anticipated", ()),
        (2, 39, "counted", ("aligned", "addends", "total")),
        (3, 35, "anticipated", ("addends",)),
        (4, 35, "counted", ("addends", "normal")),
        (8, 39, "anticipated", ()),
    ]
]


def test_windows_of_the_named_configurations():
    """Terms reach ten places above C; the sum of four of them, two more."""
    found = Windows.of(CONFIGS[0])
    assert (found.aligned_c.width, found.aligned_term.width, found.sum.width) == (36, 46, 46)
    assert {window.unit for window in (found.aligned_c, found.aligned_term, found.sum)} == {-35}
    assert Windows.of(CONFIGS[4]).sum.width == 48


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.groups}-{c.fraction_bits}-{c.leading_zeros}")
def test_sum(config, evaluate):
    """The largest words, zeros and random ones of every length, all signs."""
    block, windows, groups = AlignedSum(config), Windows.of(config), config.groups
    assert block.latency == ("addends" in config.pipeline)
    words = data.ArrayLayout(windows.aligned_term.width, groups)
    most = LARGEST << config.fraction_bits - 8
    rng = np.random.default_rng(groups)
    cases = []
    for index in range(400):
        terms = [int(rng.integers(0, 1 << 62)) >> int(rng.integers(0, 62)) for _ in range(groups)]
        terms = [min(term, most) for term in terms]
        c = int(rng.integers(0, 1 << 62)) % (1 << windows.aligned_c.width) >> int(rng.integers(0, 40))
        if index % 5 == 0:
            terms = [int(rng.choice([0, 1, most - 1, most])) for _ in range(groups)]
        if index % 7 == 0:
            c = int(rng.choice([0, 1, (1 << windows.aligned_c.width) - 1]))
        subtract = rng.integers(0, 2, groups).tolist() if index % 3 else [index & 1] * groups
        if index % 4 == 0:  # nearly nothing is left
            terms[0], subtract[0] = c, 1
        cases.append((c, terms, subtract))
    ones = (1 << windows.aligned_term.width) - 1
    stimuli = [
        {
            "c": c,
            "terms": words.const([t ^ ones * s for t, s in zip(terms, subtract, strict=True)]).as_value().value,
            "subtract": sum(bit << place for place, bit in enumerate(subtract)),
            **({"enable": 1} if "addends" in config.pipeline else {}),
        }
        for c, terms, subtract in cases
    ]
    for (c, terms, subtract), found in zip(cases, evaluate(block, stimuli), strict=True):
        total = c + sum(-term if minus else term for term, minus in zip(terms, subtract, strict=True))
        width = windows.sum.width + 1 + config.anticipated
        assert found["sum"] == total + (1 << width - 1), (c, terms, subtract)
        if config.anticipated and total:
            # Of the ones' complement, whose leading one may be a place below the magnitude's.
            left = windows.sum.width - (total if total > 0 else ~total).bit_length()
            assert found["zeros"] in (left, left - 1), (c, terms, subtract)

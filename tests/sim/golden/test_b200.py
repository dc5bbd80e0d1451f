"""Steps in blocks of four-bit elements, against words that others measured on hardware."""

import numpy as np
import pytest
from b200 import IN_BLOCKS, SIXTEENS

from sim import golden
from sim.golden import parts
from sim.golden.described import formats_from


def one_output(name, a, b, a_scales, b_scales, c, **options):
    """FP32 bits of a step with one output, of the golden model and of its parts."""
    form = formats_from(SIXTEENS).get(name, name)
    rows = [np.frombuffer(row, np.uint8)[None] for row in (a, a_scales, b, b_scales)]
    found = golden.step(*rows, np.array([[c]], np.uint32).view(np.float32), a=form, b=form, **options).view(np.uint32)
    same = parts.step(a, a_scales, b, b_scales, c, a=form, b=form, **options)
    assert int(found[0, 0]) == same
    return same


@pytest.mark.parametrize("empty_blocks", ["included", "excluded"])
def test_the_words_that_others_measured(empty_blocks):
    for *step, d in IN_BLOCKS:
        assert one_output(*step, empty_blocks=empty_blocks) == d


def test_what_the_words_say_of_the_fraction():
    """They exclude short ones alone."""
    words = [word for word in IN_BLOCKS if word[0] == "nvfp4"]
    fits = [bits for bits in range(14, 41) if all(one_output(*step, fraction_bits=bits) == d for *step, d in words)]
    assert fits == list(range(21, 41))

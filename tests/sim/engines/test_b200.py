"""Cores that add up 64 products in a step, against words that others measured on hardware."""

import dataclasses

import numpy as np
import pytest
from b200 import IN_BLOCKS, SIXTEENS

from hwgen.config import TensorCoreConfig
from hwgen.config.named import NAMED
from hwgen.formats.read import formats_of
from sim import golden
from sim.golden.described import formats_from
from sim.steps import gather, schedule

FORMATS = {"mxfp4-b16": {"elements": ["E2M1"], "scale": "E8M0", "block": 16}}


def cores():
    """One of each kind of block, and MixFP4's in blocks of E2M1."""
    yield from (("nvfp4", NAMED[name]) for name in ("nvfp4-blackwell", "mixfp4-blackwell", "mixfp4-multi-blackwell"))
    yield "mxfp4", dataclasses.replace(NAMED["mxfp4-small"], groups=2)
    (form,) = formats_of({"formats": FORMATS}, SIXTEENS).values()
    yield form.name, TensorCoreConfig(form.name, form, form, 1, 1, 4)


@pytest.mark.parametrize(("name", "config"), list(cores()), ids=lambda each: getattr(each, "name", each))
def test_words_that_others_measured(name, config, compiled):
    config = dataclasses.replace(config, rows=1, columns=1)
    engine = compiled(config)
    form = formats_from(SIXTEENS).get(name, name)
    words = [word for word in IN_BLOCKS if word[0] == name]
    assert words
    for _, a, b, a_scales, b_scales, c, d in words:
        rows = [np.frombuffer(each, np.uint8)[None] for each in (a, a_scales, b, b_scales)]
        operands = [golden.QuantizedTensor(*rows[at : at + 2], np.float32(1), form) for at in (0, 2)]
        steps = schedule(config, *operands, np.array([[c]], np.uint32).view(np.float32))
        assert len(steps) == config.interleave
        assert gather(config, engine.run(steps).results, 1, 1) == d

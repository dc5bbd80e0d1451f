"""Multipliers of significands, every pair in every place."""

import itertools

import numpy as np

from hwgen.config import TensorCoreConfig
from hwgen.rtl.significand_products import SignificandProducts


def test_every_pair(evaluate):
    config = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 1, slot="separate", pipeline=())
    pairs = np.array(list(itertools.product(range(16), repeat=2)))
    cases = [np.roll(pairs, place, axis=0)[start : start + 8] for place in range(8) for start in range(0, 256, 8)]
    stimuli = [
        {side: sum(int(pair[row]) << 4 * place for place, pair in enumerate(case)) for row, side in enumerate("ab")}
        for case in cases
    ]
    for case, outputs in zip(cases, evaluate(SignificandProducts(config), stimuli), strict=True):
        assert outputs["products"] == sum(int(a * b) << 8 * place for place, (a, b) in enumerate(case))

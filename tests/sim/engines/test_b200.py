"""Cores that add up 64 products in a step, against words that others measured on hardware."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from b200 import IN_BLOCKS, SIXTEENS

from hwgen.config import resolve
from sim import golden
from sim.golden.described import formats_from
from sim.steps import gather, schedule

CORES = [
    *(("nvfp4", name) for name in ("nvfp4-blackwell", "mixfp4-blackwell", "mixfp4-multi-blackwell")),
    ("mxfp4", "mxfp4-2x32-small"),
    ("mxfp4-b16", "sixteens.toml"),
]
"""One for each kind of block, and those of MixFP4 in blocks of E2M1."""


@pytest.mark.parametrize(("name", "core"), CORES)
def test_words_that_others_measured(name, core, compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sixteens.toml").write_text(f"groups = 4\n{SIXTEENS}", encoding="utf-8")
    config = dataclasses.replace(resolve(core), rows=1, columns=1)
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

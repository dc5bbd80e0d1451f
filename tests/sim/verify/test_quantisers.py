"""The quantisers' RTL against the golden model."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from hwgen.config.quantiser import QUANTISERS, QuantiserConfig
from hwgen.errors import MismatchError, ToolError
from sim.engines import available
from sim.engines.quantisers import AmaranthQuantiser, CompiledQuantiser, Quantised, TensorScaleWords
from sim.verify.quantisers import Batch, batches, compare, counterpart, first_round, verify

SINGLE = 25
"""Batches of every BF16 number; those of scales follow."""

compiled = pytest.mark.skipif(not available(), reason="no C++ compiler")


def thinned(config, step):
    """Batches of all kinds, of each of which so many-th block."""
    for number, batch in enumerate(islice(batches(config, 3), first_round(config))):
        yield batch._replace(words=batch.words[number % min(step, len(batch.words)) :: step])


@pytest.mark.sampled(2)
@compiled
@pytest.mark.parametrize(
    "config",
    [
        QUANTISERS["nvfp4-quantiser"],
        QUANTISERS["mixfp4-quantiser-bf16"],
        QuantiserConfig("short", "nvfp4", "four-over-six", "float32", "largest-error", 3, 4),
        QUANTISERS["mixfp4-gap-quantiser"],
        QuantiserConfig("few", "nvfp4", "four-over-six", selection="gap", error_bits=9, tensor_scale_bits=2),
        QuantiserConfig(
            "second", input="bfloat16", selection="second-largest", pipeline=("largest", "quotients", "bounds")
        ),
        QuantiserConfig("crest", selection="crest-factor", error_bits=5, pipeline=("quotients", "choice")),
    ],
    ids=lambda config: config.name,
)
def test_equals_the_golden_model(config):
    engine = CompiledQuantiser(config)
    kinds = set()
    rng = np.random.default_rng(4)
    for number, batch in enumerate(thinned(config, 61)):
        stalls = [rng.random(101) < 0.6 for _ in range(2)] if number % 2 else [None, None]
        compare(engine, batch, *stalls)
        kinds.add(batch.kind)
    wanted = {"alone", "beside", "scales", "midpoints", "drawn", "ties", "bits", "near"}
    wanted |= {"flips"} if config.chooses else set()
    assert kinds == (wanted | {"pairs", "thresholds"} if config.by_magnitude else wanted)


@compiled
@pytest.mark.parametrize("rule", ["second-largest", "gap", "crest-factor"])
def test_rules_by_magnitudes_at_their_bounds(rule):
    """All pairs of magnitudes of eight bits, and blocks of which many are decided by one unit."""
    config = QUANTISERS[f"mixfp4-{rule}-quantiser"]
    found = {batch.kind: batch for batch in islice(batches(config, 5), SINGLE, first_round(config))}
    engine = CompiledQuantiser(config)
    for kind in ("pairs", "thresholds"):
        compare(engine, found[kind])
    x = np.sort((found["pairs"].words & 0x7FFFFFFF).view(np.float32), axis=1)
    pairs = np.unique(np.floor(np.ldexp(x[:, -2:], 8 - np.frexp(x.max())[1])), axis=0)
    assert len(pairs) == sum(largest for largest in range(128, 256))
    tensor = counterpart(config).quantize(found["thresholds"].words.view(np.float32), found["thresholds"].scale).tensor
    assert 0.2 < (tensor.scales >= 128).mean() < 0.8


@compiled
@pytest.mark.parametrize(
    "config",
    [
        QUANTISERS["mixfp4-quantiser"],
        QuantiserConfig("short", "nvfp4", "four-over-six", "bfloat16", "largest-error", 3, 4),
        QUANTISERS["mixfp4-crest-factor-quantiser"],
    ],
    ids=lambda config: config.name,
)
def test_one_unit_of_one_number_decides(config):
    """Blocks in pairs: adjacent numbers in one lane, and another candidate."""
    found = [batch for batch in islice(batches(config, 6), SINGLE, 2 * first_round(config)) if batch.kind == "flips"]
    engine = CompiledQuantiser(config)
    assert sum(len(batch.words) for batch in found) > 2000
    for batch in found:
        compare(engine, batch)
        spare = 16 if config.numbers.width == 16 else 0
        pairs = (batch.words.astype(np.int64) >> spare).reshape(-1, 2, 16)
        assert (np.abs(pairs[:, 0] - pairs[:, 1]).sum(axis=1) == 1).all()
        scales = counterpart(config).quantize(batch.words.view(np.float32), batch.scale).tensor.scales.reshape(-1, 2)
        assert (scales[:, 0] != scales[:, 1]).all()


@compiled
def test_a_block_per_cycle():
    config = QUANTISERS["nvfp4-quantiser"]
    batch = next(thinned(config, 61))
    assert compare(CompiledQuantiser(config), batch) == len(batch.words) + config.latency


@pytest.mark.parametrize(
    "config",
    [
        replace(QUANTISERS["nvint4-quantiser-bf16"], pipeline=("bounds",)),
        replace(QUANTISERS["mixfp4-second-largest-quantiser"], input="bfloat16", pipeline=("scales",)),
    ],
    ids=lambda config: config.format,
)
def test_in_amaranths_simulator(config):
    rng = np.random.default_rng(5)
    for batch in islice(thinned(config, 1201), SINGLE, SINGLE + 132, 130):
        compare(AmaranthQuantiser(config), batch, rng.random(31) < 0.7, rng.random(37) < 0.7)


def test_no_number_and_zeros():
    """One number is infinite, or NaN; all are zeros of either sign; subnormal ones alone."""
    config = QUANTISERS["nvint4-quantiser-bf16"]
    words = np.zeros((6, 16), np.uint32)
    words[:, 3] = [0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 0x007F0000, 0x3F800000]
    found = AmaranthQuantiser(config).run(words >> 16, TensorScaleWords(0, 0))
    assert found.invalid.tolist() == [True] * 3 + [False] * 3
    assert found.scales.tolist() == [0x7F] * 3 + [0, 0, 0x21]
    assert not found.codes[:5].any()
    compare(AmaranthQuantiser(config), Batch("bits", words, np.float32(1)))


class Wrong:
    """A quantiser with one bit wrong in one block."""

    def __init__(self, config):
        self.config = config

    def run(self, blocks, scale, offer, take):
        words = blocks.astype(np.uint32) << (32 - self.config.numbers.width)
        value = np.float32(np.ldexp(scale.fraction + 128.0, scale.exponent - 7))
        result = counterpart(self.config).quantize(words.view(np.float32), value)
        codes = result.tensor.codes.copy()
        codes[-1, 7] ^= 8
        flags = (each.ravel() for each in (result.tensor.scales, result.invalid, result.saturated))
        return Quantised(codes, *flags, 1)


def test_a_wrong_bit_is_found():
    config = QUANTISERS["mixfp4-quantiser"]
    batch = next(thinned(config, 1001))
    with pytest.raises(MismatchError, match=rf"batch 'alone', block {len(batch.words) - 1}: numbers 00000000 "):
        compare(Wrong(config), batch)


@compiled
def test_a_lost_result_is_found():
    config = QUANTISERS["nvfp4-quantiser"]
    batch = next(thinned(config, 1001))
    with pytest.raises(ToolError, match="a result is missing"):
        compare(CompiledQuantiser(config), batch, take=np.zeros(5, bool))


@compiled
def test_as_many_numbers_as_asked_for():
    outcome = verify(CompiledQuantiser(QUANTISERS["nvfp4-quantiser"]), 1 << 20, jobs=1)
    assert outcome.elements == {"alone": 1 << 20}
    assert outcome.as_dict()["elements"] == 1 << 20

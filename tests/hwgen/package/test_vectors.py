"""Vectors: read back through the manifest, and computed again by the golden model."""

import dataclasses

import numpy as np
import pytest

from hwgen import verilog
from hwgen.config import NAMED
from hwgen.formats.unscaled import TYPES
from hwgen.package.vectors import vectors
from sim import golden


def fields_of(manifest, port):
    return {field["name"]: field for entry in manifest["ports"] if entry["name"] == port for field in entry["fields"]}


def unpack(field, payload):
    """A field as the array that the manifest says it is."""
    values = np.zeros([dimension["size"] for dimension in field["dimensions"]], np.int64)
    for index in np.ndindex(values.shape):
        strides = [dimension["stride"] for dimension in field["dimensions"]]
        low = field["offset"] + sum(i * stride for i, stride in zip(index, strides, strict=True))
        values[index] = payload >> low & (1 << field["width"]) - 1
    return values


def read(text, manifest, port):
    width = next(entry["width"] for entry in manifest["ports"] if entry["name"] == port)
    lines = text.split("\n")
    assert lines.pop() == ""
    assert {len(line) for line in lines} == {-(-width // 4)}
    fields = fields_of(manifest, port)
    return [{name: unpack(field, int(line, 16)) for name, field in fields.items()} for line in lines]


@pytest.mark.parametrize("name", ["tiny", "nvfp4-blackwell", "mixfp4-weights-small"])
def test_results_are_those_of_the_golden_model(name, tiny):
    config = tiny if name == "tiny" else NAMED[name]
    manifest = verilog.describe(config).as_dict()
    made = vectors(config)
    steps = read(made.steps, manifest, "step__payload")
    addends = read(made.addends, manifest, "addend__payload")
    results = read(made.results, manifest, "result__payload")
    assert (len(steps), len(addends), len(results)) == (made.step_count, made.addend_count, made.result_count)
    of_c = iter(addends)

    # Scales without a tag are read without bit 7.
    masks = {side: 0xFF if config.form(side).tagged else 0x7F for side in "ab"}
    accumulators = [None] * config.interleave
    expected = []
    for number, step in enumerate(steps):
        operands = []
        for side in "ab":
            codes = step[f"{side}.codes"].astype(np.uint8)
            operands += [
                codes.reshape(len(codes), -1),
                (step[f"{side}.scales"] & masks[side]).astype(np.uint8),
            ]
        turn = number % config.interleave
        c = next(of_c)["c"].astype(np.uint32).view(np.float32) if step["first"] else accumulators[turn]
        accumulators[turn] = golden.step(*operands, c)
        if step["last"]:
            expected.append(accumulators[turn].view(np.uint32))
    assert next(of_c, None) is None
    assert len(expected) == len(results)
    for result, words in zip(results, expected, strict=True):
        assert (result["d"] == words).all()


@pytest.mark.parametrize("name", ["nvfp4-small", "mixfp4-blackwell"])
def test_vectors_have_what_is_rare(name):
    config = NAMED[name]
    manifest = verilog.describe(config).as_dict()
    made = vectors(config)
    steps = read(made.steps, manifest, "step__payload")
    words = np.array([result["d"] for result in read(made.results, manifest, "result__payload")], np.uint32)
    values = words.view(np.float32)
    assert (words == 0x7FFFFFFF).any()
    assert np.isfinite(values).mean() > 0.5
    assert len(np.unique(words)) > words.size / 2
    first, last = (np.array([int(step[flag]) for step in steps]) for flag in ("first", "last"))
    assert steps[0]["first"]
    # Chains, results in their midst, and single steps.
    assert {(f, e) for f, e in zip(first.tolist(), last.tolist(), strict=True)} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    tags = np.concatenate([step["b.scales"].ravel() >> 7 for step in steps])
    assert 0.1 < tags.mean() < 0.9


def test_number_of_steps_follows_the_payload(tiny):
    large = dataclasses.replace(tiny, name="wide", rows=40, columns=8, pipeline=())
    counts = [vectors(config).step_count for config in (tiny, NAMED["mixfp4-small"], large)]
    assert counts == [64, 64, 16]


@pytest.mark.parametrize("name", ["nvfp4-multi-small", "nvfp4-e0m3-multi-small", "mixfp4-mx-multi-small"])
def test_vectors_change_rate_and_types(name):
    config = NAMED[name]
    manifest = verilog.describe(config).as_dict()
    made = vectors(config)
    steps = read(made.steps, manifest, "step__payload")
    tiles = steps[-4 * config.interleave :]
    assert {int(step["mode"]) for step in tiles} == {0, 1}
    half = [step for step in tiles if step["mode"]]
    types = [(int(step["a_type"]), int(step["b_type"])) for step in half]
    assert len(half) == 3 * (config.interleave - 1)
    assert len(set(types)) == min(len(types), 25)
    assert {a for a, _ in types} == {b for _, b in types} == {*TYPES}
    results = read(made.results, manifest, "result__payload")[-config.interleave :]
    values = np.array([result["d"] for result in results], np.uint32).view(np.float32)
    assert np.isfinite(values).all()
    # Nothing is so large that it would hide the rest.
    assert (np.abs(values) < 2.0**12).all()
    assert len(np.unique(values)) == values.size

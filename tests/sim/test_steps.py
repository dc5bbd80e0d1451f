"""Steps as bits of the payload, and cut from a GEMM."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.rtl.tensor_core import addend_layout, step_layout
from sim import golden, tensors
from sim.random import random_steps
from sim.steps import Steps, codes_of, elements, gather, schedule, schedule_held

CONFIG = TensorCoreConfig("x", "mixfp4", "mixfp4", 3, 2, 2)


def drawn(count, seed=0, config=CONFIG):
    return random_steps(config, count, np.random.default_rng(seed))


def test_payload_follows_the_layout():
    steps = drawn(20)
    for index, word in enumerate(steps.words()):
        payload = step_layout(CONFIG).from_bits(word)
        for side, codes, scales in (
            (payload.a, steps.a_codes, steps.a_scales),
            (payload.b, steps.b_codes, steps.b_scales),
        ):
            assert [[list(block) for block in row] for row in side.codes] == codes[index].reshape(-1, 2, 16).tolist()
            assert [list(row) for row in side.scales] == scales[index].tolist()
        assert (payload.first, payload.last) == (steps.first[index], steps.last[index])


def test_payload_of_both_rates():
    config = dataclasses.replace(CONFIG, slot="separate")
    steps = drawn(20, config=config)
    assert 0 < steps.half.sum() < 20
    for index, word in enumerate(steps.words()):
        payload = step_layout(config).from_bits(word)
        assert [[list(block) for block in row] for row in payload.b.codes] == steps.b_codes[index].reshape(
            -1, 2, 16
        ).tolist()
        assert (payload.first, payload.last) == (steps.first[index], steps.last[index])
        flags = steps.half[index], steps.a_types[index], steps.b_types[index]
        assert (payload.mode, payload.a_type, payload.b_type) == flags
        # A byte of a row is two codes, the first one lower.
        row = payload.a.codes[1].as_bits().to_bytes(16, "little")
        assert row == elements(steps.a_codes[index, 1]).tobytes()
    np.testing.assert_array_equal(codes_of(elements(steps.a_codes)), steps.a_codes)
    assert steps.packed().shape[1] == -(-step_layout(config).size // 8)
    np.testing.assert_array_equal(steps[3:9].half, steps.half[3:9])


def test_addends_are_those_of_first_steps():
    steps = drawn(40)
    payloads = [addend_layout(CONFIG).from_bits(word) for word in steps.addend_words()]
    begins = np.flatnonzero(steps.first)
    assert 0 < len(begins) < 40
    assert [[list(row) for row in payload] for payload in payloads] == steps.c[begins].tolist()
    octets = [word.to_bytes(24, "little") for word in steps.addend_words()]
    assert steps.packed_addends().tobytes() == b"".join(octets)
    assert steps[:0].packed_addends().shape == (0, 24)


def test_bits_bytes_and_words_agree():
    steps = drawn(5)
    bits, packed = steps.bits(), steps.packed()
    assert bits.shape == (5, step_layout(CONFIG).size)
    assert packed.shape == (5, -(-step_layout(CONFIG).size // 8))
    for row, octets, word in zip(bits, packed, steps.words(), strict=True):
        assert word == int.from_bytes(octets.tobytes(), "little") == sum(int(bit) << i for i, bit in enumerate(row))


def test_arrays_in_any_memory_layout():
    steps = drawn(6)
    names = [field.name for field in dataclasses.fields(steps) if field.name != "config"]
    turned = dataclasses.replace(steps, **{name: np.asfortranarray(getattr(steps, name)[::-1])[::-1] for name in names})
    np.testing.assert_array_equal(turned.packed(), steps.packed())
    np.testing.assert_array_equal(turned.packed_addends(), steps.packed_addends())


def test_slices():
    steps = drawn(10)
    assert len(steps[3:7]) == 4
    np.testing.assert_array_equal(steps[3:7].packed(), steps.packed()[3:7])
    assert steps[:0].packed().shape == (0, steps.packed().shape[1])
    assert steps[:0].expected().shape == (0, 3, 2)


def interleaved(count):
    """CONFIG with ``count`` tiles that take turns."""
    return dataclasses.replace(CONFIG, pipeline=LOOP_REGISTERS[: count - 1])


@pytest.mark.parametrize("turns", [1, 2, 3, 4])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 16), (3, 2, 32), (7, 5, 80), (6, 4, 64)])
def test_schedule_and_gather(m, n, k, turns):
    config = interleaved(turns)
    a, b = (golden.quantize(tensors.generate("gaussian", (rows, k), rows), "mixfp4") for rows in (m, n))
    c = tensors.generate("gaussian", (m, n), 9)
    for addend in (None, c):
        steps = schedule(config, a, b, addend)
        tiles, steps_k = -(-m // 3) * -(-n // 2), -(-k // 32)
        filled = -(-tiles // turns) * turns
        assert len(steps) == filled * steps_k
        assert steps.last.sum() == tiles
        assert steps.first.sum() == tiles + (filled - tiles) * steps_k
        want = golden.accumulate(a, b, addend, CONFIG.groups).view(np.uint32)
        np.testing.assert_array_equal(gather(config, steps.expected(), m, n), want)


def test_schedule_interleaves_tiles():
    """Five tiles of three steps, by threes: tile t of a round at every third step; nothing in the missing turn."""
    a, b = (golden.quantize(tensors.generate("gaussian", (rows, 96), rows), "mixfp4") for rows in (15, 2))
    c = tensors.generate("gaussian", (15, 2), 9)
    alone, steps = schedule(CONFIG, a, b, c), schedule(interleaved(3), a, b, c)
    order = [0, 3, 6, 1, 4, 7, 2, 5, 8, 9, 12, None, 10, 13, None, 11, 14, None]
    nothing = np.zeros(alone.packed().shape[1], np.uint8)
    nothing[-1] = 1  # first
    want = [nothing if index is None else alone.packed()[index] for index in order]
    np.testing.assert_array_equal(steps.packed(), want)


def test_steps_continue_the_step_before_the_others():
    drawn_steps = drawn(60, 3, interleaved(3))
    one_by_one = [dataclasses.replace(drawn_steps[np.arange(turn, 60, 3)], config=CONFIG) for turn in range(3)]
    results = drawn_steps.expected()
    for turn, steps in enumerate(one_by_one):
        mine = np.flatnonzero(drawn_steps.last) % 3 == turn
        np.testing.assert_array_equal(results[mine], steps.expected())
    # Among them are chains: in another order the results differ.
    assert not np.array_equal(results, dataclasses.replace(drawn_steps, config=CONFIG).expected())


def exact(config=CONFIG, **fields):
    return dataclasses.replace(config, numerics="exact", pipeline=(), **fields)


@pytest.mark.parametrize(("m", "n", "k"), [(3, 2, 32), (7, 5, 80)])
def test_exact_results_are_those_of_the_whole_gemm(m, n, k):
    a, b = (golden.quantize(tensors.generate("heavy-tailed", (rows, k), rows), "mixfp4") for rows in (m, n))
    c = tensors.generate("gaussian", (m, n), 9)
    got = gather(exact(), schedule(exact(), a, b, c).expected(), m, n)
    np.testing.assert_array_equal(got, golden.accumulate(a, b, c, numerics="exact").view(np.uint32))


def test_exact_results_within_a_tile_leave_its_sum_alone():
    ones = golden.quantize(np.ones((1, 96), np.float32), "nvfp4")
    config = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 2, numerics="exact")
    small = np.full((1, 1), 2.0**-30, np.float32)
    steps = schedule(config, ones, ones, small)
    block = golden.accumulate(ones, ones, None, numerics="exact") / 3
    always = dataclasses.replace(steps, last=np.ones(3, bool)).expected().view(np.float32).ravel()
    np.testing.assert_array_equal(always, (block * [1, 2, 3]).ravel().astype(np.float32))
    # Rounded to what the first two results show, the sum would have lost C by now.
    minus = dataclasses.replace(ones, codes=ones.codes ^ 8)
    there, back = schedule(config, ones, ones, small), schedule(config, minus, ones)
    both = [
        np.concatenate([getattr(part, field.name) for part in (there, back)]) for field in dataclasses.fields(there)[1:]
    ]
    round_trip = dataclasses.replace(Steps(config, *both), first=np.arange(6) == 0, last=np.ones(6, bool))
    assert round_trip.expected()[-1].item() == small.view(np.uint32).item()


def test_exact_cores_without_tags_do_not_read_them():
    config = exact(TensorCoreConfig("x", "nvfp4", "nvfp4", 2, 2, 1))
    steps = drawn(50, 4, config)
    clear = dataclasses.replace(steps, a_scales=steps.a_scales & 0x7F, b_scales=steps.b_scales & 0x7F)
    assert (steps.a_scales > 0x7F).any()
    np.testing.assert_array_equal(steps.expected(), clear.expected())


@pytest.mark.parametrize("depth", [4096, 4112, 5000, 5024])
def test_depth_that_an_exact_core_allows(depth):
    """Up to the largest, or what whole steps make of it."""
    config = exact(TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 4), largest_depth=5000)
    q = golden.quantize(np.ones((1, -(-depth // 16) * 16), np.float32), "nvfp4")
    assert len(schedule(config, q, q)) <= config.largest_steps == 79


def test_depth_that_an_exact_core_does_not_allow():
    config = exact(TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 4), largest_depth=5000)
    q = golden.quantize(np.ones((1, 5072), np.float32), "nvfp4")
    with pytest.raises(InputError, match="K = 5072: x accumulates exactly up to K = 5000; raise its 'largest_depth'"):
        schedule(config, q, q)
    schedule(TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 4), q, q)


@pytest.mark.parametrize("pipeline", [("sums",), ("aligned", "total")])
@pytest.mark.parametrize("hold", [1, 2, 3])
def test_steps_that_hold_b_compute_the_gemm(pipeline, hold):
    """With one tile in the loop and with three: sums stay in the core where as many tiles share B, else they travel."""
    config = dataclasses.replace(CONFIG, pipeline=pipeline)
    rows, columns, steps_k = 3 * hold, 2 * 2, 4
    a = golden.quantize(tensors.generate("gaussian", (2 * rows, steps_k * config.depth), 1), "mixfp4")
    b = golden.quantize(tensors.generate("gaussian", (columns, steps_k * config.depth), 2), "mixfp4")
    c = tensors.generate("gaussian", (2 * rows, columns), 3)
    steps = schedule_held(config, a, b, c, hold)
    assert len(steps) == 2 * 2 * hold * steps_k
    for part, held in ((steps.b_codes, True), (steps.b_scales, True), (steps.a_codes, False)):
        turns = part.reshape(-1, hold, *part.shape[1:])
        assert np.array_equal(turns[:, 1:], turns[:, :-1]) or not held
        assert not held or (turns[1:, 0] != turns[:-1, 0]).any(axis=(1, 2)).all()
    assert (steps.a_codes[1:] != steps.a_codes[:-1]).any(axis=(1, 2)).all()
    inside = hold == config.interleave
    assert steps.last.sum() == len(steps) // (steps_k if inside else 1)
    results = (
        steps.expected() if inside else steps.expected()[np.indices((2, 2, steps_k, hold))[2].ravel() == steps_k - 1]
    )
    # In the order of the tiles: along N, then along M, the tiles that take turns last.
    found = results.reshape(2, 2 * hold, 3, 2).transpose(1, 2, 0, 3).reshape(2 * rows, columns)
    plain = schedule(config, a, b, c)
    np.testing.assert_array_equal(found, gather(config, plain.expected(), 2 * rows, columns))


def test_partial_sums_of_an_exact_core_stay_in_it():
    config = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 1, numerics="exact")
    one = golden.quantize(np.ones((2, 16)), "nvfp4")
    with pytest.raises(InputError, match="hold = 2: x accumulates exactly"):
        schedule_held(config, one, one, np.zeros((2, 2), np.float32), 2)
    with pytest.raises(InputError, match="hold = 0: must be at least 1"):
        schedule_held(config, one, one, np.zeros((2, 2), np.float32), 0)

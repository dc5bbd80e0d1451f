"""Events of steps made by hand."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from sim.engines import Run
from sim.random import random_steps
from sim.steps import Steps, Trace
from sim.verify.counting import count
from sim.verify.goals import goals

CORE = TensorCoreConfig("core", "mixfp4", "mixfp4", 1, 1, 1)
PAIR = dataclasses.replace(CORE, groups=2)
EXACT = dataclasses.replace(CORE, numerics="exact")


def single(core, a=(), b=(), scales=(0x38, 0x38), c=0.0):
    """One step: codes of the first lanes, the scale of all blocks of A and of B, and C or its bits."""
    codes = np.zeros((2, core.depth), np.uint8)
    codes[0, : len(a)], codes[1, : len(b)] = a, b
    addend = np.array([c], np.float32).view(np.uint32) if isinstance(c, float) else np.array([c], np.uint32)
    blocks = [np.array(np.broadcast_to(np.array(scale, np.uint8), (1, 1, core.groups))) for scale in scales]
    flag = np.ones(1, bool)
    return Steps(
        core, codes[None, :1], blocks[0], codes[None, 1:], blocks[1], addend.reshape(1, 1, 1), flag, flag.copy()
    )


def silent(steps, results):
    """A run of which nothing is known of the streams."""
    supplied = np.full(int(steps.first.sum()), -1)
    return Run(results, len(steps), np.zeros((2,) * 6, np.int64), np.arange(len(steps)), supplied)


def counted(steps):
    """Bins with events, by group, in words."""
    wanted = goals(steps.config)
    expected = steps.trace()
    on = np.ones(len(steps), bool)
    counts = count(wanted, steps, expected, silent(steps, expected.results), on, on, on)
    return {
        name: {wanted[name].label(tuple(index)): int(counts[name][tuple(index)]) for index in np.argwhere(counts[name])}
        for name in wanted
    }


def test_an_operand_that_is_seen():
    """1.5 x 2 x (1 x 1.125) + 1: T = 3 x 4 x 8 x 9 of 2^-8."""
    seen = counted(single(CORE, [3], [4], (0x38, 0x39), 1.0))
    pairs = seen["code pairs"]
    assert pairs["lane 0, tag A E2M1, tag B E2M1, A 3, B 4"] == 1
    assert sum(pairs.values()) == 16
    assert seen["scales of B"] == {"block 0, tag B E2M1, byte 0x39": 1}
    assert seen["scale exponents"] == {"block 0, A 0, B 0": 1}
    assert seen["scale significands"] == {"block 0, A 8, B 9": 1}
    assert seen["shift of C"] == {"by 0, effective addition": 1}
    assert seen["shift of terms"] == {"block 0, by 0, effective addition": 1}
    # 3.375 + 1 = 4.375, two places above 2^0, which is place F.
    assert seen["leading place of the sum"] == {"37, positive": 1}
    assert seen["places cancelled"] == {"grows": 1}
    assert seen["largest exponent"] == {"of C and a term": 1}
    assert seen["results"] == {"+normal": 1}
    assert seen["rounding"] == {"positive, last place 0, next 0, rest zero": 1}


@pytest.mark.parametrize("scale", [0x00, 0x80, 0x7F, 0xFF])
def test_an_operand_behind_a_zero_or_nan_scale_is_not_seen(scale):
    seen = counted(single(CORE, [3], [4], (scale, 0x38), 1.0))
    assert seen["code pairs"] == seen["tag pairs"] == seen["scales of A"] == {}
    (kind,) = seen["kinds of scales"]
    assert kind.startswith("block 0, A zero" if scale & 0x7F == 0 else "block 0, A NaN")
    assert kind.endswith(", B finite")


@pytest.mark.parametrize(("exponent", "visible"), [(15, True), (16, False), (40, False)])
def test_an_operand_far_below_the_last_place_is_not_seen(exponent, visible):
    """The unit of T is 2^-8, the last place of C 2^(exponent - 23)."""
    seen = counted(single(CORE, [2], [2], (0x38, 0x38), 2.0**exponent))
    assert bool(seen["code pairs"]) == visible
    assert seen["shift of terms"] == {f"block 0, by {exponent}, effective addition": 1}


def test_distances_beyond_the_window():
    assert counted(single(CORE, [2], [2], c=-(2.0**45)))["shift of terms"] == {
        "block 0, by 45, effective subtraction": 1
    }
    assert counted(single(CORE, [2], [2], c=2.0**46))["shift of terms"] == {"block 0, by more, effective addition": 1}
    assert counted(single(CORE, [2], [2], c=2.0**-35))["shift of C"] == {"by 35, effective addition": 1}
    assert counted(single(CORE, [2], [2], c=2.0**-36))["shift of C"] == {"by more, effective addition": 1}


def test_cancellation():
    """1.5 x 2 = 3 against C."""
    assert counted(single(CORE, [3], [4], c=-3.0))["zeros"] == {"C and terms cancel": 1}
    assert counted(single(CORE, [3], [4], c=-3.0))["places cancelled"] == {"all": 1}
    one_off = counted(single(CORE, [3], [4], c=0xC0400001))
    assert one_off["places cancelled"] == {"23": 1}
    assert one_off["leading place of the sum"] == {"12, negative": 1}  # place F is that of the largest exponent
    assert counted(single(CORE, [4], [2], c=0xBFFFFFFF))["places cancelled"] == {"24": 1}
    assert counted(single(CORE, [2, 2], [2, 10]))["zeros"] == {
        "C and all terms zero": 1,
        "a block sum zero, its products not": 1,
    }


def test_a_block_whose_sum_is_zero_cuts_c():
    cut = counted(single(CORE, scales=(0x7E, 0x7E), c=2.0**-30))
    assert cut["largest exponent"] == {"of a block whose sum is zero, C cut": 1}
    assert cut["zeros"] == {"terms zero, C not": 1, "nothing left after alignment": 1}


def test_distance_of_terms():
    steps = single(PAIR, scales=([0x38, 0x40], [0x38, 0xB8]))
    steps.a_codes[0, 0, [0, 16]] = steps.b_codes[0, 0, [0, 16]] = 2
    assert counted(steps)["distance of terms"] == {"blocks 0 and 1, -2": 1}
    steps.a_codes[0, 0, 16] = 0
    assert counted(steps)["distance of terms"] == {}
    steps.a_codes[0, 0, 16], steps.b_scales[0, 0, 1], steps.a_scales[0, 0, 1] = 10, 0x38, 0x38
    assert "terms cancel, C zero" in counted(steps)["zeros"]


def test_rounding_and_carry():
    """2^24 - 1 ones, and what a term of half a place adds."""
    core = dataclasses.replace(CORE, rounding="nearest_even")
    tie = counted(single(core, [1], [2], (0x38, 0x38), float(2**24 - 1)))
    assert tie["rounding"] == {"positive, last place 1, next 1, rest zero": 1}
    assert tie["24 ones and a one behind"] == {"positive": 1}


@pytest.mark.parametrize(
    ("bits", "kind"),
    [
        *((0x00000000, "+0"), (0x80000000, "-0"), (0x00000001, "+subnormal"), (0x807FFFFF, "-subnormal")),
        *((0x00800000, "+normal"), (0xBF800000, "-normal"), (0x7F7FFFFF, "+largest"), (0xFF7FFFFF, "-largest")),
        *((0x7F800000, "+Inf"), (0xFF800000, "-Inf"), (0x7FC00000, "+quiet NaN"), (0xFFFFFFFF, "-quiet NaN")),
        *((0x7F800001, "+signalling NaN"), (0xFFBFFFFF, "-signalling NaN")),
    ],
)
def test_kinds_of_c(bits, kind):
    for core in (CORE, EXACT):
        assert counted(single(core, c=bits))["C"] == {f"from the payload, {kind}, with usable scales": 1}
        assert counted(single(core, scales=(0, 0x38), c=bits))["C"] == {
            f"from the payload, {kind}, with a zero scale": 1
        }
        assert counted(single(core, scales=(0, 0x7F), c=bits))["C"] == {
            f"from the payload, {kind}, with a NaN scale": 1
        }


def test_exact_numerics():
    """1.5 x 2 + 1: the sum's leading place is that of 2, 21 above 2^-20."""
    seen = counted(single(EXACT, [3], [4], c=1.0))
    assert seen["place of terms"] == {"block 0, 12, positive": 1}
    assert seen["leading place of the sum"] == {"21, positive": 1}
    assert seen["C against the sum"] == {"exponents differ by -1, effective addition": 1}
    assert seen["places cancelled"] == {"grows": 1}
    assert counted(single(EXACT, [3], [4], c=-3.0))["places cancelled"] == {"all": 1}
    assert counted(single(EXACT, [3], [4], c=float(-(2**60))))["C against the sum"] == {
        "exponents differ by more, effective subtraction": 1
    }


@pytest.mark.parametrize("core", [CORE, EXACT])
def test_a_golden_model_that_disagrees_is_found(core):
    steps = single(core, [3], [4])
    right = steps.trace()
    run = silent(steps, right.results)
    on = np.ones(1, bool)
    with pytest.raises(ToolError, match=r"golden model: step 0, D\[0, 0\] is 0x40400001, integers say\s+0x40400000"):
        count(goals(core), steps, Trace(right.c, right.results + np.uint32(1)), run, on, on, on)


@pytest.mark.parametrize(
    ("pipeline", "supplied", "seen"),
    [
        (("decoded", "sums"), [0, 4, 5, 7, 10], ["1 before", "0 behind", "0 behind", "1 behind", "2 and more behind"]),
        ((), [0, 1, 2, 3, 4], ["1 before", "2 and more before"]),
    ],
)
def test_c_before_with_and_behind_its_step(pipeline, supplied, seen):
    core = dataclasses.replace(CORE, pipeline=pipeline)
    steps = random_steps(core, 5, np.random.default_rng(1))
    steps.first[:] = True
    accepted = np.array([1, 4, 5, 6, 8])
    run = dataclasses.replace(silent(steps, steps.expected()), accepted=accepted, supplied=np.array(supplied))
    wanted, on = goals(core), np.ones(12, bool)
    found = count(wanted, steps, steps.trace(), run, on, on, on)["C and its step"]
    labels = {wanted["C and its step"].label(tuple(index)) for index in np.argwhere(found)}
    assert found.sum() == 5
    pauses = np.diff(supplied, prepend=-2) > 1
    if pipeline:
        words = ["after a pause" if pause else "right behind another C" for pause in pauses]
        assert labels == {f"cycles from the step to C: {when}, {word}" for when, word in zip(seen, words, strict=True)}
    else:
        assert all(any(when in label for when in seen) for label in labels)

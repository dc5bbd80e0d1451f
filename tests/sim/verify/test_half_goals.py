"""Goals of steps at half the rate: all can be met, and each is an event of steps made by hand."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.errors import ToolError
from sim import verify
from sim.engines import Run
from sim.steps import ELEMENT_TYPES, Steps, Trace, codes_of
from sim.verify.counting import count
from sim.verify.goals import goals
from sim.verify.half_goals import NANS, PREFIX

CORES = {
    "full": TensorCoreConfig("core", "mixfp4", "mixfp4", 4, 4, 1, slot="full", pipeline=("operands", "total")),
    "quadrants": TensorCoreConfig(
        *("core", "nvfp4", "mixfp4", 3, 4, 2, "significand"),
        **{"slot": "quadrants", "half_fraction_bits": 23, "rounding": "nearest_even"},
    ),
    "separate": TensorCoreConfig(
        *("core", "nvint4", "nvfp4", 4, 4, 1, "signed"),
        **{"slot": "separate", "half_fraction_bits": 37, "fraction_bits": 37, "empty_blocks": "excluded"},
    ),
    "scaled": TensorCoreConfig("core", "nvfp4", "mixfp4", 4, 3, 2, slot="full", half_scale="e8m0"),
    "by step": TensorCoreConfig("core", "nvfp4-e0m3", "nvfp4-e0m3", 4, 4, 1, slot="split"),
}
CORE = TensorCoreConfig("core", "mixfp4", "mixfp4", 1, 1, 1, slot="full")
E4M3, E5M2, E2M3, E2M1 = (ELEMENT_TYPES[name] for name in ("e4m3", "e5m2", "e2m3", "e2m1"))
OF_STREAMS = (
    *("handshakes", "C and its step", "modes in a row"),
    *(f"{PREFIX}types of {side} in a row" for side in "AB"),
)


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_every_goal_can_be_met(core, oracle):
    """Those of the streams apart, which take a core. No event is one that the goals exclude, or verify would fail."""
    steps = 32_000 * core.groups
    outcome = verify.verify(oracle(core), steps * core.macs_per_step * 2 // 3, seed=3, workers=1)
    assert outcome.failure is None
    assert [goal for goal in outcome.missed() if not goal.startswith(OF_STREAMS)] == []


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_what_is_no_goal_has_a_reason(core):
    found = goals(core)
    assert sum(name.startswith(PREFIX) for name in found) > 15
    for name, goal in found.items():
        assert goal.name == name
        assert goal.reachable.shape == tuple(len(labels) for _, labels in goal.axes)
        assert bool(goal.reason) == (not goal.reachable.all()), name


def test_goals_of_fp4_stay_beside_them():
    # When C comes beside its step depends on the registers before the loop.
    core = NAMED["mixfp4-multi-small"]
    small, multi = goals(dataclasses.replace(NAMED["mixfp4-small"], pipeline=core.pipeline)), goals(core)
    assert {*small} < {*multi}
    for name, goal in small.items():
        np.testing.assert_array_equal(goal.reachable, multi[name].reachable)
    scaled = {*goals(NAMED["mixfp4-mx-multi-small"])}
    assert {name.removeprefix(PREFIX) for name in scaled - {*multi}} == {
        *("scales of A", "scales of B", "NaN scales", "scales of products", "ends", "places of products below the last")
    }
    assert {*multi} - scaled == {PREFIX + "scales ignored"}
    others = {*multi} - {*small}
    assert {name for name in others if not name.startswith(PREFIX)} == {
        "types of FP4",
        "modes of a tile",
        "modes in a row",
    }


def test_documented_number_of_goals():
    total = sum(int(goal.reachable.sum()) for goal in goals(NAMED["mixfp4-multi-small"]).values())
    page = Path(__file__).parents[3] / "docs" / "verification.md"
    assert f"`mixfp4-multi-small` has {total:,} goals" in page.read_text("utf-8")
    total = sum(int(goal.reachable.sum()) for goal in goals(NAMED["mixfp4-mx-multi-small"]).values())
    assert f"The {total:,} goals of `mixfp4-mx-multi-small`" in page.read_text("utf-8")


def single(a, b, types=(E4M3, E4M3), c=0.0, scales=0x38, core=CORE):
    """One step at half the rate: bytes of the first slots, types, and C or its bits."""
    rows = np.zeros((2, 1, 1, core.depth // 2), np.uint8)
    rows[0, ..., : len(a)], rows[1, ..., : len(b)] = a, b
    addend = np.array([c], np.float32).view(np.uint32) if isinstance(c, float) else np.array([c], np.uint32)
    blocks, flag = np.full((1, 1, core.groups), scales, np.uint8), np.ones(1, bool)
    modes = (flag.copy(), *(np.array([code], np.uint8) for code in types))
    parts = (codes_of(rows[0]), blocks, codes_of(rows[1]), blocks.copy(), addend.reshape(1, 1, 1), flag, flag.copy())
    return Steps(core, *parts, *modes)


def run_of(steps, results, accepted=None):
    """A run of which little is known of the streams."""
    accepted = np.arange(len(steps)) if accepted is None else np.array(accepted)
    supplied = np.full(int(steps.first.sum()), -1)
    return Run(results, int(accepted[-1]) + 1, np.zeros((2,) * 6, np.int64), accepted, supplied)


def counted(steps, accepted=None, offer=None):
    """Bins with events, by group without the prefix, in words."""
    wanted, expected = goals(steps.config), steps.trace()
    run = run_of(steps, expected.results, accepted)
    on = np.ones(run.cycles, bool)
    counts = count(wanted, steps, expected, run, on if offer is None else np.array(offer, bool), on, on)
    return {
        name.removeprefix(PREFIX): {
            wanted[name].label(tuple(index)): int(counts[name][tuple(index)]) for index in np.argwhere(counts[name])
        }
        for name in wanted
        if name.startswith(PREFIX) or name in ("types of FP4", "modes of a tile", "modes in a row")
    }


def test_a_product_that_is_seen():
    """1.125 x -0.5 + 2 = 1.4375 : r is 0 - 1, C is two places ahead."""
    seen = counted(single([0x39], [0xB0], c=2.0))
    assert seen["types"] == {"A E4M3, B E4M3": 1}
    assert seen["codes of A"] == {"slot 0, E4M3, byte 0x39": 1}
    assert seen["codes of B"] == {"slot 0, E4M3, byte 0xb0": 1}
    assert seen["significands"]["slot 0, A 9, B 8, signs of A and B + -"] == 1
    assert seen["shift of products"] == {"slot 0, by 2, negative": 1}
    assert seen["C against products"] == {"exponents differ by 2, signs of C and a largest product unequal": 1}
    assert seen["largest exponent"] == {"of C": 1}
    assert seen["largest product"] == {}
    assert seen["leading place of the sum"] == {"24, positive": 1}  # place F is that of the largest exponent
    assert seen["places cancelled"] == {"1": 1}
    assert seen["C"] == {"from the payload, +normal, with products": 1}
    assert seen["results"] == {"+normal": 1}
    assert seen["rounding"] == {"positive, last place 0, next 0, rest zero": 1}
    assert seen["scales ignored"] == {"block 0, A finite, B finite": 1}


@pytest.mark.parametrize(("exponent", "visible"), [(17, True), (18, False)])
def test_a_product_far_below_the_last_place_is_not_seen(exponent, visible):
    """The unit of a product of ones is 2^-6, the last place of C 2^(exponent - 23)."""
    seen = counted(single([0x38], [0x38], c=2.0**exponent))
    assert bool(seen["codes of A"]) == bool(seen["types"]) == bool(seen["significands"]) == visible
    assert seen["shift of products"] == {f"slot 0, by {exponent}, positive": 1}


def test_a_factor_of_zero_hides_the_other():
    seen = counted(single([0x38, 0], [0x80, 0x38]))
    assert seen["codes of A"] == {"slot 1, E4M3, byte 0x00": 1}
    assert seen["codes of B"] == {"slot 0, E4M3, byte 0x80": 1}
    assert seen["types"] == {}
    assert seen["zeros"] == {"C and all products zero": 1}
    assert seen["largest exponent"] == {}


def test_distances_beyond_the_window():
    far = counted(single([0x38], [0x38], c=2.0**40))
    assert far["shift of products"] == {"slot 0, by 40, positive": 1}
    assert counted(single([0x38], [0x38], c=2.0**41))["shift of products"] == {"slot 0, by more, positive": 1}
    for exponent, label in ((40, "40"), (41, "more"), (-40, "-40"), (-41, "less")):
        seen = counted(single([0x38], [0x38], c=2.0**exponent))["C against products"]
        assert seen == {f"exponents differ by {label}, signs of C and a largest product equal": 1}


def test_cancellation():
    cancel, rest = single([0x38, 0xB8], [0x38, 0x38]), single([0x7B, 0xFB, 0x14], [0x38, 0x38, 0x38], (E5M2, E4M3))
    assert counted(cancel)["zeros"] == {"C zero, products not": 1, "products cancel, C zero": 1}
    assert counted(cancel)["places cancelled"] == {"all": 1}
    # 1.75 x 2^15 twice, and 2^-10: 25 places below, so one in the last place of the window.
    seen = counted(rest)
    assert seen["leading place of the sum"] == {"0, positive": 1}
    assert seen["places cancelled"] == {"25": 1}
    assert seen["shift of products"]["slot 2, by 25, positive"] == 1
    assert counted(single([0x38], [0x38], c=-1.0))["zeros"] == {"C and products cancel": 1}
    assert counted(single([0x38, 0xB8], [0x38, 0x38], c=1.0))["zeros"] == {"products cancel, C not": 1}
    assert counted(single([], [], c=1.0))["zeros"] == {"products zero, C not": 1}


def test_the_largest_product():
    assert counted(single([0, 0x03], [0, 0x01], (E5M2, E5M2)))["largest product"] == {"slot 1, exponent -28": 1}
    assert counted(single([0x7B], [0x7B], (E5M2, E5M2)))["largest product"] == {"slot 0, exponent 30": 1}
    assert counted(single([0x38, 0x38], [0x38, 0x38]))["largest product"] == {}


def test_bits_above_a_short_type_are_ignored():
    seen = counted(single([0xE2], [0x38], (E2M1, E4M3)))
    assert seen["codes of A"] == {"slot 0, E2M1, byte 0xe2": 1}
    assert seen["significands"]["slot 0, A 8, B 8, signs of A and B + +"] == 1


def test_nan_and_reserved_types():
    for code, byte in NANS:
        seen = counted(single([0, byte], [0, 0x38], (code, E4M3), c=float("inf"), scales=0xFF))
        (label,) = seen["NaN elements of A"]
        assert label.endswith(f"0x{byte:02x}")
        assert seen["C"] == {"from the payload, +Inf, with a NaN element": 1}
        assert seen["scales ignored"] == seen["NaN elements of B"] == {}
        assert counted(single([byte], [byte], (code, code)))["NaN elements of A"] == {}
        assert counted(single([byte], [0x38], (code, E4M3), c=0x7FC00000))["NaN elements of A"] == {}
    assert counted(single([0x38], [0x38], (2, E4M3), c=0x7F800000))["types"] == {"A reserved, 2, B E4M3": 1}
    assert counted(single([0x38], [0x38], (2, E4M3), c=0x7FC00000))["types"] == {}


@pytest.mark.parametrize(
    ("a", "b", "c", "alone", "together"),
    [
        (0x7C, 0x3C, 0.0, "A +Inf, B positive", "products: +Inf, C: a number"),
        (0xFC, 0x3C, 0x7F800000, None, "products: -Inf, C: +Inf"),
        (0x80, 0xFC, 0.0, "A zero, B -Inf", "products: infinity times zero, C: a number"),
        (0x3C, 0xFC, 0xFF800001, None, "products: -Inf, C: NaN"),
    ],
)
def test_infinities(a, b, c, alone, together):
    seen = counted(single([a], [b], (E5M2, E5M2), c))
    assert seen["infinities of a step"] == {f"C from the payload, {together}": 1}
    assert seen["infinite products"] == ({f"slot 0, {alone}": 1} if alone else {})
    assert seen["types"] == {}


def test_infinities_of_both_signs():
    core = TensorCoreConfig("core", "nvfp4", "nvfp4", 1, 1, 2, slot="full")
    for place, words in ((1, "both, in one block"), (8, "both, of two blocks")):
        a, b = np.zeros((2, 16), np.uint8)
        a[0], a[place], b[0], b[place] = 0x7C, 0xFC, 0x3C, 0x3C
        seen = counted(single(a, b, (E5M2, E5M2), core=core))
        assert seen["infinities of a step"] == {f"C from the payload, products: {words}, C: a number": 1}
        assert seen["infinite products"] == {}


def test_ignored_scales_and_types():
    assert counted(single([0x38], [0x38], scales=0xFF))["scales ignored"] == {
        "block 0, A NaN, bit 7 set, B NaN, bit 7 set": 1
    }
    step = single([0x38], [0x38], (7, 2))
    step.half[:] = False
    assert counted(step)["types of FP4"] == {"A 7, B 2": 1}
    step.c[:] = 0x7FC00000
    assert counted(step)["types of FP4"] == {}


def test_modes():
    one = single([0x38], [0x38])
    steps = one[np.zeros(4, np.intp)]
    steps.half[:] = False, True, True, False
    steps.first[:] = True, False, True, False
    steps.a_types[:], steps.b_types[:] = (2, 0, 1, 5), (0, 0, 4, 4)
    seen = counted(steps, accepted=[1, 2, 5, 7], offer=[0, 1, 1, 0, 0, 1, 1, 1])
    assert seen["modes of a tile"] == {
        "step of FP4, behind the beginning": 1,
        "step of half rate, behind FP4": 1,
        "step of half rate, behind the beginning": 1,
        "step of FP4, behind half rate": 1,
    }
    assert seen["modes in a row"] == {
        "step of half rate, behind FP4, at once": 1,
        "step of half rate, behind half rate, after a gap": 1,
        "step of FP4, behind half rate, after a stall": 1,
    }
    assert seen["types of A in a row"] == {"step of E5M2, behind E4M3, after a gap": 1}
    assert seen["types of B in a row"] == {"step of E3M2, behind E4M3, after a gap": 1}
    steps.a_types[2] = 2  # reserved
    assert counted(steps)["types of A in a row"] == {}
    assert seen["C"] == {"from the payload, +0, with products": 1, "from a step of FP4, +normal, with products": 1}


def test_a_golden_model_that_disagrees_is_found():
    steps = single([0x38], [0x38], c=1.0)
    right = steps.trace()
    on = np.ones(1, bool)
    with pytest.raises(ToolError, match=r"golden model: step 0, D\[0, 0\] is 0x40000001, integers say\s+0x40000000"):
        count(
            goals(CORE), steps, Trace(right.c, right.results + np.uint32(1)), run_of(steps, right.results), on, on, on
        )

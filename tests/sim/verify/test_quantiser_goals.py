"""Coverage of quantisers: events counted once more, number by number, and blocks whose events are known."""

from collections import Counter
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest

from hwgen.config.quantiser import QUANTISERS, QuantiserConfig
from sim import golden
from sim.verify.coverage import complete, empty, impossible, missed
from sim.verify.quantiser_goals import count_quantised, quantiser_goals
from sim.verify.quantisers import batches, counterpart, first_round

VALUES = {"E2M1": [0, 0.5, 1, 1.5, 2, 3, 4, 6], "E1M2": [*range(8)], "INT4": [*range(8)]}


def counted(config, x, scale=1):
    words = np.asarray(x, np.float32).reshape(-1, 16).view(np.uint32)
    found = counterpart(config).quantize(words.view(np.float32), np.float32(scale))
    return count_quantised(config, words, found, stalled=False), found


def ones(goal, counts):
    """Labels of the bins of a group that have an event, and how many."""
    return {goal.label(tuple(index)): int(counts[tuple(index)]) for index in np.argwhere(counts)}


def test_known_blocks():
    config = QUANTISERS["mixfp4-quantiser"]
    goals = quantiser_goals(config)
    x = np.zeros((8, 16))
    x[1, 4] = 1e-40
    x[2, 5] = 7 * 2.0**-11
    x[3, :3] = np.nan, np.inf, -np.inf
    x[4, 1] = -np.inf
    x[5, :9] = 7, -2.5, 0.5, 5, 5, 5, 5, 5, 5  # a scale of 1, E1M2
    x[6, :6] = 6, -3.5, 0.25, 0.5, 0.5, 0.5
    x[7, 15] = -7 * 480
    counts, found = counted(config, x)
    names = ["zeros", "subnormal numbers alone", "numbers whose scale is zero", "with both", "with infinity"]
    assert ones(goals["blocks"], counts["blocks"]) == {**dict.fromkeys(names, 1), "numbers": 3}
    special = {"lane 0, NaN": 1, "lane 1, +Inf": 1, "lane 2, -Inf": 1, "lane 1, -Inf": 1}
    assert ones(goals["not finite"], counts["not finite"]) == special
    assert ones(goals["largest number"], counts["largest number"]) == {
        "lane 4, positive": 1,
        "lane 5, positive": 1,
        "lane 0, positive": 2,
        "lane 15, negative": 1,
    }
    first, second = goals["scales"].axes[0][1]
    assert ones(goals["scales"], counts["scales"]) == {
        f"{first}, byte 0x38": 1,
        f"{second}, byte 0x38": 1,
        f"{first}, byte 0x7e": 1,
    }
    assert ones(goals["saturated scales"], counts["saturated scales"]) == {first: 1}
    half_way = ones(goals["numbers half-way between codes"], counts["numbers half-way between codes"])
    assert half_way == {
        f"{first}, 0 and 1": 1,
        f"{first}, 2 and 3": 1,
        f"{second}, 0 and 1": 1,
        f"{second}, 5 and 6": 1,
    }
    assert found.tensor.codes[6, 2] == 0
    # The first candidate has to be taken where it saturates: that is no choice.
    assert ones(goals["choice"], counts["choice"]) == {f"{first} is better": 1, f"{second} is better": 1}
    assert counts["codes"].sum() == 3 * 16
    assert counts["codes"][0, 1].nonzero()[0].tolist() == [0, 10]
    assert counts["traffic"].tolist() == [8, 0]


def test_a_tie_between_candidates():
    """A number alone has no error in either."""
    counts, _ = counted(QUANTISERS["mixfp4-quantiser"], [[42] + [0] * 15])
    assert counts["choice"].tolist() == [0, 1, 0]
    config = QUANTISERS["mixfp4-gap-quantiser"]
    goal = quantiser_goals(config)["choice"]
    assert goal.reachable.tolist() == [True, False, True]
    assert goal.reason
    counts, _ = counted(config, [[42] + [0] * 15])
    assert counts["choice"][1] == 0


@pytest.mark.parametrize("name", ["nvint4-quantiser", "four-over-six-quantiser", "mixfp4-quantiser-bf16"])
def test_counted_number_by_number(name):
    """Scales, codes and midpoints of some blocks of the batches of ties and of near numbers, in rational arithmetic."""
    config = QUANTISERS[name]
    goals = quantiser_goals(config)
    chosen = {each.kind: each for each in islice(batches(config, 2), 25, first_round(config))}
    for kind in ("ties", "near", "bits"):
        batch = chosen[kind]
        words = batch.words[::41] & np.uint32(0xFFFF0000 if config.numbers.width == 16 else 0xFFFFFFFF)
        wanted = counterpart(config).quantize(words.view(np.float32), batch.scale)
        counts = count_quantised(config, words, wanted, stalled=True)
        events = recounted(config, words, wanted)
        for group in ("scales", "codes", "numbers half-way between codes"):
            expected = {label: number for (of, label), number in events.items() if of == group}
            assert ones(goals[group], counts[group]) == expected, (kind, group)
        assert not impossible(goals, {**empty(goals), **counts})
        if kind == "ties":
            assert counts["numbers half-way between codes"].sum() > 10


def recounted(config: QuantiserConfig, words, wanted: golden.HardwareResult):
    events = Counter()
    codes = wanted.tensor.codes.reshape(words.shape)
    for block, scale, second, invalid, own in zip(
        words, wanted.tensor.scales.ravel(), wanted.second.ravel(), wanted.invalid.ravel(), codes, strict=True
    ):
        byte = int(scale) & 0x7F
        if invalid or not byte:
            continue
        candidate = config.candidates[int(second)]
        kind = f"{candidate.element.name} with top {candidate.top}"
        events["scales", f"{kind}, byte 0x{byte:02x}"] += 1
        exponent, mantissa = divmod(byte, 8)
        step = Fraction(8 + mantissa if exponent else mantissa) * Fraction(2) ** (max(exponent, 1) - 10)
        step *= Fraction(float(wanted.tensor.tensor_scale))
        values = [Fraction(value) for value in VALUES[candidate.element.name]]
        for lane, (number, code) in enumerate(zip(block.view(np.float32), own, strict=True)):
            events["codes", f"{kind}, lane {lane}, {code}"] += 1
            for low, (below, above) in enumerate(pairwise(values)):
                if abs(Fraction(float(number))) == (below + above) / 2 * step:
                    events["numbers half-way between codes", f"{kind}, {low} and {low + 1}"] += 1
    return events


def test_no_events_miss_all_goals():
    goals = quantiser_goals(QUANTISERS["nvfp4-quantiser"])
    assert "choice" not in goals
    assert not complete(goals, empty(goals))
    assert len(missed(goals, empty(goals))) == sum(int(goal.reachable.sum()) for goal in goals.values())
    assert "codes: E2M1 with top 6, lane 3, 8" not in missed(goals, empty(goals))

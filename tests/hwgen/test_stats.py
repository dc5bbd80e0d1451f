import doctest

import numpy as np
import pytest

from hwgen import stats
from hwgen.measure.at_clock import next_runs
from hwgen.stats import Estimate, Ratio, across, against_itself, paired


def test_the_examples() -> None:
    result = doctest.testmod(stats)
    assert result.attempted
    assert not result.failed


def test_the_baseline_against_itself_shows_the_noise() -> None:
    assert against_itself([100.0] * 16) == Estimate(0.0, 0.0, 0.0)
    values = list(np.random.default_rng(6).normal(100, 1, 16))
    spread = against_itself(values)
    expected = 2.13 * np.std(values, ddof=1) / 100 * np.sqrt(2 / 16)
    assert spread.value == pytest.approx(0, abs=0.001)
    assert (spread.high - spread.low) / 2 == pytest.approx(expected, rel=0.06)
    wider = against_itself([100 + 3 * (value - 100) for value in values])
    assert wider.high - wider.low == pytest.approx(3 * (spread.high - spread.low), rel=0.05)
    assert against_itself([1.0, 1.1, 1.0, 1.1, 1.0]) is None


@pytest.mark.parametrize("runs", [6, 8, 16])
def test_an_interval_holds_the_truth_in_95_percent_of_cases(runs: int) -> None:
    generator = np.random.default_rng(4)
    repeats = 400
    held = 0
    for _ in range(repeats):
        baseline = generator.normal(100, 1, runs)
        found = paired(baseline, 1.05 * baseline + generator.normal(0, 2, runs))
        held += found.low <= 0.05 <= found.high
    assert 0.92 <= held / repeats <= 0.975


def test_an_interval_that_runs_are_added_for_holds_the_truth_a_little_less_often() -> None:
    generator = np.random.default_rng(4)
    repeats, most, within = 300, 16, 0.005
    held = 0
    for _ in range(repeats):
        baseline, candidate = generator.normal(100, 0.6, most), generator.normal(105, 0.6, most)
        done, short = 0, 1.0
        while done < most and (short > 1 or not done):
            done = next_runs(done, most, short).stop
            found = paired(baseline[:done], candidate[:done])
            short = (found.high - found.low) / 2 / within
        held += found.low <= 0.05 <= found.high
    assert 0.89 <= held / repeats <= 0.97


def test_a_mean_across_independent_figures() -> None:
    assert across([1.0] * 5) == Estimate(1.0)
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    found, half = across(values), 2.5706 * 1.8708 / np.sqrt(6)
    assert (found.low, found.value, found.high) == pytest.approx((3.5 - half, 3.5, 3.5 + half), rel=1e-4)


def test_paired_statistics() -> None:
    assert paired([2.0], [3.0]) == Estimate(0.5)
    assert paired([2.0] * 5, [3.0] * 5) == Estimate(0.5)
    assert paired([2.0] * 6, [3.0] * 6, [10.0] * 6) == Estimate(0.1, 0.1, 0.1)
    same = paired([1.0, 2.0, 4.0] * 2, [1.1, 2.2, 4.4] * 2)
    assert (same.low, same.value, same.high) == pytest.approx((0.1, 0.1, 0.1))
    generator = np.random.default_rng(3)
    baseline = generator.normal(100, 2, 16)
    noisy = paired(baseline, 1.05 * baseline + generator.normal(0, 1, 16))
    assert noisy.low < noisy.value < noisy.high
    assert noisy.low < 0.05 < noisy.high
    assert paired(baseline, baseline[::-1]) == paired(baseline, baseline[::-1])


def test_a_ratio_is_one_and_the_overhead_and_has_an_inverse() -> None:
    ratio = Ratio.of(Estimate(0.25, -0.5, 1.0))
    assert ratio == Ratio(1.25, 0.5, 2.0)
    assert ratio.overhead == Estimate(0.25, -0.5, 1.0)
    assert ratio.inverse == Ratio(0.8, 0.5, 2.0)
    assert Ratio(2.0, 1.6, 4.0).inverse == Ratio(0.5, 0.25, 0.625)
    for one in (Ratio.of(Estimate(0.25)), Ratio(1.25).inverse.inverse):
        assert (one.value, one.low, one.high) == (1.25, None, None)
    assert Ratio(2.0).overhead == Estimate(1.0)
    assert Ratio(2.0, 1.0).inverse == Ratio(0.5, None, 1.0)
    assert Ratio(2.0, None, 4.0).inverse == Ratio(0.5, 0.25)

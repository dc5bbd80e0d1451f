import math
from dataclasses import replace

import numpy as np
import pytest

from hwgen.config import NAMED
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import Memory, fixed, run
from hwgen.cost.model import CORE_PARTS, PARTS, CoreCost, EnergyCosts, Ratio, energy, overhead, throughput_per_area
from hwgen.errors import InputError
from hwgen.stats import Estimate, paired

ONE_TILE = replace(NAMED["nvfp4-blackwell"], pipeline=("decoded", "sums", "terms"))
CORE = CoreCost(ONE_TILE, 1000.0, 4.0, 700.0, 50.0, 5.0, 0.25)
CLOCK_NS = 5.0


@pytest.fixture
def ran():
    gemms = Gemms([16, 3], [32, 500], [640, 64], [1, 2])
    return run(CORE.config, gemms, fixed(gemms, 1, 2, 2), Memory(1 << 16, 1e10), CLOCK_NS)


def test_every_part_is_counted_by_hand(ran):
    costs = EnergyCosts(3.0, 20.0, 7.0, {CORE.config.name: 11.0, "another": 99.0})
    ran = replace(ran, quantised=np.array([1000, 2000]))
    found = energy(ran, CORE, CLOCK_NS, costs, 3 << 20)
    assert tuple(found) == PARTS
    # The first: one by two tiles of 16 x 16 outputs on four cores, ten steps each.
    assert ran.steps[0] == 20
    assert found["active"][0] == pytest.approx(20 * 4 * 700e-15)
    idle = ran.cycles[0] - 20
    assert found["clock"][0] == pytest.approx(idle * 4 * 50e-15)
    assert found["clock tree"][0] == pytest.approx(idle * 4 * 5e-15)
    assert found["leakage"][0] == pytest.approx(ran.cycles[0] * 4 * 5e-9 * 0.25e-3)
    operands = 20 * 32 * 4 * 9
    read, written = (16 + 32) * 40 * 9, 16 * 32 * 4
    assert found["buffer"][0] == pytest.approx((operands + read) * 3e-12)
    assert found["DRAM"][0] == pytest.approx((read + written) * 20e-12)
    assert found["buffer leakage"][0] == pytest.approx(ran.cycles[0] * 5e-9 * 3 * 7e-3)
    assert found["quantiser"].tolist() == pytest.approx([1000 * 11e-15, 2000 * 11e-15])


def test_what_is_not_given_costs_nothing(ran):
    found = energy(ran, CORE, CLOCK_NS, EnergyCosts(), 1 << 20)
    assert (found["quantiser"] == 0).all()
    assert (found["buffer leakage"] == 0).all()


def test_idle_cores_take_no_steps_and_no_clock(ran):
    """The second: 3 x 500 outputs of two products on cores of 8 x 8 outputs, 63 of 64 bands' places are of padding."""
    assert ran.busy.tolist() == pytest.approx([16 * 32 / 256 / 2, 63 / (32 * 4)])
    gated, stepping = (energy(ran, CORE, CLOCK_NS, EnergyCosts(), idle_gated=each) for each in (True, False))
    assert gated["active"].tolist() == pytest.approx((stepping["active"] * ran.busy).tolist())
    for part in ("clock", "clock tree", "leakage", "DRAM"):
        assert (gated[part] == stepping[part]).all()


RATIOS = {
    "active": Ratio(1.05, 1.04, 1.07),
    "clock": Ratio(1.01, 1.01, 1.01),
    "clock tree": Ratio(1.0, 1.0, 1.0),
    "leakage": Ratio(1.1, 1.08, 1.12),
}


def test_an_overhead_is_that_of_the_sums():
    baseline = {"active": 10.0, "clock": 2.0, "clock tree": 1.0, "leakage": 1.0, "buffer": 5.0, "DRAM": 20.0}
    candidate = {part: value * (RATIOS[part].value if part in RATIOS else 1) for part, value in baseline.items()}
    found = overhead(baseline, candidate, RATIOS)
    assert found.value == pytest.approx((10 * 0.05 + 2 * 0.01 + 0.1) / 39)
    assert found.low == pytest.approx((10 * 0.04 + 2 * 0.01 + 0.08) / 39)
    assert found.high == pytest.approx((10 * 0.07 + 2 * 0.01 + 0.12) / 39)


def test_a_single_part_has_the_interval_that_was_measured():
    baseline = dict.fromkeys(PARTS, 0.0) | {"active": 3.0}
    candidate = dict.fromkeys(PARTS, 0.0) | {"active": 3.0 * 1.05}
    found = overhead(baseline, candidate, RATIOS)
    assert [found.value, found.low, found.high] == pytest.approx([0.05, 0.04, 0.07])


def test_more_work_on_one_side_widens_with_it():
    """The candidate takes twice the steps: its spread counts twice, too."""
    baseline = {"active": 10.0, **dict.fromkeys(PARTS[1:], 0.0)}
    candidate = {"active": 21.0, **dict.fromkeys(PARTS[1:], 0.0)}
    found = overhead(baseline, candidate, RATIOS)
    assert [found.value, found.low, found.high] == pytest.approx([1.1, 1.08, 1.14])


def test_the_bounds_hold_those_of_a_joint_bootstrap():
    """What the report does not hold, runs of every part: the interval of the sum lies within the sum of the bounds."""
    rng = np.random.default_rng(5)
    runs = 16
    for correlation in (0.0, 0.6, -0.6, 1.0):
        common = rng.standard_normal((2, runs))
        shares = {"active": 0.6, "leakage": 0.3, "clock": 0.1}
        parts = {}
        for part, share in shares.items():
            own = rng.standard_normal((2, runs))
            sign = -1 if correlation < 0 and part == "leakage" else 1
            noise = sign * abs(correlation) * common + math.sqrt(1 - correlation**2) * own
            parts[part] = share * (np.array([[1.0], [1.06]]) + 0.02 * noise)
        ratios = {part: Ratio.of(paired(*values)) for part, values in parts.items()} | {"clock tree": Ratio(1, 1, 1)}
        mean = [{part: float(values[side].mean()) for part, values in parts.items()} for side in (0, 1)]
        for each in mean:
            each["clock tree"] = 0.0
        found = overhead(*mean, ratios)
        joint = paired(*np.sum(list(parts.values()), axis=0))
        assert found.value == pytest.approx(joint.value)
        assert found.low <= joint.low * (1 + 1e-9)
        assert found.high >= joint.high * (1 - 1e-9)


def test_a_quantiser_has_a_spread_where_it_was_measured():
    baseline = dict.fromkeys((*CORE_PARTS, "quantiser", "DRAM"), 1.0)
    candidate = baseline | {"quantiser": 2.0}
    cores = {part: Ratio(1, 1, 1) for part in CORE_PARTS}
    found = overhead(baseline, candidate, cores)
    assert (found.low, found.high) == pytest.approx((1 / 6, 1 / 6))
    found = overhead(baseline, candidate, cores | {"quantiser": Ratio(2, 1.4, 2.3)})
    assert (found.value, found.low, found.high) == pytest.approx((1 / 6, 0.4 / 6, 1.3 / 6))
    # Cores alone, as in the row of their energy, have no quantiser.
    of_cores = {part: candidate[part] for part in CORE_PARTS}
    assert overhead(of_cores, of_cores, cores | {"quantiser": Ratio(2, 1.4, 2.3)}).high == 0


def test_without_intervals_there_is_none():
    ratios = {part: Ratio(1.1) for part in CORE_PARTS}
    baseline = dict.fromkeys(PARTS, 1.0)
    found = overhead(baseline, {part: 1.1 if part in CORE_PARTS else 1.0 for part in PARTS}, ratios)
    assert (found.low, found.high) == (None, None)
    assert found.value == pytest.approx(0.4 / len(PARTS))
    assert Ratio(2.0).inverse == Ratio(0.5)
    assert Ratio.of(Estimate(0.25)) == Ratio(1.25)
    assert throughput_per_area((1.0, 1.0), Ratio(1.25)) == Estimate(pytest.approx(-0.2))


def test_throughput_per_area_turns_the_interval_round():
    found = throughput_per_area((2.0, 4.0), Ratio(1.25, 1.0, 2.0))
    assert (found.value, found.low, found.high) == pytest.approx((0.4 - 1, 0.25 - 1, 0.5 - 1))


def test_what_both_share_thins_a_ratio():
    shared = Ratio(1, 1, 1)
    found = Ratio.of_sums((2.0, Ratio(1.2, 1.1, 1.4)), (6.0, shared))
    assert found == Ratio(pytest.approx(1.05), pytest.approx(1.025), pytest.approx(1.1))
    assert Ratio.of_sums((1.0, Ratio(1.2)), (1.0, shared)) == Ratio(pytest.approx(1.1))
    both = Ratio.of_sums((3.0, Ratio(1.2, 1.1, 1.4)), (1.0, Ratio(3.0, 2.0, 5.0)))
    assert (both.value, both.low, both.high) == pytest.approx((6.6 / 4, 5.3 / 4, 9.2 / 4))


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_bad_costs_are_named(value):
    with pytest.raises(InputError, match="dram_pj_per_byte"):
        EnergyCosts(1.0, value)
    with pytest.raises(InputError, match="buffer_mw_per_mib"):
        EnergyCosts(buffer_mw_per_mib=value)
    with pytest.raises(InputError, match="quantiser_fj of x"):
        EnergyCosts(quantiser_fj={"x": value})

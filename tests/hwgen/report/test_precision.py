import math

import pytest

from hwgen.report.precision import asked, half_width
from hwgen.stats import Estimate


def test_half_of_an_interval() -> None:
    assert half_width(Estimate(0.02, 0.01, 0.04)) == pytest.approx(0.015)
    for unknown in (None, Estimate(0.02), Estimate(0.02, 0.01, None), Estimate(0.02, None, 0.04)):
        assert half_width(unknown) == math.inf


@pytest.mark.parametrize(("overhead", "expected"), [(-0.3, 0.005), (0.0, 0.005), (0.02, 0.0051), (1.0, 0.01)])
def test_what_is_asked_is_a_share_of_the_larger(overhead: float, expected: float) -> None:
    assert asked(Estimate(overhead), 0.005) == pytest.approx(expected)

"""What the page says that products by adding codes lose."""

from pathlib import Path

import pytest

from sim import accuracy

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


def test_nothing_is_off_by_more_than_an_eighth():
    assert accuracy.additive_error(count=1000).largest == 0.125


def test_the_page_says_what_is_measured():
    found = accuracy.additive_error()
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"off by {100 * found.mean:.1f} % in the mean and by {100 * found.largest:.1f} % at most" in text
    assert f"mostly upwards ({100 * found.bias:+.1f} %)" in text
    assert f"have {found.decibels:.1f} dB against the exact ones" in text
    assert accuracy.additive_error(seed=1).decibels == pytest.approx(found.decibels, abs=0.05)

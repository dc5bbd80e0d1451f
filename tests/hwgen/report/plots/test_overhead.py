"""The title of an overhead's picture; the rest is held where its tables are."""

from pathlib import Path

import pytest

from hwgen.report import schema
from hwgen.report.plots.overhead import overhead_png

REPORTS = Path(__file__).parents[4] / "reports"


@pytest.mark.parametrize(
    ("name", "clock"),
    [
        ("overhead", "generic7, 1 ns, "),
        ("overhead-as-mapped", "generic7, 3.6 ns, "),
        ("overhead-asap7-770ps", ", 0.77 ns (missed: power at 0.8 ns), "),
    ],
)
def test_the_title_has_the_clock_that_was_asked_for(name: str, clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = schema.load(REPORTS / f"{name}.json")
    assert isinstance(report, schema.OverheadReport)
    monkeypatch.setattr("hwgen.report.plots.overhead.png", lambda canvas: canvas.get_suptitle())
    assert clock in overhead_png(report)

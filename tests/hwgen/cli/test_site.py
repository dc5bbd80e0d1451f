import json
from pathlib import Path

import pytest

from hwgen.cli import site


@pytest.fixture
def paged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that takes no time; the real one has tests of its own."""
    monkeypatch.setattr("hwgen.site.page.page", lambda folder: f"page of {folder}".encode())


def test_the_page_is_written_to_its_place(run, paged, tmp_path: Path) -> None:
    assert run("site") == (0, "build/site.html\n", "")
    assert (tmp_path / site._PAGE).read_text() == "page of reports"
    assert run("site", "--reports", "mine", "--out", "deep/p.html")[0] == 0
    assert (tmp_path / "deep" / "p.html").read_text() == "page of mine"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "'reports': no folder of reports; 'hwgen compare' writes reports, --reports says where"),
        ({"other.json": "[]"}, "no report in 'reports': 'hwgen compare' writes one"),
        ({"overhead.json": '{"schema": "hwgen-report",'}, "report 'reports/overhead.json': not JSON"),
        (
            {"overhead.json": json.dumps({"schema": "hwgen-report", "version": 1, "kind": "overhead"})},
            "report 'reports/overhead.json': schema version 1; this hwgen reads",
        ),
    ],
    ids=["no folder", "no report", "broken", "another version"],
)
def test_bad_reports_are_one_line(refused, monkeypatch, tmp_path: Path, files: dict[str, str], said: str) -> None:
    monkeypatch.setattr("hwgen.site.charts.converter", lambda: None)
    for name, text in files.items():
        (tmp_path / "reports").mkdir(exist_ok=True)
        (tmp_path / "reports" / name).write_text(text)
    assert said in refused("site")


def test_a_place_that_cannot_be_written_is_one_line(refused, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    assert "cannot write 'taken': is a directory" in refused("site", "--out", "taken")

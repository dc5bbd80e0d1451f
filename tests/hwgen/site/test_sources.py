import json

import pytest

from hwgen.errors import InputError
from hwgen.report.schema import SCHEMA_VERSION, FormatsReport, OverheadReport
from hwgen.site.sources import of_kind, read


def test_all_reports_of_a_folder_are_read_and_nothing_else(sources, reports):
    names = {path.stem for path in reports.glob("*.json") if '"hwgen-report"' in path.read_text(encoding="utf-8")[:60]}
    assert [source.name for source in sources] == sorted(names)
    assert {"overhead", "explore", "power", "cost-decode"} <= names
    for source in sources:
        assert source.content == (reports / source.path.name).read_bytes()


def test_kinds_are_told_apart(folder):
    found = read(folder)
    assert [source.name for source, _ in of_kind(found, OverheadReport)] == ["overhead", "overhead-blackwell"]
    ((source, report),) = of_kind(found, FormatsReport)
    assert source.report is report


def _changed(folder, **changes):
    path = folder / "overhead.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "overhead.json").write_text("{"), "overhead.json': not JSON"),
        (
            lambda folder: _changed(folder, version=SCHEMA_VERSION - 1),
            f"schema version {SCHEMA_VERSION - 1}; this hwgen",
        ),
        (lambda folder: _changed(folder, kind="tale"), "kind 'tale'; this hwgen knows overhead"),
        (lambda folder: _changed(folder, results=[1]), r"damaged \(report.results\[0\]: must be an object\)"),
    ],
    ids=["broken", "version", "kind", "damaged"],
)
def test_a_bad_report_is_named(folder, spoil, said):
    spoil(folder)
    with pytest.raises(InputError, match=said) as caught:
        read(folder)
    assert "overhead.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_folder_and_no_report(tmp_path):
    with pytest.raises(InputError, match="nowhere': no folder of reports; 'hwgen compare' writes reports"):
        read(tmp_path / "nowhere")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(InputError, match="no report in"):
        read(tmp_path)

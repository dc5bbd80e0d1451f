"""Tables of formats side by side as a picture."""

import dataclasses

from hwgen.report import schema
from hwgen.report.plots.beside import beside_png, overheads


def test_only_cores_that_meet_their_clock_have_a_bar(formats_report: schema.FormatsReport) -> None:
    conditions = dataclasses.replace(formats_report.conditions, clock_ns=3.0)
    other = dataclasses.replace(formats_report, conditions=conditions, results=formats_report.results[:3])
    first, second = overheads([formats_report, other], "area per MAC").values()
    assert "cheap" in first
    assert not {"late", "later", "nvfp4"} & set(first)
    assert set(second) == set(first) & {row.row for row in other.results}
    picture = beside_png([formats_report, other])
    assert picture.startswith(b"\x89PNG")
    assert picture == beside_png([formats_report, other])
    assert picture != beside_png([formats_report, dataclasses.replace(other, results=())])

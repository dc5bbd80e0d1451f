"""Reports on quantisers."""

import json
from dataclasses import replace

import pytest

from hwgen.config import NAMED
from hwgen.config.quantiser import QUANTISERS
from hwgen.measure.figures import Figure
from hwgen.report import schema
from hwgen.report.check import findings
from hwgen.report.kinds import rendered, summary
from hwgen.report.shipped import shipped
from hwgen.stats import Estimate

NAMES = ("nvfp4-quantiser", "mixfp4-quantiser")


@pytest.fixture(scope="module")
def report():
    flow = schema.load(shipped() / "overhead-blackwell.json").conditions.flow
    areas = {"numbers": [(800, 810), (1600, 1640)], "choice": [(0, 0), (400, 390)]}
    totals = [[800, 810], [2000, 2030]]

    def figure(metric, unit, runs, block="total", of=None):
        return Figure("quantiser", block, metric, unit, dict(zip(NAMES, runs, strict=True)), of).record()

    results = [
        figure("area", "um2", totals),
        *(figure("area", "um2", runs, block, totals[0]) for block, runs in areas.items()),
        figure("critical path", "ns", [[0.9, 0.95], [1.1, 1.0]]),
    ]
    conditions = schema.QuantiserConditions(
        flow,
        1.0,
        False,
        2,
        {name: QUANTISERS[name].as_dict() for name in NAMES},
        {name: {"quantiser": "area"} for name in NAMES},
        {NAMES[0]: 0.95, NAMES[1]: 1.1},
        3200,
        768,
    )
    share = schema.QuantiserShare(NAMES[1], "nvfp4-blackwell", 80600.0, "a.json", 1024, 4.0, 1, 0.025, 0.015)
    return schema.QuantiserReport(
        (schema.Design(NAMED["nvfp4-blackwell"].as_dict()),),
        conditions,
        tuple(results),
        (share, replace(share, k=None, results=512.0, quantisers=32, share=0.8, more=0.48)),
    )


def test_json_there_and_back(report):
    text = schema.as_text(report)
    again = schema.from_json(json.loads(text))
    assert schema.as_text(again) == text
    assert again.shares == report.shares


def test_tables_and_plot(report, tmp_path):
    files = {path.suffix: content for path, content in rendered(report, tmp_path, "q").items()}
    page = files[".md"].decode()
    assert "| area, um2 | 805 | 2015 | +150.3 % |" in page
    assert "| choice | 0 | 395 |  | +49.1 % |" in page
    assert "| nvfp4-blackwell | 1,024 | 4 | mixfp4-quantiser | 1 | 2.50 % | +1.50 % |" in page
    assert "| nvfp4-blackwell | operand A | 512 | mixfp4-quantiser | 32 | 80.00 % | +48.00 % |" in page
    assert "netlists as mapped, 2 runs" in page
    assert "selection squared-error" in page
    assert files[".png"].startswith(b"\x89PNG")
    rows = files[".csv"].decode().splitlines()
    assert rows[0].startswith("library,metric,block,unit,nvfp4-quantiser,mixfp4-quantiser,runs,overhead")
    assert len(rows) == 1 + len(report.results) + len(report.shares)
    assert summary(report)[1][0] == ["area, um2", "805", "2015", "+150.3 %"]


@pytest.fixture(scope="module")
def several(report):
    """A third quantiser, which has less area than the second and more noise; and a fourth that has more of both."""
    further = ("mixfp4-gap-quantiser", "mixfp4-crest-factor-quantiser")
    results, names = report.results, (*NAMES, *further)
    for name, factor in zip(further, (0.7, 1.1), strict=True):
        results += tuple(
            replace(each, values={NAMES[0]: each.values[NAMES[0]], name: factor * each.values[NAMES[1]]})
            for each in report.results
        )
    decibels = (1.6, 0.001, 0.25, 0.4)
    errors = tuple(
        schema.QuantiserError(
            name, {"gaussian": noise, "ones": noise}, {"gaussian": 0.9, "ones": 1.0} if index else None
        )
        for index, (name, noise) in enumerate(zip(names, decibels, strict=True))
    )
    conditions = replace(report.conditions, quantisers={name: QUANTISERS[name].as_dict() for name in names})
    return replace(report, results=results, conditions=conditions, errors=errors)


def test_several_candidates(several, tmp_path):
    text = schema.as_text(several)
    assert schema.as_text(schema.from_json(json.loads(text))) == text
    header, rows = summary(several)
    assert header == ["quantiser", "area, um2", "overhead", "critical path, ns", "overhead"]
    assert [row[:2] for row in rows[:2]] == [[NAMES[0], "805"], [NAMES[1], "2015"]]
    assert len(rows) == 4
    files = {path.suffix: content for path, content in rendered(several, tmp_path, "q").items()}
    page = files[".md"].decode()
    assert f"| {NAMES[0]} | 805 | 1.600 | 1.600 | 1.600 | yes |" in page
    assert "| mixfp4-gap-quantiser | 1410 | 0.250, 90.00 | 0.250, 100.00 | 0.250 | yes |" in page
    assert "| mixfp4-crest-factor-quantiser | 2216 | 0.400, 90.00 | 0.400, 100.00 | 0.400 | no |" in page
    assert page.count("| choice | 0 |") == 3
    assert files[".png"].startswith(b"\x89PNG")
    assert len(files[".csv"].decode().splitlines()) == 1 + len(several.results) + len(several.shares) + 8


def test_reports_without_errors(report):
    assert "errors" not in json.loads(schema.as_text(report))


def test_a_clock_that_is_missed_is_told(report):
    found = findings(report)
    assert any("mixfp4-quantiser takes 1.1 ns: the clock of 1 ns" in sentence for sentence in found)
    met = replace(report, conditions=replace(report.conditions, clock_ns=1.1))
    assert not any("takes" in sentence for sentence in findings(met))


def test_the_widest_interval_is_told(several):
    """Of each figure, over the candidates."""

    def known_to(half, figure, name):
        overhead = figure.values[name] / figure.values[NAMES[0]] - 1
        return replace(figure, overhead=Estimate(overhead, overhead - half, overhead + half))

    halves = dict(zip(several.candidates, (0.02, 0.03, 0.004), strict=True))
    results = tuple(
        known_to(half, figure, name) for name, half in halves.items() for figure in several.figures(name)[:1]
    )
    found = findings(replace(several, results=results))
    assert [each for each in found if "points" in each] == [
        "area of mixfp4-gap-quantiser: the overhead of +75.22 % is known to +-3 points, asked for are +-0.5; give more"
        " --runs"
    ]
    assert not any("points" in each for each in findings(replace(several, results=results), 0.03 + 1e-9))

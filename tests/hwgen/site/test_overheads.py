import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from hwgen.report.form import number, percent
from hwgen.report.schema import OverheadReport
from hwgen.site import overheads
from hwgen.site.markup import together
from hwgen.site.sources import of_kind, read
from hwgen.stats import Estimate

_MULTI = tuple(f"overhead-multi{conditions}" for conditions in ("", "-1100ps", "-asap7", "-blackwell", "-sg13g2"))


@pytest.fixture
def pairs(sources):
    return overheads.ordered(of_kind(sources, OverheadReport))


def _raw(pair):
    """The report as plain JSON, apart from hwgen's records."""
    return _parsed(pair[0].content)


@cache
def _parsed(content):
    return json.loads(content)


def test_mixfp4_over_nvfp4_comes_first_and_labels_differ(pairs):
    names = [source.name for source, _ in pairs]
    assert names.index("overhead-as-mapped") == len(names) - 4
    assert set(names[-3:]) == {"overhead-nvint4", "overhead-weights", "overhead-multi-e0m3"}
    labels = overheads.labels(pairs)
    assert len(set(labels.values())) == len(labels) == len(pairs)
    assert labels["overhead"] == "mixfp4-small, generic7, 1 ns"
    over = "mixfp4-multi-small, generic7, 1 ns, over nvfp4-"
    assert [labels[f"overhead-multi{each}"] for each in ("", "-e0m3")] == [
        f"{over}multi-small",
        f"{over}e0m3-multi-small",
    ]
    assert labels["overhead-as-mapped"] == "mixfp4-small, generic7, 3.6 ns, as mapped"
    assert labels["searches"] == "mixfp4-small, generic7, 1 ns, 6 searches"
    assert labels["overhead-held"] == "mixfp4-small, generic7, 1 ns, B held for 4 steps"
    conditions = pairs[0][1].conditions
    outliers = replace(conditions, stimulus=replace(conditions.stimulus, tensors="outlier-channels"))
    other = overheads.labels([(pairs[0][0], replace(pairs[0][1], conditions=outliers))])
    assert other[pairs[0][0].name].endswith(", outlier-channels tensors")
    twice = overheads.labels([*pairs, (replace(pairs[0][0], path=Path("again.json")), pairs[0][1])])
    assert twice[pairs[0][0].name].endswith(f" ({pairs[0][0].name})")
    assert twice["again"].endswith(" (again)")


def _about(pairs):
    """The reports that the headline is about: MixFP4 over NVFP4, FP4 alone, built for a clock."""
    others = ("overhead-nvint4", "overhead-weights", "overhead-multi-e0m3", *_MULTI)
    return [pair for pair in pairs if _raw(pair)["conditions"]["closing"] and pair[0].name not in others]


def test_the_headline_is_the_range_of_the_json(pairs):
    text, about = overheads.headline(pairs), _about(pairs)
    _check_range(text, about)
    wider = [pair for pair in pairs if pair[0].name in _MULTI]
    assert len(wider) == len(_MULTI)
    for metric in ("area", "total power"):
        low, high = (f"{bound:+.1f}" for bound in _range(wider, metric))
        assert f"where cores also multiply FP8 and FP6 {low} to {high} %" in text
    assert f"Range over {len(about)} conditions with cores that multiply FP4 alone: " in text
    # Without others they are what the range is about.
    alone = overheads.headline(wider)
    _check_range(alone, wider)
    assert "where cores also multiply" not in alone
    libraries = "asap7sc7p5t, generic7, sg13g2"
    assert f"with cores that multiply FP8 and FP6, too: {libraries}, clocks from 1 to 5 ns" in alone


def _range(about, metric):
    values = [
        100 * each["overhead"]["value"]
        for pair in about
        for each in _raw(pair)["results"]
        if (each["scope"], each["block"], each["metric"]) == ("core", "total", metric)
    ]
    return min(values), max(values)


def _check_range(text, about):
    for metric, paper in (("area", "+3.1"), ("total power", "+1.5")):
        low, high = (f"{bound:+.1f}" for bound in _range(about, metric))
        assert f"<strong>{low} to {high} %</strong>" in text
        assert f"the paper of MixFP4 says {paper} %" in text
    assert f"Range over {len(about)} conditions" in text


def test_the_headline_says_what_holds_where_clocks_are_met(pairs):
    text, about = overheads.headline(pairs), _about(pairs)
    assert about == pairs[: len(about)]
    for metric in ("area", "total power"):
        met = [
            100 * each["overhead"]["value"]
            for pair in about
            for raw in [_raw(pair)]
            if min(core["core"]["slack_ns"] for both in raw["conditions"]["closing"].values() for core in both.values())
            > -0.0005
            for each in raw["results"]
            if (each["scope"], each["block"], each["metric"]) == ("core", "total", metric)
        ]
        assert 2 <= len(met) < len(about)
        assert f"where all cores meet their clock {min(met):+.1f} to {max(met):+.1f} %" in text
    clocks = [row.partition(" slack ")[2] for row in map(overheads._clock, (report for _, report in about))]
    missed = [words.startswith("-") for words in clocks]
    assert missed == sorted(missed)


def test_there_is_no_headline_without_its_subject(pairs):
    others = [pair for pair in pairs if pair[0].name in ("overhead-nvint4", "overhead-as-mapped")]
    assert "do not compare MixFP4 with NVFP4" in overheads.headline(others)


def test_the_table_has_a_row_for_each_report(pairs, parsed):
    header, *rows = parsed(overheads.table(pairs)).table("Overhead by report, with 95 % intervals")
    assert header == ["design, library", "clock", *overheads._COLUMNS, "lanes, least energy"]
    assert len(rows) == len(pairs) + 1
    for row, pair in zip(rows, pairs, strict=False):
        whole = {(each["scope"], each["metric"]): each for each in _raw(pair)["results"] if each["block"] == "total"}
        for cell, key in zip(row[2:-1], overheads._COLUMNS.values(), strict=True):
            assert cell == percent(Estimate(**whole[key]["overhead"]))
    for row, pair in zip(rows, pairs, strict=False):
        closing = _raw(pair)["conditions"]["closing"]
        cores = [each["energy"]["core"] for each in closing.values()] if closing else []
        lanes = [f"{each['lanes']}, slot {each['slot']}" if each.get("slot") else each["lanes"] for each in cores]
        assert row[-1] == ", ".join(dict.fromkeys(lanes))
    assert any("," in row[-1] for row in rows)
    assert rows[-1][1:] == ["not given", "+3.1 %", "+1.5 %", "", "", "not given"]


def test_plots_have_the_overheads_of_the_json(pairs):
    found = overheads.figures(pairs)
    expected = [
        100 * each["overhead"][end]
        for pair in pairs
        for each in _raw(pair)["results"]
        if each["block"] == "total" and each["metric"] in overheads._METRICS and each["overhead"]
        for end in ("value", "low", "high")
    ]
    assert [each[end] for each in found for end in ("value", "low", "high")] == expected
    assert {each["formats"] for each in found} == {
        "mixfp4 / nvfp4",
        "mixfp4 / nvfp4-e0m3",
        "nvint4 / nvfp4",
        "nvfp4 x mixfp4 / nvfp4",
    }
    blocks = overheads.blocks_chart(pairs).data["blocks"]
    area = {
        name: sum(
            each["value"]
            for each in blocks
            if (each["report"], each["scope"], each["metric"], each["design"]) == ("overhead", "core", "area", name)
        )
        for name in ("nvfp4-small", "mixfp4-small")
    }
    (report,) = (report for source, report in pairs if source.name == "overhead")
    assert area == pytest.approx(dict(report.find("core", "area").values))


def test_every_figure_of_every_report_can_be_opened(pairs, parsed):
    for pair, text in zip(pairs, overheads.inside(pairs), strict=True):
        found = parsed(text)
        raw = _raw(pair)
        names = [design["name"] for design in raw["designs"]]
        titles = [
            attributes["title"] for name, attributes in found.elements if name == "span" and "title" in attributes
        ]
        assert sorted(titles) == sorted(
            f"results[{each}] of {pair[0].path.name}" for each in range(len(raw["results"]))
        )
        for each in raw["results"]:
            where = f"in the {each['scope']}" if each["block"] != "total" else ""
            caption = (
                f"{each['block']}, in the {each['scope']} of {pair[0].name}"
                if where
                else f"{each['scope']} of {pair[0].name}, in all"
            )
            (row,) = (row for row in found.table(caption) if row[0] == each["metric"])
            assert row[2:4] == [number(each["values"][name]) for name in names]
            assert row[4] == percent(Estimate(**each["overhead"]) if each["overhead"] else None)
        assert ("canvas" in [name for name, _ in found.elements]) == (raw["conditions"]["placement"] is not None)


def test_names_are_escaped(folder, parsed, evil):
    pairs = list(of_kind(read(folder), OverheadReport))
    for part in (overheads.headline(pairs), overheads.table(pairs), together(*overheads.inside(pairs))):
        found = parsed(part)
        assert "img" not in [name for name, _ in found.elements]
    assert evil in [attributes.get("data-design") for _, attributes in found.elements]

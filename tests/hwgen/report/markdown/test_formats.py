"""The table of formats as Markdown, CSV and for the terminal."""

import dataclasses
import io
import json
from pathlib import Path

import pandas as pd

from hwgen.formats import BLOCK_FORMATS
from hwgen.report import schema
from hwgen.report.kinds import rendered, rendered_anew
from hwgen.report.markdown.formats import csv, markdown, notes, summary

REPORTS = Path(__file__).parents[4] / "reports"


def test_a_report_is_rendered_anew_from_its_json(formats_report: schema.FormatsReport, tmp_path: Path) -> None:
    path = tmp_path / "formats.json"
    path.write_text(schema.as_text(formats_report))
    assert schema.load(path) == formats_report
    found = rendered_anew(path)
    assert found == rendered(formats_report, tmp_path, "formats")
    assert {each.name for each in found} == {"formats.md", "formats.csv", "formats.png", "formats-error.png"}


def test_no_row_is_missing(formats_report: schema.FormatsReport) -> None:
    """Those without figures say why."""
    names = [row.row for row in formats_report.results]
    header, rows = summary(formats_report)
    assert [row[0] for row in rows] == names
    assert {len(row) for row in rows} == {len(header)}
    text = markdown(formats_report, "formats.png")
    for name in names:
        assert f"\n| {name} |" in text
    assert "\n- later: not measured: no configuration later-small.\n" in text
    late = "misses 1 ns: takes 1.04 ns, held by dot products; fraction_bits = 30, not 35"
    assert f"\n- late: {late}.\n" in text
    assert notes(formats_report) == {"late": late, "later": text.split("later: ")[1][:42]}


def test_what_is_lost_of_a_trained_model_has_columns_of_its_own(formats_report: schema.FormatsReport) -> None:
    first, *others = formats_report.results
    assert "similarity" not in markdown(formats_report, "formats.png").lower()
    similarities = {
        rule: schema.Similarity(mean, mean - 0.1, 0.002) for rule, mean in (("nearest", 0.96), ("four-over-six", 0.97))
    }
    errors = tuple(
        dataclasses.replace(each, decibels={**each.decibels, schema.WEIGHTS: 20.5, schema.ACTIVATIONS: 21.0})
        for each in first.errors
    )
    report = dataclasses.replace(
        formats_report,
        conditions=dataclasses.replace(formats_report.conditions, model="minilm"),
        results=(dataclasses.replace(first, errors=errors, similarities=similarities), *others),
    )
    header, rows = summary(report)
    found = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    own = found["nvfp4"]
    assert (own["trained weights, dB"], own["trained activations, dB"]) == ("20.50", "21.00")
    assert own["similarity"] == "0.9600 (0.9700)"
    assert found["cheap"]["similarity"] == found["cheap"]["trained weights, dB"] == ""
    text = markdown(report, "formats.png")
    assert "\n| nvfp4 | four-over-six | 0.9700 | 0.8700 | 0.0020 |\n" in text
    assert "encoder, all-MiniLM-L6-v2: the mean" in text
    assert "\n".join(line for line in csv(report).splitlines() if ',model,"similarity, nearest",,' in line)
    assert schema.from_json(schema.to_json(report)) == report


def test_formats_of_operands_share_the_table_of_errors(formats_report: schema.FormatsReport) -> None:
    """A row of two formats has the model's weights in one of them."""
    rows = list(formats_report.results)
    for place, kind in ((2, schema.WEIGHTS), (3, schema.ACTIVATIONS)):
        error = schema.FormatError("shared", "nearest", True, {kind: 10.0 + place})
        rows[place] = dataclasses.replace(rows[place], errors=(error,))
    text = markdown(dataclasses.replace(formats_report, results=tuple(rows)), "formats.png")
    (line,) = (line for line in text.splitlines() if line.startswith("| shared | nearest (default) |"))
    assert "12.00 | 13.00" in line


def test_the_table_says_what_a_row_costs_and_loses(formats_report: schema.FormatsReport) -> None:
    header, rows = summary(formats_report)
    found = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert found["cheap"] == {
        "row": "cheap",
        "bits": "4.5",
        "products": "1 x 16",
        "over": "nvfp4",
        "core, area": "+2.00 % [+1.80, +2.20]",
        "core, energy": "+2.00 % [+1.80, +2.20]",
        "element, um2": "3584",
        "um2/MAC": "28",
        "fJ/MAC": "95",
        "ns": "0.99",
        "gaussian, dB": "18.00",
        "heavy-tailed, dB": "17.00",
    }
    assert (found["nvfp4"]["core, area"], found["nvfp4"]["over"]) == ("baseline", "")
    assert found["nvfp4"]["gaussian, dB"] == "20.00 (21.00)"
    assert found["later"]["core, area"] == "not measured"
    assert found["nvfp4-2x16"]["products"] == "2 x 16"
    assert found["late"]["ns"] == "1.04 (missed)"


def test_a_rule_has_the_cost_of_the_row_whose_core_it_has(with_rule: schema.FormatsReport) -> None:
    header, rows = summary(with_rule)
    found = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    own, of = found["four-over-six"], found["nvfp4"]
    assert own["core, area"] == own["core, energy"] == "that of nvfp4"
    assert (own["over"], own["gaussian, dB"], own["products"]) == ("", "21.00", "1 x 16")
    for name in ("element, um2", "um2/MAC", "fJ/MAC", "ns", "bits"):
        assert own[name] == of[name] != ""
    said = "its cost is that of nvfp4: its hardware is the same"
    assert notes(with_rule)["four-over-six"] == said
    lines = pd.read_csv(io.StringIO(csv(with_rule)))
    areas = lines[(lines["scope"] == "core") & (lines["metric"] == "area per MAC")].set_index("row")
    rule = areas.loc["four-over-six"]
    assert (rule["value"], rule["runs"], rule["clock_met"], rule["note"]) == (30.0, 6, True, said)
    # Nor is it a baseline.
    assert (
        markdown(with_rule, "formats.png").count("*Products alone*, each of them over nvfp4 with 16: nvfp4-2x16 ") == 1
    )
    assert "four-over-six with" not in markdown(with_rule, "formats.png")
    alone = dataclasses.replace(with_rule, results=with_rule.results[-1:])
    assert summary(alone)[1][0][4:6] == ["not measured", ""]


def test_a_row_says_what_its_errors_are_of(formats_report: schema.FormatsReport) -> None:
    """Where no block has a scale, and where a rule is not that of the source."""
    row = formats_report.results[2]
    assert row.a is not None
    tensor = "are those of one scale for a whole tensor, by the rule by-row of one for each row"
    for changes, words in (
        ({"scale_bits": 0, "tensor_scale": True}, tensor),
        ({"name": "blockdialect"}, "by the rule for weights, since ties"),
    ):
        stored = dataclasses.replace(row.a, **changes)
        for sides in ({"a": stored}, {"b": stored}, {"a": stored, "b": stored}):
            report = dataclasses.replace(formats_report, results=(dataclasses.replace(row, **sides),))
            assert notes(report)["cheap"].count(words) == 1
            assert f"\n- cheap: {notes(report)['cheap']}.\n" in markdown(report, "formats.png")
    assert "cheap" not in notes(formats_report)
    sides = {"a": dataclasses.replace(row.a, name="fp16", scale_bits=0, tensor_scale=False)}
    sides["b"] = dataclasses.replace(row.a, scale_bits=0, tensor_scale=True)
    report = dataclasses.replace(formats_report, results=(dataclasses.replace(row, **sides),))
    assert notes(report)["cheap"].startswith("the errors of its weights are those of one scale for a whole tensor")


def test_integers_are_rows_without_block_scales() -> None:
    """What the note on scales hangs on."""
    bits = {name: form.stored_scale_width for name, form in BLOCK_FORMATS.items()}
    assert {name for name in bits if bits[name] == 0} == {"int4", "int8", "ternary", "fp16"}
    assert "blockdialect" in bits


def test_fairness_stands_above_the_table(formats_report: schema.FormatsReport) -> None:
    text = markdown(formats_report, "formats.png")
    head = text[: text.index("| row |")]
    for words in ("as many products for each output", "same fraction bits", "same clock", "placed wires"):
        assert words in head
    assert "merged-binary, signed as far as they can multiply" in head
    assert "In no row is the hardware of encoders and of the tensor scale." in head
    assert "| nvfp4 | four-over-six | 21.00 | 20.00 |" in text
    assert "- Operands of nvfp4, cheap, beaten, late: gaussian tensors (seed 1, others in every run), K = 512." in text
    assert "- Operands of nvfp4-2x16: gaussian tensors (seed 1, others in every run), K = 1024." in text


def test_what_misses_the_clock_says_so_in_its_scope(formats_report: schema.FormatsReport) -> None:
    """A lane array may be late where its core is not."""
    overhead = schema.load(REPORTS / "overhead.json")
    assert isinstance(overhead, schema.OverheadReport)
    assert overhead.conditions.closing is not None
    in_time = overhead.conditions.closing["nvfp4-small"]["area"]["core"]
    closing = {"area": {"lane array": dataclasses.replace(in_time, slack_ns=-0.1), "core": in_time}}
    rows = tuple(
        dataclasses.replace(row, closing=closing) if row.row == "cheap" else row for row in formats_report.results
    )
    text = markdown(dataclasses.replace(formats_report, results=rows), "formats.png")
    area, energy = (
        text.split(f"## {what} per MAC, by scope")[1].split("\n| cheap | ")[1].split("\n")[0].split(" | ")
        for what in ("Area", "Energy")
    )
    assert [cell.endswith(" (missed)") for cell in area] == [True, *[False] * 5]
    assert not any("missed" in cell for cell in energy)


def test_what_products_alone_are_worth_stands_above_the_table(formats_report: schema.FormatsReport) -> None:
    text = markdown(formats_report, "formats.png")
    words = (
        "*Products alone*, each of them over nvfp4 with 16: nvfp4-2x16 with 32 products:"
        " -16.67 % [-16.67, -16.67] core area and -10.00 % [-10.00, -10.00] energy a product."
    )
    assert f"\n{words}\n" in text[: text.index("| row |")]
    rows = tuple(row for row in formats_report.results if row.row != "nvfp4-2x16")
    assert "Products alone" not in markdown(dataclasses.replace(formats_report, results=rows), "formats.png")


def test_registers_are_said_of_every_row(formats_report: schema.FormatsReport) -> None:
    first = schema.Design({**formats_report.designs[0].settings, "pipeline": ["decoded", "total"]})
    report = dataclasses.replace(formats_report, designs=(first, *formats_report.designs[1:]))
    text = markdown(report, "formats.png")
    others = ", ".join(formats_report.designs[1].settings["pipeline"])
    assert f"- Registers: decoded, total in nvfp4; {others} in nvfp4-2x16, cheap, beaten, late.\n" in text


def test_rules_that_the_table_does_not_show_are_named_above_it(formats_report: schema.FormatsReport) -> None:
    text = markdown(formats_report, "formats.png")
    words = " Other rules (four-over-six) have the same cores; further down is which one is in brackets.\n"
    assert words in text[: text.index("| row |")]
    rows = tuple(dataclasses.replace(row, errors=row.errors[:1]) for row in formats_report.results)
    assert "Other rules" not in markdown(dataclasses.replace(formats_report, results=rows), "formats.png")


def test_bits_of_two_formats_are_said_once_where_they_are_the_same(formats_report: schema.FormatsReport) -> None:
    row = formats_report.results[2]
    assert row.b is not None
    for bits, words in ((4.5, "4.5"), (4.25, "4.5 and 4.25")):
        other = dataclasses.replace(row, b=dataclasses.replace(row.b, name="other", bits_per_element=bits))
        _, rows = summary(dataclasses.replace(formats_report, results=(other,)))
        assert rows[0][1] == words


def test_blocks_add_up_in_every_row(formats_report: schema.FormatsReport) -> None:
    text = markdown(formats_report, "formats.png")
    assert "| cheap | 5376 | 1792 | 7168 |" in text
    stored = "| cheap | 4: E2M1 | 8, of which 7 are read: UE4M3 | 16 | 4.5 | 4.438 | FP32, outside the core |"
    assert f"{stored} source of cheap |" in text


def test_without_errors_there_is_no_table_of_them(formats_report: schema.FormatsReport, tmp_path: Path) -> None:
    rows = tuple(dataclasses.replace(row, errors=()) for row in formats_report.results)
    report = dataclasses.replace(formats_report, results=rows)
    text = markdown(report, "formats.png")
    assert "quantisation noise, dB" not in text
    assert "formats-error.png" not in text
    assert "![What is left of the numbers against area and energy of a product](<formats-error.png>)" in markdown(
        formats_report, "formats.png"
    )
    assert {path.name for path in rendered(report, tmp_path, "formats")} == {"formats.md", "formats.csv", "formats.png"}
    assert len(summary(report)[0]) == len(summary(formats_report)[0]) - 2


def test_csv_has_every_figure(formats_report: schema.FormatsReport) -> None:
    found = pd.read_csv(io.StringIO(csv(formats_report)))
    assert list(found["row"].unique()) == [row.row for row in formats_report.results]
    figures = sum(len(row.figures) for row in formats_report.results)
    errors = sum(len(each.decibels) for row in formats_report.results for each in row.errors)
    assert len(found) == figures + errors + 1
    (one,) = found[
        (found["row"] == "cheap") & (found["scope"] == "core") & (found["metric"] == "area per MAC")
    ].to_dict("records")
    assert (one["value"], one["runs"], one["overhead_low"], one["clock_met"]) == (28.0, 6, 0.018, True)
    (lacking,) = found[found["row"] == "later"].to_dict("records")
    assert lacking["note"] == "not measured: no configuration later-small"
    # Whole numbers have no point.
    assert ",16,16,4.5,4.5," in csv(formats_report)
    assert json.loads(schema.as_text(formats_report))["kind"] == "formats"

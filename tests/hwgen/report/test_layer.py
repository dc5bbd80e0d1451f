"""Reports on a layer."""

import json
from dataclasses import replace

import pytest

from hwgen.config import NAMED
from hwgen.config.quantiser import QUANTISERS
from hwgen.report import schema
from hwgen.report.check import findings
from hwgen.report.kinds import rendered, summary


@pytest.fixture
def report() -> schema.LayerReport:
    def row(name: str, low: float) -> schema.LayerRow:
        def off(less: float) -> schema.Deviation:
            return schema.Deviation(low - less, low - 2 * less, 0.99 - less / 100, 0.9)

        gemms = tuple(
            schema.GemmDeviation(gemm, 20.5, 21.5, off(0), off(less))
            for gemm, less in (("query", 0.0), ("scores", 3.0))
        )
        rtl = (schema.RtlComparison("query", 1, 960, 965, 123456, 15360, 23040, 23048),)
        return schema.LayerRow(
            name, name, "nearest", f"{name}-quantiser", f"{name}-small", 1300, 0, gemms, off(1), off(0.5), rtl
        )

    conditions = schema.LayerConditions(
        "some-model",
        2,
        3,
        40,
        (schema.LayerGemm("query", 1, 1000, True), schema.LayerGemm("scores", 24, 2000, False)),
        {f"{name}-quantiser": QUANTISERS[f"{name}-quantiser"].as_dict() for name in ("nvfp4", "mixfp4")},
        "compiled",
        schema.CostTools("0.2.0", "2.0"),
    )
    designs = tuple(schema.Design(NAMED[f"{name}-small"].as_dict()) for name in ("nvfp4", "mixfp4"))
    return schema.LayerReport(designs, conditions, (row("nvfp4", 18.0), row("mixfp4", 19.5)))


def test_json_there_and_back(report: schema.LayerReport) -> None:
    text = schema.as_text(report)
    again = schema.from_json(json.loads(text))
    assert schema.as_text(again) == text
    assert isinstance(again, schema.LayerReport)
    assert again.results == report.results


def test_tables_and_plot(report, tmp_path) -> None:
    files = {path.suffix: content for path, content in rendered(report, tmp_path, "l").items()}
    page = files[".md"].decode()
    assert page.startswith("# Layer 2 of some-model through quantiser and core\n")
    assert "3 sentences, 40 tokens." in page
    assert "tensor scales, the output has 17.50 dB (nvfp4), 19.00 dB (mixfp4)." in page
    assert "| nvfp4 | 17.00 | 16.00 | 0.9800 | 0.9000 | 12.00 (scores) | query: equal |" in page
    within, alone = (page.split(title)[1] for title in ("within the layer, dB", "median column, dB"))
    assert "| scores | 15.00 | 16.50 |" in within.split("##")[0]
    assert "| layer's output | 17.00 | 18.50 |" in within.split("##")[0]
    assert "| scores | 18.00, 18.00 | 19.50, 19.50 |" in alone.split("##")[0]
    assert "| query | 20.50, 21.50 | 20.50, 21.50 |" in page
    assert "| nvfp4 | query | 960 | 965 | 15,360 | 23,040 | 23,048 |" in page
    assert "scores 2,000 multiply-accumulates in 24 GEMMs." in page
    assert "Blocks that saturate within the layer: nvfp4 0 of 1,300, mixfp4 0 of 1,300." in page
    assert files[".png"].startswith(b"\x89PNG")
    rows = files[".csv"].decode().splitlines()
    assert rows[0].startswith("name,format,rule,gemm,x_sqnr_db,w_sqnr_db,alone_snr_db,alone_median_db")
    assert rows[3] == "nvfp4,nvfp4,nearest,layer's output,,,,,,,17,16,0.98,0.9"
    assert rows[4] == 'nvfp4,nvfp4,nearest,"layer\'s output, quantised in float64",,,,,,,17.5,17,0.985,0.9'
    assert len(rows) == 1 + 2 * 4
    assert summary(report)[1][1][:2] == ["mixfp4", "18.50"]


def test_without_rtl_there_is_no_table_of_it(report, tmp_path) -> None:
    bare = replace(report, results=tuple(replace(row, rtl=()) for row in report.results))
    page = rendered(bare, tmp_path, "l")[tmp_path / "l.md"].decode()
    assert "## In RTL" not in page
    assert "| 12.00 (scores) | none |" in page


def test_saturation_is_told(report) -> None:
    assert findings(report) == []
    one, other = report.results
    found = findings(replace(report, results=(one, replace(other, saturated=1))))
    assert found == ["mixfp4: 1 of 1,300 blocks saturate: their numbers are beyond those of the calibration"]

import json

import pytest

from hwgen.report.schema import LayerReport
from hwgen.site import layer
from hwgen.site.charts import compiled
from hwgen.site.sources import of_kind


@pytest.fixture
def pairs(sources):
    return list(of_kind(sources, LayerReport))


def test_the_plot_has_every_product_of_the_json(pairs):
    found = layer.chart(pairs)
    ((source, _),) = pairs
    expected = {
        (row["name"], gemm, each["snr_db"], each["median_db"])
        for row in json.loads(source.content)["results"]
        for gemm, each in [*((one["gemm"], one["within"]) for one in row["gemms"]), ("layer's output", row["output"])]
    }
    assert {(each["format"], each["gemm"], each["snr"], each["median"]) for each in found.data["layers"]} == expected
    pytest.importorskip("vl_convert", reason="the extra 'site' is not installed")
    assert all(compiled(spec) for spec in found.specs.values())


def test_the_table_has_a_row_for_each_format(pairs, parsed):
    text, hidden = layer.tables([*pairs, *pairs])
    ((header, *rows),) = parsed(text).tables
    raw = json.loads(pairs[0][0].content)["results"]
    assert header[1] == "output, dB"
    assert [row[:2] for row in rows] == [[each["name"], f"{each['output']['snr_db']:.2f}"] for each in raw]
    assert " hidden" in hidden.partition(">")[0]

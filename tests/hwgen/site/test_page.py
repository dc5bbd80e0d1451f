import base64
import gzip
import json
import re

import pytest

from hwgen.errors import InputError
from hwgen.report.schema import OverheadReport
from hwgen.site import charts, overheads
from hwgen.site.conditions import dialog
from hwgen.site.page import contents, page
from hwgen.site.sources import of_kind, read

LARGEST = 4_000_000
"""Bytes of the page."""


def test_each_kind_has_its_section_and_a_kind_without_reports_none(folder):
    found = contents(read(folder))
    kinds = ["headline", "overhead", "inside", "formats", "libraries", "workloads", "explorations", "power"]
    assert [identity for identity, *_ in found.sections] == kinds
    only = [source for source in read(folder) if source.name == "power"]
    assert [identity for identity, *_ in contents(only).sections] == ["power"]


def test_every_control_has_a_parameter_to_set(folder, parsed):
    found = contents(read(folder))
    for chart in found.charts:
        elements = parsed(charts.figure(chart)).elements
        parameters = {attributes.get("data-param") or attributes.get("data-slider") for _, attributes in elements}
        for parameter in parameters - {None, "spec"}:
            for spec in chart.specs.values():
                named = {each["name"] for each in spec["params"]}
                assert parameter in named
        for spec in chart.specs.values():
            assert spec["data"]["name"] in chart.data


def test_names_are_escaped_everywhere(folder, parsed, evil):
    for _, _, content in contents(read(folder)).sections:
        found = parsed(content)
        assert "img" not in [name for name, _ in found.elements]


def test_a_missing_package_is_found_before_all_work(monkeypatch, tmp_path):
    def missing():
        raise InputError("the page needs something")

    monkeypatch.setattr(charts, "converter", missing)
    with pytest.raises(InputError, match="the page needs something"):
        page(tmp_path / "nowhere")


def test_the_page_is_small_whole_and_by_itself(committed, sources, parsed):
    assert len(committed.encode()) <= LARGEST
    assert "{{" not in re.sub(r"<script.*?</script>", "", committed, flags=re.DOTALL)
    found = parsed(committed)
    identities = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(set(identities)) == len(identities)
    for name, attributes in found.elements:
        assert "src" not in attributes
        if name == "link":
            assert attributes["href"] == "data:,"
        if name == "a" and attributes["href"].startswith("#"):
            assert attributes["href"][1:] in identities
        for leads in ("data-dialog", "data-json"):
            if leads in attributes:
                assert f"{'json-' if leads == 'data-json' else ''}{attributes[leads]}" in identities
        if name in ("select", "input"):
            assert attributes.get("id") == "theme" or "data-param" in attributes or "data-slider" in attributes
    for source in sources:
        assert {f"json-{source.name}", f"conditions-{source.name}"} <= set(identities)


def test_every_report_can_be_reached(committed, sources, parsed):
    """Also of a kind without a section, such as those on quantisers."""
    asked = {attributes.get("data-json") for _, attributes in parsed(committed).elements}
    inside = "".join(
        gzip.decompress(base64.b64decode(text)).decode("utf-8", "replace")
        for text in re.findall(r'<script type="application/gzip" id="inside[^>]*>(.*?)</script>', committed)
    )
    reached = asked | set(re.findall(r'data-json="([^"]*)"', inside))
    assert {source.name for source in sources} <= reached


def test_reports_are_in_the_page_byte_for_byte(committed, sources):
    for source in sources:
        (text,) = re.findall(
            rf'<script type="application/gzip" id="json-{source.name}"[^>]*>([^<]*)</script>', committed
        )
        assert gzip.decompress(base64.b64decode(text)) == source.content


def _packed(page, identity):
    """What stands in the page compressed."""
    (text,) = re.findall(f'<script type="application/gzip" id="{identity}">([^<]*)</script>', page)
    return gzip.decompress(base64.b64decode(text)).decode()


def test_conditions_are_in_the_page_compressed(committed, sources):
    for source in sources:
        assert _packed(committed, f"conditions-{source.name}") == dialog(source)


def test_what_is_inside_the_first_cores_is_open_and_the_others_are_compressed(committed, sources):
    pairs = overheads.ordered(of_kind(sources, OverheadReport))
    first, *others = overheads.inside(pairs)
    assert first in committed
    for (source, _), section in zip(pairs[1:], others, strict=True):
        assert _packed(committed, f"report-{source.name}") == section


def test_the_same_reports_give_the_same_plots(committed, sources):
    (text,) = re.findall(r'id="page-data">([^<]*)</script>', committed)
    given = json.loads(gzip.decompress(base64.b64decode(text)))["charts"]
    for chart in contents(sources).charts:
        assert set(given[chart.name]["specs"]) == set(chart.specs)
        assert given[chart.name]["data"] == json.loads(json.dumps(chart.data))


def test_a_report_that_does_not_fit_together_is_named(folder, monkeypatch):
    monkeypatch.setattr(charts, "converter", lambda: None)
    path = folder / "overhead-blackwell.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["conditions"]["operands"] = {}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"overhead-blackwell.json': damaged \(KeyError: .*; write it anew$"):
        page(folder)

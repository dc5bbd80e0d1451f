import sys

import pytest

from hwgen.errors import InputError
from hwgen.site.charts import (
    COLOURS,
    NAMES,
    Chart,
    choice,
    compiled,
    converter,
    figure,
    interval,
    library,
    percents,
    titled,
)
from hwgen.stats import Estimate


def _luminance(colour):
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("ground", ["#ffffff", "#14171b"])
def test_series_stand_out_on_both_grounds(ground):
    for colour in COLOURS:
        low, high = sorted((_luminance(colour), _luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3  # WCAG 2.2, success criterion 1.4.11


def test_percents():
    assert percents(Estimate(0.02, 0.01, 0.04)) == pytest.approx({"value": 2, "low": 1, "high": 4})
    assert percents(Estimate(0.02)) == pytest.approx({"value": 2, "low": 2, "high": 2})


def test_a_plot_has_its_controls_and_its_title(parsed, evil):
    chart = Chart("x", f"title {evil}", {}, {}, (choice("which <one>", "metric", {"a": evil, evil: "b"}),), "a note")
    found = parsed(figure(chart)).elements
    assert [name for name, _ in found] == (
        ["figure", "figcaption", "div", "label", "span", "select", "option", "option", "div", "p", "p"]
    )
    assert found[7][1] == {"value": evil}
    assert found[5][1] == {"data-param": "metric"}


def test_a_missing_package_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InputError, match=r"vl-convert-python, the extra 'site': pip install '\.\[site\]' in"):
        converter()


def test_specifications_are_compiled_and_wrong_ones_refused():
    pytest.importorskip("vl_convert", reason="the extra 'site' is not installed")
    spec = {
        "data": {"name": "rows"},
        "params": [{"name": "metric", "value": "area"}],
        "transform": [{"filter": "datum.metric === metric"}],
        "layer": interval("x", {"y": {"field": "name", "type": "nominal"}}, "overhead, %"),
    }
    found = compiled(spec)
    assert "rows" in [each["name"] for each in found["data"]]
    assert "metric" in [each["name"] for each in found["signals"]]
    assert [mark["type"] for mark in found["marks"]] == ["rule", "symbol"]
    with pytest.raises(ValueError, match="Vega-Lite to Vega conversion failed"):
        compiled({"mark": 3})


def test_titles_follow_parameters_and_names_stand_beside_their_points():
    pytest.importorskip("vl_convert", reason="the extra 'site' is not installed")
    places = {"x": {"field": "x", "type": "quantitative", "axis": titled("unit === 1 ? 'um2' : 'mW'")}}
    spec = {
        "data": {"name": "rows"},
        "params": [{"name": "unit", "value": 1}],
        "layer": [
            {"mark": "point", "encoding": places},
            {"name": NAMES, "mark": "text", "encoding": {**places, "text": {"field": "name"}}},
        ],
    }
    found = compiled(spec)
    assert {"signal": "unit === 1 ? 'um2' : 'mW'"} in [axis.get("title") for axis in found["axes"]]
    points, names = found["marks"]
    assert "transform" not in points
    (transform,) = names["transform"]
    assert (transform["type"], transform["avoidMarks"]) == ("label", [points["name"]])


def test_the_library_sets_one_name_and_loads_nothing():
    pytest.importorskip("vl_convert", reason="the extra 'site' is not installed")
    text = library()
    assert "window.vegaEmbed=" in text
    assert len(text) < 1_200_000

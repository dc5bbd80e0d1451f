import json

import pytest

from hwgen.report.schema import ExplorationReport
from hwgen.site import explorations
from hwgen.site.sources import of_kind


@pytest.fixture
def pairs(sources):
    return list(of_kind(sources, ExplorationReport))


def test_limits_are_those_of_the_json(pairs):
    ((source, _),) = pairs
    raw = [each for each in json.loads(source.content)["results"] if each["overhead"]]
    found = explorations.limits(pairs).data["limits"]
    assert [(each["metric"], each["limit"], each["value"]) for each in found] == [
        (each["metric"], each["limit"]["value"], 100 * each["overhead"]["value"]) for each in raw
    ]


def test_ways_are_all_points_with_their_means(pairs):
    ((source, _),) = pairs
    raw = json.loads(source.content)["points"]
    found = explorations.ways(pairs).data["ways"]
    assert len(found) == len(raw)
    for each, point in zip(found, raw, strict=True):
        assert each["area"] == pytest.approx(sum(point["areas_um2"]) / len(point["areas_um2"]))
        assert each["delay"] == pytest.approx(sum(point["delays_ns"]) / len(point["delays_ns"]))
        assert (each["lanes"], each["front"]) == (point["dot"], point["front"])

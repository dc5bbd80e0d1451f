import json

from hwgen.report.form import number, percent
from hwgen.report.schema import PowerReport
from hwgen.site import power
from hwgen.site.sources import of_kind
from hwgen.stats import Estimate


def test_situations_are_those_of_the_json(sources, parsed):
    pairs = list(of_kind(sources, PowerReport))
    assert len(pairs) >= 2
    plotted = power.chart(pairs).data["situations"]
    for (source, _), text in zip(pairs, power.tables(pairs), strict=True):
        raw = json.loads(source.content)
        found = parsed(text)
        (rows,) = found.tables
        assert rows[1:] == [
            [
                *(each["situation"], each["scope"]),
                *(number(each["milliwatts"][design["name"]]) for design in raw["designs"]),
                percent(Estimate(**each["overhead"])),
            ]
            for each in raw["results"]
        ]
        assert [each["value"] for each in plotted if each["report"] == source.name] == [
            100 * each["overhead"]["value"] for each in raw["results"]
        ]

import dataclasses

from hwgen.report import schema
from hwgen.site.conditions import dialog, links, shown
from hwgen.site.sources import read


def test_every_condition_stands_in_the_dialog(sources, parsed):
    for source in sources:
        text = dialog(source)
        parsed(text)
        conditions = vars(source.report)["conditions"]
        for field in dataclasses.fields(conditions):
            assert f"<summary>{field.name.replace('_', ' ')}</summary>" in text
        assert f'id="conditions-{source.name}"' in text


def test_values_are_those_of_the_report(sources):
    (source,) = (each for each in sources if each.name == "overhead-asap7")
    assert isinstance(source.report, schema.OverheadReport)
    conditions = source.report.conditions
    text = dialog(source)
    assert conditions.flow.library.name in text
    assert conditions.flow.library.sha256 in text
    assert f"<dt>clock ns</dt><dd><span>{conditions.closing['nvfp4-small']['area']['core'].clock_ns:g}</span>" in text
    assert conditions.placement["nvfp4-small"].pixels not in text


def test_what_makes_a_report_weak_is_said_first(sources):
    (source,) = (each for each in sources if each.name == "explore")
    conditions = source.report.conditions
    library = dataclasses.replace(conditions.flow.library, sha256="0" * 64)
    flow = dataclasses.replace(conditions.flow, library=library)
    report = dataclasses.replace(source.report, conditions=dataclasses.replace(conditions, flow=flow))
    earlier = dataclasses.replace(source, report=report)
    assert "Know this first" in dialog(earlier)
    assert "measured with another generic7 than the one of this version" in dialog(earlier)
    assert "measured with an earlier library" in links(earlier)
    assert not [each.name for each in sources if "measured with an earlier library" in links(each)]


def test_records_lists_and_nothing():
    cycles = schema.Cycles(settled=2032, timed=64)
    assert shown(cycles) == (
        "<dl><dt>settled</dt><dd><span>2032</span><small>cycles without delays</small></dd>"
        "<dt>timed</dt><dd><span>64</span><small>those of them with gate delays, for glitches</small></dd></dl>"
    )
    assert shown({"a": (cycles,)}).startswith("<dl><dt>a</dt><dd><ol><li><dl>")
    assert shown(("x", "<y>")) == "<span>x, &lt;y&gt;</span>"
    assert [shown(each) for each in (None, True, (), {})] == (
        ["<span>not stated</span>", "<span>yes</span>", "<span>none</span>", "<span>none</span>"]
    )
    assert shown(0.00012345678) == "<span>0.000123457</span>"


def test_names_are_escaped(folder, parsed, evil):
    (source,) = (each for each in read(folder) if each.name == "overhead")
    found = parsed(dialog(source))
    assert "img" not in [name for name, _ in found.elements]
    # It leads to its JSON, and not to itself.
    assert [each["data-json"] for _, each in found.elements if "data-json" in each] == ["overhead"]
    assert not [each for _, each in found.elements if "data-dialog" in each]
    assert parsed(links(source)).elements[1][1]["data-dialog"] == "conditions-overhead"

"""The elements of a picture."""

import xml.etree.ElementTree as ElementTree

from hwgen.package.svg import Drawing

SPACE = "{http://www.w3.org/2000/svg}"


def test_a_picture_is_xml_with_all_that_was_drawn() -> None:
    drawing = Drawing("a < b & c", 200)
    drawing.box(10, 20, 100, 40, "multiply", ["first", "x < y"])
    drawing.register(10, 70, 100, "sums")
    drawing.arrow((60, 60), (60, 90))
    drawing.region(0, 0, 150, 150)
    root = ElementTree.fromstring(drawing.svg(160))
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("200", "160", "0 0 200 160")
    assert root.findtext(f"{SPACE}title") == "a < b & c"
    assert [text.text for text in root.iter(f"{SPACE}text")] == ["first", "x < y", "sums"]
    page, region, box, bar = root.findall(f"{SPACE}rect")
    assert page.get("height") == "160"
    assert region.get("stroke-dasharray")  # behind all that stands in it
    assert (box.get("x"), box.get("width"), bar.get("height")) == ("10", "100", "7")
    (way,) = root.findall(f"{SPACE}path")
    assert way.get("d") == "M60 60 L60 90"

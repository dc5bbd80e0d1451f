"""Columns with rows, buses and registers."""

import xml.etree.ElementTree as ElementTree

from hwgen.package.svg import Drawing
from hwgen.package.swimlanes import Bus, Column, Row, draw

SPACE = "{http://www.w3.org/2000/svg}"


def test_a_bus_ends_in_a_box_in_a_register_or_in_what_goes_down() -> None:
    drawing = Drawing("three", 400)
    columns = {
        "a": Column(["a"], 10, 100, "plain", {"r": 3}, {"first": ["A"]}),
        "b": Column(["b"], 140, 100, "plain", {"r": 5}, {"second": ["B"]}),
    }
    buses = [Bus("first", "a", ["b"], "into r"), Bus("second", "b", ["a"], "joins"), Bus("second", "a", ["b"], "box")]
    end = draw(drawing, columns, [Row("first", "r", 1), Row("second")], buses, 0)
    root = ElementTree.fromstring(drawing.svg(end))
    boxes = {(box.get("height"), box.get("x")): float(box.get("y", "")) for box in root.iter(f"{SPACE}rect")}
    bar = boxes["7", "140"]
    assert bar == boxes["7", "10"]
    ends = [path.get("d", "").split("L")[-1].strip() for path in root.iter(f"{SPACE}path")][1:]
    assert f"158 {bar:g}" in ends  # the first bus, from the left
    assert any(way.startswith("60 ") and float(way.split()[1]) > bar + 7 for way in ends)  # the second, to the middle
    box = boxes["30", "140"]
    assert f"158 {box:g}" in ends
    assert f"190 {box:g}" in ends  # and what goes down there
    said = [text.text for text in root.iter(f"{SPACE}text")]
    assert {"3", "5", "r", "cycle 1", "into r", "joins", "box"} <= set(said)

"""The picture of a quantiser: all of its structure, and nothing on top of one another."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from hwgen.config.quantiser import QUANTISERS, SELECTIONS, QuantiserConfig
from hwgen.package.quantiser_diagram import quantiser_svg
from hwgen.package.quantiser_structure import units

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
SPACE = "{http://www.w3.org/2000/svg}"
SHORT = QuantiserConfig("short", pipeline=("quotients", "bounds", "sums"))
DRAWN = [*(config for config in QUANTISERS.values() if not config.name.endswith("-bf16")), SHORT]
_WIDE = 7.2
"""Pixels of a letter, more than the mean of the font has."""


def words(root: ElementTree.Element) -> list[str]:
    return [found.text or "" for found in root.iter(f"{SPACE}text")]


def areas(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Left, right, upper and lower end of each text."""
    found = []
    for text in root.iter(f"{SPACE}text"):
        x, y, width = float(text.get("x", "")), float(text.get("y", "")), _WIDE * len(text.text or "")
        left = {"start": x, "middle": x - width / 2, "end": x - width}[text.get("text-anchor", "")]
        found.append((left, left + width, y - 6, y + 6))
    return found


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*-quantiser.svg")), ids=lambda path: path.stem)
def test_a_committed_picture_is_of_the_present_quantiser(path: Path) -> None:
    """If not: hwgen quantiser diagram NAME --out docs/pictures"""
    assert path.read_text(encoding="utf-8") == quantiser_svg(QUANTISERS[path.stem])


@pytest.mark.parametrize("config", DRAWN, ids=lambda config: config.name)
def test_all_modules_and_registers_are_drawn(config: QuantiserConfig) -> None:
    root = ElementTree.fromstring(quantiser_svg(config))
    said, found = words(root), units(config)
    titles = [f"{name} x {unit.count}" for name, unit in found.items()]
    assert sorted(word for word in said if re.fullmatch(r"\w+ x \d+", word)) == sorted(titles)
    bars = [rect for rect in root.iter(f"{SPACE}rect") if rect.get("height") == "7"]
    assert len(bars) == sum(len(unit.registers) for name, unit in found.items() if name != "errorless_lane")
    held = [str(bits) for name, unit in found.items() if name != "errorless_lane" for bits in unit.registers.values()]
    assert sorted(word for word in said if word.isdigit()) == sorted(held)
    assert [word for word in said if word.startswith("cycle ")] == [f"cycle {n + 1}" for n in range(config.latency)]
    registers = [*config.registers, "result"]
    assert [word for word in said if word in registers] == [*registers, "result"]  # the last one is the stream
    for candidate in config.candidates:
        assert f"{candidate.element.name} with top {candidate.top}" in said[1]
    assert f"Latency: {config.latency} cycles" in said[1]


@pytest.mark.parametrize("config", DRAWN, ids=lambda config: config.name)
def test_every_width_is_that_of_a_port(config: QuantiserConfig) -> None:
    """Words of the form NAME BITS, but for titles, cycles and the head."""
    ports = {(port, bits) for unit in units(config).values() for port, bits in unit.ports.items()}
    names = {port for port, _ in ports}
    root = ElementTree.fromstring(quantiser_svg(config))
    shown = {
        (name, int(bits))
        for word in words(root)[5:]
        if not re.fullmatch(r"\w+ x \d+", word)
        for name, bits in re.findall(r"(\w+) (\d+)", word)
        if name in names
    }
    assert shown <= ports
    lanes = {port for port, _ in shown if re.fullmatch(r"(place|bound|high|value)\d(_\d+)?", port)}
    inputs = units(config)["quantiser_lane"].ports
    assert lanes == {port for port in inputs if re.fullmatch(r"(place|bound|high|value)\d(_\d+)?", port)}


@pytest.mark.parametrize("config", DRAWN, ids=lambda config: config.name)
def test_no_words_overlap_or_leave_the_frame(config: QuantiserConfig) -> None:
    root = ElementTree.fromstring(quantiser_svg(config))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    found = areas(root)
    for left, right, top, bottom in found:
        assert left >= 0
        assert right <= width
        assert top >= 0
        assert bottom <= height
    texts = words(root)
    for one in range(len(found)):
        for other in range(one):
            a, b = found[one], found[other]
            assert not (a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]), (texts[one], texts[other])


def test_the_rule_is_said() -> None:
    said = {}
    for selection in SELECTIONS:
        root = ElementTree.fromstring(quantiser_svg(QuantiserConfig("a", selection=selection)))
        said[selection] = next(word for word in words(root) if word.startswith("The second candidate"))
    assert len(set(said.values())) == len(SELECTIONS)
    assert "where no number is from 12/16" in said["gap"]
    other = quantiser_svg(QUANTISERS["four-over-six-gap-quantiser"])
    assert "where a number is from 12/16" in other
    assert "The second candidate" not in quantiser_svg(QUANTISERS["nvfp4-quantiser"])


def test_the_other_kind_of_lanes_is_told_apart() -> None:
    config = QUANTISERS["mixfp4-sampled-error-quantiser"]
    lane, other = (units(config)[name].registers for name in ("quantiser_lane", "errorless_lane"))
    assert other["errors"] < lane["errors"]
    (said,) = [word for word in words(ElementTree.fromstring(quantiser_svg(config))) if "An errorless_lane" in word]
    for register, bits in lane.items():
        assert (f"{other[register]} in {register}" in said) == (other[register] != bits)

"""What is drawn is what is configured; the committed pictures are those of the present cores."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from hwgen.config import NAMED, PIPELINE_REGISTERS, TensorCoreConfig, named
from hwgen.package.diagram import core_svg, datapath_svg

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
DRAWN = {"core": core_svg, "datapath": datapath_svg}
EXACT = TensorCoreConfig("exact", "nvfp4", "nvfp4", 1, 2, 1, numerics="exact", pipeline=("sums", "aligned", "normal"))


def words(svg: str) -> list[str]:
    """Lines of text, in the order they are drawn."""
    return [found.text or "" for found in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def registers(svg: str) -> int:
    """Black bars."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
    return sum(each.get("height") == "7" for each in found)


@pytest.mark.parametrize(
    "path", sorted({*PICTURES.glob("*-core.svg"), *PICTURES.glob("*-datapath.svg")}), ids=lambda path: path.stem
)
def test_a_committed_picture_is_of_the_present_core(path: Path) -> None:
    """If not: hwgen diagram --config NAME --out docs/pictures"""
    name, _, kind = path.stem.rpartition("-")
    assert path.read_text(encoding="utf-8") == DRAWN[kind](NAMED[name])


@pytest.mark.parametrize("config", [*NAMED.values(), EXACT], ids=lambda config: config.name)
def test_a_datapath_has_the_registers_of_the_pipeline(config: TensorCoreConfig) -> None:
    svg = datapath_svg(config)
    said = words(svg)
    # Those within a block are named there. Where products are cut to a window ``tree`` stands between two blocks.
    whole = config.bounds.window is None
    bars = [name for name in config.pipeline if name != "factors" and not (whole and name == "tree")]
    own = ["result", "sum"] if config.exact else ["result"]
    own += ["resolved"] if config.carry_save else []
    assert sorted(word for word in said if word in {*PIPELINE_REGISTERS, *own}) == sorted([*bars, *own])
    assert registers(svg) == len(bars) + len(own)
    assert any(word.startswith("register tree") for word in said) == (whole and "tree" in config.pipeline)
    begins = "block sums, " if whole else "two words of "
    wide = "in two words" if config.carry_save else f"{config.bounds.sum_width} bits"
    assert any(word.startswith(begins) and wide in word for word in said)
    assert ("1 cycle" if config.interleave == 1 else f"{config.interleave} cycles") in " ".join(said)


@pytest.mark.parametrize("config", [*NAMED.values(), EXACT], ids=lambda config: config.name)
def test_no_words_stand_on_the_edge_of_a_region(config: TensorCoreConfig) -> None:
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(datapath_svg(config))
    regions = [rect for rect in root.iter(f"{space}rect") if rect.get("stroke-dasharray")]
    assert regions
    for region in regions:
        left, top, height = (float(region.get(name, "")) for name in ("x", "y", "height"))
        for text in root.iter(f"{space}text"):
            # What stands beside a region has its middle there, too.
            if float(text.get("x", "")) > left:
                assert all(abs(float(text.get("y", "")) - edge) > 7 for edge in (top, top + height)), text.text


def test_a_register_that_is_left_out_is_not_drawn() -> None:
    core = named("mixfp4-small")
    less = replace(core, pipeline=tuple(name for name in core.pipeline if name != "total"))
    assert registers(datapath_svg(less)) == registers(datapath_svg(core)) - 1
    assert "4 tiles by turns" in words(datapath_svg(core))
    assert "3 tiles by turns" in words(datapath_svg(less))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 2), (5, 64)])
def test_an_array_is_drawn_with_dots_where_it_is_large(rows: int, columns: int) -> None:
    said = words(core_svg(replace(named("mixfp4-small"), rows=rows, columns=columns)))
    across, up = min(columns, 4) - (columns > 4), min(rows, 4) - (rows > 4)
    assert said.count("element") == across * up
    assert f"{rows - 1}, {columns - 1}" in said
    assert [word for word in said if word.startswith("decoder A")][-1] == f"decoder A{rows - 1}"
    assert f"C, {32 * rows * columns} bits" in said

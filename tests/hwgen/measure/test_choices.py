"""Lanes and recipes from a file."""

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import named
from hwgen.errors import InputError
from hwgen.measure.choices import choices_in
from hwgen.measure.conditions import fingerprint
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.recorded import selected_by
from hwgen.measure.requests import OverheadRequest
from hwgen.report import schema

from .test_recorded import ASKED, CELLS, PAIR, REPORTS

SLOTTED = named("nvfp4-multi-small"), named("mixfp4-multi-small")


def written(path: Path, closing: dict[str, dict[str, dict[str, schema.Closing]]]) -> Path:
    """A file that says what a report does, each module by itself."""
    lines = []
    for name, by_purpose in closing.items():
        for purpose, found in by_purpose.items():
            core = found["core"]
            lines += [f"[{name}.{purpose}]", f'lanes = "{core.lanes}"']
            lines += [] if core.slot is None else [f'slot = "{core.slot}"']
            lines.append(f"[{name}.{purpose}.modules]")
            recipes = core.recipes | found["lane array"].recipes
            lines += [f'{module} = "{how}"' for module, how in recipes.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "pair"), [("overhead", PAIR), ("overhead-multi", SLOTTED)])
def test_a_file_says_what_a_report_does(name, pair, tmp_path: Path) -> None:
    report = schema.load(REPORTS / f"{name}.json")
    assert isinstance(report, schema.OverheadReport)
    conditions = report.conditions
    request = OverheadRequest(
        *pair, ASKED.stimulus, physical=ASKED.physical, lanes=conditions.lanes, slots=conditions.slots or ()
    )
    known = selected_by(report, request, CELLS)
    path = written(tmp_path / "mine; $x.toml", conditions.closing)
    found = choices_in(path, pair, CELLS)
    assert (found.configs, found.chosen) == (known.configs, known.chosen)
    assert {key: how for key, (_, how) in found.lane_arrays.items()} == {
        key: how for key, (_, how) in known.lane_arrays.items()
    }
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert found.report == f"mine; $x.toml (sha256 {digest})"


def test_what_is_left_out(tmp_path: Path) -> None:
    """Lanes and slot are those of the configuration; one recipe may serve all modules but some."""
    path = tmp_path / "short.toml"
    tables = [f'[{config.name}.{purpose}]\nrecipe = "speed"\n' for config in SLOTTED for purpose in PURPOSES]
    path.write_text("".join(tables) + 'modules.dot_product = "adders"\nmodules.lane_array = "area"\n')
    found = choices_in(path, SLOTTED, CELLS)
    for config in SLOTTED:
        for purpose in PURPOSES:
            key = config.name, purpose
            last = key == ("mixfp4-multi-small", "energy")
            assert found.configs[key] == config
            others = {how.name for module, how in found.chosen[key].items() if module != "dot_product"}
            assert others == {"speed"}
            assert found.chosen[key]["dot_product"].name == ("adders" if last else "speed")
            assert "lane_array" not in found.chosen[key]
            assert found.lane_arrays[key][1].name == ("area" if last else "speed")


WHOLE = "".join(f'[{config.name}.{purpose}]\nrecipe = "speed"\n' for config in PAIR for purpose in PURPOSES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not valid TOML"),
        ("", r"table \[nvfp4-small\] is missing; tables there: none"),
        ("nvfp4-small = 3", "nvfp4-small = 3: must be a table"),
        (
            WHOLE.replace("[mixfp4-small.energy]", "[mixfp4.energy]"),
            r"table \[mixfp4-small.energy\] is missing; tables there: area",
        ),
        (
            WHOLE.replace("mixfp4-small.energy", "mixfp4-small.power"),
            r"\[mixfp4-small\]: unknown key 'power'; known are area, energy",
        ),
        (WHOLE + '[nvfp4-small]\nlanes = "signed"', r"\[nvfp4-small\]: unknown key 'lanes'; known are area, energy"),
        (WHOLE + "recipes = 1", r"\[mixfp4-small.energy\]: unknown key 'recipes'; did you mean 'recipe'"),
        (WHOLE + 'lanes = "merge"', r"\[mixfp4-small.energy\]: lanes = 'merge'"),
        (WHOLE + "lanes = 3", r"\[mixfp4-small.energy\]: lanes = 3"),
        (WHOLE + 'slot = "split"', r"\[mixfp4-small.energy\]: slot = 'split': mixfp4-small has none; leave it out"),
        (WHOLE.replace('"speed"', '"fast"'), r"\[nvfp4-small.area\]: recipe = 'fast': must be one of area, "),
        (WHOLE + "modules = 3", "mixfp4-small.energy.modules = 3: must be a table"),
        (
            WHOLE + 'modules.dot_products = "area"',
            r"\[mixfp4-small.energy.modules\]: unknown key 'dot_products'; did you mean 'dot_product'",
        ),
        (WHOLE + "modules.dot_product = 1", r"\[mixfp4-small.energy\]: modules.dot_product = 1: must be one of area, "),
        (
            WHOLE.removesuffix('recipe = "speed"\n') + 'modules.dot_product = "area"',
            r"\[mixfp4-small.energy\]: recipe is missing; tensor_core, .*, lane_array have none in modules",
        ),
    ],
)
def test_refused(text, message, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        choices_in(path, PAIR, CELLS)
    assert str(caught.value).startswith(f"--choices {str(path)!r}: ")
    assert "\n" not in str(caught.value)


def test_a_core_with_a_slot_keeps_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE.replace("small", "multi-small") + 'slot = "none"')
    with pytest.raises(InputError, match="slot = 'none': mixfp4-multi-small has one; give another"):
        choices_in(path, SLOTTED, CELLS)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd on this system")
def test_a_pipe_is_read_once() -> None:
    """What tells one content from another is of what was read."""
    end, begin = os.pipe()
    os.write(begin, WHOLE.encode())
    os.close(begin)
    try:
        found = choices_in(Path(f"/dev/fd/{end}"), PAIR, CELLS)
    finally:
        os.close(end)
    assert found.report == f"{end} (sha256 {hashlib.sha256(WHOLE.encode()).hexdigest()[:12]})"


def test_the_file_is_a_part_of_the_question(tmp_path: Path) -> None:
    """A report that is kept names the file that it was made by."""
    path = tmp_path / "mine.toml"
    asked = []
    for text in (WHOLE, WHOLE + "# the same\n"):
        path.write_text(text)
        asked.append(dataclasses.replace(ASKED, selected=choices_in(path, PAIR, CELLS)))
    assert len({fingerprint(CELLS, request) for request in asked}) == 2


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        choices_in(tmp_path / "none.toml", PAIR, CELLS)


def test_recipes_that_a_library_is_not_for(tmp_path: Path) -> None:
    """Without adder cells there is no recipe for them."""
    cells = reader.load(libraries.path("generic7")).without(["FA*", "HA*"])
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE.replace('"speed"', '"adders"'))
    with pytest.raises(InputError, match=r"recipe = 'adders': must be one of"):
        choices_in(path, PAIR, cells)

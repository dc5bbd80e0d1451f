"""What the golden model knows of the generator's formats."""

import dataclasses
from pathlib import Path

import pytest

from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS, NVFP4
from sim import golden
from sim.counterpart import counterpart, described, resolved

FILE = '[formats.mine]\nelements = ["E2M1"]\nscale = "UE4M3"\nblock = 16\n'


def test_formats_of_the_catalogue_are_found_by_name() -> None:
    assert all(counterpart(form) is golden.CATALOGUE[name] for name, form in BLOCK_FORMATS.items())


def test_formats_of_a_file_are_read_from_its_text() -> None:
    form = dataclasses.replace(NVFP4, name="mine", definition=FILE)
    assert counterpart(form) == golden.BlockFormat("mine", counterpart(NVFP4).elements, counterpart(NVFP4).scale, None)
    with pytest.raises(InputError, match="not valid TOML"):
        counterpart(dataclasses.replace(form, definition="x ="))


def test_the_golden_model_is_asked_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE + "nonzero = 3")
    with pytest.raises(InputError, match=r"mine.toml': formats.mine: nonzero = 3: must be true or false"):
        resolved(str(path))
    path.write_text(FILE)
    config = resolved(str(path))
    assert config.a.name == "mine"
    assert described(str(path)) == {"mine": counterpart(config.a)}

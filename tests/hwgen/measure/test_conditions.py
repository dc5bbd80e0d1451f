import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS
from hwgen.mapping.yosys import RECIPES
from hwgen.measure import conditions
from hwgen.measure.code import of_code
from hwgen.measure.conditions import check_pair, fingerprint
from hwgen.measure.netlists.stimulus import Stimulus

CELLS = reader.load(libraries.path("generic7"))


def test_the_fingerprint_knows_what_decides_a_result() -> None:
    pair = NAMED["nvfp4-small"], NAMED["mixfp4-small"]
    given = [CELLS, *pair, None, None, Stimulus(), 16]
    other = {0: CELLS.without(["FA_X1"]), 1: pair[1], 3: [RECIPES["area"]], 4: 5.0, 5: Stimulus(seed=2), 6: 8}
    keys = {fingerprint(*given)} | {
        fingerprint(*[other.get(place, value) if place == changed else value for place, value in enumerate(given)])
        for changed in other
    }
    assert len(keys) == len(other) + 1
    assert fingerprint(*given) in keys


CODE = """
def twice(x):
    return 2 * x
"""


def test_what_is_said_of_code_does_not_change_what_it_does() -> None:
    same = """
'''A module.'''


# A comment.
def twice(x):
    "Twice x."
    return 2 * x  # twice


"About twice."
"""
    assert of_code(same) == of_code(CODE)
    assert of_code(CODE.replace("2", "3")) != of_code(CODE)
    assert of_code(CODE.replace("2 * x", "'Twice x.'")) != of_code(CODE)
    assert of_code(CODE.replace("twice", "double")) != of_code(CODE)


def test_code_is_read_once_for_each_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does decides, be its digest known or not; a text that is known is not read as syntax again."""
    package = tmp_path / "package"
    package.mkdir()
    module = package / "module.py"
    read = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(conditions.own, "of_code", lambda text: read.append(text) or of_code(text))
    for name in ("hwgen", "sim"):
        monkeypatch.setattr(conditions, name, SimpleNamespace(__path__=[str(package)]))

    def digest(text: str) -> bytes:
        module.write_text(text)
        conditions._code.cache_clear()
        return conditions._code()

    try:
        first = digest(CODE)
        assert digest(CODE) == first
        assert read == [CODE]
        assert digest(f"# Twice.{CODE}") == first
        assert digest(CODE.replace("2", "3")) != first
        assert len(read) == 3
        for entry in (tmp_path / "cache" / "hwgen" / "code").rglob("*.gz"):
            entry.write_bytes(b"damaged")
        assert digest(CODE) == first
    finally:
        conditions._code.cache_clear()


def test_blocks_of_other_sizes_make_another_shape() -> None:
    long = dataclasses.replace(BLOCK_FORMATS["nvfp4"], name="long", size=32)
    small = NAMED["nvfp4-small"]
    with pytest.raises(InputError, match=r"nvfp4-small and long differ in depth \(16 and 32\)"):
        check_pair(small, dataclasses.replace(small, name="long", a=long, b=long))

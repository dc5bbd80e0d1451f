"""docs/golden.md and docs/unscaled.md say what happens."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(("page", "least"), [("golden", 30), ("unscaled", 10)])
def test_the_examples_print_what_they_say(page, least):
    failed, tried = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False, encoding="utf-8")
    assert tried > least
    assert failed == 0

"""docs/golden.md says what happens."""

import doctest
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_examples_print_what_they_say():
    failed, tried = doctest.testfile(str(DOCS / "golden.md"), module_relative=False, encoding="utf-8")
    assert tried > 30
    assert failed == 0

"""The form of the report: every outcome has its count. ``cli/test_schemas.py`` checks the committed one."""

from typing import get_args, get_type_hints

from hwgen.report.mutants import FiguresJson, Outcome


def test_every_outcome_is_counted() -> None:
    hints = get_type_hints(FiguresJson)
    assert list(get_type_hints(hints["outcomes"])) == list(get_args(Outcome))

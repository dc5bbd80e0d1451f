from pathlib import Path

from hwgen.cli import COMMANDS
from hwgen.cli.reference import page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def test_the_page_is_of_this_parser() -> None:
    """If not: python -m hwgen.cli.reference > docs/reference/cli.md"""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_command_has_a_section() -> None:
    text = page()
    for command in COMMANDS:
        assert f"\n## hwgen {command}\n" in text
    assert "`--stalls FLOAT`" in text
    assert "_HWGEN_COMPLETE=bash_source" in text

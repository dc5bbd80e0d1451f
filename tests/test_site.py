"""The documentation as a site: every page has a place in its navigation. `make docs` builds it, warnings as errors."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_navigation_leads_to_every_page() -> None:
    text = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"([\w/-]+\.md)$", text.partition("\nnav:\n")[2], re.MULTILINE)
    assert len(named) == len(set(named))
    pages = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")}
    # Decisions have an index of their own.
    pages -= set((ROOT / "docs" / "decisions").glob("0*.md"))
    assert {*named} == {path.relative_to(ROOT).as_posix() for path in pages}


def test_the_index_of_decisions_has_them_all() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"^- \[(.*)\]\((.*)\)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    there = sorted(folder.glob("0*.md"))
    assert listed == [(path.read_text(encoding="utf-8").splitlines()[0][2:], path.name) for path in there]

"""Lays the pages out for `make docs`. They keep their places in the tree: a link leads to the same page as on GitHub.

Copied are README and its neighbours, docs/, reports/ with their plots, and every file that one of these pages links to.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build" / "docs" / "source"
_LINK = re.compile(r"\]\(([^)#\s]+)")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Markdown files of the site."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "reports").glob("*.md")])


def linked(page: Path) -> set[Path]:
    """Files of ours that a page links to."""
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    targets = (page.parent / target for target in _LINK.findall(text) if "://" not in target)
    return {target.resolve() for target in targets if target.is_file()}


def main() -> None:
    """Copy everything anew."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    plots = (ROOT / "reports").glob("*.png")
    for path in {*pages(), *plots, *(found for page in pages() for found in linked(page))}:
        place = SOURCE / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


if __name__ == "__main__":
    main()

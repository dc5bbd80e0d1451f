"""The committed reports, one of formats that is small enough to read, and one whose names are not nice."""

import dataclasses
import importlib.util
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hwgen.report import schema
from hwgen.report.beside import beside
from hwgen.site.page import page
from hwgen.site.sources import Source, read

ROOT = Path(__file__).parents[3]
REPORTS = ROOT / "reports"
EVIL = "<img src=x onerror=alert(1)>\"'&</script>$"
"""A name that would be code where it is not escaped."""

_SPEC = importlib.util.spec_from_file_location("formats_table", ROOT / "tests" / "hwgen" / "report" / "conftest.py")
assert _SPEC is not None
assert _SPEC.loader is not None
_TABLE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_TABLE)
formats_report = _TABLE.formats_report


class Page(HTMLParser):
    """What a browser would make of HTML: elements, and the cells of each table."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.captions: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], "elements that do not end"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("br", "input", "meta", "link"):
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag == "caption":
            self.captions.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self._open or "th" in self._open:
            self.tables[-1][-1][-1] += data
        if self._open[-1:] == ["caption"]:
            self.captions[-1] += data

    def table(self, caption: str) -> list[list[str]]:
        """Rows of the one table of this caption, the header first."""
        (place,) = (place for place, each in enumerate(self.captions) if each == caption)
        return self.tables[place]


@pytest.fixture(scope="session")
def parsed() -> type[Page]:
    return Page


@pytest.fixture(scope="session")
def evil() -> str:
    return EVIL


@pytest.fixture(scope="session")
def reports() -> Path:
    return REPORTS


@pytest.fixture(scope="session")
def sources() -> list[Source]:
    return read(REPORTS)


@pytest.fixture(scope="session")
def committed() -> str:
    """The page of the committed reports."""
    pytest.importorskip("vl_convert", reason="the extra 'site' is not installed")
    return page(REPORTS).decode()


@pytest.fixture
def folder(tmp_path: Path, formats_report: schema.FormatsReport) -> Path:
    """A folder of one report of each kind, formats among them; two have names that are not nice."""
    found = tmp_path / "reports"
    found.mkdir()
    for name in ("explore", "power", "cost-decode", "overhead-blackwell"):
        (found / f"{name}.json").write_bytes((REPORTS / f"{name}.json").read_bytes())
    text = (REPORTS / "overhead.json").read_text(encoding="utf-8")
    spoiled = text.replace("mixfp4-small", json.dumps(EVIL)[1:-1]).replace('"generic7"', json.dumps(EVIL))
    (found / "overhead.json").write_text(spoiled, encoding="utf-8")
    (found / "formats.json").write_text(schema.as_text(formats_report), encoding="utf-8")
    conditions = formats_report.conditions
    flow = dataclasses.replace(conditions.flow, library=dataclasses.replace(conditions.flow.library, name=EVIL))
    other = dataclasses.replace(formats_report, conditions=dataclasses.replace(conditions, flow=flow))
    both = beside({"formats.json": formats_report, "formats-evil.json": other})
    (found / "formats-libraries.json").write_text(schema.as_text(both), encoding="utf-8")
    (found / "another.json").write_text('{"some": "thing"}', encoding="utf-8")
    return found

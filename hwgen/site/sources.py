"""The reports of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hwgen.errors import InputError
from hwgen.report import schema

__all__ = ["Source", "of_kind", "read"]

Kind = TypeVar("Kind", bound=schema.Report)


@dataclass(frozen=True)
class Source:
    """A report, and the file it is from.

    Parameters
    ----------
    path
        Of the JSON file.
    content
        Its bytes.
    report
        What they say.
    """

    path: Path
    content: bytes
    report: schema.Report

    @property
    def name(self) -> str:
        """Name of the file, without its ending."""
        return self.path.stem


def read(folder: Path) -> list[Source]:
    """All reports of a folder, by name; JSON files that are something else are left out.

    Raises
    ------
    InputError
        There is no such folder, no report in it, or one that is damaged or of another schema version.
    """
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r}: no folder of reports; 'hwgen compare' writes reports, --reports says where")
    found = []
    for path in sorted(folder.glob("*.json"), key=lambda each: each.stem):
        try:
            content = schema.read(path)
            if schema.is_report(content):
                found.append(Source(path, path.read_bytes(), schema.from_json(content)))
        except InputError as error:
            raise InputError(f"report {str(path)!r}: {error}") from None
    if not found:
        raise InputError(f"no report in {str(folder)!r}: 'hwgen compare' writes one")
    return found


def of_kind(sources: Iterable[Source], kind: type[Kind]) -> Iterator[tuple[Source, Kind]]:
    """Those of one kind, each with its report."""
    for source in sources:
        if isinstance(source.report, kind):
            yield source, source.report

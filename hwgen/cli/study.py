"""What the commands that synthesise two designs and write a report have in common."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hwgen.cli.output import print_table, progress
from hwgen.errors import InputError
from hwgen.files import cache_directory, check_file, write_all
from hwgen.measure.requests import FormatsRequest, OverheadRequest

if TYPE_CHECKING:
    from hwgen.cells.library import Library
    from hwgen.mapping.cache import Cache
    from hwgen.measure.netlists.flow import Flow
    from hwgen.measure.requests import ExploreRequest, PowerRequest
    from hwgen.report.schema import Report

    Pair = OverheadRequest | ExploreRequest | PowerRequest

__all__ = ["Settings", "check_files", "default_stem", "found_before", "reported", "written"]

_Request = TypeVar("_Request", OverheadRequest, FormatsRequest)
_Found = TypeVar("_Found")

_LONGEST = 200
_SUFFIXES = (".json", ".md", ".csv", ".png", "-placement.png", "-error.png")


@dataclass(frozen=True)
class Settings:
    """What `hwgen.cli.options.measurement` gives, but for the designs: how to measure, and where to write."""

    library: str | None
    liberty: tuple[Path, ...]
    dont_use: tuple[str, ...]
    no_cache: bool
    jobs: int
    time_limit: float | None
    backend: str | None
    out: Path
    stem: str | None
    as_json: bool

    @cached_property
    def cells(self) -> Library:
        """The library that was chosen."""
        from hwgen.cells import libraries, reader

        if self.liberty and self.library is not None:
            raise InputError(f"--library {self.library}: --liberty gives the library; leave one of them out")
        named = libraries.names()[0] if self.library is None else self.library
        paths = list(self.liberty) or [libraries.path(named)]
        return reader.load(paths).without(self.dont_use)

    def prepared(self, request: Pair | FormatsRequest) -> tuple[Library, str]:
        """The library, and the name of the report; where that goes is checked first."""
        if self.stem is not None:
            check_files(self.out, self.stem)
            return self.cells, self.stem
        assert not isinstance(request, FormatsRequest)  # that command has a name for its report
        stem = default_stem(request, self.cells)
        check_files(self.out, stem)
        return self.cells, stem


def default_stem(request: Pair, library: Library) -> str:
    """Name of a report that says what is compared, so that no other report is written over."""
    gated = "-gated" if request.baseline.clock_gating and request.candidate.clock_gating else ""
    text = f"{request.candidate.name}-over-{request.baseline.name}-{library.name}{gated}"
    return re.sub(r"[^\w.+-]+", "-", text)[:_LONGEST]


def check_files(out: Path, stem: str, option: str = "--name") -> None:
    """Check where a report goes, before any long work; ``option`` gave the stem."""
    plain = Path(stem).name == stem and stem not in ("", ".", "..") and stem.isprintable()
    if not plain or len(os.fsencode(stem)) > _LONGEST:
        raise InputError(f"{option} {stem!r}: must be a plain file name of at most {_LONGEST} bytes")
    for suffix in _SUFFIXES:
        check_file(out / f"{stem}{suffix}")


def found_before(request: _Request, settings: Settings, found: Callable[[Path, _Request, Library], _Found]) -> _Found:
    """What a function of `hwgen.measure.recorded` finds in the reports that come with hwgen."""
    cells, _ = settings.prepared(request)
    from hwgen.report.shipped import shipped

    return found(shipped(), request, cells)


def reported(
    request: Pair | FormatsRequest,
    document: Callable[[Flow], Report],
    settings: Settings,
    more: Callable[[Any, Flow], Mapping[str | Path, bytes]] = lambda report, flow: {},
) -> None:
    """Make a report, or take it from the cache; write its files, print its summary.

    Parameters
    ----------
    request
        What is asked for; with the library it is the key of the cache.
    document
        Measures, and gives the report.
    settings
        Library, processes, files.
    more
        Gives further files of a report, by what follows its name, or by paths of their own.
    """
    cells, stem = settings.prepared(request)
    from hwgen.mapping.cache import Cache
    from hwgen.mapping.yosys import TIME_LIMIT
    from hwgen.measure.conditions import fingerprint
    from hwgen.measure.netlists.flow import Flow
    from hwgen.report import schema

    kept = Cache(None if settings.no_cache else cache_directory("synthesis"))
    digest = fingerprint(cells, request)
    # A wrong back end is named also where there is nothing left to run.
    with _backend(settings.backend):
        known = kept.get(digest)
        with progress() as update:
            flow = Flow(cells, kept.directory, settings.jobs, settings.time_limit or TIME_LIMIT, update)
            if known is None:
                report = document(flow)
                kept.put(digest, schema.to_json(report))
            else:
                report = schema.from_json(known)
            shown = _shown(report, stem, kept, digest)
            try:
                further = {
                    place if isinstance(place, Path) else settings.out / f"{stem}{place}": content
                    for place, content in more(report, flow).items()
                }
            except InputError:
                # What was measured is not lost.
                _write(report, shown, settings.out, stem, settings.as_json, {})
                raise
    _write(report, shown, settings.out, stem, settings.as_json, further)
    for sentence in shown.findings:
        click.echo(f"hwgen: {sentence}", err=True)


def written(report: Report, out: Path, stem: str, as_json: bool, further: dict[Path, bytes]) -> None:
    """Write a report in all its forms, with further files; print it or its summary."""
    _write(report, _Shown.of(report, stem), out, stem, as_json, further)


@dataclass(frozen=True)
class _Shown:
    """What follows from the JSON of a report.

    Parameters
    ----------
    files
        By what follows the report's name.
    header, rows
        Its summary.
    findings
        What a reader should know before relying on it.
    """

    files: Mapping[str, bytes]
    header: list[str]
    rows: list[list[str]]
    findings: list[str]

    @classmethod
    def of(cls, report: Report, stem: str) -> _Shown:
        from hwgen.report.check import findings
        from hwgen.report.kinds import rendered, summary

        files = {path.name.removeprefix(stem): content for path, content in rendered(report, Path(), stem).items()}
        return cls(files, *summary(report), findings(report))


def _shown(report: Report, stem: str, kept: Cache, digest: str) -> _Shown:
    """What follows from a report that is kept by a digest. It is kept, too: pandas and matplotlib take seconds."""
    tools = " ".join(f"{name} {version(name)}" for name in ("matplotlib", "pandas"))
    key = hashlib.sha256(f"shown {digest} {stem} {tools}".encode()).hexdigest()
    if (known := kept.get(key)) is not None:
        return _Shown(**known | {"files": {name: base64.b64decode(text) for name, text in known["files"].items()}})
    shown = _Shown.of(report, stem)
    kept.put(key, vars(shown) | {"files": {name: base64.b64encode(of).decode() for name, of in shown.files.items()}})
    return shown


def _write(report: Report, shown: _Shown, out: Path, stem: str, as_json: bool, further: Mapping[Path, bytes]) -> None:
    from hwgen.report.schema import as_text

    text = as_text(report)
    files = {out / f"{stem}{suffix}": content for suffix, content in shown.files.items()}
    files = {out / f"{stem}.json": text.encode(), **files, **further}
    write_all(files)
    if as_json:
        click.echo(text, nl=False)
    else:
        print_table(shown.header, shown.rows)
        click.echo("  ".join(map(str, files)))


@contextmanager
def _backend(name: str | None) -> Iterator[None]:
    """What joblib runs processes with inside of the context."""
    if name is None:
        yield
        return
    from joblib import parallel, parallel_config

    # The others of its own cannot give results in the order they are done.
    known = sorted({"loky", "threading", "sequential", *parallel.EXTERNAL_BACKENDS})
    if name not in known:
        raise InputError(f"--backend {name!r}: joblib knows {', '.join(known)}")
    with ExitStack() as stack:
        try:
            if name == "dask":
                # Of the cluster that Dask is set up for, or of one on this machine.
                stack.enter_context(import_module("distributed").Client())
            stack.enter_context(parallel_config(name))
        except (ImportError, OSError, ValueError) as error:
            raise InputError(f"--backend {name!r}: {' '.join(str(error).split())}") from None
        yield

"""``hwgen report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from hwgen.cli.options import REPORTS, given, out
from hwgen.cli.study import check_files, written
from hwgen.cli.types import FILE, POINTS
from hwgen.errors import InputError
from hwgen.files import write_all

if TYPE_CHECKING:
    from hwgen.report import schema

__all__ = ["command"]

_Kind = TypeVar("_Kind", bound="schema.Report")


@click.command("report")
@click.argument("files", metavar="[REPORT.json]...", type=FILE, nargs=-1)
@click.option("--check", is_flag=True, help="Say what makes their results unstable instead; write nothing.")
@click.option(
    "--beside",
    "stem",
    metavar="NAME",
    help="Put reports of 'hwgen formats', one for each library, side by side instead: writes a report NAME.",
)
@click.option(
    "--join",
    "whole",
    metavar="NAME",
    help="Join reports of 'hwgen formats' that have parts of one table instead: writes a report NAME.",
)
@out(REPORTS, "Directory of --beside and --join.")
@click.option(
    "--within", type=POINTS, default=0.5, show_default=True, help="Half-width that --check asks for, percentage points."
)
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    check: bool,
    stem: str | None,
    whole: str | None,
    out: Path,
    within: float,
) -> None:
    """Render tables and plots anew from reports (of all in the reports directory by default)."""
    options = (("--beside", stem), ("--join", whole), ("--check", check or None))
    asked = [name for name, given_as in options if given_as is not None]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)}: give one of them")
    for option, names in (("out", ("--beside", "--join")), ("within", ("--check",))):
        if not set(names) & set(asked) and given(context, option):
            raise InputError(f"--{option}: has a meaning with {' or '.join(names)} alone; leave it out")
    if stem is not None:
        _beside(files, stem, out)
        return
    if whole is not None:
        _join(files, whole, out)
        return
    chosen = list(files) or _reports()
    if check:
        _checked(chosen, within / 100)
        return
    from hwgen.report.kinds import rendered_anew

    # Nothing is written unless all of them can be.
    everything = {file: content for path in chosen for file, content in rendered_anew(path).items()}
    write_all(everything)
    for each in everything:
        click.echo(each)


def _beside(paths: tuple[Path, ...], stem: str, out: Path) -> None:
    """Write tables of formats side by side."""
    from hwgen.report import schema
    from hwgen.report.beside import beside
    from hwgen.report.damaged import of_reports

    tables = _tables(paths, "--beside", stem, out)
    _written_before("--beside", stem, out, schema.LibrariesReport)
    with of_reports(*tables):
        found = beside(tables)
    written(found, out, stem, False, {})


def _join(paths: tuple[Path, ...], stem: str, out: Path) -> None:
    """Write parts of one table of formats as one."""
    from hwgen.measure.formats.joined import joined
    from hwgen.report import schema
    from hwgen.report.damaged import of_reports

    if stem.endswith(".json"):
        raise InputError(f"--join {stem!r}: is a file; give the name of the report to write before the parts")
    tables = _tables(paths, "--join", stem, out)
    before = _written_before("--join", stem, out, schema.FormatsReport)
    a_part = (out / f"{stem}.json").resolve() in [path.resolve() for path in paths]
    if before is not None and before.conditions.parts is None and not a_part:
        raise InputError(
            f"--join {stem!r}: is the name of a table in {str(out)!r} that was measured; give another name, or join"
            " that table, too"
        )
    with of_reports(*tables):
        found = joined(tables)
    written(found, out, stem, False, {})


def _tables(paths: tuple[Path, ...], option: str, stem: str, out: Path) -> dict[str, schema.FormatsReport]:
    """Tables of formats by path, of which an option writes one report."""
    from hwgen.report import schema

    if len(paths) < 2:
        raise InputError(f"{option}: takes two reports of 'hwgen formats' or more")
    check_files(out, stem, option)
    reports: dict[str, schema.FormatsReport] = {}
    for path in paths:
        report = schema.load(path)
        if not isinstance(report, schema.FormatsReport):
            raise InputError(f"report {str(path)!r}: is of {report.command!r}; {option} takes those of 'hwgen formats'")
        if str(path) in reports:
            raise InputError(f"report {str(path)!r}: is named twice; {option} takes different ones")
        reports[str(path)] = report
    return reports


def _written_before(option: str, stem: str, out: Path, kind: type[_Kind]) -> _Kind | None:
    """The report that an option would write over, if there is one; one of another kind is refused."""
    from hwgen.report import schema

    target = out / f"{stem}.json"
    if not target.exists():
        return None
    before = schema.load(target)
    if not isinstance(before, kind):
        raise InputError(f"{option} {stem!r}: is the name of another report in {str(out)!r}, which it would write over")
    return before


def _reports() -> list[Path]:
    """All reports of the reports directory; a word on files that are something else."""
    from hwgen.report import schema

    found = []
    for path in sorted(REPORTS.glob("*.json")):
        try:
            other = not schema.is_report(schema.read(path))
        except InputError as error:
            raise InputError(f"report {str(path)!r}: {error}") from None
        if other:
            click.echo(f"hwgen: {path}: another kind of file, left as it is", err=True)
        else:
            found.append(path)
    if not found:
        raise InputError(f"no report in {str(REPORTS)!r}: 'hwgen compare' writes one")
    return found


def _checked(paths: list[Path], within: float) -> None:
    from hwgen.report import schema
    from hwgen.report.check import another_library, findings
    from hwgen.report.damaged import of_reports

    for path in paths:
        report = schema.load(path)
        with of_reports(path):
            found = [*another_library(report), *findings(report, within)]
        for sentence in found or ["nothing to be said against it"]:
            click.echo(f"{path}: {sentence}")

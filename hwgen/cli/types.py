"""What options accept. NaN and infinity are within no bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from hwgen.errors import InputError
from hwgen.files import check_directory

__all__ = [
    "DIRECTORY",
    "FILE",
    "FROM_ZERO",
    "GRID",
    "JOBS",
    "MACS",
    "MOST_CORES",
    "MOST_RUNS",
    "PERIOD_NS",
    "POINTS",
    "POSITIVE",
    "SECONDS",
    "SEED",
    "SHARE",
    "UTILISATION",
    "Late",
    "Names",
    "Number",
    "Whole",
    "constant",
]


def _named(value: Any, parameter: click.Parameter | None) -> Any:
    """What names something: an empty path would be the present directory."""
    if not str(value):
        raise _refused(parameter, repr(value), "the name of a file or directory")
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise _refused(parameter, repr(value), "a name in UTF-8, since reports quote it") from None
    return value


class _File(click.Path):
    """A path, of a file or a directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(_named(value, param), param, ctx)


FILE = _File(path_type=Path)


class Whole(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)


POSITIVE = Whole(min=1, max=1 << 24)
SEED = Whole(min=0)

MOST_CORES = 1 << 16
MOST_SEARCHES = 100
MOST_RUNS = 1000
"""Behind them come the perturbations of the search, see `hwgen.measure.search.score.draws_of`."""


def _refused(parameter: click.Parameter | None, value: object, what: str) -> InputError:
    option = parameter.opts[0] if parameter else "value"
    return InputError(f"{option} {value}: must be {what}")


class Number(click.ParamType):
    """A number within bounds.

    Parameters
    ----------
    what
        What it must be, in words.
    accepts
        Whether a number is that; must be false for NaN.
    """

    name = "float"

    def __init__(self, what: str, accepts: Callable[[float], bool]) -> None:
        self.what, self._accepts = what, accepts

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            raise _refused(param, repr(value), self.what) from None
        if not self._accepts(number):
            raise _refused(param, f"{number:g}", self.what)
        return number


PERIOD_NS = Number("a period in ns from 0.001 to below 1e6", lambda period: 0.001 <= period < 1e6)
SHARE = Number("a share from 0 to 0.99", lambda share: 0 <= share <= 0.99)
UTILISATION = Number("a share from 0.05 to 1", lambda share: 0.05 <= share <= 1)
POINTS = Number("percentage points above 0 and below 100", lambda points: 0 < points < 100)
FROM_ZERO = Number("a number from 0 to below 1e12", lambda number: 0 <= number < 1e12)
MACS = Number("a number from 1 to 1e13", lambda number: 1 <= number <= 1e13)
SECONDS = Number("a number of seconds from 1 to 1e9", lambda number: 1 <= number <= 1e9)


class _Jobs(click.ParamType):
    """A number of processes."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = click.INT.convert(value, param, ctx)
        if number != -1 and not 1 <= number <= 256:
            raise _refused(param, number, "from 1 to 256, or -1 for one for each core")
        return number


JOBS = _Jobs()


class _Grid(click.ParamType):
    """Cores along the batch, M and N."""

    name = "grid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int, int]:
        parts = value.lower().split("x")
        if len(parts) not in (2, 3) or not all(p.strip().isdecimal() and p.strip(" 0") for p in parts):
            raise _refused(param, repr(value), "ROWSxCOLUMNS or BATCHxROWSxCOLUMNS of cores, such as 4x8")
        # A float takes any number of digits.
        sizes = [int(min(float(part), MOST_CORES + 1)) for part in parts]
        if math.prod(sizes) > MOST_CORES:
            raise InputError(f"--grid {value!r}: must have at most {MOST_CORES} cores")
        batch, rows, columns = sizes if len(sizes) == 3 else [1, *sizes]
        return batch, rows, columns


GRID = _Grid()


class _Directory(click.ParamType):
    """A directory to write to, checked before any work; it need not be there yet."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(_named(value, param))
        check_directory(path)
        return path

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        return click.Path(file_okay=False).shell_complete(ctx, param, incomplete)


DIRECTORY = _Directory()


def constant(source: str) -> Any:
    """What ``module:NAME`` holds; imports the module."""
    module, _, name = source.partition(":")
    return getattr(import_module(module), name)


class Names(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of the names that ``module:NAME`` holds, which is imported when they are needed."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(constant(self._source))

    @choices.setter
    def choices(self, value: tuple[str, ...]) -> None:
        raise AttributeError("these names are another module's")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # A line that is being completed is read too, defaults and all.
        if ctx is not None and ctx.resilient_parsing:
            return value
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = get_close_matches(str(value), self.choices, 1)
            if not near:
                raise
            self.fail(f"{error.message.rstrip('.')}; did you mean {near[0]!r}?", param, ctx)


class NamesOrFiles(Names):
    """One of such names, or the path of a TOML file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        is_path = constant("hwgen.config:is_path")
        return value if is_path(value) else super().convert(value, param, ctx)


class Late(click.Option):
    """An option whose help text is a function, called when the help is shown: it tells of what is elsewhere."""

    def __init__(self, *arguments: Any, late: Callable[[], str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._late = late

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self._late()
        return super().get_help_record(ctx)

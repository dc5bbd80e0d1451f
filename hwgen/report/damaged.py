"""Reports that say what no measurement says: whoever trips over that says whose fault it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hwgen.errors import InputError

__all__ = ["of_reports"]

_DAMAGED = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


@contextmanager
def of_reports(*paths: Path | str) -> Iterator[None]:
    """What goes wrong with the content of some reports is a fault of theirs.

    Raises
    ------
    InputError
        It went wrong; the message names the reports. An error that says of itself what is wrong stays as it is.
    """
    try:
        yield
    except InputError:
        raise
    except _DAMAGED as error:
        names = ", ".join(repr(str(path)) for path in paths)
        raise InputError(f"report {names}: damaged ({type(error).__name__}: {error}); write it anew") from None

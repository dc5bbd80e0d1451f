"""The errors that the command line turns into one line and an exit status.

::

    ValueError
      InputError        2   bad input: an option, a file, a configuration
    RuntimeError
      ToolError         1   a tool failed, or what it made is wrong
        MismatchError   1   hardware and golden model differ
        StorageError    1   the machine does not take what is to be written: a full disk, a quota

`sim.golden.ArgumentError` is the golden model's own for bad input, since that imports nothing of ours; its status is 2.
Beside these, 130 is an interrupted command, and 1 a standard output that takes no more.
"""

import difflib
from collections.abc import Collection
from typing import ClassVar

__all__ = ["InputError", "MismatchError", "StorageError", "ToolError", "meant"]


class InputError(ValueError):
    """Bad input; the message is one line that names the culprit and what would be right.

    Attributes
    ----------
    status : int
        Exit status of the command line, 2.
    """

    status: ClassVar[int] = 2


class ToolError(RuntimeError):
    """A tool failed, or what it made does not compute what it should; no figure may come of it.

    Attributes
    ----------
    status : int
        Exit status of the command line, 1.
    """

    status: ClassVar[int] = 1


class MismatchError(ToolError):
    """Hardware and golden model differ; the message names the first bit pattern that does."""


class StorageError(ToolError):
    """The machine does not take what is to be written, and other input would not change that."""


def meant(name: object, known: Collection[str]) -> str:
    """What may be meant by a name that is not known, for the end of a message: the nearest one, or all there are."""
    near = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"

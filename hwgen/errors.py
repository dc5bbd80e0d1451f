"""The errors that the command line turns into one line and an exit status."""

__all__ = ["InputError", "ToolError"]


class InputError(ValueError):
    """Bad input; the message is one line that names the culprit and what would be right.

    The command line prints it and exits with status 2.
    """


class ToolError(RuntimeError):
    """A tool failed, or what it made does not compute what it should; no figure may come of it.

    The command line prints it and exits with status 1.
    """

"""The error for input that the user can put right."""

__all__ = ["InputError"]


class InputError(ValueError):
    """Bad input; the message is one line that names the culprit and what would be right.

    The command line prints it and exits with status 2.
    """

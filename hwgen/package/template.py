"""Texts of files with places for values, from ``templates/``."""

from __future__ import annotations

import string
from importlib.resources import files

__all__ = ["filled"]


class _Template(string.Template):
    """``@@{name}`` stands for a value: no language of these files has two of these signs, but many a ``$``."""

    delimiter = "@@"


def filled(template: str, /, **values: object) -> str:
    """A template with its values; it names no value that is not given."""
    text = files("hwgen.package").joinpath(f"templates/{template}").read_text("utf-8")
    return _Template(text).substitute(values)

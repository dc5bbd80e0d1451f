"""The reports that come with hwgen."""

from __future__ import annotations

from pathlib import Path

import hwgen

__all__ = ["shipped"]


def shipped() -> Path:
    """Their directory: in an installed package its own, in a source tree ``reports/`` beside the package.

    `hwgen.build_hook` makes the one from the other.
    """
    package = Path(hwgen.__file__).parent
    own = package / "reports"
    return own if own.is_dir() else package.parent / "reports"

"""What all plots have in common: colours of blocks, error bars, text, PNG."""

from __future__ import annotations

import io
import warnings

from matplotlib.figure import Figure as Canvas

from hwgen.report.schema import ENTERING
from hwgen.stats import Estimate

__all__ = ["BLOCKS", "plain", "png", "reach"]

BLOCKS = {
    "operand decoders": "#0072b2",
    "dot products": "#e69f00",
    "scale products": "#56b4e9",
    "align, add, normalise, round": "#009e73",
    "registers and control": "#999999",
    "lane array": "#cc79a7",
    "maximum": "#0072b2",
    "block scales": "#56b4e9",
    "numbers": "#e69f00",
    "choice": "#009e73",
    ENTERING: "#d9d9d9",
}
"""Colours of blocks, in the order they are stacked."""


def reach(estimate: Estimate) -> list[list[float]] | None:
    """How far an interval reaches below and above its value, in percent; None where a bound is missing."""
    if estimate.low is None or estimate.high is None:
        return None
    return [
        [max(100 * (estimate.value - estimate.low), 0)],
        [max(100 * (estimate.high - estimate.value), 0)],
    ]


def plain(text: str) -> str:
    """Text as it is: a dollar sign would begin a formula."""
    return text.replace("$", r"\$")


def png(canvas: Canvas) -> bytes:
    """A canvas as a PNG."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # What the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        # No date or version in the file: the same figures give the same bytes.
        canvas.savefig(buffer, dpi=130, metadata={"Software": None})
    return buffer.getvalue()

"""What all plots have in common: colours of blocks, error bars, logarithmic axes, text, empty plots, PNG."""

from __future__ import annotations

import io
import warnings
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from hwgen.report.schema import ENTERING
from hwgen.stats import Estimate

__all__ = ["BLOCKS", "decades", "empty", "ink", "plain", "png", "reach"]

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


def decades(axis: Any) -> None:
    """Ticks of a logarithmic axis of some decades at most: several in each, as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def empty(axis: Any, words: str) -> None:
    """Say in a plot why nothing is in it; its scales and grid, of nothing, go."""
    axis.text(0.5, 0.5, words, transform=axis.transAxes, ha="center", va="center", fontsize=11, color="#555555")
    axis.tick_params(which="both", bottom=False, labelbottom=False, left=False, labelleft=False)
    axis.grid(False)


def ink(colour: str) -> str:
    """Black or white, whatever is easier to read on a colour: its relative luminance decides (WCAG 2, 1.4.3)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "black" if (luminance + 0.05) ** 2 >= 1.05 * 0.05 else "white"


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

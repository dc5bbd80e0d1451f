"""Boxes, registers, arrows and words as SVG; coordinates are pixels from the upper left corner."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["COLOURS", "Drawing", "Point"]

Point = tuple[float, float]

COLOURS = {
    "plain": "#ffffff",
    "stream": "#e8e8e8",
    "decode": "#d7e5f5",
    "multiply": "#d9efd9",
    "scale": "#fbe9cc",
    "accumulate": "#ecdff2",
    "region": "#f7f4fa",
}
"""Fill of a box by what it is for."""

_INK = "#222222"
_LINE = 17.0
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0 L8 4 L0 8 z" fill="{_INK}"/></marker></defs>'
)


class Drawing:
    """A picture, drawn in the order of the calls.

    Parameters
    ----------
    title
        What it shows, for those who cannot see it.
    width
        In pixels.
    """

    def __init__(self, title: str, width: float) -> None:
        self._title, self._width = title, width
        self._regions: list[str] = []
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str, lines: Sequence[str]) -> None:
        """A box with centred words, the first line in bold."""
        self._parts.append(_rectangle(x, y, width, height, kind, _INK))
        top = y + height / 2 - _LINE * (len(lines) - 1) / 2
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + _LINE * number, line, bold=not number, anchor="middle")

    def region(self, x: float, y: float, width: float, height: float) -> None:
        """What belongs together; it is drawn behind all else."""
        self._regions.append(_rectangle(x, y, width, height, "region", "#9a7fb0", dashed=True))

    def register(self, x: float, y: float, width: float, name: str) -> None:
        """A register across the way, with its name to the right."""
        self.bar(x, y, width)
        self.text(x + width + 8, y + 3.5, name, italic=True)

    def bar(self, x: float, y: float, width: float) -> None:
        """A register without its name."""
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="7" fill="{_INK}"/>')

    def arrow(self, *points: Point) -> None:
        """Straight lines through points, with a head at the last."""
        way = " L".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path d="M{way}" fill="none" stroke="{_INK}" stroke-width="1.4" marker-end="url(#head)"/>')

    def text(
        self, x: float, y: float, words: str, *, bold: bool = False, italic: bool = False, anchor: str = "start"
    ) -> None:
        """A line of words, its middle at the height ``y``."""
        style = (' font-weight="bold"' if bold else "") + (' font-style="italic"' if italic else "")
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" dy="0.35em" text-anchor="{anchor}"{style}>{escape(words)}</text>'
        )

    def svg(self, height: float) -> str:
        """The text of the file, of a picture that is so high."""
        width = self._width
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
            f' height="{height:g}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="13" fill="{_INK}">',
            f"<title>{escape(self._title)}</title>",
            _HEAD,
            _rectangle(0, 0, width, height, "plain", "none"),
        ]
        return "\n".join([*head, *self._regions, *self._parts, "</svg>", ""])


def _rectangle(x: float, y: float, width: float, height: float, kind: str, stroke: str, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{COLOURS[kind]}"'
        f' stroke="{stroke}"{dashes}/>'
    )

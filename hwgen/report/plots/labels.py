"""Labels of points that lie close together: beside their points, and not over each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, starmap
from math import cos, hypot, pi, sin
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Box", "Label", "Name", "draw", "places", "shared"]

_ANGLES = (0.15, 0.85, -0.15, -0.85, 0.0, 1.0, 0.3, 0.7, -0.3, -0.7, 0.5, -0.5)
"""Where a label may lie, seen from its point, in half turns; the first that is free is taken."""
_REACH = (7, 12, 18, 26, 36, 48, 62, 78, 96, 116)
"""How far away, in points of type; nearer ones come first."""
_MARK = 4.0
"""Half of what a mark takes, in points of type."""
_LINE = 0.8
"""Half of what a line takes, in points of type."""
_STEP = 3.0
"""Lines to labels are seen at places so far apart; no type is lower."""
_NOTHING = 1e-6
"""An area that is nothing but rounding."""
_LINE_FROM = 12
"""Labels that lie farther away than this are joined to their points."""


class Box(NamedTuple):
    """A rectangle, in points of type."""

    left: float
    bottom: float
    right: float
    top: float


def shared(boxes: Sequence[Box], others: Sequence[Box]) -> float:
    """Area that boxes and others both cover, for each pair of them."""
    if not boxes or not others:
        return 0.0
    low, high = np.split(np.asarray(boxes)[:, None], 2, axis=2)
    other_low, other_high = np.split(np.asarray(others)[None], 2, axis=2)
    sides = np.minimum(high, other_high) - np.maximum(low, other_low)
    return float(np.maximum(sides, 0).prod(axis=2).sum())


@dataclass(frozen=True)
class Label:
    """A point, and the size of its label, in points of type."""

    x: float
    y: float
    width: float
    height: float

    def box(self, angle: float, reach: float) -> Box:
        """The label at an angle in half turns, so far away from its point."""
        x, y = self.x + reach * cos(pi * angle), self.y + reach * sin(pi * angle)
        # The side of the label that looks to the point is that far away.
        left = x - self.width * (0.5 - 0.5 * cos(pi * angle))
        bottom = y - self.height * (0.5 - 0.5 * sin(pi * angle))
        return Box(left, bottom, left + self.width, bottom + self.height)

    def nearest(self, box: Box) -> tuple[float, float]:
        """Where a line from the point meets the label."""
        return min(max(self.x, box.left), box.right), min(max(self.y, box.bottom), box.top)

    def joint(self, box: Box) -> list[Box]:
        """What a line from the mark to a label covers; nothing where the label is near enough without one."""
        end_x, end_y = self.nearest(box)
        length = hypot(end_x - self.x, end_y - self.y)
        if length <= _LINE_FROM:
            return []
        shares = [(_MARK + each) / length for each in np.arange(_LINE, length - _MARK, _STEP)]
        places = [(self.x + share * (end_x - self.x), self.y + share * (end_y - self.y)) for share in shares]
        return [Box(x - _LINE, y - _LINE, x + _LINE, y + _LINE) for x, y in places]


@dataclass(frozen=True)
class Name:
    """What is written beside a point, in coordinates of the data."""

    text: str
    x: float
    y: float
    colour: str


def places(labels: Sequence[Label], taken: Sequence[Box], frame: Box) -> list[Box]:
    """Rectangle of each label, so that it and its line cover nothing that is taken, and no label and line before.

    It lies in the frame, too. A label that has no such place takes the one where it covers the least.

    Parameters
    ----------
    labels
        In the order in which they choose.
    taken
        Marks and lines.
    frame
        Where labels may be.
    """
    covering = list(taken)
    found = []
    for label in labels:
        least, best = float("inf"), Box(0, 0, 0, 0)
        for reach, angle in product(_REACH, _ANGLES):
            box = label.box(angle, reach)
            parts = [box, *label.joint(box)]
            outside = label.width * label.height - shared([box], [frame])
            covered = outside + shared(parts, covering)
            if covered < least:
                least, best = covered, box
            if least < _NOTHING:
                break
        found.append(best)
        covering += [best, *label.joint(best)]
    return found


def draw(axis: Any, names: Sequence[Name], size: float) -> None:
    """Write names beside their points, and not over what the axis shows.

    The canvas must have its final layout, and the axis its final range and all its lines, of which each is drawn with
    marks, or with steps along the axes.

    Parameters
    ----------
    axis
        Of matplotlib.
    names
        The names.
    size
        Of the type, in points.
    """
    scale = 72 / axis.figure.dpi
    renderer = axis.figure.canvas.get_renderer()

    def placed(x: float, y: float) -> tuple[float, float]:
        across, up = axis.transData.transform((x, y))
        return float(across) * scale, float(up) * scale

    labels = []
    for name in names:
        text = axis.text(0, 0, name.text, fontsize=size)
        extent = text.get_window_extent(renderer)
        text.remove()
        labels.append(Label(*placed(name.x, name.y), extent.width * scale, extent.height * scale))
    inside = axis.bbox
    frame = Box(inside.x0 * scale, inside.y0 * scale, inside.x1 * scale, inside.y1 * scale)
    taken = [box for line in axis.lines for box in _covered(line, placed)]
    for name, label, box in zip(names, labels, places(labels, taken, frame), strict=True):
        x, y = label.nearest(box)
        line = {"arrowstyle": "-", "color": name.colour, "linewidth": 0.5, "shrinkA": 0, "shrinkB": _MARK}
        line["relpos"] = (x - box.left) / label.width, (y - box.bottom) / label.height
        axis.annotate(
            name.text,
            (name.x, name.y),
            xytext=(box.left - label.x, box.bottom - label.y),
            textcoords="offset points",
            fontsize=size,
            color=name.colour,
            arrowprops=line if label.joint(box) else None,
        )


def _covered(line: Any, placed: Callable[[float, float], tuple[float, float]]) -> Iterator[Box]:
    """What a line of an axis takes: its marks, or its steps, which go across first and then up."""
    ends = list(starmap(placed, zip(*line.get_data(), strict=True)))
    if line.get_marker() != "None":
        yield from (Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in ends)
        return
    for (x, y), (right, top) in pairwise(ends):
        yield Box(x, y - _LINE, right, y + _LINE)
        yield Box(right - _LINE, min(y, top), right + _LINE, max(y, top))

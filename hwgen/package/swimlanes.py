"""A pipeline as columns, one for each module: rows of boxes, buses at the head of a row, registers at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hwgen.package.svg import Drawing

__all__ = ["Bus", "Column", "Row", "draw"]

_BUS, _LINE = 24.0, 18.0


@dataclass
class Column:
    """A module.

    Parameters
    ----------
    title
        Lines above it.
    x, width
        Where it stands, in pixels.
    kind
        Colour of its boxes, of `hwgen.package.svg.COLOURS`.
    registers
        Flip-flops of each of its registers, by name.
    boxes
        Lines of its boxes, by row.
    """

    title: Sequence[str]
    x: float
    width: float
    kind: str
    registers: Mapping[str, int]
    boxes: dict[str, Sequence[str]] = field(default_factory=dict)
    reach: float | None = None
    """How far down it is drawn."""

    @property
    def centre(self) -> float:
        """Where its data go down."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class Bus:
    """Signals from one column to others.

    Parameters
    ----------
    row
        At whose head it is.
    source, targets
        Keys of columns.
    words
        What it carries.
    """

    row: str
    source: str
    targets: Sequence[str]
    words: str


@dataclass(frozen=True)
class Row:
    """What happens between two registers, or a part of it.

    Parameters
    ----------
    name
        As boxes and buses have it.
    register
        The one at its end; "" without one.
    cycle
        Which one that is, from 1.
    """

    name: str
    register: str = ""
    cycle: int = 0


def draw(drawing: Drawing, columns: Mapping[str, Column], rows: Sequence[Row], buses: Sequence[Bus], y: float) -> float:
    """Draw all columns from a height on.

    Parameters
    ----------
    drawing
        Where.
    columns
        By key, from left to right.
    rows
        From above.
    buses
        Of one row in the order of the list.
    y
        Upper end.

    Returns
    -------
    float
        Lower end.
    """
    top = y
    titles = max(len(column.title) for column in columns.values())
    for column in columns.values():
        for number, line in enumerate(column.title):
            drawing.text(column.centre, y + 14 + _LINE * number, line, bold=True, anchor="middle")
    y += _LINE * titles + 4
    for row in rows:
        y = _row(drawing, columns, row, [bus for bus in buses if bus.row == row.name], y)
    for column in columns.values():
        drawing.region(column.x - 8, top, column.width + 16, y + 10 - top)
    return y + 10


def _row(drawing: Drawing, columns: Mapping[str, Column], row: Row, buses: Sequence[Bus], y: float) -> float:
    head = y + _BUS * len(buses) + 16
    heights = [_LINE * len(column.boxes[row.name]) + 12 for column in columns.values() if row.name in column.boxes]
    foot = head + max(heights, default=0)
    bar = foot + 28
    landed: Counter[tuple[str, bool]] = Counter()
    for number, bus in enumerate(buses):
        _bus(drawing, columns, bus, y + 22 + _BUS * number, (head, bar), landed)
    for column in columns.values():
        if lines := column.boxes.get(row.name):
            if column.reach is not None:
                drawing.arrow((column.centre, column.reach), (column.centre, head))
            column.reach = head + _LINE * len(lines) + 12
            drawing.box(column.x, head, column.width, column.reach - head, column.kind, lines)
    if not row.register:
        return foot
    for column in columns.values():
        if row.register in column.registers:
            if column.reach is not None:
                drawing.arrow((column.centre, column.reach), (column.centre, bar))
            drawing.bar(column.x, bar, column.width)
            bits = column.registers[row.register]
            drawing.text(column.x + column.width - 4, bar - 9, str(bits), anchor="end")
            column.reach = bar + 7
    first, *_, last = columns.values()
    drawing.text(first.x - 16, bar + 3.5, row.register, italic=True, anchor="end")
    drawing.text(last.x + last.width + 16, bar + 3.5, f"cycle {row.cycle}", italic=True)
    return bar + 7


def _bus(
    drawing: Drawing,
    columns: Mapping[str, Column],
    bus: Bus,
    y: float,
    ends: tuple[float, float],
    landed: Counter[tuple[str, bool]],
) -> None:
    """One bus at the height ``y``: into boxes at the first end, into registers at the second."""
    source = columns[bus.source]
    start = y if source.reach is None else source.reach
    for key in bus.targets:
        target = columns[key]
        right = target.x > source.x
        way = [(source.centre, start), (source.centre, y)]
        if bus.row not in target.boxes and target.reach is not None:
            drawing.arrow(*way, (target.centre, y))
            continue
        aside = 18 + 20 * landed[key, right]
        landed[key, right] += 1
        x = target.x + aside if right else target.x + target.width - aside
        drawing.arrow(*way, (x, y), (x, ends[0] if bus.row in target.boxes else ends[1]))
    right = columns[bus.targets[0]].x > source.x
    drawing.text(source.centre + (8 if right else -8), y - 9, bus.words, anchor="start" if right else "end")

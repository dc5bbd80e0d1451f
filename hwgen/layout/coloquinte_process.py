"""What `hwgen.layout.coloquinte` runs as a process: a problem from one file, places to another."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["main"]


def circuit(problem: Any) -> Any:
    """Coloquinte's circuit: cells, and a fixed cell of no size for each fixed pin."""
    import coloquinte

    width, height = problem["width"], int(problem["height"])
    pin_cell = problem["pin_cell"]
    n = len(width)
    fixed = np.flatnonzero(pin_cell < 0)
    cell = pin_cell.copy()
    cell[fixed] = n + np.arange(len(fixed))
    made = coloquinte.Circuit(n + len(fixed))
    made.cell_width = [*width.tolist(), *[0] * len(fixed)]
    made.cell_height = [*[height] * n, *[0] * len(fixed)]
    made.cell_is_fixed = [*[False] * n, *[True] * len(fixed)]
    made.cell_is_obstruction = [*[True] * n, *[False] * len(fixed)]
    made.cell_row_polarity = [coloquinte.CellRowPolarity.ANY] * (n + len(fixed))
    centre = np.append(width // 2, np.zeros(len(fixed), np.int64))
    movable = cell < n
    from_left = np.where(movable, centre[cell] + problem["pin_x"], 0)
    from_low = np.where(movable, height // 2 + problem["pin_y"], 0)
    start = problem["net_start"]
    for first, last, weight in zip(start[:-1].tolist(), start[1:].tolist(), problem["weight"].tolist(), strict=True):
        if last - first > 1:
            own = slice(first, last)
            made.add_net(cell[own].tolist(), from_left[own].tolist(), from_low[own].tolist(), weight)
    made.cell_x = [*[0] * n, *problem["pin_x"][fixed].tolist()]
    made.cell_y = [*[0] * n, *problem["pin_y"][fixed].tolist()]
    made.rows = [
        coloquinte.Row(
            coloquinte.Rectangle(first, last, row * height, (row + 1) * height), coloquinte.CellOrientation.N
        )
        for row, first, last in zip(
            problem["bottom"].tolist(), problem["first"].tolist(), problem["last"].tolist(), strict=True
        )
    ]
    return made


def main() -> None:
    """Read, place, write."""
    import coloquinte

    with np.load(sys.argv[1]) as problem:
        made = circuit(problem)
        n = len(problem["width"])
        parameters = coloquinte.ColoquinteParameters(int(problem["effort"]), int(problem["seed"]))
    made.check()
    made.place_global(parameters)
    made.place_detailed(parameters)
    np.savez(sys.argv[2], x=np.array(made.cell_x[:n]), y=np.array(made.cell_y[:n]))


if __name__ == "__main__":
    main()

"""Interpolation against the formula, one table and one point at a time."""

import numpy as np

from hwgen.cells.tables import Table, TableBank


def along(axis, at):
    """Place of the segment, and how far into it; the first and the last go on for ever."""
    place = 0
    while place < len(axis) - 2 and at >= axis[place + 1]:
        place += 1
    return place, (at - axis[place]) / (axis[place + 1] - axis[place])


def expected(table, x, y):
    values = table.values
    if len(table.x) == 1:
        rows = values[0]
    else:
        place, share = along(table.x, x)
        rows = values[place] * (1 - share) + values[place + 1] * share
    if len(table.y) == 1:
        return rows[0]
    place, share = along(table.y, y)
    return rows[place] * (1 - share) + rows[place + 1] * share


def test_tables_of_any_size_in_one_bank():
    """Inside, on the points, and far outside: the smaller ones are continued as straight lines."""
    generator = np.random.default_rng(4)

    def axis(size):
        return np.cumsum(generator.uniform(0.5, 3.0, size))

    tables = [Table(axis(n), axis(m), generator.normal(size=(n, m))) for n in range(1, 7) for m in range(1, 7)]
    bank = TableBank(tables)
    for number, table in enumerate(tables):
        points = [(*generator.uniform(-10, 40, 2),) for _ in range(20)]
        points += [(x, y) for x in (*table.x, -5.0, 50.0) for y in (*table.y, -5.0, 50.0)]
        x, y = np.array(points).T
        wanted = [expected(table, *point) for point in points]
        np.testing.assert_allclose(bank(np.full(len(x), number), x, y), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(table(x, y), wanted, rtol=1e-9, atol=1e-9)

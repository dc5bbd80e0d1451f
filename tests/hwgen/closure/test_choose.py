"""The choice of recipes, with closure that only adds up."""

from types import SimpleNamespace

import pytest

from hwgen.closure.choose import choose
from hwgen.mapping.yosys import Recipe

A, B, C = (Recipe(name, "ripple", (), name) for name in "abc")
DELAYS = {
    "x": {A: 3.0, B: 2.0, C: 1.0},
    "y": {A: 1.0, B: 1.5, C: 0.4},
}
AREAS = {"x": {A: 1.0, B: 2.0, C: 4.0}, "y": {A: 1.0, B: 1.1, C: 9.0}}


def chosen(clock):
    """With a path through all of both modules; also how many designs were closed."""
    seen = []

    def closed(choice):
        seen.append(choice)
        shares = {f"top/{module}": DELAYS[module][how] for module, how in choice.items()}
        delay = sum(shares.values())
        area = sum(AREAS[module][how] for module, how in choice.items())
        record = SimpleNamespace(delay_ns=delay, area_after=area, met=delay <= clock)
        return SimpleNamespace(record=record, timing=SimpleNamespace(path_by_block=shares))

    choice, best = choose({"x": [A, B, C], "y": [A, B, C]}, dict, closed)
    return [choice["x"], choice["y"]], best.record, len(seen)


@pytest.mark.parametrize(
    ("clock", "expected", "closed"),
    [
        (4.0, [A, A], 1),  # the smallest do
        (3.0, [B, A], 3),  # the smaller of the two that do
        (2.0, [C, A], 3),
        (1.5, [C, C], 5),  # the slowest module first, then the other
        (1.0, [C, C], 7),  # out of reach: the fastest
    ],
)
def test_choice(clock, expected, closed):
    found, record, count = chosen(clock)
    assert found == expected
    assert record.met == (clock > 1.0)
    assert count == closed

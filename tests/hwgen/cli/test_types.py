import click
import pytest

from hwgen.cli import types
from hwgen.errors import InputError

PARAMETER = click.Option(["--some-option"])


@pytest.mark.parametrize("kind", [each for each in vars(types).values() if isinstance(each, types.Number)])
@pytest.mark.parametrize("value", ["nan", "-nan", "inf", "-inf", "1e999", "-1", "x"])
def test_no_bounds_hold_nan_or_infinity(kind: types.Number, value: str) -> None:
    with pytest.raises(InputError, match=r"^--some-option .*: must be "):
        kind.convert(value, PARAMETER, None)


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        (types.PERIOD_NS, [0.001, 2.5, 999999], [0, 1e-4, 1e6]),
        (types.SHARE, [0, 0.99], [0.999, 1, 1.5]),
        (types.UTILISATION, [0.05, 1], [0, 0.049, 1.01]),
        (types.FROM_ZERO, [0, 1e11], [1e12]),
        (types.MACS, [1, 1e13], [0, 0.5, 1.1e13]),
        (types.SECONDS, [1, 1e9], [0.5, 2e9]),
    ],
)
def test_bounds(kind: types.Number, inside: list[float], outside: list[float]) -> None:
    for number in inside:
        assert kind.convert(str(number), PARAMETER, None) == number
    for number in outside:
        with pytest.raises(InputError, match=kind.what):
            kind.convert(str(number), PARAMETER, None)


def test_jobs() -> None:
    assert [types.JOBS.convert(text, PARAMETER, None) for text in ("-1", "1", "256")] == [-1, 1, 256]
    for text in ("0", "-2", "257"):
        with pytest.raises(InputError, match="from 1 to 256, or -1"):
            types.JOBS.convert(text, PARAMETER, None)


def test_grids() -> None:
    assert types.GRID.convert("4x8", PARAMETER, None) == (1, 4, 8)
    assert types.GRID.convert("2X4x8", PARAMETER, None) == (2, 4, 8)
    for text in ("", "4", "4x0", "4xx8", "1x2x3x4", "ax4"):
        with pytest.raises(InputError, match="must be ROWSxCOLUMNS"):
            types.GRID.convert(text, PARAMETER, None)


def test_names_are_another_modules() -> None:
    names = types.Names("sim.tensors:KINDS")
    assert names.convert("gaussian", PARAMETER, None) == "gaussian"
    with pytest.raises(click.BadParameter, match=r"heavy-tailed"):
        names.convert("flat", PARAMETER, None)

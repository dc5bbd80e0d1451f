"""Figures of two designs that are not made of the same parts."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hwgen.config import NAMED
from hwgen.measure import overhead
from hwgen.measure.conditions import check_pair
from hwgen.measure.figures import Measured, compare
from hwgen.measure.overhead import figures_of, formats_fed
from hwgen.power.consumption import DYNAMIC, Consumption
from hwgen.report.schema import HALF_RATE, SCOPES

RUNS = 6


def measured(fj: dict[str, float]) -> Measured:
    """Areas in um2 are the energies in fJ."""
    spent = [Consumption({block: dict.fromkeys(DYNAMIC, each) for block, each in fj.items()}, fj)] * RUNS
    return Measured(
        areas={block: [each] * RUNS for block, each in fj.items()},
        delays=[1.0] * RUNS,
        cells=[1] * RUNS,
        sequential=[0.0] * RUNS,
        clock_gates=[0.0] * RUNS,
        energy=spent,
        same_operands=spent,
        settled=spent,
        idle=spent,
        macs=16,
        lengths={block: [each] * RUNS for block, each in fj.items()},
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_a_block_that_one_design_alone_has_adds_what_it_takes(swapped: bool) -> None:
    """Integers have no products of scales."""
    one = {"dot products": 60.0, "scale products": 20.0, "registers and control": 20.0}
    other = {"dot products": 30.0, "registers and control": 20.0, "operand decoders": 10.0}
    designs = {"x": measured(one), "y": measured(other)}
    names = ("y", "x") if swapped else ("x", "y")
    figures = compare(*names, {(name, "core"): found for name, found in designs.items()}, 1.0)
    for metric in ("area", "dynamic power", "leakage power", "wire length"):
        blocks = {each.block: each for each in figures if each.metric == metric and each.block != "total"}
        assert blocks.keys() == {*one, *other}
        (total,) = (each for each in figures if (each.metric, each.block) == (metric, "total"))
        for name in names:
            assert sum(each.values[name] for each in blocks.values()) == pytest.approx(total.values[name])
        assert total.overhead is not None
        added = [each.contribution.value for each in blocks.values() if each.contribution]
        assert len(added) == len(blocks)
        assert sum(added) == pytest.approx(total.overhead.value)
        alone = blocks["scale products"]
        assert (alone.overhead is None) is swapped


@pytest.mark.parametrize(
    ("names", "scopes"),
    [
        (("nvfp4-small", "mixfp4-small"), ["lane array", "element", "core"]),
        # Blocks of 32 as two sums, and as one: the core adds up as many products, the lane array does not.
        (("mxfp4-2x16-small", "mxfp4-small"), ["element", "core"]),
    ],
)
def test_lane_arrays_of_unlike_sums_are_not_compared(
    names: tuple[str, str], scopes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overhead, "of_scope", lambda *_: measured({"dot products": 1.0}))
    configs = {name: NAMED[name] for name in names}
    examined: dict[str, Any] = {name: [SimpleNamespace(areas=dict.fromkeys(SCOPES))] for name in names}
    check_pair(*configs.values())
    found = figures_of(configs, examined, 1.0)
    assert list(dict.fromkeys(each.scope for each in found)) == scopes


def test_only_bits_that_a_core_reads_alike_are_the_same_operands() -> None:
    """Integers would read the codes of E2M1 as something else."""
    plain = NAMED["nvfp4-small"]
    assert formats_fed(NAMED["mixfp4-small"], plain) == [NAMED["mixfp4-small"].formats, plain.formats]
    assert formats_fed(plain, plain) == [plain.formats]
    for name in ("nvint4-small", "int8-small", "mxfp4-small"):
        assert formats_fed(NAMED[name], plain) == [NAMED[name].formats]


@pytest.mark.parametrize(("name", "found"), [("nvfp4-mx-multi-small", True), ("nvfp4-multi-small", False)])
def test_half_the_rate_is_compared_where_the_same_bits_mean_the_same(
    name: str, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = measured({"dot products": 1.0})
    slotted = replace(plain, half_rate=plain.energy, half_rate_settled=plain.settled)
    monkeypatch.setattr(overhead, "of_scope", lambda *_: slotted)
    configs = {each: NAMED[each] for each in (name, "mixfp4-mx-multi-small")}
    examined: dict[str, Any] = {each: [SimpleNamespace(areas=dict.fromkeys(SCOPES))] for each in configs}
    figures = figures_of(configs, examined, 1.0)
    assert any(each.metric.endswith(HALF_RATE) for each in figures) is found

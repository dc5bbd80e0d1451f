"""A table of formats that is small enough to read."""

import dataclasses
from pathlib import Path

import pytest

from hwgen.report import schema
from hwgen.stats import Estimate

REPORTS = Path(__file__).parents[3] / "reports"


def stored(name: str, bits: float = 4.5) -> schema.OperandFormat:
    return schema.OperandFormat(
        name, ("E2M1",), 4, "UE4M3", 8, 7, 0, 0, 16, bits, bits - 1 / 16, True, f"source of {name}"
    )


def lost(name: str, gaussian: float, rule: str = "nearest", default: bool = True) -> schema.FormatError:
    return schema.FormatError(name, rule, default, {"gaussian": gaussian, "heavy-tailed": gaussian - 1})


def measured(name: str, area: float, energy: float, error: float, products: int = 16, **changes) -> schema.FormatRow:
    """A row of six runs; a core of 256 MACs in a cycle."""
    baseline = name.startswith("nvfp4")
    over = None if baseline else Estimate(0.02, 0.018, 0.022)
    figures = [
        schema.FormatFigure(scope, metric, unit, (value,) * 6, over)
        for scope, scale in (("lane array", 0.25), ("element", 0.5), ("core", 1.0))
        for metric, unit, value in (
            ("area", "um2", 256 * scale * area),
            ("area per MAC", "um2", scale * area),
            ("total power", "mW", 0.256 * scale * energy),
            ("energy per MAC", "fJ", scale * energy),
        )
    ]
    closing = schema.Closing("merged", {"dot_product": "speed"}, 1.0, 0.01, "dot products", 4.0, 2.0, 0, 0, ())
    found = {
        "row": name,
        "design": f"{name}-small",
        "baseline": None if baseline else "nvfp4-small",
        "not_measured": None,
        "unlike": (),
        "a": stored(name),
        "b": stored(name),
        "products": products,
        "summed": 16,
        "slowest_ns": 0.99,
        "held_by": "dot products",
        "met": True,
        "figures": tuple(figures),
        "blocks_um2": {"dot products": 192.0 * area, "operand decoders": 64.0 * area},
        "closing": {purpose: {"lane array": closing, "core": closing} for purpose in ("area", "energy")},
        "stimulus": schema.Stimulus("gaussian", None, 1, 32 * products, 1),
        "checked": schema.Checked(1234, 567),
        "errors": (lost(name, error),),
        "similarities": None,
    }
    return schema.FormatRow(**{**found, **changes})


@pytest.fixture
def with_rule(formats_report: schema.FormatsReport) -> schema.FormatsReport:
    """The same table with a row that is a rule for the scales of the baseline."""
    first, *_ = formats_report.results
    rule = measured(
        "four-over-six",
        *(0.0, 0.0, 0.0),
        **{"design": first.design, "baseline": None, "not_measured": "its hardware is that of nvfp4"},
        **{"a": first.a, "b": first.b, "errors": first.errors[1:]},
        **dict.fromkeys(("slowest_ns", "held_by", "met", "stimulus", "checked")),
        **{"figures": (), "blocks_um2": {}, "closing": {}},
    )
    return dataclasses.replace(formats_report, results=(*formats_report.results, rule))


@pytest.fixture
def formats_report() -> schema.FormatsReport:
    """A baseline with two rules, a cheaper row, one that is beaten, one that is late, and one without figures."""
    source = schema.load(REPORTS / "overhead.json")
    assert isinstance(source, schema.OverheadReport)
    both = (lost("nvfp4", 20.0), lost("nvfp4", 21.0, "four-over-six", False))
    nothing = {
        **dict.fromkeys(("a", "b", "products", "summed", "design", "baseline", "slowest_ns", "held_by", "met")),
        **dict.fromkeys(("stimulus", "checked", "similarities")),
        **dict.fromkeys(("figures", "errors"), ()),
        **{"blocks_um2": {}, "closing": {}, "not_measured": "no configuration later-small"},
    }
    rows = (
        measured("nvfp4", 30.0, 100.0, 20.0, errors=both),
        measured("nvfp4-2x16", 25.0, 90.0, 20.0, products=32, errors=both),
        measured("cheap", 28.0, 95.0, 18.0),
        measured("beaten", 31.0, 120.0, 17.0),
        measured("late", 20.0, 50.0, 30.0, met=False, slowest_ns=1.04, unlike=("fraction_bits = 30, not 35",)),
        dataclasses.replace(measured("later", 1.0, 1.0, 1.0), **nothing),
    )
    assert source.conditions.physical is not None
    designs = [
        schema.Design({**source.designs[0].settings, "name": row.design}) for row in rows if row.design is not None
    ]
    conditions = schema.FormatsConditions(
        source.conditions.flow,
        1.0,
        source.conditions.physical,
        ("merged-binary", "signed"),
        16,
        0.005,
        True,
        None,
        None,
    )
    return schema.FormatsReport(tuple(designs), conditions, rows)

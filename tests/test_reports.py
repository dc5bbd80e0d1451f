"""The committed reports: up to date with the default libraries, and good for what the documentation says of them."""

from dataclasses import astuple
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED
from hwgen.mapping.yosys import RECIPES
from hwgen.report import schema
from hwgen.report.form import percent
from hwgen.report.kinds import FORMS
from hwgen.report.schema import SCOPES, CostReport, Figure, OverheadReport

REPORTS = Path(__file__).parents[1] / "reports"
PHASES = ("prefill", "decode")
SMALL = sorted(path for path in REPORTS.glob("overhead*.json") if "blackwell" not in path.stem)


def _overhead(name: str) -> OverheadReport:
    report = schema.load(REPORTS / f"{name}.json")
    assert isinstance(report, OverheadReport)
    return report


def _area(name: str, scope: str) -> Figure:
    return _overhead(name).find(scope, "area")


def test_every_report_of_the_makefile_is_there() -> None:
    makefile = (REPORTS.parent / "Makefile").read_text(encoding="utf-8")
    names = {line.split("--name ")[1].split()[0].rstrip(";") for line in makefile.splitlines() if "--name " in line}
    names = names - {"cost-$$phase"} | {f"cost-{phase}" for phase in PHASES}
    assert {path.stem for path in REPORTS.glob("*.json")} - {"mutation"} == names  # that is of `make mutate`


@pytest.mark.parametrize(
    "path", sorted(set(REPORTS.glob("*.json")) - {REPORTS / "mutation.json"}), ids=lambda path: path.stem
)
def test_a_report_is_of_the_present_libraries_recipes_and_designs(path: Path) -> None:
    report = schema.load(path)
    if not isinstance(report, CostReport):
        flow = report.conditions.flow
        if flow.library.name in libraries.names():
            assert flow.library.sha256 == reader.load(libraries.path(flow.library.name)).digest
        for how in flow.recipes:
            assert (how.carry, how.abc) == (RECIPES[how.name].carry, RECIPES[how.name].abc)
    assert [design.settings for design in report.designs] == [NAMED[name].as_dict() for name in report.names]
    form = FORMS[report.kind]
    assert path.with_suffix(".md").read_text(encoding="utf-8") == form.markdown(report, f"{path.stem}.png")
    assert path.with_suffix(".csv").read_text(encoding="utf-8") == form.csv(report)


def test_the_readme_states_what_the_reports_say() -> None:
    rows = [line for line in (REPORTS.parent / "README.md").read_text().splitlines() if line.startswith("| [")]
    assert len(rows) >= 6
    for row in rows:
        name = row.partition("](reports/")[2].partition(".md)")[0]
        report = _overhead(name)
        metrics = (
            ("lane array", "area"),
            ("core", "area"),
            ("core", "total power"),
            ("core", "total power, no glitches"),
        )
        found = [percent(report.find(*metric).overhead) for metric in metrics]
        assert [cell.strip() for cell in row.split("|")[2:-1]] == found


@pytest.mark.parametrize("phase", PHASES)
def test_costs_are_those_of_the_measured_cores(phase: str) -> None:
    report = schema.load(REPORTS / f"cost-{phase}.json")
    area = _area("overhead-blackwell", "core")
    (found,) = (total for total in report.totals if total.metric == "area of the cores")
    assert astuple(found.overhead) == pytest.approx(astuple(area.overhead))
    ratio = {name: value / area.values[name] for name, value in found.values.items()}
    # mm2 or um2, of as many cores for both.
    assert len({f"{value:.6g}" for value in ratio.values()}) == 1


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_the_small_core_is_known_to_half_a_percentage_point(path: Path) -> None:
    core = _area(path.stem, "core")
    for estimate in (core.overhead, core.baseline_against_itself):
        assert (estimate.high - estimate.low) / 2 <= 0.005
    assert core.baseline_against_itself.low <= 0 <= core.baseline_against_itself.high
    assert core.runs >= 16


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("generic", "real"), [("overhead-generic130", "overhead-sky130hd"), ("overhead", "overhead-asap7")]
)
def test_a_default_library_stands_in_for_a_real_one(generic: str, real: str, scope: str) -> None:
    one, other = (_area(name, scope).overhead.value for name in (generic, real))
    assert abs(one - other) <= 0.015


def test_the_power_overhead_of_the_small_core_is_known_to_half_a_percentage_point() -> None:
    entry = schema.load(REPORTS / "power.json").at("at work", "core")
    assert entry.runs >= 16
    assert (entry.overhead.high - entry.overhead.low) / 2 <= 0.005
    assert entry.baseline_against_itself.low <= 0 <= entry.baseline_against_itself.high

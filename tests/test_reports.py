"""The committed reports: up to date with the default libraries, and good for what the documentation says of them."""

from pathlib import Path
from typing import Any

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.figures import SCOPES
from hwgen.report import form
from hwgen.report.markdown import cost as cost_tables
from hwgen.report.markdown import explore as explore_tables
from hwgen.report.markdown import overhead as tables
from hwgen.report.markdown import power as power_tables

REPORTS = Path(__file__).parents[1] / "reports"
PHASES = ("prefill", "decode")
SMALL = sorted(path for path in REPORTS.glob("overhead*.json") if "blackwell" not in path.stem)


def _area(name: str, scope: str) -> dict[str, Any]:
    return tables.find(form.load(REPORTS / f"{name}.json"), scope, "area")


def test_every_report_of_the_makefile_is_there() -> None:
    makefile = (REPORTS.parent / "Makefile").read_text(encoding="utf-8")
    names = {line.split("--name ")[1].split()[0].rstrip(";") for line in makefile.splitlines() if "--name " in line}
    names = names - {"cost-$$phase"} | {f"cost-{phase}" for phase in PHASES}
    assert {path.stem for path in REPORTS.glob("*.json")} - {"mutation"} == names  # that is of `make mutate`


@pytest.mark.parametrize(
    "path", sorted(set(REPORTS.glob("*.json")) - {REPORTS / "mutation.json"}), ids=lambda path: path.stem
)
def test_a_report_is_of_the_present_libraries_recipes_and_designs(path: Path) -> None:
    report = form.load(path)
    if report["kind"] != cost_tables.KIND:
        used = report["conditions"]["library"]
        if used["name"] in libraries.names():
            assert used["sha256"] == reader.load(libraries.path(used["name"])).digest
        for how in report["conditions"]["recipes"]:
            assert (how["carry"], tuple(how["abc"])) == (RECIPES[how["name"]].carry, RECIPES[how["name"]].abc)
    assert report["designs"] == [NAMED[design["name"]].as_dict() for design in report["designs"]]
    texts = {one.KIND: one for one in (tables, explore_tables, power_tables, cost_tables)}[report["kind"]]
    assert path.with_suffix(".md").read_text(encoding="utf-8") == texts.markdown(report, f"{path.stem}.png")
    assert path.with_suffix(".csv").read_text(encoding="utf-8") == texts.csv(report)


def test_the_readme_states_what_the_reports_say() -> None:
    rows = [line for line in (REPORTS.parent / "README.md").read_text().splitlines() if line.startswith("| [")]
    assert len(rows) >= 6
    for row in rows:
        name = row.partition("](reports/")[2].partition(".md)")[0]
        report = form.load(REPORTS / f"{name}.json")
        metrics = (
            ("lane array", "area"),
            ("core", "area"),
            ("core", "total power"),
            ("core", "total power, no glitches"),
        )
        found = [form.percent(tables.find(report, *metric)["overhead"]) for metric in metrics]
        assert [cell.strip() for cell in row.split("|")[2:-1]] == found


@pytest.mark.parametrize("phase", PHASES)
def test_costs_are_those_of_the_measured_cores(phase: str) -> None:
    report = form.load(REPORTS / f"cost-{phase}.json")
    area = _area("overhead-blackwell", "core")
    (found,) = (total for total in report["totals"] if total["metric"] == "area of the cores")
    assert found["overhead"] == pytest.approx(area["overhead"])
    ratio = {name: value / area["values"][name] for name, value in found["values"].items()}
    # mm2 or um2, of as many cores for both.
    assert len({f"{value:.6g}" for value in ratio.values()}) == 1


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_the_small_core_is_known_to_half_a_percentage_point(path: Path) -> None:
    core = tables.find(form.load(path), "core", "area")
    for estimate in (core["overhead"], core["baseline_against_itself"]):
        assert (estimate["high"] - estimate["low"]) / 2 <= 0.005
    assert core["baseline_against_itself"]["low"] <= 0 <= core["baseline_against_itself"]["high"]
    assert core["runs"] >= 16


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("generic", "real"), [("overhead-generic130", "overhead-sky130hd"), ("overhead", "overhead-asap7")]
)
def test_a_default_library_stands_in_for_a_real_one(generic: str, real: str, scope: str) -> None:
    one, other = (_area(name, scope)["overhead"]["value"] for name in (generic, real))
    assert abs(one - other) <= 0.015


def test_the_power_overhead_of_the_small_core_is_known_to_half_a_percentage_point() -> None:
    report = form.load(REPORTS / "power.json")
    (entry,) = (each for each in report["results"] if (each["situation"], each["scope"]) == ("at work", "core"))
    assert entry["runs"] >= 16
    assert (entry["overhead"]["high"] - entry["overhead"]["low"]) / 2 <= 0.005
    own = entry["baseline_against_itself"]
    assert own["low"] <= 0 <= own["high"]

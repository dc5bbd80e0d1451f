"""The table of formats, with cores whose figures are drawn: pairs, runs, rows without figures, and what is kept."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.closure.close import Closure
from hwgen.config import NAMED, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES, Recipe
from hwgen.measure.formats import table as module
from hwgen.measure.formats.losses import MODELS, errors_of
from hwgen.measure.formats.rows import BASELINE, NOT_BUILT, rows_of
from hwgen.measure.formats.table import measure_formats
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.examined import Examined
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.requests import FormatsRequest, Row
from hwgen.measure.runs import Run
from hwgen.measure.search.score import Aim
from hwgen.measure.search.selected import Selected
from hwgen.power.consumption import DYNAMIC, Consumption
from hwgen.report import schema
from hwgen.report.check import findings
from hwgen.report.markdown.formats import markdown
from hwgen.report.precision import half_width
from hwgen.stats import paired
from sim import accuracy
from sim.golden import ArgumentError

CELLS = reader.load(libraries.path("generic7"))
CLOCK = 2.0
AIM = Aim(CLOCK, Physical("fanout"), Stimulus())
MODULES = ("tensor_core", "element", "dot_product", "operand_decoder", "accumulate")


def drawn(config: TensorCoreConfig, number: int, delay: float = 1.9, spread: float = 0.001, times: float = 1.0) -> Run:
    """A run whose figures follow from the numbers of products, and hang on its perturbation a little."""
    noise = 1 + spread * np.random.default_rng(number).standard_normal()
    own = 1 + spread / 10 * np.random.default_rng([number, len(config.name)]).standard_normal()
    core = times * config.macs_per_step * noise * own * (1 + len(config.a.elements) / 10)
    record = Closure(CLOCK, delay, "tensor_core/element/dot_product", "fanout", 5.0, 5.0, 3, 1, 1)
    spent = Consumption({"dot products": dict.fromkeys(DYNAMIC, core)}, {"dot products": 1.0})
    examined = Examined(
        areas={
            "lane array": {"lane array": core / 16},
            "element": {"dot products": core / 20},
            "core": {"dot products": core / 2, "operand decoders": core / 4},
        },
        delays={"lane array": delay, "core": delay},
        cells={"lane array": 10, "element": 20, "core": 300},
        sequential={"lane array": 0.0, "element": 1.0, "core": 4.0},
        clock_gates=dict.fromkeys(schema.SCOPES, 0.0),
        paths={},
        checked=schema.Checked(1000 + number, 500),
        energy={(config.formats, scope, how): spent for scope in schema.SCOPES for how in ("timed", "settled")},
        lengths={},
        placement=None,
        contents={},
    )
    return Run(examined, {(purpose, scope): record for purpose in PURPOSES for scope in ("lane array", "core")})


class Bench:
    """What is searched and built in the place of cores, in order."""

    def __init__(self) -> None:
        self.searched: list[tuple[str, tuple[str, ...]]] = []
        self.offered: dict[str, list[str]] = {}
        self.exchanged: list[tuple[str, list[str]]] = []
        self.better: dict[str, Recipe] = {}
        self.built: list[tuple[str, int]] = []
        self.make: Callable[[TensorCoreConfig, int], Run] = drawn

    def select(
        self,
        configs: Mapping[str, TensorCoreConfig],
        recipes: Sequence[Recipe],
        aim: Aim,
        flow: Flow,
        lanes: Sequence[str] = (),
        found_for: Selected | None = None,
    ) -> Selected:
        ((name, config),) = configs.items()
        self.offered[name] = sorted({other for other, _ in found_for.configs}) if found_for else []
        self.searched.append((name, tuple(lanes)))
        flow.progress("search", 1, 1)
        chosen = dict.fromkeys(MODULES, recipes[0])
        return Selected(
            {(name, purpose): config for purpose in PURPOSES},
            {(name, purpose): chosen for purpose in PURPOSES},
            {(name, purpose): (config, recipes[0]) for purpose in PURPOSES},
            7,
        )

    def exchange(
        self,
        config: TensorCoreConfig,
        selected: Selected,
        others: Sequence[Selected],
        recipes: Sequence[Recipe],
        aim: Aim,
        flow: Flow,
        lanes: Sequence[str] = (),
    ) -> Selected:
        self.exchanged.append((config.name, sorted({name for other in others for name, _ in other.configs})))
        if config.name not in self.better:
            return selected
        chosen = dict.fromkeys(MODULES, self.better[config.name])
        return dataclasses.replace(selected, chosen=dict.fromkeys(selected.chosen, chosen))

    def measured(
        self,
        numbers: Sequence[int],
        configs: Mapping[str, TensorCoreConfig],
        baseline: TensorCoreConfig,
        selected: Selected,
        aim: Aim,
        recipes: Sequence[Recipe],
        vectors: int,
        flow: Flow,
        before: Mapping[str, Sequence[Run]],
    ) -> dict[str, list[Run]]:
        ((name, config),) = configs.items()
        assert baseline is config  # a row works on no other operands than its own
        assert len(before[name]) == min(numbers)
        assert {aim.clock_ns, *(each.dot for each in selected.configs.values())} == {CLOCK, config.dot}
        self.built += [(name, number) for number in numbers]
        return {name: [self.make(config, number) for number in numbers]}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    found = Bench()
    monkeypatch.setattr(module, "select_for_cores", found.select)
    monkeypatch.setattr(module, "exchanged", found.exchange)
    monkeypatch.setattr(module, "measured", found.measured)
    met = schema.Closing("merged", {"dot_product": "speed"}, CLOCK, 0.1, "dot products", 0.0, 0.0, 0, 0, ())
    scopes = {purpose: {"lane array": met, "core": met} for purpose in PURPOSES}
    monkeypatch.setattr(module, "closings", lambda *_: scopes)
    monkeypatch.setattr(accuracy, "signal_to_noise", lambda form, kind, rule: len(form.name) + len(kind) + len(rule))
    return found


def request(*rows: Row, runs: int = 16) -> FormatsRequest:
    return FormatsRequest(
        BASELINE,
        rows,
        Stimulus(),
        clock_ns=CLOCK,
        physical=Physical("fanout"),
        lanes=("merged-binary", "e2m2"),
        runs=runs,
    )


def table(asked: FormatsRequest, cache: Path | None = None) -> schema.FormatsReport:
    return measure_formats(asked, Flow(CELLS, cache, workers=1), [RECIPES["speed"]])


def by_name(report: schema.FormatsReport) -> dict[str, schema.FormatRow]:
    return {row.row: row for row in report.results}


def test_a_report_says_whether_its_clock_is_the_usual_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(request(*rows_of(["mixfp4"]), runs=1)).conditions.usual_clock is False
    monkeypatch.setattr(module, "usual", lambda library: CLOCK)
    asked = dataclasses.replace(request(*rows_of(["mixfp4"]), runs=1), clock_ns=None)
    assert table(asked).conditions.usual_clock is True


def test_rows_are_paired_run_by_run_with_a_baseline_of_as_many_products(bench: Bench) -> None:
    report = table(request(*rows_of(["mixfp4", "mxfp4"]), runs=6))
    rows = by_name(report)
    assert list(rows) == ["nvfp4", "nvfp4-2x16", "mixfp4", "mxfp4"]
    assert [design.name for design in report.designs] == [row.design for row in report.results]
    assert [rows[name].baseline for name in rows] == [None, None, "nvfp4-small", "nvfp4-2x16-small"]
    assert [(row.products, row.summed) for row in report.results] == [(16, 16), (32, 16), (16, 16), (32, 32)]
    for name, of in (("mixfp4", "nvfp4"), ("mxfp4", "nvfp4-2x16")):
        for scope in ("element", "core"):
            for metric in ("area", "area per MAC", "total power", "energy per MAC", "energy per MAC, no glitches"):
                own, theirs = rows[name].find(scope, metric), rows[of].find(scope, metric)
                assert own is not None
                assert theirs is not None
                assert own.overhead == paired(theirs.values, own.values)
                assert theirs.overhead is None
    # Noise that both halves of a pair have is not in the interval.
    area = rows["mixfp4"].find("core", "area")
    assert area is not None
    assert area.overhead is not None
    assert area.overhead.low is not None
    assert area.overhead.high is not None
    assert area.overhead.low < 12 / 11 - 1 < area.overhead.high
    assert area.overhead.high - area.overhead.low < 0.0006 < np.ptp(area.values) / area.mean
    # The lane array of one has 16 products, that of the other 32: only those of each are compared.
    assert rows["mxfp4"].find("lane array", "area").overhead is None  # type: ignore[union-attr]
    assert rows["mxfp4"].find("lane array", "area per MAC").overhead is not None  # type: ignore[union-attr]
    assert sum(rows["mixfp4"].blocks_um2.values()) == pytest.approx(area.mean)
    assert schema.from_json(schema.to_json(report)) == report


def test_what_is_known_of_a_row_is_not_searched_for(bench: Bench) -> None:
    """Its baseline's is offered to the others all the same."""
    known = {BASELINE.name: bench.select({BASELINE.name: BASELINE}, [RECIPES["area"]], AIM, Flow(CELLS, None))}
    bench.searched.clear()
    report = table(dataclasses.replace(request(*rows_of(["mixfp4"]), runs=1), selected=known))
    assert [name for name, _ in bench.searched] == ["mixfp4-small"]
    assert bench.offered["mixfp4-small"] == ["nvfp4-small"]
    assert [row.runs for row in report.results] == [1, 1]


def test_units_are_those_of_a_product(bench: Bench) -> None:
    row = by_name(table(request(*rows_of(["nvfp4"]), runs=1)))["nvfp4"]
    run = drawn(BASELINE, 0)
    area, energy = run.examined.areas["core"], run.examined.energy[BASELINE.formats, "core", "timed"]
    leakage_fj = 1e-3 * CLOCK  # nW times ns
    found = {(each.scope, each.metric): each for each in row.figures}
    assert found["core", "area per MAC"].values == (pytest.approx(sum(area.values()) / 256),)
    assert found["core", "energy per MAC"].values == (pytest.approx((energy.total_fj + leakage_fj) / 256),)
    assert found["core", "total power"].values == (pytest.approx((energy.total_fj + leakage_fj) / CLOCK * 1e-3),)
    assert found["core", "maximum clock"].values == (pytest.approx(1000 / 1.9),)
    assert row.checked == schema.Checked(1000, 500)


def test_runs_are_added_until_the_intervals_are_narrow(bench: Bench) -> None:
    """The baseline has as many as the row that takes most."""

    def make(config: TensorCoreConfig, number: int) -> Run:
        wide = config.a.name == "nvint4"
        return drawn(config, number + 100 * wide, spread=0.02 if wide else 0.0001)

    bench.make = make
    rows = by_name(table(request(*rows_of(["mixfp4", "nvint4", "if4"]), runs=9)))
    assert {name: row.runs for name, row in rows.items()} == {"nvfp4": 9, "mixfp4": 6, "nvint4": 9, "if4": 6}
    assert len(set(bench.built)) == len(bench.built)  # nothing twice


def test_a_dear_row_is_known_to_a_share_of_its_own_figure(bench: Bench) -> None:
    """Thrice as dear with the same noise, it takes as many runs, and no complaint comes of it."""

    def make(config: TensorCoreConfig, number: int) -> Run:
        return drawn(config, number, spread=0.02, times=3 if config.a.name == "nvint4" else 1)

    bench.make = make
    report = table(request(*rows_of(["mixfp4", "nvint4"]), runs=9))
    rows = by_name(report)
    assert {name: row.runs for name, row in rows.items()} == dict.fromkeys(("nvfp4", "mixfp4", "nvint4"), 6)
    area = rows["nvint4"].find("core", "area")
    assert area is not None
    assert report.conditions.half_width < half_width(area.overhead) < 3 * report.conditions.half_width
    assert not any("is known to" in each for each in findings(report))
    assert any("nvint4: area of the core" in each for each in findings(report, within=0.0005))


def test_every_row_has_the_same_search(bench: Bench) -> None:
    table(request(*rows_of(["mixfp4", "nvint4"]), runs=1))
    names = ("nvfp4-small", "mixfp4-small", "nvint4-small")
    assert bench.searched == [(name, ("merged-binary", "e2m2")) for name in names]


def test_a_row_is_tried_by_what_its_baseline_takes(bench: Bench) -> None:
    """The baseline of as many products."""
    table(request(*rows_of(["mixfp4", "mxfp4"]), runs=1))
    assert bench.offered == {
        "nvfp4-small": [],
        "mixfp4-small": ["nvfp4-small"],
        "nvfp4-2x16-small": [],
        "mxfp4-small": ["nvfp4-2x16-small"],
    }


def test_a_baseline_is_tried_by_what_its_rows_take_before_any_run(bench: Bench) -> None:
    asked = request(*rows_of(["mixfp4", "nvint4", "mxfp4"]), runs=1)
    table(asked)
    assert bench.exchanged == [
        ("nvfp4-small", ["mixfp4-small", "nvint4-small"]),
        ("nvfp4-2x16-small", ["mxfp4-small"]),
    ]
    bench.exchanged.clear()
    bench.better["nvfp4-small"] = RECIPES["prefix"]
    bench.measured = Mock(side_effect=bench.measured)  # type: ignore[method-assign]
    with patch.object(module, "measured", bench.measured):
        table(asked)
    # Rows are tried by what it takes then.
    assert bench.exchanged == [
        ("nvfp4-small", ["mixfp4-small", "nvint4-small"]),
        ("mixfp4-small", ["nvfp4-small"]),
        ("nvint4-small", ["nvfp4-small"]),
        ("nvfp4-2x16-small", ["mxfp4-small"]),
    ]
    taken = {
        name: call.args[3].chosen[name, "area"]["element"].name
        for call in bench.measured.mock_calls
        for name in call.args[1]
    }
    assert taken == {
        "nvfp4-small": "prefix",
        "mixfp4-small": "speed",
        "nvint4-small": "speed",
        "nvfp4-2x16-small": "speed",
        "mxfp4-small": "speed",
    }


def test_a_baseline_of_a_report_stays_as_it_is(bench: Bench) -> None:
    known = {BASELINE.name: bench.select({BASELINE.name: BASELINE}, [RECIPES["area"]], AIM, Flow(CELLS, None))}
    table(dataclasses.replace(request(*rows_of(["mixfp4", "mxfp4"]), runs=1), selected=known))
    assert bench.exchanged == [("nvfp4-2x16-small", ["mxfp4-small"])]


def test_a_baseline_whose_rows_cannot_be_measured_is_no_row(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def select(configs: Mapping[str, TensorCoreConfig], *rest: object, **more: object) -> Selected:
        if "mxfp4-small" in configs:
            raise InputError("out of reach")
        return bench.select(configs, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "select_for_cores", select)
    report = table(request(*rows_of(["mixfp4", "mxfp4"]), runs=1))
    assert [(row.row, row.not_measured) for row in report.results] == [
        ("nvfp4", None),
        ("mixfp4", None),
        ("mxfp4", "out of reach"),
    ]


def test_a_row_that_cannot_be_measured_stays_in_the_table(bench: Bench) -> None:
    def make(config: TensorCoreConfig, number: int) -> Run:
        if config.a.name == "if4":
            raise InputError("no recipe was found")
        return drawn(config, number, delay=2.1 if (config.a.name, number) == ("nvint4", 4) else 1.9)

    bench.make = make
    wide = dataclasses.replace(NAMED["mixfp4-small"], name="wide", rows=8)
    other = dataclasses.replace(NAMED["mixfp4-small"], name="other", fraction_bits=30)
    asked = (
        *rows_of(["if4", "nvint4"]),
        Row("none", None, "no configuration none-small"),
        Row("wide", wide),
        Row("other", other),
        Row("odd", dataclasses.replace(NAMED["mxfp4-small"], name="odd", groups=8)),
    )
    rows = by_name(table(request(*asked, runs=6)))
    assert {name: row.not_measured for name, row in rows.items() if row.not_measured} == {
        "if4": "no recipe was found",
        "none": "no configuration none-small",
        "wide": "has rows = 8; a row has 4, as nvfp4-small",
        "odd": "adds up 256 products for an output in a cycle; that is no number of blocks of 16 that nvfp4-small could"
        " take in a step: it takes 1 to 8; choose other groups, the blocks of 32 in a step",
    }
    assert rows["none"].a is None
    assert rows["if4"].a is not None
    assert (rows["nvint4"].met, rows["nvint4"].slowest_ns, rows["nvint4"].held_by) == (False, 2.1, "dot products")
    assert rows["nvfp4"].met
    assert rows["other"].unlike == ("fraction_bits = 30, not 35",)


def test_a_rule_has_the_cost_of_another_row_and_its_own_error(bench: Bench) -> None:
    report = table(request(*rows_of(["mixfp4", "four-over-six"]), runs=1))
    rows = by_name(report)
    assert list(rows) == ["nvfp4", "mixfp4", "four-over-six"]
    nvfp4, rule = rows["nvfp4"], rows["four-over-six"]
    assert (rule.design, rule.not_measured, rule.figures) == ("nvfp4-small", "its hardware is that of nvfp4", ())
    assert (rule.a, rule.b, rule.products, rule.summed) == (nvfp4.a, nvfp4.b, 16, 16)
    assert rule.errors == tuple(each for each in nvfp4.errors if each.rule == "four-over-six")
    assert rule.decibels("gaussian") == {"four-over-six": nvfp4.decibels("gaussian")["four-over-six"]}
    assert [name for name, _ in bench.searched] == ["nvfp4-small", "mixfp4-small"]
    assert schema.from_json(schema.to_json(report)) == report


def test_rows_without_a_core_are_answered_at_once(bench: Bench) -> None:
    """Nothing is searched or built, the baseline neither."""
    asked = rows_of(["four-over-six", *NOT_BUILT])
    report = table(request(*asked))
    assert (bench.searched, bench.built) == ([], [])
    rows = by_name(report)
    assert list(rows) == [row.name for row in asked]
    assert [design.name for design in report.designs] == ["nvfp4-small"]
    assert rows["four-over-six"].not_measured == "its hardware is that of nvfp4, which is not in this table"
    assert rows["four-over-six"].decibels("gaussian")
    assert (rows["bipolar"].not_measured, rows["bipolar"].errors) == (NOT_BUILT["bipolar"], ())
    text = markdown(report, "formats.png")
    assert "at most 16. No row was built.\n" in text
    assert schema.from_json(schema.to_json(report)) == report


def test_what_inexact_products_lose_is_measured(bench: Bench) -> None:
    """It is said in the row, as docs/formats.md has it."""
    rows = by_name(table(request(*rows_of(["mxfp8-e4m3", "l-mul"]))))
    found = accuracy.additive_error()
    (said,) = rows["l-mul"].unlike
    assert said.startswith("codes are added in the place of products: of E4M3, a product of normal numbers is off by")
    assert f"off by {100 * found.mean:.1f} % in the mean and {100 * found.largest:.1f} % at most" in said
    assert f"products of gaussian numbers have {found.decibels:.1f} dB against the exact ones" in said
    assert rows["mxfp8-e4m3"].unlike == ()
    page = " ".join((Path(__file__).parents[4] / "docs" / "formats.md").read_text(encoding="utf-8").split())
    assert f"Products of gaussian numbers in E4M3 have {found.decibels:.1f} dB against the exact ones." in page


def test_the_baseline_must_be_measured(bench: Bench) -> None:
    def make(config: TensorCoreConfig, number: int) -> Run:
        raise InputError("out of reach")

    bench.make = make
    with pytest.raises(InputError, match="out of reach"):
        table(request(*rows_of(["mixfp4"])))


def test_a_search_is_not_made_again_after_a_kill(bench: Bench, tmp_path: Path) -> None:
    """Rows that are asked for later are searched alone."""

    def make(config: TensorCoreConfig, number: int) -> Run:
        if config.a.name == "mixfp4":
            raise KeyboardInterrupt
        return drawn(config, number)

    bench.make = make
    asked = request(*rows_of(["mixfp4"]), runs=2)
    with pytest.raises(KeyboardInterrupt):
        table(asked, tmp_path)
    assert [name for name, _ in bench.searched] == ["nvfp4-small", "mixfp4-small"]
    bench.make = drawn
    report = table(asked, tmp_path)
    assert len(bench.searched) == 2
    bench.searched.clear()
    assert report == table(asked)
    assert len(bench.searched) == 2
    bench.searched.clear()
    table(dataclasses.replace(asked, rows=rows_of(["mixfp4", "nvint4"]), runs=1), tmp_path)
    table(dataclasses.replace(asked, lanes=()), tmp_path)
    assert [name for name, _ in bench.searched] == ["nvint4-small", "nvfp4-small", "mixfp4-small"]


def test_progress_names_the_row(bench: Bench) -> None:
    told = []
    flow = Flow(CELLS, None, workers=1, progress=lambda what, done, total: told.append(what))
    measure_formats(request(*rows_of(["if4"]), runs=1), flow, [RECIPES["speed"]])
    assert told == ["errors", "errors", "nvfp4: search", "if4: search"]


def test_a_model_that_is_missing_is_told_before_all_work(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> accuracy.Model:
        raise ArgumentError("install hwgen[workloads]")

    monkeypatch.setitem(MODELS, "minilm", missing)
    with pytest.raises(ArgumentError, match="workloads"):
        table(dataclasses.replace(request(*rows_of(["mixfp4"])), model="minilm"))
    assert bench.searched == []


def test_errors_of_a_model_stand_beside_those_of_drawn_tensors(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    of = accuracy.ModelErrors(
        *(accuracy.Noise({"layer": accuracy.Energies(ratio, 1.0)}) for ratio in (100.0, 1000.0)), np.array([[0.9, 0.8]])
    )
    monkeypatch.setitem(MODELS, "minilm", lambda: SimpleNamespace(errors=lambda *_, **__: of))
    asked = request(*rows_of(["mixfp4", "four-over-six"]), runs=1)
    report = table(dataclasses.replace(asked, model="minilm"))
    assert report.conditions.model == "minilm"
    for row in report.results:
        for error in row.errors:
            assert error.decibels[schema.WEIGHTS] == pytest.approx(20)
            assert error.decibels[schema.ACTIVATIONS] == pytest.approx(30)
        assert row.similarities is not None
        assert [each.mean for each in row.similarities.values()] == pytest.approx([0.85] * len(row.similarities))
    assert list(by_name(report)["four-over-six"].similarities or {}) == ["four-over-six"]


def test_what_is_stored_and_lost(bench: Bench) -> None:
    rows = by_name(table(request(*rows_of(["mixfp4", "mxfp4", "mixfp4-weights"]), runs=1)))
    stored = rows["mixfp4"].b
    assert stored is not None
    assert stored.elements == ("E2M1", "E1M2")
    assert (stored.selector_bits, stored.read_bits, stored.scale_bits) == (1, 8, 8)
    assert (stored.bits_per_element, stored.packed_bits_per_element, stored.tensor_scale) == (4.5, 4.5, True)
    assert rows["nvfp4"].a is not None
    assert rows["nvfp4"].a.packed_bits_per_element == 4 + 7 / 16
    assert rows["mxfp4"].a is not None
    assert (rows["mxfp4"].a.bits_per_element, rows["mxfp4"].a.tensor_scale) == (4.25, False)
    assert [(each.format, each.rule, each.default) for each in rows["mixfp4-weights"].errors] == [
        ("nvfp4", "nearest", True),
        ("nvfp4", "four-over-six", False),
        ("nvfp4", "least-error", False),
        ("mixfp4", "nearest", True),
        ("mixfp4", "least-error", False),
    ]
    assert rows["mxfp4"].decibels("gaussian") == {"floor": 18, "ceil": 17, "least-error": 24}
    # Noise of 20 and 21 dB below the signal, in the mean, and of 24 and 25 by the other rule of both.
    assert rows["mixfp4-weights"].decibels("gaussian") == {
        rule: pytest.approx(-10 * np.log10((10 ** (-one / 10) + 10 ** (-other / 10)) / 2))
        for rule, one, other in (("nearest", 20, 21), ("least-error", 24, 25))
    }


def test_activations_without_a_scale_are_the_same_by_all_rules(bench: Bench) -> None:
    row = by_name(table(request(*rows_of(["int4-fp16"]), runs=1)))["int4-fp16"]
    assert [(each.format, each.rule) for each in row.errors] == [
        ("fp16", "unscaled"),
        *(("int4", rule) for rule in ("unscaled", "by-row", "by-group")),
    ]
    noises = {(each.format, each.rule): 10 ** (-each.decibels["gaussian"] / 10) for each in row.errors}
    assert row.decibels("gaussian") == {
        rule: pytest.approx(-10 * np.log10((noises["fp16", "unscaled"] + noises["int4", rule]) / 2))
        for rule in ("unscaled", "by-row", "by-group")
    }


def test_errors_are_those_of_the_golden_model() -> None:
    nearest, other, least = errors_of([BASELINE.a])
    assert set(nearest.decibels) == set(accuracy.KINDS)
    assert 20 < nearest.decibels["gaussian"] < other.decibels["gaussian"] < least.decibels["gaussian"] < 22


def test_a_library_without_flip_flops_is_refused(bench: Bench) -> None:
    with pytest.raises(InputError, match="flip-flop"):
        measure_formats(request(*rows_of(["mixfp4"])), Flow(CELLS.without(["DFF*"])))
    assert bench.searched == []

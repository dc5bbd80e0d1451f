import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from hwgen.cells import libraries, reader
from hwgen.cli.options import pair
from hwgen.cli.study import default_stem
from hwgen.config import named
from hwgen.errors import InputError
from hwgen.measure.conditions import fingerprint
from hwgen.measure.formats.rows import rows_of
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.requests import ExploreRequest, FormatsRequest, OverheadRequest, PowerRequest
from hwgen.power.opensta_script import FILES
from hwgen.report import schema

PAIR = named("nvfp4-small"), named("mixfp4-small")


class Measured(NamedTuple):
    """What measuring gives."""

    found: schema.OverheadReport

    def report(self) -> schema.OverheadReport:
        return self.found


def test_a_library_is_named_once(refused) -> None:
    for command in ("compare", "explore", "power"):
        err = refused(command, "--library", "generic7", "--liberty", "x.lib")
        assert "--library generic7: --liberty gives the library; leave one of them out" in err


@pytest.mark.parametrize(
    ("request_", "changes"),
    [
        (
            OverheadRequest(*PAIR, Stimulus()),
            {"baseline": PAIR[1], "stimulus": Stimulus(seed=2), "recipe": "area", "clock_ns": 2.0, "runs": 2},
        ),
        (
            ExploreRequest(*PAIR),
            {
                "dots": ("merged",),
                "pipelines": ((),),
                "leading_zeros": ("counted",),
                "clocks_ns": (2.0,),
                "runs": 2,
            },
        ),
        (PowerRequest(*PAIR, Stimulus()), {"stimulus": Stimulus(layer="x"), "clock_ns": 2.0, "runs": 2}),
        (
            FormatsRequest(PAIR[0], rows_of(["mixfp4"]), Stimulus()),
            {"rows": rows_of(["if4"]), "physical": Physical("fanout"), "lanes": ("signed",), "half_width": 0.01},
        ),
    ],
    ids=["overhead", "explore", "power", "formats"],
)
def test_another_question_is_another_key(request_, changes: dict) -> None:
    """Every field of a request is in the key of its cached report."""
    generic7 = reader.load(libraries.path("generic7"))
    keys = [fingerprint(generic7, request_)]
    keys += [fingerprint(generic7, replace(request_, **{field: value})) for field, value in changes.items()]
    assert len(set(keys)) == len(keys)
    assert fingerprint(generic7, replace(request_)) == keys[0]


def test_clock_gating_is_set_in_both_designs_and_named_by_the_file() -> None:
    gated, plain = (pair(None, None, None, clock_gating=gating) for gating in (True, False))
    assert [[config.clock_gating for config in configs] for configs in (gated, plain)] == [[True] * 2, [False] * 2]
    assert pair(None, None, None) == PAIR == gated
    generic7 = reader.load(libraries.path("generic7"))
    stems = [default_stem(OverheadRequest(*configs, Stimulus()), generic7) for configs in (plain, gated)]
    assert stems[1] == f"{stems[0]}-gated"


@pytest.mark.parametrize(
    ("name", "options"), [("overhead", ()), ("overhead-as-mapped", ("--as-mapped", "--library", "generic7"))]
)
def test_compare_exports_a_directory_for_each_core(run, refused, tmp_path, monkeypatch, name, options) -> None:
    """With what the report says of them: lanes, recipes and clock for each purpose, or recipes alone."""
    (tmp_path / "file").write_text("in the way")
    assert "'file' is not a directory" in refused("compare", "--export", "file")
    report = schema.load(Path(__file__).parents[3] / "reports" / f"{name}.json")
    monkeypatch.setattr("hwgen.measure.at_clock.measure_at_clock", lambda *_, **__: Measured(report))
    monkeypatch.setattr("hwgen.measure.overhead.measure", lambda *_, **__: Measured(report))
    conditions = report.conditions

    def built(config, closing, physical, flow, clock_ns, stimulus):
        assert closing == {purpose: each["core"] for purpose, each in conditions.closing[config.name].items()}
        assert (physical, clock_ns) == (Physical(), conditions.clock_ns)
        return {purpose: dict.fromkeys(FILES, f"built {config.name} {purpose}") for purpose in closing}

    def mapped(config, recipes, flow, clock_ns, stimulus):
        assert recipes is conditions.chosen_recipes[config.name]
        return dict.fromkeys(FILES, f"mapped {config.name}")

    monkeypatch.setattr("hwgen.measure.netlists.export.as_built", built)
    monkeypatch.setattr("hwgen.measure.netlists.export.as_mapped", mapped)
    arguments = ("--no-cache", "--name", "c", "--out", "out", "--export", "for sta", *options)
    status, _, err = run("compare", *arguments)
    assert status == 0, err
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("for sta/**/*.*")}
    if options:
        expected = {f"{config.name}/{file}": f"mapped {config.name}" for config in PAIR for file in FILES.values()}
    else:
        expected = {
            f"{config.name}/{purpose}/{file}": f"built {config.name} {purpose}"
            for config in PAIR
            for purpose in ("area", "energy")
            for file in FILES.values()
        }
    assert found == {f"for sta/{name}": text for name, text in expected.items()}


def test_what_was_measured_is_written_where_its_export_fails(run, tmp_path, monkeypatch) -> None:
    report = schema.load(Path(__file__).parents[3] / "reports" / "overhead.json")
    monkeypatch.setattr("hwgen.measure.at_clock.measure_at_clock", lambda *_, **__: Measured(report))

    def late(*_):
        raise InputError("clock of 1 ns: the netlist to export takes 1.1 ns; choose a longer period")

    monkeypatch.setattr("hwgen.measure.netlists.export.as_built", late)
    status, _, err = run("compare", "--no-cache", "--name", "c", "--out", "out", "--export", "for sta")
    assert status == 2
    assert "the netlist to export takes 1.1 ns" in err
    assert schema.load(tmp_path / "out" / "c.json") == report
    assert not (tmp_path / "for sta").exists()


def requests(monkeypatch, name):
    """What `compare` asks for from now on; it gets a report that comes with hwgen."""
    report, asked = schema.load(Path(__file__).parents[3] / "reports" / name), []

    def measure(request, *_, **__):
        asked.append(request)
        return Measured(report)

    monkeypatch.setattr("hwgen.measure.at_clock.measure_at_clock", measure)
    return asked


def test_compare_takes_what_a_report_has_found(run, refused, monkeypatch) -> None:
    """And says so; other questions, and `--search`, have a search of their own."""
    asked = requests(monkeypatch, "overhead.json")
    said = "hwgen: lanes and recipes as overhead.json has them; --search looks for them anew\n"
    for options in ((), ("--search",), ("--clock", "2.5"), ("--recipe", "speed"), ("--searches", "2")):
        status, _, err = run("compare", "--no-cache", "--name", "c", "--out", "out", *options)
        assert status == 0, err
        assert (said in err) == (not options)
    # Independent searches are all made here.
    assert [request.selected is None for request in asked] == [False, True, True, True, True]
    digest = hashlib.sha256((Path(__file__).parents[3] / "reports" / "overhead.json").read_bytes()).hexdigest()
    assert asked[0].selected.report == f"overhead.json (sha256 {digest[:12]})"
    assert "--search: has no meaning with --as-mapped" in refused("compare", "--as-mapped", "--search")


def test_compare_takes_what_a_file_says(run, refused, monkeypatch, tmp_path) -> None:
    """It searches nothing then, and refuses to be told how."""
    asked = requests(monkeypatch, "overhead.json")
    tables = (f"{form}-small.{purpose}" for form in ("nvfp4", "mixfp4") for purpose in ("area", "energy"))
    (tmp_path / "my choice.toml").write_text("".join(f'[{table}]\nrecipe = "prefix"\n' for table in tables))
    core = "compare", "--no-cache", "--name", "c", "--out", "out", "--choices", "my choice.toml"
    status, _, err = run(*core)
    assert status == 0, err
    assert "hwgen: lanes and recipes as my choice.toml has them\n" in err
    (request,) = asked
    assert (request.lanes, request.slots) == ((), ())
    assert {how.name for chosen in request.selected.chosen.values() for how in chosen.values()} == {"prefix"}
    more = (
        ("--as-mapped",),
        ("--recipe", "area"),
        ("--lanes", "signed"),
        ("--slots", "split"),
        ("--search",),
        ("--searches", "2"),
    )
    for options in more:
        assert f"{' '.join(options)}: has no meaning with --choices" in refused(*core, *options)
    assert "nvfp4-multi-small] is missing; tables there: nvfp4-small" in refused(*core, "--config", "multi-small")


def test_lanes_of_all_slots_are_tried(run, refused, monkeypatch) -> None:
    """The slot of `multi-small` shares lanes that are merged; `separate` goes with any."""
    asked = requests(monkeypatch, "overhead-multi.json")
    core = "compare", "--config", "multi-small", "--no-cache", "--name", "c", "--out", "out"
    for options in ((), ("--slots", "split"), ("--lanes", "signed")):
        status, _, err = run(*core, *options)
        assert status == 0, err
    assert [request.lanes for request in asked] == [
        ("merged-timed", "merged-binary", "signed"),
        ("merged-timed",),
        ("signed",),
    ]
    # A report has what a search by all of these found, and not by some of them.
    assert [request.selected is None for request in asked] == [False, True, True]
    said = refused(*core, "--lanes", "signed", "--slots", "none")
    assert "slot = 'full': shares the lanes of dot = 'merged' or 'merged-timed', not of 'signed'" in said


def test_a_known_report_is_shown_as_it_was(run, tmp_path, monkeypatch) -> None:
    """Its files, summary and warnings are kept with it: neither pandas nor matplotlib is needed again."""
    report = schema.load(Path(__file__).parents[3] / "reports" / "overhead.json")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("hwgen.measure.at_clock.measure_at_clock", lambda *_, **__: Measured(report))
    first = run("compare", "--name", "c", "--out", "out")
    assert first[0] == 0, first[2]
    assert "asked for are" in first[2]
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert {f"c{end}" for end in (".json", ".md", ".csv", ".png", "-placement.png")} == files.keys()
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    for name in ("hwgen.report.kinds.rendered", "hwgen.report.check.findings"):
        monkeypatch.delattr(name)
    again = run("compare", "--name", "c", "--out", "out")
    assert (again[0], again[1]) == first[:2]
    assert again[2].splitlines()[-2:] == first[2].splitlines()[-2:]
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == files


def test_power_exports_a_directory_for_each_core(run, refused, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "'file' is not a directory" in refused("power", "--export", "file")
    reports = Path(__file__).parents[3] / "reports"
    report = schema.from_json(json.loads((reports / "power.json").read_bytes()))
    monkeypatch.setattr("hwgen.measure.power.study", lambda *_, **__: report)
    monkeypatch.setattr(
        "hwgen.measure.netlists.export.as_mapped",
        lambda config, *_: {kind: f"{kind} of {config.name}" for kind in ("v", "saif", "sdc", "spef", "tcl")},
    )
    status, _, err = run("power", "--export", "for sta", "--no-cache", "--name", "p", "--out", "out")
    assert status == 0, err
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("for sta/**/*.*")}
    assert found == {
        f"for sta/{config.name}/{name}": f"{kind} of {config.name}" for config in PAIR for kind, name in FILES.items()
    }
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"p.{end}" for end in ("json", "md", "csv", "png")}
    assert run("power", "--saif", "--no-cache", "--name", "p", "--out", "out")[0] == 0
    names = {f"p-{config.name}.{end}" for config in PAIR for end in ("v", "saif")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names | {
        f"p.{end}" for end in ("json", "md", "csv", "png")
    }

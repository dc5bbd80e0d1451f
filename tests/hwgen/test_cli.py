import inspect
import json
import os
import re
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from joblib.externals.loky import process_executor
from safetensors.numpy import save_file

from hwgen.cells import libraries, reader
from hwgen.cli.study import default_stem
from hwgen.config import DEFAULT_PIPELINE, NAMED
from hwgen.errors import StorageError
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.requests import OverheadRequest
from sim import golden, verify

REPORTS = Path(__file__).parents[2] / "reports"


def _tiny(directory: Path, **fields: object) -> Path:
    path = directory / "tiny.toml"
    table = {"a": "mixfp4", "b": "mixfp4", "rows": 1, "columns": 2, "groups": 1, **fields}
    path.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items()))
    return path


def _measured(name: str, path: Path) -> None:
    """Write a committed report as one on the present designs of its names: its figures are of no matter here."""
    report = json.loads((REPORTS / name).read_text())
    report["designs"] = [NAMED[design["name"]].as_dict() for design in report["designs"]]
    path.write_text(json.dumps(report))


def test_help_names_every_command(run) -> None:
    status, out, _ = run("--help")
    assert status == 0
    for command in (
        "compare",
        "configs",
        "cost",
        "explore",
        "formats",
        "power",
        "replay",
        "report",
        "simulate",
        "synth",
        "verify",
        "verilog",
    ):
        assert command in out
        status, own, _ = run(command, "--help")
        assert status == 0
        assert own.startswith(f"Usage: hwgen {command}")


def test_without_arguments_there_is_help(run) -> None:
    status, out, err = run()
    assert (status, err) == (0, "")
    assert "Commands:" in out
    assert out.count("\n") > 10


def test_that_joblib_replaced_a_process_is_not_said(run) -> None:
    text = "A worker stopped while some jobs were given to the "
    assert text in inspect.getsource(process_executor)
    with pytest.raises(UserWarning, match="A worker"):
        warnings.warn(text, stacklevel=1)
    run("--version")
    warnings.warn(text, stacklevel=1)


def test_configs(run) -> None:
    status, out, _ = run("configs", "--json")
    assert status == 0
    assert [config["name"] for config in json.loads(out)] == list(NAMED)
    status, out, _ = run("configs")
    assert all(name in out for name in NAMED)


@pytest.mark.parametrize("shape", [(4, 4, 16), (1, 1, 1), (5, 7, 50)])
def test_simulate_any_shape(run, tmp_path: Path, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    config = _tiny(tmp_path)
    status, out, err = run("simulate", "--config", config, "--m", m, "--n", n, "--k", k, "--engine", "python", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    steps = m * -(-n // 2) * -(-k // 16)
    assert found["steps"] == steps
    assert found["cycles"] == steps + len(DEFAULT_PIPELINE) + 1
    assert (found["outputs"], found["mismatches"]) == (m * n, 0)
    assert found["utilisation"] == pytest.approx(m * n * k / (found["cycles"] * 32))


def test_simulate_exact_numerics(run, tmp_path: Path) -> None:
    config = _tiny(tmp_path, numerics="exact")
    arguments = ("--config", config, "--m", 2, "--n", 3, "--k", 200, "--tensors", "heavy-tailed", "--gaps", 0.2)
    status, out, err = run("simulate", *arguments, "--stalls", 0.2, "--engine", "python", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["outputs"], found["mismatches"]) == (6, 0)


def test_simulate_files_with_gaps_and_stalls(run, tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    a = generator.standard_normal((3, 40)).astype(np.float32)
    np.save(tmp_path / "a b; c'.npy", a)
    save_file({"w": generator.standard_normal((2, 40)).astype(np.float16)}, tmp_path / "b.safetensors")
    common = ("simulate", "--config", _tiny(tmp_path), "--engine", "python", "--json")
    operands = ("--a", tmp_path / "a b; c'.npy", "--b", tmp_path / "b.safetensors", "--b-name", "w")
    status, out, _ = run(*common, *operands)
    assert status == 0
    free = json.loads(out)
    assert (free["m"], free["n"], free["k"], free["mismatches"]) == (3, 2, 40, 0)
    status, out, _ = run(*common, *operands, "--gaps", "0.5", "--stalls", "0.5")
    held = json.loads(out)
    assert (status, held["mismatches"], held["steps"]) == (0, 0, free["steps"])
    assert held["cycles"] > free["cycles"]


def test_a_mismatch_is_status_1(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = golden.accumulate

    def wrong(*arguments: object, **options: object) -> np.ndarray:
        result = right(*arguments, **options).copy()
        result.view(np.uint32)[0, 1] ^= 1
        return result

    monkeypatch.setattr(golden, "accumulate", wrong)
    status, out, err = run("simulate", "--config", _tiny(tmp_path), "--m", 1, "--n", 2, "--k", 16, "--engine", "python")
    assert status == 1
    assert "mismatches" in out
    assert err.startswith("hwgen: mismatch: D[0, 1] is 0x")
    assert err.count("\n") == 1


def test_verify(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "nope")
    reason = "CXX = 'nope' is not there"
    arguments = ("verify", "--config", _tiny(tmp_path), "--macs", "300", "--seed", 2)
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (
        0,
        f"hwgen: no C++ compiler, {reason}: the Python simulator is thousands of times slower\n",
    )
    found = json.loads(out)
    assert (found["engine"], found["macs"], found["steps"]) == ("python", 320, 10)
    assert found["mismatch"] is found["reproducer"] is None
    assert found["goals"] == sum(group["goals"] for group in found["coverage"].values())
    assert 0 < found["hit"] < found["goals"]
    assert found["coverage"]["tag pairs"]["events"] == sum(np.ravel(found["coverage"]["tag pairs"]["counts"]))
    status, out, err = run(*arguments, "--engine", "python", "--complete")
    assert status == 1
    assert "code pairs" in out
    assert "missed: and" in out
    assert re.fullmatch(r"hwgen: \d+ coverage goals were not met, the first: code pairs: lane .*\n", err)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_difference_is_said_where_its_reproducer_cannot_be_written(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = golden.step

    def full(*given: object) -> None:
        raise StorageError("cannot write 'x.npz': No space left on device")

    monkeypatch.setattr(golden, "step", lambda *a, **b: -right(*a, **b))
    monkeypatch.setattr(verify, "reproduce", full)
    arguments = ("verify", "--config", _tiny(tmp_path), "--macs", "300", "--engine", "python", "--out", tmp_path)
    status, out, err = run(*arguments)
    assert (status, "coverage" in out or "goals" in out) == (1, True)
    last = err.splitlines()[-1]
    assert re.fullmatch(r"hwgen: mismatch: seed 1, batch \d+, .*; cannot write 'x.npz': No space left on device", last)


def test_verify_of_both_modes(run, tmp_path: Path) -> None:
    core = tmp_path / "slot.toml"
    core.write_text('a = "nvfp4"\nb = "nvfp4"\nrows = 1\ncolumns = 1\ngroups = 1\nslot = "full"\n')
    arguments = ("verify", "--config", core, "--macs", "300", "--out", tmp_path, "--engine", "python", "--jobs", "1")
    status, out, err = run(*arguments, "--json", "--complete")
    assert status == 1
    assert re.fullmatch(r"hwgen: \d+ coverage goals were not met, the first: [^\n]*\n", err)
    found = json.loads(out)
    assert (found["macs"], found["macs_at_half_rate"], found["steps"]) == (304, 144, 28)
    assert sum(np.ravel(found["coverage"]["modes of a tile"]["counts"])) == 28
    assert found["coverage"]["half rate: codes of A"]["excluded"] == 8 * (2 + 8)
    group = found["coverage"]["half rate: significands"]
    assert group["hit"] < group["goals"]
    assert [path.name for path in tmp_path.iterdir()] == ["slot.toml"]


def test_verilog_into_an_odd_directory(run, tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s; a "dir"'
    status, out, _ = run("verilog", _tiny(tmp_path), "--out", odd, "--json")
    assert status == 0
    (written,) = json.loads(out)
    assert written["configuration"] == "tiny"
    assert sorted(os.listdir(odd)) == ["tiny", "tiny.core", "tiny.json", "tiny.v"]
    assert sorted(written["files"]) == sorted(str(path) for path in odd.rglob("*") if path.is_file())


def test_clock_of_the_constraints(run, tmp_path: Path) -> None:
    measured = tmp_path / 'ö\n;"$x" [y].json'
    _measured("overhead.json", measured)
    clock = json.loads(measured.read_text())["conditions"]["clock_ns"]
    given = {
        (): (6.6, "sky130hd, 150 MHz"),
        ("--clock", 2.125): (2.125, "as given"),
        ("--report", measured): (f"{1000 * clock:g}", ascii(measured.name)),  # generic7 counts in ps, as asap7 does
    }
    for options, (period, source) in given.items():
        assert run("verilog", "mixfp4-small", "--out", tmp_path, *options)[0] == 0
        text = (tmp_path / "mixfp4-small" / "constraint.sdc").read_text("ascii")
        assert f"\nset clk_period {period}\n" in text
        assert source in text


def test_verilog_of_a_report_has_the_lanes_that_it_measured(run, tmp_path: Path) -> None:
    """And the slot; the clock is that of these."""
    measured = tmp_path / "measured.json"
    _measured("overhead-multi.json", measured)
    content = json.loads(measured.read_text())
    taken = {
        purpose: scopes["core"] for purpose, scopes in content["conditions"]["closing"]["mixfp4-multi-small"].items()
    }
    taken["energy"]["lanes"], taken["energy"]["slot"] = "signed", "separate"
    measured.write_text(json.dumps(content))
    own = NAMED["mixfp4-multi-small"]
    for options, purpose in (((), "area"), (("--purpose", "energy"), "energy")):
        assert run("verilog", own.name, "--report", measured, *options, "--out", tmp_path)[0] == 0
        written = json.loads((tmp_path / f"{own.name}.json").read_text())["configuration"]
        lanes, slot = (taken[purpose][key] for key in ("lanes", "slot"))
        assert (written["dot"], written["slot"]) == (lanes, slot) != (own.dot, own.slot)
        text = (tmp_path / own.name / "constraint.sdc").read_text("ascii").replace("\n# ", " ")
        assert f"it has these lanes {lanes}, slot {slot} for least {purpose}" in text
    status, _, err = run("verilog", "mixfp4-small", "--purpose", "energy", "--out", tmp_path)
    assert (status, "is of a report; give that with --report" in err) == (2, True)
    assert run("verilog", "mixfp4-small", "--clock", 0.8, "--time-unit", "ps", "--out", tmp_path)[0] == 0
    assert "\nset clk_period 800\n" in (tmp_path / "mixfp4-small" / "constraint.sdc").read_text("ascii")


def test_cost_of_a_model(run, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    _measured("overhead-blackwell.json", tmp_path / "reports" / "some name.json")
    odd = tmp_path / 'it\'s; a "dir"'
    model = ("cost", "--model", "qwen3-8b", "--phase", "decode", "--batch", 3, "--sequence", 700)
    pair = ("--config", "mixfp4-blackwell", "--vs", "nvfp4-blackwell")
    status, out, err = run(*model, *pair, "--out", odd, "--name", "a b", "--timeloop", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert [design["name"] for design in found["designs"]] == ["nvfp4-blackwell", "mixfp4-blackwell"]
    assert found["conditions"]["measured"]["report"] == "some name.json"
    assert found["conditions"]["workload"]["tokens"] == 3
    assert found["conditions"]["cores"] == 64
    exports = [f"a b-{name}-blackwell.{kind}.yaml" for name in ("mixfp4", "nvfp4") for kind in ("art", "ert", "lib")]
    written = sorted(path.name for path in odd.iterdir())
    assert written == sorted([*exports, *(f"a b.{kind}" for kind in ("csv", "json", "md", "png"))])
    assert json.loads((odd / "a b.json").read_text()) == found
    before = {path: path.read_bytes() for path in odd.iterdir()}
    status, out, _ = run("report", odd / "a b.json")
    assert status == 0
    assert {path: path.read_bytes() for path in odd.iterdir()} == before


@pytest.mark.parametrize("more", [(), ("--half-rate", "none")])
def test_a_list_at_half_the_rate_takes_a_slot(run, tmp_path: Path, more) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("name,m,n,k,rate\nup,64,256,128,half\n")
    status, out, err = run("cost", "--gemms", path, "--config", "mixfp4-blackwell", *more, "--out", tmp_path / "out")
    assert (status, out) == (2, "")
    assert re.search(r"GEMM list '.*mine\.csv': rate = 'half': mixfp4-blackwell has no slot; give a core with one", err)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("undrawn")
def test_the_page_states_what_attention_in_fp8_costs(run, tmp_path: Path) -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "cost.md").read_text("utf-8").split())
    model = ("cost", "--model", "llama-3.1-8b", "--phase", "prefill", "--sequence", 8192)
    pair = ("--config", "mixfp4-multi-small", "--vs", "nvfp4-multi-small", "--out", tmp_path, "--json")
    said = []
    for more in ((), ("--half-rate", "attention")):
        status, out, _ = run(*model, *pair, *more)
        assert status == 0
        totals = {each["metric"]: each for each in json.loads(out)["totals"]}
        said.append(f"{1e6 * next(iter(totals['time per token']['values'].values())):.1f} us")
        over = [100 * totals["energy per token"]["overhead"][end] for end in ("value", "low", "high")]
        said.append("{:+.2f} % [{:+.2f}, {:+.2f}]".format(*over))
    assert [each for each in said if each not in page] == []


@pytest.mark.usefixtures("undrawn")
def test_cost_without_a_report_of_ones_own(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty directory it is a report that comes with the package, and a line says so."""
    (tmp_path / "shipped").mkdir()
    _measured("overhead-blackwell.json", tmp_path / "shipped" / "overhead-blackwell.json")
    for module in ("hwgen.measure.workloads.cores", "hwgen.report.shipped"):
        monkeypatch.setattr(f"{module}.shipped", lambda: tmp_path / "shipped")
    status, out, err = run("cost", "--model", "qwen3-8b", "--vs", "nvfp4-blackwell", "--json")
    assert status == 0
    assert json.loads(out)["conditions"]["measured"]["report"] == "overhead-blackwell.json"
    assert err == (
        "hwgen: 'reports' has no report on nvfp4-blackwell and mixfp4-blackwell:"
        " overhead-blackwell.json is taken, which comes with hwgen\n"
    )
    _measured("overhead-blackwell.json", tmp_path / "reports" / "mine.json")
    status, out, err = run("cost", "--model", "qwen3-8b", "--vs", "nvfp4-blackwell", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["conditions"]["measured"]["report"] == "mine.json"


@pytest.mark.usefixtures("undrawn")
def test_cost_of_a_list_on_one_design(run, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("name,m,n,k\nfirst,10,20,30\n")
    report = tmp_path / "measured.json"
    _measured("overhead.json", report)
    options = ("--config", "nvfp4-small", "--report", report, "--grid", "2x2", "--operands", 60, "--clock", 1000)
    status, out, err = run("cost", "--gemms", "own.csv", *options, "--single-buffered", "--name", "own")
    assert (status, err) == (0, "")
    assert "energy per pass" in out
    found = json.loads((tmp_path / "reports" / "own.json").read_text())
    values = found["results"][0]["values"]["nvfp4-small"]
    # Two by three tiles of 8 x 8 outputs, two steps each, in two rounds of four turns; 16 rows of 16 elements in five
    # cycles, more than turns: no step waits for its own.
    assert (values["steps"], values["period"]) == (16, 5)
    # The last two turns are empty, and end after the last result.
    assert values["core_cycles"] == 5 * 16 > 5 * (16 - 2) + NAMED["nvfp4-small"].latency
    assert found["conditions"]["clock_ns"] == 1000
    assert found["conditions"]["arrangement"] == {"batch": 1, "rows": 2, "columns": 2}


@pytest.mark.usefixtures("undrawn")
def test_the_energy_that_the_documentation_compares_with_a_gpu(run, tmp_path: Path) -> None:
    """docs/cost.md, beside published measurements."""
    report = tmp_path / "measured.json"
    _measured("overhead-blackwell.json", report)
    model = ("cost", "--model", "llama-3.1-8b", "--batch", 64, "--sequence", 1024, "--config", "nvfp4-blackwell")
    status, out, err = run(*model, "--machine", "small", "--report", report, "--json")
    assert (status, err) == (0, "")
    (energy,) = (
        1e3 * each["values"]["nvfp4-blackwell"]
        for each in json.loads(out)["totals"]
        if each["metric"] == "energy per token"
    )
    page = (Path(__file__).parents[2] / "docs" / "cost.md").read_text(encoding="utf-8")
    assert f"hwgen says {energy:.1f} mJ with" in page
    assert f"It is {120 / energy:.0f} times" in page.replace("\n", " ")


@pytest.mark.usefixtures("undrawn")
def test_the_time_that_the_documentation_gives_for_attention_in_fp8(run, tmp_path: Path) -> None:
    """docs/cost.md, attention in FP8."""
    report = tmp_path / "measured.json"
    _measured("overhead-multi.json", report)
    model = ("cost", "--model", "llama-3.1-8b", "--phase", "prefill", "--sequence", 8192, "--report", report, "--json")
    times = []
    in_fp8, skipped = ("--half-rate", "attention"), ("--skip-masked", 1024)
    for options in (skipped, (*skipped, *in_fp8), (), in_fp8):
        status, out, err = run(*model, "--config", "mixfp4-multi-small", *options)
        assert (status, err) == (0, "")
        assert json.loads(out)["conditions"]["assumptions"].get("query_block") == (
            1024 if skipped[0] in options else None
        )
        (time,) = (each for each in json.loads(out)["totals"] if each["metric"] == "time per token")
        times.append(1e6 * time["values"]["mixfp4-multi-small"])
    macs = {each["gemm"]: each["macs"] * each["count"] for each in json.loads(out)["results"]}
    page = " ".join((Path(__file__).parents[2] / "docs" / "cost.md").read_text(encoding="utf-8").split())
    share = (macs["scores"] + macs["values"]) / sum(macs.values())
    assert f"{times[2]:.1f} us on 64 cores at 1 ns, and {times[3]:.1f} us with attention in FP8" in page
    assert (
        "without masked scores {:.1f} us in place of {:.1f} us, and {:.1f} us in place of {:.1f} us with".format(
            *(times[place] for place in (0, 2, 1, 3))
        )
        in page
    )
    assert f"Scores and values are {100 * share:.0f} %" in page


@pytest.mark.usefixtures("undrawn")
def test_cost_of_other_assumptions(run, tmp_path: Path) -> None:
    """Every option reaches the report."""
    report = tmp_path / "measured.json"
    _measured("overhead-blackwell.json", report)
    machine = ("--machine", "b200-class", "--buffer-leakage", 3, "--buffer-area", 0.5, "--idle-cores", "stepping")
    results = ("--results", "bf16", "--attention", "unfused", "--experts", "even")
    energies = ("--quantiser-energy", "mixfp4-blackwell=210, nvfp4-blackwell=100", "--accelforge")
    model = ("cost", "--model", "qwen3-30b-a3b", "--vs", "nvfp4-blackwell", "--report", report, "--json")
    status, out, err = run(*model, *machine, *results, *energies)
    assert (status, err) == (0, "")
    conditions = json.loads(out)["conditions"]
    assumed = conditions["assumptions"]
    assert assumed.pop("machine_source").startswith("NVIDIA B200")
    assert assumed == {
        "machine": "b200-class",
        "results": "bf16",
        "attention": "unfused",
        "experts": "even",
        "idle_cores": "stepping",
        "quantiser_fj": {"nvfp4-blackwell": 100, "mixfp4-blackwell": 210},
    }
    memory = conditions["memory"]
    assert (conditions["cores"], memory["buffer_bytes"]) == (592, 126 << 20)
    assert (memory["buffer_mm2_per_mib"], memory["buffer_mw_per_mib"], memory["result_bytes"]) == (0.5, 3, 2)
    flops = 2 * 592 * 4096 / (conditions["clock_ns"] * 1e-9)
    assert flops / memory["dram_bytes_per_second"] == pytest.approx(1125)
    names = {path.name for path in (tmp_path / "reports").iterdir()}
    for design in ("nvfp4", "mixfp4"):
        assert {f"cost-{design}-blackwell.{end}" for end in ("hwcomponents.py", "accelforge.yaml")} < names
    for options, expected in (
        (("--balance", 500), flops / 592 * 64 / 500),
        (("--dram", 100), 1e11),
        ((), 819.2e9),
        (("--machine", "b200-class", "--dram", 100), 1e11),
        (("--machine", "b200-class", "--balance", 500), flops / 500),
    ):
        status, out, err = run(*model, *options)
        assert (status, err) == (0, "")
        found = json.loads(out)["conditions"]
        assert found["memory"]["dram_bytes_per_second"] == pytest.approx(expected)
        # As measured on the library of the cores, by the report that comes with hwgen.
        assert found["assumptions"]["quantiser_report"] == "quantisers.json"
        energy = found["assumptions"]["quantiser_fj"]
        assert energy["mixfp4-blackwell"] > 2 * energy["nvfp4-blackwell"] > 400
    assert found["memory"]["buffer_mm2_per_mib"] == pytest.approx(41 / 64), "generic7 is of 7 nm"
    status, out, _ = run(*model, "--quantiser-energy", 7)
    assumed = json.loads(out)["conditions"]["assumptions"]
    assert set(assumed["quantiser_fj"].values()) == {7}
    assert "quantiser_report" not in assumed


@pytest.mark.usefixtures("undrawn")
def test_the_default_area_of_a_buffer_is_for_a_library_of_its_node(run, tmp_path: Path) -> None:
    report = tmp_path / "measured.json"
    _measured("overhead.json", report)
    content = json.loads(report.read_text())
    content["conditions"]["flow"]["library"]["name"] = "sky130_fd_sc_hd"
    report.write_text(json.dumps(content))
    model = ("cost", "--model", "qwen3-8b", "--config", "nvfp4-small", "--report", report, "--json")
    status, out, _ = run(*model)
    assert status == 0
    conditions = json.loads(out)["conditions"]
    assert conditions["memory"]["buffer_mm2_per_mib"] is None
    assert conditions["assumptions"]["quantiser_fj"] is None, "quantisers were measured on generic7"
    status, out, _ = run(*model, "--buffer-area", 9)
    assert json.loads(out)["conditions"]["memory"]["buffer_mm2_per_mib"] == 9


_MODEL = ("cost", "--model", "qwen3-8b")
BAD = [
    (("cost",), "give --model, one of llama-3.1-70b"),
    (("cost", "--model", "qwen"), "unknown model 'qwen'"),
    (("cost", "--gemms", "absent.csv"), "GEMM list 'absent.csv': No such file"),
    (("cost", "--gemms", "bad.toml"), "GEMM list 'bad.toml': not valid TOML"),
    (("cost", "--gemms", "good.npy"), "'good.npy': must end in .toml or .csv"),
    ((*_MODEL, "--config", "a/tiny.toml"), "no report on tiny in 'reports' or among those of hwgen itself"),
    ((*_MODEL, "--vs", "nvfp4-small"), "differ in rows"),
    ((*_MODEL, "--grid", "0x4"), "--grid '0x4': must be ROWSxCOLUMNS"),
    ((*_MODEL, "--grid", "9" * 5000 + "x1"), "x1': must have at most 65536 cores"),
    (("compare", "--runs", "1.5"), "'1.5' is not a whole number"),
    (
        (*_MODEL, "--half-rate", "attention"),
        "--half-rate attention: mixfp4-blackwell has no slot; give a core with one",
    ),
    ((*_MODEL, "--vs", "mixfp4-blackwell"), "both 'mixfp4-blackwell'"),
    ((*_MODEL, "--skip-masked", "64"), "--skip-masked 64: in decode no scores are masked; leave it out"),
    (
        (*_MODEL, "--phase", "prefill", "--skip-masked", "8"),
        "--skip-masked 8: 256 blocks of queries; at most 64, so 32",
    ),
    ((*_MODEL, "--experts", "even"), "--experts even: qwen3-8b has no experts; leave it out"),
    ((*_MODEL, "--report", "absent.json"), "'absent.json': No such file"),
    ((*_MODEL, "--report", "wrong.json"), "'wrong.json': damaged"),
    ((*_MODEL, "--report", "small.json"), "'small.json': is on .*, not on mixfp4-blackwell"),
    ((*_MODEL, "--report", "measured.json", "--clock", "0.001"), "clock of 0.001 ns: the critical path is"),
    (("cost", "--model", "qwen3-8b", "--gemms", "x.csv"), "give one of --model and --gemms, not both"),
    ((*_MODEL, "--report", "measured.json", "--dram", "9", "--balance", "9"), "--balance says what bandwidth there is"),
    ((*_MODEL, "--report", "measured.json", "--quantiser-energy", "x=9"), "says x; must say each of mixfp4-blackwell"),
    ((*_MODEL, "--quantiser-energy", "x=9,x=8"), "x is there twice; must be there once"),
    ((*_MODEL, "--quantiser-energy", "x=nan"), "--quantiser-energy nan: must be a number from 0"),
    ((*_MODEL, "--quantiser-energy", "x="), "--quantiser-energy '': must be a number from 0"),
    ((*_MODEL, "--quantiser-energy", "1", "--quantisers", "measured.json"), "leave --quantisers out"),
    ((*_MODEL, "--quantisers", "measured.json"), "kind 'overhead'; must be one of 'hwgen quantiser compare'"),
    ((*_MODEL, "--quantisers", "absent.json"), "'absent.json': No such file"),
    ((*_MODEL, "--quantiser-energy", "-1"), "--quantiser-energy -1: must be a number from 0"),
    ((*_MODEL, "--buffer-leakage", "-1"), "--buffer-leakage -1: must be a number from 0"),
    ((*_MODEL, "--balance", "0"), "--balance 0: must be a number of FLOP per byte"),
    ((*_MODEL, "--results", "fp8"), "fp8"),
    ((*_MODEL, "--buffer", "1e-9"), r"--buffer 1e-09: must be a number of MiB from 0\.001"),
    ((*_MODEL, "--dram", "1e-11"), r"--dram 1e-11: must be a number of GB/s from 1e-06"),
    ((*_MODEL, "--operands", "0.5"), "--operands 0.5: must be a number of elements from 1"),
    ((*_MODEL, "--report", "measured.json", "--buffer", "0.001"), r"1,049 bytes \(0.001 MiB\): one step .* needs"),
    ((*_MODEL, "--phase", "training"), "--phase"),
    ((*_MODEL, "--batch", "0"), "--batch"),
    ((*_MODEL, "--report", "measured.json", "--clock", "nan"), "--clock nan"),
    ((*_MODEL, "--dram", "0"), "--dram 0: must be a number of GB/s"),
    ((*_MODEL, "--operands", "inf"), "--operands inf: must be a number of elements"),
    ((*_MODEL, "--buffer", "-1"), "--buffer -1: must be a number of MiB"),
    ((*_MODEL, "--dram-energy", "-1"), "--dram-energy -1: must be a number from 0"),
    ((*_MODEL, "--grid", "8"), "--grid '8': must be ROWSxCOLUMNS"),
    ((*_MODEL, "--grid", "0x8"), "--grid '0x8': must be ROWSxCOLUMNS"),
    ((*_MODEL, "--grid", "999x999x9"), "--grid '999x999x9': must have at most 65536 cores"),
    ((*_MODEL, "--report", "measured.json", "--grid", "2x2", "--cores", "4"), "leave --cores out"),
    ((*_MODEL, "--name", "../up"), "--name '../up'"),
    ((*_MODEL, "--out", "good.npy"), "'good.npy' is not a directory"),
    (("simulate", "--gaps", "nan"), "--gaps nan"),
    (("simulate", "--m", "99999999999999999999"), "--m"),
    (("simulate", "--a", "empty.npy"), "empty.npy: is empty"),
    (("report", "wrong.json"), "'wrong.json': damaged"),
    (("verilog", "a/tiny.toml", "b/tiny.toml"), "'tiny' is given twice"),
    (("frobnicate",), "No such command 'frobnicate'"),
    (("comapre",), "No such command 'comapre'; did you mean 'compare'?"),
    (("quantiser", "verify", "mixfp4-quantizer"), "'mixfp4-quantizer' is not one of.*did you mean 'mixfp4-quantiser'"),
    (("simulate", "--m", "0"), "--m"),
    (("simulate", "--m", "two"), "'two' is not a whole number"),
    (("simulate", "--config", "mixfp4-smal"), "unknown configuration 'mixfp4-smal': .*did you mean 'mixfp4-small'"),
    (("simulate", "--config", "absent.toml"), "'absent.toml': No such file"),
    (("simulate", "--config", "bad.toml"), "'bad.toml': not valid TOML"),
    (("simulate", "--config", "odd.toml"), "'odd.toml': unknown key 'rowz'; did you mean 'rows'"),
    (("simulate", "--a", "absent.npy"), "absent.npy"),
    (("simulate", "--a", "nan.npy"), r"nan.npy.*\[1, 2\]"),
    (("simulate", "--a", "junk.npy"), "junk.npy"),
    (("simulate", "--a", "good.npy", "--k", "32"), "A has K = 16, --k is 32; they must be the same"),
    (("simulate", "--a", "good.npy", "--m", "5"), "--m 5: 'good.npy' has 2 rows"),
    (("simulate", "--a-name", "x"), "--a-name 'x'"),
    (("simulate", "--layer", "x"), "--model and --layer"),
    (("simulate", "--engine", "abacus"), "'abacus'"),
    (("simulate", "--gaps", "1"), "--gaps"),
    (("simulate", "--replay", "absent.npz"), "'absent.npz': No such file"),
    (("simulate", "--replay", "good.npy"), "'good.npy': not what 'hwgen verify' writes: not an .npz file"),
    (("simulate", "--replay", "junk.npy"), "'junk.npy': not what 'hwgen verify' writes"),
    (("simulate", "--replay", "absent.npz", "--k", "32"), "--replay brings its own stimulus: leave --k out"),
    (("verify", "--macs", "nan"), "--macs nan: must be a number from 1"),
    (("verify", "--macs", "0"), "--macs 0: must be a number from 1"),
    (("verify", "--seed", "-1"), "--seed"),
    (("verify", "--jobs", "0"), "--jobs 0: must be from 1"),
    (("verify", "--engine", "abacus"), "'abacus'"),
    (("verify", "--config", "odd.toml"), "'odd.toml': unknown key 'rowz'"),
    (("verify", "--out", "good.npy"), "cannot write to 'good.npy'"),
    (("synth", "--baseline", "nvfp4-small", "--candidate", "nvfp4-small"), "both 'nvfp4-small'"),
    (("synth", "--baseline", "nvfp4-small", "--candidate", "mixfp4-blackwell"), "differ in rows"),
    (("synth", "--library", "generic3"), "no default library 'generic3'; there are generic7, generic130"),
    (("synth", "--liberty", "absent.lib"), "absent.lib: no such file"),
    (("synth", "--liberty", "."), r"\.: is a directory"),
    (("synth", "--liberty", "junk.npy"), "junk.npy"),
    (("synth", "--liberty", "empty.lib"), "empty.lib"),
    (("synth", "--recipe", "magic"), "unknown recipe 'magic'; known are area"),
    (("synth", "--clock", "0"), "--clock 0"),
    (("synth", "--clock", "nan"), "--clock nan"),
    (("synth", "--jobs", "0"), "--jobs 0"),
    (("synth", "--as-mapped", "--wires", "placed"), "--wires placed: has no meaning with --as-mapped"),
    (("synth", "--as-mapped", "--placer", "embedded"), "--placer embedded: has no meaning with --as-mapped"),
    (("compare", "--wires", "fanout", "--placer", "embedded"), "--placer embedded: has no meaning with --wires fanout"),
    (("compare", "--config", "large"), "unknown configuration 'nvfp4-large'"),
    (("simulate", "--config", "exact.toml", "--k", "4100", "--m", "1", "--n", "1"), "K = 4112: .* up to K = 4096"),
    (("compare", "--config", "exact.toml"), "'exact.toml': stands for both formats here; leave 'a' out"),
    (("compare", "--config", "absent.toml"), "'absent.toml': No such file"),
    (("compare", "--config", "small", "--baseline", "nvfp4-small"), "--config names both designs"),
    (("compare", "--backend", "magic"), "--backend 'magic': joblib knows"),
    (("compare", "--time-limit", "inf"), "--time-limit inf"),
    (("synth", "--name", "../up"), "--name '../up'"),
    (("synth", "--out", "good.npy"), "cannot write to 'good.npy': 'good.npy' is not a directory"),
    (("verilog", "--out", ""), "--out '': must be the name of a file or directory"),
    (("synth", "--dont-use", "NAND9*"), r"dont_use 'NAND9\*': matches no cell of generic7"),
    (("synth", "--dont-use", "INV_*"), "no inverter"),
    (("explore", "--baseline", "nvfp4-small", "--candidate", "mixfp4-blackwell"), "differ in rows"),
    (("explore", "--clock", "3", "--clock", "-1"), "--clock -1"),
    (
        ("explore", "--pipeline", "operands,term"),
        "'term' is not one of operands, decoded, tree, sums, factors, terms, compared, aligned,",
    ),
    (("explore", "--pipeline", "operands,terms,terms"), "names 'terms' twice"),
    (("explore", "--runs", "0"), "--runs"),
    (("formats", "--rows", "nvfp4,mixfp"), "--rows: unknown row 'mixfp'; did you mean 'mixfp4'"),
    (("formats", "--rows", "nvfp4,mixfp4,nvfp4"), "--rows: 'nvfp4' is given twice"),
    (("formats", "--rows", ""), "--rows: has an empty name; put one between each two commas"),
    (("formats", "--dont-use", "DFF*"), "no rising-edge D flip-flop without the cells DFF\\*; synthesis needs"),
    (("formats", "--lanes", "magic"), "--lanes magic: must be one of merged"),
    (("formats", "--wires", "fanout", "--placer", "embedded"), "--placer embedded: has no meaning with --wires fanout"),
    (("formats", "--within", "0"), "--within 0: must be percentage points"),
    (("formats", "--recipe", "magic"), "unknown recipe 'magic'"),
    (("formats", "--name", "../up"), "--name '../up'"),
    (("power", "--baseline", "nvfp4-small", "--candidate", "mixfp4-blackwell"), "differ in rows"),
    (("power", "--clock", "nan"), "--clock nan"),
    (("power", "--hold", "0"), "--hold"),
    (("power", "--config", "core.toml", "--hold", "2"), "hold = 2: nvfp4-core accumulates exactly"),
    (("compare", "--config", "core.toml", "--hold", "2"), "hold = 2: nvfp4-core accumulates exactly"),
    (("power", "--tensors", "flat"), "--tensors"),
    (("report", "strange.json"), r"'strange.json': kind \['x'\]; this hwgen knows overhead, exploration"),
    (("report",), "no report in 'reports'"),
    (("report", "--check", "absent.json"), "'absent.json': No such file"),
    (("report", "--out", "elsewhere"), "--out: has a meaning with --beside or --join alone; leave it out"),
    (
        ("report", "--join", "whole", "measured.json", "absent.json"),
        "'measured.json': is of 'hwgen compare'; --join takes",
    ),
    (("report", "--join", "a.json", "b.json"), "--join 'a.json': is a file; give the name"),
    (("report", "--join", ""), "--join: takes two reports of 'hwgen formats' or more"),
    (("report", "--within", "1"), "--within: has a meaning with --check alone; leave it out"),
    (("report", "--check", "--within", "nan"), "--within nan: must be percentage points above 0"),
    (("report", "old.json"), "'old.json': schema version 3; this hwgen reads 5; measure it anew with 'hwgen compare'"),
    (("compare", "--baseline", "nvfp4-small"), "'nvfp4-small' alone: name what it is compared with, with --candidate"),
    (("explore", "--candidate", "mixfp4-small"), "'mixfp4-small' alone: .* with --baseline"),
    (("report", "absent.json"), "'absent.json': No such file"),
    (("report", "bad.toml"), "'bad.toml': its name must end in .json"),
    (("report", "bad.json"), "'bad.json': not JSON"),
    (("verilog", "--out", "good.npy"), "cannot write to 'good.npy'"),
    (("verilog", "--clock", "nan"), "--clock nan"),
    (("verilog", "--clock", "0"), "--clock 0"),
    (("verilog", "--clock", "2", "--report", "measured.json"), "leave --clock out"),
    (("verilog", "--report", "absent.json"), "'absent.json': No such file"),
    (("verilog", "--report", "wrong.json"), "'wrong.json': damaged"),
    (("verilog", "--report", "measured.json"), "'measured.json': is on .*-blackwell, not on nvfp4-small"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_one_line_and_status_2(run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "bad.toml").write_text("rows = = 4")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "odd.toml").write_text('a = "nvfp4"\nrowz = 4')
    exact = 'a = "nvfp4"\nb = "nvfp4"\nrows = 1\ncolumns = 1\ngroups = 1\nnumerics = "exact"\nlargest_depth = 4096\n'
    (tmp_path / "exact.toml").write_text(exact)
    (tmp_path / "core.toml").write_text('rows = 1\ncolumns = 1\ngroups = 1\nnumerics = "exact"\n')
    (tmp_path / "junk.npy").write_bytes(bytes(range(256)))
    (tmp_path / "empty.lib").write_text("library (none) { }")
    np.save(tmp_path / "good.npy", np.ones((2, 16), np.float32))
    broken = np.ones((2, 16), np.float32)
    broken[1, 2] = np.nan
    np.save(tmp_path / "nan.npy", broken)
    np.save(tmp_path / "empty.npy", np.zeros((0, 16), np.float32))
    report = {
        "schema": "hwgen-report",
        "version": 5,
        "kind": "overhead",
        "designs": [],
        "conditions": {},
        "results": [1],
    }
    (tmp_path / "wrong.json").write_text(json.dumps(report))
    (tmp_path / "old.json").write_text(json.dumps({**report, "version": 3}))
    _measured("overhead.json", tmp_path / "small.json")
    _measured("overhead-blackwell.json", tmp_path / "measured.json")
    (tmp_path / "strange.json").write_text(json.dumps({**report, "kind": ["x"]}))
    for name in "ab":
        (tmp_path / name).mkdir()
        _tiny(tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("hwgen: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_reports_of_another_kind_break_nothing(run, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    for name in ("mutation", "cost-decode"):
        shutil.copy(REPORTS / f"{name}.json", tmp_path / "reports")
    status, out, err = run("report")
    assert status == 0
    assert out.split() == [f"reports/cost-decode.{suffix}" for suffix in ("md", "csv", "png")]
    assert err == "hwgen: reports/mutation.json: another kind of file, left as it is\n"
    for suffix in ("md", "csv"):
        name = f"cost-decode.{suffix}"
        assert (tmp_path / "reports" / name).read_bytes() == (REPORTS / name).read_bytes()


def test_a_report_is_checked_in_plain_words(run, tmp_path: Path) -> None:
    shutil.copy(REPORTS / "cost-decode.json", tmp_path)
    report = json.loads((REPORTS / "overhead.json").read_text(encoding="utf-8"))
    for figure in report["results"]:
        if (figure["scope"], figure["metric"]) == ("core", "area"):
            figure["overhead"] |= {
                "low": figure["overhead"]["value"] - 0.01,
                "high": figure["overhead"]["value"] + 0.02,
            }
    report["conditions"]["closing"]["mixfp4-small"]["energy"]["core"]["recipes"]["dot_product"] = "prefix"
    (tmp_path / "overhead.json").write_text(json.dumps(report), encoding="utf-8")
    status, out, _ = run("report", "--check", "overhead.json", "cost-decode.json")
    assert status == 0
    assert re.search(r"area of the core: the overhead of .* is known to \+-1.5 points", out)
    assert "core for least energy: other recipes for dot_product; the overhead is one of these" in out
    assert "cost-decode.json: nothing to be said against it" in out
    status, out, _ = run("report", "--check", "--within", 90, "overhead.json")
    assert "area of the core" not in out
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".json"]


def test_a_report_on_a_default_library_that_has_changed_is_to_be_measured_anew(run, tmp_path: Path) -> None:
    written = json.loads((REPORTS / "overhead.json").read_text(encoding="utf-8"))
    library = written["conditions"]["flow"]["library"]
    present = reader.load(libraries.path("generic7")).digest
    for name, digest in (("generic7", present), ("generic7", "0" * 64), ("a library of one's own", "0" * 64)):
        library |= {"name": name, "sha256": digest}
        (tmp_path / "r.json").write_text(json.dumps(written), encoding="utf-8")
        status, out, _ = run("report", "--check", "r.json")
        assert status == 0
        said = "r.json: measured with another generic7 than the one of this version: measure anew\n" in out
        assert said == (name == "generic7" and digest != present)


def test_the_name_of_a_report_says_what_is_compared() -> None:
    pair = NAMED["nvfp4-small"], NAMED["mixfp4-small"]
    request = OverheadRequest(*pair, Stimulus())
    assert default_stem(request, SimpleNamespace(name="generic7")) == "mixfp4-small-over-nvfp4-small-generic7-gated"
    assert default_stem(request, SimpleNamespace(name="a/b c")) == "mixfp4-small-over-nvfp4-small-a-b-c-gated"
    assert len(default_stem(request, SimpleNamespace(name="x" * 999))) <= 200
    # No committed report has such a name.
    assert not list(REPORTS.glob("*-over-*"))

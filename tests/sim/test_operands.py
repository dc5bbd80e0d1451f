import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from hwgen.errors import InputError
from sim import golden, operands

Q = golden.quantize(np.random.default_rng(1).standard_normal((2, 48)), "mixfp4")
NVFP4 = golden.quantize(np.random.default_rng(1).standard_normal((2, 48)), "nvfp4")
WHOLE = operands.packed("w", Q)


def test_the_convention() -> None:
    """Two codes in a byte, element 2i in the low nibble."""
    assert sorted(WHOLE) == ["w.codes", "w.scales", "w.tensor_scale"]
    codes = WHOLE["w.codes"]
    assert (codes.dtype, codes.shape) == (np.uint8, (2, 24))
    assert codes[1, 3] == Q.codes[1, 6] | Q.codes[1, 7] << 4
    assert WHOLE["w.scales"].shape == (2, 3)
    assert WHOLE["w.tensor_scale"] == Q.tensor_scale


def check(operand: operands.Operand, q: golden.QuantizedTensor, form: str) -> None:
    assert (operand.rows, operand.depth(form)) == (2, 48)
    found = operand.quantized(form)
    assert np.array_equal(found.codes, q.codes)
    assert np.array_equal(found.scales, q.scales)
    assert found.tensor_scale == q.tensor_scale


@pytest.mark.parametrize("name", ["w", None])
@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_codes_and_scales_are_read(tmp_path: Path, suffix: str, name: str | None) -> None:
    path = tmp_path / f"x{suffix}"
    found = {key if name else key.removeprefix("w."): np.ascontiguousarray(value) for key, value in WHOLE.items()}
    if suffix == ".npz":
        np.savez(path, **found)
    else:
        save_file(found, path)
    check(operands.from_file(path, name, "B"), Q, "mixfp4")
    check(operands.from_file(path.rename(tmp_path / f"x{suffix.upper()}"), name, "B"), Q, "mixfp4")


def test_scales_as_float8(tmp_path: Path) -> None:
    """As numpy stores them, and as a checkpoint does."""
    scales = NVFP4.scales.view(ml_dtypes.float8_e4m3fn)
    stored = {"w": NVFP4.packed, "w_scale": scales, "w_scale_2": NVFP4.tensor_scale}
    np.savez(tmp_path / "x.npz", **stored)
    check(operands.from_file(tmp_path / "x.npz", "w", "A"), NVFP4, "nvfp4")
    parts = {"w": ("U8", NVFP4.packed), "w_scale": ("F8_E4M3", scales), "w_scale_2": ("F32", NVFP4.tensor_scale)}
    header, body = {}, b""
    for name, (kind, tensor) in parts.items():
        raw = np.asarray(tensor).tobytes()
        header[name] = {"dtype": kind, "shape": np.shape(tensor), "data_offsets": (len(body), len(body) + len(raw))}
        body += raw
    text = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    check(operands.from_file(tmp_path / "x.safetensors", "w", "A"), NVFP4, "nvfp4")


def test_numbers_of_a_file_with_other_tensors_are_numbers(tmp_path: Path) -> None:
    x = np.ones((2, 20), np.float32)
    save_file({"x": x, "y.codes": np.zeros((2, 8), np.uint8)}, tmp_path / "x.safetensors")
    operand = operands.from_file(tmp_path / "x.safetensors", "x", "A")
    assert (operand.rows, operand.depth("nvfp4")) == (2, 20)
    assert operand.quantized("nvfp4").shape == (2, 32)


@pytest.mark.parametrize("block", [8, 24, 32])
def test_blocks_and_codes_of_other_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Three-bit codes, in blocks that are not of 16."""
    int3 = golden.ElementFormat("INT3", 3, (0.0, 1.0, 2.0, 3.0, 0.0, -3.0, -2.0, -1.0), fold=1)
    form = golden.BlockFormat("own", (int3,), golden.block_format("nvfp4").scale, 448.0 * 3, block=block)
    monkeypatch.setitem(golden.CATALOGUE, "own", form)
    x = np.random.default_rng(2).standard_normal((2, 2 * block + 1))
    q = golden.quantize(golden.padded(x, form), form)
    assert q.shape == (2, 3 * block)
    np.savez(tmp_path / "x.npz", **operands.packed("w", q))
    stored = operands.from_file(tmp_path / "x.npz", "w", "A")
    for operand, depth in ((operands.Numbers("A", x), 2 * block + 1), (stored, 3 * block)):
        assert (operand.rows, operand.depth("own")) == (2, depth)
        found = operand.quantized("own")
        assert np.array_equal(found.codes, q.codes)
        assert np.array_equal(found.scales, q.scales)


@pytest.mark.parametrize(("form", "kind"), [("hif4", "uint32"), ("blockdialect", "uint16")])
def test_scales_of_several_bytes(tmp_path: Path, form: str, kind: str) -> None:
    q = golden.quantize(np.random.default_rng(3).standard_normal((2, 128)), form)
    stored = operands.packed("w", q)
    assert stored["w.scales"].dtype == kind
    np.savez(tmp_path / "x.npz", **stored)
    save_file(stored, tmp_path / "x.safetensors")
    for file in ("x.npz", "x.safetensors"):
        found = operands.from_file(tmp_path / file, "w", "A").quantized(form)
        assert np.array_equal(found.codes, q.codes)
        assert np.array_equal(found.scales, q.scales)
    short = stored | {"w.scales": stored["w.scales"][:, :1].copy()}
    save_file(short, tmp_path / "short.safetensors")
    with pytest.raises(InputError, match=rf"tensor 'w.scales' is {kind} \(2, 1\); must be {kind} \(2, "):
        operands.from_file(tmp_path / "short.safetensors", "w", "A").quantized(form)


BAD = [
    ({"w.codes": None}, "no tensor 'w.codes' or 'w'; it has w.scales, w.tensor_scale"),
    ({"w.scales": None}, "no tensor 'w.scales', which belongs to 'w.codes'"),
    ({"w.tensor_scale": None}, "no tensor 'w.tensor_scale', which belongs to 'w.codes'"),
    ({"w.codes": np.zeros((2, 24), np.int16)}, r"tensor 'w.codes' is int16 \(2, 24\); must be uint8 \(rows, bytes"),
    ({"w.codes": np.zeros((2, 20), np.uint8)}, r"'w.codes' is uint8 \(2, 20\); .* 8 bytes for 16 codes of 4 bits"),
    ({"w.codes": np.zeros((0, 24), np.uint8)}, r"tensor 'w.codes' is uint8 \(0, 24\)"),
    ({"w.scales": np.zeros((2, 4), np.uint8)}, r"tensor 'w.scales' is uint8 \(2, 4\); .* \(2, 3\), one for each block"),
    ({"w.scales": np.zeros((2, 3), np.float32)}, "tensor 'w.scales' is float32"),
    ({"w.tensor_scale": np.ones(2, np.float32)}, r"tensor 'w.tensor_scale' is float32 \(2,\); must be one number"),
    ({"w.tensor_scale": np.ones((), np.int64)}, "tensor 'w.tensor_scale' is int64"),
    ({"w.tensor_scale": np.float32(0)}, "tensor 'w.tensor_scale' is 0; must be a positive finite number"),
    ({"w.tensor_scale": np.float32("nan")}, "tensor 'w.tensor_scale' is nan"),
    ({"w.tensor_scale": np.float64(0.1)}, "'w.tensor_scale': .*that float32 holds"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_an_error_names_the_tensor(tmp_path: Path, change: dict, message: str) -> None:
    changed = {key: value for key, value in {**WHOLE, **change}.items() if value is not None}
    np.savez(tmp_path / "x.npz", **changed)
    with pytest.raises(InputError, match=rf"A from '.*x\.npz': .*{message}"):
        operands.from_file(tmp_path / "x.npz", "w", "A").quantized("mixfp4")


def test_formats_without_block_scales_have_none_in_the_file(tmp_path: Path) -> None:
    q = golden.quantize(np.random.default_rng(1).standard_normal((2, 48)), "int4")
    stored = operands.packed("w", q)
    assert sorted(stored) == ["w.codes", "w.tensor_scale"]
    path = tmp_path / "x.npz"
    for scales in ({}, {"w.scales": np.zeros((2, 3), np.uint8)}):
        np.savez(path, **stored, **scales)
        check(operands.from_file(path, "w", "A"), q, "int4")
    np.savez(path, **stored, **{"w.scales": WHOLE["w.scales"]})
    with pytest.raises(InputError, match=r"A from .*: tensor 'w.scales': int4 has no block scales; leave it out$"):
        operands.from_file(path, "w", "A").quantized("int4")


def test_tags_that_the_core_does_not_read_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **WHOLE)
    with pytest.raises(InputError, match=r"'w.scales', .*: scales\[\d, \d\] has bit 7 set"):
        operands.from_file(tmp_path / "x.npz", "w", "A").quantized("nvfp4")


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **{**WHOLE, "w.codes": np.array([print], object)})
    with pytest.raises(InputError, match=r"array 'w.codes': holds Python objects; must hold numbers$"):
        operands.from_file(tmp_path / "x.npz", "w", "A")

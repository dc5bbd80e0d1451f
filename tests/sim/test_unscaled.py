"""Operands without block scales: rounded, and read from files."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from hwgen.errors import InputError
from sim import golden
from sim.unscaled import UNSCALED_TYPES, from_file, rounded

CODES = np.arange(24, dtype=np.uint8).reshape(3, 8)


@pytest.mark.parametrize("kind", UNSCALED_TYPES)
def test_numbers_are_rounded_to_the_nearest(kind: str) -> None:
    numbers = np.random.default_rng(1).standard_normal((5, 40)) * 100
    operand = rounded(numbers, kind)
    element = golden.UNSCALED_ELEMENTS[kind]
    own = operand.codes & (1 << element.width) - 1
    values = element.table[own]
    assert np.abs(values).max() == element.largest
    every = element.table[np.isfinite(element.table)]
    scaled = numbers / np.float64(operand.tensor_scale)
    nearest = np.abs(scaled[..., None] - every).min(axis=-1)
    np.testing.assert_array_equal(np.abs(scaled - values), nearest)
    assert operand.shape == (5, 40)


def test_zeros_are_rounded_to_zeros() -> None:
    operand = rounded(np.zeros((2, 3)), "e5m2")
    assert not operand.codes.any()
    assert operand.tensor_scale == 1


def test_numbers_without_a_scale() -> None:
    with pytest.raises(InputError, match=r"x has magnitude 1e\+300: x / 6 must be within the float32 range"):
        rounded(np.full((1, 1), 1e300), "e2m1")


@pytest.mark.parametrize("scale", [None, np.float32(0.25)])
def test_files_of_codes(scale: np.float32 | None, tmp_path: Path) -> None:
    arrays = {"w.codes": CODES} | ({} if scale is None else {"w.tensor_scale": np.asarray(scale)})
    np.savez(tmp_path / "w.npz", **arrays)
    save_file(arrays, tmp_path / "w.safetensors")
    for suffix in ("npz", "safetensors"):
        operand = from_file(tmp_path / f"w.{suffix}", "w", "A", "e4m3")
        np.testing.assert_array_equal(operand.codes, CODES)
        assert operand.tensor_scale == operand.core_scale == (1 if scale is None else scale)
        assert {*operand.stored("x")} == {"x.codes", "x.tensor_scale"}


def test_endings_in_capitals(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", codes=CODES)
    np.save(tmp_path / "w.npy", CODES)
    save_file({"codes": CODES}, tmp_path / "w.safetensors")
    for path in [*tmp_path.iterdir()]:
        capital = path.rename(path.with_suffix(path.suffix.upper()))
        tensor = "codes" if path.suffix == ".safetensors" else None
        np.testing.assert_array_equal(from_file(capital, tensor, "A", "e4m3").codes, CODES)


def test_codes_under_other_names_and_types(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", CODES)
    np.save(tmp_path / "b.npy", CODES.view(ml_dtypes.float8_e4m3fn))  # which numpy stores as raw bytes
    np.savez(tmp_path / "c.npz", codes=CODES, tensor_scale=np.float32(2))
    np.savez(tmp_path / "d.npz", w=CODES)
    for name, tensor in (("a.npy", None), ("c.npz", None), ("d.npz", "w")):
        np.testing.assert_array_equal(from_file(tmp_path / name, tensor, "B", "e5m2").codes, CODES)
    np.testing.assert_array_equal(from_file(tmp_path / "b.npy", None, "B", "e4m3").codes, CODES)
    assert from_file(tmp_path / "c.npz", None, "B", "e3m2").tensor_scale == 2
    save_file({"w": CODES.view(ml_dtypes.float8_e4m3fn)}, tmp_path / "e.safetensors")
    np.testing.assert_array_equal(from_file(tmp_path / "e.safetensors", "w", "A", "e4m3").codes, CODES)
    with pytest.raises(InputError, match="tensor 'w' is F8_E4M3; its elements are not e5m2"):
        from_file(tmp_path / "e.safetensors", "w", "A", "e5m2")


def test_files_of_numbers(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    np.save(tmp_path / "a.npy", numbers)
    save_file({"w": numbers}, tmp_path / "w.safetensors")
    for name, tensor in (("a.npy", None), ("w.safetensors", "w")):
        read, wanted = from_file(tmp_path / name, tensor, "A", "e2m3"), rounded(numbers, "e2m3")
        np.testing.assert_array_equal(read.codes, wanted.codes)
        assert read.tensor_scale == wanted.tensor_scale


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": CODES}, "no tensor 'w.codes' or 'w'; it has x"),
        ({"w": CODES.astype(np.int16)}, r"tensor 'w' is int16 \(3, 8\); must be uint8 \(rows, K\), one element"),
        ({"w": CODES[0]}, r"tensor 'w' is uint8 \(8,\); must be"),
        ({"w": CODES[:0]}, r"tensor 'w' is uint8 \(0, 8\); must be"),
        ({"w": CODES, "w.tensor_scale": np.ones(2)}, r"'w.tensor_scale' is float64 \(2,\); must be one number"),
        ({"w": CODES, "w.tensor_scale": np.float32(-1)}, "'w.tensor_scale' is -1; must be a positive finite number"),
        ({"w": CODES, "w.tensor_scale": np.float64(1e300)}, "'w.tensor_scale' is inf; must be a positive"),
    ],
)
def test_bad_arrays(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", **arrays)
    with pytest.raises(InputError, match=message) as caught:
        from_file(tmp_path / "w.npz", "w", "A", "e4m3")
    assert str(caught.value).startswith(f"A from '{tmp_path / 'w.npz'}': ")
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("text")
    (tmp_path / "text.npy").write_text("text")
    (tmp_path / "text.txt").write_text("text")
    np.save(tmp_path / "int.npy", CODES.astype(np.int32))
    np.save(tmp_path / "long.npy", CODES[0])
    save_file({"w": CODES, "w.tensor_scale": np.ones(1, np.float64)}, tmp_path / "w.safetensors")
    for name, tensor, message in (
        ("text.npz", None, "not a readable .npz file"),
        ("text.npy", None, "not a readable .npy file"),
        ("absent.npz", None, "no such file"),
        ("absent.npy", None, "no such file"),
        ("text.txt", None, "must end in .npy or .safetensors"),
        ("int.npy", None, "must be a 2-D float16, bfloat16, float32 or float64 array; got int32"),
        ("long.npy", None, r"tensor 'codes' is uint8 \(8,\); must be uint8 \(rows, K\)"),
        ("w.safetensors", None, "name a tensor; it has w"),
        ("w.safetensors", "w", "tensor 'w.tensor_scale' is F64; must be F32"),
        ("", None, "is a directory"),
    ):
        with pytest.raises((InputError, golden.ArgumentError), match=message):
            from_file(tmp_path / name, tensor, "A", "e4m3")


def test_tiny_numbers_are_rounded_as_the_golden_model_rounds_them() -> None:
    tiny = np.full((1, 32), 3e-43)
    codes, scale = golden.quantize_unscaled(tiny, "e4m3")
    operand = rounded(tiny, "e4m3")
    assert operand.tensor_scale == scale == np.float32(1e-45)
    np.testing.assert_array_equal(operand.codes, codes)
    assert codes.all()

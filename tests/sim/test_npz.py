from pathlib import Path

import numpy as np
import pytest

from sim import npz, tensors
from sim.verify import load


def test_arrays(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(3), b=np.float32(2))
    found = npz.arrays(tmp_path / "x.npz")
    assert {name: value.tolist() for name, value in found.items()} == {"a": [0, 1, 2], "b": 2.0}


@pytest.mark.parametrize("content", [b"", b"\x80\x04]\x94.", b"PK\x03\x04 and so on"])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"^not an \.npz file$"):
        npz.arrays(tmp_path / "x.npz")


def test_nobody_advises_to_allow_pickles(tmp_path: Path) -> None:
    """numpy's own words are "you can load it unsafely using allow_pickle"."""
    objects = np.array([None], object)
    np.savez(tmp_path / "x.npz", about=objects)
    with pytest.raises(ValueError, match=r"^array 'about': holds Python objects; must hold numbers$"):
        npz.arrays(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"hwgen verify' writes: array 'about': holds Python objects"):
        load(tmp_path / "x.npz")
    np.save(tmp_path / "x.npy", objects)
    with pytest.raises(ValueError, match=r"not a readable \.npy file: holds Python objects; must hold numbers$"):
        tensors.load(tmp_path / "x.npy")
    (tmp_path / "pickled.npz").write_bytes(b"\x80\x04]\x94.")
    with pytest.raises(ValueError, match=r"hwgen verify' writes: not an \.npz file$"):
        load(tmp_path / "pickled.npz")

"""Errors of files that are no archives: one line each, which names the file."""

from pathlib import Path

import numpy as np
import pytest

from hwgen.errors import InputError
from sim import archive


def test_arrays_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3), b=np.zeros((2, 2)))
    found = archive.arrays(tmp_path / "x.npz")
    assert found.keys() == {"a", "b"}
    assert found["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "message"),
    [("folder.npz", "is a directory"), ("none.npz", "no such file"), ("text.npz", "not a readable .npz file: ")],
)
def test_something_else(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "text.npz").write_text("text")
    with pytest.raises(InputError) as caught:
        archive.arrays(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}: {message}")
    assert "\n" not in str(caught.value)

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def refused(run: Run, tmp_path: Path) -> Callable[..., str]:
    """Run the command line on bad input; gives the one line that it says, and nothing else comes of it."""

    def call(*arguments: object) -> str:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        status, out, err = run(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("hwgen: ")
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
        return err

    return call


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A small core."""
    path = tmp_path / "tiny.toml"
    table = {"a": "mixfp4", "b": "mixfp4", "rows": 1, "columns": 2, "groups": 1}
    path.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items()))
    return path

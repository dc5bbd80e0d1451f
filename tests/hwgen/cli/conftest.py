import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hwgen import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command line in an empty directory; gives exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hwgen", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    return call


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

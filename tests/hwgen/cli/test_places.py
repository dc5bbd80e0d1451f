"""Where a command writes is checked before its work, and whose fault a failed write is decides on the status."""

import errno
import os
import shutil
from pathlib import Path

import pytest

REPORTS = Path(__file__).parents[3] / "reports"


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long, or reads far more than a place, fails a test."""
    for name in (
        "hwgen.cells.reader.load",
        "hwgen.measure.workloads.cores.find",
        "hwgen.package.contents.texts",
        "sim.engines.engine",
        "sim.verify.verify",
    ):
        monkeypatch.setattr(name, None)


COMMANDS = {
    "compare": ("overhead.json", ("compare", "--name", "overhead")),
    "cost": ("cost.png", ("cost", "--model", "qwen3-8b", "--name", "cost")),
    "explore": ("explore.md", ("explore", "--name", "explore")),
    "power": ("power.csv", ("power", "--name", "power")),
    "verify": ("verify-mixfp4-small-1.npz", ("verify",)),
    "verilog": ("mixfp4-small.v", ("verilog", "mixfp4-small")),
}


@pytest.mark.parametrize(("file", "command"), COMMANDS.values(), ids=COMMANDS)
def test_the_place_is_checked_first(
    refused, no_work: None, tmp_path: Path, file: str, command: tuple[str, ...]
) -> None:
    (tmp_path / "plain").write_text("")
    (tmp_path / "out" / file).mkdir(parents=True)
    assert "cannot write to 'plain/x': 'plain' is not a directory" in refused(*command, "--out", "plain/x")
    assert f"cannot write 'out/{file}': is a directory" in refused(*command, "--out", "out")


def test_the_folder_of_a_core_is_checked_first(refused, no_work: None, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mixfp4-small").write_text("")
    assert "'out/mixfp4-small' is not a directory" in refused("verilog", "mixfp4-small", "--out", "out")


def test_a_full_disk_is_not_bad_input(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(REPORTS / "overhead.json", tmp_path / "r.json")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    status, out, err = run("report", "r.json")
    assert (status, out) == (1, "")
    assert err == "hwgen: cannot write 'r.md': No space left on device\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]

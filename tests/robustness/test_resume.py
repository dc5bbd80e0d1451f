"""A table of formats that is killed goes on where it was: nothing is built twice, and the report is the same.

The command runs in processes of its own, with cores whose figures are drawn. One is killed while it builds.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DRIVER = r"""
import dataclasses, os, signal, sys
from pathlib import Path

from hwgen import cli
from hwgen.measure.formats import table
from hwgen.report import kinds
from sim import accuracy
from test_table import Bench, drawn

log, end = Path(sys.argv[1]), int(sys.argv[2])

def note(*words):
    with log.open("a") as file:
        print(*words, file=file)
    if len(log.read_text().splitlines()) == end:
        os.kill(os.getpid(), signal.SIGKILL)

def build(config, number, formats):
    note("begun", config.name, number)
    found = drawn(config, number)
    note("built", config.name, number)
    return found

def measured(numbers, configs, baseline, selected, aim, recipes, vectors, flow, before):
    ((name, config),) = configs.items()
    tasks = [(config, number, config.formats) for number in numbers]
    return {name: list(flow.each(build, tasks, "cores"))}

def select(configs, *how, **more):
    found = Bench().select(configs, *how, **more)
    note("built", *configs, "search")
    return found

table.select_for_cores, table.exchanged, table.measured = select, Bench().exchange, measured
table.closings = lambda *_: {}
for kind, form in kinds.FORMS.items():
    kinds.FORMS[kind] = dataclasses.replace(form, png=lambda report: b"a picture", more=lambda report: {})
accuracy.signal_to_noise = lambda form, kind, rule: 20.0
sys.argv = ["hwgen", *sys.argv[3:]]
cli.main()
"""

COMMAND = (
    "formats",
    "--rows",
    "nvfp4,mixfp4,nvint4",
    "--clock",
    "2",
    "--wires",
    "fanout",
    "--runs",
    "6",
    "--jobs",
    "1",
)


def run(place: Path, environment: dict[str, str], end: int = 0) -> int:
    """Exit status of the command, which is killed as it writes the line of this number to its log."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "hwgen" / "measure" / "formats")))
    command = [sys.executable, "-c", DRIVER, place / "log", end, *COMMAND, "--out", place / "out"]
    done = subprocess.run(
        list(map(str, command)), env={**environment, "PYTHONPATH": path}, cwd=place, capture_output=True, text=True
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]
    return done.returncode


def built(place: Path) -> list[str]:
    """What was built to the end, in order."""
    lines = (place / "log").read_text().splitlines()
    return [line for line in lines if line.startswith("built")]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_table_goes_on_where_it_was(tmp_path: Path, own_cache: Callable[[Path], dict[str, str]]) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for place in (whole, killed):
        place.mkdir()
    cache = own_cache(killed / "cache")
    assert run(whole, own_cache(whole / "cache")) == 0
    # Three searches and three times six runs.
    assert len(built(whole)) == len(set(built(whole))) == 21
    # Line 20 is "begun mixfp4-small 2": all searches, two runs of the row and all of the baseline are there.
    assert run(killed, cache, end=20) == -signal.SIGKILL
    assert (killed / "log").read_text().splitlines()[-1] == "begun mixfp4-small 2"
    assert not (killed / "out").exists()
    assert len(built(killed)) == 11
    assert run(killed, cache) == 0
    assert built(killed) == built(whole)
    for name in ("formats.json", "formats.md", "formats.csv"):
        assert (killed / "out" / name).read_bytes() == (whole / "out" / name).read_bytes()

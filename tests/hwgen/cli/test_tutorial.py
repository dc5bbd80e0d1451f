"""The commands of docs/tutorial.md, in their order; and those of other pages that ask for nothing but their files."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hwgen.report import schema

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

Run = Callable[..., tuple[int, str, str]]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.fixture
def followed(run: Run, tmp_path: Path) -> Callable[[str, str], list[str]]:
    """Follows a page: saves its one file under a name, and runs its commands; gives what each prints."""
    (tmp_path / "reports").mkdir()
    shutil.copy(ROOT / "reports" / "overhead.json", tmp_path / "reports")

    def follow(page: str, file: str) -> list[str]:
        ((_, text),) = [block for block in blocks(DOCS / page) if block[0] == file.partition(".")[2]]
        (tmp_path / file).write_text(text)
        printed = []
        for language, commands in blocks(DOCS / page):
            for line in commands.splitlines() if not language else ():
                status, out, err = run(*line.partition("#")[0].split()[1:])
                assert status == 0, (line, err)
                printed.append(out)
        return printed

    return follow


def test_the_tutorial(followed: Callable[[str, str], list[str]], tmp_path: Path) -> None:
    configs, simulated, error, checked, cost, verilog, diagram = followed("tutorial.md", "tiny.toml")
    assert "mixfp4-small" in configs
    found = dict(re.findall(r"│ (\w+) +│ +(\S+) │", simulated))
    assert (found["mismatches"], found["steps"], found["outputs"]) == ("0", "16", "16")
    rows = re.findall(r"│ (\w+) +│ +nearest │ +(\S+) │ +(\S+) │", error)
    found = {name: (bits, decibels) for name, bits, decibels in rows}
    assert found["nvfp4"][0] == found["mixfp4"][0] == "4.5"
    assert float(found["mixfp4"][1]) > float(found["nvfp4"][1])
    assert checked.startswith("reports/overhead.json: ")
    assert re.search(r"time per token .* \+0\.0 %", cost)
    assert "build/tiny.v" in verilog
    assert diagram.split() == ["build/tiny-core.svg", "build/tiny-datapath.svg"]
    if shutil.which("iverilog"):
        done = subprocess.run(["make", "-C", tmp_path / "build" / "tiny", "icarus"], capture_output=True, text=True)
        assert "\nPASS " in done.stdout, done.stdout + done.stderr


def test_a_workload_of_ones_own(followed: Callable[[str, str], list[str]], tmp_path: Path) -> None:
    compared, alone = followed("how-to/cost-a-workload.md", "mine.csv")
    cores = schema.load(ROOT / "reports" / "overhead-blackwell.json")
    assert isinstance(cores, schema.OverheadReport)
    area = cores.find("core", "area").overhead
    assert area is not None
    assert re.search(rf"area of the cores .* {re.escape(f'{100 * area.value:+.2f}')} % \[", compared)
    assert "overhead" not in alone
    report = schema.load(tmp_path / "build" / "mine.json")
    assert isinstance(report, schema.CostReport)
    # Sixteen sequences in decode: one token of each, and 2048 that it attends to.
    assert [(gemm.m, gemm.n, gemm.k, gemm.batch) for gemm in report.results] == [
        (16, 6144, 4096, 1),
        (4, 2048, 128, 8 * 16),
        (16, 14336, 4096, 1),
    ]

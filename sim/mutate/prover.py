"""The tools that prove mutants equivalent: commands with a time limit, and the proof over all cycles."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyosys

from hwgen.errors import ToolError

__all__ = ["ABC", "TIME_LIMIT", "never", "run"]

TIME_LIMIT = 60
"""Seconds of a tool's own time for one proof; what is not proven by then is not proven."""

ABC = str(Path(pyosys.__file__).with_name("yosys-abc"))
"""The program that proves."""

_TO_AIGER = """
from pyosys import libyosys as ys
design = ys.Design()
for command in (
    "read_rtlil scope.il", "read_verilog miter.v", "hierarchy -check -top miter", "proc", "flatten",
    "opt_clean", "opt", "memory_map", "techmap", "simplemap", "dffunmap", "aigmap", "opt_clean -purge",
    "write_aiger -zinit miter.aig",
):
    ys.run_pass(command, design)
"""


def run(directory: Path, *command: str) -> str:
    """What a command writes, in a directory.

    Raises
    ------
    ToolError
        It failed.
    subprocess.TimeoutExpired
        It took longer than `TIME_LIMIT`. A busy machine makes no difference.
    """

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT, TIME_LIMIT + 5))

    result = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, errors="replace", check=False, preexec_fn=limited
    )
    if result.returncode == -signal.SIGXCPU:
        raise subprocess.TimeoutExpired(command, TIME_LIMIT)
    if result.returncode < 0:
        raise ToolError(f"proof of equivalence failed: ended by {signal.Signals(-result.returncode).name}")
    if result.returncode:
        words = (result.stdout + result.stderr).strip().splitlines() or ["no output"]
        raise ToolError(f"proof of equivalence failed: {words[-1].strip()}")
    return result.stdout


def never(directory: Path, miter: str) -> bool:
    """Whether the one output of the Verilog module ``miter`` is proven to be 0 in every cycle.

    The proof is ABC's property-directed reachability (``pdr``), without a bound on the cycles. Registers begin as they
    say, or with 0. What the module makes instances of is in ``scope.il`` of the directory.

    Raises
    ------
    ToolError
        Yosys or ABC failed.
    subprocess.TimeoutExpired
        They took too long.
    """
    (directory / "miter.v").write_text(miter, encoding="utf-8")
    run(directory, sys.executable, "-c", _TO_AIGER)
    return "Property proved" in run(directory, ABC, "-c", "read_aiger miter.aig; strash; pdr")

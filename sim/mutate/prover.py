"""The tools that prove mutants equivalent: commands with a time limit."""

from __future__ import annotations

import resource
import signal
import subprocess
from pathlib import Path

import pyosys

from hwgen.errors import ToolError

__all__ = ["ABC", "TIME_LIMIT", "run"]

TIME_LIMIT = 60
"""Seconds of a tool's own time for one proof; what is not proven by then is not proven."""

ABC = str(Path(pyosys.__file__).with_name("yosys-abc"))
"""The program that proves."""


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

"""The tools that prove mutants equivalent: commands with a time limit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyosys

from hwgen.errors import ToolError

__all__ = ["ABC", "TIME_LIMIT", "run"]

TIME_LIMIT = 60
"""Seconds of a tool for one proof; what is not proven by then is not proven."""

ABC = str(Path(pyosys.__file__).with_name("yosys-abc"))
"""The program that proves."""


def run(directory: Path, *command: str) -> str:
    """What a command writes, in a directory.

    Raises
    ------
    ToolError
        It failed.
    subprocess.TimeoutExpired
        It took longer than `TIME_LIMIT`.
    """
    result = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, errors="replace", check=False, timeout=TIME_LIMIT
    )
    if result.returncode:
        words = (result.stdout + result.stderr).strip().splitlines() or ["no output"]
        raise ToolError(f"proof of equivalence failed: {words[-1].strip()}")
    return result.stdout

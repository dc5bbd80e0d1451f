"""What a start imports is counted; how long that takes is benchmarks/start.py's to say."""

import os
import subprocess
import sys

import pytest

from hwgen.cli import COMMANDS

HEAVY = {"amaranth", "joblib", "matplotlib", "numba", "numpy", "pandas", "pyosys", "rich", "safetensors", "scipy"}

PROBE = """
import sys
from hwgen.__main__ import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def started(*arguments: str, **environment: str) -> tuple[str, set[str]]:
    """Standard output of a start, and the packages that it has imported."""
    command = [sys.executable, "-c", PROBE, *arguments]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.split())


def completed(words: str) -> tuple[str, set[str]]:
    """Completions of a line's last word, as bash asks for them."""
    return started(_HWGEN_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ()])
def test_little_is_imported_to_start(arguments: tuple[str, ...]) -> None:
    out, imported = started(*arguments)
    assert "hwgen" in out
    assert "click" in imported
    assert not HEAVY & imported


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_little_is_imported_to_complete_options(command: str) -> None:
    out, imported = completed(f"hwgen {command} --")
    assert "plain,--help" in out.split()
    assert not HEAVY & imported


def test_little_is_imported_to_complete_commands() -> None:
    out, imported = completed("hwgen ")
    assert [line.removeprefix("plain,") for line in out.split()] == sorted(COMMANDS)
    assert not HEAVY & imported


def test_names_of_other_modules_are_completed() -> None:
    out, _ = completed("hwgen simulate --tensors h")
    assert out.split() == ["plain,heavy-tailed"]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_on_a_command_needs_no_tool(command: str) -> None:
    out, imported = started(command, "--help")
    assert out.startswith(f"Usage: hwgen {command}")
    assert not {"matplotlib", "numba", "pandas", "pyosys", "rich", "scipy"} & imported

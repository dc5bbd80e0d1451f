"""Tools that end badly: by an error of theirs, by a signal, or by the limit of time."""

import subprocess
import sys

import pytest

from hwgen.errors import ToolError
from sim.mutate import prover


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("print('a proof'); raise SystemExit(3)", "a proof"),
        ("import os, signal; print('half a li', flush=True); os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
    ],
)
def test_how_a_tool_failed(program, words, tmp_path):
    with pytest.raises(ToolError, match=f"^proof of equivalence failed: {words}$"):
        prover.run(tmp_path, sys.executable, "-c", program)


def test_time_is_the_tools_own(tmp_path, monkeypatch):
    monkeypatch.setattr(prover, "TIME_LIMIT", 1)
    assert prover.run(tmp_path, sys.executable, "-c", "import time; time.sleep(1.2); print('done')") == "done\n"
    with pytest.raises(subprocess.TimeoutExpired):
        prover.run(tmp_path, sys.executable, "-c", "while True: pass")

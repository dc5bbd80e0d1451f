"""What numba keeps is made anew when a module beside it changes."""

import os
import subprocess
import sys

import pytest

from hwgen import jit

CALLER = """
from hwgen.jit import compiled
from inner import value

@compiled
def outer():
    return 10 * value()
"""
CALLED = """
from hwgen.jit import compiled

@compiled
def value():
    return {}
"""
ASK = "import caller; print(caller.outer(), len(caller.outer.stats.cache_hits))"


@pytest.fixture
def ask(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)

    def answer(value):
        (tmp_path / "inner.py").write_text(CALLED.format(value))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        command = [sys.executable, "-c", ASK]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        return result.stdout.split()

    return answer


def test_a_change_in_another_module_is_noticed(ask):
    assert ask(1) == ["10", "0"]
    assert ask(222) == ["2220", "0"]


def test_what_did_not_change_is_kept(ask, tmp_path):
    ask(3)
    stat = (tmp_path / "inner.py").stat()
    os.utime(tmp_path / "inner.py", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    command = [sys.executable, "-c", ASK]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert result.stdout.split() == ["30", "1"]


def test_without_numbas_stamps_functions_are_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(jit.numba, "njit", lambda **options: lambda function: function)
    assert jit.compiled(len)([1, 2]) == 2

"""What numba keeps is made anew when a module beside it changes."""

import fcntl
import importlib
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError

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


class Two(NamedTuple):
    first: Any
    second: Any


@jit.borrowing
def counted(numbers, bins):
    for number in numbers:
        if number % 2:
            bins.first[number] += 1
        else:
            bins.second[number] += 1


def test_a_borrowing_function_takes_arrays_in_records():
    bins = Two(np.zeros(4, np.int64), np.zeros(4, np.int64))
    counted(np.array([1, 2, 2, 3, 3, 3]), bins)
    assert bins.first.tolist() == [0, 1, 0, 3]
    assert bins.second.tolist() == [0, 0, 2, 0]


@jit.borrowing
def making(count):
    return np.zeros(count)


def test_a_borrowing_function_makes_no_arrays():
    with pytest.raises(NumbaError, match="passed into the function"):
        making(3)


@jit.inner
def larger(number):
    return number + 1


@jit.compiled
def twice_larger(number):
    return 2 * larger(number)


def test_an_inner_function_may_be_called_from_anywhere():
    assert twice_larger(3) == 8
    assert larger(3) == 4


MANY = """
from hwgen.jit import compiled

@compiled
def twice(x):
    return x + x
"""
RACE = """
import sys, time
import many
values = [1, 1.0, 1j, True, (1, 2.0)][:4]
turn = int(sys.argv[1])
time.sleep(max(0.0, float(sys.argv[2]) - time.time()))
for value in values[turn:] + values[:turn]:
    assert many.twice(value) == value + value, value
"""
HOLDS = """
import fcntl, sys
with open(sys.argv[1], "a") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_processes_that_compile_side_by_side_keep_each_result_under_a_name_of_its_own(tmp_path):
    (tmp_path / "many.py").write_text(MANY)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    begin = str(time.time() + 3)
    commands = [[sys.executable, "-c", RACE, str(turn), begin] for turn in range(4)]
    racers = [subprocess.Popen(command, env=environment) for command in commands]
    assert [racer.wait(timeout=300) for racer in racers] == [0] * 4
    kept = list((tmp_path / "__pycache__").glob("many.twice-*.nbc"))
    assert len(kept) == 4


def test_what_is_kept_is_looked_up_and_written_by_one_process_at_a_time(tmp_path):
    """Another process holds the lock: a call waits for it, and goes on when it is let go."""
    lock = tmp_path / "lock"
    found = []
    waiting = threading.Thread(target=lambda: found.append(jit._locked(lock, lambda value: value + 1)(3)))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        waiting.start()
        waiting.join(0.2)
        assert not found
        holder.communicate("go\n")
    waiting.join(60)
    assert found == [4]


def test_every_look_and_every_result_is_under_the_lock_which_a_failure_lets_go(tmp_path, monkeypatch):
    turns = []

    @contextmanager
    def held(lock):
        turns.extend([lock, "in"])
        yield
        turns.append("out")

    (tmp_path / "locked.py").write_text(MANY)
    monkeypatch.syspath_prepend(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(jit, "_held", held)
        assert importlib.import_module("locked").twice(3) == 6
    lock = turns[0]
    assert tmp_path in lock.parents
    assert turns == [lock, "in", "out"] * (len(turns) // 3)
    assert len(turns) >= 6
    with pytest.raises(ZeroDivisionError):
        jit._locked(tmp_path / "lock", lambda: 1 / 0)()
    assert jit._locked(tmp_path / "lock", lambda: 5)() == 5


def test_where_files_cannot_be_locked_results_are_kept_all_the_same(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / "open_files.py").write_text(MANY)
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("open_files").twice(3) == 6
    assert list((tmp_path / "__pycache__").glob("open_*.nbc"))


def test_where_no_lock_can_be_made_a_function_runs_all_the_same(tmp_path):
    assert jit._locked(tmp_path / "missing" / "lock", lambda: 5)() == 5

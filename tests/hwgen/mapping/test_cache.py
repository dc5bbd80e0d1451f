import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.cells.library import Library
from hwgen.mapping import area
from hwgen.mapping.cache import Cache
from hwgen.mapping.yosys import RECIPES, fingerprint

KEY = "ab" + 62 * "0"
BODY = {"ports": {}, "cells": {"x": {"type": "INV", "connections": {"A": [2], "Y": [3]}}}, "netnames": {}}
ADDER = "module adder(a, b, y);\n  input [3:0] a, b;\n  output [4:0] y;\n  assign y = a + b;\nendmodule\n"
CELLS = reader.load(libraries.path("generic7"))


def _entry(directory: Path) -> Path:
    (found,) = [path for path in directory.rglob("*") if path.is_file()]
    return found


def test_an_entry_comes_back(tmp_path: Path) -> None:
    cache = Cache(tmp_path / 'it\'s; a "dir"')
    assert cache.get(KEY) is None
    cache.put(KEY, BODY)
    assert cache.get(KEY) == BODY
    assert Cache(None).get(KEY) is None
    Cache(None).put(KEY, BODY)


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "text", "other"])
def test_a_damaged_entry_is_none(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, BODY)
    path = _entry(tmp_path)
    content = path.read_bytes()
    if damage == "other":
        import gzip

        path.write_bytes(gzip.compress(gzip.decompress(content).replace(b"INV", b"BUF")))
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]
        path.write_bytes({"empty": b"", "truncated": content[:-9], "flipped": flipped, "text": b"{}"}[damage])
    assert cache.get(KEY) is None
    cache.put(KEY, BODY)
    assert cache.get(KEY) == BODY


def test_a_directory_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    cache.put(KEY, BODY)
    assert cache.get(KEY) is None


def test_the_key_is_everything_that_decides_the_result() -> None:
    keys = {
        fingerprint(ADDER, "adder", CELLS, RECIPES["area"]),
        fingerprint(ADDER + "\n", "adder", CELLS, RECIPES["area"]),
        fingerprint(ADDER, "other", CELLS, RECIPES["area"]),
        fingerprint(ADDER, "adder", CELLS, RECIPES["area"], boxes=("x",)),
        fingerprint(ADDER, "adder", CELLS, RECIPES["area"], variant=1),
        fingerprint(ADDER, "adder", CELLS, RECIPES["speed"]),
        fingerprint(ADDER, "adder", reader.load(libraries.path("generic130")), RECIPES["area"]),
    }
    assert len(keys) == 7


def test_the_order_of_files_is_part_of_the_key(tmp_path: Path) -> None:
    """Synthesis reads them in that order, the header of the first."""
    paths = [tmp_path / "a.lib", tmp_path / "b.lib"]
    for path in paths:
        path.write_text(f"library (x) {{ nom_voltage : 1; cell ({path.stem.upper()}) {{ }} }}")
    libraries_of = [reader.load(order) for order in (paths, paths[::-1])]
    assert len({fingerprint(ADDER, "adder", library, RECIPES["area"]) for library in libraries_of}) == 2


def test_clock_gating_is_part_of_the_key_where_there_is_something_to_gate(tiny: Library) -> None:
    clocked = ADDER.replace("assign y = a + b;", "always @(posedge clk) y <= a + b;")
    for verilog, library, keys in ((clocked, tiny, 2), (ADDER, tiny, 1), (clocked, tiny.without(["ICG"]), 1)):
        how = verilog, "adder", library, RECIPES["area"]
        assert len({fingerprint(*how), fingerprint(*how, clock_gating=True)}) == keys


def _synthesise(directory: Path) -> dict:
    source = area.Source(ADDER, "adder", {"adder": {}}, flat=True)
    return area.run([area.Job("x", source, "adder", (), RECIPES["area"])], CELLS, cache=Cache(directory))


def test_a_run_takes_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _synthesise(tmp_path)

    def never(*_: object) -> dict:
        raise AssertionError("synthesised again")

    monkeypatch.setattr(area, "synthesise", never)
    assert _synthesise(tmp_path) == first
    _entry(tmp_path).write_bytes(b"damaged")
    with pytest.raises(AssertionError, match="synthesised again"):
        _synthesise(tmp_path)


def _write_for_ever(directory: Path) -> None:
    cache = Cache(directory)
    number = 0
    while True:
        cache.put(f"{number % 7:02x}" + 62 * "0", {**BODY, "netnames": {"n": list(range(20000))}})
        number += 1


def test_killed_and_concurrent_writers_leave_whole_entries(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_for_ever, args=(tmp_path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("*.json.gz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    for writer in writers:
        time.sleep(0.3)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    cache = Cache(tmp_path)
    entries = list(tmp_path.rglob("*.json.gz"))
    assert entries
    for path in entries:
        assert cache.get(path.name.removesuffix(".json.gz")) is not None

"""One synthesis: one module of Verilog to cells of one library, in a process and a directory of its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hwgen.errors import InputError, ToolError
from hwgen.synth.liberty import merge, read_text
from hwgen.synth.library import Library

__all__ = ["RECIPES", "Recipe", "fingerprint", "recipe", "synthesise", "tool_version"]


@dataclass(frozen=True)
class Recipe:
    """How a module is mapped.

    Parameters
    ----------
    name
        Short name.
    abc
        ABC commands, one each.
    purpose
        What it is good for, one line.
    """

    name: str
    abc: tuple[str, ...]
    purpose: str


RECIPES = {
    "area": Recipe(
        "area",
        ("&get -n", "&st", "&dch", "&nf -a 10", "&put", "buffer -c", "topo", "dnsize", "stime -p"),
        "area first: structural choices, area-oriented mapping, buffers, then the smallest drives",
    ),
}
"""Recipes by name. Yosys' own default script hangs on some signed sums of 16 products."""


def recipe(name: str) -> Recipe:
    """Return the recipe ``name``; `InputError` lists those that exist."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}: known are {', '.join(RECIPES)}")
    return RECIPES[name]


def tool_version() -> str:
    """Version of the synthesis tool, for reports."""
    return f"Yosys {version('pyosys')} (pyosys)"


_RUNNER = "from pyosys import libyosys as ys; ys.run_pass('script run.ys', ys.Design())"


def _script(top: str, boxes: Sequence[str], unused: Sequence[str]) -> str:
    avoid = " ".join(f"-dont_use {cell}" for cell in unused)
    return "\n".join(
        [
            "read_verilog design.v",
            *(f"blackbox {box}" for box in boxes),
            f"hierarchy -check -top {top}",
            f"synth -flatten -top {top}",
            f"dfflibmap {avoid} -liberty cells.lib",
            f"abc {avoid} -liberty cells.lib -script abc.script",
            "opt_clean -purge",
            "write_json mapped.json",
            "",
        ]
    )


def fingerprint(verilog: str, top: str, library: Library, how: Recipe, boxes: Sequence[str] = ()) -> str:
    """Digest of everything that decides the result of `synthesise`."""
    unused = [cell.name for cell in library.cells.values() if cell.dont_use]
    parts = [verilog, library.digest, *how.abc, _script(top, boxes, unused), tool_version()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def synthesise(
    verilog: str,
    top: str,
    library: Library,
    how: Recipe,
    boxes: Sequence[str] = (),
    time_limit: float = 600.0,
) -> dict[str, Any]:
    """Map one module, with everything below it flattened into it except ``boxes``.

    Parameters
    ----------
    verilog
        Text that holds the module and all below it.
    top
        The module.
    library
        Cells to map to; cells it marks ``dont_use`` are left alone.
    how
        The recipe.
    boxes
        Modules kept as black boxes, to be synthesised on their own.
    time_limit
        Seconds after which the run is ended.

    Returns
    -------
    dict
        The module's body as Yosys' ``write_json`` gives it.

    Raises
    ------
    ToolError
        The tool failed or ran out of time; the message has its last words.
    """
    unused = [cell.name for cell in library.cells.values() if cell.dont_use]
    with tempfile.TemporaryDirectory(prefix="hwgen-", dir=_plain_directory()) as name:
        # Fixed names in a directory of its own: no path of the user's ever becomes part of a script.
        directory = Path(name)
        (directory / "design.v").write_text(verilog, encoding="utf-8")
        (directory / "cells.lib").write_text(_cells(library.paths, library.digest), encoding="utf-8")
        (directory / "abc.script").write_text("\n".join(how.abc) + "\n", encoding="utf-8")
        (directory / "run.ys").write_text(_script(top, boxes, unused), encoding="utf-8")
        log = _run(directory, time_limit, f"synthesis of {top}")
        mapped = directory / "mapped.json"
        if not mapped.exists():
            raise ToolError(f"synthesis of {top} failed: {_last_words(log)}")
        body = json.loads(mapped.read_text(encoding="utf-8"))["modules"][top]
    return body


@lru_cache(maxsize=2)
def _cells(paths: tuple[str, ...], digest: str) -> str:
    """Text of a library, one file of all its files; the digest stands for their contents."""
    return merge([read_text(path)[0] for path in paths])


def _plain_directory() -> str:
    """The user's temporary directory, or /tmp if its name is more than ABC's scripts can bear."""
    chosen = tempfile.gettempdir()
    return chosen if re.fullmatch(r"[\w./+-]+", chosen, re.ASCII) else "/tmp"


def _run(directory: Path, time_limit: float, what: str) -> str:
    process = subprocess.Popen(
        [sys.executable, "-c", _RUNNER],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        # Yosys keeps a cache of libraries there, which runs side by side must not share.
        env={**os.environ, "TMPDIR": "."},
    )
    try:
        log, _ = process.communicate(timeout=time_limit)
    except BaseException as error:
        # ABC is a child of its own: end the whole group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ToolError(f"{what} ran over its limit of {time_limit:g} s") from None
        raise
    return log


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line]
    return (errors or lines or ["no output"])[-1]

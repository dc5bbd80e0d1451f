"""One synthesis: one module of Verilog to cells of one library, in a process and a directory of its own."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
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
from typing import Any, NamedTuple

from hwgen.cells.cell import Cell
from hwgen.cells.liberty import merge, read_text
from hwgen.cells.library import Library
from hwgen.errors import InputError, ToolError, meant
from hwgen.mapping import perturb
from hwgen.mapping.flip_flops import passed_over

__all__ = [
    "CARRIES",
    "LEAST_GATED",
    "RECIPES",
    "TIME_LIMIT",
    "Recipe",
    "clock_gate",
    "distinct",
    "fingerprint",
    "recipe",
    "synthesise",
    "tool_version",
    "usable",
]


@dataclass(frozen=True)
class Recipe:
    """How a module is mapped.

    Parameters
    ----------
    name
        Short name.
    carry
        Carry network of adders: one of `CARRIES`.
    abc
        ABC commands, one each.
    purpose
        What it is good for, one line.
    multiple_outputs
        Only of use where the library has combinational cells with several outputs.
    fast
        Spends area on delay: only of use where a clock is asked for.
    """

    name: str
    carry: str
    abc: tuple[str, ...]
    purpose: str
    multiple_outputs: bool = False
    fast: bool = False


TIME_LIMIT = 600.0
"""Seconds after which one synthesis is ended."""

LEAST_GATED = 3
"""Fewest flip-flops with an enable in common that get a clock gate."""

CARRIES = {
    "ripple": "-extra-map ripple.v",
    "brent-kung": "",
    "sklansky": "-extra-map sklansky.v",
    "kogge-stone": "-extra-map +/choices/kogge-stone.v",
}
"""Options of Yosys' ``synth`` by carry network; Brent-Kung is its own default."""

_RIPPLE = """(* techmap_celltype = "$lcu" *)
module _80_lcu_ripple (P, G, CI, CO);
  parameter WIDTH = 1;
  (* force_downto *) input [WIDTH-1:0] P, G;
  input CI;
  (* force_downto *) output [WIDTH-1:0] CO;
  genvar i;
  assign CO[0] = G[0] | (P[0] & CI);
  generate for (i = 1; i < WIDTH; i = i + 1)
    assign CO[i] = G[i] | (P[i] & CO[i-1]);
  endgenerate
endmodule
"""

# As few levels as Kogge-Stone's with far fewer gates, at a fanout that doubles with every level: buffers see to that.
_SKLANSKY = """(* techmap_celltype = "$lcu" *)
module _80_lcu_sklansky (P, G, CI, CO);
  parameter WIDTH = 1;
  localparam LEVELS = $clog2(WIDTH);
  (* force_downto *) input [WIDTH-1:0] P, G;
  input CI;
  (* force_downto *) output [WIDTH-1:0] CO;
  // Level k of place i is bit k * WIDTH + i.
  wire [(LEVELS+1)*WIDTH-1:0] p, g;
  assign p[WIDTH-1:0] = P;
  assign g[WIDTH-1:0] = G | (P[0] & CI);
  assign CO = g[LEVELS*WIDTH +: WIDTH];
  genvar i, k;
  generate
    for (k = 0; k < LEVELS; k = k + 1)
      for (i = 0; i < WIDTH; i = i + 1)
        if ((i >> k) & 1) begin
          assign g[(k+1)*WIDTH+i] = g[k*WIDTH+i] | (p[k*WIDTH+i] & g[k*WIDTH + ((i >> k) << k) - 1]);
          assign p[(k+1)*WIDTH+i] = p[k*WIDTH+i] & p[k*WIDTH + ((i >> k) << k) - 1];
        end else begin
          assign g[(k+1)*WIDTH+i] = g[k*WIDTH+i];
          assign p[(k+1)*WIDTH+i] = p[k*WIDTH+i];
        end
  endgenerate
endmodule
"""
_TECHMAPS = {"ripple": _RIPPLE, "sklansky": _SKLANSKY}

# Structural choices three times over: every round merges what the one before found, which leaves the mapper
# less to the order of its input.
_CHOICES = ("strash", "ifraig", "dch", "dch", "dch", "amap -m")
_BUFFERS = ("topo", "buffer -c", "topo")

# What `synth` itself would run, but for a limit of conflicts, which is a million there. Sums of long products without
# registers then take ten minutes and more: pairs of nodes that are nearly alike are neither merged nor told apart.
_STRUCTURE = (
    *("strash", "&get -n", "&fraig -x -C 1000", "&put", "scorr", "dc2", "dretime"),
    *("strash", "&get -n", "&dch -f", "&nf", "&put"),
)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "area",
            "ripple",
            (*_CHOICES, *_BUFFERS, "dnsize", "stime -p"),
            "smallest area: ripple carries, structural choices, area-only mapping with XOR and MUX matching",
        ),
        Recipe(
            "adders",
            "ripple",
            ("strash", "ifraig", "dc2 -b", "emap -a", *_BUFFERS, "dnsize", "stime -p"),
            "smallest area with the library's full and half adders: keeps the compressors as they are described",
            multiple_outputs=True,
        ),
        Recipe(
            "balanced",
            "ripple",
            (*_CHOICES, *_BUFFERS, "upsize", "dnsize", "stime -p"),
            "as area, then larger drives on the critical path",
            fast=True,
        ),
        Recipe(
            "speed",
            "kogge-stone",
            ("&get -n", "&st", "&dch", "&nf", "&put", *_BUFFERS, "upsize", "dnsize", "stime -p"),
            "parallel-prefix carries, delay-oriented mapping, larger drives on the critical path",
            fast=True,
        ),
        Recipe(
            "prefix",
            "sklansky",
            ("&get -n", "&st", "&nf", "&put", *_BUFFERS, "upsize", "dnsize", "stime -p"),
            "as speed, but Sklansky's carries, and the structure as it is described",
            fast=True,
        ),
        Recipe(
            "delay",
            "kogge-stone",
            ("strash", "ifraig", "dch", "map -B 0.9", *_BUFFERS, "upsize", "dnsize", "stime -p"),
            "parallel-prefix carries, mapping for the shortest delay at any area",
            fast=True,
        ),
    )
}
"""Recipes by name. Yosys' own default script hangs on some signed sums of 16 products."""


def usable(library: Library) -> list[Recipe]:
    """The recipes that make sense with a library."""
    adders = any(
        len(cell.outputs) > 1 and cell.sequential is None and not cell.dont_use for cell in library.cells.values()
    )
    return [recipe for recipe in RECIPES.values() if adders or not recipe.multiple_outputs]


_SIZING = ("upsize", "dnsize")


def distinct(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The recipes that differ in more than sizes, the first of several: enough where sizes are chosen afterwards."""
    found: dict[tuple[str, ...], Recipe] = {}
    for how in recipes:
        found.setdefault((how.carry, *(command for command in how.abc if command not in _SIZING)), how)
    return list(found.values())


def recipe(name: str) -> Recipe:
    """Return the recipe ``name``; `InputError` names the nearest, or all there are."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; {meant(name, RECIPES)}")
    return RECIPES[name]


@lru_cache(maxsize=1)
def _perturbing() -> str:
    """The code of the module that `_RUNNER` takes a function from."""
    return inspect.getsource(perturb)


@lru_cache(maxsize=1)
def tool_version() -> str:
    """Version of the synthesis tool, for reports."""
    return f"Yosys {version('pyosys')} (pyosys)"


# In two parts, so that the cells can be put in another order between them: a second probe of the tool's noise.
_RUNNER = """
import sys
from pyosys import libyosys as ys
from hwgen.mapping.perturb import reordered
design = ys.Design()
ys.run_pass("script first.ys", design)
if variant := int(sys.argv[1]):
    with open("generic.il", encoding="utf-8") as file:
        text = reordered(file.read(), variant)
    with open("generic.il", "w", encoding="utf-8") as file:
        file.write(text)
    ys.run_pass("design -reset", design)
    ys.run_pass("read_rtlil generic.il", design)
ys.run_pass("script second.ys", design)
"""

# What is killed cannot end its tools, and ABC is a child of Yosys, which would go on for an hour. So a process beside
# them waits for the end of a pipe that only the caller holds, and ends them all.
_WATCHED = """
import os, signal, sys
watcher = os.fork()
if not watcher:
    for descriptor in (1, 2):
        os.close(descriptor)
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
try:
    exec(sys.argv[2])
finally:
    os.kill(watcher, signal.SIGKILL)
    os.waitpid(watcher, 0)
"""


def _scripts(top: str, boxes: Sequence[str], library: Library, how: Recipe, gate: Cell | None) -> tuple[str, str]:
    avoid = _avoid(library.unused)
    first = [
        "read_verilog design.v",
        *(f"blackbox {box}" for box in boxes),
        f"hierarchy -check -top {top}",
        f"synth -flatten -top {top} {CARRIES[how.carry]} -noabc",
        f"abc -script +{';'.join(command.replace(' ', ',') for command in _STRUCTURE)}",
        "opt -fast",
        "write_rtlil generic.il",
    ]
    second = [
        *([] if gate is None else [_clockgate(gate)]),
        f"dfflibmap {avoid} {_avoid(passed_over(library))} -liberty cells.lib",
        f"abc {avoid} -liberty cells.lib -script abc.script",
        "opt_clean -purge",
        "write_json mapped.json",
    ]
    return "\n".join([*first, ""]), "\n".join([*second, ""])


def _avoid(cells: Sequence[str]) -> str:
    return " ".join(f"-dont_use {cell}" for cell in cells)


def _clockgate(cell: Cell) -> str:
    """The pass that puts ``cell`` before registers with an enable in common.

    It passes over registers whose reset works without the enable, and over those of fewer than `LEAST_GATED` bits.
    """
    gate = cell.clock_gate
    assert gate is not None
    test = "" if gate.test is None else f"-tie_lo {gate.test} "
    return f"clockgate -pos {cell.name} {gate.enable}:{gate.clock}:{gate.output} {test}-min_net_size {LEAST_GATED}"


def clock_gate(library: Library) -> Cell | None:
    """The clock gate that synthesis takes, the smallest; None if the library has none."""
    return next(iter(library.clock_gates()), None)


def _gate_for(verilog: str, library: Library, clock_gating: bool) -> Cell | None:
    """The clock gate for a module; None where gating is not wanted, or there is nothing to gate."""
    # A script that says nothing of gates is the one of the ungated design: one synthesis serves both.
    return clock_gate(library) if clock_gating and "posedge" in verilog else None


def fingerprint(
    verilog: str,
    top: str,
    library: Library,
    how: Recipe,
    boxes: Sequence[str] = (),
    variant: int = 0,
    clock_gating: bool = False,
) -> str:
    """Digest of everything that decides the result of `synthesise`."""
    scripts = _scripts(top, boxes, library, how, _gate_for(verilog, library, clock_gating))
    techmap = _TECHMAPS.get(how.carry, _RIPPLE)
    cells = _cells(library.paths, library.digests)
    parts = [verilog, cells.digest, *how.abc, *scripts, techmap, _RUNNER, _perturbing(), str(variant)]
    parts.append(tool_version())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def synthesise(
    verilog: str,
    top: str,
    library: Library,
    how: Recipe,
    boxes: Sequence[str] = (),
    variant: int = 0,
    time_limit: float = TIME_LIMIT,
    clock_gating: bool = False,
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
    variant
        Order of the cells between synthesis and mapping, see `hwgen.mapping.perturb`; 0 leaves it as it is.
    time_limit
        Seconds after which the run is ended.
    clock_gating
        Whether registers that share an enable get their clock through a gate, `clock_gate`. Registers without one,
        and all where the library has no gate, get a multiplexer that holds their value.

    Returns
    -------
    dict
        The module's body as Yosys' ``write_json`` gives it.

    Raises
    ------
    ToolError
        The tool failed or ran out of time; the message has its last words.
    """
    with tempfile.TemporaryDirectory(prefix="hwgen-", dir=_plain_directory()) as place:
        # Fixed names in a directory of its own: no path of the user's ever becomes part of a script.
        directory = Path(place)
        (directory / "design.v").write_text(verilog, encoding="utf-8")
        (directory / "cells.lib").write_text(_cells(library.paths, library.digests).text, encoding="utf-8")
        (directory / "abc.script").write_text("\n".join(how.abc) + "\n", encoding="utf-8")
        for carry, text in _TECHMAPS.items():
            (directory / f"{carry}.v").write_text(text, encoding="utf-8")
        scripts = _scripts(top, boxes, library, how, _gate_for(verilog, library, clock_gating))
        for name, text in zip(("first.ys", "second.ys"), scripts, strict=True):
            (directory / name).write_text(text, encoding="utf-8")
        log = _run(directory, variant, time_limit, f"synthesis of {top} (recipe {how.name})")
        mapped = directory / "mapped.json"
        if not mapped.exists():
            raise ToolError(f"synthesis of {top} failed: {_last_words(log)}")
        try:
            return json.loads(mapped.read_text(encoding="utf-8"))["modules"][top]
        except (json.JSONDecodeError, KeyError):
            raise ToolError(f"synthesis of {top} failed: {_last_words(log)}") from None


class _Cells(NamedTuple):
    """Text of a library, one file of all its files, and its digest."""

    text: str
    digest: str


@lru_cache(maxsize=2)
def _cells(paths: tuple[str, ...], digests: tuple[str, ...]) -> _Cells:
    """A library as the mapper reads it; the digests stand for what its files hold."""
    text = merge([read_text(path)[0] for path in paths])
    return _Cells(text, hashlib.sha256(text.encode()).hexdigest())


def _plain_directory() -> str:
    """The user's temporary directory, or /tmp if its name is more than ABC's scripts can bear."""
    chosen = tempfile.gettempdir()
    return chosen if re.fullmatch(r"[\w./+-]+", chosen, re.ASCII) else "/tmp"


def _run(directory: Path, variant: int, time_limit: float, what: str) -> str:
    watched, held = os.pipe()
    with open(watched, "rb"), open(held, "wb"):
        process = subprocess.Popen(
            [sys.executable, "-c", _WATCHED, str(variant), _RUNNER],
            cwd=directory,
            stdin=watched,
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

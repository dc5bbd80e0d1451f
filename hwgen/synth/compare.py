"""Two designs measured alike, and what the second costs over the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hwgen.synth.area import by_block, sequential_area
from hwgen.synth.netlist import Netlist
from hwgen.synth.timing import Timing

__all__ = ["SCOPES", "Figure", "Measured", "compare"]

SCOPES = ("lane array", "element", "core")
"""What a figure is about: 16 lanes with decoders of their own; one processing element; the whole core."""


@dataclass(frozen=True)
class Measured:
    """What was measured of one design at one scope.

    Parameters
    ----------
    netlist, timing
        The mapped netlist and its timing.
    energy_fj
        Energy in fJ per cycle by module path and kind (`hwgen.synth.power.KINDS`).
    macs
        Multiply-accumulates per cycle at this scope.
    energy_same_operands_fj
        The same, with operands in the baseline's format, the same bits for both designs.
    """

    netlist: Netlist
    timing: Timing
    energy_fj: Mapping[str, Mapping[str, float]]
    macs: int
    energy_same_operands_fj: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def quantities(self, frequency_mhz: float) -> dict[tuple[str, str, str], float]:
        """Everything that is reported, by (block, metric, unit)."""
        found: dict[tuple[str, str, str], float] = {}

        def put(metric: str, unit: str, total: float, blocks: Mapping[str, float] | None = None) -> None:
            found["total", metric, unit] = total
            # A scope with a single block has nothing to attribute.
            if blocks is not None and len(blocks) > 1:
                found.update({(block, metric, unit): value for block, value in blocks.items()})

        netlist = self.netlist
        sequential = sequential_area(netlist)
        put("area", "um2", netlist.area, by_block(netlist.area_by_block()))
        if sequential:
            put("sequential area", "um2", sequential)
            put("sequential share", "1", sequential / netlist.area)
        put("cells", "cells", netlist.n_cells)
        put("critical path", "ns", self.timing.delay)
        put("maximum clock", "MHz", self.timing.max_clock_mhz)

        milliwatts = frequency_mhz * 1e-6
        leakage = {path: kinds["leakage"] * milliwatts for path, kinds in self.energy_fj.items()}
        dynamic = {
            path: (sum(kinds.values()) - kinds["leakage"]) * milliwatts for path, kinds in self.energy_fj.items()
        }
        put("leakage power", "mW", sum(leakage.values()), by_block(leakage))
        put("dynamic power", "mW", sum(dynamic.values()), by_block(dynamic))
        total = sum(leakage.values()) + sum(dynamic.values())
        put("total power", "mW", total)
        same = sum(sum(kinds.values()) for kinds in self.energy_same_operands_fj.values())
        put("total power, same operands", "mW", same * milliwatts)
        put("energy per MAC", "fJ", total / milliwatts / self.macs)
        return found


@dataclass(frozen=True)
class Figure:
    """One measured quantity of both designs.

    Parameters
    ----------
    scope
        One of `SCOPES`.
    block
        ``total`` or a block of `hwgen.synth.area.BLOCKS`.
    metric, unit
        What it is, and in what unit; a share has the unit ``1``.
    values
        Value by design, baseline first.
    """

    scope: str
    block: str
    metric: str
    unit: str
    values: Mapping[str, float]

    @property
    def overhead(self) -> float | None:
        """(candidate - baseline) / baseline; None for shares and where the baseline has nothing."""
        baseline, candidate = self.values.values()
        if self.unit == "1" or baseline == 0:
            return None
        return (candidate - baseline) / baseline

    def as_dict(self) -> dict[str, Any]:
        """The figure as an entry of ``results`` in a JSON report."""
        return {
            "scope": self.scope,
            "block": self.block,
            "metric": self.metric,
            "unit": self.unit,
            "values": dict(self.values),
            # A single run has no spread to tell: low and high stay open.
            "overhead": {"median": self.overhead, "low": None, "high": None},
        }


def compare(
    baseline: str,
    candidate: str,
    measured: Mapping[tuple[str, str], Measured],
    frequency_mhz: float,
) -> list[Figure]:
    """All figures of two designs, scope by scope.

    Parameters
    ----------
    baseline, candidate
        Names of the designs.
    measured
        By (design, scope); both designs at every scope of `SCOPES`.
    frequency_mhz
        Clock at which power is stated.
    """
    figures = []
    for scope in SCOPES:
        both = {name: measured[name, scope].quantities(frequency_mhz) for name in (baseline, candidate)}
        for block, metric, unit in both[baseline]:
            values = {name: quantities[block, metric, unit] for name, quantities in both.items()}
            figures.append(Figure(scope, block, metric, unit, values))
    return figures

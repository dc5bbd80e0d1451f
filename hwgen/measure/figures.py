"""Two designs measured alike, and what the second costs over the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hwgen.power.consumption import DYNAMIC, KINDS, Consumption
from hwgen.report import schema
from hwgen.report.schema import HALF_RATE, IDLE, SAME_OPERANDS, SCOPES, TOTAL
from hwgen.stats import Estimate, against_itself, paired

__all__ = ["Figure", "Measured", "compare"]


@dataclass(frozen=True)
class Measured:
    """What was measured of one design at one scope, one entry for each run.

    Parameters
    ----------
    areas
        um2 by block.
    delays
        Critical path, ns.
    cells
        Number of cells.
    sequential, clock_gates
        Area of the flip-flops, and of the clock gates, um2.
    energy
        At work on operands of its own format.
    same_operands
        At work on operands of the baseline's format, the same bits for both designs.
    settled
        As ``energy``, without glitches.
    idle
        Without a step; only what the clock costs is looked at.
    macs
        Multiply-accumulates per cycle at this scope.
    lengths
        um of wire by block; empty where nothing is placed.
    half_rate, half_rate_settled
        As ``energy`` and ``settled``, with steps at half the rate; empty where there are none.
    """

    areas: Mapping[str, Sequence[float]]
    delays: Sequence[float]
    cells: Sequence[int]
    sequential: Sequence[float]
    clock_gates: Sequence[float]
    energy: Sequence[Consumption]
    same_operands: Sequence[Consumption]
    settled: Sequence[Consumption]
    idle: Sequence[Consumption]
    macs: int
    lengths: Mapping[str, Sequence[float]] = field(default_factory=dict)
    half_rate: Sequence[Consumption] = ()
    half_rate_settled: Sequence[Consumption] = ()

    @property
    def total_area(self) -> list[float]:
        """um2 of each run."""
        return np.sum(list(self.areas.values()), axis=0).tolist()

    def idle_power(self, kind: str, clock_ns: float) -> list[float]:
        """Power of a kind in mW without a step, of each run, at a clock period in ns."""
        return [sum(block[kind] for block in run.milliwatts(clock_ns).values()) for run in self.idle]

    def power(self, clock_ns: float) -> dict[tuple[str, str, str], list[float]]:
        """Power of each run at a clock period in ns, by (block, metric, unit)."""
        energy, same_operands, settled = (
            [run.milliwatts(clock_ns) for run in runs] for runs in (self.energy, self.same_operands, self.settled)
        )
        found = _by_block(energy)
        for kind in DYNAMIC:
            values = _summed(energy, [kind])
            if any(values):
                found[TOTAL, f"{kind.replace('_', ' ')} power", "mW"] = values
        found[TOTAL, "total power", "mW"] = _summed(energy, KINDS)
        if same_operands:
            found[TOTAL, SAME_OPERANDS, "mW"] = _summed(same_operands, KINDS)
        found[TOTAL, "total power, no glitches", "mW"] = _summed(settled, KINDS)
        found[TOTAL, "energy per MAC", "fJ"] = [
            milliwatts * 1e3 * clock_ns / self.macs for milliwatts in _summed(energy, KINDS)
        ]
        return found

    def half_rate_power(self, clock_ns: float) -> dict[tuple[str, str, str], list[float]]:
        """As `power`, with steps at half the rate, which have half as many multiply-accumulates."""
        if not self.half_rate:
            return {}
        energy, settled = (
            [run.milliwatts(clock_ns) for run in runs] for runs in (self.half_rate, self.half_rate_settled)
        )
        found = {
            (block, f"{metric}{HALF_RATE}", unit): runs for (block, metric, unit), runs in _by_block(energy).items()
        }
        found[TOTAL, f"total power{HALF_RATE}", "mW"] = _summed(energy, KINDS)
        found[TOTAL, f"total power, no glitches{HALF_RATE}", "mW"] = _summed(settled, KINDS)
        found[TOTAL, f"energy per MAC{HALF_RATE}", "fJ"] = [
            milliwatts * 1e3 * clock_ns / (self.macs / 2) for milliwatts in _summed(energy, KINDS)
        ]
        return found


_Powers = Sequence[Mapping[str, Mapping[str, float]]]
"""mW of each run, by block and kind."""


def _summed(runs: _Powers, kinds: Sequence[str], blocks: Sequence[str] = ()) -> list[float]:
    """MW of each run, of some kinds, and of some blocks or all."""
    return [sum(run[block][kind] for block in blocks or run for kind in kinds) for run in runs]


def _by_block(energy: _Powers) -> dict[tuple[str, str, str], list[float]]:
    """Dynamic and leakage power of each run, by (block, metric, unit)."""
    blocks = list(energy[0])
    found = {}
    for metric, kinds in (("dynamic power", DYNAMIC), ("leakage power", ("leakage",))):
        found[TOTAL, metric, "mW"] = _summed(energy, kinds)
        # A scope with a single block has nothing to attribute.
        for block in blocks if len(blocks) > 1 else ():
            values = _summed(energy, kinds, [block])
            if any(values):
                found[block, metric, "mW"] = values
    return found


@dataclass(frozen=True)
class Figure:
    """One measured quantity of both designs.

    Parameters
    ----------
    scope
        One of `SCOPES`.
    block
        `hwgen.report.schema.TOTAL` or a block of `hwgen.mapping.area.BLOCKS`.
    metric, unit
        What it is, and in what unit; a share has the unit ``1``.
    runs
        Values by design, baseline first: one for each perturbation, or a single one.
    of
        For a block: the baseline's totals, which its contribution to the overhead is a share of.
    """

    scope: str
    block: str
    metric: str
    unit: str
    runs: Mapping[str, Sequence[float]]
    of: Sequence[float] | None = None

    @property
    def values(self) -> dict[str, float]:
        """Mean over the runs, by design; blocks add up to their total."""
        return {name: float(np.mean(values)) for name, values in self.runs.items()}

    @property
    def overhead(self) -> Estimate | None:
        """(candidate - baseline) / baseline; None for shares and where the baseline has nothing."""
        baseline, candidate = self.runs.values()
        if self.unit == "1" or min(baseline) == 0:
            return None
        return paired(baseline, candidate)

    @property
    def contribution(self) -> Estimate | None:
        """What this block adds to the overhead of the total; all blocks add up to it."""
        if self.of is None:
            return None
        baseline, candidate = self.runs.values()
        return paired(baseline, candidate, self.of)

    @property
    def self_overhead(self) -> Estimate | None:
        """The baseline against itself, see `against_itself`."""
        baseline, _ = self.runs.values()
        return None if self.unit == "1" or min(baseline) == 0 else against_itself(baseline)

    def record(self) -> schema.Figure:
        """The figure as an entry of a report."""
        return schema.Figure(
            scope=self.scope,
            block=self.block,
            metric=self.metric,
            unit=self.unit,
            runs=len(next(iter(self.runs.values()))),
            values=self.values,
            overhead=self.overhead,
            contribution=self.contribution,
            baseline_against_itself=self.self_overhead,
        )


_Key = tuple[str, str, str]


def _in_either(powers: Mapping[str, Mapping[_Key, Sequence[float]]]) -> list[_Key]:
    """Keys of either design: one may have a block that the other has not. What is of the same operands is of both."""
    keys = dict.fromkeys(key for found in powers.values() for key in found)
    return [key for key in keys if key[1] != SAME_OPERANDS or all(key in found for found in powers.values())]


def _at_half_rate(scope: str, both: Mapping[str, Measured], clock_ns: float) -> list[Figure]:
    """Figures of steps at half the rate, where both designs have them; the baseline first."""
    powers = {name: found.half_rate_power(clock_ns) for name, found in both.items()}
    if not all(powers.values()):
        return []
    baseline = next(iter(powers.values()))
    none = [0.0] * len(baseline[TOTAL, f"total power{HALF_RATE}", "mW"])
    return [
        Figure(
            scope,
            block,
            metric,
            unit,
            {name: found.get((block, metric, unit), none) for name, found in powers.items()},
            None if block == TOTAL else baseline[TOTAL, metric, unit],
        )
        for block, metric, unit in _in_either(powers)
    ]


def compare(
    baseline: str, candidate: str, measured: Mapping[tuple[str, str], Measured], clock_ns: float
) -> list[Figure]:
    """All figures of two designs, scope by scope.

    Parameters
    ----------
    baseline, candidate
        Names of the designs.
    measured
        By (design, scope); both designs at the same ones of `SCOPES`.
    clock_ns
        Clock period at which power is stated.
    """
    figures = []
    for scope in (scope for scope in SCOPES if (baseline, scope) in measured):
        both = {name: measured[name, scope] for name in (baseline, candidate)}

        def figure(
            metric: str,
            unit: str,
            runs: Mapping[str, Sequence[float]],
            block: str = TOTAL,
            of: Sequence[float] | None = None,
            scope: str = scope,
        ) -> None:
            figures.append(Figure(scope, block, metric, unit, runs, of))

        totals = {name: found.total_area for name, found in both.items()}
        figure("area", "um2", totals)
        none = [0.0] * len(totals[baseline])
        blocks = dict.fromkeys(block for found in both.values() for block in found.areas)
        for block in blocks if len(blocks) > 1 else ():
            areas = {name: found.areas.get(block, none) for name, found in both.items()}
            figure("area", "um2", areas, block, totals[baseline])
        # Blocks are synthesised on their own, so the best of each makes a whole.
        best = {name: [sum(min(values) for values in found.areas.values())] for name, found in both.items()}
        figure("smallest area", "um2", best)
        if both[baseline].delays:
            figure("critical path", "ns", {name: found.delays for name, found in both.items()})
            clocks = {name: [1e3 / delay for delay in found.delays] for name, found in both.items()}
            figure("maximum clock", "MHz", clocks)
        if both[baseline].lengths:
            lengths = {name: np.sum(list(found.lengths.values()), axis=0) for name, found in both.items()}
            figure("wire length", "um", lengths)
            blocks = dict.fromkeys(block for found in both.values() for block in found.lengths)
            for block in blocks if len(blocks) > 1 else ():
                values = {name: found.lengths.get(block, none) for name, found in both.items()}
                figure("wire length", "um", values, block, lengths[baseline].tolist())
        if any(both[baseline].sequential):
            figure("sequential area", "um2", {name: found.sequential for name, found in both.items()})
            shares = {
                name: [part / whole for part, whole in zip(found.sequential, totals[name], strict=True)]
                for name, found in both.items()
            }
            figure("sequential share", "1", shares)
        gated = any(gate for found in both.values() for gate in found.clock_gates)
        if gated:
            figure("clock gate area", "um2", {name: found.clock_gates for name, found in both.items()})
        figure("cells", "cells", {name: found.cells for name, found in both.items()})
        powers = {name: found.power(clock_ns) for name, found in both.items()}
        for block, metric, unit in _in_either(powers):
            runs = {name: found.get((block, metric, unit), none) for name, found in powers.items()}
            figure(metric, unit, runs, block, None if block == TOTAL else powers[baseline][TOTAL, metric, unit])
        figures.extend(_at_half_rate(scope, both, clock_ns))
        if gated and scope == "core":
            for metric, kind in (("clock power", "clock"), ("clock tree power", "clock_tree")):
                resting = {name: found.idle_power(kind, clock_ns) for name, found in both.items()}
                figure(f"{metric}{IDLE}", "mW", resting)
    return figures

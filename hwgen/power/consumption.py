"""What a netlist consumes: energy of every cycle and leakage, each in its own unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["DYNAMIC", "KINDS", "Consumption"]

DYNAMIC = ("internal", "switching", "wires", "clock", "clock_tree")
"""Kinds of energy that a cycle costs, see `hwgen.power.estimate`."""

KINDS = (*DYNAMIC, "leakage")
"""Kinds of power."""


@dataclass(frozen=True)
class Consumption:
    """Energy per cycle and leakage, block by block.

    Parameters
    ----------
    dynamic_fj
        fJ per cycle, by block and by every kind of `DYNAMIC`.
    leakage_nw
        nW, by block; the same blocks.
    """

    dynamic_fj: Mapping[str, Mapping[str, float]]
    leakage_nw: Mapping[str, float]

    def __add__(self, other: Consumption) -> Consumption:
        """Both together; a block may be in one or in both."""
        blocks = list(dict.fromkeys((*self.leakage_nw, *other.leakage_nw)))
        both = (self, other)
        return Consumption(
            {
                block: {
                    kind: sum(each.dynamic_fj[block][kind] for each in both if block in each.dynamic_fj)
                    for kind in DYNAMIC
                }
                for block in blocks
            },
            {block: sum(each.leakage_nw.get(block, 0.0) for each in both) for block in blocks},
        )

    def scaled(self, share: float) -> Consumption:
        """That share of it."""
        return Consumption(
            {block: {kind: share * fj for kind, fj in kinds.items()} for block, kinds in self.dynamic_fj.items()},
            {block: share * nw for block, nw in self.leakage_nw.items()},
        )

    def within(self, chosen: Callable[[str], bool]) -> Consumption:
        """That of the blocks that are ``chosen``."""
        return Consumption(
            {block: kinds for block, kinds in self.dynamic_fj.items() if chosen(block)},
            {block: nw for block, nw in self.leakage_nw.items() if chosen(block)},
        )

    def renamed(self, name: Callable[[str], str]) -> Consumption:
        """The same under other names; blocks that come to have one name are added up."""
        dynamic: dict[str, dict[str, float]] = {}
        leakage: dict[str, float] = {}
        for block, kinds in self.dynamic_fj.items():
            found = dynamic.setdefault(name(block), dict.fromkeys(DYNAMIC, 0.0))
            for kind, fj in kinds.items():
                found[kind] += fj
            leakage[name(block)] = leakage.get(name(block), 0.0) + self.leakage_nw[block]
        return Consumption(dynamic, leakage)

    @property
    def total_fj(self) -> float:
        """fJ per cycle, without leakage."""
        return sum(fj for kinds in self.dynamic_fj.values() for fj in kinds.values())

    def milliwatts(self, clock_ns: float) -> dict[str, dict[str, float]]:
        """Power in mW at a clock period in ns, by block and by every kind of `KINDS`."""
        return {
            # fJ per ns are uW.
            block: {**{kind: fj * (1e-3 / clock_ns) for kind, fj in kinds.items()}, "leakage": 1e-6 * nw}
            for block, kinds in self.dynamic_fj.items()
            for nw in [self.leakage_nw[block]]
        }

"""What a search found: lanes, a slot, and the recipe of each module, for each purpose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hwgen.config import SLOTS, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.netlists.flow import DESIGNS, Design
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["OF_LANES", "Chosen", "Selected", "following", "variants"]

Chosen = dict[str, Recipe]
"""Recipe of each module."""

OF_LANES = "dot_product"
"""The module that lanes make. Its recipe serves a lane array, too, which is one flat module."""


@dataclass(frozen=True)
class Selected:
    """What the search found.

    Parameters
    ----------
    configs
        Each configuration with the lanes and the slot it takes, by its name and purpose. Empty where the library has
        no flip-flops, and so no cores.
    chosen
        Recipe of each module, likewise.
    lane_arrays
        Each configuration with the lanes that are its own, and the recipe that suits them, likewise. Lane arrays have
        these: were they to take the lanes of the core, which may be unlike, they would compare lanes, not formats.
    builds
        Cores that were built for it; 0 where they are those of an earlier search.
    rivals
        Other lanes and their recipes that were nearly as good, likewise: whole cores have to decide.
    report
        Name and digest of the report, or of the file of choices, that has it all; None where it was searched for.
    searched
        Whether a search found it, be it an earlier one.
    """

    configs: dict[tuple[str, str], TensorCoreConfig]
    chosen: dict[tuple[str, str], Chosen]
    lane_arrays: dict[tuple[str, str], tuple[TensorCoreConfig, Recipe]]
    builds: int
    rivals: Mapping[tuple[str, str], Sequence[tuple[TensorCoreConfig, Chosen]]] = field(default_factory=dict)
    report: str | None = None
    searched: bool = True

    def designs(self, name: str, purpose: str) -> dict[type[Block], Design]:
        """The tensor core, if there is one, and the lane array of a configuration."""
        configs = {TensorCore: self.configs.get((name, purpose)), LaneArray: self.lane_arrays[name, purpose][0]}
        return {kind: Design(config, kind) for kind in DESIGNS if (config := configs[kind])}

    def of(self, design: Design, purpose: str) -> Chosen:
        """The recipe of each module of a design.

        Raises
        ------
        InputError
            The search knew no such module.
        """
        if design.kind is LaneArray:
            return {LaneArray.module_name: self.lane_arrays[design.config.name, purpose][1]}
        chosen = self.chosen[design.config.name, purpose]
        modules = area.counts(design.source)
        if unknown := ", ".join(module for module in modules if module not in chosen):
            raise InputError(f"{design.config.name}: no recipe was found for {unknown}; search anew, with --search")
        return {module: chosen[module] for module in modules}


def variants(config: TensorCoreConfig, lanes: Sequence[str], slots: Sequence[str] = ()) -> list[TensorCoreConfig]:
    """A configuration, and the same with other lanes and, where it has one, with other slots; itself comes first.

    A slot that none of the lanes goes with has the first lanes that it does go with.
    """
    found = []
    for slot in dict.fromkeys((config.slot, *(slots if config.slotted else ()))):
        dots = [dot for dot in dict.fromkeys((config.dot, *lanes)) if config.takes(dot, slot)]
        if not dots:
            dots = [dot for dot in SLOTS[slot] or () if config.takes(dot, slot)][:1]
        found += [replace(config, dot=dot, slot=slot) for dot in dots]
    return found


def following(chosen: Chosen, other: Chosen, kept: Iterable[str] = (OF_LANES,)) -> Chosen:
    """A choice with the recipes of another one, for all modules that it has but those ``kept``: the lanes alone."""
    return {module: how if module in kept else other.get(module, how) for module, how in chosen.items()}

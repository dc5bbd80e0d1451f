"""From the smallest netlists of a design to its fastest, one module after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from hwgen.mapping.yosys import Recipe
from hwgen.netlist.graph import Netlist
from hwgen.timing.analysis import Timing, analyse

__all__ = ["walk"]

_GAIN = 0.01


def walk(
    recipes: Mapping[str, Sequence[Recipe]], linked: Callable[[Mapping[str, Recipe]], Sequence[Netlist]]
) -> Iterator[tuple[dict[str, Recipe], float]]:
    """Give up area for delay, step by step.

    The module with the largest share of the critical path is the first to take a larger recipe, the least one
    that makes the path 1 % shorter; if none does, the module with the next largest share. Where no module has one,
    any gain will do: of several paths of about the same length, one must go first. The walk ends where nothing is
    gained at all; steps that come to less than 1 % are passed over.

    Parameters
    ----------
    recipes
        For every module its recipes, the smallest first.
    linked
        The design with the given recipe for each module, in one or several variants.

    Yields
    ------
    tuple
        A recipe for every module, and the critical path in ns, the longest of the variants'.
    """

    def slowest(choice: Mapping[str, Recipe]) -> Timing:
        return max((analyse(netlist) for netlist in linked(choice)), key=lambda found: found.delay)

    def faster(choice: Mapping[str, Recipe], than: Timing) -> tuple[dict[str, Recipe], Timing] | None:
        little: tuple[dict[str, Recipe], Timing] | None = None
        shares: dict[str, float] = {}
        for path, delay in than.path_by_block.items():
            module = path.rsplit("/", 1)[-1]
            shares[module] = shares.get(module, 0.0) + delay
        for module in sorted(shares.keys() & recipes.keys(), key=lambda name: (-shares[name], name)):
            for how in recipes[module][recipes[module].index(choice[module]) + 1 :]:
                trial = {**choice, module: how}
                found = slowest(trial)
                if found.delay < (1 - _GAIN) * than.delay:
                    return trial, found
                if little is None and found.delay < than.delay:
                    little = trial, found
        return little

    choice = {module: among[0] for module, among in recipes.items()}
    step: tuple[dict[str, Recipe], Timing] | None = choice, slowest(choice)
    shown = math.inf
    while step is not None:
        choice, timing = step
        if timing.delay < (1 - _GAIN) * shown:
            shown = timing.delay
            yield choice, shown
        step = faster(choice, timing)

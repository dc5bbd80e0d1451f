"""A recipe for each module, judged after sizing: from the smallest netlists to those that meet a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hwgen.closure.close import Body, Closed
from hwgen.mapping.yosys import Recipe

__all__ = ["choose"]

Choice = dict[str, Recipe]
_Key = tuple[tuple[str, str], ...]


def choose(
    recipes: Mapping[str, Sequence[Recipe]],
    assembled: Callable[[Mapping[str, Recipe]], Mapping[str, Body]],
    closed: Callable[[Mapping[str, Body]], Closed],
) -> tuple[Choice, Closed]:
    """Change recipes, one module after the other, until sizing meets the clock.

    The module with the largest share of the longest path tries its other recipes; the one that leaves the shortest
    path is kept, or the least area among those that meet the clock. Where none helps, the module with the next
    largest share is asked. It ends where the clock is met, or where no module on the longest path has a recipe that
    shortens it.

    Parameters
    ----------
    recipes
        For every module its recipes, the smallest first.
    assembled
        The modules of a design with a recipe for each.
    closed
        `hwgen.closure.close.close` with library, clock and wires; one round will do.

    Returns
    -------
    tuple
        A recipe for each module, and the design closed with them.
    """
    choice = {module: among[0] for module, among in recipes.items()}
    best = closed(assembled(choice))
    tried = {_key(choice)}
    while not best.record.met:
        step = _faster(choice, best, recipes, lambda trial: closed(assembled(trial)), tried)
        if step is None:
            break
        choice, best = step
    return choice, best


def _key(choice: Mapping[str, Recipe]) -> _Key:
    return tuple((module, how.name) for module, how in choice.items())


def _faster(
    choice: Choice,
    best: Closed,
    recipes: Mapping[str, Sequence[Recipe]],
    closed: Callable[[Choice], Closed],
    tried: set[_Key],
) -> tuple[Choice, Closed] | None:
    """The first module on the longest path that has a better recipe, with it."""
    shares: dict[str, float] = {}
    for path, delay in best.timing.path_by_block.items():
        module = path.rsplit("/", 1)[-1]
        shares[module] = shares.get(module, 0.0) + delay
    for module in sorted(shares.keys() & recipes.keys(), key=lambda name: (-shares[name], name)):
        found: list[tuple[tuple[bool, float], Choice, Closed]] = []
        for how in recipes[module]:
            trial = {**choice, module: how}
            if _key(trial) in tried:
                continue
            tried.add(_key(trial))
            result = closed(trial)
            if result.record.delay_ns < best.record.delay_ns:
                late = not result.record.met
                rank = late, result.record.delay_ns if late else result.record.area_after
                found.append((rank, trial, result))
        if found:
            _, trial, result = min(found, key=lambda one: one[0])
            return trial, result
    return None

"""Lanes, a slot and recipes as a TOML file has them, so that nothing is searched.

::

    [nvfp4-small.area]              # a configuration, and what its netlists are built for: area, or energy
    lanes = "merged"                # left out: those of the configuration, and so is the slot
    slot = "split"
    recipe = "speed"                # of all modules but those below
    modules = { dot_product = "adders", lane_array = "adders" }
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.config.read import toml
from hwgen.errors import InputError, meant
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, usable
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.flow import Design
from hwgen.measure.recorded import named_with_digest
from hwgen.measure.search.selected import Chosen, Selected
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["choices_in"]

_KEYS = ("lanes", "slot", "recipe", "modules")


def choices_in(path: Path, configs: Sequence[TensorCoreConfig], library: Library) -> Selected:
    """What a file says of some configurations; of others it may say something, too.

    Parameters
    ----------
    path
        TOML, as above. A lane array has the lanes of the configuration, and the recipe of the module `lane_array`.
    configs
        Those that are measured.
    library
        The cells, which some recipes are not for.

    Raises
    ------
    InputError
        The file cannot be read, says nothing of a configuration or of a purpose, or something that is not right. The
        message names the file, the table and the key.
    """
    try:
        content = path.read_bytes()
        return _selected(toml(content), configs, library, named_with_digest(path, content))
    except OSError as error:
        raise InputError(f"--choices {str(path)!r}: {error.strerror}") from None
    except InputError as error:
        raise InputError(f"--choices {str(path)!r}: {error}") from None


def _selected(table: Mapping[str, Any], configs: Sequence[TensorCoreConfig], library: Library, name: str) -> Selected:
    """What the content of a file of some name says."""
    found = Selected({}, {}, {}, 0, report=name, searched=False)
    for config in configs:
        own = _inner(table, config.name, config.name)
        _check_known(config.name, own, PURPOSES)
        for purpose in PURPOSES:
            key = config.name, purpose
            found.configs[key], chosen = _choice(own, config, purpose, library)
            found.lane_arrays[key] = config, chosen.pop(LaneArray.module_name)
            found.chosen[key] = chosen
    return found


def _choice(
    own: Mapping[str, Any], config: TensorCoreConfig, purpose: str, library: Library
) -> tuple[TensorCoreConfig, Chosen]:
    """What a table says of its configuration for a purpose: with lanes and slot, recipes of modules and lane array."""
    place = f"{config.name}.{purpose}"
    content = _inner(own, purpose, place)
    _check_known(place, content, _KEYS)
    given = {"dot": content.get("lanes", config.dot), "slot": content.get("slot", config.slot)}
    if "slot" in content and (not config.slotted or given["slot"] == "none"):
        has = "has one; give another" if config.slotted else "has none; leave it out"
        raise InputError(f"[{place}]: slot = {given['slot']!r}: {config.name} {has}")
    try:
        chosen = replace(config, **given)
    except InputError as error:
        raise InputError(f"[{place}]: {str(error).replace('dot = ', 'lanes = ', 1)}") from None
    recipes = {recipe.name: recipe for recipe in usable(library)}
    modules = [*area.counts(Design(chosen, TensorCore).source), LaneArray.module_name]
    exceptions = _inner(content, "modules", f"{place}.modules") if "modules" in content else {}
    _check_known(f"{place}.modules", exceptions, modules)
    default = content.get("recipe")
    if default is None and (missing := [module for module in modules if module not in exceptions]):
        raise InputError(f"[{place}]: recipe is missing; {', '.join(missing)} have none in modules")
    return chosen, {
        module: _recipe(f"[{place}]: modules.{module}", exceptions[module], recipes)
        if module in exceptions
        else _recipe(f"[{place}]: recipe", default, recipes)
        for module in modules
    }


def _recipe(place: str, name: object, among: Mapping[str, Recipe]) -> Recipe:
    if not isinstance(name, str) or name not in among:
        raise InputError(f"{place} = {name!r}: must be one of {', '.join(among)}")
    return among[name]


def _inner(table: Mapping[str, Any], key: str, place: str) -> Mapping[str, Any]:
    """A table in another one."""
    if key not in table:
        raise InputError(f"table [{place}] is missing; tables there: {', '.join(table) or 'none'}")
    if not isinstance(table[key], dict):
        raise InputError(f"{place} = {table[key]!r}: must be a table")
    found: Mapping[str, Any] = table[key]
    return found


def _check_known(place: str, content: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a key that says nothing."""
    for key in content:
        if key not in known:
            raise InputError(f"[{place}]: unknown key {key!r}; {meant(key, known)}")

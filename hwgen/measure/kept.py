"""A flow that keeps every core that it builds, so that a measurement that was killed goes on where it was.

What a core comes out as is kept beside the syntheses, under a key of all that it depends on: the mapped modules
themselves, library, clock, wires, operands, and the code of hwgen behind it. So nothing is ever taken for the answer to
another question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hwgen.cells.library import Library
from hwgen.closure.close import Closure
from hwgen.formats import BlockFormat, Formats
from hwgen.mapping.cache import Cache
from hwgen.measure import code
from hwgen.measure.conditions import fingerprint
from hwgen.measure.netlists.examined import Examined
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.runs import Run
from hwgen.measure.search.score import Score
from hwgen.power.consumption import Consumption
from hwgen.report import schema
from sim.counterpart import counterpart

__all__ = ["BUILDING", "KeptFlow"]

BUILDING = "hwgen.measure.runs"
"""The module behind which all code is that searches, builds and examines."""


@dataclass(frozen=True)
class KeptFlow(Flow):
    """A `Flow` whose builds are kept in its cache: scores of the search, and runs. Other tasks are as in a flow."""

    @classmethod
    def of(cls, flow: Flow) -> KeptFlow:
        """The same flow, keeping its builds."""
        return cls(**vars(flow))

    def each(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], what: str) -> Iterator[Any]:
        """As `Flow.each`; what was built before is read, not built."""
        kept = Cache(self.cache)
        told: dict[int, str] = {}
        keys = [_key(self.library, function, task, told) for task in tasks]
        entries = [kept.get(key) for key in keys]
        missing = [task for task, entry in zip(tasks, entries, strict=True) if entry is None]
        built = super().each(function, missing, what) if missing else iter(())
        for key, task, entry in zip(keys, tasks, entries, strict=True):
            if entry is not None:
                yield _read(entry, task)
                continue
            result = next(built)
            if (content := _written(result)) is not None:
                kept.put(key, content)
            yield result


def _key(library: Library, function: Callable[..., Any], task: tuple[Any, ...], told: dict[int, str]) -> str:
    """The key of a task's result; ``told`` has what was said of mapped modules before, which tasks share."""
    digest = hashlib.sha256()
    for part in _told(task, told):
        digest.update(f"{len(part)} {part} ".encode())
    module = function.__module__
    return fingerprint(
        library,
        "build",
        *(module, function.__qualname__, digest.hexdigest()),
        code=code.digest(module, netlists=True) if module in code.behind(BUILDING) else None,
    )


def _told(value: Any, told: dict[int, str]) -> Iterator[str]:
    """All that there is to say of an argument, as texts."""
    if isinstance(value, Design):
        yield repr((value.key, *(counterpart(form) for form in value.config.formats)))
    elif isinstance(value, Library):
        yield value.digest
    elif isinstance(value, Mapping) and "cells" in value:
        # A mapped module is nothing but JSON, and may be in many tasks.
        if id(value) not in told:
            told[id(value)] = hashlib.sha256(json.dumps(value).encode()).hexdigest()
        yield told[id(value)]
    elif isinstance(value, Mapping):
        yield f"object of {len(value)}"
        for key, each in value.items():
            yield repr(key)
            yield from _told(each, told)
    elif isinstance(value, (tuple, list)):
        yield f"list of {len(value)}"
        for each in value:
            yield from _told(each, told)
    elif isinstance(value, frozenset):
        yield repr(sorted(value))
    else:
        yield repr(value)


def _written(result: Any) -> dict[str, Any] | None:
    """A result as JSON has it; None for what is not kept."""
    if isinstance(result, Score):
        return {"score": asdict(result)}
    if not isinstance(result, Run):
        return None
    examined = result.examined
    plain = {name: value for name, value in vars(examined).items() if name not in ("energy", "placement", "checked")}
    return {
        "examined": {
            **plain,
            "energy": [
                {"formats": [form.name for form in formats], "scope": scope, "delays": delays, **vars(found)}
                for (formats, scope, delays), found in examined.energy.items()
            ],
            "checked": schema.to_json(examined.checked),
            "placement": schema.to_json(examined.placement),
        },
        "records": [
            {"purpose": purpose, "scope": scope, **vars(record)} for (purpose, scope), record in result.records.items()
        ],
        "changed": sorted(result.changed),
        "passed_over": None if result.passed_over is None else vars(result.passed_over),
        "alone_ns": result.alone_ns,
    }


def _read(entry: dict[str, Any], task: tuple[Any, ...]) -> Score | Run:
    """A result from its JSON; ``task`` is what it was built by."""
    if "score" in entry:
        return Score(**entry["score"])
    formats = {tuple(form.name for form in each): each for each in _formats(task)}
    found = dict(entry["examined"])
    found["energy"] = {
        (formats[tuple(each["formats"])], each["scope"], each["delays"]): Consumption(
            each["dynamic_fj"], each["leakage_nw"]
        )
        for each in found["energy"]
    }
    found["checked"] = schema.Checked(**found["checked"])
    if (placement := found["placement"]) is not None:
        lists = {name: tuple(placement[name]) for name in ("die_um", "blocks")}
        found["placement"] = schema.Placement(**{**placement, **lists})
    records = {}
    for each in entry["records"]:
        rest = {name: value for name, value in each.items() if name not in ("purpose", "scope")}
        records[each["purpose"], each["scope"]] = _closure(rest)
    changed = frozenset((purpose, scope) for purpose, scope in entry["changed"])
    passed_over = entry["passed_over"]
    passed_over = None if passed_over is None else _closure(passed_over)
    return Run(Examined(**found), records, changed, passed_over, entry["alone_ns"])


def _closure(content: dict[str, Any]) -> Closure:
    return Closure(**{**content, "missing": tuple(content["missing"])})


def _formats(value: Any, depth: int = 3) -> Iterator[Formats]:
    """Formats of the designs and of the operands in a task; mapped modules lie deeper than these."""
    if isinstance(value, Design):
        yield value.config.formats
    elif isinstance(value, tuple) and value and all(isinstance(each, BlockFormat) for each in value):
        yield value
    elif depth and isinstance(value, (Mapping, tuple, list)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _formats(each, depth - 1)

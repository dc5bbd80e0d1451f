"""Makes a stimulus that fails as small as it gets, and keeps it in a file."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig, from_dict
from hwgen.errors import InputError, ToolError
from hwgen.files import write_bytes
from hwgen.formats.unscaled import TYPE_BITS
from sim import npz
from sim.engines import Engine, Pattern, Patterns
from sim.random import code_type, scale_type
from sim.steps import Steps, check_depth
from sim.verify.stimulus import Stimulus

__all__ = ["MOST_RUNS", "VERSION", "About", "Mismatch", "check", "difference", "load", "save", "shrink"]

MOST_RUNS = 2000
"""Runs of the core that shrinking may take."""

_Format = Literal["hwgen-vectors 2", "hwgen-vectors 3"]
_FORMATS: dict[bool, _Format] = {False: "hwgen-vectors 2", True: "hwgen-vectors 3"}
"""Formats of a file, by whether its core has a slot."""

VERSION = 3
"""The last of them."""

_PATTERNS = tuple(Patterns.__annotations__)
_ARRAYS = ("a_codes", "a_scales", "b_codes", "b_scales", "c", "first", "last")
_MODES = ("half", "a_types", "b_types")
"""Arrays of a core with a slot."""


class About(TypedDict):
    """The text ``about`` of a file of vectors.

    Parameters
    ----------
    format
        Name and version of the file; 3 holds modes and types, too, of a core with a slot.
    configuration
        Of the core that the steps are for.
    origin
        Where the steps come from, for the reader.
    """

    format: _Format
    configuration: Annotated[dict[str, Any], TensorCoreConfig]
    origin: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Mismatch:
    """How a core fails.

    Parameters
    ----------
    step
        The step whose result is wrong; the number of steps where the core did not come to an end.
    reason
        What is wrong, in words.
    """

    step: int
    reason: str


def check(engine: Engine, stimulus: Stimulus) -> Mismatch | None:
    """Run a stimulus and compare every bit of every result; the first that differs, if one does."""
    steps = stimulus.steps
    expected = steps.expected()
    try:
        results = engine.run(steps, **stimulus.patterns).results
    except ToolError as error:
        return Mismatch(len(steps), str(error))
    return difference(steps, results, expected)


def difference(steps: Steps, results: NDArray[np.uint32], expected: NDArray[np.uint32]) -> Mismatch | None:
    """The first result that is not as expected."""
    wrong = np.argwhere(results != expected)
    if not len(wrong):
        return None
    index, m, n = (int(i) for i in wrong[0])
    step = int(np.flatnonzero(steps.last)[index])
    got, want = int(results[index, m, n]), int(expected[index, m, n])
    return Mismatch(step, f"step {step}, D[{m}, {n}] is 0x{got:08x}, the golden model says 0x{want:08x}")


def shrink(engine: Engine, stimulus: Stimulus, progress: Callable[[int], None] = lambda runs: None) -> Stimulus:
    """Leave out what the failure does not need: steps, gaps, stalls, results, half rate, codes, scales, C.

    Greedy, by halves: what remains still fails, and usually nothing more can be left out.

    Parameters
    ----------
    engine
        The core that fails.
    stimulus
        What it fails on.
    progress
        Called with the number of runs so far.

    Raises
    ------
    ValueError
        It does not fail.
    """
    found = check(engine, stimulus)
    if found is None:
        raise ValueError("the core computes what it should")
    runs = 0

    def fails(trial: Stimulus) -> bool:
        nonlocal runs
        if runs >= MOST_RUNS or not len(trial.steps):
            return False
        runs += 1
        progress(runs)
        try:
            return check(engine, trial) is not None
        except InputError:  # a tile deeper than an exact core is made for
            return False

    def attempt(trial: Stimulus) -> None:
        nonlocal stimulus
        if fails(trial):
            stimulus = trial

    # First what saves the most: everything behind the failure, and before its tile.
    config = engine.config
    attempt(_with(stimulus, _chosen(stimulus.steps, slice(0, found.step + 1))))
    begins = np.flatnonzero(stimulus.steps.first)
    for begin in begins[::-1][: 2 * config.interleave]:
        before = len(stimulus.steps)
        attempt(_with(stimulus, _chosen(stimulus.steps, slice(int(begin), None))))
        if len(stimulus.steps) < before:
            break
    for side in _PATTERNS:
        attempt(_paused(stimulus, side, Pattern(np.ones(1, np.bool_))))

    def without_steps(kept: NDArray[np.bool_], whole: Stimulus) -> Stimulus:
        return _with(whole, _chosen(whole.steps, np.flatnonzero(kept)))

    stimulus = _reduced(stimulus, len(stimulus.steps), without_steps, fails)
    for side in _PATTERNS:
        length = len(getattr(stimulus, side).bits)
        if length > 1:
            # As long as the run could ever be is long enough; behind that no pause matters.
            cycles = min(length, 64 * (len(stimulus.steps) + 1))
            cut = Pattern(getattr(stimulus, side).bits[:cycles])
            attempt(_paused(stimulus, side, cut))
            pauses = np.flatnonzero(~getattr(stimulus, side).bits)

            def without_pauses(
                kept: NDArray[np.bool_], whole: Stimulus, side: str = side, pauses: NDArray[np.intp] = pauses
            ) -> Stimulus:
                bits = np.ones(len(getattr(whole, side).bits), np.bool_)
                bits[pauses[kept]] = False
                return _paused(whole, side, Pattern(bits))

            stimulus = _reduced(stimulus, len(pauses), without_pauses, fails)
    for name in ("last", *_MODES, "a_codes", "b_codes", "c", "a_scales", "b_scales"):
        cells = np.flatnonzero(getattr(stimulus.steps, name))

        def without_cells(
            kept: NDArray[np.bool_], whole: Stimulus, name: str = name, cells: NDArray[np.intp] = cells
        ) -> Stimulus:
            array = getattr(whole.steps, name).copy()
            array.flat[cells[~kept]] = 0
            return _with(whole, _mended(dataclasses.replace(whole.steps, **{name: array})))

        stimulus = _reduced(stimulus, len(cells), without_cells, fails)
    return stimulus


def _reduced(
    whole: Stimulus,
    count: int,
    without: Callable[[NDArray[np.bool_], Stimulus], Stimulus],
    fails: Callable[[Stimulus], bool],
) -> Stimulus:
    """Leave parts out, larger and smaller ones, as long as what is left fails."""
    kept, size, best = np.ones(count, np.bool_), count, whole
    while size:
        changed = False
        for start in range(0, count, size):
            trial = kept.copy()
            trial[start : start + size] = False
            if (trial != kept).any() and fails(candidate := without(trial, whole)):
                kept, best, changed = trial, candidate, True
        size = size // 2 if size > 1 else int(changed)
    return best


def _paused(stimulus: Stimulus, side: str, pattern: Pattern) -> Stimulus:
    changed: dict[str, Any] = {side: pattern}
    return dataclasses.replace(stimulus, **changed)


def _with(stimulus: Stimulus, steps: Steps) -> Stimulus:
    return dataclasses.replace(stimulus, steps=steps)


def _chosen(steps: Steps, index: Any) -> Steps:
    return _mended(steps[index])


def _mended(steps: Steps) -> Steps:
    """The same steps with the flags that a run must have."""
    first, last = steps.first.copy(), steps.last.copy()
    first[: steps.config.interleave] = last[-1:] = True
    return dataclasses.replace(steps, first=first, last=last)


def _names(config: TensorCoreConfig) -> tuple[str, ...]:
    """Arrays that say what steps are."""
    return (*_ARRAYS, *(_MODES if config.slotted else ()))


def save(path: Path, stimulus: Stimulus, origin: dict[str, Any]) -> None:
    """Write a stimulus as an uncompressed .npz file, whole or not at all.

    It holds the fields of `sim.steps.Steps`, those of modes only where the core has a slot; ``offer``, ``supply`` and
    ``take``, one bool a cycle and over and over; ``expected``, what the golden model says; and, as JSON, ``about``: the
    configuration and the origin.

    Parameters
    ----------
    path
        The file.
    stimulus
        What to keep.
    origin
        Where it comes from, for the reader; must be JSON.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    steps = stimulus.steps
    form = _FORMATS[steps.config.slotted]
    about: About = {"format": form, "configuration": steps.config.as_dict(), "origin": origin}
    arrays = {name: getattr(steps, name) for name in _names(steps.config)}
    arrays |= {name: getattr(stimulus, name).bits for name in _PATTERNS}
    arrays["expected"] = steps.expected()
    content = io.BytesIO()
    np.savez(content, about=np.array(json.dumps(about)), **arrays)
    write_bytes(path, content.getvalue())


def load(path: Path) -> Stimulus:
    """Read what `save` wrote; nothing in the file is executed.

    Raises
    ------
    InputError
        No such file, not written by `save`, or not a stimulus that a core can be fed with.
    """
    try:
        held = npz.arrays(Path(path))
        if "about" not in held:
            raise ValueError("array 'about' is missing")
        about = json.loads(str(held["about"]))
        if not isinstance(about, dict):
            raise ValueError(f"'about' is {about!r}; must be an object")
        if about.get("format") not in _FORMATS.values():
            known = " and ".join(map(repr, _FORMATS.values()))
            raise ValueError(f"format {about.get('format')!r}; this hwgen reads {known}")
        settings = about.get("configuration")
        if not isinstance(settings, dict):
            raise ValueError(f"'configuration' is {settings!r}; must be an object")
        config = from_dict(settings)
        names = (*_PATTERNS, *_names(config))
        if missing := [name for name in names if name not in held]:
            raise ValueError(f"array {missing[0]!r} is missing")
        found = {name: held[name] for name in names}
    except OSError as error:
        raise InputError(f"vectors {str(path)!r}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"vectors {str(path)!r}: not what 'hwgen verify' writes: {' '.join(str(error).split())}"
        ) from None
    _check(path, config, found)
    patterns = {name: Pattern(found.pop(name)) for name in _PATTERNS}
    return Stimulus(Steps(config, **found), **patterns)


def _check(path: Path, config: TensorCoreConfig, arrays: dict[str, NDArray[Any]]) -> None:
    """Check types, shapes and values of what a file holds."""
    count = arrays["first"].shape[:1]
    shapes = {
        "first": count,
        "a_codes": (*count, config.rows, config.depth),
        "a_scales": (*count, config.rows, config.groups),
        "b_codes": (*count, config.columns, config.depth),
        "b_scales": (*count, config.columns, config.groups),
        "c": (*count, config.rows, config.columns),
        "last": count,
        **(dict.fromkeys(_MODES, count) if config.slotted else {}),
        **{name: arrays[name].shape[:1] for name in _PATTERNS},
    }
    types: dict[str, np.dtype[Any]] = dict.fromkeys(shapes, np.dtype(np.uint8)) | {"c": np.dtype(np.uint32)}
    types |= dict.fromkeys(shapes.keys() & {"first", "last", "half", *_PATTERNS}, np.dtype(np.bool_))
    types |= {f"{side}_codes": code_type(config.form(side)) for side in "ab"}
    types |= {f"{side}_scales": scale_type(config.form(side)) for side in "ab"}
    for name, shape in shapes.items():
        array = arrays[name]
        if 0 in array.shape:
            raise InputError(f"vectors {str(path)!r}: {name} is empty, {array.shape}; there must be steps")
        if array.dtype != types[name] or array.shape != shape or not shape:
            kind = types[name].name
            raise InputError(
                f"vectors {str(path)!r}: {name} is {array.dtype} {array.shape}; must be {kind} {shape or '(count,)'}"
            )
    widths = {"a_codes": config.a.code_width, "b_codes": config.b.code_width}
    widths |= dict.fromkeys(("a_types", "b_types"), TYPE_BITS) if config.slotted else {}
    for name, width in widths.items():
        last = (1 << width) - 1
        if arrays[name].max() > last:
            raise InputError(f"vectors {str(path)!r}: {name} holds {arrays[name].max()}; codes are 0 to {last}")
    if not arrays["last"].any():
        raise InputError(f"vectors {str(path)!r}: last is never set; there would be no result to compare")
    for name in _PATTERNS:
        if not arrays[name].any():
            raise InputError(f"vectors {str(path)!r}: {name} is never true; no step would come through")
    if not arrays["first"][: config.interleave].all():
        raise InputError(f"vectors {str(path)!r}: first must be set in the first {config.interleave} steps")
    index = np.arange(*count)
    begins = np.maximum.accumulate(np.where(arrays["first"], index, 0))
    try:
        check_depth(config, int((index + 1 - begins).max()) * config.depth)
    except InputError as error:
        raise InputError(f"vectors {str(path)!r}: {error}") from None

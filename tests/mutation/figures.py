"""Plant mutants into the code that computes figures, and see whether the tests beside it notice.

Cosmic Ray (https://cosmic-ray.readthedocs.io) finds the places, changes the source and runs the tests; this picks a
sample and reports. mutmut was looked at, too: it leaves decorated functions alone, and with them every compiled kernel,
and constants of modules.

A mutant is in the sample by a hash of what it changes and the seed, so that an edit of one function does not change the
sample of the others. Annotations are left out: nothing evaluates them. A mutant that no test can notice is named with
its reason in ``equivalent.toml``.

The tests of each file are those beside it, on the default libraries; the slowest are left out (`SUITES`).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from threading import Lock
from typing import Any, get_args

from hwgen.report.mutants import Mutant, Outcome

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
NOTES = Path(__file__).with_name("equivalent.toml")
REPORT = ROOT / "reports" / "mutation-figures.json"
COUNT = 300
SEED = 15
_AT_ONCE = 8
_POWER, _TIMING, _COST, _CELLS = (f"tests/hwgen/{room}" for room in ("power", "timing", "cost", "cells"))
_REAL = "not sky130hd and not sg13g2 and not asap7 and not generic130 and not opensta and not icarus"

SUITES: dict[str, Sequence[str]] = {
    "hwgen/cells/boolean.py": (f"{_CELLS}/test_liberty.py", f"{_POWER}/test_activity.py"),
    "hwgen/cells/cell.py": (
        f"{_CELLS}/test_reader.py",
        f"{_CELLS}/test_liberty.py",
        f"{_POWER}/test_estimate.py",
        f"{_POWER}/test_activity.py",
    ),
    "hwgen/cells/families.py": (f"{_CELLS}/test_families.py",),
    "hwgen/cells/library.py": (f"{_CELLS}/test_liberty.py", f"{_TIMING}/test_analysis.py"),
    "hwgen/cells/limits.py": (f"{_CELLS}/test_limits.py",),
    "hwgen/cells/reader.py": (f"{_CELLS}/test_reader.py", f"{_CELLS}/test_liberty.py"),
    "hwgen/cells/tables.py": (f"{_CELLS}/test_tables.py", f"{_CELLS}/test_liberty.py"),
    "hwgen/cost/components.py": (f"{_COST}/test_components.py",),
    "hwgen/cost/export.py": (f"{_COST}/test_export.py",),
    "hwgen/cost/gemms.py": (f"{_COST}/test_gemms.py", f"{_COST}/test_workloads.py", f"{_COST}/test_schedule.py"),
    "hwgen/cost/grid.py": (f"{_COST}/test_grid.py", f"{_COST}/test_results.py", f"{_COST}/test_model.py"),
    "hwgen/cost/machines.py": (f"{_COST}/test_machines.py",),
    "hwgen/cost/masked.py": (f"{_COST}/test_masked.py",),
    "hwgen/cost/model.py": (f"{_COST}/test_model.py",),
    "hwgen/cost/quantisers.py": (f"{_COST}/test_quantisers.py",),
    "hwgen/cost/results.py": (f"{_COST}/test_results.py",),
    "hwgen/cost/schedule.py": (f"{_COST}/test_schedule.py", f"{_COST}/test_exact.py"),
    "hwgen/cost/stored.py": (f"{_COST}/test_stored.py", f"{_COST}/test_schedule.py"),
    "hwgen/cost/stream.py": (f"{_COST}/test_schedule.py", f"{_COST}/test_grid.py", f"{_COST}/test_exact.py"),
    "hwgen/cost/workloads.py": (f"{_COST}/test_workloads.py",),
    "hwgen/power/activity.py": (f"{_POWER}/test_activity.py",),
    "hwgen/power/carried.py": (f"{_POWER}/test_carried.py",),
    "hwgen/power/clock_tree.py": (f"{_POWER}/test_clock_tree.py",),
    "hwgen/power/consumption.py": (f"{_POWER}/test_consumption.py",),
    "hwgen/power/estimate.py": (f"{_POWER}/test_estimate.py", f"{_POWER}/test_consumption.py"),
    "hwgen/power/export.py": (f"{_POWER}/test_export.py",),
    "hwgen/power/glitch.py": (f"{_POWER}/test_ways.py", f"{_POWER}/test_glitch.py"),
    "hwgen/power/logic.py": (f"{_POWER}/test_logic.py", f"{_POWER}/test_activity.py"),
    "hwgen/power/opensta_script.py": (f"{_POWER}/test_opensta_script.py",),
    "hwgen/power/transitions.py": (f"{_POWER}/test_transitions.py", f"{_POWER}/test_glitch.py"),
    "hwgen/power/ways.py": (f"{_POWER}/test_ways.py", f"{_POWER}/test_glitch.py"),
    "hwgen/stats.py": ("tests/hwgen/test_stats.py",),
    "hwgen/timing/analysis.py": (f"{_TIMING}/test_following.py", f"{_TIMING}/test_analysis.py"),
    "hwgen/timing/arcs.py": (
        f"{_TIMING}/test_following.py",
        f"{_TIMING}/test_arcs.py",
        f"{_TIMING}/test_analysis.py",
        f"{_POWER}/test_glitch.py",
    ),
    "hwgen/timing/compiled.py": (f"{_TIMING}/test_compiled.py",),
    "hwgen/timing/export.py": (f"{_TIMING}/test_export.py",),
    "hwgen/timing/folded.py": (f"{_TIMING}/test_following.py", f"{_TIMING}/test_compiled.py"),
    "hwgen/timing/inner.py": (f"{_TIMING}/test_inner.py", f"{_TIMING}/test_following.py"),
    "hwgen/timing/kernels.py": (f"{_TIMING}/test_following.py", f"{_TIMING}/test_compiled.py"),
    "hwgen/timing/kinds.py": (f"{_TIMING}/test_following.py", f"{_TIMING}/test_compiled.py"),
    "hwgen/timing/loads.py": (f"{_TIMING}/test_loads.py", f"{_TIMING}/test_analysis.py"),
    "hwgen/timing/paths.py": (f"{_TIMING}/test_analysis.py",),
    "hwgen/timing/wires.py": (f"{_TIMING}/test_wires.py", f"{_TIMING}/test_loads.py"),
    "hwgen/measure/quantisers/table.py": ("tests/hwgen/measure/quantisers/test_table.py",),
    "sim/golden/quantize.py": ("tests/sim/golden/test_quantize.py", "tests/sim/golden/test_tensors_of_others.py"),
}
"""The files that compute figures, and the tests that are run on their mutants, quick ones first."""

SLOW = ("test_any_shape_with_gaps", "test_operands_scheduled_for_the_simulator")
"""Tests that take longer than all others together."""


@dataclass(frozen=True)
class Note:
    """A mutant that changes no figure: every field but the reason as in `Mutant`."""

    file: str
    function: str
    before: str
    after: str
    reason: str


def notes(path: Path = NOTES) -> list[Note]:
    """The mutants known to be equivalent."""
    return [Note(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])]


def annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Begin and end (line, column) of every annotation."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) or (isinstance(node, ast.arg) and node.annotation is not None):
            found += [node.annotation] if node.annotation is not None else []
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            found.append(node.returns)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found]


def key(seed: int, mutation: Any, line: str) -> str:
    """Where a mutant stands among all: pseudo-random, and the same while its line and function are."""
    parts = (
        str(mutation.module_path),
        mutation.definition_name or "",
        line,
        str(mutation.start_pos[1]),
        mutation.operator_name,
        json.dumps(mutation.operator_args, sort_keys=True),
    )
    return hashlib.sha256("\0".join([str(seed), *parts]).encode()).hexdigest()


def sampled(items: Iterable[Any], count: int, seed: int) -> tuple[dict[str, list[Any]], int]:
    """Mutants by file, and how many there are to choose from."""
    ranked = []
    texts: dict[str, tuple[list[str], list[Any]]] = {}
    for item in items:
        (mutation,) = item.mutations
        name = str(mutation.module_path)
        if name not in texts:
            source = (ROOT / name).read_text(encoding="utf-8")
            texts[name] = source.splitlines(), annotations(source)
        lines, without = texts[name]
        at = mutation.start_pos
        if not any(first <= at < last for first, last in without):
            ranked.append((key(seed, mutation, lines[at[0] - 1].strip()), mutation.occurrence, item))
    ranked.sort(key=lambda entry: entry[:2])
    chosen: dict[str, list[Any]] = {}
    for _, _, item in ranked[:count]:
        chosen.setdefault(str(item.mutations[0].module_path), []).append(item)
    return chosen, len(ranked)


def command(file: str) -> list[str]:
    """The tests of a file."""
    options = ["--all-cases", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    wanted = " and ".join([_REAL, *(f"not {name}" for name in SLOW)])
    return [sys.executable, "-m", "pytest", *options, "-k", wanted, *SUITES[file]]


def limited(words: Sequence[str], limit: float) -> str:
    """A command that ends after so many seconds of CPU, however busy the machine is."""
    return shlex.join(["sh", "-c", f"ulimit -t {limit:.0f}; exec {shlex.join(words)}"])


def seconds(file: str, place: Path) -> float:
    """CPU time of a file's tests, which pass without mutants."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        tests = subprocess.Popen(command(file), cwd=place, env=environment(place), stdout=output, stderr=output)
        _, status, used = os.wait4(tests.pid, 0)
        tests.returncode = os.waitstatus_to_exitcode(status)
        if tests.returncode:
            output.seek(0)
            raise SystemExit(f"{file}: its tests fail without any mutant:\n{output.read()[-2000:]}")
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def copies(count: int) -> Iterator[Queue[Path]]:
    """Copies of the repository's sources, each for one mutant at a time; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="hwgen-mutants-") as name:
        free: Queue[Path] = Queue()
        for number in range(count):
            place = Path(name) / str(number)
            for part in ("hwgen", "sim", "tests"):
                ignored = shutil.ignore_patterns("*.pyc", ".hypothesis")  # compiled kernels may stay
                shutil.copytree(ROOT / part, place / part, ignore=ignored)
            shutil.copy(ROOT / "pyproject.toml", place)
            # A file that a mutant was in a moment ago looks unchanged by its time: only its content tells.
            subprocess.run(
                [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(place)],
                check=True,
            )
            free.put(place)
        yield free


def environment(place: Path) -> dict[str, str]:
    """For the tests in a copy."""
    return {
        **os.environ,
        "PYTHONPATH": str(place),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HWGEN_MAPPED": str(place.parent),
        "NUMBA_OPT": "1",  # kernels of mutants are compiled anew each time
    }


class Kept:
    """Mutants that were killed before, for runs after tests were added: a file of JSON, or nothing without one.

    A mutant is known by the content of its file, so that nothing is kept of a file that has changed.
    """

    def __init__(self, path: Path | None, files: Iterable[str]) -> None:
        self._path = path
        self._lock = Lock()
        self._contents = {file: hashlib.sha256((ROOT / file).read_bytes()).hexdigest() for file in files}
        self._killed: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            self._killed = json.loads(path.read_text(encoding="utf-8"))

    def _identity(self, item: Any) -> str:
        (mutation,) = item.mutations
        content = self._contents[str(mutation.module_path)]
        return json.dumps([content, mutation.operator_name, mutation.operator_args, mutation.occurrence])

    def find(self, item: Any) -> Mutant | None:
        """A mutant that was killed."""
        known = self._killed.get(self._identity(item))
        return None if known is None else Mutant(**known)

    def add(self, found: Iterable[tuple[Any, Mutant]]) -> None:
        """Remember those that were killed."""
        if self._path is None:
            return
        with self._lock:
            for item, mutant in found:
                if mutant.outcome in ("killed", "stopped"):
                    self._killed[self._identity(item)] = asdict(mutant)
            self._path.write_text(json.dumps(self._killed), encoding="utf-8")


class Limits:
    """Seconds of CPU that the tests of a file may take, found once."""

    def __init__(self) -> None:
        self._locks = {file: Lock() for file in SUITES}
        self._found: dict[str, float] = {}

    def find(self, file: str, place: Path) -> float:
        """Twice what they take without a mutant, and 10 s."""
        with self._locks[file]:
            if file not in self._found:
                self._found[file] = 10 + 2 * seconds(file, place)
            return self._found[file]


def executed(items: Sequence[Any], place: Path, limit: float, known: Sequence[Note]) -> list[tuple[Any, Mutant]]:
    """What became of some mutants of one file."""
    from cosmic_ray.work_db import use_db

    file = str(items[0].mutations[0].module_path)
    session = place / "session.sqlite"
    session.unlink(missing_ok=True)
    with use_db(session) as database:
        database.add_work_items(items)
    (place / "cosmic-ray.toml").write_text(
        "[cosmic-ray]\n"
        # Of the wall's clock, too, since a process may wait for ever.
        f"module-path = {json.dumps(file)}\ntimeout = {20 * limit:.0f}\nexcluded-modules = []\n"
        f"test-command = {json.dumps(limited(command(file), limit))}\n"
        '[cosmic-ray.distributor]\nname = "local"\n'
    )
    tool = [sys.executable, "-m", "cosmic_ray.cli", "exec", "cosmic-ray.toml", session.name]
    subprocess.run(tool, cwd=place, env=environment(place), check=True)
    with use_db(session) as database:
        return [(item, judged(item, result, known)) for item, result in database.completed_work_items]


def changed(diff: str) -> tuple[str, str]:
    """The lines that a mutant takes away, and those that it puts there."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    return tuple(  # type: ignore[return-value]
        "\n".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )


def judged(item: Any, result: Any, known: Sequence[Note]) -> Mutant:
    """What became of a mutant."""
    (mutation,) = item.mutations
    before, after = changed(result.diff or "")
    name = mutation.operator_name.removeprefix("core/")
    arguments = ", ".join(f"{key}={value}" for key, value in sorted(mutation.operator_args.items()))
    outcome: Outcome = "killed" if result.is_killed else "survived"
    if result.is_killed and not re.search(r"\b(failed|error)", result.output or ""):
        outcome = "stopped"  # pytest has not come to its summary
    file, function = str(mutation.module_path), mutation.definition_name or ""
    reason = ""
    for note in known:
        same = (note.file, note.function, note.before, note.after) == (file, function, before, after)
        if same and outcome == "survived":
            outcome, reason = "equivalent", note.reason
    operator = f"{name}({arguments})" if arguments else name
    return Mutant(file, mutation.start_pos[0], function, operator, before, after, outcome, reason)


def document(mutants: Sequence[Mutant], available: int, seed: int) -> dict[str, Any]:
    """The report, ready for JSON."""
    outcomes = get_args(Outcome)
    files = sorted({mutant.file for mutant in mutants})
    return {
        "kind": "mutation-figures",
        "conditions": {"seed": seed, "mutants": len(mutants), "mutants_to_choose_from": available},
        "outcomes": {name: sum(mutant.outcome == name for mutant in mutants) for name in outcomes},
        "by_file": {
            file: {name: sum((m.file, m.outcome) == (file, name) for m in mutants) for name in outcomes}
            for file in files
        },
        "not_killed": [asdict(m) for m in mutants if m.outcome in ("equivalent", "survived")],
    }


def markdown(report: Mapping[str, Any]) -> str:
    """The report for readers."""
    total = report["outcomes"]
    conditions = report["conditions"]
    lines = [
        "# Mutants in the code that computes figures",
        "",
        f"{conditions['mutants']} mutants, sampled with seed {conditions['seed']} of"
        f" {conditions['mutants_to_choose_from']:,}. Killed by the tests beside the file: {total['killed']};"
        f" stopped by a crash or the limit of time: {total['stopped']}. Equivalent: {total['equivalent']}."
        f" Survived: {total['survived']}.",
        "",
        "Made by `make mutate-figures`. Cosmic Ray plants the mutants; the reasons are in"
        " `tests/mutation/equivalent.toml`.",
        "",
        "| file | killed | stopped | equivalent | survived |",
        "| --- | --: | --: | --: | --: |",
    ]
    lines += [
        f"| {file} | {counts['killed']} | {counts['stopped']} | {counts['equivalent']} | {counts['survived']} |"
        for file, counts in report["by_file"].items()
    ]
    for outcome, title in (("survived", "Survived"), ("equivalent", "Equivalent")):
        chosen = [mutant for mutant in report["not_killed"] if mutant["outcome"] == outcome]
        if chosen:
            lines += ["", f"## {title}"]
        for mutant in chosen:
            lines += ["", f"`{mutant['file']}`, line {mutant['line']}, `{mutant['function']}`"]
            lines += [f"({mutant['operator']}): {mutant['reason']}" if mutant["reason"] else f"({mutant['operator']})"]
            lines += ["", "```diff", *(f"- {line}" for line in mutant["before"].splitlines())]
            lines += [*(f"+ {line}" for line in mutant["after"].splitlines()), "```"]
    return "\n".join(lines) + "\n"


def run(files: Sequence[str], count: int, seed: int, workers: int, resume: Path | None) -> dict[str, Any]:
    """Plant and report."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import use_db

    os.chdir(ROOT)
    kept, known, limits = Kept(resume, files), notes(), Limits()
    with tempfile.TemporaryDirectory() as place, use_db(Path(place) / "all.sqlite") as database:
        init([Path(file) for file in files], database, {})
        chosen, available = sampled(database.work_items, count, seed)
    mutants = [mutant for items in chosen.values() for mutant in map(kept.find, items) if mutant is not None]
    parts = []
    for items in chosen.values():
        fresh = [item for item in items if kept.find(item) is None]
        parts += [fresh[first : first + _AT_ONCE] for first in range(0, len(fresh), _AT_ONCE)]
    with copies(workers) as free, ThreadPoolExecutor(workers) as pool:

        def part(items: Sequence[Any]) -> list[Mutant]:
            file = str(items[0].mutations[0].module_path)
            place = free.get()
            try:
                found = executed(items, place, limits.find(file, place), known)
            finally:
                free.put(place)
            kept.add(found)
            lost = sum(mutant.outcome == "survived" for _, mutant in found)
            print(f"{file}: {len(found)} mutants, {lost} survived", file=sys.stderr, flush=True)
            return [mutant for _, mutant in found]

        mutants += [mutant for some in pool.map(part, parts) for mutant in some]
    return document(sorted(mutants, key=lambda m: (m.file, m.line, m.operator, m.after)), available, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", help="mutate these alone, and write no report")
    parser.add_argument("--count", type=int, default=COUNT, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    parser.add_argument("--workers", type=int, default=2, help="processes at once (default: %(default)s)")
    parser.add_argument(
        "--resume", type=Path, help="keep killed mutants in this file; plant only what it does not hold"
    )
    arguments = parser.parse_args()
    unknown = [file for file in arguments.files if file not in SUITES]
    if unknown:
        parser.error(f"{unknown[0]} has no tests here; expected one of {', '.join(SUITES)}")
    report = run(arguments.files or list(SUITES), arguments.count, arguments.seed, arguments.workers, arguments.resume)
    text = json.dumps(report, indent=2) + "\n"
    if arguments.files:
        print(markdown(report))
    else:
        REPORT.write_text(text, encoding="utf-8")
        REPORT.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
        print(f"{REPORT}: {report['outcomes']}")
    return 1 if report["outcomes"]["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())

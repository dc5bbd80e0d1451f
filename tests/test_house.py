"""The house: which room may know which, and what may stand in it. Lists of exceptions may only shrink."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("hwgen", "sim")

FLOORS = (
    {"hwgen.errors", "hwgen.jit", "sim.golden", "sim.npz"},
    {"hwgen.files", "hwgen.formats", "hwgen.stats", "sim.archive", "sim.tensors"},
    {"hwgen.cells", "hwgen.config", "sim.accuracy", "sim.operands", "sim.unscaled"},
    {"hwgen.cost", "hwgen.netlist", "hwgen.rtl", "sim.counterpart"},
    {"hwgen.mapping", "hwgen.timing", "hwgen.verilog", "sim.steps"},
    {"hwgen.layout", "hwgen.power", "sim.engines", "sim.random"},
    {"hwgen.closure", "sim.gemm", "sim.verify"},
    {"hwgen.report", "sim.mutate", "sim.projection"},
    {"hwgen.measure", "hwgen.package"},
    {"hwgen.site"},
    {"hwgen.cli"},
)
"""Rooms from the ground up: each may import those on lower floors, none on its own or above."""

INNER = (
    {"hwgen.measure.netlists"},
    {"hwgen.measure.search", "hwgen.measure.workloads"},
    {"hwgen.measure.explore", "hwgen.measure.formats", "hwgen.measure.quantisers"},
)
"""Rooms within a room, likewise."""

GROUND = {f"hwgen.{room}" for room in ("config", "errors", "files", "formats", "jit", "rtl", "verilog")}
"""What `sim` may import of hwgen; it imports nothing of `sim`."""

ABOVE_SIM = {"hwgen.measure", "hwgen.package", "hwgen.cli"}
"""What of hwgen may import `sim`."""

UPWARD: dict[tuple[str, str], str] = {}
"""Imports that do not go down the floors, with the reason."""

OFF_GROUND = {
    ("sim.mutate", "hwgen.cost"): "the cycle model is the oracle of mutants that only take more cycles",
}
"""What `sim` imports beside the ground, with the reason."""

LONG = {
    "hwgen.cells.boolean.parse_expression",
    "hwgen.cells.libraries.generate._header",
    "hwgen.netlist.link._compile",
    "hwgen.netlist.link.link",
    "hwgen.power.logic.compile_netlist",
    "hwgen.report.markdown.explore.markdown",
    "hwgen.rtl.accumulate.round_sum.elaborate",
    "hwgen.rtl.element.elaborate",
    "sim.verify.goals.goals",
    "sim.verify.reproducer.shrink",
}
"""Functions of more than 60 lines, docstrings not counted."""

ELSEWHERE = {
    "hwgen.__main__": "robustness/test_kill.py",
    "hwgen.build_hook": "test_distribution.py",
    "hwgen.cells": "hwgen/cells/test_liberty.py",
    "hwgen.cli": "hwgen/test_cli.py",
    "hwgen.closure.greedy": "hwgen/closure/test_sizing.py",
    "hwgen.closure.relaxation": "hwgen/closure/test_sizing.py",
    "hwgen.config": "hwgen/test_config.py",
    "hwgen.cost.stream": "hwgen/cost/test_schedule.py",
    "hwgen.errors": "hwgen/test_cli.py",
    "hwgen.formats": "hwgen/formats/test_records.py",
    "hwgen.layout.coloquinte_process": "hwgen/layout/test_coloquinte.py",
    "hwgen.mapping.area": "hwgen/measure/test_overhead.py",
    "hwgen.measure": "hwgen/measure/test_overhead.py",
    "hwgen.netlist.link": "hwgen/netlist/test_graph.py",
    "hwgen.package": "hwgen/package/test_contents.py",
    "hwgen.report": "test_reports.py",
    "hwgen.rtl": "hwgen/rtl/test_tensor_core.py",
    "hwgen.rtl.arithmetic.shifters": "hwgen/rtl/test_arithmetic_proof.py",
    "hwgen.rtl.control": "hwgen/rtl/test_stream_proof.py",
    "hwgen.timing": "hwgen/timing/test_analysis.py",
    "hwgen.timing.folded": "hwgen/timing/test_compiled.py",
    "hwgen.timing.kernels": "hwgen/timing/test_compiled.py",
    "hwgen.timing.kinds": "hwgen/timing/test_compiled.py",
    "hwgen.verilog": "hwgen/test_verilog.py",
    "sim.accuracy.sentences": "sim/accuracy/test_trained.py",
    "sim.engines": "sim/engines/test_streams.py",
    "sim.golden": "sim/golden/test_formats.py",
    "sim.mutate": "sim/mutate/test_mutants.py",
    "sim.verify.kernels": "sim/verify/test_counting.py",
}
"""Rooms and modules whose modules need no test file each, and a file that tests them together."""


def modules() -> dict[str, Path]:
    """Python files of both packages by module name; ``hwgen`` itself, the public face, is in no room."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
FACES = {"hwgen", "hwgen.__main__", "hwgen.build_hook", "sim"}


def room(module: str) -> str:
    """The room of a module: two levels of its name."""
    return ".".join(module.split(".")[:2])


def imports(module: str) -> Iterator[str]:
    """Modules of ours that a module imports, wherever in its text."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] in PACKAGES and name not in FACES)


def arrows() -> set[tuple[str, str]]:
    """Which room imports which."""
    return {
        (room(module), room(name))
        for module in MODULES
        if module not in FACES
        for name in imports(module)
        if room(name) != room(module)
    }


def test_every_room_has_a_floor() -> None:
    rooms = {room(module) for module in MODULES if module not in FACES}
    assert rooms == set().union(*FLOORS)
    assert sum(map(len, FLOORS)) == len(rooms)


def test_imports_go_down_the_floors() -> None:
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    assert {arrow for arrow in arrows() if floor[arrow[1]] >= floor[arrow[0]]} == set(UPWARD)


def test_imports_go_down_within_a_room() -> None:
    floor = {name: number for number, names in enumerate(INNER) for name in names}
    inner = {name for name, path in MODULES.items() if name.startswith("hwgen.measure.") and path.stem == "__init__"}
    assert inner == set(floor)
    place = {module: name for name in floor for module in MODULES if module.startswith(f"{name}.")}
    pairs = {(place[module], place[name]) for module in place for name in imports(module) if name in place}
    assert all(below == above or floor[below] < floor[above] for above, below in pairs)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Neither do they for their annotations alone."""
    order = graphlib.TopologicalSorter({module: set(imports(module)) - {module} for module in MODULES})
    assert set(order.static_order()) == set(MODULES)


def test_hwgen_and_sim_are_a_ladder() -> None:
    up = {arrow for arrow in arrows() if arrow[0].startswith("hwgen.") and arrow[1].startswith("sim")}
    assert {who for who, _ in up} <= ABOVE_SIM
    down = {arrow for arrow in arrows() if arrow[0].startswith("sim.") and arrow[1].startswith("hwgen")}
    assert {arrow for arrow in down if arrow[1] not in GROUND} == set(OFF_GROUND)
    assert not {arrow for arrow in arrows() if arrow[0] == "sim.golden"}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(ast.parse(MODULES[module].read_text(encoding="utf-8")))


def test_functions_are_short() -> None:
    long = set()
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                words = ast.get_docstring(node, clean=False)
                lines = (node.end_lineno or 0) - node.lineno + 1 - (len(words.splitlines()) if words else 0)
                if lines > 60:
                    long.add(f"{module}.{node.name}")
    assert long == LONG


def has_own_tests(module: str) -> bool:
    """Whether a module has a test file where its package has its own; one that hands names on needs none."""
    path = MODULES[module]
    name = path.relative_to(ROOT).with_suffix("")
    if name.name != "__init__":
        return (ROOT / "tests" / name.parent / f"test_{name.name}.py").is_file()
    short = len(path.read_text(encoding="utf-8").splitlines()) < 60
    return short or (ROOT / "tests" / name.parent.parent / f"test_{name.parent.name}.py").is_file()


def test_every_module_is_tested() -> None:
    needed = set()
    for module in MODULES:
        if not has_own_tests(module):
            parts = module.split(".")
            names = (".".join(parts[:length]) for length in range(len(parts), 1, -1))
            place = next((name for name in names if name in ELSEWHERE), None)
            assert place is not None, f"{module}: no test file"
            needed.add(place)
    assert needed == set(ELSEWHERE)
    for tests in ELSEWHERE.values():
        assert (ROOT / "tests" / tests).is_file(), tests

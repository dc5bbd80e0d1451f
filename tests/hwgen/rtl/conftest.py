"""Blocks without a loop in Amaranth's simulator, and proofs by ABC."""

import subprocess
import sys
from pathlib import Path

import pyosys
import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.sim import Simulator


def _evaluate(block, stimuli):
    """Values of every output of ``block``, as a dict, for each dict of inputs; layouts as integers.

    A block with registers takes new inputs in every cycle.
    """
    ports = {name: Value.cast(getattr(block, name)) for name in block.signature.members}
    outputs = [name for name, member in block.signature.members.items() if member.flow.name == "Out"]
    results = []

    async def testbench(ctx):
        for inputs in [*stimuli, *([{}] * block.latency)]:
            for name, value in inputs.items():
                ctx.set(ports[name], value)
            results.append({name: ctx.get(ports[name]) for name in outputs})
            if block.latency:
                await ctx.tick()

    # A block of wires alone is no process to the simulator.
    m = Module()
    m.submodules.block = block
    m.d.comb += Signal(name="keep").eq(0)
    simulator = Simulator(m)
    if block.latency:
        simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return results[block.latency :]


@pytest.fixture(scope="session")
def evaluate():
    return _evaluate


_TO_AIGER = """
import sys
from pyosys import libyosys as ys
top, *files = sys.argv[1:]
design = ys.Design()
for command in (
    *(f"read_{'rtlil' if file.endswith('.il') else 'verilog -sv'} {file}" for file in files),
    *(f"hierarchy -check -top {top}", "proc -norom", "flatten", "opt -full", "techmap", "opt", "dffunmap", "simplemap"),
    *("aigmap", "opt_clean -purge", "write_aiger -zinit proof.aig"),
):
    ys.run_pass(command, design)
"""


class Prover:
    """Yosys makes an and-inverter graph of a design whose single output must never be 1, ABC proves it."""

    def __init__(self, directory):
        self.directory = directory

    def abc(self, commands, block, miter=None):
        """What ABC says to ``commands``; the module ``miter``, in Verilog, holds the block ``top``, in RTLIL."""
        files = {"block.il": block} | ({"miter.v": miter} if miter else {})
        for name, text in files.items():
            (self.directory / name).write_text(text)
        self.run(sys.executable, "-c", _TO_AIGER, "miter" if miter else "top", *files)
        tool = Path(pyosys.__file__).with_name("yosys-abc")
        return self.run(str(tool), "-c", f"read_aiger proof.aig; strash; {commands}")

    def run(self, *command):
        """What a command writes that ends well, in the prover's directory."""
        result = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False, timeout=600)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def proven(self, block, miter):
        """Whether ``wrong`` of the module ``miter``, without registers, is never 1."""
        found = self.abc("iprove", block, miter)
        assert "SATISFIABLE" in found, found
        return "UNSATISFIABLE" in found


@pytest.fixture
def prover(tmp_path):
    return Prover(tmp_path)

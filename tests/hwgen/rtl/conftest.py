"""Blocks without a loop in Amaranth's simulator, and proofs by ABC."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pyosys
import pytest
from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.sim import Simulator


class Evaluation:
    """A block in the simulator: values of every output, as a dict, for each dict of inputs; layouts as integers.

    A block with registers takes new inputs in every cycle. Each call begins with a reset.
    """

    def __init__(self, block):
        self.block, self.stimuli, self.results = block, [], []
        # A block of wires alone is no process to the simulator.
        m = Module()
        m.submodules.block = block
        m.d.comb += Signal(name="keep").eq(0)
        self.simulator = Simulator(m)
        if block.latency:
            self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self._testbench)

    async def _testbench(self, ctx):
        members = self.block.signature.members
        ports = {name: Value.cast(getattr(self.block, name)) for name in members}
        outputs = [name for name, member in members.items() if member.flow.name == "Out"]
        for inputs in [*self.stimuli, *([{}] * self.block.latency)]:
            # All at once: the simulator settles after every assignment.
            together, shift = 0, 0
            for name, value in inputs.items():
                together |= (value & (1 << len(ports[name])) - 1) << shift
                shift += len(ports[name])
            ctx.set(Cat(ports[name] for name in inputs), together)
            self.results.append({name: ctx.get(ports[name]) for name in outputs})
            if self.block.latency:
                await ctx.tick()

    def __call__(self, stimuli):
        if self.results:
            self.simulator.reset()
        self.stimuli, self.results = stimuli, []
        self.simulator.run()
        return self.results[self.block.latency :]


@pytest.fixture(scope="session")
def evaluate():
    return lambda block, stimuli: Evaluation(block)(stimuli)


@pytest.fixture(scope="session")
def evaluation():
    """As `evaluate`, but for a block made by a function of hashable arguments: it is made once."""
    return cache(lambda make, *arguments: Evaluation(make(*arguments)))


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

    def proven(self, block, miter, before=""):
        """Whether ``wrong`` of the module ``miter``, without registers, is never 1; after commands of ABC, if any."""
        found = self.abc(f"{before}iprove", block, miter)
        assert "SATISFIABLE" in found, found
        return "UNSATISFIABLE" in found


@pytest.fixture
def prover(tmp_path):
    return Prover(tmp_path)

from pathlib import Path

import pytest

from hwgen.config import NAMED
from hwgen.cost.grid import Memory, arrange, run
from hwgen.cost.machines import MACHINES
from hwgen.cost.results import results_of
from hwgen.cost.workloads import model

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "cost.md"


def test_a_balance_holds_whatever_the_cores_do():
    for name, flop_per_byte in (("gb10-class", 1831.5), ("b200-class", 1125)):
        for flops in (1e12, 5e14):
            assert flops / (MACHINES[name].dram_gb(flops) * 1e9) == pytest.approx(flop_per_byte, rel=1e-4)


def test_the_small_machine_has_one_stack_of_hbm3():
    assert next(iter(MACHINES)) == "small"
    assert {MACHINES["small"].dram_gb(flops) for flops in (1e12, 5e14)} == {1024 * 6.4 / 8}


def test_the_core_count_of_the_large_one_is_that_of_its_part():
    """148 multiprocessors of four; at their published peak they do 4096 multiply-accumulates a cycle at 1.86 GHz."""
    large = MACHINES["b200-class"]
    assert large.cores == 148 * 4
    assert 9e15 / (large.cores * 2 * 4096) == pytest.approx(1.86e9, rel=0.005)


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_says_where_it_is_from(name):
    assert len(MACHINES[name].source) > 20


def test_the_documentation_has_these_machines():
    text = DOCUMENTATION.read_text(encoding="utf-8")
    for name, machine in MACHINES.items():
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}`"))
        balance = f"{machine.dram:.0f}" if machine.balanced else f"{2 * 64 * 4096 / machine.dram:.0f} at 1 ns"
        assert f"| {machine.cores} | {machine.buffer_mib} MiB | {balance}" in row


@pytest.mark.parametrize(
    ("phase", "length", "tokens_per_second", "row", "scale", "unit"),
    [
        ("decode", 2112, 38.65, "generated, 2112 tokens attended", 1e3, "ms"),
        ("prefill", 2048, 10256.9, "prompt of 2048 tokens", 1e6, "us"),
    ],
)
def test_the_documentation_compares_with_what_was_published(phase, length, tokens_per_second, row, scale, unit):
    """Llama 3.1 8B on DGX Spark; a core of 4096 multiply-accumulates at 1 ns, scaled to the part's 500 TFLOP/s."""
    core, machine = NAMED["mixfp4-blackwell"], MACHINES["gb10-class"]
    flops = 2e9 * machine.cores * core.macs_per_step
    memory = Memory(machine.buffer_mib * 2**20, machine.dram_gb(flops) * 1e9)
    workload = model("llama-3.1-8b", phase, 1, length)
    results = results_of(
        core, workload.gemms, workload.roles, workload.operands, workload.readers, "quantised", "fused"
    )
    ran = run(core, workload.gemms, arrange(core, workload.gemms, machine.cores, memory), memory, 1.0, results)
    seconds = float(ran.cycles @ workload.count) * 1e-9 / workload.tokens * flops / 500e12
    ours, measured = seconds * scale, scale / tokens_per_second
    expected = f"| {row} | {measured:.1f} {unit} | {ours:.1f} {unit} | {ours / measured:.2f} |"
    assert expected in DOCUMENTATION.read_text(encoding="utf-8")

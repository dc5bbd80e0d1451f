import pytest

from hwgen.cost.machines import MACHINES


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

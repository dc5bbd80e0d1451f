import pytest

from hwgen.power.consumption import DYNAMIC, KINDS, Consumption


def kinds(**given: float) -> dict[str, float]:
    return {kind: given.get(kind, 0.0) for kind in DYNAMIC}


ONE = Consumption({"a": kinds(internal=2, clock=1), "b": kinds(switching=4)}, {"a": 10.0, "b": 20.0})
OTHER = Consumption({"b": kinds(switching=1, clock_tree=3)}, {"b": 5.0})


def test_power_has_the_units_it_says() -> None:
    # 2 fJ every 4 ns are 0.5 uW.
    found = ONE.milliwatts(4.0)
    assert found["a"]["internal"] == pytest.approx(0.5e-3)
    assert found["a"]["leakage"] == pytest.approx(10e-6)
    assert all(tuple(block) == KINDS for block in found.values())
    # Leakage is what it is at any clock.
    assert ONE.milliwatts(8.0)["b"] == pytest.approx({**kinds(switching=0.5e-3), "leakage": 20e-6})
    assert ONE.total_fj == 7


def test_consumptions_add_up() -> None:
    both = ONE + OTHER
    assert both.dynamic_fj == {"a": kinds(internal=2, clock=1), "b": kinds(switching=5, clock_tree=3)}
    assert both.leakage_nw == {"a": 10, "b": 25}
    assert ONE.scaled(0.5).dynamic_fj["b"] == kinds(switching=2)
    assert ONE.scaled(0.5).leakage_nw == {"a": 5, "b": 10}


def test_blocks_are_chosen_and_renamed() -> None:
    assert ONE.within("b".__eq__) == Consumption({"b": kinds(switching=4)}, {"b": 20.0})
    merged = ONE.renamed(lambda block: "all")
    assert merged == Consumption({"all": kinds(internal=2, clock=1, switching=4)}, {"all": 30.0})

"""Mutants of quantisers: harmless until chosen, and then found or proven harmless."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from hwgen.config.quantiser import QuantiserConfig
from hwgen.rtl.quantiser.quantiser import Quantiser
from hwgen.verilog import design
from sim.engines import available
from sim.mutate.cone import frontier, reached, steered_by
from sim.mutate.design import planted
from sim.mutate.operators import OPERATORS, mutants
from sim.mutate.quantisers import MutantQuantiser, cycles, equivalent, killer, main, situations
from sim.mutate.report import Outcome, quantiser_tables, quantisers_as_dict
from sim.mutate.rtlil import cells, lowered
from sim.mutate.run import sample
from sim.mutate.transparent import same_results

CONFIG = QuantiserConfig("mutated", "mixfp4", "nearest", "bfloat16", "second-largest", 5, 3)

compiled = pytest.mark.skipif(not available(), reason="no C++ compiler")


@pytest.fixture(scope="module")
def texts():
    return lowered(design(Quantiser, CONFIG, "core"), "core")


@pytest.fixture(scope="module")
def found(texts):
    return mutants(texts, lowered(design(Quantiser, CONFIG, "core"), "core", clean=True), 0)


def test_cycles_of_a_pipeline():
    """Without stalls a block a cycle; a result that waits stops all before it."""
    always = np.ones(1, bool)
    assert cycles(5, 10, always, always) == 15
    assert cycles(3, 1, np.array([False, True]), always) == 1 + 4
    assert cycles(2, 3, always, np.array([False, False, True])) == 9


@compiled
def test_sampled_mutants_are_killed(texts, found):
    """By the situation that finds them; the quantiser without one passes them all."""
    assert {mutant.module for mutant in found} == set(texts)
    assert {mutant.operator for mutant in found} >= set(OPERATORS) - {"inversion"}
    wanted = {("reset", "stuck at 0"), ("enable", "inverted"), ("order", "A and B exchanged")}
    chosen = sample([m for m in found if (m.operator, m.detail) in wanted or m.operator == "input"], 24, 0)
    engine = MutantQuantiser(CONFIG, planted(texts, chosen))
    confronted = situations(CONFIG, 3000)
    assert {situation.name for situation in confronted} >= {"reset", "scales", "pairs", "thresholds", "bits"}
    assert killer(engine, 0, confronted) is None
    fates = [killer(engine, number, confronted) for number, _ in enumerate(chosen, start=1)]
    resets = {fate for fate, mutant in zip(fates, chosen, strict=True) if mutant.operator == "reset"}
    assert resets == {"reset"}
    assert sum(fate is not None for fate in fates) > 18


@pytest.mark.in_full
def test_proofs(texts, found):
    """A bit that nobody reads may be anything, one that is read may not; control is not proven by data."""
    fault = next(m for m in found if m.module == "scale_division" and m.operator == "operator")
    assert not same_results(texts, fault)
    dead = next(m for m in found if m.module == "scale_division" and m.operator == "carry")
    assert equivalent(CONFIG, texts, dead) == "scale_division"
    assert same_results(texts, dead)
    steers = steered_by(texts, "core")
    control = [m for m in found if m.module == "core" and reached(texts, "core", m.cell) & steers]
    assert len(control) > 20
    assert not any(same_results(texts, m) for m in found if m.operator == "enable" or m in control)


def test_what_a_fault_may_reach(texts):
    """Control steers registers and instances; numbers never reach it."""
    steers = steered_by(texts, "core")
    assert {"\\result__valid", "\\block__ready", "\\largest_valid"} <= steers
    by_kind = {}
    for cell in cells(texts["core"]):
        by_kind.setdefault(bool(reached(texts, "core", cell.name) & steers), []).append(cell)
    kinds = {kind: {cell.kind for cell in some} for kind, some in by_kind.items()}
    # What adds or compares numbers, or holds modules that do, is data.
    assert kinds[False] >= {"$sub", "\\largest_magnitude", "\\scale_division"}
    assert kinds[True] <= {"$and", "$or", "$not", "$mux", "$dff"}


def test_what_a_fault_comes_to_first(texts):
    """Registers and outputs, not what is behind them."""
    module = texts["scale_division"]
    for cell in cells(module):
        assert frontier(texts, "scale_division", cell.name) <= reached(texts, "scale_division", cell.name)
    # Where the code begins is found before the register, its sum is rounded behind it.
    (negation,) = (c.name for c in cells(module) if c.kind == "$neg")
    assert frontier(texts, "scale_division", negation) == {"\\quotients_lost"}
    (comparison,) = (c.name for c in cells(module) if c.kind == "$gt")
    assert frontier(texts, "scale_division", comparison) == {"\\code", "\\saturated"}


def test_report(found):
    fates = [("reset", None), (None, "core"), (None, None)]
    outcomes = [Outcome(CONFIG, mutant, *fates[index % 3]) for index, mutant in enumerate(found[:30])]
    text = quantiser_tables(outcomes, 0, 100)
    assert text.count("| total | 30 | 10 | 10 | 10 |") == 3
    assert "second-largest, 5 bits; largest, quotients, scales, bounds" in text
    kept = json.loads(json.dumps(quantisers_as_dict(outcomes, 0, 100)))
    assert (len(kept["mutants"]), kept["quantisers"][0]["name"]) == (30, "mutated")


def test_an_unknown_quantiser(tmp_path):
    result = CliRunner().invoke(main, ["--config", "mixfp4", "--out", str(tmp_path)])
    assert str(result.exception).startswith("quantiser 'mixfp4': must be one of nvfp4-quantiser, ")
    assert not list(tmp_path.iterdir())

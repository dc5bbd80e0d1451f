"""Mutants: made alike every time, harmless until chosen, and then found or proven harmless."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.formats.unscaled import HIGHEST_PRODUCT, SCALE
from hwgen.rtl.accumulate.products import product_layout
from hwgen.rtl.accumulate.terms import emax_layout, terms_layout
from hwgen.rtl.decode.operand import late_layout, operand_layout
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore, read_layout
from hwgen.verilog import design
from sim.engines import available
from sim.mutate.campaign import killer, situations
from sim.mutate.control import same_control
from sim.mutate.design import planted
from sim.mutate.engine import MutantEngine
from sim.mutate.equivalence import equivalent, proven
from sim.mutate.kept import kept
from sim.mutate.operators import OPERATORS, mutants
from sim.mutate.relation import condition, in_range, matters_with
from sim.mutate.report import Outcome, as_dict, tables
from sim.mutate.rtlil import cells, lowered
from sim.mutate.run import sample
from sim.mutate.standing import same_content

CONFIG = TensorCoreConfig("mutated", "mixfp4", "mixfp4", 1, 1, 1, pipeline=("operands",))


@pytest.fixture(scope="module")
def texts():
    return lowered(design(TensorCore, CONFIG, "core"), "core")


@pytest.fixture(scope="module")
def found(texts):
    return mutants(texts, lowered(design(TensorCore, CONFIG, "core"), "core", clean=True), 0)


def test_every_operator_finds_a_place(found):
    operators = {mutant.operator for mutant in found}
    # A core with one row has no two inputs of a kind but A and B, which commute.
    assert operators >= set(OPERATORS) - {"ports", "order"}
    assert operators <= set(OPERATORS)
    assert {mutant.module for mutant in found} >= {"core", "element", "accumulate", "dot_product", "scale_product"}


def test_equal_seeds_give_equal_mutants(texts, found):
    again = mutants(texts, lowered(design(TensorCore, CONFIG, "core"), "core", clean=True), 0)
    assert again == found
    assert [vars(m) for m in sample(found, 30, 1)] == [vars(m) for m in sample(again, 30, 1)]
    assert sample(found, 30, 1) != sample(found, 30, 2)
    assert len(sample(found, 30, 1)) == 30


def test_what_is_planted_stays_in_its_module(texts, found):
    (mutant,) = [m for m in found if m.module == "scale_decoder" and m.operator == "operator"][:1]
    changed = planted(texts, [mutant])
    for name, text in texts.items():
        added = len(cells(changed[name])) - len(cells(text))
        assert added == (3 if name == "scale_decoder" else 0)  # the faulty cell, the comparison, the multiplexer


@pytest.mark.skipif(not available(), reason="no C++ compiler: set CXX, or put c++, g++ or clang++ on PATH")
def test_sampled_mutants_are_killed(texts, found):
    """Faults in control and data, by the situation that finds them; the core without one passes them all."""
    chosen = [
        m
        for m in found
        if (m.operator, m.detail) in (("reset", "stuck at 0"), ("enable", "inverted"), ("inversion", "not left out"))
        or (m.operator == "operator" and m.module in ("scale_product", "term_exponents", "scale_decoder"))
    ]
    chosen = sample(chosen, 24, 0)
    engine = MutantEngine(CONFIG, planted(texts, chosen))
    confronted = situations(CONFIG, 2000)
    assert killer(engine, 0, confronted) is None
    fates = {mutant.cell + mutant.module: killer(engine, k, confronted) for k, mutant in enumerate(chosen, start=1)}
    resets = [m for m in chosen if m.operator == "reset"]
    assert resets
    assert {fates[m.cell + m.module] for m in resets} <= {"reset", None}
    assert "steady" in fates.values()
    for mutant in chosen:
        if fates[mutant.cell + mutant.module] is None:
            assert proven(CONFIG, texts, mutant, mutant.module) or proven(CONFIG, texts, mutant, "core"), mutant


def test_proofs(texts, found):
    """A bit that nobody reads may be anything, one that is read may not."""
    decoder = [m for m in found if m.module == "scale_decoder"]
    dead = next(m for m in decoder if m.operator == "carry")
    fault = next(m for m in decoder if m.operator == "operator")
    assert proven(CONFIG, texts, dead, "scale_decoder")
    assert not proven(CONFIG, texts, fault, "scale_decoder")


@pytest.mark.in_full
def test_a_dot_product_with_slots_is_not_that_of_the_lane_array():
    """A fault in it is none of the lane array's, where cells of other meaning have its name."""
    config = replace(CONFIG, name="full", a="nvfp4", b="nvfp4", slot="full", pipeline=("decoded",))
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    other = lowered(design(LaneArray, config, "lane_array"), "lane_array")
    assert texts["dot_product"] != other["dot_product"]
    every = mutants(texts, lowered(modules, "core", clean=True), 0)
    fault = next(m for m in every if m.module == "dot_product" and m.operator == "bit" and "stuck" in m.detail)
    assert equivalent(config, texts, fault) is None
    beyond = replace(fault, cell="$9999")
    with pytest.raises(AssertionError, match="no such cells"):
        planted(texts, [beyond])


RING = TensorCoreConfig(
    *("ring", "nvfp4", "nvfp4", 1, 1, 1),
    rounding="nearest_even",
    leading_zeros="anticipated",
    pipeline=("operands", "aligned", "total", "normal"),
)


@pytest.fixture(scope="module")
def ring():
    """Modules of a core with a loop of four cycles, and all its mutants."""
    modules = design(TensorCore, RING, "core")
    texts = lowered(modules, "core")
    return texts, mutants(texts, lowered(modules, "core", clean=True), 0)


def _resets_of_bubbles(texts):
    """Names of the multiplexers that put zero in the place of the bubbles to come."""
    own = cells(texts["core"])
    return [cell.name for cell in own if re.search(r"connect \\A \\bubbles_later\n +connect \\B \d'0+\n", cell.text)]


@pytest.mark.in_full
def test_control_may_tell_the_same_in_another_way(ring, tmp_path):
    """What bubbles count does not matter while a step enters; the proof of one cycle cannot see that."""
    texts, found = ring
    counting = [m for m in found if m.module == "core" and "connect \\B { \\bubbles" in m.copy]
    (exchanged,) = [m for m in counting if m.operator == "lanes"]
    assert not proven(RING, texts, exchanged, "core")
    assert equivalent(RING, texts, exchanged) == "core"
    faults = [m for m in found if m.module == "core" and "\\bubbles" in m.copy and m.operator == "constant"][:2]
    # Steps come sooner after a reset than bubbles end by themselves.
    (reset,) = _resets_of_bubbles(texts)
    faults += [m for m in found if (m.module, m.cell, m.operator) == ("core", reset, "reset")]
    assert {fault.operator for fault in faults} == {"constant", "reset"}
    for fault in faults:
        assert not same_control(texts, fault, tmp_path)


def test_bubbles_may_end_by_themselves(tmp_path):
    """Where the way to the loop is as long as the loop, they have ended before a step comes: they need no reset."""
    config = replace(RING, pipeline=("operands", "decoded", "sums", "terms", "total"))
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    (reset,) = _resets_of_bubbles(texts)
    every = mutants(texts, lowered(modules, "core", clean=True), 0)
    stuck = [m for m in every if (m.module, m.cell, m.operator) == ("core", reset, "reset")]
    assert any(same_control(texts, mutant, tmp_path) for mutant in stuck if mutant.detail == "stuck at 0")
    assert not all(same_control(texts, mutant, tmp_path) for mutant in stuck)


def test_ranges_of_registers_are_taken_for_granted():
    """A register holds no more than a block sum."""
    config = TensorCoreConfig("factors", "mixfp4", "mixfp4", 1, 1, 1, pipeline=("factors",))
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    every = mutants(texts, lowered(modules, "core", clean=True), 0)
    found = [m for m in every if m.module == "scale_product" and m.operator == "width"]
    found = [m for m in found if "connect \\A \\factors_magnitude\n" in m.copy and "1'0 {" in m.copy]
    # The top bits of two neighbouring rows are never both set; where a row's top bit is added alone, it counts.
    verdicts: set[bool] = set()
    for mutant in found:
        if len(verdicts) < 2:
            verdicts.add(proven(config, texts, mutant, "scale_product"))
    assert verdicts == {True, False}


@pytest.mark.skipif(not available(), reason="no C++ compiler: set CXX, or put c++, g++ or clang++ on PATH")
def test_numbers_of_the_format_are_taken_for_granted():
    """Behind registers of numbers, too: of an odd number and 8 or 12 a lane has no carry that meets their product."""
    config = TensorCoreConfig("timed", "mixfp4", "mixfp4", 1, 1, 1, "merged-timed", pipeline=("decoded", "tree"))
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    every = mutants(texts, lowered(modules, "core", clean=True), 0)
    found = [m for m in every if m.module == "dot_product" and m.detail == "A cut to 15 bits"]
    found = [m for m in found if " \\a [0] }" in m.copy and " \\b [3] }" in m.copy]
    engine, confronted = MutantEngine(config, planted(texts, found)), situations(config, 2000)
    fates = [killer(engine, number, confronted) is not None for number in range(1, len(found) + 1)]
    assert {*fates} == {True, False}
    assert [not proven(config, texts, mutant, "dot_product") for mutant in found] == fates


def test_a_bit_that_loads_a_constant_alone_is_that_constant():
    """The lowest place of a carry word where no sign is left for it; the one above is read."""
    config = replace(NAMED["mxfp8-e5m2-small"], rows=1, columns=1)
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    every = mutants(texts, lowered(modules, "core", clean=True), 0)
    (idle,) = (m for m in every if (m.module, m.detail) == ("dot_product", "bit 0 of y stuck at 0"))
    assert idle.signals == {"y": r"{ \last_y [32:1] 1'0 }"}
    read = replace(idle, signals={"y": r"{ \last_y [32:2] 1'0 \last_y [0] }"})
    assert proven(config, texts, idle, "dot_product")
    assert not proven(config, texts, read, "dot_product")


@pytest.mark.parametrize("name", ["mixfp4-small", "nvfp4-small", "if4-small", "mixfp4-multi-small"])
def test_no_number_of_a_format_is_ruled_out(name):
    config = replace(NAMED[name], dot="merged")
    for side in "ab":
        ruled_out = {int(each.split()[-1]) for each in in_range(config, "dot_product") if each.startswith(f"{side}[")}
        assert not ruled_out & config.form(side).magnitudes
        assert bool(ruled_out) == (not config.slotted)


SLOTTED = replace(
    CONFIG, slot="full", pipeline=("operands", "decoded", "tree", "factors", "terms", "compared", "aligned", "total")
)


def test_registers_of_half_rate_matter_with_their_step():
    """Products behind the lanes, and the mode that elements are handed, are read where there is a step."""
    registers = [f"{stage}_valid" for stage in SLOTTED.pipeline]

    def stage(name, core=SLOTTED):
        return matters_with(core, name, registers)

    assert stage("element0_0.dot0.products [63:0]") == {"tree_valid": True}
    assert stage("element0_0_half") == {"decoded_valid": True}
    assert stage("element0_0_half_terms") == stage("element0_0_first") == {"factors_valid": True}
    assert stage("element0_0.dot0.products", CONFIG) == {}


@pytest.mark.parametrize("half", [False, True])
def test_registers_may_matter_at_one_rate_only(half):
    """They may where their stage says what rate its step has, but for control."""
    registers = ["decoded_valid", "decoded_fp4", "element0_0.accumulate.aligned_half", "decoded_a0", "aligned_last"]
    decoded, aligned = {"decoded_fp4": not half}, {"element0_0.accumulate.aligned_half": half}
    assert matters_with(SLOTTED, "decoded_a0 [7:0]", registers, True, half) == {"decoded_valid": True} | decoded
    assert matters_with(SLOTTED, "decoded_a0 [7:0]", registers, False, half) == decoded
    assert matters_with(SLOTTED, "element0_0.accumulate.aligned_term0", registers, False, half) == aligned
    for name in ("decoded_fp4", "aligned_last", "decoded_valid"):
        assert matters_with(SLOTTED, name, registers, False, half) == {}


@pytest.mark.in_full
def test_what_stands_still_at_half_rate_may_move():
    """Where A is 0 in steps of FP8, B may be anything in its lanes; but one that is cut in steps of FP4 is a fault."""
    config = replace(CONFIG, name="gated", a="nvfp4", b="nvfp4", dot="signed", slot="separate", pipeline=("sums",))
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    every = mutants(texts, lowered(modules, "core", clean=True), 0)
    gate = [m for m in every if m.module == "operand_decoder_b" and "connect \\A \\codes [27:24]\n" in m.copy]
    (moving,) = [m for m in gate if m.detail == "B ignored"]
    (cut,) = [m for m in gate if m.detail == "B cut to 3 bits"]
    assert proven(config, texts, moving, "core")
    assert not proven(config, texts, cut, "core")


def test_registers_of_which_none_may_differ_hold_the_same(tmp_path):
    assert same_content("", ["decoded_valid"], [], tmp_path)


@pytest.mark.in_full
def test_a_register_may_load_what_it_holds():
    """What holds operands of FP8 is zero from the second step of FP4 on; one that never loads is a fault."""
    config = replace(CONFIG, name="standing", a="nvfp4", b="nvfp4", slot="full", pipeline=("decoded",))
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    own = cells(texts["core"])
    fp8 = {cell.connections["Y"] for cell in own if cell.connections.get("A") == "\\decoded_fp4"}
    changes = {cell.connections["Y"] for cell in own if cell.kind == "$or" and cell.connections["B"] in fp8}
    loads = {cell.name for cell in own if cell.kind == "$and" and cell.connections["B"] in changes}
    every = [m for m in mutants(texts, lowered(modules, "core", clean=True), 0) if m.cell in loads]
    loading = next(m for m in every if m.module == "core" and m.detail == "B ignored")
    never = next(m for m in every if m.module == "core" and m.cell == loading.cell and m.detail == "bit 0 stuck at 0")
    assert equivalent(config, texts, loading) == "core"
    assert equivalent(config, texts, never) is None


@pytest.mark.parametrize(("name", "raised"), [("nvfp4-multi-small", 0), ("nvfp4-mx-multi-small", 2 * SCALE.bias)])
def test_no_exponent_of_a_product_is_ruled_out(name, raised):
    """Those of the largest product, under the largest scales of its rows where these have any."""
    (bound,) = [each for each in in_range(NAMED[name], "accumulate") if re.fullmatch(r"terms\[\d+:\d+\] <= \d+", each)][
        1:
    ]
    assert int(bound.rpartition(" ")[2]) >= HIGHEST_PRODUCT + raised - emax_layout(NAMED[name])[1]


def test_operands_are_exchanged_where_that_is_a_fault():
    """Slots may decode A and B each in a way of its own, and yet multiply either way round."""
    config = replace(SLOTTED, slot="split")
    modules = design(TensorCore, config, "core")
    texts, clean = lowered(modules, "core"), lowered(modules, "core", clean=True)
    assert "operand_decoder_b" in texts
    exchanged = {
        commutes: [
            m
            for m in mutants(texts, clean, 0, commutes)
            if (m.module, m.operator, m.cell) == ("element", "ports", "\\dot0")
        ]
        for commutes in (False, True)
    }
    assert "a and b exchanged" in [m.detail for m in exchanged[False]]
    assert "a and b exchanged" not in [m.detail for m in exchanged[True]]


def test_a_step_that_enters_is_there():
    """Where it is known a cycle ahead, and only there."""
    registers = ["enter", "element0_0.accumulate_enter", "operands_valid", "element0_0.accumulate.enter_other"]
    assert [*kept(RING, registers, "state").values()] == ["!state0 || state2", "!state1 || state2"]
    assert kept(RING, registers[:2], "state") == {}
    assert kept(CONFIG, registers, "state") == {}


GROUPS = replace(SLOTTED, groups=2, pipeline=("decoded", "factors", "compared"))


def test_what_rests_at_one_rate_is_taken_for_granted():
    """Significands of scales at half the rate; elements and products in FP4; and the rate of a stage without a step."""
    stages = ("operands", "decoded", "tree", "factors", "terms")
    config = replace(GROUPS, pipeline=(*stages, "compared"))
    row, product, half = (operand_layout(config, "a"), product_layout(config), read_layout(config, "b")["half"].offset)
    scale, slots, late = row["scales"], row["slots"].offset, late_layout(config, "b")
    low = scale.offset + scale.shape[1].offset + scale.shape[1].shape["significand"].offset
    term = terms_layout(config)["products"].offset
    flags = [f"{stage}_{flag}" for stage in stages for flag in ("valid", "fp4")]
    claims = {
        f"decoded_a0 [{low}:{low}]": ("at half the rate", "!next2 || next3 || {} == 0"),
        "tree_b0_scales [3:0]": ("at half the rate", "!next4 || next5 || {} == 0"),
        "element0_0.scale0.factors_significands [3:3]": ("at half the rate", "!next6 || next7 || {} == 0"),
        f"decoded_a0 [{slots + 4}:{slots}]": ("in FP4", "!next3 || {} == 1"),
        f"decoded_a0 [{slots + 14}:{slots + 14}]": ("in FP4", "!next3 || {} == 1"),
        "tree_b0_slots [7:5]": ("in FP4", "!next5 || {} == 2"),
        "element0_0.dot1.products [9:9]": ("in FP4", "!next5 || {} == 0"),
        "element0_0.product_exponents.tree_live1": ("in FP4", "!next5 || {} == 0"),
        "element0_0_b_late [7:7]": ("in FP4", "!next7 || {} == 0"),
        "element0_0.factors_products0 [9:9]": ("in FP4", "!next7 || {} == 0"),
        f"element0_0.accumulate_terms [{term + 14}:{term + 13}]": ("in FP4", "!next9 || {} == 1"),
        f"element0_0.accumulate.compared_products0 [{product.size}:{product.size}]": ("in FP4", "!next10 || {} == 0"),
        "element0_0.accumulate.compared_products0 [13:9]": ("in FP4", "!next10 || {} == 31"),
    }
    others = ["element0_0.accumulate_terms [0:0]", f"decoded_a0 [{low - 1}:{low - 1}]"]
    others += [f"element0_0_b_late [{late.size - 1}:{late.size - 1}]"]
    held = [*flags, "compared_fp4", *claims, f"operands_b [{half}:{half}]", *others]
    assert kept(config, held, "next") == {
        **{f"{name} {when}": claim.format(f"next{held.index(name)}") for name, (when, claim) in claims.items()},
        **{f"rate of {stages[n + 1]}": f"next{2 * n} || next{2 * n + 1} == next{2 * n + 3}" for n in range(4)},
        "rate of b": f"!next0 || next{11 + len(claims)} != next1",
    }


def test_a_term_matters_where_it_is_not_shifted_out():
    """A bubble takes along what was there before, at either rate; a sign is not read at half the rate."""
    beside = "element0_0.accumulate."
    held = [f"{beside}compared_{name}" for name in ("ahead [0:0]", "ahead [1:1]", "half", "magnitude0", "sign1")]
    held.insert(0, "compared_fp4")
    shifted, rate = {f"&{beside}compared_ahead": False}, {f"{beside}compared_half": False}
    for there, half in ((True, None), (False, False), (True, False)):
        assert matters_with(GROUPS, held[4], held, there, half) == shifted
        assert matters_with(GROUPS, held[5], held, there, half) == rate
    assert matters_with(GROUPS, held[4], held, False, True) == {f"{beside}compared_half": True}
    assert matters_with(GROUPS, held[4], held[:1], False, False) == {}
    assert condition(held, f"&{beside}compared_ahead", "state") == "(&{state2, state1})"
    assert condition(held, held[0], "next") == "next0"


@pytest.mark.in_full
def test_faults_that_a_core_with_two_blocks_and_a_slot_does_not_show():
    """A sign of FP4 in a step at half the rate, a register that loads without a step, a turn of the empty loop."""
    config = replace(GROUPS, name="groups", a="nvfp4", b="nvfp4", dot="merged")
    modules = design(TensorCore, config, "core")
    texts = lowered(modules, "core")
    every = mutants(texts, lowered(modules, "core", clean=True), 0)

    def planted_in(module, detail, **connections):
        """Mutants of the cells with such connections."""
        found = {cell.name for cell in cells(texts[module]) if connections.items() <= cell.connections.items()}
        return [m for m in every if m.module == module and m.cell in found and m.detail == detail]

    gate = {"A": "{ \\half \\half \\half \\half }"}
    loads = planted_in("core", "B ignored", A="\\step__ready", B="\\decoded_valid")
    (turn,) = planted_in("core", "1'0 of B off by one", A="\\bubbles_later")
    sign = planted_in("operand_decoder", "A cut to 3 bits", **gate)[0]
    assert [equivalent(config, texts, mutant) for mutant in (turn, sign, loads[2])] == ["core"] * 3


def test_anticipated_zeros_are_taken_for_granted(ring):
    """A bit that fills the sum from below matters only where zeros are anticipated that no sum has."""
    texts, found = ring
    inverted = [m for m in found if m.module == "accumulate" and m.operator == "inversion" and "total_sum" in m.copy]
    # The seven lowest bits that the largest shift fills in come between others of the same cell.
    verdicts = [proven(RING, texts, mutant, "accumulate") for mutant in inverted[45:47]]
    assert verdicts == [False, True]


def test_tables_count_every_outcome(found):
    rng = np.random.default_rng(0)
    fates = [("steady", None), (None, "core"), (None, None)]
    outcomes = [Outcome(CONFIG, mutant, *fates[rng.integers(3)]) for mutant in found[:40]]
    text = tables(outcomes, 0, 100)
    alive = sum(outcome.alive for outcome in outcomes)
    assert text.count("**not proven**") == alive > 0
    killed = sum(outcome.killed is not None for outcome in outcomes)
    assert text.count(f"| total | 40 | {killed} | {40 - killed - alive} | {alive} |") == 3
    assert len(as_dict(outcomes, 0, 100)["mutants"]) == 40

import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED, TensorCoreConfig
from hwgen.errors import InputError, ToolError
from hwgen.formats import MIXFP4, NVFP4
from hwgen.mapping import area
from hwgen.mapping.area import BLOCKS, Job, Source, plan
from hwgen.mapping.cache import Cache
from hwgen.mapping.yosys import RECIPES, synthesise
from hwgen.measure.figures import Figure
from hwgen.measure.netlists.checks import VECTORS
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.stimulus import TRAFFIC, Stimulus, operands_of
from hwgen.measure.overhead import Overhead, measure
from hwgen.netlist.fanout import LIMIT
from hwgen.netlist.link import link
from hwgen.report.schema import ENTERING, SCOPES, Cycles, Operand, Operands
from hwgen.rtl.tensor_core import TensorCore
from hwgen.stats import Estimate

CELLS = reader.load(libraries.path("generic7"))


def _find(overhead: Overhead, scope: str, metric: str, block: str = "total") -> Figure:
    (found,) = [f for f in overhead.figures if (f.scope, f.metric, f.block) == (scope, metric, block)]
    return found


@pytest.mark.parametrize("metric", ["area", "dynamic power", "leakage power"])
@pytest.mark.parametrize("scope", ["element", "core"])
def test_blocks_add_up_to_the_total(overhead: Overhead, scope: str, metric: str) -> None:
    total = _find(overhead, scope, metric)
    blocks = [f for f in overhead.figures if (f.scope, f.metric) == (scope, metric) and f.block != "total"]
    assert {block.block for block in blocks} <= {*BLOCKS.values(), *([ENTERING] if metric == "dynamic power" else [])}
    assert len(blocks) >= 4
    for name, value in total.values.items():
        assert sum(block.values[name] for block in blocks) == pytest.approx(value)


def test_every_scope_has_every_figure(overhead: Overhead) -> None:
    for scope in SCOPES:
        for metric in (
            "area",
            "smallest area",
            "cells",
            "critical path",
            "maximum clock",
            "leakage power",
            "dynamic power",
            "total power",
            "total power, same operands",
            "total power, no glitches",
            "internal power",
            "switching power",
            "energy per MAC",
        ):
            figure = _find(overhead, scope, metric)
            assert all(value > 0 for value in figure.values.values())
            baseline, candidate = figure.values.values()
            assert figure.overhead is not None
            assert figure.overhead.value == pytest.approx(candidate / baseline - 1)
            if metric != "smallest area":
                assert len(figure.runs["nvfp4-single"]) == 6
                assert figure.overhead.low <= figure.overhead.value <= figure.overhead.high
    for scope in ("element", "core"):
        share = _find(overhead, scope, "sequential share")
        assert share.overhead is None
        assert all(0 < value < 1 for value in share.values.values())


def test_scopes_nest(overhead: Overhead) -> None:
    for name in ("nvfp4-single", "mixfp4-single"):
        element, core = (_find(overhead, scope, "area").values[name] for scope in ("element", "core"))
        assert element < core
        dot = _find(overhead, "element", "area", "dot products").values[name]
        assert dot == pytest.approx(_find(overhead, "core", "area", "dot products").values[name])


def test_the_baseline_has_one_power(overhead: Overhead) -> None:
    for scope in SCOPES:
        own, same = (_find(overhead, scope, f"total power{what}") for what in ("", ", same operands"))
        assert own.values["nvfp4-single"] == pytest.approx(same.values["nvfp4-single"])
        assert own.values["mixfp4-single"] != same.values["mixfp4-single"]


def test_power_and_energy_agree(overhead: Overhead) -> None:
    megahertz = 1000 / overhead.conditions.clock_ns
    for scope in SCOPES:
        for name, power in _find(overhead, scope, "total power").values.items():
            parts = [_find(overhead, scope, metric).values[name] for metric in ("dynamic power", "leakage power")]
            assert sum(parts) == pytest.approx(power)
            kinds = [f"{kind} power" for kind in ("internal", "switching", "wires", "leakage")]
            kinds += ["clock power", "clock tree power"] if scope != "lane array" else []
            found = {figure.metric for figure in overhead.figures if figure.scope == scope}
            kinds = [kind for kind in kinds if kind in found]  # 16 flip-flops need no tree
            parts = [_find(overhead, scope, metric).values[name] for metric in kinds]
            assert sum(parts) == pytest.approx(power)
            settled = _find(overhead, scope, "total power, no glitches").values[name]
            assert settled < power
            energy = _find(overhead, scope, "energy per MAC").values[name]
            assert energy * 16 * megahertz * 1e-6 == pytest.approx(power)


def test_every_netlist_meets_the_clock_of_the_report(overhead: Overhead) -> None:
    conditions = overhead.conditions
    assert conditions.slowest_ns is not None
    for name, slowest in conditions.slowest_ns.items():
        assert slowest.keys() == set(SCOPES)
        for scope, delay in slowest.items():
            assert delay == max(_find(overhead, scope, "critical path").runs[name])
            assert delay <= conditions.clock_ns


def test_the_stimulus_is_described(overhead: Overhead) -> None:
    same = Cycles(settled=16 * 15, timed=240)
    assert overhead.conditions.cycles == {"lane array": same, "core": same}
    operands = overhead.conditions.operands
    assert operands["nvfp4-single"] == Operands(Operand("nvfp4", 0.0), Operand("nvfp4", 0.0))
    both = operands["mixfp4-single"]
    assert both.a.format == both.b.format == "mixfp4"
    assert 0 < both.a.e1m2_share < 1
    # A and B are other tensors.
    assert 0 < both.b.e1m2_share != both.a.e1m2_share


def _swap_one(body: dict, one: str, other: str) -> None:
    """Turn the first ``one`` of a netlist into ``other``, a cell with the same pins."""
    for cell in body["cells"].values():
        if cell["type"] == one:
            cell["type"] = other
            return
    raise AssertionError(f"no {one}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("top", ["tensor_core", "lane_array"])
def test_a_miscompiled_netlist_gives_no_figures(monkeypatch: pytest.MonkeyPatch, top: str) -> None:
    victim = "lane_array" if top == "lane_array" else "dot_product"

    def miscompile(verilog: str, module: str, *rest: object, **more: object) -> dict:
        body = synthesise(verilog, module, *rest, **more)
        if module == victim:
            _swap_one(body, "XOR2_XP5", "XNOR2_XP5")
        return body

    monkeypatch.setattr(area, "synthesise", miscompile)
    pair = [TensorCoreConfig(f"{name}-single", name, name, rows=1, columns=1, groups=1) for name in ("nvfp4", "mixfp4")]
    with pytest.raises(ToolError, match=r"of (nv|mix)fp4-single differs from the golden model"):
        measure(
            *pair,
            Flow(CELLS, workers=1),
            [RECIPES["area"]],
            stimulus=Stimulus(streams=64, tiles=1, steps_per_tile=4),
            runs=1,
            vectors=2000,
        )


def test_shared_blocks_cancel_and_the_smallest_is_the_smallest(overhead: Overhead) -> None:
    for block in ("scale products", "align, add, normalise, round"):
        assert _find(overhead, "core", "area", block).overhead == Estimate(0.0, 0.0, 0.0)
    for scope in SCOPES:
        runs, smallest = _find(overhead, scope, "area").runs, _find(overhead, scope, "smallest area").values
        for name, values in runs.items():
            assert smallest[name] <= min(values) * (1 + 1e-12)


def test_no_net_of_the_assembled_core_has_more_loads_than_the_report_says() -> None:
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", rows=3, columns=2, groups=1)
    source = Design(config, TensorCore).source
    bodies = area.run(plan("x", source, [RECIPES["area"]], [0]), CELLS, cache=Cache(None))
    modules = {module: body for (_, module, _, _), body in bodies.items()}
    netlist = link(area.buffered(modules, source, CELLS), "tensor_core", CELLS)
    loads = netlist.fanout.copy()
    for port in netlist.ports.values():
        if port.direction == "output":
            loads[port.nets] -= 1  # a port is no pin
    assert np.delete(loads, [0, 1, netlist.clock_net]).max() == LIMIT


@pytest.mark.parametrize("metric", ["area", "dynamic power", "leakage power"])
def test_contributions_add_up_to_the_overhead(overhead: Overhead, metric: str) -> None:
    for scope in ("element", "core"):
        blocks = [f for f in overhead.figures if (f.scope, f.metric) == (scope, metric) and f.block != "total"]
        total = _find(overhead, scope, metric)
        assert total.contribution is None
        assert sum(block.contribution.value for block in blocks) == pytest.approx(total.overhead.value)


def test_every_run_is_checked_on_enough_vectors(overhead: Overhead) -> None:
    assert inspect.signature(measure).parameters["vectors"].default == VECTORS >= 100_000
    assert overhead.conditions.runs == 6
    for found in overhead.conditions.checked.values():
        assert found.results >= 2000
        assert found.lane_sums >= 2000
    for shares in overhead.conditions.critical_path.values():
        assert sum(shares.values()) == pytest.approx(1)
        assert max(shares, key=shares.get) == "align, add, normalise, round"


def test_each_module_takes_the_recipe_that_suits_it() -> None:
    source = Design(NAMED["nvfp4-small"], TensorCore).source
    jobs = [job for job in plan("x", source, RECIPES.values(), [1]) if job.module in ("scale_product", "dot_product")]
    gate = {"NAND2_XP33": {"type": "NAND2_XP33"}}
    bodies = {
        job.identity: {
            "cells": gate
            if (job.module, job.recipe.name) == ("dot_product", "speed")
            else {**gate, "x": gate["NAND2_XP33"]}
        }
        for job in jobs
    }
    bodies[next(job for job in jobs if (job.module, job.recipe.name) == ("scale_product", "area")).identity] = {
        "cells": {}
    }
    found = area.ranked(jobs, bodies, CELLS)
    assert {key[1]: next(iter(hows)).name for key, hows in found.items()} == {
        "scale_product": "area",
        "dot_product": "speed",
    }


def test_a_faster_clock_takes_faster_recipes(cache: Path) -> None:
    pair = [TensorCoreConfig(f"{name}-single", name, name, rows=1, columns=1, groups=1) for name in ("nvfp4", "mixfp4")]
    stimulus = Stimulus(streams=64, tiles=1, steps_per_tile=4)
    fast = measure(
        *pair,
        Flow(CELLS, cache, workers=1),
        [RECIPES[name] for name in ("area", "speed")],
        clock_ns=4.75,
        stimulus=stimulus,
        runs=1,
        vectors=2000,
    )
    chosen = fast.conditions.chosen_recipes
    assert chosen["nvfp4-single"]["accumulate"] == chosen["mixfp4-single"]["accumulate"] == "speed"
    assert chosen["nvfp4-single"]["tensor_core"] == "area"
    assert max(_find(fast, "core", "critical path").values.values()) <= 4.75
    with pytest.raises(InputError, match=r"clock of 1 ns: the \w+ of \w+-single takes 9.* ns in its slowest run"):
        measure(
            *pair,
            Flow(CELLS, cache, workers=1),
            [RECIPES["area"]],
            clock_ns=1.0,
            stimulus=stimulus,
            runs=1,
            vectors=2000,
        )


def test_interleaved_tiles_are_measured_too(cache: Path) -> None:
    loop = ("operands", "terms", "total")
    pair = [
        TensorCoreConfig(f"{name}-loop", name, name, rows=1, columns=1, groups=1, pipeline=loop)
        for name in ("nvfp4", "mixfp4")
    ]
    stimulus = Stimulus(streams=64, tiles=1, steps_per_tile=4)
    found = measure(*pair, Flow(CELLS, cache, workers=1), [RECIPES["area"]], stimulus=stimulus, runs=1, vectors=2000)
    assert found.conditions.checked["nvfp4-loop"].results >= 2000
    assert found.conditions.cycles["core"] == Cycles(settled=64 * 7, timed=64 * 7)


def test_clock_gates_save_multiplexers_and_clock_power(cache: Path) -> None:
    plain = TensorCoreConfig("plain", "nvfp4", "nvfp4", rows=1, columns=2, groups=1)
    gated = dataclasses.replace(plain, name="gated", clock_gating=True)
    stimulus = Stimulus(streams=64, tiles=1, steps_per_tile=4)
    found = measure(
        plain, gated, Flow(CELLS, cache, workers=1), [RECIPES["area"]], stimulus=stimulus, runs=1, vectors=2000
    )
    values = {
        metric: _find(found, "core", metric).values
        for metric in ("area", "sequential area", "clock gate area", "clock power", "clock power, idle")
    }
    assert values["clock gate area"]["plain"] == 0 < values["clock gate area"]["gated"]
    assert values["sequential area"]["plain"] == values["sequential area"]["gated"]
    assert values["area"]["gated"] < 0.98 * values["area"]["plain"]
    # C loads in one step of four, and has about a sixth of the flip-flops; the gates have clock pins of their own.
    # Without a step, hardly anything is clocked.
    assert values["clock power"]["gated"] < 0.95 * values["clock power"]["plain"]
    assert values["clock power, idle"]["plain"] == values["clock power"]["plain"]
    assert 0 < values["clock power, idle"]["gated"] < 0.1 * values["clock power"]["gated"]
    assert found.conditions.flow.clock_gate in CELLS.cells
    assert found.report().designs[1].settings["clock_gating"] is True


def test_pairs_that_cannot_be_compared() -> None:
    small, large = NAMED["nvfp4-small"], NAMED["mixfp4-blackwell"]
    with pytest.raises(InputError, match=r"nvfp4-small and mixfp4-blackwell differ in rows \(4 and 8\)"):
        measure(small, large, Flow(CELLS, workers=1))
    with pytest.raises(InputError, match=r"both 'nvfp4-small'"):
        measure(small, small, Flow(CELLS, workers=1))


def test_plans_keep_blocks_apart_and_flat_sources_whole() -> None:
    instances = {
        "tensor_core": {"element": 4, "operand_decoder": 4},
        "element": {"dot_product": 1},
        "dot_product": {},
        "operand_decoder": {"element_decoder": 16},
        "element_decoder": {},
    }
    source = Source("", "tensor_core", instances)
    assert {job.module: job.boxes for job in plan("x", source, [RECIPES["area"]], [0])} == {
        "tensor_core": ("element", "operand_decoder"),
        "element": ("dot_product",),
        "dot_product": (),
        "operand_decoder": (),
    }
    flat = dataclasses.replace(source, flat=True)
    how = RECIPES["speed"]
    assert plan("x", flat, {"tensor_core": [how]}, range(2)) == [
        Job("x", flat, "tensor_core", (), how, variant) for variant in (0, 1)
    ]
    assert area.counts(source) == {"tensor_core": 1, "element": 4, "dot_product": 4, "operand_decoder": 4}
    assert area.counts(source, "element") == {"element": 1, "dot_product": 1}
    assert area.counts(flat) == {"tensor_core": 1}


PLAIN, MIXED = ((form, form) for form in (NVFP4, MIXFP4))


def test_stimulus_is_the_same_tensors_for_both() -> None:
    stimulus = Stimulus(streams=2, tiles=1, steps_per_tile=2)
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", rows=2, columns=2, groups=1)
    own, untagged = (stimulus.steps(config, formats) for formats in (MIXED, PLAIN))
    assert len(own) == len(untagged) == 2
    assert operands_of(PLAIN, untagged) == Operands(Operand("nvfp4", 0.0), Operand("nvfp4", 0.0))
    assert operands_of(MIXED, own).b.e1m2_share > 0
    again = stimulus.steps(config, MIXED)
    np.testing.assert_array_equal(own[1].bits(), again[1].bits())
    assert np.array([steps.c for steps in own]).std() > 100
    for other in (dataclasses.replace(stimulus, seed=2), stimulus.run(1)):
        bits = other.steps(config, MIXED)[0].bits()
        assert bits.shape == own[0].bits().shape
        assert (bits != own[0].bits()).any()
    assert (own[0].bits() != own[1].bits()).any()


@pytest.mark.parametrize(("pipeline", "tiles"), [(("decoded", "sums"), 1), (("total", "normal"), 3)])
def test_stimulus_that_holds_b(pipeline: tuple[str, ...], tiles: int) -> None:
    config = TensorCoreConfig("x", "nvfp4", "nvfp4", rows=2, columns=2, groups=1, pipeline=pipeline)
    held = Stimulus(hold=4, streams=2, steps_per_tile=8)
    assert held.length(config) == 32
    assert Stimulus(streams=2, steps_per_tile=8).length(config) == 8 * tiles
    assert held.record(config).hold == 4
    for steps in held.steps(config, PLAIN):
        assert len(steps) == 32
        groups = steps.b_codes.reshape(8, 4, -1)
        assert (groups == groups[:, :1]).all()
        assert (groups[1:, 0] != groups[:-1, 0]).any(axis=1).all()
        assert (steps.a_codes[1:] != steps.a_codes[:-1]).any(axis=(1, 2)).all()
        # The sums of four tiles do not fit into the loop: they come back as C.
        assert steps.last.all()
        np.testing.assert_array_equal(steps.c[4:], steps.expected()[:-4])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_stimulus_with_a_share_of_e1m2_blocks(share: float) -> None:
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", rows=2, columns=2, groups=1)
    steps = Stimulus(e1m2=share).steps(config, MIXED)
    for operand in dataclasses.astuple(operands_of(MIXED, steps)):
        assert operand == ("mixfp4", pytest.approx(share, abs=0.08))
    plain = Stimulus(e1m2=share).steps(config, PLAIN)
    assert operands_of(PLAIN, plain).b.e1m2_share == 0
    if share == 0:
        np.testing.assert_array_equal(steps[0].a_codes, plain[0].a_codes)
        np.testing.assert_array_equal(steps[0].a_scales, plain[0].a_scales)


def test_an_operand_without_tags_has_no_share() -> None:
    config = TensorCoreConfig("x", "nvfp4", "mixfp4", rows=2, columns=2, groups=1)
    found = operands_of(config.formats, Stimulus().steps(config, config.formats))
    assert found.a == Operand("nvfp4", 0.0)
    assert found.b.format == "mixfp4"
    assert found.b.e1m2_share > 0.3


def test_stimulus_fits_the_size_of_the_core() -> None:
    assert Stimulus().fitted(256) == Stimulus()
    large, small = Stimulus().fitted(4096), Stimulus().fitted(16)
    assert (large.streams, large.timed) == (4, 16)
    assert (small.streams, small.timed) == (16, 512)
    assert TRAFFIC[0] == Stimulus().traffic


def test_a_recipe_that_saves_next_to_nothing_is_not_taken() -> None:
    order = [RECIPES[name] for name in ("area", "adders", "speed")]
    areas = {order[1]: 10.0, order[0]: 10.1, order[2]: 30.0}
    assert area.without_ties(areas, 0.0, order) == [order[1], order[0], order[2]]
    assert area.without_ties(areas, 0.2, order) == [order[0], order[1], order[2]]

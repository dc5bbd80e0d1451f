"""Where results go, counted by hand, and fused attention against a simulation of every phase."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import ORDERS, Memory, fixed, run
from hwgen.cost.results import ATTENTION, RESULTS, element_bytes, plain, results_of
from hwgen.cost.schedule import last_steps
from hwgen.cost.stream import stream
from hwgen.cost.workloads import load, model
from hwgen.errors import InputError

CORE = NAMED["nvfp4-blackwell"]
PLAIN = TensorCoreConfig("plain", "nvfp4", "nvfp4", 2, 4, 1)
DEEP = TensorCoreConfig("deep", "nvfp4", "nvfp4", 2, 4, 2, pipeline=("operands", "aligned", "total"))
CLOCK_NS = 2.0


def up(value, by):
    return -(-value // by)


def of(config, gemms, roles, operands=None, precision="quantised", attention="unfused", combined=1):
    operands = gemms.n if operands is None else np.array(operands)
    readers = np.append(np.arange(1, len(gemms)), -1)
    return results_of(config, gemms, roles, operands, readers, precision, attention, combined)


def test_results_of_a_linear_layer_by_hand():
    """5 rows of 40 columns, 20 of which go on: two blocks of 16 with a scale each, 9 bytes a block."""
    gemms = Gemms(5, 40, 64, 3)
    for precision, written, read, back in (
        ("quantised", 5 * 2 * 9, 0, 0),
        ("bf16", 5 * 40 * 2, 5 * 40 * 2, 5 * 2 * 9),
        ("fp32", 5 * 40 * 4, 5 * 40 * 4, 5 * 2 * 9),
    ):
        found = of(CORE, gemms, ["linear"], [20], precision)
        sizes = [found.written[0], found.pass_read[0], found.pass_written[0]]
        assert sizes == [written, read, back]
        assert found.quantised.tolist() == [5 * 20]
        ran = run(CORE, gemms, fixed(gemms, 1, 1, 1), Memory(1 << 20, 1e10), CLOCK_NS, found)
        inputs = 3 * (5 + 40) * 4 * 9
        assert ran.dram_read_bytes.tolist() == [inputs + 3 * read]
        assert ran.dram_write_bytes.tolist() == [3 * (written + back)]
        assert ran.pass_bytes.tolist() == [3 * (read + back)]
        assert ran.quantised.tolist() == [3 * 5 * 20]
        # What the pass reads does not go through the operand buffer.
        assert ran.buffer_bytes.tolist() == [ran.operand_bytes[0] + inputs]
        # And it has the DRAM to itself when the GEMM is done: 20 bytes a cycle.
        bare = of(CORE, gemms, ["linear"], [20], precision)
        bare = type(bare)(**{**vars(bare), "pass_read": bare.pass_read * 0, "pass_written": bare.pass_written * 0})
        without = run(CORE, gemms, fixed(gemms, 1, 1, 1), Memory(1 << 20, 1e10), CLOCK_NS, bare)
        assert ran.cycles[0] - without.cycles[0] == pytest.approx(3 * (read + back) / 20)


def test_a_result_has_the_format_of_what_reads_it(tmp_path):
    """However many GEMMs an entry makes, and whatever entries stand between scores and the values that read them."""
    core = NAMED["mixfp4-multi-small"]
    entry = '[[gemm]]\nname = "{}"\nm = {}\nn = {}\nk = {}\n{}\n'
    experts = "experts = 8\nexperts_per_token = 2\n"
    for rates in (("half", "full"), ("full", "half")):
        written = []
        for tokens in (100, 101):
            sizes = ("up", tokens, 256, 64), ("down", tokens, 64, 256)
            parts = [entry.format(*size, f"{experts}rate = '{rate}'") for size, rate in zip(sizes, rates, strict=True)]
            (tmp_path / "moe.toml").write_text("".join(parts))
            workload = load(tmp_path / "moe.toml", "decode", 1, 1)
            given = workload.gemms, workload.roles, workload.operands, workload.readers
            found = results_of(core, *given, "quantised", "unfused")
            up_to = [name.startswith("up") for name in workload.names]
            rows = found.written // workload.gemms.m
            written.append([{*rows[up_to].tolist()}, {*rows[np.logical_not(up_to)].tolist()}])
            quantised = found.quantised * workload.gemms.batch
            expected = 0 if rates[1] == "half" else tokens * 2 * 256
            assert quantised[up_to].sum() == expected
        # 256 columns are 16 blocks of 9 bytes, or 256 bytes of FP8; the 64 that nothing reads are FP4.
        assert written[0] == written[1] == [{256 if rates[1] == "half" else 144}, {36}]
    scores, gate = entry.format("qk", 4, 64, 16, "role = 'scores'\nrate = 'half'"), entry.format("gate", 4, 32, 16, "")
    values = entry.format("pv", 4, 16, 64, "role = 'values'\nrate = 'half'")
    (tmp_path / "attention.toml").write_text(scores + gate + values)
    workload = load(tmp_path / "attention.toml", "decode", 1, 1)
    assert workload.readers.tolist() == [2, 2, -1]
    given = workload.gemms, workload.roles, workload.operands, workload.readers
    assert results_of(core, *given, "quantised", "fused").kept.tolist() == [4 * (64 + 8 * 64), 0, 0]
    assert results_of(core, *given, "quantised", "unfused").written[0] == 4 * 64


def test_results_of_several_experts_are_one_operand():
    """6 rows of 64 columns, two rows to a token: written as they are, read by a pass, and 3 rows written back."""
    gemms = Gemms(6, 64, 32, 5)
    for precision, each in (("quantised", 2), ("bf16", 2), ("fp32", 4)):
        readers = np.array([-1])
        found = results_of(CORE, gemms, ["linear"], gemms.n, readers, precision, "fused", np.array([2]))
        assert found.written.tolist() == found.pass_read.tolist() == [6 * 64 * each]
        assert found.pass_written.tolist() == [3 * 4 * 9]
        assert found.quantised.tolist() == [3 * 64]
    for name, experts, width in (("qwen3-30b-a3b", 8, 2048), ("mixtral-8x7b", 2, 4096)):
        workload = model(name, "prefill", 1, 4096)
        down = [place for place, each in enumerate(workload.names) if each.startswith("down")]
        assert {*workload.combined[down].tolist()} == {experts}
        assert {*np.delete(workload.combined, down).tolist()} == {1}
        found = of(CORE, workload.gemms, workload.roles, workload.operands, "quantised", "fused", workload.combined)
        assert (found.quantised * workload.gemms.batch)[down].sum() == 4096 * width


def test_two_gemms_of_values_have_partial_results_each():
    """As where the rows of values are split in two."""
    gemms = Gemms(64, [4096, 32, 96], [128, 4096, 4096])
    found = of(CORE, gemms, ["scores", "values", "values"], attention="fused")
    assert found.partial.tolist() == [4 * 128, 0, 0]


def test_logits_are_not_quantised():
    gemms = Gemms(2, 100, 64)
    for precision, written in (("quantised", 400), ("bf16", 400), ("fp32", 800)):
        found = of(CORE, gemms, ["logits"], precision=precision)
        assert (found.written[0], found.pass_read[0], found.pass_written[0], found.quantised[0]) == (written, 0, 0, 0)


@pytest.mark.parametrize("precision", RESULTS)
def test_scores_of_fused_attention_do_not_reach_dram(precision):
    workload = model("llama-3.1-8b", "prefill", 2, 256)
    apart, fused = (
        of(CORE, workload.gemms, workload.roles, workload.operands, precision, attention)
        for attention in ("unfused", "fused")
    )
    scores, values = (workload.roles.index(role) for role in ("scores", "values"))
    assert fused.scores.tolist() == [scores if place == values else -1 for place in range(len(workload.gemms))]
    assert (apart.scores == -1).all()
    assert fused.written[scores] == fused.pass_read[scores] == fused.pass_written[scores] == 0
    assert fused.kept[scores] == 1024 * (256 * 8 + 16 * 9)
    # What is quantised is the same, and so is all that has nothing to do with scores.
    assert (fused.quantised == apart.quantised).all()
    others = np.arange(len(workload.gemms)) != scores
    for name in ("written", "pass_read", "pass_written"):
        assert (getattr(fused, name) == getattr(apart, name))[others].all()

    def traffic(results):
        arrangement = fixed(workload.gemms, 1, 2, 2)
        return run(CORE, workload.gemms, arrangement, Memory(1 << 22, 1e11), 1.0, results)

    less = traffic(apart).dram_read_bytes - traffic(fused).dram_read_bytes
    assert (less[[place for place in range(len(less)) if place not in (scores, values)]] == 0).all()
    assert less[values] == 16 * 1024 * 16 * 9, "the scores as operands, once"
    assert [ORDERS[order] for order in traffic(fused).order][values] == "fused"


def test_each_values_has_the_scores_before_it():
    gemms = Gemms([4, 4, 4, 4, 4], [32, 8, 32, 8, 8], [8, 32, 8, 32, 32], 2)
    roles = ["scores", "linear", "scores", "values", "linear"]
    assert of(CORE, gemms, roles, attention="fused").scores.tolist() == [-1, -1, -1, 2, -1]
    # Scores that no GEMM of values takes go to DRAM.
    assert of(CORE, gemms, roles, attention="fused").written[[0, 2]].tolist() == [4 * 2 * 9, 0]


def phases_of(config, memory, arrangement, results, queries, context, head, batch):
    """By order: cycles and bytes read of both GEMMs, bytes of partial results; as the docstring of the grid says."""
    most, rows, columns = arrangement
    height, width = rows * config.rows, columns * config.columns
    turns, row = config.interleave, up(head, 16) * 9
    v = head * up(context, 16) * 9
    products = up(batch, most)
    at_once = up(batch, products)
    usable = memory.buffer_bytes / (2 if memory.double_buffered else 1) / at_once
    rate = memory.dram_bytes_per_second * CLOCK_NS * 1e-9

    def time(phases):
        everything = [
            (work, load * present, store * present)
            for present in [at_once] * (products - 1) + [batch - (products - 1) * at_once]
            for work, load, store in phases
        ]
        if not memory.double_buffered:
            return sum(work + (load + store) / rate for work, load, store in everything) + config.latency
        total = everything[0][1] / rate
        for index, (work, _, _) in enumerate(everything):
            load = everything[index + 1][1] if index + 1 < len(everything) else 0
            before = everything[index - 1][2] if index else 0
            total += max(work, (load + before) / rate)
        return total + everything[-1][2] / rate + config.latency

    def tile(n, k):
        tiles = up(queries, height) * up(n, width) * products
        total = stream(config, last_steps(config, tiles, up(k, config.depth))).cycles
        return (total - config.latency) / tiles

    found = {}
    if 2 * usable / 4 >= turns * height * width * 4:
        tiles_m, tiles_n = up(queries, height), up(context, width)
        band_a = min(queries, height) * (row + 4 * head)
        band_b = min(context, width) * row
        size = min(math.floor((usable / 4 - band_b) / band_a), tiles_m, math.floor(usable / 2 / (height * width * 4)))
        step_b = turns * width * config.groups * 9
        if size >= 1 or band_a + step_b <= usable / 4:
            parts = 1 if size >= 1 else up(head, config.depth)
            phases, groups = [], 0
            for start in range(0, tiles_m, max(size, 1)):
                group, groups = min(max(size, 1), tiles_m - start), groups + 1
                for number in range(tiles_n * parts):
                    load = context * row / tiles_n / parts
                    load += group * queries * row / tiles_m if number == 0 else 0
                    phases.append((group * tile(context, head) / parts, load, 0))
            found["hold A"] = phases, groups, queries * row + groups * context * row, max(size, 1)
        size = math.floor((usable / 4 - min(queries, height) * (row + 4 * head)) / band_b)
        if v > usable / 4:
            pass  # the values would be read again for every band of A
        elif size >= tiles_n:
            load = queries * row / tiles_m
            phases = [
                (tiles_n * tile(context, head), load + (context * row if number == 0 else 0), 0)
                for number in range(tiles_m)
            ]
            found["hold B"] = phases, 1, (queries + context) * row, 1
        elif tiles_n == 1 and (size >= 1 or band_b + turns * height * config.groups * 9 <= usable / 4):
            parts = 1 if size >= 1 else up(head, config.depth)
            phases = [
                (
                    tile(context, head) / parts,
                    queries * row / tiles_m / parts + (context * row if number == 0 else 0),
                    0,
                )
                for number in range(tiles_m * parts)
            ]
            found["hold B"] = phases, 1, (queries + context) * row, 1
    deep, tiles_m, tiles_n = up(context, config.depth), up(queries, height), up(head, width)
    count = tiles_n * deep
    store = results.written[1] / (tiles_m * tiles_n)
    costs = {}
    for order, (phases, groups, read, size) in found.items():
        share = tiles_m / groups / deep
        values = [(share * tile(head, context), v / count, share * store)] * (count * groups)
        partial = 0
        for first in range(0, queries, size * height):
            at_work = min(queries - first, size * height)
            columns = 0
            while columns < context:
                # A block of scores of all rows at work, as wide as half of the space lets it be.
                block = min(math.floor(usable / 2 / (at_work * 4)), context - columns)
                assert 0 < at_work * block * 4 <= usable / 2
                partial += at_work * head * 8 if columns else 0
                columns += block
        costs[order] = time(phases), read, time(values), v * groups, partial * batch
    return costs


@settings(max_examples=200, deadline=None)
@given(
    config=st.sampled_from([PLAIN, DEEP]),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 200), st.integers(1, 40), st.integers(1, 4)),
    arrangement=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    memory=st.builds(
        Memory,
        buffer_bytes=st.integers(1000, 100_000),
        dram_bytes_per_second=st.floats(1e8, 1e12),
        double_buffered=st.booleans(),
    ),
    precision=st.sampled_from(RESULTS),
)
def test_every_phase_of_fused_attention_simulated(config, sizes, arrangement, memory, precision):
    queries, context, head, batch = sizes
    gemms = Gemms(queries, [context, head], [head, context], batch)
    results = of(config, gemms, ["scores", "values"], None, precision, "fused")
    bare = type(results)(
        **{**vars(results), "pass_read": results.pass_read * 0, "pass_written": results.pass_written * 0}
    )
    want = phases_of(config, memory, arrangement, bare, *sizes)
    grid = fixed(gemms, *arrangement)
    if not want:
        with pytest.raises(InputError, match="fused attention needs"):
            run(config, gemms, grid, memory, CLOCK_NS, bare)
        return
    # A band or a step of the values has a quarter of the space.
    if memory.usable_bytes / 4 / up(batch, up(batch, arrangement[0])) < 9 * min(
        min(head, arrangement[2] * 4) * up(context, 16), arrangement[2] * 4 * config.groups * config.interleave
    ):
        with pytest.raises(InputError, match="fused attention needs"):
            run(config, gemms, grid, memory, CLOCK_NS, bare)
        return
    found = run(config, gemms, grid, memory, CLOCK_NS, bare)
    time, read, after, v, partial = want[ORDERS[found.order[0]]]
    assert read == min(each[1] for each in want.values())
    assert time == pytest.approx(min(each[0] for each in want.values() if each[1] == read))
    assert found.dram_read_bytes.tolist() == pytest.approx([read * batch, v * batch])
    assert found.cycles.tolist() == pytest.approx([time, after])
    operands = found.operand_bytes + found.dram_read_bytes
    # Scores in FP32, written and read, and then as operands.
    kept = queries * (8 * context + up(context, 16) * 9) * batch
    assert (found.buffer_bytes - operands).tolist() == [kept, partial]


def test_a_buffer_too_small_for_fused_attention_is_named():
    gemms = Gemms(64, [4096, 128], [128, 4096], 1)
    results = of(CORE, gemms, ["scores", "values"], attention="fused")
    with pytest.raises(InputError, match=r"a buffer of 65,536 bytes .*: fused attention needs .* double buffering"):
        run(CORE, gemms, fixed(gemms, 1, 8, 8), Memory(1 << 16), 1.0, results)
    # With what it asks for it runs.
    run(CORE, gemms, fixed(gemms, 1, 1, 1), Memory(1 << 16), 1.0, plain(gemms))
    need = 64 * (72 + 512) + 64 * 72
    run(CORE, gemms, fixed(gemms, 1, 8, 8), Memory(need * 8), 1.0, results)
    with pytest.raises(InputError, match=f"needs {need * 8:,} bytes"):
        run(CORE, gemms, fixed(gemms, 1, 8, 8), Memory(need * 8 - 8), 1.0, results)


def test_bytes_of_an_element():
    assert [element_bytes(CORE, precision) for precision in ("fp32", "bf16", "quantised")] == [4, 2, 0.5625]
    assert set(ATTENTION) == {"fused", "unfused"}


def test_cores_without_an_output_are_counted():
    """17 x 9 outputs on 3 x 2 cores of 8 x 8 outputs: three bands of rows, two of columns, all cores have some."""
    gemms = Gemms([17, 8, 9], [9, 8, 24], 64, [1, 1, 3])
    found = run(CORE, gemms, fixed(gemms, 2, 3, 2), Memory(1 << 22), 1.0)
    # Two products at once: of one, a half is idle, of three, a quarter. 24 columns fill three of four cores' places.
    assert found.busy.tolist() == pytest.approx([6 / 12, 1 / 12, 3 * 2 * 3 / (2 * 2 * 12)])

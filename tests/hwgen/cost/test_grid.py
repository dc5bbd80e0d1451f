"""The grid and its memory against a simulation of every phase."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import ORDERS, Memory, arrange, fixed, run
from hwgen.cost.results import results_of
from hwgen.cost.schedule import last_steps, schedule
from hwgen.cost.stream import stream
from hwgen.cost.workloads import model
from hwgen.errors import InputError

PLAIN = TensorCoreConfig("plain", "nvfp4", "nvfp4", 2, 4, 1)
DEEP = TensorCoreConfig("deep", "nvfp4", "nvfp4", 2, 4, 2, pipeline=("operands", "aligned", "total"))
SLOT = NAMED["mixfp4-multi-small"]
CLOCK_NS = 2.0


def up(value, by):
    return -(-value // by)


def simulated(config, shape, arrangement, memory, half):
    """Cycles and bytes read in every order that fits: one phase after another, as the docstring of the model says."""
    m, n, k, batch = shape
    most, rows, columns = arrangement
    height, width = rows * config.rows, columns * config.columns
    tiles_m, tiles_n, products = up(m, height), up(n, width), up(batch, most)
    deep = up(k, config.depth // (2 if half else 1))
    at_once = up(batch, products)
    last = batch - (products - 1) * at_once
    # In FP8 a byte an element, and a step is half as deep.
    row, fed = (k, config.depth // 2) if half else (up(k, 16) * 9, config.groups * 9)
    period = max(1, math.ceil(at_once * (height + width) * config.depth / memory.operands_per_cycle))
    total = stream(config, last_steps(config, tiles_m * tiles_n * products, deep), period=period).cycles
    tile = (total - config.latency) / (tiles_m * tiles_n * products)
    usable = memory.buffer_bytes / (2 if memory.double_buffered else 1) / at_once
    rate = memory.dram_bytes_per_second * CLOCK_NS * 1e-9
    store = m * n * 4 / (tiles_m * tiles_n)
    turns = config.interleave
    found = {}
    sides = {
        "hold A": (tiles_m, m, height, tiles_n, n, width),
        "hold B": (tiles_n, n, width, tiles_m, m, height),
    }
    for order, (held_tiles, held, held_height, others, other, other_height) in sides.items():
        band, other_band = min(held, held_height) * row, min(other, other_height) * row
        size = max((size for size in range(held_tiles + 1) if size * band + other_band <= usable), default=0)
        by_step = size == 0
        if by_step and band + turns * other_height * fed > usable:
            continue
        phases, read = [], 0.0
        for start in range(0, held_tiles, size or 1):
            group = min(size or 1, held_tiles - start)
            for number in range(others):
                for part in range(deep if by_step else 1):
                    share = 1 / deep if by_step else 1
                    load = other * row / others * share
                    if number == part == 0:
                        load += group * held * row / held_tiles
                    phases.append((group * tile * share, load, group * store * share))
                    read += load
        found[order] = phases, read
    step = (height + width) * fed
    if turns * step <= usable:
        load = (m * row / tiles_m + n * row / tiles_n) / deep
        count = tiles_m * tiles_n * deep
        found["stream"] = [(tile / deep, load, store / deep)] * count, load * count
    times = {}
    for order, (phases, read) in found.items():
        everything = [
            (work, load * present, store * present)
            for present in [at_once] * (products - 1) + [last]
            for work, load, store in phases
        ]
        if memory.double_buffered:
            time = everything[0][1] / rate
            for index, (work, _, _) in enumerate(everything):
                load = everything[index + 1][1] if index + 1 < len(everything) else 0
                before = everything[index - 1][2] if index else 0
                time += max(work, (load + before) / rate)
            time += everything[-1][2] / rate
        else:
            time = sum(work + (load + before) / rate for work, load, before in everything)
        times[order] = time + config.latency, read * batch
    return times


memories = st.builds(
    Memory,
    buffer_bytes=st.integers(300, 60_000),
    dram_bytes_per_second=st.floats(1e8, 1e12),
    operands_per_cycle=st.one_of(st.just(math.inf), st.integers(30, 2000)),
    double_buffered=st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(
    config_and_half=st.sampled_from([(PLAIN, False), (DEEP, False), (SLOT, False), (SLOT, True)]),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 60), st.integers(1, 300), st.integers(1, 5)),
    arrangement=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
    memory=memories,
)
def test_every_phase_simulated(config_and_half, shape, arrangement, memory):
    config, half = config_and_half
    gemms = Gemms.of([shape], half)
    want = simulated(config, shape, arrangement, memory, half)
    if not want:
        with pytest.raises(InputError, match="buffer of"):
            run(config, gemms, fixed(gemms, *arrangement), memory, CLOCK_NS)
        return
    found = run(config, gemms, fixed(gemms, *arrangement), memory, CLOCK_NS)
    least = min(read for _, read in want.values())
    time, read = want[ORDERS[found.order[0]]]
    assert found.dram_read_bytes[0] == pytest.approx(read) == pytest.approx(least)
    assert found.cycles[0] == pytest.approx(time)
    equals = [time for time, other in want.values() if other == pytest.approx(least)]
    assert found.cycles[0] == pytest.approx(min(equals))
    # No point lies above the roofline.
    assert found.cycles[0] >= max(found.core_cycles[0], found.dram_cycles[0]) * (1 - 1e-12)


def test_without_limits_a_grid_is_one_core_with_larger_tiles():
    rng = np.random.default_rng(2)
    gemms = Gemms.of(rng.integers(1, 300, (200, 4)).tolist())
    for config in (PLAIN, DEEP):
        found = run(config, gemms, fixed(gemms, 1, 1, 1), Memory(math.inf), CLOCK_NS)
        alone = schedule(config, gemms)
        np.testing.assert_allclose(found.cycles, alone.cycles, rtol=1e-12)
        np.testing.assert_array_equal(found.operand_bytes, alone.operand_bytes)
        np.testing.assert_array_equal(found.core_cycles, alone.cycles)
        np.testing.assert_allclose(found.utilisation, alone.utilisation, rtol=1e-12)
        larger = TensorCoreConfig("larger", "nvfp4", "nvfp4", 6, 8, config.groups, pipeline=config.pipeline)
        found = run(config, gemms, fixed(gemms, 1, 3, 2), Memory(math.inf), CLOCK_NS)
        np.testing.assert_array_equal(found.core_cycles, schedule(larger, gemms).cycles)


def test_chosen_arrangements_have_the_fewest_cycles():
    rng = np.random.default_rng(3)
    gemms = Gemms.of(rng.integers(1, 300, (50, 4)).tolist())
    memory = Memory(1 << 20, operands_per_cycle=400)
    chosen = arrange(PLAIN, gemms, 12, memory)
    assert (chosen.cores == 12).all()
    found = run(PLAIN, gemms, chosen, memory, CLOCK_NS)
    sizes = [shape for shape in itertools.product(range(1, 13), repeat=3) if math.prod(shape) == 12]
    tried = [run(PLAIN, gemms, fixed(gemms, *shape), memory, CLOCK_NS) for shape in sizes]
    fewest = np.min([each.core_cycles for each in tried], axis=0)
    np.testing.assert_array_equal(found.core_cycles, fewest)
    reads = [np.where(each.core_cycles == fewest, each.operand_bytes, np.iinfo(np.int64).max) for each in tried]
    np.testing.assert_array_equal(found.operand_bytes, np.min(reads, axis=0))


def test_an_arrangement_is_one_that_the_buffer_can_feed():
    """The best of those that fit, where others would be faster; for attention as for a GEMM alone."""
    workload = model("llama-3.1-8b", "decode", 16, 2048)
    core = NAMED["nvfp4-blackwell"]
    pair = [workload.roles.index(role) for role in ("scores", "values")]
    gemms = Gemms(*(getattr(workload.gemms, name)[pair] for name in ("m", "n", "k", "batch")))
    results = results_of(core, gemms, ["scores", "values"], gemms.n, np.array([1, -1]), "quantised", "fused")
    memory = Memory(1 << 23)

    powers = [2**power for power in range(11)]
    shapes = [shape for shape in itertools.product(powers, repeat=3) if math.prod(shape) == 1024]

    def fits(shape, memory):
        try:
            return run(core, gemms, fixed(gemms, *shape), memory, CLOCK_NS, results).core_cycles
        except InputError:
            return None

    tried = [fits(shape, memory) for shape in shapes]
    best = np.min([each for each in tried if each is not None], axis=0)
    assert any(each is None for each in tried)
    chosen = arrange(core, gemms, 1024, memory, results)
    np.testing.assert_array_equal(run(core, gemms, chosen, memory, CLOCK_NS, results).core_cycles, best)
    blind = arrange(core, gemms, 1024, Memory(math.inf), results)
    with pytest.raises(InputError, match="fused attention needs"):
        run(core, gemms, blind, memory, CLOCK_NS, results)
    # Where nothing fits, what is asked for is the least with which something does; of each GEMM in turn.
    size, asked = 1 << 10, 0
    while asked < 3:
        little = Memory(size)
        try:
            run(core, gemms, arrange(core, gemms, 1024, little, results), little, CLOCK_NS, results)
            break
        except InputError as error:
            need = int(re.search(r"needs ([\d,]+) bytes", str(error))[1].replace(",", ""))
        assert need > size
        size, asked = need, asked + 1
    assert 0 < asked < 3
    assert all(fits(shape, Memory(size - 1)) is None for shape in shapes)


def test_cores_without_a_product_take_no_share_of_the_memory():
    """Fewer products than fit at once, or a last group with fewer, are not slower for that."""
    gemms = Gemms(16, 6144, 4096)
    memory = Memory(1 << 22, 1e11, operands_per_cycle=1024)
    one, eight = (run(PLAIN, gemms, fixed(gemms, batch, 2, 4), memory, CLOCK_NS) for batch in (1, 8))
    for name in ("cycles", "period", "operand_bytes", "dram_read_bytes"):
        np.testing.assert_array_equal(getattr(eight, name), getattr(one, name))
    assert eight.utilisation[0] == pytest.approx(one.utilisation[0] / 8)
    # 128 products on 37 and on 32 are four groups of 32.
    many = Gemms(4, 128, 2048, 128)
    odd, even = (run(PLAIN, many, fixed(many, batch, 1, 1), memory, CLOCK_NS) for batch in (37, 32))
    np.testing.assert_array_equal(odd.cycles, even.cycles)
    np.testing.assert_array_equal(odd.operand_bytes, even.operand_bytes)


def test_what_each_is_bound_by():
    gemms = Gemms([512, 1, 512], [512, 4096, 512], 512)
    core = NAMED["nvfp4-blackwell"]
    fast = Memory(1 << 22, 3e10)
    assert run(core, gemms, fixed(gemms, 1, 2, 2), fast, 10).bound == ["cores", "DRAM", "cores"]
    slow = Memory(1 << 22, 3e10, operands_per_cycle=512)
    found = run(core, gemms, fixed(gemms, 1, 2, 2), slow, 10)
    assert found.bound == ["buffer", "buffer", "buffer"]
    assert found.period.tolist() == [4, 4, 4]


def test_more_of_anything_never_costs_time_or_traffic():
    rng = np.random.default_rng(4)
    gemms = Gemms.of(rng.integers(1, 2000, (100, 4)).tolist())
    core = NAMED["nvfp4-blackwell"]
    shape = fixed(gemms, 1, 2, 2)
    rates = [run(core, gemms, shape, Memory(1 << 18, rate), 10).cycles for rate in (1e9, 1e10, 1e11, 1e12)]
    assert (np.diff(rates, axis=0) <= 0).all()
    sizes = [run(core, gemms, shape, Memory(size, 1e10), 10).dram_read_bytes for size in (1 << 14, 1 << 18, 1 << 22)]
    assert (np.diff(sizes, axis=0) <= 0).all()
    apart, both = (run(core, gemms, shape, Memory(1 << 30, 1e10, double_buffered=twice), 10) for twice in (False, True))
    assert (both.cycles <= apart.cycles).all()


def test_what_cannot_be_counted_is_named():
    gemms = Gemms([1, 1 << 30], [1, 1 << 30], [1, 1])
    with pytest.raises(InputError, match="GEMM 1: too large"):
        run(PLAIN, gemms, fixed(gemms, 1, 1, 1), Memory(1 << 20), CLOCK_NS)
    # Where only what nobody would choose cannot be counted, the best is found all the same.
    large = Gemms(1 << 23, 57344, 8192)
    chosen = arrange(PLAIN, large, 1 << 16, Memory(1 << 24))
    assert chosen.batch.tolist() == [1]
    assert (run(PLAIN, large, chosen, Memory(1 << 24), CLOCK_NS).operand_bytes > 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Memory(0), "buffer_bytes = 0"),
        (lambda: Memory(1, -1), "dram_bytes_per_second = -1"),
        (lambda: Memory(1, math.nan), "dram_bytes_per_second = nan"),
        (lambda: Memory(1, operands_per_cycle=0), "operands_per_cycle = 0: must be at least 1"),
        (lambda: fixed(Gemms(1, 1, 1), 1, 0, 1), "rows = 0"),
        (lambda: arrange(PLAIN, Gemms(1, 1, 1), 0, Memory(1)), "cores = 0"),
        (
            lambda: run(PLAIN, Gemms(1, 1, 99), fixed(Gemms(1, 1, 1), 1, 1, 1), Memory(100), 1),
            r"a buffer of 100 bytes \(.* MiB\): one step of every core needs 108 bytes",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()

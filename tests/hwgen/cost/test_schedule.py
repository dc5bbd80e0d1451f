from dataclasses import replace

import numpy as np
import pytest

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.cost.gemms import Gemms, TooLargeError, product
from hwgen.cost.schedule import core_cycles, last_steps, schedule
from hwgen.cost.stream import stream
from hwgen.errors import InputError
from sim.steps import schedule as cut
from sim.unscaled import rounded

BLACKWELL = replace(NAMED["mixfp4-blackwell"], pipeline=("decoded", "sums", "terms"))
DEEP = TensorCoreConfig("deep", "nvfp4", "nvfp4", 2, 4, 1, pipeline=("terms", "aligned", "total", "normal"))


def test_a_product_of_many_tiles():
    """8 x 8 outputs and 64 along K: 2 x 3 x 5 tiles of 3 steps."""
    found = schedule(BLACKWELL, Gemms(16, 24, 129, 5))
    assert found.tiles.tolist() == [30]
    assert found.steps.tolist() == [90]
    assert found.cycles.tolist() == [90 + BLACKWELL.latency]
    assert found.stalls.tolist() == [BLACKWELL.latency]
    # Of one step: 16 rows of 4 blocks, each 8 bytes of codes and its scale.
    assert found.operand_bytes.tolist() == [90 * 16 * 4 * 9]
    assert found.result_bytes.tolist() == [30 * 64 * 4]
    assert found.utilisation[0] == pytest.approx(16 * 24 * 129 * 5 / ((90 + BLACKWELL.latency) * 4096))


def test_half_the_rate_takes_the_steps_that_a_core_is_given():
    """7 x 9 outputs and K = 100 in FP8 on 4 x 4 outputs: six tiles of 13 steps, in rounds of five."""
    config = NAMED["mixfp4-multi-small"]
    found = schedule(config, Gemms([7, 7], 9, 100, half=[False, True]))
    steps = cut(config, *(rounded(np.zeros((m, 100), np.float32), "e4m3") for m in (7, 9)))
    assert found.steps.tolist() == [10 * 7, len(steps)] == [70, 130]
    assert found.operand_bytes.tolist() == [6 * 7 * 8 * 9, 6 * 13 * 8 * 8]
    assert found.utilisation[1] == pytest.approx(7 * 9 * 100 / (found.cycles[1] * 128))


def test_a_single_output():
    found = schedule(BLACKWELL, Gemms(1, 1, 1))
    assert (found.steps[0], found.cycles[0]) == (1, 1 + BLACKWELL.latency)
    assert found.utilisation[0] == 1 / (found.cycles[0] * 4096)


def test_tiles_of_a_batch_share_rounds():
    """Five products of one tile each take two rounds of four, three turns of which stay empty."""
    assert DEEP.interleave == 4
    found = schedule(DEEP, Gemms(2, 4, 32, 5))
    assert found.steps.tolist() == [16]
    assert found.empty.tolist() == [6]
    # The last result leaves three steps before the last step.
    assert found.cycles.tolist() == [16 - 3 + DEEP.latency]
    assert found.operand_bytes.tolist() == [10 * 6 * 9]


def test_order_of_the_steps():
    two = TensorCoreConfig("two", "nvfp4", "nvfp4", 1, 1, 1, pipeline=("total",))
    assert last_steps(two, 3, 2).astype(int).tolist() == [0, 0, 1, 1, 0, 0, 1, 0]


def test_many_at_once_are_each_alone():
    rng = np.random.default_rng(1)
    shapes = rng.integers(1, 200, (50, 4))
    for config in (BLACKWELL, DEEP):
        for period in (1, 3):
            together = schedule(config, Gemms.of(shapes.tolist()), period)
            for index, shape in enumerate(shapes.tolist()):
                alone = schedule(config, Gemms.of([shape]), period)
                assert together.cycles[index] == alone.cycles[0]
                assert together.utilisation[index] == alone.utilisation[0]


def test_slower_operands_never_take_fewer_cycles():
    tiles, steps = np.arange(1, 40), np.arange(40, 1, -1)
    cycles = np.array([core_cycles(DEEP, tiles, steps, period) for period in range(1, 9)])
    assert (np.diff(cycles, axis=0) > 0).all()


def test_periods_of_each():
    mixed = core_cycles(DEEP, np.array([9, 9, 9]), np.array([3, 3, 3]), [1, 2, 7])
    alone = [int(core_cycles(DEEP, np.array([9]), np.array([3]), period)[0]) for period in (1, 2, 7)]
    assert mixed.tolist() == alone


def test_bad_streams_are_named():
    with pytest.raises(InputError, match="period = 0"):
        core_cycles(DEEP, np.array([1]), np.array([1]), 0)
    with pytest.raises(InputError, match="period = -1"):
        stream(DEEP, [True], period=-1)
    with pytest.raises(InputError, match="take: must be a sequence of cycles"):
        stream(DEEP, [True], take=[False, False])
    with pytest.raises(InputError, match="offer: must be"):
        stream(DEEP, [True], offer=[])
    with pytest.raises(InputError, match="first: of 2 steps, last of 1"):
        stream(DEEP, [True], first=[True, True])


def test_what_cannot_be_counted_is_named():
    deep = 1 << 60
    with pytest.raises(InputError, match=r"GEMM 1: too large: at most 2\^62"):
        schedule(TensorCoreConfig("huge", "nvfp4", "nvfp4", 64, 64, 1), Gemms([1, 1], [1, 1], [1, deep]))
    assert (schedule(BLACKWELL, Gemms(1, 1, deep // 64)).operand_bytes > 0).all()
    with pytest.raises(TooLargeError) as refused:
        product([1, 1 << 61], 4, places=np.array([3, 7]))
    assert refused.value.place == 7


def test_no_steps_take_no_time():
    found = stream(DEEP, [])
    assert (found.cycles, len(found.accepted), len(found.taken)) == (0, 0, 0)

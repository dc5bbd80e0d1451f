"""A fixed-point number and an FP32 number, added and rounded once, against integers."""

import itertools

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.fixed_point import sum_width
from hwgen.rtl.accumulate.round_sum import RoundSum
from sim.golden import parts

INF, NAN, MINUS = 0x7F800000, 0x7FFFFFFF, 0x80000000
UNIT = 129  # the sum counts 2^-20, everything here 2^-149

CONFIGS = [
    TensorCoreConfig("x", form, form, 1, 1, 1, numerics="exact", largest_depth=depth, pipeline=pipeline)
    for form, depth, pipeline in [
        ("nvfp4", 1 << 16, ()),
        ("mixfp4", 1 << 24, ("normal",)),
        ("nvfp4", 100_000, ("total", "normal")),
    ]
]
configs = pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda config: "-".join((config.a.name, str(config.largest_depth), *config.pipeline))
)


def expected(total, c, nan=0):
    field, fraction = c >> 23 & 255, c & 0x7FFFFF
    if nan or (field == 255 and fraction):
        return NAN
    if field == 255:
        return c
    addend, exponent = parts.fields(c)
    return parts.rounded((total << UNIT) + (addend << exponent - 23 + 149), -149, "nearest_even")


def check(config, evaluate, cases):
    """Cases are (sum, C) or (sum, C, NaN)."""
    width = sum_width(config)
    assert all(-(1 << width - 1) < total < 1 << width - 1 for total, *_ in cases)
    always = {f"enable_{register}": 1 for register in config.pipeline}
    stimuli = [{"sum": case[0], "c": case[1], "nan": case[2] if case[2:] else 0, **always} for case in cases]
    for case, outputs in zip(cases, evaluate(RoundSum(config), stimuli), strict=True):
        want = expected(*case)
        assert outputs["d"] == want, f"{case[0]:x}, C {case[1]:08x}: {outputs['d']:08x}, not {want:08x}"


def largest(config):
    return (1 << sum_width(config) - 1) - 1


def test_reference_on_known_answers():
    one = 1 << 20
    assert expected(one, 0) == 0x3F800000
    assert expected(-one, 0x3F800000) == 0
    assert expected(0, MINUS) == expected(0, 0) == 0
    assert expected(0, 0x80000001) == 0x80000001
    assert expected(one, 0x33800000) == 0x3F800000  # 1 + 2^-24, a tie
    assert expected(one, 0x33800001) == 0x3F800001
    assert expected(one, 0xB3000000) == 0x3F800000  # 1 - 2^-25, a tie as well
    assert expected(one, 0xB3000001) == 0x3F7FFFFF
    assert expected(one, 0x7F7FFFFF) == 0x7F7FFFFF
    assert parts.rounded((1 << 24) - 1 << 253, -149, "nearest_even") == 0x7F7FFFFF
    assert (
        parts.rounded((1 << 25) - 1 << 252, -149, "nearest_even") == INF
    )  # not even the largest C and sum come to that


@configs
def test_every_exponent_of_c(config, evaluate):
    """Beside nothing, the smallest and the largest sum, both signs: dominating, dominated and sticky."""
    sums = [0, 1, -1, 3 << 20, -(5 << 30) - 1, largest(config), -largest(config)]
    cases = []
    for field, fraction in itertools.product(range(256), (0, 1, 0x7FFFFF)):
        index = 3 * field + fraction % 3
        sign = MINUS if index & 1 else 0
        cases += [(sums[(index + turn) % len(sums)], sign | field << 23 | fraction) for turn in (0, 2)[: 1 + index % 2]]
    check(config, evaluate, cases)


@configs
def test_every_bit_of_the_sum(config, evaluate):
    """Powers of two and their neighbours, alone and with C at a half, a quarter and far less of their last place."""
    cases = []
    for bit in range(sum_width(config) - 1):
        for total in ((1 << bit), (1 << bit) - 1, (1 << bit) + 1 if bit < sum_width(config) - 2 else 0):
            last = 127 - 20 + bit - 23
            for turn, field in enumerate((0, last - 1, last - 2, last - 30)):
                sign = MINUS if (bit + turn) & 1 else 0
                cases.append((total if bit & 2 else -total, sign | field << 23))
    check(config, evaluate, cases)


@configs
def test_ties_to_even(config, evaluate):
    """Half a last place, and one unit more or less, over even and odd ones and a carry into the next binade."""
    cases = []
    for significand, bit, off, sign in itertools.product(
        (0x800000, 0x800001, 0xFFFFFE, 0xFFFFFF), (1, 2, 9, 28), (-1, 0, 1), (1, -1)
    ):
        cases.append((sign * ((significand << bit) + (1 << bit - 1) + off), 0))
        # The same with C for all but the half, and C for the half alone.
        c = (sign < 0) << 31 | (127 - 20 + 23 + bit) << 23 | significand & 0x7FFFFF
        cases.append((sign * ((1 << bit - 1) + off), c))
        half = (127 - 20 + bit - 1) << 23
        cases += [(sign * (significand << bit), half | off & 1), (sign * (significand << bit), half | MINUS | off & 1)]
    check(config, evaluate, cases)


@configs
def test_cancellation(config, evaluate):
    """C is the negative of the sum but for some units, or for what lies below them."""
    rng = np.random.default_rng(config.largest_depth)
    cases = []
    for bits in range(1, sum_width(config) - 1):
        total = int.from_bytes(rng.bytes(10), "little") & (1 << bits - 1) - 1 | 1 << bits - 1
        negated = parts.rounded(-total, UNIT - 149, "nearest_even")
        cases += [(total, negated), (-total, negated ^ MINUS), (total, negated + 1), (-total, (negated - 1) ^ MINUS)]
        # All but the top bit of the sum is left.
        cases.append((total, MINUS | (127 - 20 + bits - 1) << 23))
    check(config, evaluate, cases)


@configs
def test_c_where_the_window_ends(config, evaluate):
    """At the exponents where C begins to be the result, and where it begins to lie beneath the window."""
    top = 127 + sum_width(config) - 21 + 24
    cases = []
    for field, fraction in itertools.product((*range(top - 3, top + 3), *range(78, 110)), (0, 1, 0x555555, 0x7FFFFF)):
        for total in (
            (1, -1, 2, -3) if field < top - 3 else (1, largest(config), -largest(config), largest(config) >> 1)
        ):
            cases.append((total, (fraction & 1) << 31 | field << 23 | fraction))
    check(config, evaluate, cases)


@configs
def test_c_alone(config, evaluate):
    """The sum is zero: every number stays what it is, subnormals and infinities too, but -0."""
    rng = np.random.default_rng(1)
    numbers = [0, MINUS, 1, MINUS | 1, 0x7FFFFF, 0x807FFFFF, 0x800000, INF, INF | MINUS, 0x7F7FFFFF]
    numbers += (rng.integers(0, 0x7F800000, 200) | rng.choice([0, MINUS], 200)).tolist()
    check(config, evaluate, [(0, c) for c in numbers])
    assert [expected(0, c) for c in numbers] == [c if c != MINUS else 0 for c in numbers]


@configs
def test_nan(config, evaluate):
    cases = [(total, c, 1) for total in (0, 1, -5) for c in (0, 0x3F800000, INF, MINUS | INF, NAN, MINUS)]
    cases += [(total, c) for total in (0, 1, -5) for c in (0x7F800001, 0xFFC12345, NAN, 0xFFFFFFFF)]
    assert {expected(*case) for case in cases} == {NAN}
    check(config, evaluate, cases)


@configs
def test_random(config, evaluate):
    rng = np.random.default_rng(2)
    cases = []
    for _ in range(600):
        bits = int(rng.integers(1, sum_width(config)))
        total = int.from_bytes(rng.bytes(10), "little") & (1 << bits) - 1
        if rng.random() < 0.4:  # few ones, or many, for ties and long carries
            total &= -1 << int(rng.integers(bits))
        if rng.random() < 0.4:
            total |= (1 << int(rng.integers(bits))) - 1
        total = min(total, largest(config))
        field = int(np.clip(127 - 20 + bits + rng.integers(-60, 40), 0, 254))
        fraction = int(rng.integers(1 << 23)) & int(rng.choice([0, 0x7FFFFF, 0x7FF000]))
        cases.append((total if rng.random() < 0.5 else -total, int(rng.integers(2)) << 31 | field << 23 | fraction))
    check(config, evaluate, cases)

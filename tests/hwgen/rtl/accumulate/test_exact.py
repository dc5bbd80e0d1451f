"""Exact accumulation over whole tiles, cycle by cycle, against integers."""

import itertools

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.exact import ExactAccumulate, exact_controls, exact_registers
from hwgen.rtl.accumulate.fixed_point import sum_width
from hwgen.rtl.accumulate.terms import terms_layout
from sim.golden import parts

ONE, INF, NAN, MINUS = 0x3F800000, 0x7F800000, 0x7FFFFFFF, 0x80000000
# The largest block of each format: magnitude of the term, and its place
LARGEST = {"nvfp4": (16 * 12 * 12 * 14 * 14, 28), "mixfp4": (16 * 7 * 7 * 14 * 14, 30)}


def core(form, groups, registers=(), largest_depth=1 << 16):
    return TensorCoreConfig(
        "x", form, form, 1, 1, groups, numerics="exact", largest_depth=largest_depth, pipeline=("terms", *registers)
    )


CONFIGS = [
    core("nvfp4", 1),
    core("mixfp4", 1, ("aligned", "total", "normal")),
    core("mixfp4", 3, ("aligned",)),
    core("nvfp4", 4, ("total", "normal")),
]
configs = pytest.mark.parametrize("config", CONFIGS, ids=lambda c: "-".join((c.a.name, str(c.groups), *c.pipeline[1:])))


def fp32(value):
    """Bits of the nearest FP32 number, ties to even, of an integer in units of 2^-20."""
    return parts.rounded(value, -20, "nearest_even")


def pack(config, terms, nan=0):
    fields = [{"sign": sign, "magnitude": magnitude, "place": place} for sign, magnitude, place in terms]
    return terms_layout(config).const({"terms": fields, "nan": nan}).as_value().value


def value(terms):
    return sum((-magnitude if sign else magnitude) << place for sign, magnitude, place in terms)


def answers(config, stimuli, evaluate):
    """Results of stimuli, each with the C of its step, which comes where the sum is loaded: behind ``aligned``."""
    if "aligned" not in config.pipeline:
        return [outputs["d"] for outputs in evaluate(ExactAccumulate(config), stimuli)]
    late, c = [], 0
    for stimulus in stimuli:
        late.append(stimulus | {"c": c})
        c = stimulus["c"] if stimulus["enable_aligned"] else c
    return [outputs["d"] for outputs in evaluate(ExactAccumulate(config), [*late, {"c": c}])][:-1]


def results(config, steps, evaluate):
    """What comes out for (terms, first, C, NaN), a step in every cycle, everything complete."""
    always = dict.fromkeys(exact_controls(config), 1)
    stimuli = [{"terms": pack(config, terms, nan), "first": first, "c": c, **always} for terms, first, c, nan in steps]
    return answers(config, stimuli, evaluate)


def some_terms(config, rng):
    magnitude, place = LARGEST[config.a.name]
    return [
        (int(rng.integers(2)), int(rng.integers(magnitude + 1)), int(rng.integers(place + 1)))
        for _ in range(config.groups)
    ]


@configs
def test_every_prefix_of_a_tile(config, evaluate):
    """Each step's result is that of the sum so far, never rounded on the way; C counts in first steps alone."""
    rng = np.random.default_rng(config.groups)
    steps, want = [], []
    total = 0
    for _ in range(250):
        terms = some_terms(config, rng)
        first = not steps or rng.random() < 0.1
        c = int(rng.integers(-1000, 1000))
        total = value(terms) + (c << 20 if first else total)
        steps.append((terms, first, fp32(c << 20), 0))
        want.append(fp32(total))
    assert results(config, steps, evaluate) == want


@configs
@pytest.mark.parametrize("sign", [0, 1])
def test_longest_tile_at_full_magnitude(config, sign, evaluate):
    """As many blocks as there may be, all the largest, and back to nothing; with C of full precision beside them."""
    config = core(config.a.name, config.groups, config.pipeline[1:], largest_depth=4096)
    magnitude, place = LARGEST[config.a.name]
    count = config.largest_steps
    steps = [([(sign, magnitude, place)] * config.groups, index == 0, ONE + 1, 0) for index in range(count)]
    total = (-1) ** sign * config.groups * (magnitude << place)
    # 1 + 2^-23 is lost beside the rest, and is there when the rest is gone.
    back = [([(1 - sign, magnitude, place)] * config.groups, False, 0, 0)] * count
    found = results(config, [*steps, *back], evaluate)
    assert found[:count] == [fp32(total * (index + 1) + (1 << 20)) for index in range(count)]
    assert found[-1] == ONE + 1
    assert abs(total) * count < 1 << sum_width(config) - 1 <= 2 * abs(total) * (count + 1)


@configs
def test_nan_stays_until_the_next_tile(config, evaluate):
    zero, one = [(0, 0, 0)] * config.groups, [(0, 1, 20)] + [(0, 0, 0)] * (config.groups - 1)
    steps = [
        *((one, True, 0, 0), (one, False, 0, 0), (one, False, 0, 1), (one, False, 0, 0), (zero, False, 0, 0)),
        *((one, True, 0, 0), (one, True, 0, 1), (one, False, ONE, 0), (one, True, ONE, 0), (zero, False, 0, 0)),
        *((one, True, 0x7F800001, 0), (one, False, 0, 0), (one, True, INF, 0), (zero, False, 0, 0), (one, False, 0, 1)),
        *((zero, True, MINUS, 0), (zero, False, 0, 0)),
    ]
    two = 0x40000000
    want = [*(ONE, two, NAN, NAN, NAN), *(ONE, NAN, NAN, two, two), *(NAN, NAN, INF, INF, NAN), *(0, 0)]
    assert results(config, steps, evaluate) == want


@configs
def test_registers_hold(config, evaluate):
    """Steps that are not let in leave no trace, at any register; here all of them stop at once."""
    rng = np.random.default_rng(9)
    enables = [*[True] * 6, *(bool(bit) for bit in rng.integers(0, 2, 60)), True]
    stimuli, values = [], []
    total = 0
    for index, enable in enumerate(enables):
        terms = some_terms(config, rng)
        c = int(rng.integers(100))
        first = index % 7 == 0
        stimuli.append(
            {"terms": pack(config, terms), "first": first, "c": fp32(c << 20)}
            | {name: name == "complete" or enable for name in exact_controls(config)}
        )
        if enable:
            total = value(terms) + (c << 20 if first else total)
            values.append(fp32(total))
    found = answers(config, stimuli, evaluate)
    # Behind the last input the clock goes on, with the last enable.
    stages = len(exact_registers(config))
    edges = list(itertools.accumulate([*enables, *[True] * stages]))
    assert found == [values[edges[index + stages - 1] - stages] for index in range(len(found))]


def test_an_incomplete_sum_is_kept_from_the_rounding(evaluate):
    config = CONFIGS[0]
    rng = np.random.default_rng(3)
    stimuli = [
        {"terms": pack(config, some_terms(config, rng)), "first": index == 0, "c": ONE, "enable_sum": 1, "complete": 0}
        for index in range(20)
    ]
    # C alone, which does not change: nothing toggles.
    assert {outputs["d"] for outputs in evaluate(ExactAccumulate(config), stimuli)} == {ONE}

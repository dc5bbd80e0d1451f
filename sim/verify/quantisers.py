"""Quantisers of the generator against the golden model: what they are fed, and the comparison.

==========  ========================================================================================================
batch       blocks
==========  ========================================================================================================
alone       every BF16 number, the others 0; tensor scales from the smallest to the largest
beside      every BF16 number beside a largest number that gives a block scale of each exponent, and a saturated one
scales      every BF16 significand as the largest, every significand of a tensor scale, every exponent of a block scale;
            those of FP32 with bits below, or none. Of two candidates once of each
midpoints   every significand of a tensor scale, every significand of a block scale and every midpoint of two, numbers
            at midpoints of the codes and beside them by one bit, as far as the input tells them apart
drawn       gaussian, heavy-tailed and outlier-channel tensors
ties        numbers at midpoints and block scales at theirs, and beside them, by one bit anywhere in the lower half
flips       two candidates: pairs of blocks that differ by one unit of one number, and take another candidate each
bits        any bits at all: subnormal numbers, NaN and infinity among them
near        any significands, exponents near one another, any tensor scale
pairs       rules by magnitudes: every largest number beside every other one that is not 0, in the bits of the rule
            (of more than 8 bits some), three lanes at a time
thresholds  rules by magnitudes: numbers at the bounds of the rule, and one unit beside them
==========  ========================================================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.errors import MismatchError, ToolError
from sim import golden
from sim.engines.quantisers import Quantised, QuantiserEngine, TensorScaleWords
from sim.tensors import KINDS, generate
from sim.verify.bins import Goals
from sim.verify.coverage import Counts, CoverageFigures, complete, empty, figures, impossible, missed
from sim.verify.quantiser_goals import count_quantised, quantiser_goals

__all__ = [
    "ENOUGH",
    "Batch",
    "Comparison",
    "ComparisonFigures",
    "batches",
    "compare",
    "counterpart",
    "first_round",
    "scale_words",
    "verify",
]

ENOUGH = 1 << 26
"""Numbers of a run that is to meet all goals."""

_BLOCKS = 1 << 13
"""Blocks of a batch that is drawn."""
_ALONE = (-100, -99, -60, 0, 61, 126)
"""Exponents of the tensor scales of single numbers."""
_PEAKS = 19
"""Largest numbers beside single ones: those of scales 2^8 to 2^-9, and one above."""
_MIDPOINTS = 1 << 8
"""Blocks at midpoints for each tensor scale."""
_PAIRS = 1 << 8
"""Pairs of blocks of which one unit decides, of a batch."""
_FLIPS = 12
"""Batches of these before all others that are drawn: what a single bit of an error is worth shows in few of them."""


class Batch(NamedTuple):
    """Blocks with one tensor scale."""

    kind: str
    words: NDArray[np.uint32]
    """FP32, (n, 16)."""
    scale: np.float32


class ComparisonFigures(TypedDict):
    """What a comparison of a quantiser has found equal, and covered.

    Parameters
    ----------
    elements
        Numbers that were compared.
    cycles
        Of the clock.
    seconds, cpu_seconds
        That it took: by the clock, and of all processors.
    elements_per_second
        Numbers by the clock.
    goals, hit
        Coverage goals, and how many of them had an event.
    complete_after
        Numbers after which all had one; null where some had none.
    batches
        Numbers, by kind of batch.
    coverage
        By group of goals.
    """

    elements: int
    cycles: int
    seconds: float
    cpu_seconds: float
    elements_per_second: int
    goals: int
    hit: int
    complete_after: int | None
    batches: dict[str, int]
    coverage: dict[str, CoverageFigures]


@dataclass
class Comparison:
    """What was compared, and found equal.

    Parameters
    ----------
    goals
        What is to be covered.
    counts
        Events by group of goals and bin.
    elements
        Numbers, by batch.
    cycles
        Of the clock.
    seconds, cpu_seconds
        That it took: by the clock, and of all processors.
    complete_after
        Numbers after which all goals were met; None if they were not.
    """

    goals: dict[str, Goals]
    counts: Counts
    elements: dict[str, int] = field(default_factory=dict)
    cycles: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    complete_after: int | None = None

    @property
    def done(self) -> int:
        """Numbers that were compared."""
        return sum(self.elements.values())

    def missed(self) -> list[str]:
        """Goals without an event, in words."""
        return missed(self.goals, self.counts)

    def as_dict(self) -> ComparisonFigures:
        """Ready for JSON."""
        groups = figures(self.goals, self.counts)
        return {
            "elements": self.done,
            "cycles": self.cycles,
            "seconds": round(self.seconds, 1),
            "cpu_seconds": round(self.cpu_seconds, 1),
            "elements_per_second": round(self.done / self.seconds),
            "goals": sum(group["goals"] for group in groups.values()),
            "hit": sum(group["hit"] for group in groups.values()),
            "complete_after": self.complete_after,
            "batches": self.elements,
            "coverage": groups,
        }


def counterpart(config: QuantiserConfig) -> golden.Quantiser:
    """The golden model of a quantiser."""
    rules = {rule.name: rule for rule in golden.SELECTIONS}
    selection = rules[config.selection](config.error_bits) if config.selection is not None else None
    return golden.Quantiser(config.format, config.rule, selection, config.tensor_scale_bits)


def scale_words(scale: np.float32, bits: int) -> TensorScaleWords:
    """What the ports take of a tensor scale with so many bits."""
    fraction, exponent = np.frexp(float(scale))
    significand = int(np.ldexp(fraction, bits))
    return TensorScaleWords(significand - (1 << bits - 1), int(exponent) - 1)


def batches(config: QuantiserConfig, seed: int) -> Iterator[Batch]:
    """Batches without an end: those of every BF16 number first, then others by turns."""
    rng = np.random.default_rng(seed)
    yield from _single(config, rng)
    yield from _scales(config, rng)
    if config.by_magnitude:
        yield _pairs(config, rng)
    for _ in range(_FLIPS * config.chooses):
        yield _flips(config, rng)
    while True:
        for kind in KINDS:
            yield _drawn(config, rng, kind)
        for others in _others(config):
            yield others(config, rng)


def first_round(config: QuantiserConfig) -> int:
    """Number of batches until there has been one of each kind, and one more."""
    singles, scales = len(_ALONE) + _PEAKS, 1 << min(config.tensor_scale_bits, 8) - 1
    return singles + 2 * scales + config.by_magnitude + _FLIPS * config.chooses + len(KINDS) + len(_others(config)) + 1


def _others(config: QuantiserConfig) -> list[Callable[[QuantiserConfig, np.random.Generator], Batch]]:
    """What takes turns with drawn tensors."""
    return [_ties, _bits, _near, *[_flips] * config.chooses, *[_thresholds] * config.by_magnitude]


def _words(x: NDArray[np.float32]) -> NDArray[np.uint32]:
    return np.ascontiguousarray(x).view(np.uint32).reshape(-1, BLOCK)


def _drawn(config: QuantiserConfig, rng: np.random.Generator, kind: str) -> Batch:
    """A tensor of a kind, with the tensor scale that it asks for."""
    x = generate(kind, (64, _BLOCKS * BLOCK // 64), int(rng.integers(1 << 31)))
    x *= np.float32(2.0 ** rng.integers(-20, 21))
    return Batch("drawn", _words(x), counterpart(config).tensor_scale(x))


def _any_scale(config: QuantiserConfig, rng: np.random.Generator, low: int = -100, high: int = 126) -> np.float32:
    """A tensor scale with any significand, and an exponent from one to the other."""
    bits = config.tensor_scale_bits
    exponent = int(rng.integers(low, high + 1))
    significand = 1 << bits - 1 if exponent == 126 else int(rng.integers(1 << bits - 1, 1 << bits))
    return np.float32(np.ldexp(float(significand), exponent - bits + 1))


def _single(config: QuantiserConfig, rng: np.random.Generator) -> Iterator[Batch]:
    """Every BF16 number, alone and beside a largest one, each in a lane of its own."""
    numbers = np.arange(1 << 16, dtype=np.uint32) << 16
    lanes = np.arange(1 << 16) % BLOCK
    for exponent in _ALONE:
        words = np.zeros((1 << 16, BLOCK), np.uint32)
        words[np.arange(1 << 16), lanes] = numbers
        yield Batch("alone", words, _any_scale(config, rng, exponent, exponent))
    for binade in range(_PEAKS):
        scale = _any_scale(config, rng, -20, 20)
        peak = np.float32(config.candidates[0].top * 2.0 ** (9 - binade) * rng.uniform(1, 1.9) * float(scale))
        words = np.zeros((1 << 16, BLOCK), np.uint32)
        words[np.arange(1 << 16), lanes] = numbers
        words[np.arange(1 << 16), (lanes + 1 + np.arange(1 << 16) // BLOCK % 15) % BLOCK] = peak.view(np.uint32)
        yield Batch("beside", words, scale)


def _scales(config: QuantiserConfig, rng: np.random.Generator) -> Iterator[Batch]:
    """All that a block scale follows from, but the low bits of FP32; significands of more bits than 8 are drawn."""
    bits = config.tensor_scale_bits
    numbers = np.arange(1 << min(bits, 8) - 1) << max(bits - 8, 0)
    for number in numbers:
        significand = (1 << bits - 1) + int(number) + int(rng.integers(1 << max(bits - 8, 0)))
        exponent = int(rng.integers(-80, 80))
        fields, rest = np.meshgrid(np.arange(-8, 16) + exponent + 126, np.arange(1 << 7) << 16)
        low = rng.choice([0, 0x8000], fields.size) | rng.choice([0, 1, 0x80, 0x100], fields.size)
        words = np.zeros((fields.size, BLOCK), np.uint32)
        peaks, lanes = (fields << 23 | rest).ravel() | low, rng.integers(0, BLOCK, fields.size)
        words[np.arange(fields.size), lanes] = peaks
        if config.chooses:
            # A number alone is of one candidate mostly. With others at 27/32 of it the block is of the other one.
            others = np.repeat(peaks.astype(np.uint32).view(np.float32)[:, None], BLOCK, axis=1) * np.float32(27 / 32)
            spread = np.ascontiguousarray(others).view(np.uint32)
            spread[np.arange(fields.size), lanes] = peaks
            words = np.concatenate([words, spread])
        scale = np.float32(np.ldexp(float(significand), exponent - bits + 1))
        yield Batch("scales", words, scale)
        yield _midpoints(config, scale, rng)


def _midpoints(config: QuantiserConfig, tensor_scale: np.float32, rng: np.random.Generator) -> Batch:
    """Multiples of a quarter of block scales of all significands, cut to the input, and beside them by a bit.

    Half of the scales are midpoints of UE4M3, and then the largest number is beside its multiple, too.
    """
    half = config.numbers.width == 16
    midway = rng.random((_MIDPOINTS, 1)) < 0.5
    significands = rng.integers(8, 16, midway.shape) + midway / 2
    scales = np.ldexp(significands, rng.integers(-8, 5, midway.shape)) * float(tensor_scale)
    top = rng.choice([candidate.top for candidate in config.candidates], midway.shape)
    quarters = rng.integers(1, 4 * top, (_MIDPOINTS, BLOCK))
    x = (scales * np.where(np.arange(BLOCK) == 0, top, quarters / 4)).astype(np.float32)
    words = _words(x).astype(np.int64) & (0xFFFF0000 if half else 0xFFFFFFFF)
    beside = rng.integers(-1, 2, words.shape) * (midway | (np.arange(BLOCK) > 0))
    beside <<= 16 if half else rng.choice([0, *range(13)], words.shape)
    words = words + beside | rng.integers(0, 2, words.shape) << 31
    return Batch("midpoints", rng.permuted(words.astype(np.uint32), axis=1), tensor_scale)


def _ties(config: QuantiserConfig, rng: np.random.Generator) -> Batch:
    """Multiples of eighths of a scale, or beside them by a bit; the largest number a midpoint of scales."""
    tensor_scale = _any_scale(config, rng, -100, 100)
    if config.numbers.width == 16:
        # BF16 numbers are at midpoints of short scales only.
        tensor_scale = np.float32(2.0 ** int(rng.integers(-100, 101)))
    top = rng.choice([candidate.top for candidate in config.candidates], _BLOCKS)
    # Half of the largest numbers are midpoints of UE4M3, of its subnormal numbers too, the others about a number of it.
    exponent = np.maximum(rng.integers(-16, 5, _BLOCKS), -10)
    middles = np.ldexp(2 * rng.integers(np.where(exponent == -10, 0, 8), 16) + 1, exponent)
    numbers = np.ldexp(rng.integers(1, 16, _BLOCKS), rng.integers(-9, 6, _BLOCKS))
    midway = rng.random(_BLOCKS) < 0.5
    scales = np.where(midway, middles, numbers).astype(np.float32) * tensor_scale
    x = scales[:, None] * (rng.integers(0, 8 * top[:, None] + 1, (_BLOCKS, BLOCK)) / 8).astype(np.float32)
    factor = np.where(midway, 1, rng.choice([1, 1 + 1 / 16, 1 + 1 / 24, 15 / 16], _BLOCKS))
    x[:, 0] = scales * top.astype(np.float32) * factor.astype(np.float32)
    beside = rng.integers(-1, 2, x.shape) << rng.choice([0, *range(13)], x.shape)
    words = _words(x).astype(np.int64) + beside
    words = np.where(x == 0, 0, words).astype(np.uint32) | rng.integers(0, 2, x.shape, np.uint32) << 31
    return Batch("ties", rng.permuted(words, axis=1), tensor_scale)


def _bits(config: QuantiserConfig, rng: np.random.Generator) -> Batch:
    """Any bits; and infinity, which these hardly ever are, in every hundredth number."""
    words = rng.integers(0, 1 << 32, (_BLOCKS, BLOCK), np.uint32)
    infinite = rng.random(words.shape) < 0.01
    words[infinite] = np.uint32(0x7F800000) | words[infinite] & np.uint32(1 << 31)
    return Batch("bits", words, _any_scale(config, rng))


def _near(config: QuantiserConfig, rng: np.random.Generator) -> Batch:
    """Exponents of a block near one another, and near those at which the scale begins or saturates."""
    scale = _any_scale(config, rng)
    middle = np.frexp(float(scale))[1] + 126 + rng.integers(-12, 18, (_BLOCKS, 1))
    field = np.clip(middle - rng.geometric(0.3, (_BLOCKS, BLOCK)) + 1, 0, 255).astype(np.uint32)
    field[rng.random(field.shape) < 0.05] = 0
    rest = rng.integers(0, 1 << 23, field.shape, np.uint32)
    return Batch("near", rng.integers(0, 2, field.shape, np.uint32) << 31 | field << 23 | rest, scale)


def _flips(config: QuantiserConfig, rng: np.random.Generator) -> Batch:
    """Pairs of blocks with adjacent numbers in one lane, of which one takes the one candidate and one the other.

    Two blocks with one largest number and not one candidate become one another, some lanes first, then a number of the
    lane that decides. Since the largest number stays, the scale byte says which candidate is taken.
    """
    drawn = (_drawn(config, rng, str(rng.choice(KINDS))), _near(config, rng), _ties(config, rng))
    source = drawn[rng.integers(len(drawn))]
    magnitudes = np.sort(_given(config, source) & np.uint32(0x7FFFFFFF), axis=1)
    usable = np.flatnonzero((magnitudes[:, -1] > 0) & (magnitudes[:, -1] < 0x7F800000))
    if len(usable) < 2:
        return _flips(config, rng)
    of_two = rng.choice(usable, (2, min(len(usable) // 2, 4 * _PAIRS)), replace=False)
    one, other = magnitudes[of_two].view(np.float32).astype(np.float64)
    other *= one[:, -1:] / other[:, -1:]
    # Magnitudes of BF16 are adjacent in the upper half.
    spare = 16 if config.numbers.width == 16 else 0
    low, high = (_words(end.astype(np.float32)).astype(np.int64) >> spare for end in (one, other))

    def scales(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        words = (numbers << spare).astype(np.uint32)
        return _expected(config, source._replace(words=words)).tensor.scales.reshape(-1, 1)

    decided = np.flatnonzero(scales(low) != scales(high))[:_PAIRS]
    if not len(decided):
        return _flips(config, rng)
    order = rng.permuted(np.tile(np.arange(BLOCK), (len(decided), 1)), axis=1)
    low, high = (np.take_along_axis(end[decided], order, axis=1) for end in (low, high))
    first = scales(low)
    while (np.abs(high - low).sum(axis=1) > 1).any():
        differing = low != high
        several = differing.sum(axis=1, keepdims=True) > 1
        sooner = differing & (2 * differing.cumsum(axis=1) <= differing.sum(axis=1, keepdims=True))
        middle = np.where(several, np.where(sooner, high, low), (low + high) // 2)
        same = scales(middle) == first
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    signs = rng.integers(0, 2, low.shape)[:, None] << 31
    words = (np.stack([low, high], axis=1) << spare | signs).astype(np.uint32)
    return Batch("flips", words.reshape(-1, BLOCK), source.scale)


def _of_magnitudes(config: QuantiserConfig, kind: str, magnitudes: NDArray[Any], rng: np.random.Generator) -> Batch:
    """Numbers that a rule sees as these magnitudes, (n, 16), of which one in each block has its top bit set."""
    bits = config.error_bits
    below = rng.integers(0, max(1 << 24 - bits >> (16 if config.numbers.width == 16 else 0), 1), magnitudes.shape)
    x = np.ldexp((magnitudes + below * 2.0 ** (bits - 24)).astype(np.float32), int(rng.integers(-20, 20)))
    x *= rng.choice(np.array([-1, 1], np.float32), x.shape)
    # Where the largest number of a block is neither so small nor so large that there is no choice.
    scale = _any_scale(config, rng, 0, 0) * np.float32(2.0 ** (np.frexp(x.max())[1] - int(rng.integers(-4, 9))))
    return Batch(kind, _words(rng.permuted(x, axis=1)), scale)


def _pairs(config: QuantiserConfig, rng: np.random.Generator) -> Batch:
    """Every largest magnitude with every other one that is as large at most, in two lanes or in three."""
    half = 1 << config.error_bits - 1
    largest, other = (each.ravel() for each in np.meshgrid(np.arange(half, 2 * half), np.arange(1, 2 * half)))
    chosen = np.flatnonzero(other <= largest)
    if len(chosen) > 1 << 15:
        chosen = rng.choice(chosen, 1 << 15, replace=False)
    magnitudes = np.zeros((len(chosen), BLOCK), np.int64)
    magnitudes[:, 0], magnitudes[:, 1] = largest[chosen], other[chosen]
    magnitudes[:, 2] = np.where(rng.random(len(chosen)) < 0.5, other[chosen], 0)
    return _of_magnitudes(config, "pairs", magnitudes, rng)


def _thresholds(config: QuantiserConfig, rng: np.random.Generator) -> Batch:
    """Numbers about 3/4 and 15/16 of the largest one; or squares that add up to 13/4 of its own, or nearly so."""
    half = 1 << config.error_bits - 1
    largest = rng.integers(half, 2 * half, _BLOCKS)
    magnitudes = np.zeros((_BLOCKS, BLOCK), np.int64)
    if config.by_crest_factor:
        magnitudes[:, 1:11] = rng.integers(0, largest[:, None] // 3 + 1, (_BLOCKS, 10))
        rest = 9 * largest**2 // 4 + rng.integers(-1, 2, _BLOCKS) - (magnitudes**2).sum(axis=1)
        for lane in range(11, BLOCK):
            magnitudes[:, lane] = np.minimum(np.sqrt(np.maximum(rest, 0)).astype(np.int64), largest)
            rest -= magnitudes[:, lane] ** 2
    else:
        part = rng.choice([3 / 4, 15 / 16, 1 / 8], (_BLOCKS, BLOCK), p=[0.05, 0.05, 0.9])
        magnitudes = np.ceil(part * largest[:, None]).astype(np.int64) + rng.integers(-1, 2, (_BLOCKS, BLOCK))
        magnitudes = np.clip(magnitudes, 0, largest[:, None])
    magnitudes[:, 0] = largest
    return _of_magnitudes(config, "thresholds", magnitudes, rng)


def _given(config: QuantiserConfig, batch: Batch) -> NDArray[np.uint32]:
    """Numbers of a batch as FP32; of BF16 the upper half counts."""
    return batch.words & np.uint32(0xFFFF0000) if config.numbers.width == 16 else batch.words


def _expected(config: QuantiserConfig, batch: Batch) -> golden.HardwareResult:
    words = _given(config, batch)
    return counterpart(config).quantize(words.view(np.float32).reshape(len(words), BLOCK), batch.scale)


def compare(
    engine: QuantiserEngine,
    batch: Batch,
    offer: NDArray[np.bool_] | None = None,
    take: NDArray[np.bool_] | None = None,
    wanted: golden.HardwareResult | None = None,
) -> int:
    """Quantise a batch, and compare all that comes out with the golden model; gives the number of cycles.

    Parameters
    ----------
    engine
        The quantiser.
    batch
        Blocks; of numbers that are BF16 the upper half alone counts.
    offer, take
        See `QuantiserEngine.run`; every cycle by default.
    wanted
        What the golden model says, if it is known.

    Raises
    ------
    MismatchError
        A bit differs.
    """
    config = engine.config
    words = _given(config, batch)
    if wanted is None:
        wanted = _expected(config, batch)
    always = np.ones(1, bool)
    found = engine.run(
        words >> 16 if config.numbers.width == 16 else words,
        scale_words(batch.scale, config.tensor_scale_bits),
        always if offer is None else offer,
        always if take is None else take,
    )
    expected = Quantised(
        wanted.tensor.codes,
        wanted.tensor.scales.ravel(),
        wanted.invalid.ravel(),
        wanted.saturated.ravel(),
        found.cycles,
    )
    wrong = (found.codes != expected.codes).any(axis=1)
    for answer, right in zip(found[1:4], expected[1:4], strict=True):
        wrong |= answer != right
    if wrong.any():
        block = int(np.flatnonzero(wrong)[0])
        numbers = " ".join(f"{word:08x}" for word in words[block])
        mine, theirs = (
            f"codes {bytes(each.codes[block]).hex()[1::2]} scale {each.scales[block]:02x}"
            f" flags {int(each.invalid[block])}{int(each.saturated[block])}"
            for each in (found, expected)
        )
        raise MismatchError(
            f"{config.name}: batch {batch.kind!r}, block {block}: numbers {numbers}, tensor scale"
            f" {float(batch.scale)!r}: {mine}, the golden model has {theirs}"
        )
    return found.cycles


def verify(
    engine: QuantiserEngine,
    elements: int,
    seed: int = 1,
    jobs: int = -1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Compare batches until so many numbers are found equal; every third one with stalls and gaps.

    Parameters
    ----------
    engine
        The quantiser, of which several runs may go on at once.
    elements
        Numbers to compare, at least.
    seed
        Of all that is drawn.
    jobs
        Threads at once; -1 is one for each core.
    progress
        Called with the numbers done, and how many there are.

    Raises
    ------
    MismatchError
        A bit differs.
    ToolError
        An event happened that the goals exclude.
    """
    started, began = time.monotonic(), time.process_time()
    config = engine.config

    def chosen() -> Iterator[tuple[int, Batch]]:
        total = 0
        for number, batch in enumerate(batches(config, seed)):
            if total >= elements:
                return
            total += batch.words.size
            yield number, batch

    def one(number: int, batch: Batch) -> tuple[Batch, int, Counts]:
        wanted, stalled = _expected(config, batch), number % 3 == 0
        offer = take = None
        if stalled:
            rng = np.random.default_rng([seed, number])
            offer, take = (rng.random(997) < pace for pace in (0.8, 0.7))
        took = compare(engine, batch, offer, take, wanted)
        return batch, took, count_quantised(config, _given(config, batch), wanted, stalled)

    goals = quantiser_goals(config)
    outcome = Comparison(goals, empty(goals))
    # In their order, so that what was covered when does not depend on the number of threads.
    parallel = Parallel(n_jobs=jobs, prefer="threads", return_as="generator", pre_dispatch="2 * n_jobs")
    for batch, took, counts in parallel(delayed(one)(*each) for each in chosen()):
        outcome.elements[batch.kind] = outcome.elements.get(batch.kind, 0) + batch.words.size
        outcome.cycles += took
        for name, events in counts.items():
            outcome.counts[name] += events
        if outcome.complete_after is None and complete(goals, outcome.counts):
            outcome.complete_after = outcome.done
        progress(min(outcome.done, elements), elements)
    outcome.seconds, outcome.cpu_seconds = time.monotonic() - started, time.process_time() - began
    if odd := impossible(goals, outcome.counts):
        raise ToolError(f"coverage: {odd[0]} has happened, which the goals exclude")
    return outcome

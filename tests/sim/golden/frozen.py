"""Frozen steps: 2,916 single outputs with their results, in `frozen.npy`.

`rational` made the results. The draws come from a hash, so that no version of a random generator matters::

    python tests/sim/golden/frozen.py        # writes frozen.npy again, byte for byte
"""

import io
from collections.abc import Callable
from hashlib import shake_256
from itertools import product
from pathlib import Path

import numpy as np
import rational

FILE = Path(__file__).with_name("frozen.npy")
FORMATS = ("nvfp4", "mixfp4", "nvint4")
GROUPS = (1, 2, 4)
OPTIONS = tuple(product(("included", "excluded"), ("toward_zero", "nearest_even")))
"""`empty_blocks` and `rounding` of the results of a step, in order; `fraction_bits` is 35."""
REPEATS = 12

STEP = np.dtype(
    [
        ("a", "u1"),  # index into FORMATS
        ("b", "u1"),
        ("groups", "u1"),  # the rest of codes and scales is zero
        ("kind", "u1"),  # index into KINDS
        ("a_codes", "u1", 32),  # two in a byte, the first in the low nibble
        ("b_codes", "u1", 32),
        ("a_scales", "u1", 4),
        ("b_scales", "u1", 4),
        ("c", "<u4"),
        ("results", "<u4", len(OPTIONS)),
    ]
)


class Draws:
    """Numbers from a hash of a name."""

    def __init__(self, name: str) -> None:
        self.octets = io.BytesIO(shake_256(name.encode()).digest(1 << 12))

    def below(self, bound: int) -> int:
        return int.from_bytes(self.octets.read(6), "little") % bound

    def choice(self, values):
        return values[self.below(len(values))]

    def codes(self, groups: int) -> list[int]:
        return [self.below(16) for _ in range(16 * groups)]

    def scales(self, groups: int) -> list[int]:
        """Any but NaN."""
        return [self.below(127) | self.choice((0, 128)) for _ in range(groups)]

    def near(self) -> int:
        """A C among the exponents of products and of what they cut off."""
        return self.below(2) << 31 | 127 - 45 + self.below(75) << 23 | self.below(1 << 23)


Step = tuple[list[int], list[int], list[int], list[int], int]


def random(draw: Draws, groups: int) -> Step:
    """Any codes, any scales, any C."""
    return draw.codes(groups), draw.scales(groups), draw.codes(groups), draw.scales(groups), draw.below(1 << 32)


def zero_blocks(draw: Draws, groups: int) -> Step:
    """About half of the blocks of A are zeros, under scales of any kind."""
    a, a_scales, b, b_scales, _ = random(draw, groups)
    for group in range(groups):
        if draw.below(2):
            a[16 * group : 16 * group + 16] = [draw.choice((0, 8)) for _ in range(16)]
            a_scales[group] = draw.choice((0x7E, 0x78, 0xFE, draw.below(127)))
        else:
            a_scales[group] = draw.below(48)
    return a, a_scales, b, b_scales, draw.choice((draw.near(), draw.near(), 0))


def smallest_products(draw: Draws, groups: int) -> Step:
    """A block of zeros under the largest scales, beside the smallest products there are."""
    a, b = ([draw.choice((0, 0, 0, 1)) for _ in range(16 * groups)] for _ in range(2))
    empty = draw.below(groups)
    a[16 * empty : 16 * empty + 16] = [0] * 16
    scales = [0x01] * groups
    scales[empty] = draw.choice((0x7E, 0x78))
    return a, scales, b, list(scales), draw.choice((0, 1 << 31, draw.near(), 0x35800000))


def zero_c(draw: Draws, groups: int) -> Step:
    """C is +0 or -0."""
    return (*random(draw, groups)[:4], draw.choice((0, 1 << 31)))


def extreme_scales(draw: Draws, groups: int) -> Step:
    """Scales are the largest, the smallest, subnormal or zero."""
    a, _, b, _, _ = random(draw, groups)
    ends = (0x00, 0x80, 0x01, 0x81, 0x07, 0x08, 0x70, 0x77, 0x7E, 0xFE)
    a_scales, b_scales = ([draw.choice(ends) for _ in range(groups)] for _ in range(2))
    return a, a_scales, b, b_scales, draw.near()


def cancelling_sums(draw: Draws, groups: int) -> Step:
    """Blocks whose products are not zero, but often their sum."""
    a, a_scales, b, b_scales, _ = random(draw, groups)
    for group in range(groups):
        first, second = (slice(16 * group + start, 16 * group + start + 8) for start in (0, 8))
        a[second], b[second] = a[first], [code ^ 8 for code in b[first]]
        a[second.start] = draw.choice((a[first.start], 1))
    return a, a_scales, b, b_scales, draw.choice((draw.near(), 0))


def cancelling_c(draw: Draws, groups: int) -> Step:
    """Any step; `make` puts its negative result in place of C, give or take a last place."""
    return (*random(draw, groups)[:4], 0)


def subnormal_c(draw: Draws, groups: int) -> Step:
    """C is subnormal, and products are zero or as small as they can be."""
    a, _, b, _, _ = random(draw, groups)
    scales = [[draw.choice((0x00, 0x80, 0x01)) for _ in range(groups)] for _ in range(2)]
    if draw.below(2):
        a = [0] * len(a)
    return a, scales[0], b, scales[1], draw.below(2) << 31 | draw.below(1 << 24)


def specials(draw: Draws, groups: int) -> Step:
    """NaN and infinity, in scales and in C."""
    a, a_scales, b, b_scales, c = random(draw, groups)
    draw.choice((a_scales, b_scales))[draw.below(groups)] = draw.choice((0x7F, 0xFF, 0x7E))
    return a, a_scales, b, b_scales, draw.choice((0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001, 0x7F7FFFFF, c))


KINDS: tuple[Callable[[Draws, int], Step], ...] = (
    random,
    zero_blocks,
    smallest_products,
    zero_c,
    extreme_scales,
    cancelling_sums,
    cancelling_c,
    subnormal_c,
    specials,
)


def packed(codes: list[int]) -> list[int]:
    """Two codes in a byte, filled with zeros."""
    octets = [low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True)]
    return octets + [0] * (32 - len(octets))


def make() -> np.ndarray:
    """All steps with their results."""
    steps = []
    for (a, b), groups, kind, repeat in product(product(range(3), repeat=2), GROUPS, KINDS, range(REPEATS)):
        draw = Draws(f"{FORMATS[a]} {FORMATS[b]} {groups} {kind.__name__} {repeat}")
        a_codes, a_scales, b_codes, b_scales, c = kind(draw, groups)
        terms = rational.terms(a_codes, a_scales, b_codes, b_scales, (FORMATS[a], FORMATS[b]))
        if kind is cancelling_c:
            result = rational.step_output(terms, 0)
            c = (result ^ 1 << 31) + draw.choice((0, 0, 1, -1)) if result else result
        results = [
            rational.step_output(terms, c, 35, rounding=rounding, empty_blocks=empty_blocks)
            for empty_blocks, rounding in OPTIONS
        ]
        ends = [0] * (4 - groups)
        numbers = (a, b, groups, KINDS.index(kind))
        operands = (packed(a_codes), packed(b_codes), a_scales + ends, b_scales + ends)
        steps.append((*numbers, *operands, c, results))
    return np.array(steps, STEP)


def as_bytes(steps: np.ndarray) -> bytes:
    """The file's content."""
    file = io.BytesIO()
    np.lib.format.write_array(file, steps, version=(1, 0), allow_pickle=False)
    return file.getvalue()


if __name__ == "__main__":
    FILE.write_bytes(as_bytes(make()))

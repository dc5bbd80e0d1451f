"""How far a hardware quantiser is from the float64 quantiser, by its widths and by its rule of choice.

docs/quantiser.md has the tables; `examples/quantiser.py` prints them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sim import golden
from sim.golden import Quantiser, QuantizedTensor
from sim.tensors import Tensor


@dataclass(frozen=True)
class Distance:
    """What a hardware quantiser loses of one tensor or of several.

    Parameters
    ----------
    decibels
        Its noise over that of the float64 quantiser with the same tensor scale, in dB; the mean over tensors.
    from_default
        The same where the float64 quantiser has its own tensor scale, of 24 bits.
    equal
        Share of the blocks that have the same scale byte, choice of elements included, with the same tensor scale.
    worst
        Largest of `decibels`.
    """

    decibels: float
    from_default: float
    equal: float
    worst: float


@dataclass(frozen=True)
class Case:
    """A row of a table.

    Parameters
    ----------
    label
        What the row has that others have not.
    quantiser
        The hardware quantiser.
    goal
        Another one whose format, rule and tensor scale those of the float64 quantiser are; by default the same.
    """

    label: str
    quantiser: Quantiser
    goal: Quantiser | None = None

    @property
    def target(self) -> Quantiser:
        """`goal`, or the quantiser."""
        return self.goal or self.quantiser


@dataclass(frozen=True)
class Table:
    """Rows that differ in one thing.

    Parameters
    ----------
    varies
        What that is, the title of the column of labels.
    cases
        The rows.
    scale_varies
        Whether the tensor scale is a part of it: the distance from the float64 quantiser with its own is shown then.
    """

    varies: str
    cases: tuple[Case, ...]
    scale_varies: bool = False


PAIRS = (("mixfp4", "nearest"), ("nvfp4", "four-over-six"))
"""Formats, with rules of their scales, that choose between two candidates."""


def _rules(fmt: str, rule: str) -> tuple[Case, ...]:
    return tuple(
        Case(f"{selection.name}, {bits} bits", Quantiser(fmt, rule, selection(bits)))
        for selection in golden.SELECTIONS
        for bits in ((8, 5, 4, 3) if selection is golden.SquaredError else (8, 4))
        if (fmt, rule) in selection.pairs
    )


TABLES: Mapping[str, Table] = {
    "defaults": Table(
        "error",
        tuple(
            Case("8 bits" if (fmt, rule) in PAIRS else "none", Quantiser(fmt, rule)) for fmt, rule in golden.QUANTISERS
        ),
        scale_varies=True,
    ),
    "errors": Table(
        "bits of an error",
        tuple(
            Case(str(bits), Quantiser(fmt, rule, golden.SquaredError(bits)))
            for fmt, rule in PAIRS
            for bits in (3, 4, 5, 6, 7, 8, 10, 12)
        ),
    ),
    "tensor-scales": Table(
        "bits",
        tuple(
            Case(str(bits), Quantiser(fmt, rule, golden.SquaredError(8), bits))
            for fmt, rule in PAIRS
            for bits in (1, 2, 4, 6, 8, 12, 24)
        ),
        scale_varies=True,
    ),
    "reciprocals": Table(
        "bits of the reciprocal",
        tuple(
            Case(str(bits or "division"), Quantiser(fmt, rule, reciprocal_bits=bits))
            for fmt, rule in golden.QUANTISERS
            for bits in (6, 8, 10, 12, 16, 24, None)
        ),
    ),
    "rules": Table(
        "rule of choice",
        (
            *_rules(*PAIRS[0]),
            Case("E2M1 in all blocks", Quantiser("nvfp4"), Quantiser("mixfp4")),
            Case("E1M2 in all blocks", Quantiser("nvint4"), Quantiser("mixfp4")),
            *_rules(*PAIRS[1]),
            Case("6 in all blocks", Quantiser("nvfp4"), Quantiser(*PAIRS[1])),
        ),
    ),
}
"""The tables by name."""


def distances(tensors: Mapping[str, Tensor], cases: Sequence[Case]) -> list[Distance]:
    """Return a distance for each case, over all tensors together.

    Parameters
    ----------
    tensors
        Tensors by name, float32 (rows, K). Blocks run along K; the last of a row is filled with zeros.
    cases
        Such as those of `TABLES`.

    Raises
    ------
    ArgumentError
        As `golden.Quantiser.quantize`.
    """
    found = [[_one(each, case, seen) for case in cases] for each, seen in ((x, _Seen()) for x in tensors.values())]
    blocks = [math.prod(np.shape(x)) for x in tensors.values()]
    result = []
    for rows in zip(*found, strict=True):
        own, default = (float(np.mean([row[index] for row in rows])) for index in (0, 1))
        equal = float(np.average([row[2] for row in rows], weights=blocks))
        result.append(Distance(own, default, equal, max(row[0] for row in rows)))
    return result


class _Seen(dict[tuple[str, str, float | None], tuple[float, QuantizedTensor]]):
    """Noise and result of the float64 quantiser by format, rule and tensor scale, None for its own."""


def _one(x: Tensor, case: Case, seen: _Seen) -> tuple[float, float, float]:
    """Return both noises, in dB, and the share of equal scale bytes."""
    filled = golden.padded(x)
    scale = case.target.tensor_scale(filled)
    form, rule = case.target.format, str(case.target.rule)
    for given in (None, float(scale)):
        if (form, rule, given) not in seen:
            reference = golden.quantize(filled, form, tensor_scale=given, rule=rule)
            seen[form, rule, given] = _noise(filled, reference), reference
    tensor = case.quantiser.quantize(filled, scale).tensor
    noise = _noise(filled, tensor)
    default, (own, reference) = seen[form, rule, None][0], seen[form, rule, float(scale)]
    equal = float((tensor.scales == reference.scales).mean())
    return 10 * math.log10(noise / own), 10 * math.log10(noise / default), equal


def _noise(x: Tensor, tensor: QuantizedTensor) -> float:
    values = tensor.form.values(tensor.codes, tensor.scales)
    values *= tensor.core_scale
    values -= x
    return float(np.square(values, out=values).sum())

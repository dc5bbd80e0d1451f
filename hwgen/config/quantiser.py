"""The configuration of one hardware quantiser, and the named ones."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from hwgen.config.reserved import reserved
from hwgen.errors import InputError
from hwgen.formats import E1M2, E2M1, INT4, ElementFormat

__all__ = [
    "BLOCK",
    "INPUTS",
    "QUANTISERS",
    "QUANTISER_REGISTERS",
    "SELECTIONS",
    "TARGETS",
    "Candidate",
    "Input",
    "QuantiserConfig",
    "named_quantiser",
]

BLOCK = 16
"""Numbers of a block."""


class Input(NamedTuple):
    """A format of the numbers that come in: the upper bits of FP32."""

    width: int
    fraction: int
    """Bits behind the leading one."""


INPUTS = {"float32": Input(32, 23), "bfloat16": Input(16, 7)}
"""Formats of the numbers that come in."""


class Candidate(NamedTuple):
    """One way to quantise a block."""

    element: ElementFormat
    top: int
    """What the largest number of a block becomes."""
    tag: int
    """Bit 7 of the scale byte."""

    @property
    def halves(self) -> tuple[int, ...]:
        """Values in halves, by code of the magnitude."""
        return tuple(int(2 * value) for value in self.element.values[:8])

    @property
    def evenly_spaced(self) -> bool:
        """Whether all steps between values are equal."""
        return len({above - below for below, above in pairwise(self.halves)}) == 1


TARGETS = {
    ("nvfp4", "nearest"): (Candidate(E2M1, 6, 0),),
    ("nvfp4", "four-over-six"): (Candidate(E2M1, 6, 0), Candidate(E2M1, 4, 0)),
    ("mixfp4", "nearest"): (Candidate(E1M2, 7, 1), Candidate(E2M1, 6, 0)),
    ("nvint4", "nearest"): (Candidate(INT4, 7, 0),),
}
"""Candidates by format and rule; of two the second is taken where it is better."""

_BY_ERROR = ("squared-error", "absolute-error", "largest-error", "sampled-error")
_CREST_FACTOR = "crest-factor"
_BY_MAGNITUDE = (_CREST_FACTOR, "second-largest", "gap")
"""Rules that look at the numbers of a block alone, before anything is quantised."""

SELECTIONS = (*_BY_ERROR, *_BY_MAGNITUDE)
"""Rules that choose between two candidates, see docs/quantiser.md; the first is the default."""

QUANTISER_REGISTERS = ("largest", "quotients", "scales", "choice", "bounds", "codes", "errors", "sums")
"""Pipeline registers in the order of the data: `choice` with the crest factor, the last three with errors."""

_DEFAULT_BITS = 8
_OF_ERRORS = ("codes", "errors", "sums")


@dataclass(frozen=True)
class QuantiserConfig:
    """A hardware quantiser: blocks of 16 numbers in, codes and a scale byte out, one block per cycle.

    Parameters
    ----------
    name
        Name of the configuration; with ``-`` as ``_`` that of the Verilog module.
    format
        Of what comes out: "nvfp4", "mixfp4" or "nvint4".
    rule
        "nearest"; for NVFP4 also "four-over-six".
    input
        Format of the numbers that come in: a key of `INPUTS`.
    selection
        One of `SELECTIONS`, the first by default; None, and None alone, with one candidate.
    error_bits
        Bits that the rule computes with, at most ``tensor_scale_bits`` + 7: of an error, 2 to 14; of a magnitude, 4 to
        11, where it looks at magnitudes. Without a meaning with one candidate.
    tensor_scale_bits
        Bits of the significand of a tensor scale, 2 to 14.
    pipeline
        Registers, of `QUANTISER_REGISTERS`, besides that of the result; by default all.
    clock_gating
        Registers that share an enable get a clock gate, where the library has one.

    Raises
    ------
    InputError
        On construction: a field is not as above.
    """

    name: str
    format: str = "mixfp4"
    rule: str = "nearest"
    input: str = "float32"
    selection: str | None = None
    error_bits: Annotated[int, int | None] = _DEFAULT_BITS  # JSON has null where it has no meaning
    tensor_scale_bits: int = _DEFAULT_BITS
    pipeline: tuple[str, ...] | None = None
    clock_gating: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", self.name):
            raise InputError(f"name = {self.name!r}: must be letters, digits, '-' and '_', a letter first")
        if meaning := reserved(self.identifier):
            raise InputError(f"name = {self.name!r}: is {meaning}; choose another")
        if (self.format, self.rule) not in TARGETS:
            known = ", ".join(f"{form!r} with {rule!r}" for form, rule in TARGETS)
            raise InputError(f"format = {self.format!r} with rule = {self.rule!r}: must be one of {known}")
        if self.input not in INPUTS:
            raise InputError(f"input = {self.input!r}: must be one of {', '.join(INPUTS)}")
        if not isinstance(self.clock_gating, bool):
            raise InputError(f"clock_gating = {self.clock_gating!r}: must be true or false")
        self._within("tensor_scale_bits", 14, least=2)
        self._check_selection()
        possible = self._possible_registers()
        if self.pipeline is None:
            object.__setattr__(self, "pipeline", possible)
        object.__setattr__(self, "pipeline", tuple(self.registers))
        if self.registers != [each for each in possible if each in self.registers]:
            raise InputError(
                f"pipeline = {list(self.registers)}: must be of {', '.join(possible)}, in this order, each once"
            )

    def _possible_registers(self) -> tuple[str, ...]:
        missing = () if self.by_error else _OF_ERRORS
        if self.selection != _CREST_FACTOR:
            missing = ("choice", *missing)
        return tuple(each for each in QUANTISER_REGISTERS if each not in missing)

    def _check_selection(self) -> None:
        if not self.chooses:
            if self.selection is not None:
                raise InputError(f"selection = {self.selection!r}: {self.format} has one candidate; leave it out")
            return
        if self.selection is None:
            object.__setattr__(self, "selection", SELECTIONS[0])
        # The other two rules by magnitudes say whether numbers are near the top of E1M2.
        fitting = [each for each in SELECTIONS if self.format == "mixfp4" or each in (*_BY_ERROR, "gap")]
        if self.selection not in fitting:
            raise InputError(f"selection = {self.selection!r}: must be one of {', '.join(fitting)}")
        most, least = (11, 4) if self.by_magnitude else (14, 2)
        self._within("error_bits", min(most, self.tensor_scale_bits + 7), least)

    def _within(self, field: str, most: int, least: int) -> None:
        value = getattr(self, field)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise InputError(f"{field} = {value!r}: must be a whole number from {least} to {most}")

    @property
    def identifier(self) -> str:
        """The name as a Verilog identifier."""
        return self.name.replace("-", "_")

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """One or two ways to quantise a block."""
        return TARGETS[self.format, self.rule]

    @property
    def chooses(self) -> bool:
        """Whether it has two candidates."""
        return len(self.candidates) > 1

    @property
    def by_magnitude(self) -> bool:
        """Whether it chooses by the numbers of a block alone, so that it quantises with one candidate only."""
        return self.selection in _BY_MAGNITUDE

    @property
    def by_error(self) -> bool:
        """Whether it chooses by the errors of both candidates."""
        return self.selection in _BY_ERROR

    @property
    def by_crest_factor(self) -> bool:
        """Whether the rule has squares of magnitudes."""
        return self.selection == _CREST_FACTOR

    @property
    def datapaths(self) -> tuple[Candidate, ...]:
        """What numbers are compared with midpoints of: each candidate, or the first, in whose place the other comes."""
        return self.candidates[:1] if self.by_magnitude else self.candidates

    @property
    def tagged(self) -> bool:
        """Whether bit 7 of the scale byte says which candidate is taken."""
        return len({candidate.tag for candidate in self.candidates}) > 1

    @property
    def registers(self) -> list[str]:
        """The pipeline registers before that of the result."""
        return list(self.pipeline or ())

    @property
    def latency(self) -> int:
        """Cycles from a block to its result without stalls."""
        return len(self.registers) + 1

    @property
    def numbers(self) -> Input:
        """Format of the numbers that come in."""
        return INPUTS[self.input]

    @property
    def fraction(self) -> int:
        """Bits of a number behind its leading one that are kept: what midpoints have, and whether more was there."""
        exact = self.tensor_scale_bits + 6 + any(candidate.evenly_spaced for candidate in self.candidates)
        return min(self.numbers.fraction, exact + 1)

    @property
    def kept_bits(self) -> tuple[int, ...]:
        """Bits at which the errors of each candidate saturate: evenly spaced values are less far apart."""
        return tuple(self.error_bits - candidate.evenly_spaced for candidate in self.candidates)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; fields without a meaning are None."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**found, "pipeline": self.registers, "error_bits": self.error_bits if self.chooses else None}


QUANTISERS = {
    config.name: config
    for form, rule, stem in (
        ("nvfp4", "nearest", "nvfp4"),
        ("nvfp4", "four-over-six", "four-over-six"),
        ("mixfp4", "nearest", "mixfp4"),
        ("nvint4", "nearest", "nvint4"),
    )
    for input, suffix in (("float32", ""), ("bfloat16", "-bf16"))
    for config in (QuantiserConfig(f"{stem}-quantiser{suffix}", form, rule, input),)
} | {
    config.name: config
    for config in (
        *(QuantiserConfig(f"mixfp4-{rule}-quantiser", selection=rule) for rule in SELECTIONS[1:]),
        QuantiserConfig("four-over-six-gap-quantiser", "nvfp4", "four-over-six", selection="gap"),
    )
}
"""Named quantisers."""


def named_quantiser(name: str) -> QuantiserConfig:
    """The quantiser of a name.

    Raises
    ------
    InputError
        There is none; the message lists those that there are.
    """
    if name not in QUANTISERS:
        raise InputError(f"quantiser {name!r}: must be one of {', '.join(QUANTISERS)}")
    return QUANTISERS[name]

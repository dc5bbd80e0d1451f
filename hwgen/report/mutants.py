"""The form of reports/mutation-figures.json: mutants of the code that computes figures, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

__all__ = ["FiguresJson", "Mutant", "Outcome"]

Outcome = Literal["killed", "stopped", "equivalent", "survived"]


@dataclass(frozen=True)
class Mutant:
    """One change of one line, and what became of it.

    Parameters
    ----------
    file
        From the top of the repository.
    line
        Its number, from 1.
    function
        The innermost function or class around it; "" at the top of the module.
    operator
        As Cosmic Ray names it, with its arguments.
    before, after
        The lines that differ, without the blanks around them.
    outcome
        ``killed`` by a test, ``stopped`` by a crash or the limit of time, ``survived`` or ``equivalent``.
    reason
        Why it is equivalent; "" if it is not.
    """

    file: str
    line: int
    function: str
    operator: str
    before: str
    after: str
    outcome: Outcome
    reason: str = ""


class SampleJson(TypedDict):
    """What the mutants were drawn from.

    Parameters
    ----------
    seed
        Chose them.
    mutants
        How many were planted.
    mutants_to_choose_from
        How many there are.
    """

    seed: int
    mutants: int
    mutants_to_choose_from: int


class OutcomesJson(TypedDict):
    """How many mutants had each outcome.

    Parameters
    ----------
    killed
        A test failed.
    stopped
        Tests crashed or took too long.
    equivalent
        No figure changes; the reason is given.
    survived
        No test noticed.
    """

    killed: int
    stopped: int
    equivalent: int
    survived: int


class FiguresJson(TypedDict):
    """Mutants of the code that computes figures.

    Parameters
    ----------
    kind
        Of the report.
    conditions
        What was drawn.
    outcomes
        Of all mutants.
    by_file
        The same of each file's.
    not_killed
        Those that are equivalent or survived.
    """

    kind: str
    conditions: SampleJson
    outcomes: OutcomesJson
    by_file: dict[str, OutcomesJson]
    not_killed: list[Mutant]

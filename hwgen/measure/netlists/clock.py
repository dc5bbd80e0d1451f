"""The clock period that power is stated at: every netlist behind a figure meets it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hwgen.cells.library import Library
from hwgen.errors import InputError
from hwgen.timing.loads import fanout_of_four

__all__ = ["SPARE", "USUAL", "check_met", "clock_period", "default_period", "rounded_up", "usual", "usual_of"]

SPARE = 0.05
"""What the default clock leaves over the mean critical path."""


USUAL = {"generic7": 1.0, "asap7": 1.0, "generic130": 6.6, "sky130_fd_sc_hd": 6.6, "sg13g2": 5.0}
"""Clock periods in ns that people build at, by what the names of libraries begin with."""

_USUAL_FO4 = 60.0


def usual_of(library: str) -> float | None:
    """The period of `USUAL` for a library of this name, ns; None if it has none."""
    return next((period for prefix, period in USUAL.items() if library.startswith(prefix)), None)


def usual(library: Library) -> float:
    """The clock period in ns at which a core is built where nobody says: `USUAL`.

    For other libraries 60 times the delay of their smallest inverter that drives four of its kind, with two digits; a
    pipeline stage of what is built takes 30 to 70 of these.
    """
    known = usual_of(library.name)
    return known if known is not None else rounded_up(_USUAL_FO4 * fanout_of_four(library))


def rounded_up(value: float) -> float:
    """The next number with two significant digits."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / digit - 1e-9) * digit, 12)


def default_period(mean_ns: float, slowest_ns: float) -> float:
    """The mean critical path of the slower design and 5 %, rounded up to two digits; never less than any run takes.

    Parameters
    ----------
    mean_ns
        Mean over the runs of the slower design's critical path, ns.
    slowest_ns
        The longest critical path of all netlists, ns.
    """
    return rounded_up(max((1 + SPARE) * mean_ns, slowest_ns))


def check_met(clock_ns: float, slowest_ns: Mapping[tuple[str, str], float], library: str) -> None:
    """Check that netlists meet a clock period.

    Parameters
    ----------
    clock_ns
        ns.
    slowest_ns
        The longest critical path of any run in ns, by design and scope.
    library
        Name of the cells.

    Raises
    ------
    InputError
        One of them does not; it names the one that takes longest, and the period that it would meet.
    """
    (design, scope), longest = max(slowest_ns.items(), key=lambda item: item[1])
    if longest > clock_ns:
        raise InputError(
            f"clock of {clock_ns:g} ns: the {scope} of {design} takes {longest:.4g} ns in its slowest run with"
            f" {library}; at least {rounded_up(longest):g} ns would be met"
        )


def clock_period(given: float | None, longest: float, library: str) -> float:
    """Clock period in ns: the one given, or the longest path and 5 %, rounded up to two digits.

    Raises
    ------
    InputError
        The one given is shorter than the longest path.
    """
    if given is None:
        return rounded_up((1 + SPARE) * longest)
    if given < longest:
        raise InputError(
            f"clock of {given:g} ns: the critical path is {longest:.4g} ns with {library};"
            f" at least {rounded_up(longest):g} ns would be met"
        )
    return given

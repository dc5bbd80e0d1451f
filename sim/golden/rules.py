"""Rules of quantisation: how the scale of a block follows from its numbers.

================  ================================================  =========================================
rule              scale of a block, with b its largest magnitude    for
================  ================================================  =========================================
``nearest``       cast(b / top), top the largest element            scales with a mantissa
``four-over-six`` cast(b / 6) or cast(b / 4): the smaller squared   E2M1 with E4M3 scales and a tensor scale,
                  error, of equal ones the former                   which is max|x| / (256 * 6)
================  ================================================  =========================================

All of it in units of the tensor scale. A cast is to nearest, ties to the even code, saturating.

``four-over-six`` is arXiv 2512.02010. E2M1 has nothing between 4 and 6: a block whose numbers lie there is better off
if its largest becomes 4. The scale is then 1.5 times as large, and E4M3 must have room for it: so the tensor scale puts
the largest scale of a tensor at 256, not at 448. What is stored is NVFP4; hardware does not know the rule.
"""

from __future__ import annotations

from typing import Any

from .block import BlockFormat
from .checks import InputError
from .element import E2M1, ElementFormat
from .scale import UE4M3

RULES = ("nearest", "four-over-six")
"""Names of the rules."""

_LARGEST_SCALE = 256.0
"""Largest scale of a tensor that ``four-over-six`` aims at; 1.5 times as much is a value of E4M3, too."""


def rules(form: BlockFormat) -> tuple[str, ...]:
    """Return the rules by which a format can be quantised; the first is the default."""
    if form.elements == (E2M1,) and form.scale == UE4M3 and form.tensor_divisor is not None:
        return ("nearest", "four-over-six")
    return ("nearest",)


def checked(form: BlockFormat, rule: Any) -> str:
    """Return the rule, or the default in place of None.

    Raises
    ------
    InputError
        It is not one for the format.
    """
    known = rules(form)
    if rule is None:
        return known[0]
    if rule not in known:
        raise InputError(f"rule must be one of {', '.join(map(repr, known))} for {form.name}; got {rule!r}")
    return str(rule)


def tensor_divisor(form: BlockFormat, rule: str) -> float | None:
    """Return what max|x| is divided by for the tensor scale; None if there is none."""
    return _LARGEST_SCALE * E2M1.largest if rule == "four-over-six" else form.tensor_divisor


def tops(element: ElementFormat, rule: str) -> tuple[float, ...]:
    """Return what the largest number of a block may become. Each gives a candidate; of equal errors the first wins."""
    return (element.largest, 4.0) if rule == "four-over-six" else (element.largest,)

"""The named configurations."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hwgen.config.core import TensorCoreConfig
from hwgen.config.dots import DOTS
from hwgen.errors import InputError, meant
from hwgen.formats import (
    BLOCKDIALECT,
    FP4_UE5M3_B16,
    FP4_UE5M3_B32,
    HIF4,
    IF4,
    INTEGERS_4,
    INTEGERS_8,
    L_MUL,
    MIXFP4,
    MSFP12,
    MXFP4,
    MXFP4_2X16,
    MXFP6_E2M3,
    MXFP6_E3M2,
    MXFP8_E4M3,
    MXFP8_E5M2,
    MXINT8,
    NUMBERS_16,
    NVFP4,
    NVFP4_E0M3,
    NVINT4,
    RAZER_ACTIVATIONS,
    RAZER_WEIGHTS,
    TERNARIES,
    BlockFormat,
    Bounds,
    Formats,
)

__all__ = ["BLOCKS", "MOST_BLOCKS", "NAMED", "SIZE", "find", "like_small", "named", "with_blocks"]

SIZE = "small"
"""Size of the cores that the table of formats compares."""

MOST_BLOCKS = 8
"""Blocks of a core in a step."""

BLOCKS = re.compile(rf"(?P<kind>.+)-(?P<blocks>[2-{MOST_BLOCKS}])x(?P<size>\d+)-{SIZE}")
"""Names that `with_blocks` gives."""


_SMALL = ("decoded", "tree", "factors", "terms", "aligned", "total", "normal")
_MULTI_SMALL = ("decoded", "tree", "factors", "compared", "aligned", "total", "normal")
_PLAIN = ("decoded", "tree", "terms", "aligned", "total", "normal")  # without significands there are no factors
_ALIGNING = ("decoded", "tree", "sums", "terms", "aligned", "total", "normal")  # products are aligned behind ``tree``
_SUMMED = ("decoded", "tree", "sums", "total", "normal")  # block sums are added up exactly as they are
_SAVED = ("decoded", "tree", "total", "normal")  # likewise, in two words
_BLACKWELL = ("decoded", "tree", "factors", "terms", "aligned", "addends", "total", "normal")
_MULTI_BLACKWELL = ("decoded", "tree", "factors", "compared", "aligned", "addends", "total", "normal")


_KINDS: dict[str, Formats] = {
    "nvfp4": (NVFP4, NVFP4),
    "mixfp4": (MIXFP4, MIXFP4),
    "mixfp4-weights": (NVFP4, MIXFP4),
    "nvint4": (NVINT4, NVINT4),
}
_SLOTTED = {name: _KINDS[name] for name in ("nvfp4", "mixfp4")} | {NVFP4_E0M3.name: (NVFP4_E0M3, NVFP4_E0M3)}
_SCALED = {name: _KINDS[name] for name in ("nvfp4", "mixfp4")}
_OTHERS: dict[str, Formats] = {form.name: (form, form) for form in (FP4_UE5M3_B16, FP4_UE5M3_B32, IF4)} | {
    "razer": (RAZER_ACTIVATIONS, RAZER_WEIGHTS)
}
_E8M0: dict[str, Formats] = {form.name: (form, form) for form in (MXFP4, MXFP4_2X16, MSFP12)}
_INT4: dict[str, Formats] = {"int4": (INTEGERS_4, INTEGERS_4)}
_WIDE: dict[str, Formats] = {"blockdialect": (BLOCKDIALECT, BLOCKDIALECT)}  # magnitudes that merged cannot join
_LONG: dict[str, Formats] = {form.name: (form, form) for form in (MXFP6_E2M3, MXFP6_E3M2)}
_LONG |= {"w4a8": (MXFP8_E4M3, MXFP4)}
_INTEGERS: dict[str, Formats] = {
    MXINT8.name: (MXINT8, MXINT8),
    "int8": (INTEGERS_8, INTEGERS_8),
    "w4a8-int": (INTEGERS_8, INTEGERS_4),
    "ternary": (INTEGERS_8, TERNARIES),
}
_EXACT: dict[str, Formats] = {"int8-exact": (INTEGERS_8, INTEGERS_8)}
_TWO_WORDS: dict[str, Formats] = {"opt1": (INTEGERS_8, INTEGERS_8)}
_WINDOWED: dict[str, Formats] = {form.name: (form, form) for form in (MXFP8_E4M3, MXFP8_E5M2)}
_WINDOWED |= {"int4-fp16": (NUMBERS_16, INTEGERS_4)}
_ADDITIVE: dict[str, Formats] = {L_MUL.name: (L_MUL, L_MUL)}
_NESTED: dict[str, Formats] = {HIF4.name: (HIF4, HIF4)}


def _sized(
    kinds: dict[str, Formats],
    size: str,
    rows: int,
    columns: int,
    groups: int,
    pipeline: tuple[str, ...],
    **more: Any,
) -> dict[str, TensorCoreConfig]:
    further: dict[str, Any] = {"pipeline": pipeline, "clock_gating": True, **more}
    return {
        f"{kind}-{size}": TensorCoreConfig(f"{kind}-{size}", a, b, rows, columns, groups, **further)
        for kind, (a, b) in kinds.items()
    }


NAMED: dict[str, TensorCoreConfig] = {
    **_sized(_KINDS, "small", rows=4, columns=4, groups=1, pipeline=_SMALL),
    **_sized(_KINDS, "blackwell", rows=8, columns=8, groups=4, pipeline=_BLACKWELL),
    **_sized(_SLOTTED, "multi-small", rows=4, columns=4, groups=1, pipeline=_MULTI_SMALL, slot="full"),
    **_sized(_SLOTTED, "multi-blackwell", rows=8, columns=8, groups=4, pipeline=_MULTI_BLACKWELL, slot="full"),
    **_sized(_SCALED, "mx-multi-small", 4, 4, 1, pipeline=_MULTI_SMALL, slot="full", half_scale="e8m0"),
    **_sized(_OTHERS, "small", rows=4, columns=4, groups=1, pipeline=_SMALL),
    **_sized(_E8M0, "small", rows=4, columns=4, groups=1, pipeline=_PLAIN),
    **_sized(_WIDE, "small", rows=4, columns=4, groups=1, pipeline=_PLAIN, dot="signed"),
    **_sized(_LONG, "small", rows=4, columns=4, groups=1, pipeline=_PLAIN, dot="shifted-carry-save"),
    **_sized(_INT4, "small", rows=4, columns=4, groups=1, pipeline=_PLAIN),
    **_sized(_INTEGERS, "small", rows=4, columns=4, groups=1, pipeline=_PLAIN, dot="booth"),
    **_sized(_EXACT, "small", 4, 4, 1, pipeline=_SUMMED, dot="booth", numerics="exact"),
    **_sized(_TWO_WORDS, "small", 4, 4, 1, pipeline=_SAVED, dot="booth", numerics="exact", accumulator="carry_save"),
    **_sized(_WINDOWED, "small", rows=4, columns=4, groups=1, pipeline=_ALIGNING, dot="windowed"),
    **_sized(_ADDITIVE, "small", rows=4, columns=4, groups=1, pipeline=_ALIGNING, dot="additive"),
    **_sized(_NESTED, "small", rows=4, columns=4, groups=1, pipeline=_SMALL, dot="nested"),
}
"""Named configurations; ``blackwell`` has the rate of one Blackwell tensor core, 4096 MAC per cycle.

In ``mixfp4-weights-*`` only operand B, the weights, is MixFP4; A is NVFP4. In ``razer-small`` A has RaZeR's format of
activations and B that of weights. In ``w4a8-small`` A, the activations, has E4M3 elements and B is MXFP4. In
``w4a8-int-small`` and ``ternary-small`` A has integers of 8 bits, in ``int4-fp16-small`` FP16. Those called ``multi``
also multiply FP8 and FP6, at half the rate, as Blackwell does; those called ``mx-multi`` with scales of MX. In
``nvfp4-e0m3-multi-*`` each step says of A and of B whether they are E2M1 or 0 to 7.

Their registers, their lanes and their clock gates are those with which NVFP4 is best at 1 GHz on a 7 nm library
(docs/decisions/0013-pipelines-for-a-clock.md). The accumulation loop holds as many tiles as it has cycles, by turns.
"""


def with_blocks(config: TensorCoreConfig, blocks: int) -> TensorCoreConfig:
    """A core of the size `SIZE` with so many blocks in a step, named after them: ``razer-2x16-small`` has two of 16."""
    name = f"{config.name.removesuffix(f'-{SIZE}')}-{blocks}x{config.a.size}-{SIZE}"
    return replace(config, name=name, groups=blocks)


def find(name: str) -> TensorCoreConfig | None:
    """The configuration ``name``: one of `NAMED`, or one of those with more blocks; None if there is none.

    Raises
    ------
    InputError
        No core of that format can have so many blocks.
    """
    if name in NAMED:
        return NAMED[name]
    parts = BLOCKS.fullmatch(name)
    one = None if parts is None else NAMED.get(f"{parts['kind']}-{SIZE}")
    if parts is None or one is None or one.a.size != int(parts["size"]):
        return None
    try:
        return with_blocks(one, int(parts["blocks"]))
    except InputError as error:
        raise InputError(f"configuration {name!r}: {error}") from None


def named(name: str) -> TensorCoreConfig:
    """Return the configuration ``name``, see `find`.

    Raises
    ------
    InputError
        There is none; the message names the nearest, or all there are.
    """
    if (config := find(name)) is not None:
        return config
    raise InputError(
        f"unknown configuration {name!r}: neither a TOML file nor a name, of which mixfp4-2x16-{SIZE} and the like have"
        f" two blocks of 16 in a step; {meant(name, NAMED)}"
    )


def like_small(a: BlockFormat, b: BlockFormat, groups: int = 1) -> dict[str, Any]:
    """Fields of a core of the shape and the registers of ``small``, for formats of a user's own.

    The lanes are the first of ``merged``, ``signed``, ``nested``, ``booth``, ``shifted-carry-save``, ``multiplier``,
    ``windowed`` and ``additive`` that can multiply the formats. ``booth`` is for numbers that are next to one another;
    where steps between large ones are longer it takes more area than what follows it. ``multiplier`` takes more than
    all before it. There are as many fraction bits as by default, or the nearest number that the formats allow.

    Raises
    ------
    InputError
        None of these lanes can.
    """
    found: dict[str, Any] = {"rows": 4, "columns": 4, "groups": groups, "clock_gating": True}
    found["pipeline"] = _SMALL if a.significand_bits or b.significand_bits else _PLAIN
    if a.size == b.size and a.sums == b.sums:  # a core of others is refused
        whole = all(element.longest_shift <= 1 for form in (a, b) for element in form.elements)
        long = ("booth", "shifted-carry-save") if whole else ("shifted-carry-save",)
        lanes = ("merged", "signed", "nested", *long, "multiplier", "windowed", "additive")
        why_not = {dot: DOTS[dot].supports(a, b) for dot in lanes}
        found["dot"] = next((dot for dot, reason in why_not.items() if reason is None), None)
        if found["dot"] is None:
            reasons = dict.fromkeys(why_not[dot] for dot in ("multiplier", "windowed"))
            raise InputError(f"no lanes multiply {a.name} x {b.name}: {', and '.join(map(str, reasons))}")
        bounds = Bounds(a, b)
        wanted = max(TensorCoreConfig.fraction_bits, bounds.least_fraction_bits)
        found["fraction_bits"] = min(wanted, bounds.most_fraction_bits(groups))
    return found

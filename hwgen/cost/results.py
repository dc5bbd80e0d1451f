"""What becomes of the results of GEMMs: how they leave the chip, what quantises them, and what stays on the chip.

A later GEMM reads its operands in a block format, so that every result but logits passes a quantiser once:

=============  ===================================================================================
``quantised``  the quantiser stands between cores and DRAM: what is written is the operand format
``bf16``       what is written is BF16; a pass reads it back, quantises, and writes the operand format
``fp32``       the same with FP32
=============  ===================================================================================

Results of several rows may be added up before they are an operand: those of the experts of a token. Such a sum is not
of the cores. So these results leave as BF16, or as FP32 with ``fp32``, and a pass reads them, adds them up, quantises,
and writes the operands.

A result has the format that the next GEMM of the list reads: FP8 before one at half the rate, with the scales that the
cores have there, else the block format of the cores.

With fused attention the scores of a block of context stay in the buffer: the values GEMM takes them from there.
Without, they go to DRAM and come back as any other result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.cost.gemms import Gemms, product
from hwgen.cost.stored import row_bytes

__all__ = [
    "ATTENTION",
    "BYTES",
    "PARTIAL_BYTES",
    "RESULTS",
    "Results",
    "element_bytes",
    "plain",
    "results_of",
    "scores_of",
]

RESULTS = ("quantised", "bf16", "fp32")
"""How results leave the cores."""

ATTENTION = ("fused", "unfused")
"""Whether scores stay on the chip."""

BYTES = {"fp32": 4, "bf16": 2}
"""Bytes of an element that is not quantised."""

PARTIAL_BYTES = 4
"""Bytes of a score before it is quantised, and of a partial result of attention: FP32, as they leave the core."""


@dataclass(frozen=True)
class Results:
    """What becomes of the results of L GEMMs; int64, (L,) each, bytes and elements for each product of a batch.

    Parameters
    ----------
    written
        Bytes that the cores write to DRAM.
    pass_read, pass_written
        Bytes that a pass of the quantiser of its own reads from DRAM and writes there.
    quantised
        Elements that are quantised.
    kept
        Bytes written to the buffer and read from it for results that stay there, before a GEMM reads them.
    scores
        Which GEMM's results in the buffer are this one's A; -1 where A comes from DRAM.
    partial
        Bytes for each row of a GEMM whose results stay that the GEMM they are for has on the way.
    """

    written: NDArray[np.int64]
    pass_read: NDArray[np.int64]
    pass_written: NDArray[np.int64]
    quantised: NDArray[np.int64]
    kept: NDArray[np.int64]
    scores: NDArray[np.int64]
    partial: NDArray[np.int64]


def plain(gemms: Gemms, result_bytes: int = BYTES["fp32"]) -> Results:
    """All results to DRAM, and no more of them."""
    none = np.zeros(len(gemms), np.int64)
    return Results(product(gemms.m, gemms.n, result_bytes), none, none, none, none, none - 1, none)


def element_bytes(config: TensorCoreConfig, precision: str) -> float:
    """Bytes of an element as cores write it to DRAM, one of `RESULTS`; quantised, its share of a block of A."""
    return config.a.stored_bytes / config.a.size if precision == "quantised" else BYTES[precision]


def scores_of(roles: Sequence[str]) -> NDArray[np.int64]:
    """Which GEMM's results each GEMM of values reads: the scores before it, int64, (L,); -1 for other roles."""
    role = np.array(roles)
    last = np.maximum.accumulate(np.where(role == "scores", np.arange(len(role)), -1))
    return np.where(role == "values", last, -1)


def results_of(
    config: TensorCoreConfig,
    gemms: Gemms,
    roles: Sequence[str],
    operands: NDArray[np.int64],
    readers: NDArray[np.int64],
    precision: str,
    attention: str,
    combined: NDArray[np.int64] | int = 1,
) -> Results:
    """What becomes of the results of a workload.

    Parameters
    ----------
    config
        A core; quantised results have the format of its A.
    gemms
        The GEMMs.
    roles
        Of each, see `hwgen.cost.workloads.ROLES`.
    operands
        Columns of each result that a later GEMM reads, int64, (L,).
    readers
        A GEMM that reads each result, -1 for none, int64, (L,).
    precision
        One of `RESULTS`. Logits are written as BF16 where the others are quantised.
    attention
        One of `ATTENTION`.
    combined
        Rows of each result that are added up to one operand, int64, (L,).
    """
    scores = scores_of(roles) if attention == "fused" else np.full(len(gemms), -1, np.int64)
    takes = scores >= 0
    partial = np.zeros(len(gemms), np.int64)
    np.add.at(partial, scores[takes], gemms.n[takes] * PARTIAL_BYTES)
    stays = np.zeros(len(gemms), bool)
    stays[scores[takes]] = True
    on_chip = precision == "quantised"
    logits = np.array(roles) == "logits"
    read_at_half_rate = np.append(gemms.half, False)[readers]
    # Rows that are added up are one operand: each has its share of the columns.
    columns = -(-operands // combined)
    stored = product(gemms.m, row_bytes(config, read_at_half_rate, columns, config.a))
    raw = product(gemms.m, gemms.n, BYTES["bf16" if on_chip else precision])
    passes = ~stays & ~logits & ((not on_chip) | (np.asarray(combined) > 1))
    return Results(
        written=np.where(stays, 0, np.where(~logits & ~passes, stored, raw)),
        pass_read=np.where(passes, raw, 0),
        pass_written=np.where(passes, stored, 0),
        # What writes FP8 is the same for every format, and no quantiser of FP4.
        quantised=np.where(logits | read_at_half_rate, 0, product(gemms.m, columns)),
        # In FP32 written by the cores and read by what quantises, then written as operands.
        kept=np.where(stays, product(gemms.m, gemms.n, 2 * PARTIAL_BYTES) + stored, 0),
        scores=scores,
        partial=partial,
    )

"""Prefill without masked scores: attention of one block of queries after another.

A token attends to those before it and to itself. So of the square of scores, queries by keys, a half less a bit is
masked. A kernel works on a block of queries at a time, and leaves out the keys behind the block's last query::

    queries     keys -->
       |     [scores][      ]        a block of so many queries and all keys up to its last one is
       v     [scores][scores]        a GEMM of its own, and so is what its values are
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwgen.cost.gemms import Gemms
from hwgen.cost.results import scores_of
from hwgen.cost.workloads import Workload
from hwgen.errors import InputError

__all__ = ["MOST_BLOCKS", "without_masked"]

MOST_BLOCKS = 64
"""Blocks of queries, each of which is an entry of a report."""


@dataclass(frozen=True)
class _Entry:
    """One GEMM of the new list: of which GEMM it is a part, and of which queries."""

    place: int
    first: int = 0
    queries: int = 0


def without_masked(workload: Workload, queries: int, block: int) -> Workload:
    """The workload with scores and values of ``block`` queries each, with all keys up to the last of these queries.

    A GEMM of scores has as many rows for each query; its columns are keys, of which the last ones are those of the
    queries. Each block reads its keys and values anew. The last block may have fewer queries.

    Parameters
    ----------
    workload
        A list in whose sizes ``queries`` stands for the tokens of a sequence, as in prefill.
    queries
        How many these are.
    block
        Queries of a block, at least 1.

    Returns
    -------
    Workload
        Names tell the queries, counted from 1. Values follow their scores, block by block. The first has their notes.

    Raises
    ------
    InputError
        There are no scores, they do not fit the number of queries, or the blocks are more than `MOST_BLOCKS`.
    """
    _check(workload, queries, block)
    entries = list(_entries(workload, queries, block))
    shapes, places = workload.gemms, np.array([entry.place for entry in entries])
    roles = tuple(workload.roles[place] for place in places)
    share = np.array([entry.queries for entry in entries], np.int64)
    whole = share == 0
    hidden = queries - share - [entry.first for entry in entries]
    scores, values = (np.array([role == each for role in roles]) for each in ("scores", "values"))
    n = shapes.n[places] - np.where(scores, hidden, 0)
    return replace(
        workload,
        names=tuple(
            workload.names[entry.place]
            + (f", queries {entry.first + 1} to {entry.first + entry.queries}" if entry.queries else "")
            for entry in entries
        ),
        gemms=Gemms(
            np.where(whole, shapes.m[places], shapes.m[places] // queries * share),
            n,
            shapes.k[places] - np.where(values, hidden, 0),
            shapes.batch[places],
            shapes.half[places],
        ),
        count=workload.count[places],
        notes=tuple("" if entry.first else workload.notes[entry.place] for entry in entries),
        roles=roles,
        operands=np.minimum(workload.operands[places], n),
        combined=workload.combined[places],
        readers=np.array(_readers(workload, entries), np.int64),
        listed_half=workload.listed_half[places],
        query_block=block,
    )


def _check(workload: Workload, queries: int, block: int) -> None:
    """Check that scores of so many queries can be divided into blocks."""
    asked = f"--skip-masked {block}"
    if "scores" not in workload.roles:
        raise InputError(f"{asked}: {workload.title} has no GEMM with the role 'scores'")
    if (blocks := -(-queries // block)) > MOST_BLOCKS:
        least = -(-queries // MOST_BLOCKS)
        raise InputError(f"{asked}: {blocks} blocks of queries; at most {MOST_BLOCKS}, so {least} or more")
    for name, role, m, n in zip(workload.names, workload.roles, workload.gemms.m, workload.gemms.n, strict=True):
        if role == "scores" and (m % queries or n < queries):
            raise InputError(
                f"{asked}: {workload.title}: GEMM {name}: m = {m}, n = {n}: m must be a multiple of the {queries}"
                " queries, and n at least that many"
            )


def _entries(workload: Workload, queries: int, block: int) -> Iterator[_Entry]:
    """The new list in order: scores and their values take turns where the scores were."""
    scores = scores_of(workload.roles)
    for place, role in enumerate(workload.roles):
        if role == "scores":
            for first in range(0, queries, block):
                for each in (place, *np.flatnonzero(scores == place).tolist()):
                    yield _Entry(each, first, min(block, queries - first))
        elif role in ("linear", "logits"):
            yield _Entry(place)


def _readers(workload: Workload, entries: Sequence[_Entry]) -> list[int]:
    """Where in the new list the reader of each entry's result is: of scores that of the same block; -1 for none."""
    # Of several entries of one GEMM the first one reads.
    first, of_block = dict[int, int](), dict[tuple[int, int], int]()
    for number, entry in enumerate(entries):
        first.setdefault(entry.place, number)
        of_block[entry.place, entry.first] = number
    found = []
    for entry in entries:
        reader = int(workload.readers[entry.place])
        same_block = workload.roles[entry.place] == "scores" and workload.roles[reader] == "values"
        found.append(of_block.get((reader, entry.first), -1) if same_block else first.get(reader, -1))
    return found

"""From the transitions of a cell's inputs to those of its output, for a cycle of all cells at once.

A cell merges the transitions of its inputs in order of time; of two at one time that of the first input comes first.
Each that changes the output comes out a delay later. Delays are inertial: a pulse that would end before it has come out
is swallowed (IEEE 1364-2005, 6.1.3).

Which input is next, whether the output follows, and whether a pulse is swallowed are hard to predict for a processor.
So they choose numbers here, not what is done next. Nets are numbered in the order in which cells need them: those that
a cell reads are mostly still in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwgen.jit import compiled, inner

__all__ = ["MAX_INPUTS", "Cells", "Sources", "counted", "numbered", "settle", "transitions"]

MAX_INPUTS = 12
"""Cells with more inputs are not simulated."""

# A word says of a net, from the lowest bit: its value before the cycle, how many transitions it has, and where in the
# pool these begin. Behind the last one the pool has one at `_NEVER`.
_VALUE = 1
_LENGTH = (1 << 24) - 2
_START = 24
_NEVER = np.float32(np.inf)


class Sources(NamedTuple):
    """What changes at the clock edge.

    Attributes
    ----------
    nets : numpy.ndarray
        Shape (sources,).
    delays : numpy.ndarray
        Shape (sources, 2), float32: ns from the edge to the rising and to the falling net; 0 at ports.
    """

    nets: np.ndarray
    delays: np.ndarray


class Cells(NamedTuple):
    """Outputs of the cells between flip-flops, in topological order. Narrow types, so that they stay in the cache.

    Attributes
    ----------
    nets, first, width : numpy.ndarray
        Shape (outputs,), int32: net, place of its first input in `inputs`, and number of inputs.
    inputs : numpy.ndarray
        Shape (places,), int32: nets, those of one output behind those of the one before.
    truth, pick, own : numpy.ndarray
        Shape (outputs,), int32: where truth table, choice and delays begin in `tables`, `picks` and `delays`.
    tables : numpy.ndarray
        uint8: truth tables one after another, the first input the lowest bit.
    picks : numpy.ndarray
        uint16: for each input, then for each row that its edge leads to, which of its delays an output takes; any of
        them where the edge leaves the output as it is.
    delays : numpy.ndarray
        float32: ns to the driver of the output's net, at least 0.
    wire : numpy.ndarray
        Shape (outputs, 2), float32: ns from there to the loads, by edge; edge 0 rises.
    """

    nets: np.ndarray
    first: np.ndarray
    width: np.ndarray
    inputs: np.ndarray
    truth: np.ndarray
    pick: np.ndarray
    own: np.ndarray
    tables: np.ndarray
    picks: np.ndarray
    delays: np.ndarray
    wire: np.ndarray


def numbered(cells: Cells, sources: Sources, n_nets: int) -> tuple[Cells, Sources, np.ndarray]:
    """Cells and sources with their nets numbered as cells need them, and the new number of each net.

    Constants keep theirs, 0 and 1. A net that a cell drives comes when that cell's turn does, any other one when the
    first cell reads it.
    """
    turn = np.full(n_nets, 2 * len(cells.nets), np.int64)
    nets, at = np.unique(cells.inputs, return_index=True)
    turn[nets] = 2 * np.repeat(np.arange(len(cells.nets)), cells.width)[at]
    turn[cells.nets] = 2 * np.arange(len(cells.nets)) + 1
    turn[:2] = -1
    place = np.empty(n_nets, np.int32)
    place[np.argsort(turn, kind="stable")] = np.arange(n_nets)
    found = cells._replace(nets=place[cells.nets], inputs=place[cells.inputs])
    return found, sources._replace(nets=place[sources.nets]), place


@compiled
def settle(state: np.ndarray, cells: Cells) -> None:
    """Bring ``state``, the value of every net, in line with its sources."""
    for gate in range(len(cells.nets)):
        row = 0
        for place in range(cells.width[gate]):
            row |= np.int64(state[cells.inputs[cells.first[gate] + place]]) << place
        state[cells.nets[gate]] = cells.tables[cells.truth[gate] + row]


class _Scratch(NamedTuple):
    """Of the inputs of a cell that have transitions: which they are, where the next is in the pool, and when it is."""

    inputs: np.ndarray
    at: np.ndarray
    coming: np.ndarray


@compiled
def transitions(
    before: np.ndarray, after: np.ndarray, sources: Sources, cells: Cells, room: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions of one cycle: where those of each net begin in a pool of times in ns, how many there are, the pool.

    ``before`` has the value of every net before it, ``after`` those of the sources in it. The pool has ``room`` for so
    many numbers at first, and grows as it must.
    """
    words, pool = before.astype(np.int64), np.empty(room, np.float32)
    scratch = _scratch()
    while not _cycle(after, sources, cells, words, pool, scratch):
        words, pool = before.astype(np.int64), np.empty(2 * len(pool) + 1, np.float32)
    return words >> _START, (words & _LENGTH) >> 1, pool


@compiled
def counted(before: np.ndarray, after: np.ndarray, sources: Sources, cells: Cells, n_nets: int) -> np.ndarray:
    """Transitions of each net beyond one, over all cycles; shape (n_nets,).

    ``before`` and ``after`` have the values of the sources, shape (cycles, sources).
    """
    counts = np.zeros(n_nets, np.int64)
    settled = np.zeros(n_nets, np.uint64)
    settled[1] = ~np.uint64(0)
    words, pool = np.empty(n_nets, np.int64), np.empty(16 * n_nets + 1024, np.float32)
    scratch = _scratch()
    for first in range(0, len(before), 64):
        last = min(first + 64, len(before))
        for index in range(len(sources.nets)):
            word = np.uint64(0)
            for cycle in range(first, last):
                word |= np.uint64(before[cycle, index]) << np.uint64(cycle - first)
            settled[sources.nets[index]] = word
        _settle_words(settled, cells)
        for cycle in range(first, last):
            _take_bit(settled, cycle - first, words)
            while not _cycle(after[cycle], sources, cells, words, pool, scratch):
                pool = np.empty(2 * len(pool), np.float32)
                _take_bit(settled, cycle - first, words)
            for net in range(n_nets):
                counts[net] += (words[net] & _LENGTH) >> 1 & ~1
    return counts


@compiled
def _scratch() -> _Scratch:
    return _Scratch(np.empty(MAX_INPUTS, np.int64), np.empty(MAX_INPUTS, np.int64), np.empty(MAX_INPUTS, np.float32))


@inner
def _take_bit(settled: np.ndarray, place: int, words: np.ndarray) -> None:
    """Values before a cycle, one bit of what each net is settled to."""
    for net in range(len(words)):
        words[net] = np.int64(settled[net] >> np.uint64(place) & np.uint64(1))


@inner
def _cycle(
    after: np.ndarray, sources: Sources, cells: Cells, words: np.ndarray, pool: np.ndarray, scratch: _Scratch
) -> bool:
    """Simulate one cycle: ``words`` has the values before it, and then the transitions.

    Returns whether the pool has room for them; if it has not, nothing else is of use.
    """
    if len(pool) <= 2 * len(sources.nets) + 1:
        return False
    inputs, at, _ = scratch
    # This stands before all others, where a cell looks for the one before.
    pool[0] = _NEVER
    used = 1
    for index in range(len(sources.nets)):
        net = sources.nets[index]
        before = words[net] & _VALUE
        if before != after[index]:
            words[net] = used << _START | 2 | before
            pool[used] = sources.delays[index, before]
            pool[used + 1] = _NEVER
            used += 2
    for gate in range(len(cells.nets)):
        row, active, more = 0, 0, 0
        for place in range(cells.width[gate]):
            word = words[cells.inputs[cells.first[gate] + place]]
            row |= (word & _VALUE) << place
            length = (word & _LENGTH) >> 1
            inputs[active] = place
            at[active] = word >> _START
            active += np.int64(length != 0)
            more += length
        if more == 0:
            continue
        if used + more >= len(pool):
            return False
        net = cells.nets[gate]
        before = words[net] & _VALUE
        if active == 1:
            end = _one(cells, gate, row, before, more, pool, used, scratch)
        elif active == 2:
            end = _two(cells, gate, row, before, more, pool, used, scratch)
        else:
            end = _many(cells, gate, row, before, more, pool, used, scratch, active)
        if end > used:
            # A net has one delay for each edge: they must not overtake one another.
            latest, edge = -_NEVER, before
            for place in range(used, end):
                latest = max(latest, pool[place] + cells.wire[gate, edge])
                pool[place] = latest
                edge ^= 1
            pool[end] = _NEVER
            words[net] = used << _START | end - used << 1 | before
            used = end + 1
    return True


@inner
def _follows(
    cells: Cells, gate: int, row: int, way: int, time: float, value: int, pool: np.ndarray, begun: int, end: int
) -> tuple[int, int]:
    """The output after an input's transition, and where its transitions, which have ``begun`` in the pool, end then.

    ``row`` is that of the truth table, ``way`` where the choices of the input's edges begin.
    """
    follows = np.int64(cells.tables[cells.truth[gate] + row])
    out = np.float32(time + cells.delays[cells.own[gate] + np.int64(cells.picks[way + row])])
    last = pool[end - 1]
    # The one before has not come out yet, or would be overtaken: neither of the two is seen.
    swallowed = np.int64(end > begun) & (np.int64(time < last) | np.int64(out <= last))
    pool[end] = out
    return follows, end + (follows ^ value) * (1 - 2 * swallowed)


@inner
def _one(
    cells: Cells, gate: int, row: int, value: int, more: int, pool: np.ndarray, begun: int, scratch: _Scratch
) -> int:
    """Where the transitions of an output end in the pool, of which one input alone has any."""
    end, place, first = begun, scratch.inputs[0], scratch.at[0]
    way = np.int64(cells.pick[gate]) + (place << np.int64(cells.width[gate]))
    for index in range(first, first + more):
        row ^= 1 << place
        value, end = _follows(cells, gate, row, way, pool[index], value, pool, begun, end)
    return end


@inner
def _two(
    cells: Cells, gate: int, row: int, value: int, more: int, pool: np.ndarray, begun: int, scratch: _Scratch
) -> int:
    """The same, of which two inputs have some."""
    end, width, pick = begun, np.int64(cells.width[gate]), np.int64(cells.pick[gate])
    first, second = scratch.at[0], scratch.at[1]
    one, other = pool[first], pool[second]
    for _ in range(more):
        later = np.int64(other < one)
        place = scratch.inputs[later]
        time = other if later else one
        second += later
        first += 1 - later
        one, other = pool[first], pool[second]
        row ^= 1 << place
        value, end = _follows(cells, gate, row, pick + (place << width), time, value, pool, begun, end)
    return end


@inner
def _many(
    cells: Cells,
    gate: int,
    row: int,
    value: int,
    more: int,
    pool: np.ndarray,
    begun: int,
    scratch: _Scratch,
    active: int,
) -> int:
    """The same, of which several inputs have some."""
    end, width, pick = begun, np.int64(cells.width[gate]), np.int64(cells.pick[gate])
    inputs, at, coming = scratch
    for index in range(active):
        coming[index] = pool[at[index]]
    for _ in range(more):
        cause, time = 0, coming[0]
        for index in range(1, active):
            sooner = coming[index] < time
            time = coming[index] if sooner else time
            cause = index if sooner else cause
        at[cause] += 1
        coming[cause] = pool[at[cause]]
        place = inputs[cause]
        row ^= 1 << place
        value, end = _follows(cells, gate, row, pick + (place << width), time, value, pool, begun, end)
    return end


@compiled
def _settle_words(words: np.ndarray, cells: Cells) -> None:
    """As `settle`, of 64 cycles at once, one in each bit of a net's word."""
    rows = np.empty(1 << MAX_INPUTS, np.uint64)
    for gate in range(len(cells.nets)):
        size, table = 1 << cells.width[gate], cells.truth[gate]
        for row in range(size):
            rows[row] = ~np.uint64(0) if cells.tables[table + row] else np.uint64(0)
        # Each input halves the table, the lowest bit first.
        for place in range(cells.width[gate]):
            value = words[cells.inputs[cells.first[gate] + place]]
            size >>= 1
            for row in range(size):
                rows[row] = (rows[2 * row] & ~value) | (rows[2 * row + 1] & value)
        words[cells.nets[gate]] = rows[0]

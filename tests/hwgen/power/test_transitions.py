"""Transitions of random cells, against a simulation one event at a time."""

from itertools import pairwise

import numpy as np
import pytest

from hwgen.power.transitions import MAX_INPUTS, Cells, Sources, counted, numbered, settle, transitions

_SOURCES = 6


def random_cells(rng, count, most):
    """So many cells with up to ``most`` inputs, behind constants and sources; times are multiples of 1/8 ns."""

    def times(*shape):
        return (rng.integers(0, 12, shape) / 8).astype(np.float32)

    first_net = 2 + _SOURCES
    width = rng.integers(0, most + 1, count)
    # Half of them read sources alone, else all that is behind most cells would stand still.
    inputs = [rng.integers(0, first_net + gate * rng.integers(0, 2), n) for gate, n in enumerate(width)]
    choices = rng.integers(1, 4, count)
    picks = [rng.integers(0, n, size << size) for n, size in zip(choices, width, strict=True)]
    tables = [rng.integers(0, 2, 1 << size) if size > 2 else rng.permutation(1 << size) & 1 for size in width]
    nets = first_net + np.arange(count)

    def begins(parts):
        return np.cumsum([0, *map(len, parts)])[:-1].astype(np.int32)

    delays = [times(n) for n in choices]
    cells = Cells(
        nets=nets.astype(np.int32),
        first=begins(inputs),
        width=width.astype(np.int32),
        inputs=np.concatenate(inputs).astype(np.int32),
        truth=begins(tables),
        pick=begins(picks),
        own=begins(delays),
        tables=np.concatenate(tables).astype(np.uint8),
        picks=np.concatenate(picks).astype(np.uint16),
        delays=np.concatenate(delays),
        wire=times(count, 2),
    )
    return cells, Sources(np.arange(2, first_net), times(_SOURCES, 2)), first_net + count


def one_by_one(cells, sources, before, after, n_nets):
    """Times of the transitions of every net, by sorting those of a cell's inputs."""
    found = [[] for _ in range(n_nets)]
    for index, net in enumerate(sources.nets):
        if before[net] != after[index]:
            found[net] = [sources.delays[index][0 if after[index] else 1]]
    for gate, net in enumerate(cells.nets):
        width, first = int(cells.width[gate]), cells.first[gate]
        nets = cells.inputs[first : first + width]
        values = [int(before[each]) for each in nets]
        value = int(before[net])
        out = []
        for time, place in sorted((time, place) for place, each in enumerate(nets) for time in found[each]):
            values[place] ^= 1
            row = sum(bit << number for number, bit in enumerate(values))
            if cells.tables[cells.truth[gate] + row] == value:
                continue
            value ^= 1
            choice = cells.picks[cells.pick[gate] + (place << width) + row]
            comes = np.float32(time + cells.delays[cells.own[gate] + choice])
            if out and (time < out[-1] or comes <= out[-1]):
                out.pop()
            else:
                out.append(comes)
        latest = -np.inf
        for number, time in enumerate(out):
            rises = (int(before[net]) + number) % 2 == 0
            latest = max(latest, np.float32(time + cells.wire[gate][0 if rises else 1]))
            out[number] = latest
        found[net] = out
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most", [1, 2, 3, 5, MAX_INPUTS])
def test_transitions_are_those_of_one_event_at_a_time(seed, most):
    rng = np.random.default_rng(seed)
    cells, sources, n_nets = random_cells(rng, 60, most)
    # More than one word of cycles.
    values = rng.integers(0, 2, (130, _SOURCES), np.uint8)
    extra = np.zeros(n_nets, np.int64)
    for before, after in pairwise(values):
        state = np.zeros(n_nets, np.uint8)
        state[1] = 1
        state[sources.nets] = before
        settle(state, cells)
        expected = one_by_one(cells, sources, state, after, n_nets)
        start, length, pool = transitions(state, after, sources, cells, 0)
        assert [pool[at : at + n].tolist() for at, n in zip(start, length, strict=True)] == expected
        extra += [len(each) // 2 * 2 for each in expected]
    assert extra.any() or most < 3
    assert counted(values[:-1], values[1:], sources, cells, n_nets).tolist() == extra.tolist()
    renumbered, clocked, place = numbered(cells, sources, n_nets)
    assert counted(values[:-1], values[1:], clocked, renumbered, n_nets)[place].tolist() == extra.tolist()


def test_numbers_are_in_the_order_of_use():
    """Constants keep theirs; a net has its number before all cells that read it, but sources that nothing reads."""
    rng = np.random.default_rng(1)
    cells, sources, n_nets = random_cells(rng, 40, 4)
    found, clocked, place = numbered(cells, sources, n_nets)
    assert sorted(place.tolist()) == list(range(n_nets))
    assert place[:2].tolist() == [0, 1]
    assert place[cells.nets].tolist() == found.nets.tolist() == sorted(found.nets.tolist())
    assert place[sources.nets].tolist() == clocked.nets.tolist()
    for gate, net in enumerate(found.nets):
        assert all(read < net for read in found.inputs[found.first[gate] :][: found.width[gate]])

"""A grid of cores in step, fed by a shared operand buffer and DRAM.

::

    DRAM <--> [operand buffer] --> rows of A ---> core  core  core
                     |                            core  core  core    x products of a batch at once
                     +------------ rows of B -------^-----^-----^

All cores take a step in the same cycle: with P x Q cores, a block of P rows by Q columns outputs is one tile of the
grid, and a row of A or B goes to all cores that need it at once. The cycles of such a grid are exactly those of
one core with tiles as large (`hwgen.cost.schedule`); hwgen builds no grid, so that nothing checks this in RTL.

The memory is a model, and hwgen builds none of it either:

- The buffer hands over ``operands_per_cycle`` elements with their scales. A step takes whole cycles, and the next is
  fetched when the one before has been accepted.
- The work comes in phases. With double buffering, while the grid works on a phase in one half of the buffer, the
  next one is loaded into the other and the results of the one before are stored; a phase lasts as long as the
  slower of the two. Without, loads, work and stores follow one another, and all of the buffer can be used.
- The order of tiles is the one of these with the least DRAM traffic:

  =========== ======================================= ==================================================
  order       stays in the buffer                     DRAM reads
  =========== ======================================= ==================================================
  ``hold A``  r bands of A, over all of K             A once, B once for every r bands of A
  ``hold B``  r bands of B, over all of K             B once, A once for every r bands of B
  ``stream``  nothing                                 A once for every band of B, B for every band of A
  =========== ======================================= ==================================================

  A band is what one row (column) of tiles reads of A (B). As many bands are held as fit beside one band of the other
  operand; if none does, one is held and the other operand passes step by step.
- Of fused attention (`hwgen.cost.results`) half of the space is for scores, a quarter for queries and keys, a quarter
  for values. Scores are computed block by block of context: of the rows of all bands of A that are held, as many
  columns as fit in FP32. The GEMM of scores holds bands of A, beside the FP32 partial results of their rows. Or it
  holds all of B, where all values fit, too; then it takes a band of A after the other. The other GEMM (order
  ``fused``) takes A from the buffer, and reads B as often as the first its own. From one block to the next its partial
  results leave the cores, and come back.
- A pass of the quantiser reads and writes DRAM at full rate when the GEMM is done; it does not hold anything up.
- Every product begins in an empty pipeline and an empty buffer; those of one batch follow without a break.
- Products of a batch are spread evenly: on an arrangement of 37 a batch of 128 is four groups of 32. Buffer and
  bandwidth are shared by the products that there are. Where the last group has fewer its loads and stores are shorter,
  while its steps come as those of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.cost.gemms import Gemms, product
from hwgen.cost.results import PARTIAL_BYTES, Results, plain
from hwgen.cost.schedule import core_cycles, steps_per_tile
from hwgen.cost.stored import row_bytes, step_bytes
from hwgen.errors import InputError
from hwgen.formats import BlockFormat

__all__ = ["ORDERS", "Arrangement", "GridRun", "Memory", "arrange", "fixed", "run"]

ORDERS = ("hold A", "hold B", "stream", "fused")
"""Orders of tiles, see above."""

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """What feeds a grid.

    Parameters
    ----------
    buffer_bytes
        Capacity of the operand buffer.
    dram_bytes_per_second
        Bandwidth of the DRAM, reads and writes together; may be infinite.
    operands_per_cycle
        FP4 elements, each with its share of a scale, that the buffer hands over in a cycle; may be infinite. An FP8
        element takes the place of two.
    double_buffered
        Whether loads and stores overlap with work.

    Raises
    ------
    InputError
        A figure is below 1; the message names it.
    """

    buffer_bytes: float
    dram_bytes_per_second: float = math.inf
    operands_per_cycle: float = math.inf
    double_buffered: bool = True

    def __post_init__(self) -> None:
        for name in ("buffer_bytes", "dram_bytes_per_second", "operands_per_cycle"):
            if not getattr(self, name) >= 1:
                raise InputError(f"{name} = {getattr(self, name):g}: must be at least 1")

    @property
    def usable_bytes(self) -> float:
        """Bytes of the buffer for what is worked on; the rest is for what is loaded meanwhile."""
        return self.buffer_bytes * (0.5 if self.double_buffered else 1)


@dataclass(frozen=True)
class Arrangement:
    """How the cores share each GEMM; int64, (L,) each.

    Parameters
    ----------
    batch
        Products of the batch at once, at most.
    rows, columns
        Cores along M and along N of each product.
    """

    batch: _Ints
    rows: _Ints
    columns: _Ints

    @property
    def cores(self) -> _Ints:
        """Number of cores."""
        return self.batch * self.rows * self.columns


@dataclass(frozen=True)
class GridRun:
    """What L GEMMs are on a grid; arrays, (L,).

    Parameters
    ----------
    arrangement
        How the cores share each GEMM.
    order
        Place in `ORDERS`.
    period
        Cycles in which the buffer hands over a step's operands.
    steps
        Steps of every core.
    core_cycles
        Cycles without DRAM.
    cycles
        Cycles with it, a pass of the quantiser included, float.
    operand_bytes
        Bytes that the buffer hands over.
    dram_read_bytes, dram_write_bytes
        Bytes from and to the DRAM, a pass of the quantiser included.
    pass_bytes
        Those of the pass alone, read and written.
    buffer_bytes
        Bytes read from the buffer or written to it: operands, what comes from DRAM for them, and of fused attention
        scores and partial results.
    quantised
        Elements that are quantised.
    busy
        Cores that have an output to work on, as a share of all, mean over the steps.
    utilisation
        Multiply-accumulates asked for, as a share of what all cores could do in these cycles at their rate.
    half
        Whether it is in FP8, at half the rate.
    dram_cycles
        Cycles that the DRAM is busy, float.
    """

    arrangement: Arrangement
    order: _Ints
    period: _Ints
    steps: _Ints
    core_cycles: _Ints
    cycles: _Floats
    operand_bytes: _Ints
    dram_read_bytes: _Ints
    dram_write_bytes: _Ints
    pass_bytes: _Ints
    buffer_bytes: _Ints
    quantised: _Ints
    busy: _Floats
    utilisation: _Floats
    half: NDArray[np.bool_]
    dram_cycles: _Floats = field(repr=False)

    @property
    def bound(self) -> list[str]:
        """What each takes longest for: ``DRAM``, ``buffer`` (operands come slower than steps could) or ``cores``."""
        return np.select(
            [self.dram_cycles > self.core_cycles, self.period > 1], ["DRAM", "buffer"], default="cores"
        ).tolist()


def _ceil(value: _Ints, by: _Ints | int) -> _Ints:
    return -(-value // by)


def fixed(gemms: Gemms, batch: int, rows: int, columns: int) -> Arrangement:
    """The same arrangement for all GEMMs.

    Raises
    ------
    InputError
        A number is below 1.
    """
    for name, value in (("batch", batch), ("rows", rows), ("columns", columns)):
        if value < 1:
            raise InputError(f"{name} = {value}: must be at least 1")
    return Arrangement(*(np.full(len(gemms), value, np.int64) for value in (batch, rows, columns)))


def arrange(
    config: TensorCoreConfig, gemms: Gemms, cores: int, memory: Memory, results: Results | None = None
) -> Arrangement:
    """Choose for each GEMM the arrangement of ``cores`` cores with the fewest cycles without DRAM.

    Among equals, that with the fewest operand reads. Those that the buffer cannot feed are no choice. If it can feed
    none of a GEMM, it is the one that needs the smallest buffer, and `run` says so.

    Parameters
    ----------
    config, gemms, memory, results
        As for `run`.
    cores
        All of them are used: the product of the three numbers.

    Raises
    ------
    InputError
        ``cores`` is below 1, or there is more than can be counted.
    """
    if cores < 1:
        raise InputError(f"cores = {cores}: must be at least 1")
    results = plain(gemms) if results is None else results
    best: list[NDArray[Any]] = []
    for batch, rows, columns in _factors(cores):
        tried = fixed(gemms, batch, rows, columns)
        tiling = _tiling(config, gemms, tried, memory)
        room = _room(config, gemms, tried, tiling, memory, results)
        # Rows read, as a float: what nobody would choose may be too many to count.
        reads = (
            tiling.tiles_m
            * tiling.tiles_n
            * gemms.batch
            * (tiling.fed // tiling.at_once)
            * np.asarray(tiling.deep, float)
        )
        lacks = np.where(room.fits.any(axis=0), 0.0, room.needs)
        found = [lacks, tiling.cycles, reads, tried.batch, tried.rows, tried.columns]
        better, equal = np.full(len(gemms), not best), np.ones(len(gemms), bool)
        for new, old in zip(found, best[:3], strict=False):
            better |= equal & (new < old)
            equal &= new == old
        best = [np.where(better, new, old) for new, old in zip(found, best or found, strict=True)]
    return Arrangement(*best[3:])


def _factors(cores: int) -> list[tuple[int, int, int]]:
    """All (batch, rows, columns) whose product is ``cores``."""
    divisors = [each for each in range(1, cores + 1) if cores % each == 0]
    return [(one, other, cores // one // other) for one in divisors for other in divisors if cores // one % other == 0]


@dataclass(frozen=True)
class _Tiling:
    """GEMMs cut into tiles of the grid, without DRAM."""

    tiles_m: _Ints
    tiles_n: _Ints
    turns: _Ints  # groups of products at once
    at_once: _Ints  # products in a group
    left: _Floats  # those in the last group, as a share of that
    deep: _Ints
    period: _Ints
    steps: _Ints
    cycles: _Ints
    fed: _Ints  # rows of A and B in a step
    fed_bytes: _Ints  # what those of one product take

    @property
    def passes(self) -> _Ints:
        """Tiles of one product."""
        return self.tiles_m * self.tiles_n

    @property
    def tiles(self) -> _Ints:
        """Of all groups of products at once."""
        return self.passes * self.turns


def _tiling(config: TensorCoreConfig, gemms: Gemms, arrangement: Arrangement, memory: Memory) -> _Tiling:
    rows, columns = arrangement.rows * config.rows, arrangement.columns * config.columns
    tiles_m, tiles_n = _ceil(gemms.m, rows), _ceil(gemms.n, columns)
    turns = _ceil(gemms.batch, arrangement.batch)
    at_once = _ceil(gemms.batch, turns)
    deep = steps_per_tile(config, gemms)
    tiles = tiles_m * tiles_n * turns
    fed = at_once * (rows + columns)
    fed_bytes = rows * step_bytes(config, gemms.half, config.a) + columns * step_bytes(config, gemms.half, config.b)
    period = np.maximum(np.ceil(fed * config.depth / memory.operands_per_cycle), 1).astype(np.int64)
    return _Tiling(
        tiles_m,
        tiles_n,
        turns,
        at_once,
        (gemms.batch - (turns - 1) * at_once) / at_once,
        deep,
        period,
        _ceil(tiles, config.interleave) * config.interleave * deep,
        core_cycles(config, tiles, deep, period),
        fed,
        fed_bytes,
    )


@dataclass(frozen=True)
class _Order:
    """An order of tiles, per product: phases come in groups, the last of which may be shorter.

    ``size`` and ``last_size`` are in tiles of the held operand, ``part`` is the share of a tile that a phase works on;
    reads are in bytes, ``first`` of each group for each of its held bands, ``each`` of every phase.
    """

    fits: NDArray[np.bool_]
    groups: _Ints
    size: _Ints | _Floats
    last_size: _Ints | _Floats
    phases: _Ints
    part: _Floats
    first: _Floats
    each: _Floats
    reads: _Ints


@dataclass(frozen=True)
class _Side:
    """One operand of a product."""

    tiles: _Ints
    total_bytes: _Ints
    band_bytes: _Floats  # of the largest band
    step_bytes: _Floats

    def passing(self, turns: int) -> _Floats:
        """Bytes of what is there while it passes: a band, or a step of ``turns`` tiles where that is less."""
        return np.minimum(self.band_bytes, turns * self.step_bytes)


def _sides(config: TensorCoreConfig, gemms: Gemms, arrangement: Arrangement, tiling: _Tiling) -> tuple[_Side, _Side]:
    """A and B."""

    def side(form: BlockFormat, size: _Ints, tiles: _Ints, height: _Ints) -> _Side:
        row = row_bytes(config, gemms.half, gemms.k, form)
        return _Side(
            tiles=tiles,
            total_bytes=size * row,
            band_bytes=np.minimum(size, height) * row.astype(float),
            step_bytes=height.astype(float) * step_bytes(config, gemms.half, form),
        )

    return (
        side(config.a, gemms.m, tiling.tiles_m, arrangement.rows * config.rows),
        side(config.b, gemms.n, tiling.tiles_n, arrangement.columns * config.columns),
    )


@dataclass(frozen=True)
class _Room:
    """What there is space for, of a product: bytes in float, (L,) each."""

    a: _Side
    b: _Side
    operands: _Floats  # bytes for both operands
    scores: _Floats  # for scores of fused attention in FP32
    most: _Floats  # bands of A whose scores fit, a column of tiles of each
    fits: NDArray[np.bool_]  # (3, L), the orders that need no other GEMM
    needs: _Floats  # bytes of the buffer with which each would fit


def _bands(held: _Side, other: _Side, usable: _Floats, most: _Floats | float = math.inf) -> _Ints:
    """How many are held beside one of the other operand, ``most`` at most; one where that passes step by step."""
    room = np.floor((usable - other.band_bytes) / held.band_bytes)
    return np.clip(np.minimum(room, most), 1, held.tiles).astype(np.int64)


def _room(
    config: TensorCoreConfig,
    gemms: Gemms,
    arrangement: Arrangement,
    tiling: _Tiling,
    memory: Memory,
    results: Results,
) -> _Room:
    """What there is space for."""
    a, b = _sides(config, gemms, arrangement, tiling)
    turns = config.interleave
    fused, after = results.partial > 0, results.scores >= 0
    share = np.where(fused | after, 0.25, 1.0)
    whole = memory.usable_bytes / tiling.at_once
    usable = share * whole
    rows, columns = arrangement.rows * config.rows, arrangement.columns * config.columns
    a = replace(a, band_bytes=a.band_bytes + np.minimum(gemms.m, rows) * results.partial)
    scored = rows * columns * float(PARTIAL_BYTES)
    # All values that scores of a GEMM are multiplied by.
    values = np.zeros(len(gemms))
    np.add.at(values, results.scores[after], b.total_bytes[after])
    # Attention cannot leave the partial results of all rows behind: rows are held, or the whole context is.
    room = ~fused | (0.5 * whole >= turns * scored)
    all_of_b = (_bands(b, a, usable) >= b.tiles) & (usable >= values)
    hold_a = a.band_bytes + b.passing(turns)
    streams = np.where(after, b.passing(turns), turns * (a.step_bytes + b.step_bytes))
    fits = np.array(
        [
            (usable >= hold_a) & room,
            (usable >= b.band_bytes + a.passing(turns)) & room & (~fused | all_of_b),
            (usable >= streams) & ~fused,
        ]
    )
    # Of fused scores: a band of A beside what passes of B, or a block of scores, whichever takes more.
    least = np.where(fused, np.maximum(hold_a, 0.5 * turns * scored), streams)
    return _Room(
        a=a,
        b=b,
        operands=usable,
        scores=0.5 * whole,
        most=np.where(fused, np.floor(0.5 * whole / scored), np.inf),
        fits=fits,
        needs=least * tiling.at_once / share * (2 if memory.double_buffered else 1),
    )


def _hold(fits: NDArray[np.bool_], size: _Ints, usable: _Floats, deep: _Ints, held: _Side, other: _Side) -> _Order:
    """Hold ``size`` bands of one operand."""
    groups = _ceil(held.tiles, size)
    parts = np.where(usable >= held.band_bytes + other.band_bytes, 1, deep)
    return _Order(
        fits=fits,
        groups=groups,
        size=size,
        last_size=held.tiles - (groups - 1) * size,
        phases=other.tiles * parts,
        part=1 / parts,
        first=held.total_bytes / held.tiles,
        each=other.total_bytes / other.tiles / parts,
        reads=held.total_bytes + other.total_bytes * groups,
    )


def _stream(fits: NDArray[np.bool_], deep: _Ints, a: _Side, b: _Side) -> _Order:
    """Hold nothing: both operands stream."""
    ones = np.ones(len(deep), np.int64)
    phases = a.tiles * b.tiles * deep
    reads = product(a.total_bytes, b.tiles) + product(b.total_bytes, a.tiles)
    return _Order(
        fits=fits,
        groups=ones,
        size=ones,
        last_size=ones,
        phases=phases,
        part=1 / deep,
        first=np.zeros(len(deep)),
        each=reads / phases,
        reads=reads,
    )


def _orders(room: _Room, tiling: _Tiling, memory: Memory, attention: NDArray[np.bool_]) -> tuple[_Order, ...]:
    """Those of `ORDERS` that need no other GEMM; every GEMM has one that fits into the buffer."""
    fits = room.fits.any(axis=0)
    if not fits.all():
        place = int(np.argmin(fits))
        what = "fused attention" if attention[place] else "one step of every core"
        raise InputError(
            f"a buffer of {_bytes(memory.buffer_bytes)}: {what} needs {_bytes(room.needs[place])}"
            f"{', double buffering counted' if memory.double_buffered else ''}"
        )
    a, b, deep, usable = room.a, room.b, tiling.deep, room.operands
    return (
        _hold(room.fits[0], _bands(a, b, usable, room.most), usable, deep, a, b),
        _hold(room.fits[1], _bands(b, a, usable), usable, deep, b, a),
        _stream(room.fits[2], deep, a, b),
    )


def _after_scores(deep: _Ints, tiles: _Ints, b: _Side, groups: _Ints) -> _Order:
    """A is in the buffer, and B passes step by step for each of ``groups`` groups of rows of A."""
    size = tiles / groups  # groups are those of the scores, whose tiles may be of another height
    return _Order(
        fits=np.ones(len(deep), np.bool_),
        groups=groups,
        size=size,
        last_size=size,
        phases=b.tiles * deep,
        part=1 / deep,
        first=np.zeros(len(deep)),
        each=b.total_bytes / (b.tiles * deep),
        reads=b.total_bytes * groups,
    )


def _bytes(number: float) -> str:
    return f"{number:,.0f} bytes ({number / 2**20:.4g} MiB)"


def _cycles(
    order: _Order,
    tile: _Floats,
    stored: _Floats,
    products: _Ints,
    left: _Floats,
    per_cycle: _Floats,
    double_buffered: bool,
) -> _Floats:
    """Cycles of all products; ``tile`` are those of the work on a tile, ``stored`` the bytes of its results.

    Loads and stores of the last product are ``left`` times those of the others.
    """
    full = order.groups - 1  # and a last one, which may be shorter

    def group(size: _Ints | _Floats, share: _Floats | float) -> _Group:
        works = size * order.part
        load = share * order.each / per_cycle
        return _Group(
            works * tile, load, share * works * stored / per_cycle, share * size * order.first / per_cycle + load
        )

    whole, short = group(order.size, 1.0), group(order.last_size, 1.0)
    last_whole, last_short = group(order.size, left), group(order.last_size, left)
    if not double_buffered:
        times = [
            full * _one_by_one(one, order.phases) + _one_by_one(other, order.phases)
            for one, other in ((whole, short), (last_whole, last_short))
        ]
        return (products - 1) * times[0] + times[1]

    def during(which: _Group, before: _Floats | float, after: _Floats | float) -> _Floats:
        """A group: ``before`` is stored in its first phase, ``after`` loaded in its last, its own in between."""
        several = (
            np.maximum(which.work, which.load + before)
            + (order.phases - 2) * np.maximum(which.work, which.load + which.store)
            + np.maximum(which.work, after + which.store)
        )
        return np.where(order.phases > 1, several, np.maximum(which.work, after + before))

    def between(one: _Group, other: _Group, before: _Floats | float, after: _Floats | float) -> _Floats:
        """All groups of a product: ``one`` is a full group, ``other`` the last."""
        second = np.where(full > 1, one.opens, other.opens)
        several = (
            during(one, before, second)
            + np.maximum(full - 2, 0) * during(one, one.store, one.opens)
            + np.where(full > 1, during(one, one.store, other.opens), 0)
            + during(other, one.store, after)
        )
        return np.where(full > 0, several, during(other, before, after))

    opens = np.where(full > 0, whole.opens, short.opens)
    last_opens = np.where(full > 0, last_whole.opens, last_short.opens)
    alone = opens + between(whole, short, 0, 0) + short.store
    more = products - 2  # besides the first and the last
    several = (
        opens
        + between(whole, short, 0, np.where(more > 0, opens, last_opens))
        + np.maximum(more - 1, 0) * between(whole, short, short.store, opens)
        + np.where(more > 0, between(whole, short, short.store, last_opens), 0)
        + between(last_whole, last_short, short.store, 0)
        + last_short.store
    )
    return np.where(products > 1, several, alone)


@dataclass(frozen=True)
class _Group:
    """Cycles of a group of phases: work, load and store of each, and the load of the first."""

    work: _Floats
    load: _Floats
    store: _Floats
    opens: _Floats


def _one_by_one(group: _Group, phases: _Ints) -> _Floats:
    """Cycles of a group where loads, work and stores follow one another."""
    return group.opens - group.load + phases * (group.load + group.work + group.store)


def _partial(results: Results, gemms: Gemms, after: NDArray[np.intp], height: _Ints, room: _Floats) -> _Ints:
    """Bytes of partial results that leave the cores and come back, (L,).

    ``height`` are the rows whose scores are there at once, ``room`` the bytes that they have; of the GEMMs ``after``
    scores, in their order.
    """
    scores = results.scores[after]
    m, context = gemms.m[scores], gemms.n[scores]
    height = np.minimum(height, m)
    full = _ceil(m, height) - 1

    def again(rows: _Ints) -> _Ints:
        """Blocks of context besides the first, each as wide as the scores of so many rows let it be."""
        return np.ceil(context / np.floor(room / (rows * PARTIAL_BYTES))).astype(np.int64) - 1

    last = m - full * height
    moved = product(again(height), height, full, places=after) + product(again(last), last, places=after)
    found = np.zeros(len(gemms), np.int64)
    found[after] = product(moved, gemms.n[after], 2 * PARTIAL_BYTES, gemms.batch[after], places=after)
    return found


def _attention(
    config: TensorCoreConfig,
    gemms: Gemms,
    arrangement: Arrangement,
    tiling: _Tiling,
    room: _Room,
    results: Results,
    groups: _Ints,
    bands: _Ints,
) -> tuple[NDArray[np.intp], _Order, _Ints]:
    """Which GEMMs take scores from the buffer, in what order, and the bytes of partial results of all GEMMs.

    ``groups`` are those of the GEMMs that hold A, one of others. ``bands`` are those of A that are worked on at once.
    """
    (after,) = np.nonzero(results.scores >= 0)
    scores = results.scores[after]
    b = _Side(*(getattr(room.b, each.name)[after] for each in fields(_Side)))
    order = _after_scores(tiling.deep[after], tiling.tiles_m[after], b, groups[scores])
    height = bands[scores] * arrangement.rows[scores] * config.rows
    return after, order, _partial(results, gemms, after, height, room.scores[scores])


def _ordered(
    config: TensorCoreConfig,
    gemms: Gemms,
    arrangement: Arrangement,
    tiling: _Tiling,
    memory: Memory,
    results: Results,
    rate: float,
) -> tuple[NDArray[np.intp], _Ints, _Floats, _Ints]:
    """The order of each, bytes that a product reads, cycles without latency and passes, and bytes of partial results.

    ``rate`` is what DRAM moves in a cycle.
    """
    room = _room(config, gemms, arrangement, tiling, memory, results)
    orders = _orders(room, tiling, memory, (results.partial > 0) | (results.scores >= 0))
    tile = (tiling.cycles - config.latency) / (tiling.passes * tiling.turns)
    stored = results.written / tiling.passes

    def cycles_of(order: _Order, which: Any = slice(None)) -> _Floats:
        return _cycles(
            order,
            tile[which],
            stored[which],
            tiling.turns[which],
            tiling.left[which],
            rate / tiling.at_once[which],
            memory.double_buffered,
        )

    times = np.array([cycles_of(order) for order in orders])
    traffic = np.array([np.where(order.fits, order.reads, np.inf) for order in orders])
    least = traffic == traffic.min(axis=0)
    chosen = np.argmin(np.where(least, times, np.inf), axis=0)
    index = chosen, np.arange(len(gemms))
    cycles, reads = times[index], np.array([order.reads for order in orders])[index]
    groups, bands = (np.where(chosen, 1, getattr(orders[0], name)) for name in ("groups", "size"))
    after, order, partial = _attention(config, gemms, arrangement, tiling, room, results, groups, bands)
    if len(after):
        chosen[after], reads[after] = ORDERS.index("fused"), order.reads
        cycles[after] = cycles_of(order, after)
    return chosen, reads, cycles, partial


def run(
    config: TensorCoreConfig,
    gemms: Gemms,
    arrangement: Arrangement,
    memory: Memory,
    clock_ns: float,
    results: Results | None = None,
) -> GridRun:
    """Run GEMMs on a grid of cores.

    Parameters
    ----------
    config
        Every core.
    gemms
        The GEMMs, one after another.
    arrangement
        See `fixed` and `arrange`.
    memory
        What feeds the cores.
    clock_ns
        Clock period.
    results
        What becomes of results; by default all go to DRAM as FP32.

    Raises
    ------
    InputError
        The buffer is too small for one step, or there is more than can be counted.
    """
    results = plain(gemms) if results is None else results
    tiling = _tiling(config, gemms, arrangement, memory)
    rate = memory.dram_bytes_per_second * clock_ns * 1e-9
    chosen, reads, cycles, partial = _ordered(config, gemms, arrangement, tiling, memory, results, rate)
    fed = product(tiling.passes, gemms.batch, tiling.deep, tiling.fed_bytes)
    loaded = product(reads, gemms.batch)
    again, back = product(results.pass_read, gemms.batch), product(results.pass_written, gemms.batch)
    read, written = loaded + again, product(results.written, gemms.batch) + back
    cycles = cycles + config.latency + (again + back) / rate
    outputs = _ceil(gemms.m, config.rows) * _ceil(gemms.n, config.columns) * gemms.batch
    return GridRun(
        arrangement=arrangement,
        order=chosen,
        period=tiling.period,
        steps=tiling.steps,
        core_cycles=tiling.cycles,
        cycles=cycles,
        operand_bytes=fed,
        dram_read_bytes=read,
        dram_write_bytes=written,
        pass_bytes=again + back,
        buffer_bytes=fed + loaded + product(results.kept, gemms.batch) + partial,
        quantised=product(results.quantised, gemms.batch),
        busy=outputs / (tiling.tiles * arrangement.cores.astype(float)),
        utilisation=gemms.macs / (cycles * arrangement.cores * (config.macs_per_step / np.where(gemms.half, 2, 1))),
        half=gemms.half,
        dram_cycles=(read + written) / rate,
    )

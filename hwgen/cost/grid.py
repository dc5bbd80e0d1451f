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
- Every product begins in an empty pipeline and an empty buffer; those of one batch follow without a break.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.cost.gemms import Gemms, product
from hwgen.cost.schedule import RESULT_BYTES, core_cycles, steps_per_tile
from hwgen.errors import InputError
from hwgen.formats import BlockFormat

__all__ = ["ORDERS", "Arrangement", "GridRun", "Memory", "arrange", "fixed", "run"]

ORDERS = ("hold A", "hold B", "stream")
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
        FP4 elements, each with its share of a scale, that the buffer hands over in a cycle; may be infinite.
    double_buffered
        Whether loads and stores overlap with work.
    result_bytes
        Bytes of an output in DRAM; the cores give FP32.

    Raises
    ------
    InputError
        A figure is below 1; the message names it.
    """

    buffer_bytes: float
    dram_bytes_per_second: float = math.inf
    operands_per_cycle: float = math.inf
    double_buffered: bool = True
    result_bytes: int = RESULT_BYTES

    def __post_init__(self) -> None:
        for name in ("buffer_bytes", "dram_bytes_per_second", "operands_per_cycle", "result_bytes"):
            if not getattr(self, name) >= 1:
                raise InputError(f"{name} = {getattr(self, name):g}: must be at least 1")


@dataclass(frozen=True)
class Arrangement:
    """How the cores share each GEMM; int64, (L,) each.

    Parameters
    ----------
    batch
        Products of the batch at once.
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
        Cycles with it, float.
    operand_bytes
        Bytes that the buffer hands over.
    dram_read_bytes, dram_write_bytes
        Bytes from and to the DRAM; what is read is also written to the buffer.
    utilisation
        Multiply-accumulates asked for, as a share of what all cores could do in these cycles.
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
    utilisation: _Floats
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


def arrange(config: TensorCoreConfig, gemms: Gemms, cores: int, memory: Memory) -> Arrangement:
    """Choose for each GEMM the arrangement of ``cores`` cores with the fewest cycles without DRAM.

    Among equals, that with the fewest operand reads.

    Parameters
    ----------
    config, gemms, memory
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
    best: tuple[_Ints, _Floats, list[_Ints]] | None = None
    for batch, rows, columns in _factors(cores):
        tried = fixed(gemms, batch, rows, columns)
        tiling = _tiling(config, gemms, tried, memory)
        # Rows read, as a float: what nobody would choose may be too many to count.
        cycles, reads = tiling.cycles, tiling.tiles * tiling.fed * np.asarray(tiling.deep, float)
        chosen = [tried.batch, tried.rows, tried.columns]
        if best is not None:
            better = (cycles < best[0]) | ((cycles == best[0]) & (reads < best[1]))
            cycles, reads = np.where(better, cycles, best[0]), np.where(better, reads, best[1])
            chosen = [np.where(better, one, other) for one, other in zip(chosen, best[2], strict=True)]
        best = (cycles, reads, chosen)
    assert best is not None
    return Arrangement(*best[2])


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
    deep: _Ints
    period: _Ints
    steps: _Ints
    cycles: _Ints
    fed: _Ints  # rows of A and B in a step
    fed_bytes: _Ints  # what they take

    @property
    def tiles(self) -> _Ints:
        """Of all products of a batch."""
        return self.tiles_m * self.tiles_n * self.turns


def _tiling(config: TensorCoreConfig, gemms: Gemms, arrangement: Arrangement, memory: Memory) -> _Tiling:
    rows, columns = arrangement.rows * config.rows, arrangement.columns * config.columns
    tiles_m, tiles_n = _ceil(gemms.m, rows), _ceil(gemms.n, columns)
    turns = _ceil(gemms.batch, arrangement.batch)
    deep = steps_per_tile(config, gemms)
    tiles = tiles_m * tiles_n * turns
    fed = arrangement.batch * (rows + columns)
    fed_bytes = arrangement.batch * config.groups * (rows * config.a.stored_bytes + columns * config.b.stored_bytes)
    period = np.maximum(np.ceil(fed * config.depth / memory.operands_per_cycle), 1).astype(np.int64)
    return _Tiling(
        tiles_m,
        tiles_n,
        turns,
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
    size: _Ints
    last_size: _Ints
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


def _sides(config: TensorCoreConfig, gemms: Gemms, arrangement: Arrangement, tiling: _Tiling) -> tuple[_Side, _Side]:
    """A and B."""

    def side(form: BlockFormat, size: _Ints, tiles: _Ints, height: _Ints) -> _Side:
        row_bytes = _ceil(gemms.k, form.size) * form.stored_bytes
        return _Side(
            tiles=tiles,
            total_bytes=size * row_bytes,
            band_bytes=np.minimum(size, height) * row_bytes.astype(float),
            step_bytes=height.astype(float) * (config.groups * form.stored_bytes),
        )

    return (
        side(config.a, gemms.m, tiling.tiles_m, arrangement.rows * config.rows),
        side(config.b, gemms.n, tiling.tiles_n, arrangement.columns * config.columns),
    )


def _hold(usable: _Floats, turns: int, deep: _Ints, held: _Side, other: _Side) -> _Order:
    """Hold bands of one operand."""
    room = np.floor((usable - other.band_bytes) / held.band_bytes)
    by_band = room >= 1
    size = np.clip(room, 1, held.tiles).astype(np.int64)
    groups = _ceil(held.tiles, size)
    parts = np.where(by_band, 1, deep)
    return _Order(
        fits=by_band | (usable >= held.band_bytes + turns * other.step_bytes),
        groups=groups,
        size=size,
        last_size=held.tiles - (groups - 1) * size,
        phases=other.tiles * parts,
        part=1 / parts,
        first=held.total_bytes / held.tiles,
        each=other.total_bytes / other.tiles / parts,
        reads=held.total_bytes + other.total_bytes * groups,
    )


def _stream(usable: _Floats, turns: int, deep: _Ints, a: _Side, b: _Side) -> _Order:
    """Hold nothing: both operands stream."""
    ones = np.ones(len(deep), np.int64)
    phases = a.tiles * b.tiles * deep
    reads = product(a.total_bytes, b.tiles) + product(b.total_bytes, a.tiles)
    return _Order(
        fits=usable >= turns * (a.step_bytes + b.step_bytes),
        groups=ones,
        size=ones,
        last_size=ones,
        phases=phases,
        part=1 / deep,
        first=np.zeros(len(deep)),
        each=reads / phases,
        reads=reads,
    )


def _orders(
    config: TensorCoreConfig, gemms: Gemms, arrangement: Arrangement, tiling: _Tiling, memory: Memory
) -> tuple[_Order, ...]:
    """Those of `ORDERS`; every GEMM has one that fits into the buffer."""
    a, b = _sides(config, gemms, arrangement, tiling)
    usable = memory.buffer_bytes * (0.5 if memory.double_buffered else 1) / arrangement.batch
    turns, deep = config.interleave, tiling.deep
    orders = (_hold(usable, turns, deep, a, b), _hold(usable, turns, deep, b, a), _stream(usable, turns, deep, a, b))
    fits = np.any([order.fits for order in orders], axis=0)
    if not fits.all():
        step_bytes = turns * (a.step_bytes + b.step_bytes) * arrangement.batch
        need = step_bytes[int(np.argmin(fits))] * (2 if memory.double_buffered else 1)
        raise InputError(
            f"a buffer of {_bytes(memory.buffer_bytes)}: one step of every core needs {_bytes(need)}"
            f"{', double buffering counted' if memory.double_buffered else ''}"
        )
    return orders


def _bytes(number: float) -> str:
    return f"{number:,.0f} bytes ({number / 2**20:.4g} MiB)"


def _cycles(
    order: _Order, tile: _Floats, stored: _Floats, products: _Ints, per_cycle: _Floats, double_buffered: bool
) -> _Floats:
    """Cycles of all products; ``tile`` are those of the work on a tile, ``stored`` the bytes of its results."""
    full = order.groups - 1  # and a last one, which may be shorter
    load = order.each / per_cycle

    def group(size: _Ints) -> tuple[_Floats, _Floats, _Floats]:
        """Work and store of each phase, and the load of the first."""
        share = size * order.part
        return share * tile, share * stored / per_cycle, size * order.first / per_cycle + load

    works, stores, opens = group(order.size)
    last_work, last_store, last_open = group(order.last_size)
    if not double_buffered:
        whole = full * (opens - load + order.phases * (load + works + stores))
        last = last_open - load + order.phases * (load + last_work + last_store)
        return products * (whole + last)

    def during(work: _Floats, store: _Floats, before: _Floats | int, after: _Floats | int) -> _Floats:
        """A group: ``before`` is stored in its first phase, ``after`` loaded in its last, its own in between."""
        several = (
            np.maximum(work, load + before)
            + (order.phases - 2) * np.maximum(work, load + store)
            + np.maximum(work, after + store)
        )
        return np.where(order.phases > 1, several, np.maximum(work, after + before))

    more = products - 1
    single = np.where(
        more > 0,
        during(last_work, last_store, 0, last_open)
        + (more - 1) * during(last_work, last_store, last_store, last_open)
        + during(last_work, last_store, last_store, 0),
        during(last_work, last_store, 0, 0),
    )
    second = np.where(full > 1, opens, last_open)
    several = (
        during(works, stores, 0, second)
        + more * during(works, stores, last_store, second)
        + products * np.maximum(full - 2, 0) * during(works, stores, stores, opens)
        + products * np.where(full > 1, during(works, stores, stores, last_open), 0)
        + more * during(last_work, last_store, stores, opens)
        + during(last_work, last_store, stores, 0)
    )
    return np.where(full > 0, opens + several, last_open + single) + last_store


def run(config: TensorCoreConfig, gemms: Gemms, arrangement: Arrangement, memory: Memory, clock_ns: float) -> GridRun:
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

    Raises
    ------
    InputError
        The buffer is too small for one step, or there is more than can be counted.
    """
    tiling = _tiling(config, gemms, arrangement, memory)
    orders = _orders(config, gemms, arrangement, tiling, memory)
    per_cycle = memory.dram_bytes_per_second * clock_ns * 1e-9 / arrangement.batch
    outputs = product(gemms.m, gemms.n, memory.result_bytes)
    passes = tiling.tiles_m * tiling.tiles_n
    tile = (tiling.cycles - config.latency) / (passes * tiling.turns)
    times = np.array(
        [_cycles(order, tile, outputs / passes, tiling.turns, per_cycle, memory.double_buffered) for order in orders]
    )
    traffic = np.array([np.where(order.fits, order.reads, np.inf) for order in orders])
    least = traffic == traffic.min(axis=0)
    chosen = np.argmin(np.where(least, times, np.inf), axis=0)
    index = chosen, np.arange(len(gemms))
    cycles = times[index] + config.latency
    read = product(np.array([order.reads for order in orders])[index], gemms.batch)
    written = product(outputs, gemms.batch)
    return GridRun(
        arrangement=arrangement,
        order=chosen,
        period=tiling.period,
        steps=tiling.steps,
        core_cycles=tiling.cycles,
        cycles=cycles,
        operand_bytes=product(tiling.tiles, tiling.deep, tiling.fed_bytes),
        dram_read_bytes=read,
        dram_write_bytes=written,
        utilisation=gemms.macs / (cycles * arrangement.cores * config.macs_per_step),
        dram_cycles=(read + written) / (memory.dram_bytes_per_second * clock_ns * 1e-9),
    )

"""Steps: what a tensor core is fed with, as arrays and as the bits of its payload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.rtl.tensor_core import step_layout
from sim import golden

__all__ = ["Steps", "gather", "random_tiles", "schedule"]


@dataclass(frozen=True)
class Steps:
    """S consecutive steps of one core.

    Parameters
    ----------
    config
        The core.
    a_codes, a_scales
        uint8, (S, M, 16 G) and (S, M, G).
    b_codes, b_scales
        uint8, (S, N, 16 G) and (S, N, G).
    c
        FP32 as uint32 bit patterns, (S, M, N); read where ``first`` is set.
    first, last
        bool, (S,).
    """

    config: TensorCoreConfig
    a_codes: NDArray[np.uint8]
    a_scales: NDArray[np.uint8]
    b_codes: NDArray[np.uint8]
    b_scales: NDArray[np.uint8]
    c: NDArray[np.uint32]
    first: NDArray[np.bool_]
    last: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)

    def bits(self) -> NDArray[np.uint8]:
        """Payload bits, (S, width of the payload), least significant first, in the order of `step_layout`."""
        count = len(self)

        def field(values: NDArray[np.unsignedinteger], width: int) -> NDArray[np.uint8]:
            flat = np.ascontiguousarray(values.reshape(count, -1))
            octets = flat.view(np.uint8).reshape(count, -1, flat.itemsize)
            spread = np.unpackbits(octets, axis=2, bitorder="little")
            return spread[:, :, :width].reshape(count, -1)

        payload = np.concatenate(
            [
                field(self.a_codes, 4),
                field(self.a_scales, 8),
                field(self.b_codes, 4),
                field(self.b_scales, 8),
                field(self.c.astype("<u4"), 32),
                self.first[:, None],
                self.last[:, None],
            ],
            axis=1,
            dtype=np.uint8,
        )
        assert payload.shape[1] == step_layout(self.config).size
        return payload

    def words(self) -> Iterator[int]:
        """Payloads as integers, in order."""
        for row in np.packbits(self.bits(), axis=1, bitorder="little"):
            yield int.from_bytes(row.tobytes(), "little")

    def expected(self) -> NDArray[np.uint32]:
        """What the core must answer: FP32 bit patterns of the steps with ``last``, (R, M, N)."""
        results = []
        current = np.zeros(self.c.shape[1:], np.float32)
        config = self.config
        for index in range(len(self)):
            current = golden.step(
                self.a_codes[index],
                self.a_scales[index],
                self.b_codes[index],
                self.b_scales[index],
                self.c[index].view(np.float32) if self.first[index] else current,
                fraction_bits=config.fraction_bits,
                rounding=config.rounding,
                tags=config.block_format.tagged,
            )
            if self.last[index]:
                results.append(current.view(np.uint32))
        return np.array(results, np.uint32).reshape(-1, config.rows, config.columns)


def _padded(values: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.uint8]:
    return np.pad(values, ((0, -values.shape[0] % rows), (0, -values.shape[1] % columns)))


def schedule(
    config: TensorCoreConfig,
    a: golden.QuantizedTensor,
    b: golden.QuantizedTensor,
    c: NDArray[np.float32] | None = None,
) -> Steps:
    """Cut a GEMM into steps: output-stationary, all of K for one tile, tiles in row-major order.

    What a tile or a step has over the edge is filled with zero blocks.

    Parameters
    ----------
    config
        The core.
    a, b
        Operands, (M, K) and (N, K).
    c
        Addend in the core's units, (M, N); zero if absent.
    """
    m, k = a.codes.shape
    n = b.codes.shape[0]
    depth, groups, rows, columns = config.depth, config.groups, config.rows, config.columns
    tiles_m, tiles_n, steps_k = -(-m // rows), -(-n // columns), -(-k // depth)

    def tiles(tensor: golden.QuantizedTensor, height: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        codes = _padded(tensor.codes, height, depth).reshape(-1, height, steps_k, depth)
        scales = _padded(tensor.scales, height, groups).reshape(-1, height, steps_k, groups)
        return codes.swapaxes(1, 2), scales.swapaxes(1, 2)

    (a_codes, a_scales), (b_codes, b_scales) = tiles(a, rows), tiles(b, columns)
    tile_m = np.repeat(np.arange(tiles_m), tiles_n * steps_k)
    tile_n = np.tile(np.repeat(np.arange(tiles_n), steps_k), tiles_m)
    step_k = np.tile(np.arange(steps_k), tiles_m * tiles_n)

    addend = np.zeros((tiles_m * rows, tiles_n * columns), np.float32)
    if c is not None:
        addend[:m, :n] = c
    addend_tiles = addend.view(np.uint32).reshape(tiles_m, rows, tiles_n, columns).swapaxes(1, 2)
    return Steps(
        config,
        a_codes[tile_m, step_k],
        a_scales[tile_m, step_k],
        b_codes[tile_n, step_k],
        b_scales[tile_n, step_k],
        addend_tiles[tile_m, tile_n],
        step_k == 0,
        step_k == steps_k - 1,
    )


def gather(config: TensorCoreConfig, results: NDArray[np.uint32], m: int, n: int) -> NDArray[np.uint32]:
    """Put the results of a `schedule` together again: (tiles, rows, columns) to (m, n)."""
    tiles_m, tiles_n = -(-m // config.rows), -(-n // config.columns)
    grid = results.reshape(tiles_m, tiles_n, config.rows, config.columns)
    return grid.swapaxes(1, 2).reshape(tiles_m * config.rows, tiles_n * config.columns)[:m, :n]

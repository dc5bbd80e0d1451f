"""Block formats: elements that share a scale, and how a block selects what its elements are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .checks import Array, InputError, Tensor, check_bytes, check_codes
from .element import ElementFormat
from .scale import ScaleFormat


@dataclass(frozen=True)
class BlockFormat:
    """A tensor format: blocks of elements along K, a scale byte for each block, an FP32 scale for the tensor.

    The value of an element is that of its code, times the block scale, times the tensor scale.

    Parameters
    ----------
    name : str
        Name, also in the catalogue.
    elements : tuple of ElementFormat
        What the elements of a block may be: one format, or two of equal width between which `tag_bit` selects.
    scale : ScaleFormat
        Of the low bits of a scale byte. Bits above it have no meaning, but for `tag_bit`.
    tensor_divisor : float
        Where the tensor scale is not given, it is float32(max|x| / tensor_divisor): the largest element times the
        largest block scale.
    tag_bit : int or None
        Bit of the scale byte that is the index of the block's element format; None with one of them.
    block : int
        Elements of a block.

    Raises
    ------
    InputError
        On construction: elements of unequal width, or not as many as the tag selects from, or a tag bit that is not
        above the scale.
    """

    name: str
    elements: tuple[ElementFormat, ...]
    scale: ScaleFormat
    tensor_divisor: float
    tag_bit: int | None = None
    block: int = 16

    def __post_init__(self) -> None:
        wanted = 1 if self.tag_bit is None else 2
        if len(self.elements) != wanted or len({element.width for element in self.elements}) != 1:
            found = ", ".join(f"{element.name} of {element.width} bits" for element in self.elements) or "none"
            raise InputError(f"{self.name}: must have {wanted} element formats of equal width; got {found}")
        if self.tag_bit is not None and not self.scale.width <= self.tag_bit < 8:
            raise InputError(
                f"{self.name}: tag_bit must be {self.scale.width} to 7, above the scale; got {self.tag_bit}"
            )

    def __hash__(self) -> int:
        return hash(self.name)  # formats are keys of caches, and their tables are long

    @property
    def width(self) -> int:
        """Bits of an element code."""
        return self.elements[0].width

    @property
    def meaningful(self) -> int:
        """Mask of the bits of a scale byte that have a meaning."""
        return (1 << self.scale.width) - 1 | (0 if self.tag_bit is None else 1 << self.tag_bit)

    def selected(self, scales: Array) -> Array:
        """Return the index into `elements` (uint8) that scale bytes select."""
        if self.tag_bit is None:
            return np.zeros_like(scales)
        return scales >> self.tag_bit & 1

    def scale_codes(self, scales: Array) -> Array:
        """Return the codes of the scale format in scale bytes."""
        return scales & ((1 << self.scale.width) - 1)

    @cached_property
    def table(self) -> Array:
        """Element times block scale by scale byte and code, float64 (256, 2^width); NaN where the scale is NaN."""
        scales = np.arange(256, dtype=np.uint8)
        elements = np.array([element.table for element in self.elements])
        table = elements[self.selected(scales)] * self.scale.table[self.scale_codes(scales)][:, None]
        table.flags.writeable = False
        return table

    def check(self, codes: Tensor, scales: Tensor, names: tuple[str, str]) -> tuple[Array, Array]:
        """Return codes (rows, K) and scales (rows, K / block) as arrays once types, range and shapes agree."""
        checked, bytes_ = check_codes(codes, names[0], self.width), check_bytes(scales, names[1])
        if checked.ndim != 2 or 0 in checked.shape or checked.shape[1] % self.block:
            raise InputError(
                f"{names[0]} must be (rows, K), K a positive multiple of {self.block}; got {checked.shape}"
            )
        expected = (checked.shape[0], checked.shape[1] // self.block)
        if bytes_.shape != expected:
            raise InputError(
                f"{names[1]} must be {expected}, one per {self.block} codes of {names[0]}; got {bytes_.shape}"
            )
        return checked, bytes_

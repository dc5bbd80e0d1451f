"""Operands of a GEMM, from what a user has to what a core takes: numbers to quantise, or codes and scales.

An operand that is quantised already is three tensors of one file, in either of two conventions:

==================  =========================  ================================
what                of hwgen                   of NVIDIA's Model Optimizer
==================  =========================  ================================
codes               ``NAME.codes``             ``NAME``
block scales        ``NAME.scales``            ``NAME_scale``
tensor scale        ``NAME.tensor_scale``      ``NAME_scale_2``
==================  =========================  ================================

Without a name, hwgen's are plain ``codes``, ``scales`` and ``tensor_scale``. Codes are bytes of codes side by side, the
first ones lowest: of 4 bits uint8 (rows, K / 2), element 2i in the low nibble. Block scales are the bytes that the core
reads, (rows, blocks): uint8 or float8_e4m3fn, uint16 or uint32 where a format has so many bytes for a block. The tensor
scale is one number that float32 holds, by which products are multiplied. An operand of a format without block scales
has none. No file says which block format it is in, so what depends on it is checked once a core is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hwgen.errors import InputError
from sim import archive, golden, tensors
from sim.tensors import Tensor

__all__ = ["Numbers", "Operand", "Packed", "from_file", "packed"]

Form = str | golden.BlockFormat
"""A block format: the golden model's record, or its name."""

_PARTS = ("codes", "scales", "tensor_scale")
_SUFFIXES = (tuple(f".{part}" for part in _PARTS), ("", "_scale", "_scale_2"))


class Operand(Protocol):
    """One operand, before a core is chosen.

    Attributes
    ----------
    rows : int
        Rows.
    """

    @property
    def rows(self) -> int: ...

    def depth(self, form: Form) -> int:
        """K, read in the block format ``form``.

        Raises
        ------
        InputError
            It is not of that format.
        """
        ...

    def quantized(self, form: Form) -> golden.QuantizedTensor:
        """What a core takes whose operand has the block format ``form``, K up to the next whole block.

        Raises
        ------
        InputError
            There is nothing of it, or it is not of that format.
        """
        ...


@dataclass(frozen=True)
class Numbers:
    """An operand that is quantised here.

    Parameters
    ----------
    origin
        What to call it in an error.
    tensor
        Numbers, (rows, K).
    rule
        How they are quantised, one of `golden.RULES`; None for the default of the format.
    """

    origin: str
    tensor: Tensor
    rule: str | None = None

    @property
    def rows(self) -> int:
        """Rows."""
        return int(self.tensor.shape[0])

    def depth(self, form: Form) -> int:
        """K, whatever the format."""
        return int(self.tensor.shape[1])

    def quantized(self, form: Form) -> golden.QuantizedTensor:
        """Quantise it, with zeros up to a whole block."""
        if self.tensor.size == 0:
            raise InputError(f"{self.origin}: is empty, {self.tensor.shape}; must have rows and columns")
        try:
            return golden.quantize_padded(self.tensor, form, rule=self.rule)
        except golden.ArgumentError as error:
            raise InputError(f"{self.origin}: {error}") from None


@dataclass(frozen=True)
class Packed:
    """An operand that is quantised already.

    Parameters
    ----------
    origin
        What to call it in an error.
    names
        Names of its tensors.
    codes
        uint8, (rows, bytes).
    scales
        uint8, (rows, blocks); None if there are none.
    tensor_scale
        What products are multiplied by.
    """

    origin: str
    names: tuple[str, str, str]
    codes: NDArray[np.uint8]
    scales: NDArray[np.uint8] | None
    tensor_scale: float

    @property
    def rows(self) -> int:
        """Rows."""
        return self.codes.shape[0]

    def depth(self, form: Form) -> int:
        """K, as the format packs codes."""
        return self._blocks(form) * golden.block_format(form).block

    def _blocks(self, form: Form) -> int:
        """Blocks of a row."""
        record = golden.block_format(form)
        blocks, rest = divmod(self.codes.shape[1], record.block_bytes)
        if rest:
            size = f"{record.block_bytes} bytes for {record.block} codes of {record.width} bits"
            wanted = f"whole blocks of {record.name}, {size}"
            raise _wrong(self.origin, self.names[0], self.codes, wanted)
        return blocks

    def quantized(self, form: Form) -> golden.QuantizedTensor:
        """The same codes and scales."""
        shape, scales = (self.rows, self._blocks(form)), self.scales
        if not golden.block_format(form).scale_bytes:
            if scales is not None and (scales.shape != shape or scales.any()):
                raise InputError(
                    f"{self.origin}: tensor {self.names[1]!r}: {golden.block_format(form).name} has no block scales;"
                    " leave it out"
                )
            scales = np.zeros(shape, np.uint8)
        if scales is None:
            raise _missing(self.origin, self.names, self.names[1])
        if scales.shape != shape:
            record = golden.block_format(form)
            kinds = "uint8 or float8_e4m3fn" if record.scale_bytes == 1 else str(np.dtype(record.scale_type))
            wanted = f"{kinds} {shape}, one for each block of {self.names[0]!r}"
            raise _wrong(self.origin, self.names[1], scales, wanted)
        try:
            return golden.QuantizedTensor.from_packed(self.codes, scales, self.tensor_scale, form)
        except golden.ArgumentError as error:
            raise InputError(f"{self.origin}: tensors {', '.join(map(repr, self.names))}: {error}") from None


def packed(name: str, operand: golden.QuantizedTensor) -> dict[str, NDArray[Any]]:
    """The tensors of an operand by name, in hwgen's convention, as `from_file` reads them."""
    scales = operand.scales if operand.form.scale_bytes else None
    parts = (operand.packed, scales, np.asarray(operand.tensor_scale))
    return {f"{name}.{part}": tensor for part, tensor in zip(_PARTS, parts, strict=True) if tensor is not None}


def from_file(path: Path, name: str | None, letter: str) -> Operand:
    """Read an operand: codes and scales from a .npz or .safetensors file that has them, else numbers.

    Parameters
    ----------
    path
        The file; its suffix says which.
    name
        Tensor in the file, see the module.
    letter
        A or B, for errors.

    Raises
    ------
    InputError
        As `sim.tensors.load`, or one of the three tensors is missing or not what it must be; the message names it.
    """
    origin = f"{letter} from {str(path)!r}"
    if path.suffix.lower() == ".npz":
        return _packed(origin, name, archive.arrays(path))
    if path.suffix.lower() == ".safetensors" and path.is_file():
        kinds = tensors.entries(path)
        if any(kinds[names[0]][0] == "U8" for names in _conventions(name) if names[0] in kinds):
            return _packed(origin, name, _Stored(path, kinds))
    return Numbers(origin, tensors.load(path, name))


def _conventions(name: str | None) -> list[tuple[str, str, str]]:
    if name is None:
        return [("codes", "scales", "tensor_scale")]
    return [(name + codes, name + scales, name + scale) for codes, scales, scale in _SUFFIXES]


class _Stored(Mapping[str, "NDArray[Any]"]):
    """Tensors of a .safetensors file, read when they are asked for."""

    def __init__(self, path: Path, kinds: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        self._path, self._kinds = path, kinds

    def __iter__(self) -> Any:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __getitem__(self, name: str) -> NDArray[Any]:
        kind, shape = self._kinds[name]
        types = {"U8": "u1", "F8_E4M3": "u1", "U16": "<u2", "U32": "<u4", "F32": "<f4"}
        if kind not in types:
            what = "codes are U8, block scales U8, F8_E4M3, U16 or U32, a tensor scale F32"
            raise InputError(f"{self._path}: tensor {name!r} is {kind}; {what}")
        return np.frombuffer(tensors.stored(self._path, name), types[kind]).reshape(shape)


def _packed(origin: str, name: str | None, found: Mapping[str, NDArray[Any]]) -> Packed:
    """Check and take the three tensors."""
    names = next((names for names in _conventions(name) if names[0] in found), None)
    if names is None:
        wanted = " or ".join(repr(names[0]) for names in _conventions(name))
        raise InputError(f"{origin}: no tensor {wanted}; it has {tensors.listing(found)}")
    if names[2] not in found:
        raise _missing(origin, names, names[2])
    codes, scales, tensor_scale = found[names[0]], found.get(names[1]), found[names[2]]
    if codes.dtype != np.uint8 or codes.ndim != 2 or 0 in codes.shape:
        raise _wrong(origin, names[0], codes, "uint8 (rows, bytes of codes)")
    if scales is not None:
        if scales.dtype.name == "float8_e4m3fn" or scales.dtype == np.dtype("V1"):  # numpy stores one as the other
            scales = scales.view(np.uint8)
        if scales.dtype not in (np.uint8, np.uint16, np.uint32):
            wanted = f"uint8, uint16, uint32 or float8_e4m3fn, one for each block of {names[0]!r}"
            raise _wrong(origin, names[1], scales, wanted)
    if tensor_scale.size != 1 or tensor_scale.dtype.kind != "f":
        raise _wrong(origin, names[2], tensor_scale, "one number of type float32")
    number = float(tensor_scale.reshape(()))
    if not 0 < number < np.inf:
        raise InputError(f"{origin}: tensor {names[2]!r} is {number:g}; must be a positive finite number")
    return Packed(origin, names, codes, scales, number)


def _missing(origin: str, names: tuple[str, str, str], name: str) -> InputError:
    return InputError(f"{origin}: no tensor {name!r}, which belongs to {names[0]!r}")


def _wrong(origin: str, name: str, found: NDArray[Any], wanted: str) -> InputError:
    return InputError(f"{origin}: tensor {name!r} is {found.dtype} {found.shape}; must be {wanted}")

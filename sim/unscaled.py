"""Operands without block scales, of steps at half the rate: numbers that are rounded to a type, or codes from files.

A file of codes has one element in a byte, uint8 (rows, K): a .npy file, or a tensor of a .npz or .safetensors file,
``NAME.codes`` or ``NAME``; without a name ``codes``. Tensors of type float8_e4m3fn are codes, too, and so are those of
float8_e5m2 in a .safetensors file.
``NAME.tensor_scale``, where there is one, is what products are multiplied by. Anything else is numbers, as
`sim.tensors.load` reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.errors import InputError
from sim import archive, golden, tensors
from sim.tensors import Tensor

__all__ = ["SCALED_FORMATS", "UNSCALED_TYPES", "Unscaled", "from_file", "rounded", "type_at_half_rate"]

UNSCALED_TYPES = tuple(golden.UNSCALED_ELEMENTS)
"""Names of the types."""

SCALED_FORMATS = {
    "e4m3": "mxfp8-e4m3",
    "e5m2": "mxfp8-e5m2",
    "e2m3": "mxfp6-e2m3",
    "e3m2": "mxfp6-e3m2",
    "e2m1": "mxfp4",
}
"""Formats of operands of steps at half the rate with scales, by the types of their elements."""

_STORED = {"U8": "", "F8_E4M3": "e4m3", "F8_E5M2": "e5m2"}
"""Types of tensors of codes in a .safetensors file, and what their elements are."""


@dataclass(frozen=True)
class Unscaled:
    """An operand of steps at half the rate.

    Parameters
    ----------
    codes
        uint8, (rows, K): one element in a byte.
    type
        Its type, one of `UNSCALED_TYPES`.
    tensor_scale
        What products are multiplied by, outside the core.
    """

    codes: NDArray[np.uint8]
    type: str
    tensor_scale: np.float32

    @property
    def rows(self) -> int:
        """Rows."""
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and K."""
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def core_scale(self) -> np.float64:
        """What a result of the core is multiplied by for this operand."""
        return np.float64(self.tensor_scale)

    def stored(self, name: str) -> dict[str, NDArray[Any]]:
        """Its tensors by name, as `from_file` reads them."""
        return {f"{name}.codes": self.codes, f"{name}.tensor_scale": np.asarray(self.tensor_scale)}


_SCALED_TYPES = {form: kind for kind, form in SCALED_FORMATS.items()}


def type_at_half_rate(operand: golden.QuantizedTensor | Unscaled, scaled: bool) -> str | None:
    """The type of the elements of an operand whose steps are at half the rate; None if they are not.

    Operands of MX are where rows of such steps are ``scaled``. On other cores they are in the core's own format.
    """
    if isinstance(operand, Unscaled):
        return operand.type
    return _SCALED_TYPES.get(operand.form.name) if scaled else None


def rounded(tensor: Tensor, kind: str) -> Unscaled:
    """Round numbers to the nearest ones of a type, ties to even, under one scale: the largest is the type's largest.

    Parameters
    ----------
    tensor
        Finite numbers, (rows, K).
    kind
        One of `UNSCALED_TYPES`.
    """
    try:
        codes, scale = golden.quantize_unscaled(tensor, kind)
    except golden.ArgumentError as error:
        raise InputError(str(error)) from None
    return Unscaled(codes, kind, scale)


def from_file(path: Path, name: str | None, letter: str, kind: str) -> Unscaled:
    """Read an operand.

    Parameters
    ----------
    path
        The file; its suffix says how it is read.
    name
        Tensor in the file, see the module.
    letter
        A or B, for errors.
    kind
        Type of the elements, one of `UNSCALED_TYPES`.

    Raises
    ------
    InputError
        As `sim.tensors.load`, or the codes are not what they must be; the message names the file and the tensor.
    """
    origin = f"{letter} from {str(path)!r}"
    found: Mapping[str, NDArray[Any]] | None = None
    own = name
    if path.suffix.lower() == ".npz":
        found = archive.arrays(path)
        own = _codes_name(name, found)
        if own is None:
            wanted = repr("codes") if name is None else f"{name + '.codes'!r} or {name!r}"
            raise InputError(f"{origin}: no tensor {wanted}; it has {tensors.listing(found)}")
        _check_scales(origin, own, found)
    elif path.suffix.lower() == ".safetensors" and path.is_file():
        kinds = tensors.entries(path)
        own = _codes_name(name, kinds)
        if own is not None and kinds[own][0] in _STORED:
            _check_scales(origin, own, kinds)
            found = _safetensors(path, origin, own, kinds, kind)
    elif path.suffix.lower() == ".npy" and name is None and (codes := _npy(path)) is not None:
        found, own = {"codes": codes}, "codes"
    if found is None or own is None:
        tensor = tensors.load(path, name)
        if tensor.size == 0:
            raise InputError(f"{origin}: is empty, {tensor.shape}; must have rows and columns")
        try:
            return rounded(tensor, kind)
        except InputError as error:
            raise InputError(f"{origin}: {error}") from None
    return Unscaled(_checked(origin, own, found[own]), kind, _scale(origin, own, found))


def _check_scales(origin: str, codes: str, names: Collection[str]) -> None:
    """Refuse codes that come with scales as `sim.operands` reads them: they would have no effect."""
    base = codes.removesuffix("codes")
    scales = f"{base}scales" if base != codes else f"{codes}_scale"
    if scales in names:
        raise InputError(
            f"{origin}: {codes!r} comes with scales, {scales!r}, which steps without block scales do not apply; take"
            " steps that have them, or give numbers"
        )


def _codes_name(name: str | None, found: Mapping[str, Any]) -> str | None:
    names = ("codes",) if name is None else (f"{name}.codes", name)
    return next((each for each in names if each in found), None)


def _npy(path: Path) -> NDArray[Any] | None:
    """The array of a .npy file if it is one of codes; what else is in the file is for `sim.tensors.load` to say."""
    try:
        with path.open("rb") as stream:
            array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    except Exception:  # a broken header can raise anything Python's tokenizer can
        return None
    return array if array.dtype.itemsize == 1 and array.dtype.kind in "uV" else None


def _safetensors(
    path: Path, origin: str, own: str, kinds: Mapping[str, tuple[str, tuple[int, ...]]], kind: str
) -> dict[str, NDArray[Any]]:
    """Codes and, if there is one, their scale."""
    stored, shape = kinds[own]
    if _STORED[stored] not in ("", kind):
        raise InputError(f"{origin}: tensor {own!r} is {stored}; its elements are not {kind}")
    found: dict[str, NDArray[Any]] = {own: np.frombuffer(tensors.stored(path, own), np.uint8).reshape(shape)}
    if (scale := _scale_name(own)) in kinds:
        stored, shape = kinds[scale]
        if stored != "F32":
            raise InputError(f"{origin}: tensor {scale!r} is {stored}; must be F32")
        found[scale] = np.frombuffer(tensors.stored(path, scale), "<f4").reshape(shape)
    return found


def _scale_name(own: str) -> str:
    before, _, last = own.rpartition(".")
    if last != "codes":
        return f"{own}.tensor_scale"
    return f"{before}.tensor_scale" if before else "tensor_scale"


def _checked(origin: str, own: str, codes: NDArray[Any]) -> NDArray[np.uint8]:
    if codes.dtype == np.dtype("V1"):  # as which numpy stores float8_e4m3fn
        codes = codes.view(np.uint8)
    if codes.dtype != np.uint8 or codes.ndim != 2 or 0 in codes.shape:
        wanted = "must be uint8 (rows, K), one element in a byte"
        raise InputError(f"{origin}: tensor {own!r} is {codes.dtype} {codes.shape}; {wanted}")
    return codes


def _scale(origin: str, own: str, found: Mapping[str, NDArray[Any]]) -> np.float32:
    name = _scale_name(own)
    if name not in found:
        return np.float32(1)
    scale = found[name]
    if scale.size != 1 or scale.dtype.kind != "f":
        raise InputError(
            f"{origin}: tensor {name!r} is {scale.dtype} {scale.shape}; must be one number of type float32"
        )
    with np.errstate(over="ignore"):
        number = np.float32(scale.reshape(()))
    if not 0 < number < np.inf:
        raise InputError(f"{origin}: tensor {name!r} is {number:g}; must be a positive finite number")
    return number

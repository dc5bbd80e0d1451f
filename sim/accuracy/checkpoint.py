"""A sentence encoder from a directory, as published models of BERT's kind are laid out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim import tensors
from sim.golden import ArgumentError
from sim.npz import not_a_file

from .encoder import Encoder, Matrix
from .wordpiece import WordPiece

__all__ = ["encoder_at", "minilm"]

CONFIG, WEIGHTS, VOCABULARY, TOKENIZER = "config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"

_NORM = ("weight", "bias")
_LINEAR = (
    *(f"attention.self.{part}" for part in ("query", "key", "value")),
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
_OLD = {"gamma": "weight", "beta": "bias"}
"""What checkpoints of 2018 call the parameters of a layer norm."""


def encoder_at(directory: Path) -> Encoder:
    """Return the encoder of a directory with ``config.json``, ``model.safetensors`` and ``vocab.txt``.

    Parameters
    ----------
    directory : Path
        As Hugging Face lays out models of the type ``bert`` whose text is lower-cased. Tensors may be FP64, FP32, FP16
        or BF16, and their names may begin with ``bert.``. Tensors that the encoder does not need may be there, too.

    Raises
    ------
    ArgumentError
        There is no such directory, a file is missing or not readable, the model is of another kind, or a tensor is
        missing, has another shape, has an element that is no finite number, or is a matrix of zeros.
    """
    if not directory.is_dir():
        raise ArgumentError(f"{directory}: no such directory")
    for name in (CONFIG, WEIGHTS, VOCABULARY):
        if problem := not_a_file(directory / name):
            raise ArgumentError(f"{problem}; a model has {CONFIG}, {WEIGHTS} and {VOCABULARY}")
    config = _object(directory / CONFIG)
    for key, expected in (("model_type", "bert"), ("hidden_act", "gelu")):
        if config.get(key) != expected:
            raise ArgumentError(f"{directory / CONFIG}: {key} must be {expected!r}; got {config.get(key)!r}")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise ArgumentError(f"{directory / CONFIG}: position_embedding_type must be 'absolute'")
    if (directory / TOKENIZER).is_file() and not _object(directory / TOKENIZER).get("do_lower_case", True):
        raise ArgumentError(f"{directory / TOKENIZER}: do_lower_case must be true: text is lower-cased here")
    sizes = {
        key: _whole(directory, config, key)
        for key in (
            *("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers"),
            *("max_position_embeddings", "type_vocab_size"),
        )
    }
    if sizes["hidden_size"] % sizes["num_attention_heads"]:
        raise ArgumentError(
            f"{directory / CONFIG}: hidden_size {sizes['hidden_size']} must be a multiple of num_attention_heads,"
            f" {sizes['num_attention_heads']}"
        )
    epsilon = config.get("layer_norm_eps", 1e-12)
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise ArgumentError(f"{directory / CONFIG}: layer_norm_eps must be above 0 and below 1; got {epsilon!r}")
    pieces = _lines(directory / VOCABULARY)
    weights = _weights(directory / WEIGHTS, _shapes(sizes, len(pieces)))
    try:
        wordpiece = WordPiece(pieces, sizes["max_position_embeddings"])
    except ArgumentError as error:
        raise ArgumentError(f"{directory / VOCABULARY}: {error}") from None
    return Encoder(weights, wordpiece, sizes["num_attention_heads"], epsilon)


def minilm() -> Encoder:
    """Return all-MiniLM-L6-v2 (sentence-transformers; Apache-2.0): 6 layers of 384 channels, 12 heads.

    Raises
    ------
    ArgumentError
        The optional package that carries the model is not installed.
    """
    return encoder_at(tensors.minilm_file().parent)


def _object(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentError(f"{file}: not readable JSON: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ArgumentError(f"{file}: must be a JSON object")
    return found


def _whole(directory: Path, config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{directory / CONFIG}: {key} must be a positive integer; got {value!r}")
    return value


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{file}: not readable text: {' '.join(str(error).split())}") from None


def _shapes(sizes: Mapping[str, int], pieces: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of all tensors that the encoder needs, one by one: a wrong number of layers ends at the first."""
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    yield "embeddings.word_embeddings.weight", (pieces, hidden)
    yield "embeddings.position_embeddings.weight", (sizes["max_position_embeddings"], hidden)
    yield "embeddings.token_type_embeddings.weight", (sizes["type_vocab_size"], hidden)
    yield from _norm("embeddings.LayerNorm", hidden)
    for index in range(sizes["num_hidden_layers"]):
        layer = f"encoder.layer.{index}."
        for part in _LINEAR:
            outputs = inner if part == "intermediate.dense" else hidden
            inputs = inner if part == "output.dense" else hidden
            yield f"{layer}{part}.weight", (outputs, inputs)
            yield f"{layer}{part}.bias", (outputs,)
        for part in ("attention.output", "output"):
            yield from _norm(f"{layer}{part}.LayerNorm", hidden)


def _norm(name: str, hidden: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    for each in _NORM:
        yield f"{name}.{each}", (hidden,)


def _weights(file: Path, shapes: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, Matrix]:
    there = tensors.entries(file)
    named = {_present(name): name for name in there}
    found = {}
    for name, shape in shapes:
        if name not in named:
            raise ArgumentError(f"{file}: no tensor {name!r}; it has {tensors.listing(there)}")
        stored = there[named[name]][1]
        # A vocabulary may be padded to a round number.
        padded = name.startswith("embeddings.word") and len(stored) == 2 and stored[0] > shape[0]
        if stored != shape and not (padded and stored[1:] == shape[1:]):
            raise ArgumentError(f"{file}: {named[name]} must be {list(shape)}; got {list(stored)}")
        tensor = tensors.array(file, named[name])
        if not np.isfinite(tensor).all():
            raise ArgumentError(f"{file}: {named[name]} has a NaN or an infinity; every element must be finite")
        if len(shape) == 2 and not tensor.any():
            raise ArgumentError(f"{file}: {named[name]} is all zeros: no error can be told of it")
        found[name] = tensor.astype(np.float32)
    return found


def _present(name: str) -> str:
    """The name of a tensor as it is today, without the model in front."""
    head, _, last = re.sub(r"^bert\.", "", name).rpartition(".")
    return f"{head}.{_OLD.get(last, last)}" if head.endswith("LayerNorm") else f"{head}.{last}"

"""Encoders from directories: those that are there, and what is wrong with the others."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors import numpy as safetensors

from sim import accuracy
from sim.golden import ArgumentError

from .conftest import CHANNELS, HEADS, INNER, WORDS

SENTENCES = ["one two three", "Four", "three, three one"]
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": CHANNELS,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_hidden_layers": 2,
    "max_position_embeddings": 9,
    "type_vocab_size": 2,
}


@pytest.fixture
def directory(tmp_path, small_weights):
    """A model's directory."""
    safetensors.save_file(small_weights, tmp_path / "model.safetensors")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def test_as_given(directory, small):
    encoder = accuracy.encoder_at(directory)
    np.testing.assert_array_equal(encoder.embed(SENTENCES), small.embed(SENTENCES))
    assert encoder.depth == 2


def test_names_and_types_of_other_checkpoints(directory, small_weights, small):
    """With the model in front, layer norms of 2018, a padded vocabulary, tensors that are not needed, BF16 and FP16."""
    old = {"weight": "gamma", "bias": "beta"}
    named = {}
    for name, tensor in small_weights.items():
        head, _, last = name.rpartition(".")
        named[f"bert.{head}.{old[last] if head.endswith('LayerNorm') else last}"] = tensor
    words = "bert.embeddings.word_embeddings.weight"
    named[words] = np.concatenate([named[words], np.ones((3, CHANNELS), np.float32)])
    named["cls.predictions.bias"] = np.zeros(3, np.int64)
    safetensors.save_file(named, directory / "model.safetensors")
    np.testing.assert_array_equal(accuracy.encoder_at(directory).embed(SENTENCES), small.embed(SENTENCES))
    for kind in (ml_dtypes.bfloat16, np.float16):
        narrow = {name: tensor.astype(kind) for name, tensor in small_weights.items()}
        widened = {name: tensor.astype(np.float32) for name, tensor in narrow.items()}
        safetensors.save_file(narrow, directory / "model.safetensors")
        expected = accuracy.Encoder(widened, accuracy.WordPiece(WORDS, 9), HEADS).embed(SENTENCES)
        np.testing.assert_array_equal(accuracy.encoder_at(directory).embed(SENTENCES), expected)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_missing_file(directory, name):
    (directory / name).unlink()
    with pytest.raises(ArgumentError, match=f"{name}: no such file; a model has config.json, model.safetensors and"):
        accuracy.encoder_at(directory)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "roberta", "model_type must be 'bert'; got 'roberta'"),
        ("hidden_act", "relu", "hidden_act must be 'gelu'; got 'relu'"),
        ("hidden_size", 0, "hidden_size must be a positive integer; got 0"),
        ("hidden_size", True, "hidden_size must be a positive integer; got True"),
        ("num_hidden_layers", None, "num_hidden_layers must be a positive integer; got None"),
        ("num_attention_heads", 3, "hidden_size 8 must be a multiple of num_attention_heads, 3"),
        ("layer_norm_eps", "small", "layer_norm_eps must be above 0 and below 1; got 'small'"),
        ("position_embedding_type", "relative_key", "position_embedding_type must be 'absolute'"),
        ("max_position_embeddings", 10, r"position_embeddings.weight must be \[10, 8\]; got \[9, 8\]"),
        (
            "num_hidden_layers",
            10**18,
            "no tensor 'encoder.layer.2.attention.self.query.weight'; it has embeddings.LayerNorm",
        ),
    ],
)
def test_a_wrong_configuration(directory, key, value, message):
    (directory / "config.json").write_text(json.dumps(CONFIG | {key: value}))
    with pytest.raises(ArgumentError, match=message):
        accuracy.encoder_at(directory)


@pytest.mark.parametrize("text", ["[1, 2]", "{", "[" * 100_000, "\x00"])
def test_a_configuration_that_is_none(directory, text):
    (directory / "config.json").write_text(text)
    with pytest.raises(ArgumentError, match=r"config\.json: (not readable JSON|must be a JSON object)"):
        accuracy.encoder_at(directory)


def test_wrong_contents(directory, small_weights):
    name = "encoder.layer.1.output.dense.bias"
    wrong = small_weights[name].copy()
    wrong[3] = np.nan
    safetensors.save_file(small_weights | {name: wrong}, directory / "model.safetensors")
    with pytest.raises(ArgumentError, match=f"{name} has a NaN or an infinity"):
        accuracy.encoder_at(directory)
    safetensors.save_file(small_weights | {name: wrong.view(np.int32)}, directory / "model.safetensors")
    with pytest.raises(ArgumentError, match=f"{name} must be one of F64, F32, F16, BF16; got I32"):
        accuracy.encoder_at(directory)
    matrix = "encoder.layer.0.output.dense.weight"
    zeros = small_weights | {matrix: np.zeros_like(small_weights[matrix])}
    safetensors.save_file(zeros, directory / "model.safetensors")
    with pytest.raises(ArgumentError, match=f"{matrix} is all zeros"):
        accuracy.encoder_at(directory)
    (directory / "model.safetensors").write_bytes(b"{}")
    with pytest.raises(ArgumentError, match=r"not a readable \.safetensors file"):
        accuracy.encoder_at(directory)


def test_a_wrong_vocabulary(directory, small_weights):
    safetensors.save_file(small_weights, directory / "model.safetensors")
    (directory / "vocab.txt").write_text("\n".join(["[PAD]", *WORDS[1:]]))
    with pytest.raises(ArgumentError, match=r"vocab\.txt: the vocabulary has no piece \[CLS\]"):
        accuracy.encoder_at(directory)
    (directory / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match=r"vocab\.txt: not readable text"):
        accuracy.encoder_at(directory)


def test_cased_text(directory):
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    with pytest.raises(ArgumentError, match="do_lower_case must be true"):
        accuracy.encoder_at(directory)


def test_no_directory(tmp_path):
    with pytest.raises(ArgumentError, match="no such directory"):
        accuracy.encoder_at(tmp_path / "absent")

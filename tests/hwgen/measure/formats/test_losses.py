"""What the formats of a core lose of a trained model: which operand is what, and by which rules."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.measure.formats.losses import Losses, errors_of
from hwgen.report import schema
from sim import accuracy, golden
from sim.accuracy import Energies, ModelErrors, Noise
from sim.accuracy.rows import rules


class Model:
    """Noise and similarities that say what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, str]] = []

    def errors(
        self, form: golden.BlockFormat, rule: str | None = None, weights: golden.BlockFormat | None = None
    ) -> ModelErrors:
        other = weights or form
        self.asked.append((form.name, rule, other.name))
        rule = rule or rules(form)[0]
        of = {"activations": len(form.name) + len(rule), "weights": 100 + len(other.name) + len(rule)}
        noises = {name: Noise({name: Energies(10 ** (ratio / 10), 1.0)}) for name, ratio in of.items()}
        return ModelErrors(noises["weights"], noises["activations"], np.array([[0.9, 0.7], [0.9, 0.7]]))


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "signal_to_noise", lambda form, kind, rule: 1.0)


def by_rule(config: TensorCoreConfig, losses: Losses) -> dict[tuple[str, str], dict[str, float]]:
    kinds = (schema.ACTIVATIONS, schema.WEIGHTS)
    found = losses.errors(config)
    return {
        (each.format, each.rule): {kind: round(each.decibels[kind]) for kind in kinds if kind in each.decibels}
        for each in found
    }


def test_one_format_has_both_operands_by_every_rule() -> None:
    model = Model()
    losses, config = Losses(model), NAMED["nvfp4-small"]
    nearest, other, least = (5 + len(rule) for rule in ("nearest", "four-over-six", "least-error"))
    assert by_rule(config, losses) == {
        ("nvfp4", "nearest"): {schema.ACTIVATIONS: nearest, schema.WEIGHTS: 100 + nearest},
        ("nvfp4", "four-over-six"): {schema.ACTIVATIONS: other, schema.WEIGHTS: 100 + other},
        ("nvfp4", "least-error"): {schema.ACTIVATIONS: least, schema.WEIGHTS: 100 + least},
    }
    similarities = losses.similarities(config)
    assert similarities is not None
    assert list(similarities) == ["nearest", "four-over-six", "least-error"]
    assert similarities["nearest"] == schema.Similarity(pytest.approx(0.8), 0.7, pytest.approx(0.1), 2, 0.0)
    # Two blocks in a step are the same formats.
    assert losses.similarities(NAMED["nvfp4-blackwell"]) == similarities
    assert model.asked == [("nvfp4", rule, "nvfp4") for rule in ("nearest", "four-over-six", "least-error")]


def test_of_two_formats_the_weights_have_that_of_b() -> None:
    model = Model()
    losses, config = Losses(model), NAMED["mixfp4-weights-small"]
    assert by_rule(config, losses) == {
        ("nvfp4", "nearest"): {schema.ACTIVATIONS: 12},
        ("nvfp4", "four-over-six"): {},
        ("nvfp4", "least-error"): {schema.ACTIVATIONS: 16},
        ("mixfp4", "nearest"): {schema.WEIGHTS: 113},
        ("mixfp4", "least-error"): {schema.WEIGHTS: 117},
    }
    # NVFP4 alone has four-over-six.
    assert list(losses.similarities(config) or {}) == ["nearest", "least-error"]
    assert model.asked == [("nvfp4", None, "mixfp4"), ("nvfp4", "least-error", "mixfp4")]
    # The default rule of each, and of integers scales outside besides. Ternary weights keep that of the tensor.
    assert list(losses.similarities(NAMED["w4a8-int-small"]) or {}) == ["unscaled", "by-row", "by-group"]
    assert by_rule(NAMED["w4a8-int-small"], losses) == {
        ("int8", "unscaled"): {schema.ACTIVATIONS: 12},
        ("int8", "by-row"): {schema.ACTIVATIONS: 10},
        ("int8", "by-group"): {schema.ACTIVATIONS: 12},
        ("int4", "unscaled"): {schema.WEIGHTS: 112},
        ("int4", "by-row"): {schema.WEIGHTS: 110},
        ("int4", "by-group"): {schema.WEIGHTS: 112},
    }
    found = by_rule(NAMED["ternary-small"], losses)
    assert found["ternary", "absmean"] == {schema.WEIGHTS: 115}
    assert found["ternary", "by-row"] == found["ternary", "by-group"] == {}
    assert (found["int8", "unscaled"], found["int8", "by-row"]) == ({schema.ACTIVATIONS: 12}, {schema.ACTIVATIONS: 10})


def test_weights_beside_fp16_have_scales_of_their_own() -> None:
    model = Model()
    losses, config = Losses(model), NAMED["int4-fp16-small"]
    assert list(losses.similarities(config) or {}) == ["unscaled", "by-row", "by-group"]
    assert model.asked == [("fp16", None, "int4"), ("fp16", "by-row", "int4"), ("fp16", "by-group", "int4")]
    assert by_rule(config, losses) == {
        ("fp16", "unscaled"): {schema.ACTIVATIONS: 12},
        ("int4", "unscaled"): {schema.WEIGHTS: 112},
        ("int4", "by-row"): {schema.WEIGHTS: 110},
        ("int4", "by-group"): {schema.WEIGHTS: 112},
    }


def test_without_a_model_only_drawn_tensors_lose() -> None:
    losses, config = Losses(), NAMED["mixfp4-small"]
    assert losses.errors(config) == errors_of(config.formats)
    assert losses.similarities(config) is None


def test_a_format_that_does_not_reach_a_tensor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def signal_to_noise(form: golden.BlockFormat, kind: str, rule: str) -> float:
        raise golden.ArgumentError(f"x has a block whose scale is NaN in {form.name}")

    monkeypatch.setattr(accuracy, "signal_to_noise", signal_to_noise)
    with pytest.raises(InputError, match=r"nvfp4-small: x has .* NaN in nvfp4; take a scale that reaches further"):
        Losses().errors(NAMED["nvfp4-small"])


def test_what_several_cores_lose_is_found_side_by_side() -> None:
    """The same formats count once, and all is there afterwards."""
    model, told = Model(), list[tuple[int, int]]()
    losses = Losses(model)
    configs = [NAMED[name] for name in ("nvfp4-small", "nvfp4-blackwell", "mixfp4-weights-small")]
    losses.find(configs, 2, lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]
    alone = [("nvfp4", rule, "nvfp4") for rule in ("four-over-six", "least-error", "nearest")]
    asked = [*alone, ("nvfp4", None, "mixfp4"), ("nvfp4", "least-error", "mixfp4")]
    assert sorted(model.asked, key=str) == sorted(asked, key=str)
    plain = Losses(Model())
    for config in configs:
        assert losses.errors(config) == plain.errors(config)
        assert losses.similarities(config) == plain.similarities(config)
    assert len(model.asked) == len(asked)


@pytest.mark.parametrize("names", [["nvfp4-small"], ["nvfp4-small", "mixfp4-small"]], ids=len)
def test_matrix_products_side_by_side_have_no_threads_of_their_own(names: list[str]) -> None:
    """One alone has all that there are."""
    seen: set[int] = set()

    class Counting(Model):
        def errors(self, *given: object) -> ModelErrors:
            seen.update(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
            return super().errors(*given)

    before = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    Losses(Counting()).find([NAMED[name] for name in names], 2, lambda done, total: None)
    assert seen == (before if len(names) == 1 else {1})
    assert {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"} == before

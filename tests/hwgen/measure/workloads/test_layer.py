"""A small layer with random weights: what the report states, and that a fault ends it."""

import numpy as np
import pytest

from hwgen.config import NAMED
from hwgen.config.quantiser import QUANTISERS
from hwgen.errors import MismatchError
from hwgen.measure.workloads.layer import USUAL, LayerRequest, measure
from hwgen.report import schema
from sim import accuracy, golden
from sim.accuracy.layer import GEMMS, Datapath, Layer, deviation
from sim.engines import Run
from sim.engines.quantisers import Quantised
from sim.verify.quantisers import counterpart

CHANNELS, INNER, WORDS = 32, 48, ["[CLS]", "[SEP]", "[UNK]", "one", "two"]
SENTENCES = ("one two two", "two", "one one two one two two one")


class Quantiser:
    """The golden model as an engine; a code of the last block may be wrong."""

    def __init__(self, config, wrong=False):
        self.config, self.wrong = config, wrong

    def run(self, blocks, scale, offer=None, take=None):
        value = np.float32(np.ldexp(scale.fraction + 128.0, scale.exponent - 7))
        result = counterpart(self.config).quantize(blocks.view(np.float32), value)
        codes = result.tensor.codes.copy()
        codes[-1, 0] ^= self.wrong
        return Quantised(codes, *(np.ravel(x) for x in (result.tensor.scales, result.invalid, result.saturated)), 9)


class Core:
    """The golden model as an engine."""

    name = "ideal"

    def __init__(self, config):
        self.config = config

    def run(self, steps, *, progress, **streams):
        progress(len(steps))
        cycles = np.arange(len(steps))
        return Run(steps.expected(), len(steps), np.zeros((2,) * 6, np.int64), cycles, cycles[steps.first])


@pytest.fixture(scope="module")
def encoder():
    """Two layers."""
    rng = np.random.default_rng(2)
    shapes = {f"attention.self.{part}": (CHANNELS, CHANNELS) for part in ("query", "key", "value")}
    shapes |= {"attention.output.dense": (CHANNELS, CHANNELS)}
    shapes |= {"intermediate.dense": (INNER, CHANNELS), "output.dense": (CHANNELS, INNER)}
    sizes = (("word", len(WORDS)), ("position", 12), ("token_type", 2))
    found = {f"embeddings.{kind}_embeddings.weight": rng.standard_normal((count, CHANNELS)) for kind, count in sizes}
    norms = ["embeddings.LayerNorm"]
    for layer in ("encoder.layer.0.", "encoder.layer.1."):
        for name, shape in shapes.items():
            found[f"{layer}{name}.weight"] = rng.standard_normal(shape) / shape[1] ** 0.5
            found[f"{layer}{name}.bias"] = rng.standard_normal(shape[0])
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    for name in norms:
        found |= {f"{name}.weight": np.ones(CHANNELS), f"{name}.bias": np.zeros(CHANNELS)}
    weights = {name: value.astype(np.float32) for name, value in found.items()}
    return accuracy.Encoder(weights, accuracy.WordPiece(WORDS, 12), heads=2)


def engines(quantiser, core):
    return Quantiser(quantiser), Core(core)


@pytest.fixture(scope="module")
def report(encoder):
    request = LayerRequest("small", 1, SENTENCES, rtl=("scores", "output"))
    return measure(encoder, request, engines=engines)


def test_a_row_for_each_format(report):
    assert [row.name for row in report.results] == list(USUAL) == ["nvfp4", "four-over-six", "mixfp4", "nvint4"]
    assert [(row.format, row.rule) for row in report.results] == list(golden.QUANTISERS)
    assert report.names == ("nvfp4-small", "mixfp4-small", "nvint4-small")
    assert [row.core for row in report.results] == [f"{row.format}-small" for row in report.results]
    conditions = report.conditions
    assert (conditions.sentences, conditions.tokens, conditions.engine) == (3, 5 + 3 + 9, "ideal")
    assert conditions.quantisers["mixfp4-quantiser"] == QUANTISERS["mixfp4-quantiser"].as_dict()
    assert [each.gemm for each in conditions.gemms] == list(GEMMS)
    known = {each.gemm: (each.gemms, each.macs, each.weights) for each in conditions.gemms}
    assert known["query"] == (1, 17 * 32 * 32, True)
    assert known["scores"] == known["context"] == (6, 2 * 16 * (25 + 9 + 81), False)


def test_figures_are_those_of_the_layer(encoder, report):
    """Of MixFP4, computed anew by the definition of each figure."""
    layer = Layer(encoder, SENTENCES, 1)
    path = Datapath(layer, golden.Quantiser("mixfp4"))
    run = layer.run(path.multiply)
    row = report.results[2]
    assert (row.blocks, row.saturated) == (path.blocks, path.saturated)
    out = deviation([layer.reference.output], [run.output])
    assert row.output == schema.Deviation(out.energies.decibels, out.median, out.similarity, out.worst)
    exact = layer.run(Datapath(layer, golden.Quantiser("mixfp4"), in_float64=True).multiply)
    other = deviation([layer.reference.output], [exact.output])
    assert row.output_in_float64 == schema.Deviation(
        other.energies.decibels, other.median, other.similarity, other.worst
    )
    for each in row.gemms:
        right = [gemm.d for gemm in layer.reference.gemms[each.gemm]]
        within = deviation(right, [gemm.d for gemm in run.gemms[each.gemm]])
        assert each.within == schema.Deviation(within.energies.decibels, within.median, within.similarity, within.worst)
        anew = [path.multiply(each.gemm, gemm.x, gemm.w) for gemm in layer.reference.gemms[each.gemm]]
        alone = deviation(right, anew)
        assert each.alone == schema.Deviation(alone.energies.decibels, alone.median, alone.similarity, alone.worst)
        assert (each.alone == each.within) == (each.gemm in ("query", "key", "value"))
    (query,) = layer.reference.gemms["query"]
    assert row.gemms[0].w_sqnr_db == accuracy.energies(query.w, "mixfp4").decibels
    assert 10 < row.output.snr_db < 30


def test_quantisers_without_a_choice_are_exact(report):
    """NVFP4 and NVINT4 are the float64 quantiser, bit for bit."""
    for row in (report.results[0], report.results[3]):
        assert row.output_in_float64 == row.output


def test_what_went_through_the_rtl(report):
    scores, output = report.results[0].rtl
    assert (scores.gemm, scores.gemms, scores.results) == ("scores", 6, 2 * (25 + 9 + 81))
    assert scores.blocks == 2 * 2 * 17  # queries and keys of two heads, one block of 16 channels
    assert scores.quantiser_cycles == 9 * 12
    assert (output.blocks, output.macs, output.results) == (17 * 3, 17 * 32 * 48, 17 * 32)


def test_all_of_it_in_rtl(encoder):
    found = measure(encoder, LayerRequest("small", 0, SENTENCES, ("mixfp4",), rtl=("all", "key")), engines=engines)
    assert [each.gemm for each in found.results[0].rtl] == list(GEMMS)


def test_a_core_that_rounds_elsewhere(encoder):
    """Steps of four blocks are those of the larger cores, in the layer as in the RTL."""
    request = LayerRequest("small", 0, SENTENCES, ("nvfp4",), "blackwell")
    found = measure(encoder, request, engines=engines)
    assert found.designs == (schema.Design(NAMED["nvfp4-blackwell"].as_dict()),)
    assert found.results[0].rtl[0].gemm == "query"


def test_a_planted_fault_is_found(encoder):
    request = LayerRequest("small", 0, SENTENCES, ("nvint4",), rtl=("value",))
    with pytest.raises(MismatchError, match=r"nvint4-quantiser: value: X: code \[16, 16\] is 0x"):
        measure(encoder, request, engines=lambda quantiser, core: (Quantiser(quantiser, wrong=True), Core(core)))


def test_progress(encoder):
    seen = []
    request = LayerRequest("small", 0, SENTENCES[:1], ("nvfp4",))
    measure(encoder, request, lambda *told: seen.append(told), engines)
    assert seen[0] == ("simulators", 0, 1)
    assert seen[-1] == ("formats", 1, 1)
    assert any(what == "RTL of nvfp4, query" and done == total > 0 for what, done, total in seen)

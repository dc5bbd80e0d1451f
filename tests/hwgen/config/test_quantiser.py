"""Configurations of quantisers."""

import pytest

from hwgen.config.quantiser import QUANTISER_REGISTERS, QUANTISERS, QuantiserConfig, named_quantiser
from hwgen.errors import InputError


def test_defaults_of_a_choice():
    config = QuantiserConfig("q", "mixfp4")
    assert (config.selection, config.error_bits, config.tensor_scale_bits) == ("squared-error", 8, 8)
    assert config.registers == [each for each in QUANTISER_REGISTERS if each != "choice"]
    assert config.latency == 8
    assert config.as_dict()["error_bits"] == 8
    assert len(config.datapaths) == 2


def test_a_choice_by_magnitudes_leaves_one_candidate():
    config = QuantiserConfig("q", "mixfp4", selection="gap")
    assert (config.by_magnitude, config.by_error, len(config.datapaths)) == (True, False, 1)
    assert config.latency == QUANTISERS["nvfp4-quantiser"].latency
    crest = QuantiserConfig("q", "mixfp4", selection="crest-factor")
    assert crest.registers == list(QUANTISER_REGISTERS[:5])


def test_one_candidate_has_no_choice():
    config = QuantiserConfig("q", "nvfp4")
    assert config.selection is None
    assert config.latency == 5
    assert config.as_dict()["error_bits"] is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "4q"}, "name = '4q': must be letters"),
        ({"name": "wire"}, "name = 'wire': is a reserved word"),
        ({"format": "mxfp4"}, "format = 'mxfp4' with rule = 'nearest': must be one of 'nvfp4' with 'nearest'"),
        ({"rule": "four-over-six"}, "format = 'mixfp4' with rule = 'four-over-six'"),
        ({"input": "float16"}, "input = 'float16': must be one of float32, bfloat16"),
        ({"selection": "mae"}, "selection = 'mae': must be one of squared-error"),
        (
            {"format": "nvfp4", "rule": "four-over-six", "selection": "crest-factor"},
            "selection = 'crest-factor': must be one of squared-error, absolute-error, largest-error, sampled-error",
        ),
        ({"selection": "gap", "error_bits": 12}, "error_bits = 12: must be a whole number from 4 to 11"),
        ({"selection": "gap", "pipeline": ("sums",)}, "pipeline = ['sums']: must be of largest, quotients, scales, bo"),
        ({"format": "nvfp4", "selection": "squared-error"}, "selection = 'squared-error': nvfp4 has one candidate"),
        ({"error_bits": 1}, "error_bits = 1: must be a whole number from 2 to 14"),
        ({"error_bits": 11, "tensor_scale_bits": 2}, "error_bits = 11: must be a whole number from 2 to 9"),
        ({"tensor_scale_bits": 15}, "tensor_scale_bits = 15: must be a whole number from 2 to 14"),
        ({"clock_gating": 1}, "clock_gating = 1: must be true or false"),
        ({"tensor_scale_bits": True}, "tensor_scale_bits = True: must be"),
        (
            {"pipeline": ("bounds", "largest")},
            "pipeline = ['bounds', 'largest']: must be of largest, quotients, scales",
        ),
        (
            {"format": "nvint4", "pipeline": ("sums",)},
            "pipeline = ['sums']: must be of largest, quotients, scales, bounds, in",
        ),
    ],
)
def test_bad_fields(fields, words):
    with pytest.raises(InputError) as caught:
        QuantiserConfig(**{"name": "q", "format": "mixfp4", **fields})
    assert str(caught.value).startswith(words)


def test_named():
    assert named_quantiser("four-over-six-quantiser").rule == "four-over-six"
    assert all(config.input == ("bfloat16" if "bf16" in name else "float32") for name, config in QUANTISERS.items())
    with pytest.raises(InputError, match="quantiser 'mixfp4': must be one of nvfp4-quantiser, "):
        named_quantiser("mixfp4")

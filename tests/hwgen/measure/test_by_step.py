"""Operands of cores whose steps choose the elements, and of those that are compared with them."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import NAMED
from hwgen.measure.netlists.checks import lane_outputs
from hwgen.measure.netlists.energy import single_block
from hwgen.measure.netlists.stimulus import Stimulus, operands_of
from hwgen.measure.overhead import formats_fed
from hwgen.measure.power import situations
from hwgen.report import schema

CHOSEN, MIXED = NAMED["nvfp4-e0m3-multi-small"], NAMED["mixfp4-multi-small"]
STIMULUS = Stimulus(streams=2, steps_per_tile=4)


@pytest.mark.parametrize(("tensors", "share"), [("gaussian", 1.0), ("outlier-channels", 0.0)])
def test_the_candidate_gets_the_baselines_operands(tensors: str, share: float) -> None:
    assert formats_fed(MIXED, CHOSEN) == [MIXED.formats, CHOSEN.formats]
    stimulus = dataclasses.replace(STIMULUS, tensors=tensors)
    own = stimulus.steps(CHOSEN, CHOSEN.formats)
    same = stimulus.steps(MIXED, CHOSEN.formats)
    operand = schema.Operand("nvfp4-e0m3", share)
    assert operands_of(CHOSEN.formats, own) == operands_of(CHOSEN.formats, same) == schema.Operands(operand, operand)
    for one, other in zip(own, same, strict=True):
        np.testing.assert_array_equal(one.a_scales, other.a_scales)
        np.testing.assert_array_equal(one.expected(), other.expected())
        assert not one.half.any()
        assert set(one.a_types) == {7 if share else 5}
    sums = lane_outputs(single_block(CHOSEN), stimulus.steps(single_block(CHOSEN), CHOSEN.formats))
    others = lane_outputs(single_block(MIXED), stimulus.steps(single_block(MIXED), CHOSEN.formats))
    assert list(sums) == ["sum"]
    np.testing.assert_array_equal(sums["sum"], others["sum"])


def test_shares_are_for_formats_whose_blocks_choose() -> None:
    """Each tensor of the baseline has one kind, whatever share of the candidate's blocks is E1M2."""
    some = dataclasses.replace(STIMULUS, e1m2=0.5)
    plain = STIMULUS.steps(CHOSEN, CHOSEN.formats)
    for one, other in zip(some.steps(CHOSEN, CHOSEN.formats), plain, strict=True):
        np.testing.assert_array_equal(one.bits(), other.bits())
    shares = [each for each in situations(CHOSEN, MIXED, STIMULUS) if each.stimulus.e1m2 is not None]
    assert len(shares) == 4
    assert all(each.of(0)[1].e1m2 is None and each.of(1)[1].e1m2 is not None for each in shares)
    assert not [each for each in situations(MIXED, CHOSEN, STIMULUS) if each.stimulus.e1m2 is not None]

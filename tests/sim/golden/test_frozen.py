"""The frozen steps: as they were made, and as the golden model and its parts compute them."""

import frozen
import numpy as np
import pytest

from sim import golden
from sim.golden import parts


@pytest.fixture(scope="module")
def steps():
    return np.load(frozen.FILE)


def test_the_script_makes_the_file_byte_for_byte():
    assert frozen.as_bytes(frozen.make()) == frozen.FILE.read_bytes()


def test_what_the_steps_hold(steps):
    assert len(steps) >= 2000
    assert set(frozen.FORMATS) <= set(golden.FORMATS)
    for fields in (["a", "b"], ["groups"], ["kind"]):
        assert len(np.unique(steps[fields])) == {"a": 9, "groups": 3, "kind": 9}[fields[0]]
    kinds = [kind.__name__ for kind in frozen.KINDS]
    results = dict(zip(frozen.OPTIONS, steps["results"].T, strict=True))
    included, excluded = (results[which, "toward_zero"] for which in golden.EMPTY_BLOCKS)
    differ = {name: int((included != excluded)[steps["kind"] == kind].sum()) for kind, name in enumerate(kinds)}
    assert differ["zero_blocks"] > 40
    assert differ["cancelling_sums"] > 20
    assert ((included != excluded) & (steps["c"] == 0)).sum() > 10  # products alone are cut
    assert (included != results["included", "nearest_even"]).sum() > 200
    cancelled = (included == 0) & (steps["kind"] == kinds.index("cancelling_c")) & (steps["c"] << 1 != 0)
    assert cancelled.sum() > 20
    assert (included == parts.NAN).sum() > 100
    assert ((steps["c"] == 0) | (steps["c"] == 1 << 31)).sum() > 300


@pytest.mark.parametrize(("index", "options"), list(enumerate(frozen.OPTIONS)))
def test_the_golden_model_computes_them(steps, index, options):
    empty_blocks, rounding = options
    for kind in np.unique(steps[["a", "b", "groups"]]):
        some = steps[steps[["a", "b", "groups"]] == kind]
        groups = int(kind["groups"])
        a_codes, b_codes = (golden.unpack(some[side])[:, None, : 16 * groups] for side in ("a_codes", "b_codes"))
        a_scales, b_scales = (some[side][:, None, :groups] for side in ("a_scales", "b_scales"))
        stack = a_codes, a_scales, b_codes, b_scales, some["c"].view(np.float32)[:, None, None]
        forms = {"a": frozen.FORMATS[kind["a"]], "b": frozen.FORMATS[kind["b"]]}
        d = golden.step(*stack, **forms, rounding=rounding, empty_blocks=empty_blocks)
        np.testing.assert_array_equal(d.view(np.uint32)[:, 0, 0], some["results"][:, index])
        # A single step takes another path than a stack.
        for step in range(0, len(some), 3):
            one = golden.step(*(x[step] for x in stack), **forms, rounding=rounding, empty_blocks=empty_blocks)
            assert one.view(np.uint32)[0, 0] == some["results"][step, index]


def test_the_parts_compute_them(steps):
    for step in steps:
        groups = int(step["groups"])
        a_codes, b_codes = (golden.unpack(step[side])[: 16 * groups].tolist() for side in ("a_codes", "b_codes"))
        a_scales, b_scales = (step[side][:groups].tolist() for side in ("a_scales", "b_scales"))
        forms = {"a": frozen.FORMATS[step["a"]], "b": frozen.FORMATS[step["b"]]}
        for (empty_blocks, rounding), result in zip(frozen.OPTIONS, step["results"].tolist(), strict=True):
            options = {"rounding": rounding, "empty_blocks": empty_blocks}
            assert parts.step(a_codes, a_scales, b_codes, b_scales, int(step["c"]), **forms, **options) == result

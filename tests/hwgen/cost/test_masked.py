"""Prefill without masked scores, against a count by hand."""

import numpy as np
import pytest

from hwgen.config import NAMED
from hwgen.cost.masked import MOST_BLOCKS, without_masked
from hwgen.cost.results import ATTENTION, RESULTS, results_of
from hwgen.cost.workloads import at_half_rate, load, model, models
from hwgen.errors import InputError

OWN = """
[[gemm]]
name = "all"
m = "queries"
n = 96
k = 64

[[gemm]]
name = "scores"
m = "3 * queries"
n = "2 * context"
k = 32
batch = 2
count = 5
role = "scores"
rate = "half"
why = "as many keys from before"

[[gemm]]
name = "between"
m = "queries"
n = 16
k = 64

[[gemm]]
name = "values"
m = "3 * queries"
n = 32
k = "2 * context"
batch = 2
count = 5
role = "values"

[[gemm]]
name = "others"
m = "3 * queries"
n = 16
k = "2 * context"
batch = 2
count = 5
role = "values"

[[gemm]]
name = "out"
m = "queries"
n = 64
k = 96
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    return load(tmp_path / "own.toml", "prefill", 1, 10)


def test_every_block_by_hand(own):
    found = without_masked(own, 10, 4)
    blocks = ("queries 1 to 4", "queries 5 to 8", "queries 9 to 10")
    parts = [f"{name}, {block}" for block in blocks for name in ("scores", "values", "others")]
    assert found.names == ("all", *parts, "between", "out")
    shapes = found.gemms
    assert shapes.m.tolist() == [10, 12, 12, 12, 12, 12, 12, 6, 6, 6, 10, 10]
    # Ten keys from before, and those up to the last query of the block.
    assert shapes.n.tolist() == [96, 14, 32, 16, 18, 32, 16, 20, 32, 16, 16, 64]
    assert shapes.k.tolist() == [64, 32, 14, 14, 32, 18, 18, 32, 20, 20, 64, 96]
    assert shapes.batch.tolist() == [1, *[2] * 9, 1, 1]
    assert found.count.tolist() == [1, *[5] * 9, 1, 1]
    assert shapes.half.tolist() == found.listed_half.tolist() == [False, *[True, False, False] * 3, False, False]
    # Scores are read by the values of their block, others by the next entry, whatever block it begins with.
    assert found.readers.tolist() == [1, 2, 3, 11, 5, 3, 11, 8, 3, 11, 2, -1]
    assert found.operands.tolist() == shapes.n.tolist()
    assert found.notes[1] == "as many keys from before"
    assert not any(found.notes[2:])
    assert (found.query_block, own.query_block) == (4, None)
    assert (found.tokens, found.symbols, found.title) == (own.tokens, own.symbols, own.title)


def test_one_block_is_the_whole_square(own):
    for block in (10, 11, 1000):
        found = without_masked(own, 10, block)
        order = [own.names.index(name.partition(",")[0]) for name in found.names]
        for name in ("m", "n", "k", "batch", "half"):
            np.testing.assert_array_equal(getattr(found.gemms, name), getattr(own.gemms, name)[order])


def test_scores_without_values_are_read_by_the_next_entry(tmp_path):
    (tmp_path / "own.csv").write_text("name,m,n,k,role\ns,queries,context,64,scores\nout,queries,64,64,\n")
    found = without_masked(load(tmp_path / "own.csv", "prefill", 1, 7), 7, 3)
    assert found.names == ("s, queries 1 to 3", "s, queries 4 to 6", "s, queries 7 to 7", "out")
    assert found.readers.tolist() == [3, 3, 3, -1]


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("block", [1, 7, 16])
def test_work_is_that_of_the_blocks(name, block):
    length, sequences = 50, 3
    whole = model(name, "prefill", sequences, length)
    found = without_masked(whole, length, block)

    def work(workload, roles):
        macs = (workload.gemms.macs * workload.count).tolist()
        return sum(each for each, role in zip(macs, workload.roles, strict=True) if role in roles)

    seen = sum(min(length, (query // block + 1) * block) for query in range(length))
    for role in ("scores", "values"):
        assert work(found, {role}) * length**2 == work(whole, {role}) * seen
    assert work(found, {"linear", "logits"}) == work(whole, {"linear", "logits"})
    if block == 1:  # nothing masked is left
        assert seen == length * (length + 1) // 2


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("precision", RESULTS)
def test_results_go_where_those_of_the_square_went(attention, precision):
    """Of scores fewer; all else in the same number."""
    config = NAMED["mixfp4-multi-small"]
    whole = at_half_rate(model("llama-3.1-8b", "prefill", 2, 64), "attention")
    found = without_masked(whole, 64, 16)
    before, after = (
        results_of(config, each.gemms, each.roles, each.operands, each.readers, precision, attention, each.combined)
        for each in (whole, found)
    )

    def total(results, workload, field, scores):
        chosen = np.array([(role == "scores") == scores for role in workload.roles])
        return int((getattr(results, field) * workload.gemms.batch * workload.count)[chosen].sum())

    for field in ("written", "pass_read", "pass_written", "quantised", "kept"):
        assert total(after, found, field, False) == total(before, whole, field, False)
        assert total(after, found, field, True) * 16 == total(before, whole, field, True) * 10
    if attention == "fused":
        for place, role in enumerate(found.roles):
            assert after.scores[place] == (place - 1 if role == "values" else -1)


def test_what_has_no_masked_scores_is_refused(own, tmp_path):
    with pytest.raises(InputError, match=f"--skip-masked 1: 100 blocks of queries; at most {MOST_BLOCKS}, so 2 or mo"):
        without_masked(model("qwen3-8b", "prefill", 1, 100), 100, 1)
    assert len(without_masked(model("qwen3-8b", "prefill", 1, 100), 100, 2).names) == 5 + 2 * 50
    with pytest.raises(InputError, match="65 blocks of queries; at most 64, so 3 or more"):
        without_masked(model("qwen3-8b", "prefill", 1, 129), 129, 2)
    for length, block in ((128, 2), (6400, 100)):
        assert len(without_masked(model("qwen3-8b", "prefill", 1, length), length, block).names) == 5 + 2 * 64
    (tmp_path / "x.csv").write_text("name,m,n,k\nx,queries,64,64\n")
    with pytest.raises(InputError, match="--skip-masked 8: x has no GEMM with the role 'scores'"):
        without_masked(load(tmp_path / "x.csv", "prefill", 1, 10), 10, 8)
    for m, n in ((15, 64), (20, 9)):
        (tmp_path / "x.csv").write_text(f"name,m,n,k,role\ns,{m},{n},64,scores\n")
        said = f"GEMM s: m = {m}, n = {n}: m must be a multiple of the 10 queries, and n at least that many"
        with pytest.raises(InputError, match=said):
            without_masked(load(tmp_path / "x.csv", "prefill", 1, 10), 10, 8)

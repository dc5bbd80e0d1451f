import json
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hwgen.cost.workloads import PHASES, ROUTING, load, model, models
from hwgen.errors import InputError

PARAMETERS = {
    # Billions of parameters as published, in the model cards of the released weights.
    "llama-3.1-8b": 8.03,
    "llama-3.1-70b": 70.6,
    "qwen3-8b": 8.2,
    "qwen3-30b-a3b": 30.5,
    "mixtral-8x7b": 46.7,
}
ATTENTION = ("scores", "values")


def test_every_model_has_published_parameters():
    assert models() == sorted(PARAMETERS)


@pytest.mark.parametrize("name", PARAMETERS)
def test_weights_add_up_to_the_published_parameters(name):
    """So many tokens that all experts compute; the embedding is as large as the LM head, norms and routers small."""
    workload = model(name, "decode", 4096, 10)
    gemms = workload.gemms
    weights = sum(
        int(gemms.n[place] * gemms.k[place] * workload.count[place])
        * (1 if "experts" not in each else int(gemms.batch[place]))
        * (2 if each == "LM head" else 1)
        for place, each in enumerate(workload.names)
        if each not in ATTENTION
    )
    assert weights / 1e9 == pytest.approx(PARAMETERS[name], rel=0.005)


def test_sizes_of_many_digits(tmp_path):
    """As in TOML: all below 2^62, however many zeros stand before them."""
    (tmp_path / "own.csv").write_text(f"name,m,n,k\nx,4{'0' * 18},1,1\ny,{'0' * 5000}3,1,1\n")
    assert load(tmp_path / "own.csv", "decode", 1, 1).gemms.m.tolist() == [4 * 10**18, 3]


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_pass_over_all_tokens_is_as_much_work_as_one_token_after_another(name):
    """But for attention, where decode sees a growing context, the LM head, and experts."""
    length = 64

    def work(phase, sequences):
        workload = model(name, phase, sequences, length)
        per = workload.gemms.macs * workload.count
        return sum(
            int(macs) for each, macs in zip(workload.names, per, strict=True) if each not in (*ATTENTION, "LM head")
        )

    assert work("prefill", 3) == length * work("decode", 3)


def test_attention():
    """32 query and 8 key-value heads of 128: four queries for each key head."""
    workload = model("llama-3.1-8b", "decode", 5, 1000)
    assert workload.tokens == 5
    shapes = dict(
        zip(
            workload.names,
            zip(*(getattr(workload.gemms, key).tolist() for key in ("m", "n", "k", "batch")), strict=True),
            strict=True,
        )
    )
    assert shapes["scores"] == (4, 1000, 128, 40)
    assert shapes["values"] == (4, 128, 1000, 40)
    prefill = model("llama-3.1-8b", "prefill", 5, 1000)
    assert prefill.tokens == 5000
    assert prefill.gemms.m[prefill.names.index("scores")] == 4000


@pytest.mark.parametrize("tokens", [1, 3, 15, 16, 17, 100, 1000])
@pytest.mark.parametrize("routing", ROUTING)
def test_experts_share_the_tokens_evenly(tokens, routing):
    workload = model("qwen3-30b-a3b", "decode", tokens, 8, routing)
    assert (workload.routed, workload.routing) == (True, routing)
    places = [place for place, name in enumerate(workload.names) if name.startswith("down")]
    rows, products = workload.gemms.m[places], workload.gemms.batch[places]
    assert int(rows @ products) == 8 * tokens
    assert rows.max() - rows.min() <= 1
    # Binomial: an expert is left out by every token with 120 / 128.
    expected = 128 * (1 - Fraction(120, 128) ** tokens)
    assert products.sum() == (min(128, 8 * tokens) if routing == "even" else round(expected))


def test_expected_experts_are_those_of_random_routing():
    """Tokens that choose 8 of 128 experts at random, drawn 400 times."""
    rng = np.random.default_rng(1)
    for tokens in (1, 4, 16, 64):
        chosen = [len(np.unique([rng.permutation(128)[:8] for _ in range(tokens)])) for _ in range(400)]
        workload = model("qwen3-30b-a3b", "decode", tokens, 8)
        (distinct,) = {
            int(sum(workload.gemms.batch[place] for place, name in enumerate(workload.names) if name.startswith(of)))
            for of in ("down", "gate, up")
        }
        assert distinct == pytest.approx(np.mean(chosen), abs=0.5 + 4 * np.std(chosen) / 20)


def test_all_experts_for_every_token_is_no_choice():
    assert not model("qwen3-8b", "decode", 4, 8).routed
    for routing in ROUTING:
        text = "name,m,n,k,experts,experts_per_token\nx,3,4,5,2,2\n"
        assert _own(text, routing=routing).gemms.batch.tolist() == [2]


def _own(text: str, **more):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "own.csv")
        path.write_text(text)
        return load(path, "decode", 1, 1, **more)


def test_roles_and_operands():
    workload = model("mixtral-8x7b", "prefill", 1, 64)
    of = dict(zip(workload.names, zip(workload.roles, workload.operands.tolist(), strict=True), strict=True))
    assert (of["scores"], of["values"], of["LM head"]) == (("scores", 64), ("values", 128), ("logits", 32000))
    assert {of[name] for name in of if name.startswith("gate, up")} == {("linear", 14336)}
    own = _own("name,m,n,k,role,operands\na,3,4,5,scores,\nb,3,9,4,values,7\n")
    assert own.roles == ("scores", "values")
    assert own.operands.tolist() == [4, 7]


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("phase", PHASES)
def test_every_model_says_where_its_shapes_are_from(name, phase):
    workload = model(name, phase, 1, 1)
    assert "arXiv" in workload.source
    assert all(workload.notes)
    assert len(set(workload.names)) == len(workload.names)


def test_own_lists(tmp_path: Path):
    (tmp_path / "own list.csv").write_text(
        'name, m, n, k, count\nfirst, 3, 4, 5, 2\n"second, one", tokens, 2*context, 7,\n', encoding="utf-8-sig"
    )
    workload = load(tmp_path / "own list.csv", "prefill", 2, 10)
    assert workload.names == ("first", "second, one")
    assert workload.gemms.m.tolist() == [3, 20]
    assert workload.gemms.n.tolist() == [4, 20]
    assert workload.count.tolist() == [2, 1]
    assert (workload.title, workload.tokens) == ("own list", 20)

    entries = [{"name": "a", "m": 3, "n": 4, "k": 5}, {"name": "b", "m": "3", "n": 4, "k": 5, "batch": 6}]
    text = 'title = "Mine"\n' + "".join(
        "[[gemm]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items()) for entry in entries
    )
    (tmp_path / "own.toml").write_text(text)
    workload = load(tmp_path / "own.toml", "decode", 2, 10)
    assert (workload.title, workload.tokens) == ("Mine", None)
    np.testing.assert_array_equal(workload.gemms.macs, [60, 360])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_spreadsheets(tmp_path: Path, separator):
    """Other separators, capitals, blanks around names, empty columns and rows behind."""
    lines = [
        ["Name", " M ", "N", "K ", "Batch", "COUNT", "Why", ""],
        ["a", "3", "4", "5", "6", "7", "so", ""],
        ["b", "8", "9", "10", "", "", "", ""],
        [""] * 8,
    ]
    (tmp_path / "own.csv").write_text("".join(separator.join(line) + "\r\n" for line in lines))
    workload = load(tmp_path / "own.csv", "decode", 1, 1)
    gemms = workload.gemms
    assert workload.names == ("a", "b")
    assert [getattr(gemms, key).tolist() for key in ("m", "n", "k", "batch")] == [[3, 8], [4, 9], [5, 10], [6, 1]]
    assert workload.count.tolist() == [7, 1]
    assert workload.notes == ("so", "")


GOOD = '[[gemm]]\nname = "x"\nm = 1\nn = 1\nk = 1\n'
BAD = [
    ("x.txt", "", r"must end in .toml or .csv"),
    ("x.toml", "[[", "not valid TOML"),
    ("x.toml", "", "holds no GEMM"),
    ("x.toml", "gemm = 3", "gemm must be a list of tables"),
    ("x.toml", "gemm = [1]", "gemm must be a list of tables"),
    ("x.toml", "titel = 3", "unknown key 'titel'"),
    ("x.toml", f"title = 3\n{GOOD}", "title = 3: must be a text"),
    ("x.toml", '[[gemm]]\nname = "x"\nm = 1\nn = 1\n', r"entry 1 \(x\): 'k' is missing"),
    ("x.toml", "[[gemm]]\nm = 1\n", "entry 1: name = None: must be a text"),
    ("x.toml", f"{GOOD}cuont = 3", "unknown key 'cuont'; did you mean 'count'"),
    ("x.toml", f"{GOOD}rate = 'fp8'", r"rate = 'fp8': must be one of full, half"),
    ("x.toml", GOOD.replace("m = 1", "m = 0"), "m = 0: must be a whole number"),
    ("x.toml", GOOD.replace("m = 1", "m = 1.5"), "m = 1.5: must be a whole number"),
    ("x.toml", GOOD.replace("m = 1", "m = true"), "m = True: must be a whole number"),
    ("x.toml", GOOD.replace("m = 1", 'm = "token"'), "m = 'token': must be.*tokens"),
    ("x.toml", GOOD.replace("m = 1", 'm = "4 * "'), r"m = '4 \* '"),
    ("x.toml", GOOD.replace("m = 1", 'm = "-4"'), "m = '-4'"),
    ("x.toml", GOOD.replace("m = 1", "m = 9223372036854775807"), "m = 9223372036854775807: too large"),
    ("x.toml", GOOD.replace("= 1", "= 4000000000"), r"too large; at most 2\^62"),
    ("x.toml", f"{GOOD}count = 4611686018427387903\nbatch = 2", r"too large; at most 2\^62"),
    ("x.toml", f"{GOOD}experts = 8", "experts and experts_per_token belong together"),
    ("x.toml", f"{GOOD}experts = 8\nexperts_per_token = 9", "experts_per_token = 9: must be at most experts = 8"),
    ("x.toml", f'{GOOD}role = "score"', "role = 'score': must be one of linear, scores, values, logits"),
    ("x.toml", f"{GOOD}role = 3", "role = 3: must be one of"),
    ("x.toml", f"{GOOD}operands = 2", "operands = 2: must be at most n = 1"),
    ("x.toml", f"{GOOD}combined = 0", "combined = 0: must be a whole number of at least 1"),
    ("x.toml", f"{GOOD}combined = 2\nrole = 'logits'", "combined = 2: results with the role 'logits' are not added up"),
    ("x.toml", f'{GOOD}role = "values"', "no entry before it has the role 'scores'"),
    ("x.toml", f'{GOOD}role = "scores"\nexperts = 2\nexperts_per_token = 1', "role = 'scores': has no experts"),
    (
        "x.csv",
        "name,m,n,k,role\nx,3,4,5,scores\ny,3,6,7,values\n",
        r"entry 2 \(y\): k = 7: its scores have n = 4; must be the same",
    ),
    ("x.csv", "", "column 'name' is missing"),
    ("x.csv", "name,m,n\nx,1,1\n", "column 'k' is missing"),
    ("x.csv", "name,m,n,k\nx,1,1,1,1\n", "line 2: has more than 4 columns"),
    ("x.csv", "name,m,n,k\nx,1,1\n", r"entry 1 \(x\): 'k' is missing"),
    ("x.csv", "name,m,n,k\nx,1,1,one\n", "k = 'one'"),
    ("x.csv", "name,m,n,k,why,who\nx,1,1,1,a,b\n", "unknown column 'who'; did you mean 'why'"),
    ("x.csv", "name,m,n,k,cuont\nx,1,1,1,1\n", "unknown column 'cuont'; did you mean 'count'"),
    ("x.csv", "name,m,n,k,M\nx,1,1,1,2\n", "column 'm' is there 2 times"),
    ("x.csv", "name,m,n,k,\nx,1,1,1,2\n", "line 2: '2' stands in a column without a name"),
    ("x.csv", "name;m,n,k\nx,1,1,1\n", "unknown column 'name;m'"),
    ("x.csv", "name,m,n,k\nx,1,1,1\ny,1,1,1\nx ,2,2,2\n", r"entry 3 \(x\): entry 1 has this name already"),
    ("x.toml", GOOD * 2, r"entry 2 \(x\): entry 1 has this name already; names must differ"),
    ("x.csv", 'name,m,n,k\n"x', "not valid CSV"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_lists_are_one_line_that_names_the_culprit(tmp_path: Path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load(path, "decode", 1, 1)
    assert "\n" not in str(caught.value)
    assert repr(str(path)) in str(caught.value)


def test_unreadable_lists_are_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent\.csv': No such file"):
        load(tmp_path / "absent.csv", "decode", 1, 1)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not valid CSV"):
        load(tmp_path / "bytes.csv", "decode", 1, 1)
    (tmp_path / "dir.toml").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        load(tmp_path / "dir.toml", "decode", 1, 1)


def test_bad_requests_are_named():
    with pytest.raises(InputError, match=r"unknown model 'llama-3.1-9b'.*did you mean 'llama-3.1-8b'"):
        model("llama-3.1-9b", "decode", 1, 1)
    with pytest.raises(InputError, match="phase 'training'"):
        model("qwen3-8b", "training", 1, 1)
    with pytest.raises(InputError, match="batch = 0"):
        model("qwen3-8b", "decode", 0, 1)
    with pytest.raises(InputError, match="sequence = 0"):
        model("qwen3-8b", "decode", 1, 0)

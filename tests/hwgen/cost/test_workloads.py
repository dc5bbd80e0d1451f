import json
from pathlib import Path

import numpy as np
import pytest

from hwgen.cost.workloads import PHASES, load, model, models
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
def test_experts_share_the_tokens_evenly(tokens):
    workload = model("qwen3-30b-a3b", "decode", tokens, 8)
    places = [place for place, name in enumerate(workload.names) if name.startswith("down")]
    rows, products = workload.gemms.m[places], workload.gemms.batch[places]
    assert int(rows @ products) == 8 * tokens
    assert products.sum() == min(128, 8 * tokens)
    assert rows.max() - rows.min() <= 1


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
    ("x.toml", "gemm = 3", "holds no GEMM"),
    ("x.toml", "gemm = [1]", "holds no GEMM"),
    ("x.toml", "titel = 3", "unknown key 'titel'"),
    ("x.toml", f"title = 3\n{GOOD}", "title = 3: must be a text"),
    ("x.toml", '[[gemm]]\nname = "x"\nm = 1\nn = 1\n', r"entry 1 \(x\): 'k' is missing"),
    ("x.toml", "[[gemm]]\nm = 1\n", "entry 1: name = None: must be a text"),
    ("x.toml", f"{GOOD}cuont = 3", "unknown key 'cuont'; did you mean 'count'"),
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

"""Command lines that once ended in a traceback, wrote over their own input, or were taken for what they are not.

Each is one line that names the culprit, with status 2, and nothing is written.
"""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from hwgen import cli

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "reports"
Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    """The line that a command is refused with, run in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        monkeypatch.setattr(sys, "argv", ["hwgen", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        assert (caught.value.code, out) == (2, ""), err
        assert err.startswith("hwgen: ")
        assert err.count("\n") == 1
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
        return err.removeprefix("hwgen: ").rstrip()

    return run


def _changed(name: str, target: str, change: Callable[[Any], object]) -> str:
    content = json.loads((REPORTS / name).read_text())
    change(content)
    Path(target).write_text(json.dumps(content))
    return target


def test_a_report_is_not_written_over_by_what_follows_from_it(refused: Refused) -> None:
    for name in ("r.md", "r.csv", "r"):
        Path(name).write_bytes((REPORTS / "power.json").read_bytes())
        assert refused("report", name) == (
            f"report {name!r}: its name must end in .json; what follows from it has other endings"
        )


def test_no_report_is_rendered_unless_all_are(refused: Refused) -> None:
    Path("power.json").write_bytes((REPORTS / "power.json").read_bytes())
    assert refused("report", "power.json", "none.json") == "report 'none.json': No such file or directory"


def _without_a_scope(content: Any) -> None:
    del content["conditions"]["closing"]["mixfp4-small"]["energy"]["lane array"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("overhead.json", lambda content: content["conditions"].update(closing={})),
        ("overhead.json", _without_a_scope),
        ("power.json", lambda content: content["conditions"].update(chosen_recipes={})),
    ],
)
def test_what_makes_a_damaged_report_unstable(refused: Refused, name: str, change: Callable[[Any], object]) -> None:
    path = _changed(name, "damaged.json", change)
    assert refused("report", "--check", path).startswith("report 'damaged.json': damaged (")


def test_a_page_of_a_report_without_a_scope(refused: Refused) -> None:
    pytest.importorskip("vl_convert")
    Path("some").mkdir()
    _changed("overhead.json", "some/damaged.json", _without_a_scope)
    assert refused("site", "--reports", "some").startswith(
        "report 'some/damaged.json': damaged (KeyError: 'lane array'"
    )


def test_tables_with_another_purpose_are_not_joined(refused: Refused) -> None:
    content = json.loads((REPORTS / "formats-asap7.json").read_text())
    Path("one.json").write_text(json.dumps(content))
    other = copy.deepcopy(content)
    row = next(row for row in other["results"] if row["closing"])
    row["closing"]["zz"] = row["closing"]["area"]
    Path("other.json").write_text(json.dumps(other))
    assert "damaged (KeyError: 'zz')" in refused("report", "--join", "both", "other.json", "one.json", "--out", ".")


def _figure(content: Any, metric: str) -> Any:
    return next(each for each in content["results"] if (each["scope"], each["metric"]) == ("core", metric))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda content: content["conditions"].update(clock_ns=0), "clock_ns is 0, must be above 0"),
        (lambda content: content["conditions"].update(clock_ns=-1), "clock_ns is -1, must be above 0"),
        (
            lambda content: _figure(content, "area")["values"].update({"mixfp4-small": 0}),
            "area of mixfp4-small is 0, must be above 0",
        ),
        (
            lambda content: _figure(content, "leakage power")["values"].update({"mixfp4-small": -5}),
            "power of mixfp4-small is -5, must not be below 0",
        ),
        (
            lambda content: _figure(content, "area")["overhead"].update(value=-1.0),
            "overhead of area, as a ratio is 0, must be above 0",
        ),
    ],
)
def test_no_core_has_such_figures(refused: Refused, change: Callable[[Any], object], what: str) -> None:
    path = _changed("overhead.json", "damaged.json", change)
    command = ("cost", "--model", "llama-3.1-8b", "--config", "mixfp4-small", "--vs", "nvfp4-small", "--report", path)
    assert what in refused(*command)


def test_a_clock_below_zero_is_no_constraint(refused: Refused) -> None:
    path = _changed("overhead.json", "damaged.json", lambda content: content["conditions"].update(clock_ns=-1))
    assert "clock_ns is -1" in refused("verilog", "mixfp4-small", "--report", path, "--out", "rtl")


@pytest.mark.parametrize("about", ['{"configuration": []}', "null", "[" * 100_000, "3"])
def test_vectors_that_are_about_nothing(refused: Refused, about: str) -> None:
    np.savez("v.npz", about=np.array(about))
    assert refused("replay", "v.npz").startswith("vectors 'v.npz': not what 'hwgen verify' writes: ")


def test_names_that_are_no_utf_8(refused: Refused) -> None:
    name = os.fsdecode(b"a\xff.json")
    Path(name).write_bytes((REPORTS / "power.json").read_bytes())
    assert "must be a name in UTF-8, since reports quote it" in refused("report", name)
    assert "must be a plain file name" in refused("cost", "--model", "llama-3.1-8b", "--name", name)


def test_traffic_that_never_comes_through(refused: Refused) -> None:
    for option in ("--gaps", "--stalls"):
        assert refused("simulate", "--m", "1", option, "0.9999999") == f"{option} 1: must be a share from 0 to 0.99"


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--a", "NAME.npz"),
        ("error", "--file", "NAME.npy"),
        ("compare", "--liberty", "NAME.lib"),
        ("site", "--reports", "NAME"),
        ("simulate", "--save", "NAME/x.npy"),
    ],
)
def test_names_that_are_too_long(refused: Refused, arguments: tuple[str, ...]) -> None:
    found = refused(*(argument.replace("NAME", "n" * 300) for argument in arguments))
    assert "File name too long" in found


def test_codes_with_block_scales_are_no_fp8(refused: Refused) -> None:
    codes = np.zeros((2, 16), np.uint8)
    save_file({"w": codes, "w_scale": codes, "w_scale_2": np.ones(1, np.float32)}, "st.safetensors")
    np.savez("codes.npz", codes=codes, scales=codes, tensor_scale=np.float32(1))
    command = ("simulate", "--config", "mixfp4-multi-small", "--mode", "fp8", "--n", "1")
    found = refused(*command, "--a", "st.safetensors", "--a-name", "w")
    assert "'w' comes with scales, 'w_scale', which steps without block scales do not apply" in found
    assert "'codes' comes with scales, 'scales'" in refused(*command, "--a", "codes.npz")


def test_an_empty_name_is_not_the_default(refused: Refused) -> None:
    assert "''" in refused("compare", "--library", "")
    assert "''" in refused("compare", "--config", "")


FORMAT = 'block = 16\nelements = ["E2M1"]\nscale = "E8M0"\n'


def test_formats_without_a_core(
    refused: Refused, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("own.toml").write_text(f"[formats.m1]\n{FORMAT}[formats.m2]\n{FORMAT}")
    Path("more.toml").write_text(f"[formats.m2]\n{FORMAT}")
    found = refused("error", "--format", "own.toml", "--format", "more.toml")
    assert found == "--format more.toml: format 'm2' is in own.toml, too; rename it in one of them"
    np.save("x.npy", np.random.default_rng(1).normal(size=(4, 64)))
    monkeypatch.setattr(sys, "argv", ["hwgen", "error", "--format", "own.toml", "--file", "x.npy", "--json"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 0
    assert {row["format"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"m1", "m2"}


def test_numbers_whose_squares_are_zero_are_no_signal(refused: Refused) -> None:
    np.save("x.npy", np.full((4, 64), 1e-200))
    assert "holds nothing but zeros, or numbers whose squares are" in refused("error", "--file", "x.npy")


@pytest.mark.parametrize(
    ("size", "options", "symbols"),
    [
        ("64", ("--phase=prefill",), "'queries'"),
        ("64", ("--batch=7",), "'sequences'"),
        ("context", ("--batch=7",), "'sequences'"),
        ("context", ("--phase=decode",), "'queries'"),
        ("queries", ("--batch=7",), "'sequences'"),
        ("sequences", ("--phase=prefill", "--sequence=3"), "'queries'"),
        ("64", ("--sequence=3",), "'context', in decode"),
        ("tokens", ("--sequence=3",), "'context', in decode"),
    ],
)
def test_a_list_asks_for_no_symbols_that_it_has_not(
    refused: Refused, size: str, options: tuple[str, ...], symbols: str
) -> None:
    Path("list.csv").write_text(f"name,m,n,k\na,{size},64,64\n")
    name = next(option.partition("=")[0] for option in options if symbols != "'queries'" or "phase" in option)
    assert refused("cost", "--gemms", "list.csv", "--config", "mixfp4-small", *options) == (
        f"{name}: no size of GEMM list 'list.csv' has the symbol {symbols}; leave it out"
    )


def test_a_list_without_scores_asks_for_no_attention(refused: Refused) -> None:
    Path("list.csv").write_text("name,m,n,k\na,64,64,64\n")
    assert refused("cost", "--gemms", "list.csv", "--config", "mixfp4-small", "--attention=unfused") == (
        "--attention unfused: list.csv has no GEMM of the role 'scores'; leave it out"
    )


def test_a_table_of_one_gemm_is_no_list(refused: Refused) -> None:
    for text in ("[gemm]\nname = 'a'\nm = 1\nn = 1\nk = 1\n", "gemm = 1\n"):
        Path("list.toml").write_text(text)
        found = refused("cost", "--gemms", "list.toml", "--config", "mixfp4-small")
        assert found.endswith("gemm must be a list of tables; write [[gemm]] above each entry")
    Path("list.toml").write_text("[[gemm]]\nname = 'a'\nm = 1\nn = 1\nk = 1\nwhy = [1, 2]\n")
    found = refused("cost", "--gemms", "list.toml", "--config", "mixfp4-small")
    assert found.endswith("why = [1, 2]: must be a text")


def test_waves_do_not_go_over_another_file(refused: Refused) -> None:
    Path("v.npz").write_bytes(b"vectors")
    for arguments in (("simulate", "--save", "s.npz", "--vcd", "s.npz"), ("replay", "v.npz", "--vcd", "./v.npz")):
        assert "is another file of this command; give another name" in refused(*arguments)


def test_no_verilog_is_written_unless_all_can_be(refused: Refused) -> None:
    Path("rtl", "mixfp4-small.json").mkdir(parents=True)
    found = refused("verilog", "nvfp4-small", "mixfp4-small", "--out", "rtl")
    assert found == "cannot write 'rtl/mixfp4-small.json': is a directory"


@pytest.mark.parametrize("rule", ["0", "false", "[]", '""', "1"])
def test_a_rule_of_another_type(refused: Refused, rule: str) -> None:
    Path("own.toml").write_text(f"[formats.m1]\nrule = {rule}\n{FORMAT}")
    assert "rule must be one of" in refused("error", "--format", "own.toml")


def test_files_of_windows_editors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin with a mark of their encoding, and may have an ending in capitals."""
    core = tmp_path / "core.TOML"
    core.write_bytes(b'\xef\xbb\xbfa = "mixfp4"\nb = "mixfp4"\nrows = 1\ncolumns = 1\ngroups = 1\n')
    report = tmp_path / "power.json"
    report.write_bytes(b"\xef\xbb\xbf" + (REPORTS / "power.json").read_bytes())
    for arguments in (("verilog", str(core), "--out", str(tmp_path)), ("report", "--check", str(report))):
        monkeypatch.setattr(sys, "argv", ["hwgen", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert caught.value.code == 0


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_a_closed_standard_output_is_no_traceback() -> None:
    command = f'"{sys.executable}" -m hwgen configs --json >&-'
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert "Traceback" not in done.stderr

"""Files that were once taken for what they are not, or refused with a traceback."""

import json
import re
import sys
import warnings
from pathlib import Path

import pytest

from hwgen import cli, config
from hwgen.cells import libraries, reader
from hwgen.cost import workloads
from hwgen.errors import InputError
from hwgen.report import schema
from hwgen.report.plots import cost as cost_plots

REPORTS = Path(__file__).parents[2] / "reports"
DIGITS = "9" * 5000  # more than Python turns into an integer unasked


def test_integers_of_thousands_of_digits(tmp_path: Path) -> None:
    core = tmp_path / "core.toml"
    core.write_text(f"rows = {DIGITS}\n")
    with pytest.raises(InputError, match=r"core\.toml': "):
        config.resolve(str(core))
    gemms = tmp_path / "list.toml"
    gemms.write_text(f'[[gemm]]\nname = "x"\nm = {DIGITS}\nn = 1\nk = 1\n')
    with pytest.raises(InputError, match=r"list\.toml': "):
        workloads.load(gemms, "decode", 1, 1)


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
def test_reports_hold_finite_numbers(tmp_path: Path, value: str) -> None:
    text = (REPORTS / "power.json").read_text().replace('"clock_ns": ', f'"clock_ns": {value}, "was": ', 1)
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(InputError, match=f"not JSON: {re.escape(value)} is no finite number"):
        schema.load(path)


def _generic7() -> str:
    return libraries.path("generic7").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", ["nan", "inf", "-1e999"])
@pytest.mark.parametrize("name", ["area", "cell_leakage_power", "capacitance"])
def test_figures_of_a_library_are_finite(tmp_path: Path, name: str, value: str) -> None:
    path = tmp_path / "cells.lib"
    text, found = re.subn(rf"(?s)(  cell \(.*?\b{name}) : [^;]+;", rf"\1 : {value};", _generic7(), count=1)
    assert found == 1
    path.write_text(text)
    with pytest.raises(InputError, match=rf"cells\.lib:\d+: {name} is '{value}'; expected a number"):
        reader.load(path)


def test_a_flip_flop_without_an_output_is_none(tmp_path: Path) -> None:
    path = tmp_path / "cells.lib"
    head, *cells = re.split(r"(?m)^(?=  cell \()", _generic7())
    text = "".join(
        re.sub("direction : output", "direction : inout", cell) if " ff (" in cell else cell for cell in cells
    )
    path.write_text(head + text)
    with pytest.raises(InputError, match=r"cells\.lib: no rising-edge D flip-flop"):
        reader.load(path).check_for_synthesis()


def test_a_long_message_is_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["hwgen", "configs", "--" + "x" * 20000])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert err.startswith("hwgen: No such option")
    assert err.endswith("(see hwgen configs --help)\n")
    assert len(err) < 2100


def test_a_name_that_the_font_lacks_is_drawn_without_a_warning() -> None:
    report = json.loads((REPORTS / "cost-decode.json").read_text())
    report["results"][0]["gemm"] = "\u65e5\u672c $x"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cost_plots.cost_png(schema.from_json(report)).startswith(b"\x89PNG")


def test_a_cell_of_forty_inputs_is_read_at_once(tmp_path: Path) -> None:
    """Its truth table, which the sense of an arc is looked up in, would take terabytes."""
    names = [f"A{i}" for i in range(40)]
    pins = " ".join(f"pin ({name}) {{ direction : input; capacitance : 1; }}" for name in names)
    arc = 'timing () { related_pin : "A7"; }'
    output = f'pin (Y) {{ direction : output; function : "{" & ".join(names)}"; {arc} }}'
    path = tmp_path / "cells.lib"
    path.write_text(_generic7().rstrip().removesuffix("}") + f"cell (WIDE) {{ area : 1; {pins} {output} }}\n}}\n")
    (arc_read,) = reader.load(path).cells["WIDE"].pins["Y"].arcs
    assert arc_read.sense == "non_unate"

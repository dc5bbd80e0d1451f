"""The script that prints the tables of docs/quantiser.md."""

import importlib.util
from pathlib import Path

import pytest

from sim import accuracy, tensors
from sim.accuracy.hardware import TABLES, distances

SCRIPT = Path(__file__).parents[2] / "examples" / "quantiser.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("quantiser_tables", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_hold_what_is_computed(script, capsys):
    assert script.main(["defaults", "errors", "--rows", "2"]) == 0
    out = capsys.readouterr().out
    assert out.count("### ") == 2
    for name in ("defaults", "errors"):
        table = TABLES[name]
        found = {
            kind: distances({kind: tensors.generate(kind, (2, accuracy.SHAPE[1]), 0)}, table.cases)
            for kind in tensors.KINDS
        }
        lines = script.lines(table, found)
        assert "\n".join(lines) in out
        assert len(lines) == 2 + len(table.cases)
        assert len({line.count("|") for line in lines}) == 1
        first = found["gaussian"][0]
        assert f"| {first.decibels:.3f}, {100 * first.equal:.2f} |" in lines[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rulez"], "'rulez': no such table; there are 'defaults', 'errors', 'tensor-scales', 'reciprocals', 'rules'"),
        (["--rows", "0"], "--rows 0: must be 1 or more"),
    ],
)
def test_bad_input_is_one_line_and_status_2(script, arguments, message, capsys):
    assert script.main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", message + "\n")

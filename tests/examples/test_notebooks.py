"""The notebooks run from top to bottom, and print what they are committed with."""

import contextlib
import io
import json
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot

from sim import tensors
from sim.golden import ArgumentError

EXAMPLES = Path(__file__).parents[2] / "examples"


def _trained() -> bool:
    try:
        return tensors.minilm_file().is_file()
    except ArgumentError:
        return False


@pytest.fixture
def without_a_window(monkeypatch: pytest.MonkeyPatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(EXAMPLES)
    yield
    pyplot.close("all")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_is_committed_with(path: Path, without_a_window: None) -> None:
    names: dict[str, object] = {"__name__": "notebook"}
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    committed, printed = [], []
    for cell in cells:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
        printed.append(said.getvalue())
        committed.append("".join("".join(each["text"]) for each in cell["outputs"] if each["output_type"] == "stream"))
        drawn = any("image/png" in each.get("data", {}) for each in cell["outputs"])
        assert drawn == bool(pyplot.get_fignums())
        pyplot.close("all")
    if path.stem == "numerics" and not _trained():
        # Figures of drawn weights are others.
        assert printed[0].startswith("drawn: ")
        assert [text.count("\n") for text in printed] == [text.count("\n") for text in committed]
        return
    assert printed == committed

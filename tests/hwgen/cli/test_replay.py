import re
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import resolve
from hwgen.errors import ToolError
from sim import engines
from sim.verify import save, stimulus_of


@pytest.fixture
def vectors(tiny: Path, tmp_path: Path) -> Path:
    """A few steps, as `hwgen verify` writes them."""
    save(tmp_path / "v.npz", stimulus_of(resolve(str(tiny)), 1, 0, 6), {})
    return tmp_path / "v.npz"


@pytest.mark.parametrize("command", [("replay",), ("simulate", "--replay")])
def test_vectors_are_run_with_waveforms(run, vectors: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    status, out, err = run(*command, vectors, "--vcd", "w.vcd", "--json")
    assert (status, err) == (0, "")
    assert '"mismatch": null' in out
    assert "step__valid" in (tmp_path / "w.vcd").read_text()


def test_a_core_that_is_stuck_leaves_its_waveforms(run, tiny: Path, tmp_path: Path, monkeypatch) -> None:
    right = engines.AmaranthEngine.run

    def stuck(self: engines.AmaranthEngine, *steps: object, **streams: object) -> None:
        right(self, *steps, **streams)
        raise ToolError("tiny: stuck after 1 steps, in cycle 9")

    monkeypatch.setattr(engines.AmaranthEngine, "run", stuck)
    status, out, err = run("simulate", "--config", tiny, "--m", 1, "--n", 1, "--k", 16, "--vcd", "w.vcd")
    assert (status, out, err) == (1, "", "hwgen: tiny: stuck after 1 steps, in cycle 9\n")
    assert re.search(r"^#\d+$", (tmp_path / "w.vcd").read_text(), re.MULTILINE)


def test_bad_vectors(refused, tmp_path: Path, vectors: Path) -> None:
    np.savez(tmp_path / "objects.npz", about=np.array([None], object))
    assert "array 'about': holds Python objects; must hold numbers" in refused("replay", "objects.npz")
    assert "'absent.npz': No such file" in refused("replay", "absent.npz")
    assert "--replay brings its own stimulus: leave --m out" in refused("simulate", "--replay", vectors, "--m", 3)
    assert "engine 'abacus'" in refused("replay", vectors, "--engine", "abacus", "--vcd", "w.vcd")

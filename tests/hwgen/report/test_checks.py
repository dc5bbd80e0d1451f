import copy
from typing import Any

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.report.checks import check_control, check_core
from hwgen.report.flow import Design, Flow
from hwgen.rtl.tensor_core import TensorCore
from hwgen.synth import libraries, library
from hwgen.synth.netlist import Netlist, link
from hwgen.synth.yosys import RECIPES

pytestmark = pytest.mark.xdist_group("measurement")
CELLS = library.load(libraries.path("generic7"))
CONFIG = TensorCoreConfig("x", "mixfp4", rows=1, columns=1, groups=1, pipeline=("operands", "terms", "total"))


@pytest.fixture(scope="module")
def mapped() -> dict[str, Any]:
    design = Design(CONFIG, TensorCore)
    bodies = Flow(CELLS).synthesise(design.plan([RECIPES["area"]], [0]), "synthesis")
    return design.assembled(bodies, {module: RECIPES["area"] for _, module, _, _ in bodies}, 0, CELLS)


def _tied(mapped: dict[str, Any], port: str, value: str) -> Netlist:
    """The netlist with an input port that nothing inside listens to any more."""
    modules = copy.deepcopy(mapped)
    core = modules["tensor_core"]
    (net,) = core["ports"][port]["bits"]
    for cell in core["cells"].values():
        for bits in cell["connections"].values():
            bits[:] = [value if bit == net else bit for bit in bits]
    return link(modules, "tensor_core", CELLS)


def test_a_sound_netlist_passes(mapped: dict[str, Any]) -> None:
    netlist = link(mapped, "tensor_core", CELLS)
    assert check_control(netlist, CONFIG) > 500
    assert check_core(netlist, CONFIG, 1000) >= 1500


@pytest.mark.parametrize(("port", "value"), [("result__ready", "1"), ("rst", "0"), ("step__valid", "1")])
def test_a_netlist_that_lost_its_control_is_caught(mapped: dict[str, Any], port: str, value: str) -> None:
    with pytest.raises(ToolError, match="under gaps, stalls and resets"):
        check_control(_tied(mapped, port, value), CONFIG)


def test_a_netlist_that_says_it_takes_no_steps_is_caught(mapped: dict[str, Any]) -> None:
    modules = copy.deepcopy(mapped)
    modules["tensor_core"]["ports"]["step__ready"]["bits"] = ["0"]
    with pytest.raises(ToolError, match="takes no steps"):
        check_control(link(modules, "tensor_core", CELLS), CONFIG)

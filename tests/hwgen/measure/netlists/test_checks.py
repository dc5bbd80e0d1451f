import copy
from collections.abc import Callable
from typing import Any

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.checks import check_control, check_core
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore

CELLS = reader.load(libraries.path("generic7"))
CONFIGS = [
    TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, 1, pipeline=("operands", "terms", "total"), numerics=numerics)
    for numerics in ("blackwell", "exact")
]


@pytest.fixture(scope="module", params=CONFIGS, ids=lambda config: config.numerics)
def config(request: pytest.FixtureRequest) -> TensorCoreConfig:
    return request.param


@pytest.fixture(scope="module")
def modules(config: TensorCoreConfig, mapped: Callable[[Design, Flow], dict[str, Any]]) -> dict[str, Any]:
    return mapped(Design(config, TensorCore), Flow(CELLS))


def _tied(modules: dict[str, Any], port: str, value: str) -> Netlist:
    """The netlist with an input port that nothing inside listens to any more."""
    changed = copy.deepcopy(modules)
    core = changed["tensor_core"]
    (net,) = core["ports"][port]["bits"]
    for cell in core["cells"].values():
        for bits in cell["connections"].values():
            bits[:] = [value if bit == net else bit for bit in bits]
    return link(changed, "tensor_core", CELLS)


def test_a_sound_netlist_passes(modules: dict[str, Any], config: TensorCoreConfig) -> None:
    netlist = link(modules, "tensor_core", CELLS)
    assert check_control(netlist, config) > 500
    assert check_core(netlist, config, 1000) >= 1500


@pytest.mark.parametrize(
    ("port", "value"), [("result__ready", "1"), ("rst", "0"), ("step__valid", "1"), ("addend__valid", "1")]
)
def test_a_netlist_that_lost_its_control_is_caught(
    modules: dict[str, Any], config: TensorCoreConfig, port: str, value: str
) -> None:
    with pytest.raises(ToolError, match="under gaps, stalls and resets"):
        check_control(_tied(modules, port, value), config)


def test_a_netlist_that_says_it_takes_no_steps_is_caught(modules: dict[str, Any], config: TensorCoreConfig) -> None:
    changed = copy.deepcopy(modules)
    changed["tensor_core"]["ports"]["step__ready"]["bits"] = ["0"]
    with pytest.raises(ToolError, match="takes no steps"):
        check_control(link(changed, "tensor_core", CELLS), config)


@pytest.mark.parametrize("config", CONFIGS[1:], indirect=True, ids=["exact"])
@pytest.mark.parametrize("register", ["sum", "c_held", "nan_seen"])
def test_an_exact_accumulator_that_lost_a_bit_is_caught(
    register: str, modules: dict[str, Any], config: TensorCoreConfig
) -> None:
    changed = copy.deepcopy(modules)
    # Bit 0 of the register, found by its statement: the net behind has no name where the flip-flop inverts.
    (job,) = (job for job in Design(config, TensorCore).plan([RECIPES["area"]], [0]) if job.module == "accumulate")
    (line,) = (line for line, text in enumerate(job.verilog.splitlines(), 1) if f" {register} <= " in text)
    cells = changed["accumulate"]["cells"].values()
    lost = next(cell for cell in cells if f"-{line}." in cell["attributes"].get("src", ""))
    lost["connections"]["D"] = ["0"]
    with pytest.raises(ToolError, match="differs from the golden model"):
        check_core(link(changed, "tensor_core", CELLS), config)

"""What AccelForge and hwcomponents get, read back; by themselves too where they are installed."""

import math
import sys
import types
from dataclasses import dataclass, replace

import pytest
import yaml

from hwgen.config import NAMED
from hwgen.cost.components import architecture, component_model
from hwgen.cost.grid import Memory
from hwgen.cost.model import CoreCost, EnergyCosts

CORE = CoreCost(NAMED["mixfp4-blackwell"], 4096 * 15.0, 0.9, 4096 * 200.0, 4096 * 6.0, 4096 * 0.5, 0.05)
MEMORY = Memory(8 << 20, 819.2e9)
COSTS = EnergyCosts(2.0, 32.0, 3.0)


@dataclass
class ActionCost:
    energy: float
    latency: float
    throughput: float


class ComponentModel:
    def __init__(self, area, leak_power):
        self.area, self.leak_power = area, leak_power


@pytest.fixture
def stand_in(monkeypatch):
    """The three names of hwcomponents that a component model takes: it needs Python 3.12."""
    module = types.ModuleType("hwcomponents")
    module.ActionCost, module.ComponentModel, module.action = ActionCost, ComponentModel, lambda method: method
    monkeypatch.setitem(sys.modules, "hwcomponents", module)


def built(text):
    names = {}
    exec(compile(text, "exported", "exec"), names)
    return names["mixfp4_blackwell_mac"]


def check_model(model):
    """One of 4096 multiply-accumulates: 15 um2, 200 fJ, 6.5 fJ of clock, and 50 uW shared, all without prefixes."""
    assert (model.area, model.leak_power) == pytest.approx((15e-12, 50e-6 / 4096))
    step, rest = model.compute(), model.idle()
    assert (step.energy, step.latency, step.throughput) == pytest.approx((200e-15, 2e-9, 0.5e9))
    assert rest.energy == pytest.approx(6.5e-15)


@pytest.mark.usefixtures("stand_in")
def test_the_component_is_a_multiply_accumulate():
    model = built(component_model(CORE, 2.0, "generic7"))
    assert model.component_name == "mixfp4_blackwell_mac"
    check_model(model())
    assert model(cycle_seconds=0.9e-9).compute().throughput == pytest.approx(1 / 0.9e-9)
    with pytest.raises(ValueError, match="cycle_seconds = 8e-10: must be at least"):
        model(cycle_seconds=0.8e-9)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("library", ['odd " library', '"""', "a\\b\\", "two\nlines", "brace {x}"])
def test_any_name_of_a_library_gives_python(library):
    check_model(built(component_model(CORE, 2.0, library))())
    text = architecture(CORE, 2.0, library, 4, MEMORY, COSTS, None)
    assert text.count("# ") == 1
    assert loaded(text)["mac"]["area"] == pytest.approx(15e-12)


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_multi_constructor("!", lambda loader, tag, node: {"tag": tag, **loader.construct_mapping(node, deep=True)})


def loaded(text):
    return {node["name"]: node for node in yaml.load(text, _Loader)["arch"]["nodes"]}


def test_the_architecture_is_the_machine():
    found = loaded(architecture(CORE, 2.0, "generic7", 64, MEMORY, COSTS, 5.0))
    assert [node["tag"] for node in found.values()] == ["Memory", "Memory", *["Container"] * 4, "Compute"]
    fanouts = [node["spatial"][0]["fanout"] for node in found.values() if node["tag"] == "Container"]
    assert fanouts == [64, 8, 8, 64]
    assert math.prod(fanouts) == 64 * CORE.config.macs_per_step
    dram, buffer, mac = found["DRAM"], found["Buffer"], found["mac"]
    for port in dram["actions"]:
        assert (port["energy"], port["throughput"]) == pytest.approx((4e-12, 8 * 819.2e9))
    for port in buffer["actions"]:
        assert float(port["energy"]) == pytest.approx(0.25e-12)
        assert port["throughput"] == "inf"
    # Half of the buffer is for what is loaded meanwhile.
    assert buffer["size"] == 8 * (4 << 20)
    assert (buffer["area"], buffer["leak_power"]) == pytest.approx((5e-6, 8 * 3e-3))
    assert mac["actions"] == [{"name": "compute", "energy": pytest.approx(200e-15), "throughput": pytest.approx(0.5e9)}]
    assert (mac["area"], mac["leak_power"]) == pytest.approx((15e-12, 50e-6 / 4096))
    assert loaded(architecture(CORE, 2.0, "x", 1, replace(MEMORY, double_buffered=False), COSTS, None))["Buffer"][
        "size"
    ] == 8 * (8 << 20)


def test_hwcomponents_reads_the_component(tmp_path):
    hwcomponents = pytest.importorskip("hwcomponents", reason="no hwcomponents: pip install hwcomponents (Python 3.12)")
    path = tmp_path / "x.hwcomponents.py"
    path.write_text(component_model(CORE, 2.0, "generic7"))
    models = hwcomponents.get_models(str(path), include_installed=False)
    model = hwcomponents.get_model("mixfp4_blackwell_mac", {"cycle_seconds": 2e-9}, models=models)
    check_model(model)


def test_accelforge_reads_the_architecture(tmp_path):
    accelforge = pytest.importorskip("accelforge", reason="no accelforge: pip install accelforge (Python 3.12)")
    path, workload = tmp_path / "x.accelforge.yaml", tmp_path / "workload.yaml"
    path.write_text(architecture(CORE, 2.0, "generic7", 64, MEMORY, COSTS, 5.0))
    tensors = [
        {"name": "A", "projection": ["m", "k"]},
        {"name": "B", "projection": ["k", "n"]},
        {"name": "D", "projection": ["m", "n"], "output": True},
    ]
    einsum = {"name": "gemm", "tensor_accesses": tensors, "renames": {"weight": "B", "input": "A", "output": "D"}}
    shape = {name: f"0 <= {name} < 512" for name in "mnk"}
    content = {"iteration_space_shape": shape, "bits_per_value": {"All": 4}, "einsums": [einsum]}
    workload.write_text(yaml.safe_dump({"workload": content}))
    spec = accelforge.Spec.from_yaml(str(path), str(workload))
    nodes = {node.name: node for node in spec.calculate_component_costs(einsum_name="gemm").arch.nodes}
    # All multiply-accumulates of 64 cores.
    assert nodes["mac"].total_area == pytest.approx(64 * 4096 * 15e-12)
    assert nodes["mac"].total_leak_power == pytest.approx(64 * 50e-6)
    assert nodes["Buffer"].total_area == pytest.approx(5e-6)

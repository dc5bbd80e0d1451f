"""What the picture of a quantiser is drawn from is what Amaranth converts."""

import re

import pytest

from hwgen.config.quantiser import QUANTISERS, QuantiserConfig
from hwgen.package.quantiser_structure import units
from hwgen.verilog.quantiser import quantiser_design

SHORT = QuantiserConfig("short", "nvfp4", input="bfloat16", pipeline=("quotients",))


@pytest.mark.parametrize("config", [QUANTISERS["mixfp4-gap-quantiser"], SHORT], ids=lambda config: config.name)
def test_modules_ports_and_flip_flops_are_those_of_the_rtl(config: QuantiserConfig) -> None:
    design, found = quantiser_design(config), units(config)
    top = config.identifier
    names = {name: f"{top}_{name}" if name != "quantiser" else top for name in found}
    assert sorted(names.values()) == sorted(design.texts)
    for name, module in names.items():
        text = design.texts[module]
        wires = re.findall(r"wire width (\d+) (?:in|out)put \d+ +(?:signed )?\\(\w+)", text)
        ports = {port: int(bits) for bits, port in wires}
        assert found[name].ports == {port: bits for port, bits in ports.items() if port not in ("clk", "rst")}
        assert found[name].count == design.instances[top].get(module, 1)
        cells = re.findall(r"cell \$s?dffe? .*?\\WIDTH (\d+)", text, re.DOTALL)
        assert sum(found[name].registers.values()) == sum(map(int, cells))
        # A register of the pipeline has an enable of the same name, where its module is not the top.
        if name != "quantiser":
            enables = [port.removeprefix("enable_") for port in ports if port.startswith("enable_")]
            assert list(found[name].registers) == enables
    assert list(found["quantiser"].registers) == [*config.registers, "result"]


def test_registers_are_those_that_lanes_load() -> None:
    found = units(QUANTISERS["mixfp4-quantiser"])
    lane = found["quantiser_lane"]
    assert lane.count == 16
    assert lane.registers["largest"] == lane.ports["x"] == 25
    assert lane.registers["result"] == lane.ports["code"] == 4
    # Codes of 3 bits and errors of both candidates, and the sign.
    assert lane.registers["errors"] == 2 * 3 + lane.ports["error0"] + lane.ports["error1"] + 1

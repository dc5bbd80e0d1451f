"""Design configuration of OpenROAD-flow-scripts, which is not installed: the format alone."""

import re
import subprocess
from dataclasses import replace

from hwgen.config import TensorCoreConfig
from hwgen.layout.floorplan import UTILISATION
from hwgen.package.layout import Layout
from hwgen.package.openroad import design_config
from hwgen.package.platform import platform_of

# Of those that the flow's documentation lists; without the first five there is no run.
VARIABLES = (
    "DESIGN_NAME",
    "DESIGN_NICKNAME",
    "PLATFORM",
    "SDC_FILE",
    "VERILOG_FILES",
    "CORE_UTILIZATION",
    "SYNTH_HIERARCHICAL",
)


def exported(package, tool, tmp_path, *arguments):
    """What a makefile elsewhere sees that includes the file, and later another, as the flow's does."""
    makefile = tmp_path / "Makefile"
    (tmp_path / "platform.mk").write_text("")
    makefile.write_text("include $(DESIGN_CONFIG)\ninclude platform.mk\nall:\n\t@env\n")
    command = [tool("make"), "-s", "-f", makefile, f"DESIGN_CONFIG={package}/tiny/config.mk", *arguments]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in run.stdout.splitlines() if line.split("=")[0] in VARIABLES)


def test_variables(package, tool, tmp_path):
    found = exported(package, tool, tmp_path)
    assert sorted(found) == sorted(VARIABLES)
    text = (package / "tiny" / "config.mk").read_text()
    assert sorted(re.findall(r"^export (\w+) :?= ", text, re.M)) == sorted(VARIABLES)
    (verilog,) = found["VERILOG_FILES"].split()
    with open(tmp_path / verilog) as file:
        assert re.search(rf"^module {found['DESIGN_NAME']}\(clk, rst, ", file.read(), re.M)
    with open(tmp_path / found["SDC_FILE"]) as file:
        # The flow reads the period of synthesis by this pattern.
        (period,) = re.findall(r"^set clk_period ([0-9.]+)$", file.read(), re.M)
    assert float(period) > 0
    assert float(found["CORE_UTILIZATION"]) == 100 * UTILISATION


def test_platform_can_be_chosen(package, tool, tmp_path):
    assert exported(package, tool, tmp_path, "PLATFORM=ihp-sg13g2")["PLATFORM"] == "ihp-sg13g2"


def test_clock_gating_is_asked_for_where_the_configuration_has_it():
    config = TensorCoreConfig("tiny", "nvfp4", "nvfp4", 1, 1, 1)
    plain, gated = (design_config(Layout(replace(config, clock_gating=value))) for value in (False, True))
    assert "CLKGATE" not in plain
    assert gated.startswith(plain)
    assert gated.endswith("\nexport INFER_CLKGATES = 1\n")


def test_the_platform_is_that_of_the_library_of_a_report():
    config = TensorCoreConfig("tiny", "nvfp4", "nvfp4", 1, 1, 1)
    assert "\nexport PLATFORM = asap7\n" in design_config(Layout(config), platform_of("asap7sc7p5t_SIMPLE_RVT"))

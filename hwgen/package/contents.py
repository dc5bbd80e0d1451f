"""All files of a core's package.

::

    NAME.v NAME.json       Verilog and manifest
    NAME.core              FuseSoC
    NAME/rtl.f sim.f       file lists
    NAME/IDENTIFIER_tb.sv  testbench, steps.hex, addends.hex and results.hex its vectors
    NAME/Makefile          runs it; lint.vlt keeps Verilator silent
    NAME/constraint.sdc    timing
    NAME/config.mk         OpenROAD-flow-scripts
    NAME/core.svg datapath.svg
                           pictures of the core and of one element
    NAME/IDENTIFIER_pkg.sv _structs.sv _axis_slice.sv _axis.sv
                           SystemVerilog wrappers, axis.f their file list
    NAME/IDENTIFIER_axis_tb.sv
                           testbench of the AXI4-Stream wrapper, axis_sim.f its file list
"""

from __future__ import annotations

from pathlib import Path

from hwgen import verilog
from hwgen.config import TensorCoreConfig
from hwgen.files import write_all
from hwgen.package import axi_stream, structs
from hwgen.package.constraints import DEFAULT_CLOCK, Clock, constraints
from hwgen.package.diagram import core_svg, datapath_svg
from hwgen.package.fusesoc import core_file
from hwgen.package.layout import (
    ADDENDS,
    AXIS_LIST,
    AXIS_SIM_LIST,
    CONSTRAINTS,
    DATAPATH,
    DIAGRAM,
    MAKEFILE,
    OPENROAD,
    RESULTS,
    RTL_LIST,
    SIM_LIST,
    STEPS,
    WAIVERS,
    Layout,
)
from hwgen.package.lint import waivers
from hwgen.package.manifest import manifest_text
from hwgen.package.openroad import design_config
from hwgen.package.simulators import axis_list, axis_sim_list, makefile, rtl_list, sim_list
from hwgen.package.testbench import testbench
from hwgen.package.vectors import Vectors, vectors
from hwgen.package.wires import named
from hwgen.verilog import Manifest

__all__ = ["texts", "write"]


def _wrappers(manifest: Manifest, layout: Layout, tested: Vectors) -> dict[str, str]:
    """Both wrappers and what goes with them, by name in the folder."""
    packed, axis = structs.described(manifest, layout), axi_stream.described(manifest, layout)
    sources = {
        layout.types: structs.package(manifest, layout, axi_stream.user_types(manifest)),
        layout.structs: structs.module(manifest, layout, packed),
        layout.axis_slice: axi_stream.slice_module(layout),
        layout.axis: axi_stream.module(manifest, layout, axis),
        layout.axis_testbench_top: axi_stream.testbench(manifest, layout, axis, tested),
    }
    lists = {AXIS_LIST: axis_list(layout), AXIS_SIM_LIST: axis_sim_list(layout)}
    return {**{f"{stem}.sv": text for stem, text in sources.items()}, **lists}


def texts(config: TensorCoreConfig, clock: Clock = DEFAULT_CLOCK) -> dict[str, str]:
    """Texts by file name, relative to the directory of the package; the same ones every time.

    Parameters
    ----------
    config
        Tensor core configuration.
    clock
        What its constraints say.

    Raises
    ------
    InputError
        The configuration has a name that cannot be one of a module.
    """
    layout = Layout(config)
    modules = verilog.core(config)
    manifest = verilog.describe(config, modules)
    tested = vectors(config)
    folder = {
        MAKEFILE: makefile(layout),
        OPENROAD: design_config(layout, clock.platform),
        CONSTRAINTS: constraints(manifest, clock),
        DIAGRAM: core_svg(config),
        DATAPATH: datapath_svg(config),
        WAIVERS: waivers(config),
        RESULTS: tested.results,
        RTL_LIST: rtl_list(layout),
        SIM_LIST: sim_list(layout),
        STEPS: tested.steps,
        ADDENDS: tested.addends,
        layout.testbench: testbench(manifest, tested),
        **_wrappers(manifest, layout, tested),
    }
    return {
        layout.verilog: named(verilog.verilog(modules, verilog.title(config))),
        layout.manifest: manifest_text(manifest, layout),
        layout.core_file: core_file(layout),
        **{layout.inside(name): text for name, text in folder.items()},
    }


def write(config: TensorCoreConfig, directory: Path, clock: Clock = DEFAULT_CLOCK) -> list[Path]:
    """Write the package of a core.

    Parameters
    ----------
    config
        Tensor core configuration.
    directory
        Created if it does not exist.
    clock
        What its constraints say.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        A file cannot be written; each file is whole or not there.
    """
    files = {Path(directory) / name: text.encode() for name, text in texts(config, clock).items()}
    write_all(files)
    return list(files)

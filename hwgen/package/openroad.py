"""Design configuration of OpenROAD-flow-scripts."""

from __future__ import annotations

from hwgen import __version__
from hwgen.package.layout import CONSTRAINTS, Layout
from hwgen.package.template import filled

__all__ = ["PLATFORM", "design_config"]

PLATFORM = "sky130hd"
"""The platform that a design is configured for unless it is told another."""


_CLOCK_GATING = """
# Clock gates before registers that share an enable. Flows from before August 2026 take no notice.
export INFER_CLKGATES = 1
"""


def design_config(layout: Layout) -> str:
    """``config.mk`` of a design; its paths are relative to the folder that it lies in.

    Parameters
    ----------
    layout
        Names of the core's files.
    """
    # Here, since placement takes seconds to import.
    from hwgen.layout.floorplan import UTILISATION

    return filled(
        "config.mk",
        name=layout.config.name,
        version=__version__,
        platform=PLATFORM,
        top=layout.config.identifier,
        verilog=layout.verilog,
        constraints=CONSTRAINTS,
        utilisation=f"{100 * UTILISATION:g}",
        clock_gating=_CLOCK_GATING if layout.config.clock_gating else "",
    )

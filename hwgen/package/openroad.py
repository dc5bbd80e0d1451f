"""Design configuration of OpenROAD-flow-scripts."""

from __future__ import annotations

from hwgen import __version__
from hwgen.package.layout import CONSTRAINTS, Layout
from hwgen.package.platform import DEFAULT_PLATFORM, Platform
from hwgen.package.template import filled

__all__ = ["design_config"]


_CLOCK_GATING = """
# Clock gates before registers that share an enable. Flows from before August 2026 take no notice.
export INFER_CLKGATES = 1
"""


def design_config(layout: Layout, platform: Platform = DEFAULT_PLATFORM) -> str:
    """``config.mk`` of a design; its paths are relative to the folder that it lies in.

    Parameters
    ----------
    layout
        Names of the core's files.
    platform
        What the core is configured for.
    """
    # Here, since placement takes seconds to import.
    from hwgen.layout.floorplan import UTILISATION

    return filled(
        "config.mk",
        name=layout.config.name,
        version=__version__,
        platform=platform.name,
        top=layout.config.identifier,
        verilog=layout.verilog,
        constraints=CONSTRAINTS,
        utilisation=f"{100 * UTILISATION:g}",
        clock_gating=_CLOCK_GATING if layout.config.clock_gating else "",
    )

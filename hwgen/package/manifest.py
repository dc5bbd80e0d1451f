"""A manifest's JSON, ``NAME.json``: what `hwgen.verilog.describe` says of the core, and the wrappers."""

from __future__ import annotations

import json
from dataclasses import replace

from hwgen.package import axi_stream, structs
from hwgen.package.layout import Layout
from hwgen.verilog import Manifest, Wrappers

__all__ = ["manifest_text"]


def manifest_text(manifest: Manifest, layout: Layout) -> str:
    """``NAME.json``.

    Parameters
    ----------
    manifest
        What there is to say of the core.
    layout
        Names of its files.
    """
    wrappers = Wrappers(structs.described(manifest, layout), axi_stream.described(manifest, layout))
    return json.dumps(replace(manifest, wrappers=wrappers).as_dict(), indent=2) + "\n"

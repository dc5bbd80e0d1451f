"""Verilog of a tensor core, and the manifest that describes its ports.

::

    TensorCore --convert--> Verilog, module by module --tidy--> NAME.v
    layouts, signature, contract --manifest--> records (ports) --> NAME.json
"""

from hwgen.verilog.contract import title
from hwgen.verilog.convert import core, design, run_passes, verilog
from hwgen.verilog.manifest import describe
from hwgen.verilog.ports import SCHEMA, Dimension, Field, Manifest, Port, Stream, Wrapper, Wrappers

__all__ = [
    "SCHEMA",
    "Dimension",
    "Field",
    "Manifest",
    "Port",
    "Stream",
    "Wrapper",
    "Wrappers",
    "core",
    "describe",
    "design",
    "run_passes",
    "title",
    "verilog",
]

"""What a core is: its configuration, the named ones, and those in files."""

from hwgen.config.core import (
    DEFAULT_PIPELINE,
    ELEMENT_REGISTERS,
    LEADING_ZEROS,
    LOOP_REGISTERS,
    NUMERICS,
    PIPELINE_REGISTERS,
    REGISTERS,
    TensorCoreConfig,
)
from hwgen.config.dots import DOTS
from hwgen.config.named import NAMED, named
from hwgen.config.read import formats_in, from_dict, is_path, resolve, resolve_pair
from hwgen.config.slots import SLOTS

__all__ = [
    "DEFAULT_PIPELINE",
    "DOTS",
    "ELEMENT_REGISTERS",
    "LEADING_ZEROS",
    "LOOP_REGISTERS",
    "NAMED",
    "NUMERICS",
    "PIPELINE_REGISTERS",
    "REGISTERS",
    "SLOTS",
    "TensorCoreConfig",
    "formats_in",
    "from_dict",
    "is_path",
    "named",
    "resolve",
    "resolve_pair",
]

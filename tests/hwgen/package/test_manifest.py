"""The form of the manifest; committed ones are checked in ``cli/test_schemas.py``."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from hwgen.config import TensorCoreConfig, named
from hwgen.package.layout import Layout
from hwgen.package.manifest import manifest_text
from hwgen.verilog import Manifest, describe

EXACT = TensorCoreConfig("exact", "nvfp4", "nvfp4", 1, 1, 1, numerics="exact")
EMPTY = TensorCoreConfig("empty", "nvfp4", "nvfp4", 1, 1, 1, empty_blocks="excluded")


@pytest.mark.parametrize("config", [EXACT, EMPTY, named("mixfp4-multi-small")], ids=lambda config: config.name)
def test_manifests_have_this_form(config: TensorCoreConfig, conforms: Callable[[str, Any], None]) -> None:
    manifest = json.loads(manifest_text(describe(config), Layout(config)))
    conforms("manifest", manifest)
    assert list(manifest) == [field.name for field in fields(Manifest)]

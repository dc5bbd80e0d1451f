"""What Timeloop and Accelergy get, read back."""

import re

import pytest
import yaml

from hwgen.config import NAMED
from hwgen.cost.export import exported
from hwgen.cost.model import CoreCost

ACTIVE_FJ, CLOCK_FJ, CLOCK_TREE_FJ = 4096 * 200.0, 4096 * 6.0, 4096 * 0.5


@pytest.fixture(params=["nvfp4-blackwell", "mixfp4-blackwell"])
def core(request):
    return CoreCost(NAMED[request.param], 4096 * 15.0, 9.0, ACTIVE_FJ, CLOCK_FJ, CLOCK_TREE_FJ, 0.05)


def test_tables_hold_the_share_of_one_mac(core):
    texts = exported(core, 8.0, "cells: 'odd' #1")
    ert, art = (yaml.safe_load(texts[f"{name}.yaml"])[name.upper()] for name in ("ert", "art"))
    (energies,), (areas,) = ert["tables"], art["tables"]
    assert {action["name"]: action["energy"] for action in energies["actions"]} == pytest.approx(
        {"compute": 0.2, "idle": 0.0065, "leak": 0.05 * 8 / 4096}
    )
    assert areas["area"] == pytest.approx(15.0)
    assert energies["name"] == areas["name"]


def test_a_step_of_all_instances_is_one_of_the_core(core):
    texts = exported(core, 8.0, "generic7")
    (table,) = yaml.safe_load(texts["ert.yaml"])["ERT"]["tables"]
    found = re.fullmatch(r"(\w+\.)*(\w+)\[0\.\.(\d+)\]", table["name"])
    assert found is not None
    instances = int(found[3]) + 1
    assert instances == core.config.macs_per_step
    compute = next(action["energy"] for action in table["actions"] if action["name"] == "compute")
    assert compute * instances * 1e3 == pytest.approx(ACTIVE_FJ)


def test_timeloop_reads_versions_and_names(core):
    """As its parser does (Topology::Specs::ParseAccelergyERT): version 0.3 or 0.4, the level before the range."""
    texts = exported(core, 8.0, "generic7")
    for name in ("ert", "art"):
        content = yaml.safe_load(texts[f"{name}.yaml"])[name.upper()]
        assert content["version"] == 0.4
        assert isinstance(content["tables"], list)
        path = content["tables"][0]["name"]
        place = path.rindex("..")
        assert path[: place - 2].split(".")[-1] == "mac"


def test_the_class_has_the_actions_of_the_table(core):
    texts = exported(core, 8.0, "generic7")
    (component,) = yaml.safe_load(texts["lib.yaml"])["classes"]
    (table,) = yaml.safe_load(texts["ert.yaml"])["ERT"]["tables"]
    assert [action["name"] for action in component["actions"]] == [action["name"] for action in table["actions"]]
    assert component["name"] == f"{core.config.identifier}_mac"
    attributes = component["attributes"]
    assert attributes["rows"] * attributes["columns"] * attributes["depth"] == attributes["instances"] == 4096
    assert attributes["global_cycle_seconds"] == pytest.approx(8e-9)

"""``--backend dask``, with a local cluster; where Dask is installed."""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.cli.study import _backend
from hwgen.config import resolve
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.flow import Design, Flow
from hwgen.rtl.lane_array import LaneArray
from sim.counterpart import counterpart

distributed = pytest.importorskip("distributed")


FILE = '[elements.T]\ninteger = 2\n[formats.mine]\nelements = ["T"]\nscale = "UE4M3"\nblock = 4\n'


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_knows_a_users_formats(tmp_path: Path) -> None:
    """A local cluster: its workers are processes of their own, which were never told of the file."""
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    config = resolve(str(path))
    path.unlink()
    flow = Flow(reader.load(libraries.path("generic7")), None)
    design = Design(config, LaneArray)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        dask_set(cluster.scheduler_address),
        _backend("dask"),
    ):
        assert list(flow.each(counterpart, [(config.a,), (config.b,)], "formats")) == [counterpart(config.a)] * 2
        places = list(flow.each(os.getpid, [()], "places"))
        bodies = flow.synthesise(design.plan([RECIPES["speed"]], [0]), "lane array")
    assert places != [os.getpid()]
    alone = replace(flow, workers=1).synthesise(design.plan([RECIPES["speed"]], [0]), "lane array")
    assert bodies == alone


def dask_set(address: str) -> AbstractContextManager[None]:
    """Dask set up for a scheduler, as a user's own configuration does it."""
    found: AbstractContextManager[None] = import_module("dask").config.set({"scheduler-address": address})
    return found

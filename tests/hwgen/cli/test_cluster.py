"""``--backend dask``, with a local cluster; where Dask is installed."""

import os
import signal
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.cli.study import _backend
from hwgen.config import NAMED, resolve
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.formats.table import measure_formats
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.requests import FormatsRequest, Row
from hwgen.rtl.lane_array import LaneArray
from sim import accuracy
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


@pytest.mark.in_full
@pytest.mark.filterwarnings("default")
def test_a_table_of_formats_from_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of one process."""
    monkeypatch.setattr(accuracy, "signal_to_noise", lambda *_, **__: 20.0)
    baseline, other = (
        replace(NAMED[name], rows=1, columns=1, pipeline=("operands",)) for name in ("nvfp4-small", "nvint4-small")
    )
    stimulus = Stimulus(streams=2, steps_per_tile=8, timed=4)
    request = FormatsRequest(
        baseline, (Row("nvint4", other),), stimulus, clock_ns=8.0, physical=Physical("fanout"), runs=1
    )
    flow = Flow(reader.load(libraries.path("generic7")), None)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        dask_set(cluster.scheduler_address),
        _backend("dask"),
    ):
        report = measure_formats(request, flow, [RECIPES["area"]], vectors=200)
    assert [row.row for row in report.results] == ["nvfp4", "nvint4"]
    assert all(row.met for row in report.results)
    assert report == measure_formats(request, replace(flow, workers=1), [RECIPES["area"]], vectors=200)


@pytest.mark.filterwarnings("default")
def test_a_worker_that_is_lost_loses_nothing(tmp_path: Path) -> None:
    """The fourth task takes its worker with it the first time: it runs again, and every task counts once."""
    executed = tmp_path / "executed"
    executed.mkdir()

    def task(number: int) -> int:
        # Within the test, so that it travels by value: a worker cannot import this file.
        import os
        import uuid

        (executed / f"{number}-{uuid.uuid4()}").touch()
        if number == 3 and len(list(executed.glob("3-*"))) == 1:
            os._exit(1)
        return 10**number

    seen: list[tuple[str, int, int]] = []
    library = reader.load(libraries.path("generic7"))
    flow = Flow(library, None, progress=lambda what, done, total: seen.append((what, done, total)))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        dask_set(cluster.scheduler_address),
        _backend("dask"),
    ):
        results = list(flow.each(task, [(number,) for number in range(8)], "tasks"))
    assert results == [10**number for number in range(8)]
    assert len(list(executed.glob("3-*"))) > 1
    assert seen == [("tasks", done, 8) for done in range(9)]


@pytest.mark.filterwarnings("default")
def test_syntheses_survive_the_loss_of_a_worker(tmp_path: Path) -> None:
    """A worker is killed when the first synthesis is there: all come, each once, as from one process."""
    (tmp_path / "mine.toml").write_text(FILE)
    config = resolve(str(tmp_path / "mine.toml"))
    design, cells = Design(config, LaneArray), reader.load(libraries.path("generic7"))
    jobs = design.plan([RECIPES["speed"]], range(3))
    seen: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        dask_set(cluster.scheduler_address),
        _backend("dask"),
    ):
        first = next(iter(cluster.workers.values())).pid

        def lose(what: str, done: int, total: int) -> None:
            seen.append(done)
            if done == 1:
                os.kill(first, signal.SIGKILL)

        bodies = Flow(cells, None, progress=lose).synthesise(jobs, "lane array")
    assert seen == [0, 1, 2, 3]
    assert bodies == Flow(cells, None, workers=1).synthesise(jobs, "lane array")


def dask_set(address: str) -> AbstractContextManager[None]:
    """Dask set up for a scheduler, as a user's own configuration does it."""
    found: AbstractContextManager[None] = import_module("dask").config.set({"scheduler-address": address})
    return found

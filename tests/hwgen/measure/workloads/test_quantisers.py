"""Which quantiser's energy goes with a core."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hwgen.config import NAMED
from hwgen.errors import InputError
from hwgen.measure.workloads import quantisers
from hwgen.measure.workloads.cores import Conditions
from hwgen.measure.workloads.quantisers import QuantiserCosts, find, read
from hwgen.report import schema
from hwgen.report.schema import TOTAL, QuantiserReport
from hwgen.stats import Ratio

REPORT = Path(__file__).parents[4] / "reports" / "quantisers.json"
PAIR = ("nvfp4-blackwell", "mixfp4-blackwell")
FJ = {"nvfp4-quantiser": 400.0, "mixfp4-quantiser": 1000.0, "nvint4-quantiser": 500.0}


def cores(*names: str, library: str = "generic7", clock_ns: float = 1.0, **other: Any) -> SimpleNamespace:
    measured = schema.load(REPORT)
    assert isinstance(measured, QuantiserReport)
    conditions = Conditions.of(measured.conditions.flow.library, clock_ns)
    return SimpleNamespace(
        conditions=replace(conditions, library=library, **other),
        cores={name: SimpleNamespace(config=NAMED[name]) for name in names},
    )


@pytest.fixture
def report(tmp_path: Path) -> Path:
    content = json.loads(REPORT.read_text())
    for figure in content["results"]:
        if figure["metric"] == "energy per number":
            figure["values"] = {name: FJ.get(name, 1.0) for name in figure["values"]}
    path = tmp_path / "quantisers.json"
    path.write_text(json.dumps(content))
    return path


def test_each_core_has_the_quantiser_of_its_first_operand(report: Path) -> None:
    assert read(report, cores(*PAIR)).fj == dict(zip(PAIR, (400.0, 1000.0), strict=True))
    # Only the weights are MixFP4 there, and these are quantised by software.
    assert read(report, cores("mixfp4-weights-small", "nvint4-small")).fj == {
        "mixfp4-weights-small": 400.0,
        "nvint4-small": 500.0,
    }


def test_their_ratio_has_the_interval_of_the_report() -> None:
    report = schema.load(REPORT)
    assert isinstance(report, QuantiserReport)
    (overhead,) = (
        each.overhead
        for each in report.results
        if (each.metric, each.block) == ("energy per number", TOTAL) and "mixfp4-quantiser" in each.values
    )
    assert overhead is not None
    ratio = read(REPORT, cores(*PAIR)).ratio
    assert ratio == Ratio.of(overhead)
    assert read(REPORT, cores(*reversed(PAIR))).ratio == Ratio.of(overhead).inverse
    assert read(REPORT, cores(PAIR[0])).ratio is None
    assert read(REPORT, cores("nvfp4-small", "mixfp4-weights-small")).ratio == Ratio(1, 1, 1)
    # Both were compared with a third one only.
    assert read(REPORT, cores("mixfp4-small", "nvint4-small")).ratio is None


def test_of_a_library_and_of_formats_that_were_measured(report: Path) -> None:
    with pytest.raises(InputError, match="is of generic7 at 1 ns; must be of asap7 at 1 ns, as the cores are"):
        read(report, cores(*PAIR, library="asap7"))
    with pytest.raises(InputError, match="is of generic7 at 1 ns; must be of generic7 at 2 ns"):
        read(report, cores(*PAIR, clock_ns=2.0))
    with pytest.raises(InputError, match="is of generic7 at 1 ns, of another text; must be of generic7 at 1 ns"):
        read(report, cores(*PAIR, digest="0"))
    with pytest.raises(InputError, match="is of generic7 at 1 ns, with other cells left out; must be of generic7"):
        read(report, cores(*PAIR, dont_use=("FA*",)))
    with pytest.raises(InputError, match="has no mxfp4-quantiser, which mxfp4-small needs"):
        read(report, cores("nvfp4-small", "mxfp4-small"))
    with pytest.raises(InputError, match="kind 'overhead'; must be one of 'hwgen quantiser compare'"):
        read(REPORT.with_name("overhead.json"), cores(*PAIR))


def test_another_quantiser_of_that_name_is_not_taken(report: Path) -> None:
    content = json.loads(report.read_text())
    content["conditions"]["quantisers"]["mixfp4-quantiser"]["error_bits"] = 6
    report.write_text(json.dumps(content))
    with pytest.raises(InputError, match="has no mixfp4-quantiser"):
        read(report, cores(*PAIR))


def test_the_nearest_report_is_found(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(cores(*PAIR), report.parent) == read(report, cores(*PAIR))
    assert read(report, cores(*PAIR)).path == report
    assert find(cores(*PAIR), report.parent / "none").path == REPORT
    # One design without a quantiser leaves both without: else the other would pay alone.
    assert find(cores("nvfp4-small", "mxfp4-small"), report.parent) == QuantiserCosts({})
    assert find(cores(*PAIR, library="asap7"), report.parent) == QuantiserCosts({})
    monkeypatch.setattr(quantisers, "shipped", lambda: report.parent / "none")
    assert find(cores(*PAIR), report.parent / "none") == QuantiserCosts({})

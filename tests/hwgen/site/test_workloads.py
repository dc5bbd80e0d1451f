import json
from dataclasses import replace

import pytest

from hwgen.report.schema import CostReport
from hwgen.site import workloads
from hwgen.site.sources import of_kind, read


@pytest.fixture(scope="module")
def pairs(sources):
    return list(of_kind(sources, CostReport))


@pytest.fixture(scope="module")
def grids(pairs):
    return [workloads.grid(*pair) for pair in pairs]


def test_the_grid_goes_through_every_pass_of_the_report(pairs, grids):
    for (source, _), grid in zip(pairs, grids, strict=True):
        raw = json.loads(source.content)
        rate, many = raw["conditions"]["memory"]["dram_bytes_per_second"], raw["conditions"]["cores"]
        assert len(grid.passes) == len(grid.bandwidths) * len(grid.cores)
        # With more cores a step does not fit the buffer, here and in the report.
        assert [*grid.cores] == sorted({int(each["value"]) for each in raw["sensitivity"] if each["varied"] == "cores"})
        for each in raw["sensitivity"]:
            bandwidth, cores = (each["value"], many) if each["varied"] == "DRAM bandwidth" else (rate, each["value"])
            found = grid.passes[grid.bandwidths.index(bandwidth), grid.cores.index(cores)]
            assert found.seconds == pytest.approx(each["seconds"], rel=1e-12)
            assert found.joules == pytest.approx(each["joules"], rel=1e-12)
            assert found.overhead.value == pytest.approx(each["overhead"]["value"], rel=1e-9)


def test_off_the_reports_lines_the_grid_is_what_the_command_says(pairs, grids, tmp_path, monkeypatch):
    """A corner of the grid, by `hwgen cost` with the options of that corner."""
    from click.testing import CliRunner

    from hwgen.cli.cost import command

    source, report = next(pair for pair in pairs if pair[0].name == "cost-decode")
    grid = grids[pairs.index((source, report))]
    bandwidth, cores = grid.bandwidths[-1], grid.cores[1]
    given = report.conditions.workload
    options = ["--model", "llama-3.1-8b", "--phase", given.phase, "--batch", given.batch, "--sequence", given.sequence]
    options += ["--config", "mixfp4-blackwell", "--vs", "nvfp4-blackwell", "--cores", cores]
    options += ["--dram", bandwidth * 1e-9, "--report", source.path.parent / report.conditions.measured.report]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, [*map(str, options), "--json"], catch_exceptions=False)
    totals = {each["metric"]: each["values"] for each in json.loads(done.stdout)["totals"]}
    found = grid.passes[len(grid.bandwidths) - 1, 1]
    assert found.seconds == pytest.approx(
        {name: given.tokens * value for name, value in totals["time per token"].items()}
    )
    assert found.joules == pytest.approx(
        {name: given.tokens * value for name, value in totals["energy per token"].items()}
    )


@pytest.mark.parametrize("more", [["--skip-masked", "512"], ["--half-rate", "attention", "--skip-masked", "1024"]])
def test_a_grid_has_what_the_report_chose_of_attention(reports, tmp_path, more):
    """FP8, and blocks without masked scores: else the model would say something else than the report."""
    from click.testing import CliRunner

    from hwgen.cli.cost import command

    measured = tmp_path / "overhead-multi.json"
    measured.write_bytes((reports / measured.name).read_bytes())
    options = ["--model", "llama-3.1-8b", "--phase", "prefill", "--sequence", "4096", "--report", str(measured)]
    options += ["--config", "mixfp4-multi-small", "--vs", "nvfp4-multi-small", "--out", str(tmp_path), "--name", "cost"]
    assert CliRunner().invoke(command, [*options, *more], catch_exceptions=False).exit_code == 0
    ((source, report),) = of_kind(read(tmp_path), CostReport)
    grid = workloads.grid(source, report)
    assert len(grid.passes) == len(grid.bandwidths) * len(grid.cores) > len(report.sensitivity)


def test_where_the_model_says_something_else_the_report_stands(pairs):
    source, report = pairs[0]
    strange = replace(report.conditions.workload, title="another model")
    for conditions in (
        replace(report.conditions, workload=strange),
        replace(report.conditions, assumptions=None),
        replace(report.conditions, clock_ns=2 * report.conditions.clock_ns),
    ):
        grid = workloads.grid(source, replace(report, conditions=conditions))
        # The report's own machine is on both of its lines.
        assert len(grid.passes) == len(report.sensitivity) - 1
        first, second = grid.base(conditions)
        assert all(one == first or other == second for one, other in grid.passes)
        assert grid.passes[first, second].seconds == next(
            each.seconds for each in report.sensitivity if each.value == grid.bandwidths[first]
        )


def test_sliders_and_plot_have_the_same_passes(pairs, grids):
    given = workloads.payload(pairs, grids)
    drawn = workloads.chart(pairs, grids).data["passes"]
    for (source, report), grid in zip(pairs, grids, strict=True):
        known = given[source.name]
        first, second = known["base"]["bandwidth"], known["base"]["cores"]
        here = known["passes"][f"{first},{second}"]
        totals = {total.metric: total.values for total in report.totals}
        assert here["time"] == pytest.approx([totals["time per token"][name] for name in known["designs"]])
        assert here["energy"] == pytest.approx([totals["energy per token"][name] for name in known["designs"]])
        plotted = [each for each in drawn if each["report"] == source.name]
        assert len(plotted) == 2 * len(grid.passes)
        place = (known["bandwidth"][first], known["cores"][second])
        assert [each["energy"] for each in plotted if (each["bandwidth"], each["cores"]) == place] == pytest.approx(
            [1e3 * energy for energy in here["energy"]]
        )


def test_the_table_is_that_of_the_report(pairs, parsed):
    for (_, report), text in zip(pairs, workloads.tables(pairs), strict=True):
        (rows,) = parsed(text).tables
        assert [row[0] for row in rows[1:]] == [total.metric for total in report.totals]

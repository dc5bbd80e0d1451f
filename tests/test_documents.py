"""README and docs: their commands exist with these options, their Python runs, their links lead somewhere."""

import re
import shlex
from fractions import Fraction
from pathlib import Path

import click
import pytest

from hwgen.cli import cli
from hwgen.config import NAMED, resolve, resolve_pair
from hwgen.formats import BLOCK_FORMATS, Bounds
from hwgen.measure.formats.rows import TWICE, every, rows_of
from hwgen.measure.workloads.cores import find, read
from hwgen.report import schema

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LONGEST = 120
WIDE = ("cli",)
"""Pages that have longer lines: the command line's, which is generated."""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def blocks(page, language):
    return [text for found, text in BLOCK.findall(page.read_text(encoding="utf-8")) if found == language]


def commands():
    for page in PAGES:
        for text in blocks(page, ""):
            for line in text.splitlines():
                if line.startswith("hwgen "):
                    yield pytest.param(shlex.split(line, comments=True)[1:], id=f"{page.stem}: {line[:60]}")


@pytest.mark.parametrize("arguments", list(commands()))
def test_a_command_takes_these_options(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Reads the line, with all its types, and stops before the command runs.
    with click.Context(cli, info_name="hwgen") as context:
        name, command, rest = cli.resolve_command(context, arguments)
        assert command is not None
        command.make_context(name, list(rest), parent=context)


def costs():
    return [each for each in commands() if each.values[0][0] == "cost"]


@pytest.mark.parametrize("arguments", costs())
def test_a_cost_finds_its_report(arguments):
    with click.Context(cli, info_name="hwgen") as context:
        name, command, rest = cli.resolve_command(context, arguments)
        given = command.make_context(name, list(rest), parent=context).params
    cores = [NAMED[core] for core in (given["baseline"], given["name"]) if core]
    measured = read(ROOT / given["report_file"], cores) if given["report_file"] else find(cores, ROOT / "reports")
    assert list(measured.cores) == [core.name for core in cores]


def test_the_page_on_costs_names_the_cores_that_reports_are_on():
    """By the last word of their names, as the sentence has them."""
    named = {"small": ("nvfp4", "mixfp4", "nvint4", "mixfp4-weights"), "blackwell": ("nvfp4", "mixfp4")}
    named["multi-small"] = ("nvfp4", "mixfp4", "nvfp4-e0m3")
    named["multi-blackwell"] = ("nvfp4", "mixfp4")
    reports = [schema.load(path) for path in sorted((ROOT / "reports").glob("overhead*.json"))]
    designs = {design.name for report in reports for design in report.designs}
    assert designs == {f"{form}-{size}" for size, forms in named.items() for form in forms}
    page = " ".join((ROOT / "docs" / "cost.md").read_text(encoding="utf-8").split())
    assert (
        "They are on `nvfp4`, `mixfp4`, `nvint4` and `mixfp4-weights` in `small`, on `nvfp4-blackwell` and"
        " `mixfp4-blackwell`, on `nvfp4`, `mixfp4` and `nvfp4-e0m3` in `multi-small`, and on `nvfp4` and `mixfp4` in"
        " `multi-blackwell`."
    ) in page


def test_a_page_shows_every_command():
    with click.Context(cli) as context:
        names = set(cli.list_commands(context)) - {"synth"}  # another name of `compare`, for the Makefile
    text = "\n".join(blocks(ROOT / "docs" / "how-to" / "commands.md", ""))
    assert names <= set(re.findall(r"^hwgen (\w+)", text, re.M))


def test_a_page_names_every_configuration():
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in text.splitlines() if line.startswith("| "))
    assert set(NAMED) == set(re.findall(r"`([\w-]+-(?:small|blackwell))`", table))
    # Those with more blocks in a step are examples of a rule.
    for name in re.findall(r"`(\w+-[2-8]x\d+-small)`", text):
        assert resolve(name).name == name
    assert [core.name for core in resolve_pair("2x16-small")] == ["nvfp4-2x16-small", "mixfp4-2x16-small"]


def test_the_index_leads_to_every_page():
    linked = set(re.findall(r"\]\(([\w./-]+)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert {page for page in pages if not page.startswith("decisions/")} <= linked


def test_the_readmes_python_runs():
    (text,) = blocks(ROOT / "README.md", "python")
    found: dict[str, object] = {}
    exec(compile(text, "README.md", "exec"), found)
    assert found["d"].shape == (8, 4)


def test_the_datapath_page_states_what_follows_from_the_formats():
    text = (ROOT / "docs" / "datapath.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]{2,}) x ([\w-]{2,}) \| (.*) \|$", text, re.M)
    assert {(a, b) for a, b, _ in rows} > {(name, name) for name in ("NVFP4", "MixFP4", "NVINT4")}
    for a, b, cells in rows:
        bounds = Bounds(BLOCK_FORMATS[a.lower()], BLOCK_FORMATS[b.lower()])
        assert cells.split(" | ") == [
            f"{bounds.a.largest}, {bounds.b.largest}",
            f"{bounds.sum_width}",
            f"{bounds.term_width}",
            f"{bounds.lowest_exponent} to {bounds.highest_exponent}",
            f"{bounds.least_fraction_bits} to {bounds.most_fraction_bits()}",
        ]


def test_every_row_of_the_table_of_formats_has_a_paragraph():
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    begun = {name for line in text.splitlines() for name in re.findall(r"\*\*`([^`]+)`\*\*", line)}
    assert begun == {*every()}


def test_the_page_on_formats_says_what_a_core_for_if4_leaves():
    """Of each operand, and of the sum of the row, where both are IF4."""
    core = resolve("if4-small")
    shares = [Fraction(each.factors[0], 2**each.factor_bits) for each in (core.a, core.b)]
    page = " ".join((ROOT / "docs" / "formats.md").read_text(encoding="utf-8").split())
    assert f"A core for IF4 takes {shares[0]} of each number." in page
    assert f"it leaves {shares[0] * shares[1]} of the true sum" in page


def test_the_page_on_formats_says_which_rows_have_one_count_of_products():
    text = " ".join((ROOT / "docs" / "formats.md").read_text(encoding="utf-8").split())
    both = {"nvfp4", "mxfp4", "mxfp4-2x16", "fp4-ue5m3-b16", "fp4-ue5m3-b32"}
    both |= {*TWICE, *(name.removesuffix("-2x16") for name in TWICE)}
    alone = {}
    for row in rows_of():
        if row.config is not None and row.name not in both:
            alone.setdefault(row.config.depth, []).append(row.name)
    said = {
        int(count): re.findall("`([^`]+)`", names) for count, names in re.findall(r"With (\d+) alone: ([^.]+)\.", text)
    }
    assert {count: sorted(names) for count, names in said.items()} == {
        count: sorted(names) for count, names in alone.items()
    }
    # Two blocks of a format with blocks of 16 are a row that can be asked for.
    assert all(row.config and row.config.depth == 32 for row in rows_of(f"{name}-2x16" for name in alone[16]))


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in WIDE], ids=lambda page: page.stem)
def test_lines_fit_a_screen(page):
    lines = BLOCK.sub("", page.read_text(encoding="utf-8")).splitlines()
    assert [line for line in lines if len(line) > LONGEST and "](" not in line] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target

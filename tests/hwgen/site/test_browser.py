"""The page in a headless Chromium, without a network: no error, and every control does what it says."""

import base64
import dataclasses
import gzip
import json
import os
import re
import shutil

import pytest

from hwgen.report import schema
from hwgen.site.page import page

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra 'test'")
pytest.importorskip("vl_convert", reason="the extra 'site' is not installed")

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SECOND_OF_WORK = 1.0


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=found, args=options)
        except sync_api.Error as error:
            pytest.skip(f"no Chromium: {error.message.splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture(scope="module")
def place(committed, tmp_path_factory):
    """The page of the committed reports."""
    path = tmp_path_factory.mktemp("site") / "site.html"
    path.write_text(committed, encoding="utf-8")
    return path


# What Vega says of a choice without a row; the page says so in words.
OF_NOTHING = ("WARN Infinite extent", "WARN Log scale domain")


@pytest.fixture
def visit(browser):
    """Open a page; at the end nothing must have gone wrong in it, and nothing may have been asked of a network."""
    opened, said = [], []
    ignored = ["Canvas2D: Multiple readback"]  # these tests read pixels, the page does not

    def heard(message):
        if not message.text.startswith(tuple(ignored)):
            said.append(f"{message.type}: {message.text}")

    def call(path, fragment="", ignore=(), **settings):
        ignored.extend(ignore)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "offline": True, **settings})
        opened.append(context)
        tab = context.new_page()
        tab.on("console", heard)
        tab.on("pageerror", lambda error: said.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        tab.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else said.append(request.url),
        )
        tab.goto(path.as_uri() + fragment)
        tab.wait_for_selector("html[data-ready]", state="attached")
        return tab

    yield call
    for context in opened:
        context.close()
    assert said == []


def drawn(figure):
    """What a plot shows, once it is drawn."""
    figure.scroll_into_view_if_needed()
    figure.locator("svg").wait_for()
    return figure.locator("svg").inner_html()


def settled(tab, figure, before):
    """What a plot shows after a change; waits until it is something else."""
    tab.wait_for_function(
        "([plot, old]) => plot.querySelector('svg')?.innerHTML !== old", arg=[figure.element_handle(), before]
    )
    return figure.locator("svg").inner_html()


def test_it_opens_within_a_second_of_work(visit, place):
    tab = visit(place)
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    tab.reload()
    tab.wait_for_selector("html[data-ready]", state="attached")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    # Time of the processor, so that other work on the machine does not count.
    assert 0 < metrics["TaskDuration"] < SECOND_OF_WORK


def test_every_plot_is_drawn_and_every_list_changes_it(visit, place):
    tab = visit(place, ignore=OF_NOTHING)  # no table has rows of every number of products
    figures = tab.locator("figure[data-chart]").all()
    assert len(figures) >= 6
    for figure in figures:
        shown = drawn(figure)
        assert "mark-symbol" in shown or "mark-rect" in shown
        for chosen in figure.locator("select").all():
            values = chosen.locator("option").evaluate_all("all => all.map((each) => each.value)")
            for value in [*values[1:], values[0]] if len(values) > 1 else []:
                chosen.select_option(value)
                shown = settled(tab, figure, shown)
                assert "NaN" not in shown


def marks(figure):
    """What is said of each point of a plot."""
    return figure.locator(".mark-symbol [aria-label]").evaluate_all("all => all.map((each) => each.ariaLabel)")


def test_formats_have_their_error_beside_their_cost(visit, folder, tmp_path):
    path = tmp_path / "formats.html"
    path.write_bytes(page(folder))
    tab = visit(path)
    figure = tab.locator('figure[data-chart="formats"]')
    shown = drawn(figure)
    assert "NaN" not in shown
    front = figure.locator(".mark-text.role-mark text").all_text_contents()
    assert sorted(front) == ["cheap", "nvfp4, four-over-six", "nvfp4-2x16, four-over-six"]
    assert len(figure.locator(".mark-line.role-mark path").all()) == 2
    for name, value, names in (
        ("products", "32 products", {"nvfp4-2x16", "nvfp4-2x16, four-over-six"}),
        ("products", "16 products", {"nvfp4", "nvfp4, four-over-six", "cheap", "beaten"}),
    ):
        figure.locator(f'[data-param="{name}"]').select_option(value)
        shown = settled(tab, figure, shown)
        assert {re.search(r"name: ([^;]*)", label)[1] for label in marks(figure)} == names
    figure.locator('[data-param="spec"]').select_option("energy per MAC")
    shown = settled(tab, figure, shown)
    (label,) = (label for label in marks(figure) if "name: cheap" in label)
    assert "95" in label
    assert "18" in label
    figure.locator('[data-param="kind"]').select_option("heavy-tailed")
    settled(tab, figure, shown)
    (label,) = (label for label in marks(figure) if "name: cheap" in label)
    assert "17" in label
    section = tab.locator("section#formats")
    assert section.get_by_text("later: not measured: no configuration later-small.").is_visible()
    assert section.get_by_text("late: misses 1 ns: takes 1.04 ns, held by dot products").is_visible()


@pytest.mark.parametrize("width", [1280, 360])
def test_names_in_a_plot_cover_no_other_name_and_no_point(visit, place, width):
    tab = visit(place, viewport={"width": width, "height": 900})
    figure = tab.locator('figure[data-chart="formats"]')
    drawn(figure)
    names = [each for each in figure.locator(".mark-text.role-mark text").all() if each.get_attribute("opacity") != "0"]
    assert len(names) > 3
    points = figure.locator(".mark-symbol.role-mark path").all()
    boxes = [each.bounding_box() for each in (*names, *points)]
    for first, one in enumerate(boxes[: len(names)]):
        for other in boxes[first + 1 :]:
            apart = (
                one["x"] + one["width"] <= other["x"] + 1
                or other["x"] + other["width"] <= one["x"] + 1
                or one["y"] + one["height"] <= other["y"] + 3  # a line of text is higher than its letters
                or other["y"] + other["height"] <= one["y"] + 3
            )
            assert apart, (one, other)


def test_a_plot_without_a_row_says_why_until_it_has_one(visit, folder, tmp_path, formats_report):
    late = tuple(dataclasses.replace(row, met=False) for row in formats_report.results[:-1])
    report = dataclasses.replace(formats_report, results=late)
    (folder / "formats.json").write_text(schema.as_text(report), encoding="utf-8")
    (folder / "formats-met.json").write_text(schema.as_text(formats_report), encoding="utf-8")
    path = tmp_path / "late.html"
    path.write_bytes(page(folder))
    tab = visit(path, ignore=OF_NOTHING)
    figure = tab.locator('figure[data-chart="formats"]')
    figure.scroll_into_view_if_needed()
    said = figure.get_by_text("No row of this choice meets the clock.")
    said.wait_for()
    assert not figure.locator("svg").is_visible()
    figure.locator('[data-param="report"]').select_option("formats-met")
    figure.locator("svg").wait_for()
    assert not said.is_visible()


def test_libraries_stand_side_by_side(visit, folder, tmp_path):
    path = tmp_path / "libraries.html"
    path.write_bytes(page(folder))
    tab = visit(path)
    figure = tab.locator('figure[data-chart="libraries"]')
    shown = drawn(figure)
    assert len(marks(figure)) == 2 * 3
    figure.locator('[data-param="metric"]').select_option("energy per MAC")
    # The figures of both metrics are the same here: nothing moves.
    assert "NaN" not in shown
    assert len(marks(figure)) == 2 * 3
    tab.locator("section#libraries").get_by_text("conditions", exact=True).click()
    dialog = tab.locator("dialog[open]")
    dialog.wait_for()
    dialog.get_by_text("tables", exact=True).click()
    assert dialog.get_by_text("formats-evil.json", exact=True).is_visible()


def test_plots_show_the_figures_of_the_json(visit, place, reports):
    tab = visit(place)
    figure = tab.locator('figure[data-chart="overheads"]')
    drawn(figure)
    labels = figure.locator(".mark-symbol [aria-label]").evaluate_all("all => all.map((each) => each.ariaLabel)")
    raw = json.loads((reports / "overhead-asap7.json").read_text(encoding="utf-8"))
    (core,) = (
        each for each in raw["results"] if (each["scope"], each["block"], each["metric"]) == ("core", "total", "area")
    )
    (label,) = (label for label in labels if "mixfp4-small, asap7sc7p5t, 1 ns" in label)
    assert float(label.split(": ")[1].split(";")[0]) == pytest.approx(100 * core["overhead"]["value"])
    assert len(labels) >= len(list(reports.glob("overhead*.json")))


def test_a_report_is_chosen_by_its_link_and_opens_down_to_its_cells(visit, place):
    tab = visit(place, "#report-overhead-blackwell")
    section = tab.locator('[data-report="overhead-blackwell"]')
    section.wait_for()
    assert tab.locator("[data-report]:visible").count() == 1
    assert tab.locator("#report").input_value() == "overhead-blackwell"
    canvas = section.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    section.locator('canvas[data-painted="0"]').first.wait_for()
    pixels = "new Uint32Array(one.getContext('2d').getImageData(0, 0, one.width, one.height).data.buffer)"
    colours = f"(one) => new Set({pixels}).size"
    assert canvas.evaluate(colours) >= 5
    section.locator('button[data-block="dot products"]').click()
    section.locator('canvas[data-painted="1"]').first.wait_for()
    assert canvas.evaluate(colours) == 3  # the block, the others, and none
    canvas.hover()
    for level in ("element", "lane array", "lanes, recipes and closing of the lane array"):
        summary = section.locator("summary:visible", has_text=re.compile(f"^{level}$")).first
        summary.focus()
        tab.keyboard.press("Enter")
        assert summary.locator("..").evaluate("each => each.open")
    tab.locator('a[href="#report-overhead-sg13g2"]').click()
    tab.locator('[data-report="overhead-sg13g2"]').wait_for()
    assert tab.locator("[data-report]:visible").count() == 1


def test_a_block_of_the_core_opens_down_to_its_cells(visit, place, reports):
    tab = visit(place, "#report-overhead-generic130")
    section = tab.locator('[data-report="overhead-generic130"]')
    section.wait_for()
    for level in ("dot products", "cells of the dot products"):
        section.locator("summary:visible", has_text=re.compile(f"^{level}$")).first.press("Enter")
    table = section.locator("table:visible", has_text="Cells of the dot products")
    raw = json.loads((reports / "overhead-generic130.json").read_text(encoding="utf-8"))
    held = [cells["dot products"] for cells in raw["conditions"]["cells"].values()]
    rows = [row.split("\t") for row in table.locator("tbody").inner_text().split("\n") if row.strip()]
    for place, cells in enumerate(held):
        number = sum(float(row[1 + place].replace(",", "")) for row in rows)
        assert number == pytest.approx(sum(each["number"] for each in cells.values()), rel=1e-3)
    assert re.fullmatch(r"\d+ others", rows[-1][0])
    first = table.locator("tbody tr").first
    name = first.locator("th").inner_text()
    assert sum(cells[name]["area_um2"] for cells in held) == max(
        sum(cells.get(each, {"area_um2": 0})["area_um2"] for cells in held) for each in held[0]
    )


def test_conditions_are_one_key_away_and_json_is_saved_as_it_is(visit, place, reports):
    tab = visit(place)
    row = tab.locator("#headline tbody tr").nth(1)
    button = row.get_by_text("conditions", exact=True)
    button.focus()
    tab.keyboard.press("Enter")
    dialog = tab.locator("dialog[open]")
    dialog.wait_for()
    dialog.get_by_text("flow", exact=True).click()
    assert dialog.get_by_text("sha256", exact=True).is_visible()
    tab.keyboard.press("Escape")
    dialog.wait_for(state="detached" if dialog.count() == 0 else "hidden")
    with tab.expect_download() as download:
        row.get_by_text("JSON", exact=True).click()
    name = download.value.suggested_filename
    assert download.value.path().read_bytes() == (reports / name).read_bytes()


def test_sliders_go_through_the_passes_of_the_model(visit, place):
    tab = visit(place)
    figure = tab.locator('figure[data-chart="workloads"]')
    shown = drawn(figure)
    given = json.loads(gzip.decompress(base64.b64decode(tab.locator("#page-data").text_content())))["workloads"]
    known = given[figure.locator('[data-param="report"]').input_value()]
    bandwidth, cores = (figure.locator(f'[data-slider="{each}"]') for each in ("bandwidth", "cores"))
    assert (int(bandwidth.input_value()), int(cores.input_value())) == (
        known["base"]["bandwidth"],
        known["base"]["cores"],
    )
    for slider in (bandwidth, cores):
        slider.focus()
        tab.keyboard.press("ArrowLeft")
        shown = settled(tab, figure, shown)
        assert slider.get_attribute("aria-valuetext")
    here = known["passes"][f"{bandwidth.input_value()},{cores.input_value()}"]
    assert here["overhead"] in tab.locator("#readout").inner_text()
    assert f"{1e3 * here['energy'][0]:.4g}" in tab.locator("#readout").inner_text()


def test_colours_follow_the_system_and_the_reader(visit, place):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 27)"
    for system, other, expected in (("light", "dark", (light, dark)), ("dark", "light", (dark, light))):
        tab = visit(place, color_scheme=system)
        assert tab.evaluate(ground) == expected[0]
        tab.locator("#theme").select_option(other)
        assert tab.evaluate(ground) == expected[1]
        tab.locator("#theme").select_option("")
        assert tab.evaluate(ground) == expected[0]


def test_a_phone_needs_not_scroll_sideways(visit, place):
    tab = visit(place, viewport={"width": 360, "height": 740})
    for figure in tab.locator("figure[data-chart]").all():
        drawn(figure)
        assert figure.locator("svg").bounding_box()["width"] <= 360
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_names_are_text_wherever_they_stand(visit, folder, tmp_path, evil):
    path = tmp_path / "evil.html"
    path.write_bytes(page(folder))
    tab = visit(path)
    for figure in tab.locator("figure[data-chart]").all():
        shown = drawn(figure)
        assert "<img" not in shown
    assert tab.locator("img").count() == 0
    formats = tab.locator('figure[data-chart="formats"]')
    assert "four-over-six" in drawn(formats)
    mark = tab.locator('figure[data-chart="overheads"] .mark-symbol path').first
    mark.scroll_into_view_if_needed()
    mark.hover()
    tab.locator("#vg-tooltip-element.visible").wait_for()
    assert tab.locator("#vg-tooltip-element img").count() == 0
    section = tab.locator('[data-report="overhead"]')
    tab.locator("#report").select_option("overhead")
    section.locator("canvas[data-painted]").nth(1).wait_for()
    assert evil in section.inner_text()


def test_a_phone_shows_whole_legends(visit, place):
    tab = visit(place, viewport={"width": 390, "height": 740})
    for name in ("blocks", "overheads", "formats"):
        figure = tab.locator(f'figure[data-chart="{name}"]')
        drawn(figure)
        right = figure.locator(".plot").evaluate("each => each.getBoundingClientRect().right")
        words = figure.locator(".role-legend text").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
        assert words
        assert max(words) <= right + 1

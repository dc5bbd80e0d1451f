"""The table of formats as a picture."""

import dataclasses

import matplotlib.image
import numpy as np

from hwgen.report import schema
from hwgen.report.plots.formats import formats_png, points


def test_points_are_of_rows_that_meet_the_clock_by_products_and_rule(formats_report: schema.FormatsReport) -> None:
    assert points(formats_report, "area per MAC", "gaussian") == {
        16: {
            "nvfp4": (30.0, 20.0),
            "nvfp4, four-over-six": (30.0, 21.0),
            "cheap": (28.0, 18.0),
            "beaten": (31.0, 17.0),
        },
        32: {"nvfp4-2x16": (25.0, 20.0), "nvfp4-2x16, four-over-six": (25.0, 21.0)},
    }
    assert points(formats_report, "energy per MAC", "heavy-tailed")[16]["cheap"] == (95.0, 17.0)


def test_the_picture_is_drawn_with_and_without_errors(formats_report: schema.FormatsReport, tmp_path) -> None:
    """The same report gives the same bytes; without errors there are bars alone."""
    content = formats_png(formats_report)
    assert content.startswith(b"\x89PNG")
    assert content == formats_png(formats_report)
    rows = tuple(dataclasses.replace(row, errors=()) for row in formats_report.results)
    bars = formats_png(dataclasses.replace(formats_report, results=rows))
    images = []
    for name, each in (("whole", content), ("bars", bars)):
        path = tmp_path / f"{name}.png"
        path.write_bytes(each)
        images.append(matplotlib.image.imread(path))
    assert images[0].shape[1] > 2 * images[1].shape[1]
    orange = np.array([0xE6, 0x9F, 0x00]) / 255  # of the dot products
    for image in images:
        assert (np.abs(image[..., :3] - orange).max(axis=-1) < 0.01).mean() > 0.02


def test_a_table_of_nothing_but_reasons_is_drawn(formats_report: schema.FormatsReport) -> None:
    empty = dataclasses.replace(formats_report, results=formats_report.results[-1:])
    assert formats_png(empty).startswith(b"\x89PNG")

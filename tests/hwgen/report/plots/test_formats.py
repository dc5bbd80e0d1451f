"""The table of formats as a picture."""

import dataclasses
from pathlib import Path

import matplotlib.image
import numpy as np

from hwgen.report import schema
from hwgen.report.plots.formats import formats_png


def test_the_picture_has_a_bar_of_every_block(formats_report: schema.FormatsReport, tmp_path: Path) -> None:
    """The same report gives the same bytes."""
    content = formats_png(formats_report)
    assert content.startswith(b"\x89PNG")
    assert content == formats_png(formats_report)
    path = tmp_path / "bars.png"
    path.write_bytes(content)
    image = matplotlib.image.imread(path)
    shares = {}
    for name, colour in (("dot products", (0xE6, 0x9F, 0x00)), ("operand decoders", (0x00, 0x72, 0xB2))):
        shares[name] = (np.abs(image[..., :3] - np.array(colour) / 255).max(axis=-1) < 0.01).mean()
    assert shares["operand decoders"] > 0.02
    # As in the report, but for the edges of the bars.
    assert abs(shares["dot products"] / shares["operand decoders"] - 3) < 0.2


def test_a_table_of_nothing_but_reasons_says_so(formats_report: schema.FormatsReport, monkeypatch) -> None:
    monkeypatch.setattr("hwgen.report.plots.formats.png", lambda canvas: canvas)
    (axis,) = formats_png(dataclasses.replace(formats_report, results=formats_report.results[-1:])).axes
    assert [each.get_text() for each in axis.texts] == ["no row was measured"]

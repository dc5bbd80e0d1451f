"""Labels of points that lie close together."""

import matplotlib.text
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hwgen.report.plots.labels import Box, Label, Name, draw, places, shared

FRAME = Box(0, 0, 300, 200)


def test_what_rectangles_share():
    one = Box(0, 0, 10, 4)
    assert shared([one], [Box(8, 1, 20, 9)]) == 2 * 3
    assert shared([one], [Box(10, 0, 12, 4), Box(0, 4, 10, 5), Box(20, 20, 21, 21)]) == 0
    assert shared([one, one], [one, Box(9, 0, 12, 1)]) == 2 * (40 + 1)
    assert shared([], [one]) == shared([one], []) == 0


def test_a_label_alone_is_right_of_its_point_without_a_line():
    label = Label(100, 100, 40, 8)
    (box,) = places([label], [], FRAME)
    assert box.left > 100
    assert (box.right - box.left, box.top - box.bottom) == pytest.approx((40, 8))
    assert label.joint(box) == []


def test_a_label_keeps_off_what_is_taken_and_inside_the_frame():
    label = Label(290, 190, 40, 8)
    taken = [Box(240, 180, 287, 200)]
    (box,) = places([label], taken, FRAME)
    assert shared([box], taken) == 0
    assert shared([box], [FRAME]) == pytest.approx(40 * 8)
    joint = label.joint(box)
    assert shared(joint, taken) == 0


def test_a_crowd_of_labels_covers_nothing():
    drawn = np.random.default_rng(5)
    marks = [(x, y) for x, y in drawn.uniform((130, 80), (170, 110), (12, 2))]
    labels = [Label(x, y, 45, 8) for x, y in marks]
    taken = [Box(x - 3, y - 3, x + 3, y + 3) for x, y in marks]
    found = places(labels, taken, FRAME)
    assert shared(found, taken) == pytest.approx(0)
    assert shared(found, found) == pytest.approx(12 * 45 * 8)  # each with itself alone
    lines = [label.joint(box) for label, box in zip(labels, found, strict=True)]
    assert any(lines), "some are far away"
    for number, line in enumerate(lines):
        assert shared(line, [*found[:number], *found[number + 1 :]]) == pytest.approx(0)


def test_where_there_is_no_room_it_covers_the_least():
    everywhere, left_half = Box(-500, -500, 500, 500), Box(-500, -500, 160, 500)
    (box,) = places([Label(150, 100, 40, 8)], [everywhere, left_half], FRAME)
    assert box.left >= 160


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_names_are_drawn_where_they_were_placed(scale):
    canvas = Figure(figsize=(4, 3), layout="constrained")
    FigureCanvasAgg(canvas)
    axis = canvas.subplots()
    for x in (10, 10.2, 10.4):
        axis.plot(x, 5, "o", markersize=6)
    axis.step([9, 11], [5, 6], where="post")
    axis.set_xscale(scale)
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    draw(axis, [Name(f"a long name {x}", x, 5, "#000000") for x in (10, 10.2, 10.4)], 8)
    canvas.draw_without_rendering()
    renderer = canvas.canvas.get_renderer()
    texts = [each for each in axis.texts if isinstance(each, matplotlib.text.Annotation)]
    assert [each.get_text() for each in texts] == [f"a long name {x}" for x in (10, 10.2, 10.4)]
    # The extent of an annotation with a line has the line in it.
    extents = [matplotlib.text.Text.get_window_extent(each, renderer) for each in texts]
    marks = [axis.transData.transform((x, 5)) for x in (10, 10.2, 10.4)]
    for number, extent in enumerate(extents):
        assert not any(extent.overlaps(other) for other in extents[:number])
        assert not any(extent.contains(*mark) for mark in marks)

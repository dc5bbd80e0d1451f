"""Windows, and what the shifters refuse."""

import pytest
from amaranth.hdl import Fragment, Module, Signal

from hwgen.rtl.arithmetic.shifters import shift_right
from hwgen.rtl.arithmetic.window import Window


@pytest.mark.parametrize("width", range(1, 70))
def test_emptying(width):
    """The distances that so many bits can hold are those up to the width, and shift out the whole word."""
    bits = Window(width, -3).emptying
    assert (1 << bits) > width >= 1 << bits - 1


def test_down_to_keeps_the_highest_place():
    longer = Window(24, -23).down_to(-35)
    assert longer == Window(36, -35)
    assert longer.top == Window(24, -23).top
    with pytest.raises(AssertionError, match="bits would be lost"):
        longer.down_to(-34)


@pytest.mark.parametrize(
    ("width", "into", "bits"),
    [
        (23, Window(36, -35), 6),  # not the width of the word
        (24, Window(35, -34), 3),  # too few stages to reach the bottom
        (24, Window(36, -36), 6),  # another highest place
    ],
)
def test_words_of_another_window_are_refused(width, into, bits):
    m = Module()
    with pytest.raises(AssertionError):
        shift_right(m, Signal(width), Signal(bits), own=Window(24, -23), into=into, name="x")
    Fragment.get(m, None)  # a module that nobody used is a warning

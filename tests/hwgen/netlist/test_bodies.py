"""Bodies of modules that are changed."""

import copy

from hwgen.netlist.bodies import copied_cells, highest_bit

BODY = {
    "cells": {
        "u": {"type": "INV", "connections": {"A": [2], "Y": [7]}},
        "v": {"type": "INV", "connections": {"A": ["0"]}},
    },
    "netnames": {"a": {"bits": [2, "x"]}, "b": {"bits": [5]}},
}


def test_a_copy_is_its_own():
    body = copy.deepcopy(BODY)
    cells = copied_cells(body)
    assert cells == body["cells"]
    cells["u"]["connections"]["A"][0] = 9
    cells["u"]["type"] = "BUF"
    del cells["v"]
    assert body == BODY


def test_bits_above_the_highest_are_free():
    assert highest_bit(BODY) == 7  # only a pin has it
    assert highest_bit({**BODY, "netnames": {"c": {"bits": [12]}}}) == 12
    assert highest_bit({"cells": {}, "netnames": {}}) == 1

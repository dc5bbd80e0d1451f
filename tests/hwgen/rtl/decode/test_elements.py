"""Decoders of the elements of formats other than NVFP4, MixFP4 and NVINT4: every code of every kind."""

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.config.dots import supported
from hwgen.formats import BLOCK_FORMATS
from hwgen.rtl.decode.operand import ElementDecoder
from hwgen.rtl.lanes import lanes
from sim import golden

RAZER = ("razer-activations", "razer-weights")
PAIRS = [("msfp12", "msfp12"), ("if4", "if4"), RAZER, (RAZER[0], RAZER[0]), ("blockdialect", "blockdialect")]
PAIRS += [(form, form) for form in ("mxint8", "mxfp6-e2m3", "mxfp6-e3m2")] + [
    ("mxfp8-e4m3", "mxfp4"),
    ("mxfp8-e4m3",) * 2,
    ("mxfp8-e4m3", "mxfp8-e5m2"),
    ("l-mul",) * 2,
    ("hif4",) * 2,
    ("int8",) * 2,
    ("int8", "int4"),
    ("int8", "ternary"),
    ("fp16", "int4"),
    ("ternary", "fp16"),
]
CASES = [(a, b, dot) for a, b in PAIRS for dot in supported(BLOCK_FORMATS[a], BLOCK_FORMATS[b])]


def digits_of(lane):
    """The number of a lane that has digits, of which none is both one and two, or a negative zero."""
    assert not lane.one & lane.two
    assert not lane.minus & ~(lane.one | lane.two)

    def bit(field, place):
        return field >> place & 1

    digits = [(bit(lane.one, place) + 2 * bit(lane.two, place), bit(lane.minus, place)) for place in range(16)]
    return sum((-digit if negative else digit) << 2 * place for place, (digit, negative) in enumerate(digits))


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize(("a", "b", "dot"), CASES)
def test_every_code(a, b, dot, side, evaluate):
    config = TensorCoreConfig("x", a, b, 1, 1, 1, dot=dot, pipeline=())
    layout, form = lanes(config).layout(side), config.form(side)
    elements = golden.block_format(form.name).elements
    all_nans, all_infinities = ([set(getattr(each, kind)) for each in elements] for kind in ("nans", "infinities"))
    tables = [element.integers for element in elements]
    if dot == "multiplier":
        # By the bits of the element's sub-groups.
        tables = [[h << (tag & 1) + (tag >> 1) for h in tables[0]] for tag in range(4)] if form.shifts else tables
    codes = range(1 << form.code_width)
    stimuli = [{"code": code} | ({"tag": tag} if tag else {}) for tag in range(len(tables)) for code in codes]
    for inputs, outputs in zip(stimuli, evaluate(ElementDecoder(config, side), stimuli), strict=True):
        wanted = tables[inputs.get("tag", 0)][inputs["code"]]
        lane = layout.from_bits(outputs["lane"])
        nans = all_nans[inputs.get("tag", 0) if form.tagged else 0]
        assert outputs.get("nan", 0) == (inputs["code"] in nans)
        if inputs["code"] in nans:
            continue  # whatever the lanes multiply, the result is NaN
        if inputs["code"] in all_infinities[0]:
            assert (lane.live, lane.infinite, lane.sign) == (1, 1, inputs["code"] >> form.code_width - 1)
            continue  # nor does anybody see what they make of infinity
        if "value" in layout.members:
            width = layout["value"].width
            assert lane.value % (1 << width) == wanted % (1 << width)
            assert -(1 << width - 1) <= wanted < 1 << width - 1
            continue
        if "fields" in layout.members:
            element = elements[0]
            assert (lane.live, lane.fields) == (wanted != 0, inputs["code"] % 128)
            assert not wanted or lane.sign == (wanted < 0)
            assert element.width == 8
            continue
        if "one" in layout.members:
            assert digits_of(lane) == wanted
            continue
        magnitude = lane.magnitude if "magnitude" in layout.members else lane.significand
        if "shift" in layout.members:
            magnitude <<= lane.shift
        assert (-magnitude if lane.sign else magnitude) == wanted
        if "live" in layout.members:
            assert lane.live == (wanted != 0)
            assert ("infinite" in layout.members) == bool(elements[0].infinities)
            assert "infinite" not in layout.members or not lane.infinite

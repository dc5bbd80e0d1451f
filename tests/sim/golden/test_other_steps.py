"""Steps of formats that the frozen ones have not, against exact rational arithmetic."""

import numpy as np
import pytest
import rational

from sim import golden
from sim.golden import parts

PAIRS = [
    ("msfp12", "msfp12"),
    ("if4", "if4"),
    ("if4", "nvint4"),
    ("razer-activations", "razer-weights"),
    ("blockdialect", "blockdialect"),
    ("mxint8", "mxint8"),
    ("mxfp6-e2m3", "mxfp6-e3m2"),
    ("mxfp6-e3m2", "mxfp4"),
    ("mxfp8-e4m3", "mxfp4"),
    ("mxfp8-e4m3", "mxfp8-e4m3"),
    ("mxfp8-e5m2", "mxfp8-e5m2"),
    ("mxfp8-e4m3", "mxfp8-e5m2"),
    ("mxfp8-e5m2", "mxfp4"),
    ("l-mul", "l-mul"),
    ("hif4", "hif4"),
    ("int8", "int4"),
    ("int8", "ternary"),
    ("int4", "nvint4"),
    ("fp16", "int4"),
    ("ternary", "fp16"),
    ("fp16", "fp16"),
    ("fp16", "int8"),
    ("nvfp4", "fp16"),
    ("fp16", "nvint4"),
]


def draw(forms, rng, groups):
    """A step of 2 x 2 outputs: scales near one another, C near the products; NaN, infinity and zeros now and then."""
    codes, scales = [], []
    for form in map(golden.block_format, forms):
        drawn = rng.integers(0, 1 << form.width, (2, groups, form.block), form.code_type.type)
        drawn[rng.random((2, groups)) < 0.15] = 0
        if rng.random() < 0.9:
            drawn[np.isin(drawn, form.elements[0].nans)] = 5
        for code in form.elements[0].infinities:
            if rng.random() < 0.5:
                drawn[drawn == code] = 4
        if form.name == "fp16":  # of so many codes chance finds none
            infinite = rng.random(drawn.shape) < 0.01
            drawn[infinite] = rng.choice(np.array(form.elements[0].infinities, drawn.dtype), infinite.sum())
        codes.append(drawn.reshape(2, -1))
        middle = 119 if form.scale.width == 8 else rng.integers(0, 1 << form.scale.width)
        near = np.clip(middle + rng.integers(-12, 13, (2, groups)), 0, (1 << form.scale.width) - 1)
        if not form.scale.width:
            near *= 0
        bits = 8 * form.scale_bytes
        above = rng.integers(0, 1 << bits, (2, groups)) >> form.scale.width << form.scale.width
        scales.append((near | above).astype(form.scale_type))
    values = [
        np.nan_to_num(golden.block_format(name).values(x, s), posinf=0, neginf=0)
        for name, s, x in zip(forms, scales, codes, strict=True)
    ]
    c = -(values[0] @ values[1].T) * rng.choice([1, 1, 2.0**-20, 2.0**20, 0], (2, 2))
    c = c.astype(np.float32).view(np.uint32) ^ rng.choice(np.array([0, 1, 0x80000000, 0x0FFFFF], np.uint32), (2, 2))
    return codes[0], scales[0], codes[1], scales[1], c.view(np.float32)


@pytest.mark.parametrize("forms", PAIRS)
def test_steps_are_those_of_rational_arithmetic(forms):
    rng = np.random.default_rng(len(forms[0]))
    formats = {"a": forms[0], "b": forms[1]}
    most = golden.max_fraction_bits(3, *forms)
    infinite = 0
    longest = 33 if forms[0] in ("mxfp8-e4m3", "l-mul", "hif4") else 35
    for count in range(90):
        options = {
            "empty_blocks": golden.EMPTY_BLOCKS[count // 6 % 2],
            "fraction_bits": min((longest, 23, 33)[count // 3 % 3], most),
            "rounding": golden.ROUNDINGS[count % 2],
        }
        inputs = draw(forms, rng, 1 + count % 3)
        expected = rational.outputs(*inputs, forms=forms, **options)
        infinite += (expected & 0x7FFFFFFF == 0x7F800000).sum()
        np.testing.assert_array_equal(golden.step(*inputs, **formats, **options).view(np.uint32), expected)
        stack = golden.step(*(x[None] for x in inputs), **formats, **options)[0]
        np.testing.assert_array_equal(stack.view(np.uint32), expected)
        a, a_scales, b, b_scales, c = (x.tolist() for x in (*inputs[:4], inputs[4].view(np.uint32)))
        assert parts.step(a[0], a_scales[0], b[1], b_scales[1], c[0][1], **formats, **options) == expected[0, 1]
    assert infinite > 20 or not {"mxfp8-e5m2", "fp16"} & {*forms}

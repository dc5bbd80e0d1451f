"""Lanes that slots share: what decoders put into them at half the rate, and the products that come out."""

import itertools

import numpy as np
import pytest

from hwgen.config import SLOTS, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS
from hwgen.formats.unscaled import TYPES
from hwgen.rtl.decode.operand import OperandDecoder, codes_layout, decoded_as, operand_layout
from hwgen.rtl.decode.unscaled import KINDS, SLOT, UnscaledDecoder
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.lanes import lanes
from hwgen.verilog import design

FORMATS = ("nvfp4", "mixfp4", "nvint4", "if4", "fp4-ue5m3-b16", "razer-activations")
"""Those that slots take, but for the one whose steps choose the elements of blocks."""
NOT_SHORT = ("if4", "razer-activations")
"""No element of theirs is a short significand and a shift, as ``quadrants`` takes them."""
CORES = {
    f"{slot}-{dot}-{form}": TensorCoreConfig("x", form, form, 1, 1, 1, dot, slot=slot, pipeline=())
    for slot, dots in SLOTS.items()
    for number, dot in enumerate(dots or ())
    # All formats with the first lanes of a slot; with the others MixFP4, whose products collide.
    for form in (FORMATS if number == 0 else ("mixfp4",))
    if not (slot == "quadrants" and form in NOT_SHORT)
}
cores = pytest.mark.parametrize("config", CORES.values(), ids=CORES)
BESIDE = {form: TensorCoreConfig("x", form, form, 1, 1, 1, slot="separate", pipeline=()) for form in FORMATS}
EVERY = CORES | BESIDE
every = pytest.mark.parametrize("config", EVERY.values(), ids=EVERY)


def decoders(configs):
    """Both sides where they are decoded in two ways: otherwise B's decoder is A's."""
    return [
        pytest.param(config, side, id=f"{name}-{side}")
        for name, config in configs.items()
        for side in "ab"
        if decoded_as(config, side) == side
    ]


def shares(slot, side, significand):
    """What the two lanes of a slot get of a significand, from the documentation of the slots."""
    if slot == "full":
        return [significand, 0]
    if slot == "quadrants":
        return [significand & 0b0011, significand >> 2]
    return [significand & 0b0011, significand & 0b1100] if side == "b" else [significand, significand]


def in_lanes(config, side, significands):
    """Lanes with the significands of a row, as the decoders make them."""
    layout, found = lanes(config).layout(side), 0
    name = "significand" if config.slot == "quadrants" else "magnitude"
    for place, own in enumerate(own for significand in significands for own in shares(config.slot, side, significand)):
        found |= layout.const({name: own}).as_value().value << layout.size * place
    return found


def fields(lane):
    """Fields of a lane, however wide they are."""
    return {name: int(lane[name]) for name in lane.shape().members}


def test_formats_that_slots_take():
    def takes(slot, form):
        try:
            TensorCoreConfig("x", form, form, 1, 1, 1, SLOTS[slot][0], slot=slot, pipeline=())
        except InputError:
            return False
        return True

    taken = {(slot, form) for slot, dots in SLOTS.items() if dots for form in BLOCK_FORMATS if takes(slot, form)}
    uniform = {(slot, "nvfp4-e0m3") for slot, dots in SLOTS.items() if dots}
    assert taken - uniform == {(config.slot, config.a.name) for config in CORES.values()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        *("split-merged-nvint4", "split-merged-timed-mixfp4", "full-merged-nvfp4", "full-merged-timed-mixfp4"),
        "quadrants-significand-mixfp4",
    ],
)
def test_every_pair_of_significands(name, evaluate):
    """In two slots each, with one format each: the proof below has all of them. The sum of FP4 is zero."""
    config = CORES[name]
    pairs = np.array(list(itertools.product(range(16), repeat=2)))
    cases = [np.roll(pairs, place, axis=0)[start : start + 8] for place in (0, 3) for start in range(0, 256, 8)]
    stimuli = [
        {side: in_lanes(config, side, case[:, row].tolist()) for row, side in enumerate("ab")} | {"half": 1}
        for case in cases
    ]
    for case, outputs in zip(cases, evaluate(DotProduct(config), stimuli), strict=True):
        assert outputs["products"] == sum(int(a * b) << 8 * place for place, (a, b) in enumerate(case))
        assert outputs["sum"] == 0
    for outputs in evaluate(DotProduct(config), [stimulus | {"half": 0} for stimulus in stimuli]):
        assert outputs["products"] == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("config", "side"), decoders(CORES))
def test_decoders_put_significands_into_lanes(config, side, evaluate):
    """Bytes of every type, all places, whatever the scale; what they decode to is tested elsewhere."""
    rng = np.random.default_rng(0)
    rows = [(code, rng.integers(0, 256, 8, np.uint8)) for code in TYPES for _ in range(40)]
    width = config.form(side).scale_width
    stimuli = [
        {
            "codes": int.from_bytes(row.tobytes(), "little"),
            "scales": int(rng.integers(1 << width)),
            "half": 1,
            "element_type": code,
        }
        for code, row in rows
    ]
    kinds = {code: 1 << index for index, code in enumerate(TYPES)}
    flat = [{"code": int(each), "kind": kinds[code]} for code, row in rows for each in row]
    elements = iter(evaluate(UnscaledDecoder(config), flat))
    layout = operand_layout(config, side)
    for outputs in evaluate(OperandDecoder(config, decoded_as(config, side)), stimuli):
        operand, own = layout.from_bits(outputs["operand"]), [next(elements) for _ in range(8)]
        wanted = layout["lanes"].shape.elem_shape.from_bits(in_lanes(config, side, [e["significand"] for e in own]))
        for lane, want in zip(operand.lanes[0], wanted, strict=True):
            assert lane.as_bits() == want.as_bits()
        assert [each.as_bits() for each in operand.slots[0]] == [element["slot"] for element in own]
        assert operand.nan == any(element["nan"] for element in own)
        scale = operand.scales[0]
        assert (scale.significand, scale.exponent, scale.zero) == (0, 0, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("config", "side"), decoders(EVERY))
def test_steps_of_fp4_are_decoded_as_without_a_slot(config, side, evaluate):
    """And whatever their types are said to be."""
    plain = TensorCoreConfig("x", config.a, config.b, 1, 1, 1, config.dot, pipeline=())
    rng = np.random.default_rng(1)
    width = config.form(side).scale_width
    stimuli = [
        {"codes": int.from_bytes(rng.bytes(8), "little"), "scales": int(rng.integers(1 << width))} for _ in range(200)
    ]
    codes = [stimulus | {"element_type": number % 8} for number, stimulus in enumerate(stimuli)]
    wanted, layout = operand_layout(plain, side), operand_layout(config, side)
    found = evaluate(OperandDecoder(config, decoded_as(config, side)), codes)
    for outputs, expected in zip(found, evaluate(OperandDecoder(plain, "a"), stimuli), strict=True):
        own, want = layout.from_bits(outputs["operand"]), wanted.from_bits(expected["operand"])
        for lane, other in zip(own.lanes[0], want.lanes[0], strict=True):
            assert fields(lane) == fields(other)
        assert own.scales[0].as_bits() == want.scales[0].as_bits()
        assert own.nan == want.nan
        assert all(
            slot.as_bits() == SLOT.const({"zero": 1, "exponent": slot.exponent}).as_bits() for slot in own.slots[0]
        )
        assert all(not significand for significand in getattr(own, "significands", [[]])[0])
    assert len({slot.exponent for slot in own.slots[0]}) == 1


@every
def test_reserved_types_make_a_row_nan(config, evaluate):
    stimuli = [{"element_type": code, "half": half} for half in (0, 1) for code in range(8)]
    layout = operand_layout(config, "a")
    found = [layout.from_bits(outputs["operand"]).nan for outputs in evaluate(OperandDecoder(config, "a"), stimuli)]
    assert found == [0] * 8 + [int(code not in TYPES) for code in range(8)]
    assert len(KINDS) == len(TYPES)


SCALED = {
    "scaled": TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, 1, slot="full", pipeline=(), half_scale="e8m0"),
    "scaled-split": TensorCoreConfig("x", "nvfp4", "mixfp4", 1, 1, 4, slot="split", pipeline=(), half_scale="e8m0"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("config", "side"), decoders(SCALED | EVERY))
def test_scales_do_not_matter_at_half_rate_proven(config, side, prover):
    """So E1M2 cannot: whether a block has it is said beside its scale and nowhere else.

    Scales of rows come by a way of their own, and are the same for both.
    """
    own = decoded_as(config, side)
    text = "\n".join(design(OperandDecoder, config, "top", own).texts.values())
    codes, scales = codes_layout(config, side).size, config.form(side).scale_width * config.groups
    width = operand_layout(config, own).size
    ports = ".codes(codes), .half(half), .element_type(kind)"
    ports += ", .half_scale(row)" if config.half_scaled else ""
    miter = f"""
module miter(
  input [{codes - 1}:0] codes, input [{scales - 1}:0] one, other, input [2:0] kind, input [7:0] row, output wrong
);
  wire half = 1'b1;
  wire [{width - 1}:0] first, second;
  top a({ports}, .scales(one), .operand(first));
  top b({ports}, .scales(other), .operand(second));
  assign wrong = first != second;
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("1'b1", "1'b0"))


@pytest.mark.sampled(2)
@cores
def test_products_proven(config, prover):
    """For all significands at once: every slot multiplies, and nothing comes out of the sum of FP4."""
    text = "\n".join(design(DotProduct, config, "top").texts.values())
    layout = lanes(config).layout("a")
    highest_first = sorted(layout.members, key=lambda name: layout[name].offset, reverse=True)
    factor = "significand" if config.slot == "quadrants" else "magnitude"

    def lane(bits):
        found = {name: f"{layout[name].width}'d0" for name in highest_first} | {factor: f"{{{bits}}}"}
        return "{" + ", ".join(found[name] for name in highest_first) + "}"

    blocks = {"a": [], "b": []}
    for side, index in itertools.product("ab", range(8)):
        word = f"{side}[{4 * index + 3}:{4 * index}]"
        pair = [word, "4'd0"]
        if config.slot == "quadrants":
            extra = layout[factor].width - 2
            low, high = f"{side}[{4 * index + 1}:{4 * index}]", f"{side}[{4 * index + 3}:{4 * index + 2}]"
            pair = [f"{extra}'d0, {part}" if extra else part for part in (low, high)]
        elif config.slot == "split":
            pair = [f"({word} & 4'd3)", f"({word} & 4'd12)"] if side == "b" else [word, word]
        blocks[side] += map(lane, pair)
    wrong = " | ".join(
        f"products[{8 * index + 7}:{8 * index}] != a[{4 * index + 3}:{4 * index}] * b[{4 * index + 3}:{4 * index}]"
        for index in range(8)
    )
    width = lanes(config).sum_width
    lanes_of = {side: "{" + ", ".join(reversed(block)) + "}" for side, block in blocks.items()}
    miter = f"""
module miter(input [31:0] a, b, output wrong);
  wire [63:0] products;
  wire [{width - 1}:0] sum;
  top dot(.a({lanes_of["a"]}), .b({lanes_of["b"]}), .half(1'b1), .products(products), .sum(sum));
  assign wrong = sum != 0 | {wrong};
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("* b[7:4]", "* b[7:4] + (a[7:4] == 7 & b[7:4] == 5)"))

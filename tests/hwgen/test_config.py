"""Configurations: what is accepted, what is refused, and in which words."""

import dataclasses
import json
import re

import pytest

from hwgen.config import DOTS, NAMED, PIPELINE_REGISTERS, REGISTERS, TensorCoreConfig, named, resolve, resolve_pair
from hwgen.config.dots import CARRY_SAVE
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS, UE4M3, BlockFormat, ElementFormat
from hwgen.rtl.lanes import LANES, Lanes
from sim import golden

GOOD = {"name": "core", "a": "mixfp4", "b": "mixfp4", "rows": 4, "columns": 2, "groups": 3}


def refused(*words, **fields):
    """The message for GOOD with other fields; it names ``words`` on one line."""
    with pytest.raises(InputError) as caught:
        TensorCoreConfig(**{**GOOD, **fields})
    check(str(caught.value), words)


def check(message, words):
    assert "\n" not in message
    for word in words:
        assert word in message, message


def test_defaults():
    config = TensorCoreConfig(**GOOD)
    assert config.dot == "merged"
    assert (config.fraction_bits, config.rounding) == (35, "toward_zero")
    assert config.pipeline == ("decoded", "sums")


def test_derived_figures():
    config = TensorCoreConfig("a-b_c", "nvfp4", "nvfp4", 4, 2, 3)
    assert config.identifier == "a_b_c"
    assert (config.depth, config.macs_per_step) == (48, 4 * 2 * 48)
    assert config.formats == (config.form("a"), config.form("b")) == (BLOCK_FORMATS["nvfp4"],) * 2


@pytest.mark.parametrize(
    ("pipeline", "latency", "interleave"),
    [
        ((), 1, 1),
        (("operands",), 2, 1),
        (("operands", "terms"), 3, 1),
        (("operands", "sums", "terms"), 4, 1),
        (("aligned",), 2, 2),
        (("total",), 2, 2),
        (("normal",), 2, 2),
        (("terms", "total", "normal"), 4, 3),
        (("decoded", "tree", "factors", "terms", "addends"), 6, 2),
        (PIPELINE_REGISTERS, 12, 6),
    ],
)
def test_latency_and_interleave(pipeline, latency, interleave):
    config = TensorCoreConfig(**GOOD, pipeline=pipeline)
    assert (config.latency, config.interleave) == (latency, interleave)


@pytest.mark.parametrize(
    ("changes", "early"),
    [
        ({}, True),
        ({"slot": "none"}, False),
        ({"empty_blocks": "excluded"}, False),
        ({"pipeline": ("factors", "terms", "compared")}, False),
        ({"pipeline": ("compared",)}, False),
        ({"pipeline": ("factors", "aligned")}, False),
    ],
)
def test_the_largest_exponent_is_early_where_c_meets_it_right_behind_the_factors(changes, early):
    config = dataclasses.replace(named("nvfp4-multi-small"), **changes)
    assert config.early_exponents == early


@pytest.mark.parametrize("pipeline", [(), ("operands", "terms"), REGISTERS["exact"]])
def test_exact_cores_have_an_accumulator_besides_and_no_interleaving(pipeline):
    config = TensorCoreConfig(**GOOD, pipeline=pipeline, numerics="exact")
    assert (config.latency, config.interleave) == (len(pipeline) + 2, 1)


def test_largest_steps():
    assert TensorCoreConfig(**GOOD).largest_steps is None
    assert TensorCoreConfig(**GOOD, numerics="exact").largest_steps == 1366  # of 48
    assert TensorCoreConfig(**GOOD, numerics="exact", largest_depth=4800).largest_steps == 100


@pytest.mark.parametrize(
    ("numerics", "fields"),
    [
        ("exact", {"fraction_bits": 39}),
        ("exact", {"rounding": "nearest_even"}),
        ("blackwell", {"largest_depth": 4096}),
    ],
)
def test_fields_without_a_meaning_are_refused(numerics, fields):
    (field,) = fields
    refused(f"{field} = ", f"numerics = '{numerics}'", "leave it out", numerics=numerics, **fields)


def test_only_fields_with_a_meaning_are_told():
    assert not {"numerics", "largest_depth"} & set(TensorCoreConfig(**GOOD).as_dict())
    told = TensorCoreConfig(**GOOD, numerics="exact").as_dict()
    assert (told["numerics"], told["largest_depth"]) == ("exact", 65536)
    assert not {"fraction_bits", "rounding"} & set(told)
    assert "clock_gating" not in told
    assert TensorCoreConfig(**GOOD, clock_gating=True).as_dict()["clock_gating"] is True


def test_pipeline_has_one_order():
    configs = {TensorCoreConfig(**GOOD, pipeline=p) for p in (("terms", "operands"), ("operands", "terms"))}
    assert len(configs) == 1
    assert TensorCoreConfig(**GOOD, pipeline=["terms"]).pipeline == ("terms",)
    before = ("operands", "decoded", "tree", "sums", "factors", "terms")
    order = (*before, "compared", "aligned", "addends", "total", "normal")
    assert TensorCoreConfig(**GOOD, pipeline=order[::-1]).pipeline == order


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TensorCoreConfig(**GOOD).rows = 3


@pytest.mark.parametrize("name", ["", "1a", "-a", "a b", "a/b", "a.b", "é", "a\n", "a" * 65, None, 5])
def test_bad_names(name):
    refused("name = ", "letter", name=name)


@pytest.mark.parametrize("name", ["reg", "module", "endmodule", "logic", "always-ff"])
def test_reserved_words_of_verilog_are_no_names(name):
    refused(f"name = '{name}'", "reserved word of Verilog", name=name)


@pytest.mark.parametrize("name", ["clk", "rst", "step--valid", "result__payload"])
def test_a_core_is_not_called_as_one_of_its_ports(name):
    refused(f"name = '{name}'", "the name of a port", name=name)


@pytest.mark.parametrize("name", ["a", "A-1_b", "a" * 64, "Reg", "logics", "b"])
def test_good_names(name):
    assert TensorCoreConfig(**{**GOOD, "name": name}).name == name


@pytest.mark.parametrize(
    ("field", "choices"),
    [
        ("a", ("nvfp4", "mixfp4", "nvint4")),
        ("b", ("nvfp4", "mixfp4", "nvint4")),
        (
            "dot",
            (
                "merged",
                "merged-timed",
                "merged-binary",
                "signed",
                "significand",
                "binary",
                "multiplier",
                "e2m2",
            ),
        ),
        ("rounding", ("toward_zero", "nearest_even")),
        ("numerics", ("blackwell", "exact")),
    ],
)
@pytest.mark.parametrize("value", ["", "NVFP4", "nearest", None, 1, ["folded"]])
def test_bad_choices(field, choices, value):
    refused(f"{field} = {value!r}", *choices, **{field: value})


@pytest.mark.parametrize(
    ("field", "low", "high"), [("rows", 1, 64), ("columns", 1, 64), ("groups", 1, 8), ("fraction_bits", 23, 39)]
)
def test_ranges(field, low, high):
    for value in (low, high):
        assert getattr(TensorCoreConfig(**{**GOOD, field: value}), field) == value
    for value in (low - 1, high + 1, -low, True, float(low), str(low), None):
        refused(f"{field} = {value!r}", str(low), str(high), **{field: value})


@pytest.mark.parametrize("pipeline", ["terms", None, 3, {"terms": 1}])
def test_pipeline_is_a_list(pipeline):
    refused("pipeline = ", "list", "operands", "terms", pipeline=pipeline)


def test_registers_without_a_meaning_are_refused():
    refused("pipeline = ['sums', 'addends']", "'addends'", "exact", pipeline=("addends", "sums"), numerics="exact")


@pytest.mark.parametrize("register", ["result", "", None, ["terms"]])
def test_unknown_pipeline_register(register):
    refused("pipeline = ", repr(register), *PIPELINE_REGISTERS, pipeline=["terms", register])


def test_range_of_the_largest_depth():
    for value in (4096, 1 << 24):
        assert TensorCoreConfig(**GOOD, numerics="exact", largest_depth=value).largest_depth == value
    for value in (4095, (1 << 24) + 1, -4096, True, 65536.0, "65536", None):
        refused(f"largest_depth = {value!r}", "4096", "16777216", numerics="exact", largest_depth=value)


def test_formats_set_the_range_of_the_fraction_bits():
    for a, b, low, high in (
        ("nvfp4", "nvfp4", 23, 39),
        ("nvint4", "mixfp4", 23, 39),
        ("nvint4", "nvint4", 23, 40),
        ("fp4-ue5m3-b16", "fp4-ue5m3-b16", 23, 39),
        ("fp4-ue5m3-b32", "fp4-ue5m3-b32", 23, 38),
        ("mxfp4-2x16", "mxfp4-2x16", 23, 39),
        ("msfp12", "msfp12", 23, 42),
        ("if4", "if4", 23, 39),
        ("razer-activations", "razer-weights", 23, 38),
        ("mxint8", "mxint8", 23, 42),
        ("mxfp6-e2m3", "mxfp6-e2m3", 23, 39),
        ("mxfp6-e3m2", "mxfp6-e3m2", 23, 35),
        ("mxfp8-e4m3", "mxfp4", 23, 33),
        ("hif4", "hif4", 23, 34),
        ("int8", "int8", 23, 43),
        ("int4", "int4", 23, 42),
    ):
        for value in (low, high):
            fields = {"a": a, "b": b, "fraction_bits": value, "dot": "multiplier", "groups": 8}
            assert TensorCoreConfig(**{**GOOD, **fields}).fraction_bits == value
        for value in (low - 1, high + 1):
            refused(f"fraction_bits = {value}", str(low), str(high), **{**fields, "fraction_bits": value})
        assert golden.max_fraction_bits(8, a, b) >= high


def test_e2m2_needs_tagged_blocks():
    refused("dot = 'e2m2'", "a = 'nvfp4'", "merged", a="nvfp4", b="nvfp4", dot="e2m2")
    refused("dot = 'e2m2'", "b = 'nvint4'", "merged", b="nvint4", dot="e2m2")
    assert TensorCoreConfig(**GOOD, dot="e2m2").dot == "e2m2"


LONG = dataclasses.replace(BLOCK_FORMATS["nvfp4"], name="long", size=32)


def biased(bias, **scale):
    scale = dataclasses.replace(UE4M3, bias=bias, **scale)
    return dataclasses.replace(BLOCK_FORMATS["nvfp4"], name="biased", scale=scale)


def test_formats_that_no_datapath_computes_are_refused():
    fine = {"a": "fp4-ue5m3-b16", "b": "fp4-ue5m3-b16"}
    refused("a = 'fp4-ue5m3-b16', b =", "than the golden model holds", **fine, numerics="exact")
    refused("a = 'long', b = 'nvfp4'", "blocks of 32 and 16", a=LONG, b="nvfp4")
    refused("a = 'mxfp4', b = 'mxfp4-2x16'", "in 1 and 2 sums", a="mxfp4", b="mxfp4-2x16")
    refused("a = 'mxfp4', b = 'mxfp4'", "than the golden model holds", a="mxfp4", b="mxfp4", numerics="exact")
    assert TensorCoreConfig(**{**GOOD, "a": LONG, "b": LONG}).depth == 96
    for bias in (60, -50):
        form = biased(bias)
        assert TensorCoreConfig(**{**GOOD, "a": form, "b": form}).wide
        refused("leading_zeros = 'anticipated'", "'counted'", a=form, b=form, leading_zeros="anticipated")
        refused("exponents of terms", "another bias", a=form, b=form, numerics="exact")
    assert TensorCoreConfig(**{**GOOD, "a": biased(40), "b": biased(40), "numerics": "exact"}).exact
    low = biased(18)
    refused("fraction_bits = 22", "must be a whole number from 23", "a = 'biased'", a=low, b=low, fraction_bits=22)
    ones = BlockFormat("ones", (ElementFormat("T", (0, 1, 0, -1), ""),), UE4M3, size=4, full_scale=1.0, source="")
    single = dataclasses.replace(ones, elements=(ElementFormat("T", (*[0] * 127, 1, *[0] * 128), ""),), size=1)
    refused("a = 'ones', b = 'ones'", "terms of 8 bits", a=single, b=single, dot="multiplier")
    assert TensorCoreConfig(**{**GOOD, "a": ones, "b": ones}).depth == 12


def test_an_accumulator_of_two_words_adds_sums_of_blocks_without_scales():
    fields = {"a": "int8", "b": "int4", "dot": "booth", "numerics": "exact", "accumulator": "carry_save"}
    config = TensorCoreConfig(**{**GOOD, **fields, "pipeline": ("decoded", "tree", "total")})
    assert config.carry_save
    assert config.adds_sums
    assert config.latency == 6
    assert config.as_dict()["accumulator"] == "carry_save"
    assert not config.takes("shifted")
    one = dataclasses.replace(config, accumulator="carry_propagate")
    assert one.latency == 5
    assert "accumulator" not in one.as_dict()
    assert one.takes("shifted")
    for changed, words in (
        ({"accumulator": "two"}, "accumulator = 'two': must be one of carry_propagate, carry_save"),
        ({"numerics": "blackwell"}, "accumulator = 'carry_save': has no meaning with numerics = 'blackwell'"),
        ({"a": "nvfp4", "b": "nvfp4", "dot": "merged"}, "have scales, which multiply one number; use formats without"),
        ({"dot": "shifted"}, "lanes dot = 'shifted' give one number; use booth"),
        ({"pipeline": ("sums",)}, "'sums' has no meaning with accumulator = 'carry_save'"),
        ({"pipeline": ("aligned",)}, "'aligned' has no meaning with accumulator = 'carry_save'"),
        (
            {"pipeline": ("factors",)},
            "'factors' has no meaning with accumulator = 'carry_save' for a = 'int8', b = 'int4', which have no scales",
        ),
        (
            {"pipeline": ("factors",), "accumulator": "carry_propagate"},
            "'factors' has no meaning with accumulator = 'carry_propagate'",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            TensorCoreConfig(**{**GOOD, **fields, **changed})


def test_the_name_of_another_format_is_refused():
    other = dataclasses.replace(BLOCK_FORMATS["nvint4"], name="nvfp4")
    refused("a = 'nvfp4'", "another format of the catalogue", a=other)


def test_few_blocks_allow_more_fraction_bits_up_to_35():
    long = {"a": "mxfp8-e4m3", "b": "mxfp4", "dot": "shifted"}
    assert TensorCoreConfig(**{**GOOD, **long, "groups": 1}).fraction_bits == 35
    for groups, bits, most in ((1, 36, 35), (2, 36, 35), (4, 35, 34), (8, 34, 33)):
        refused(f"fraction_bits = {bits}", "from 23", f"to {most}", **long, groups=groups, fraction_bits=bits)


def test_products_that_are_cut_have_lanes_of_their_own():
    form = BLOCK_FORMATS["mxfp8-e4m3"]
    other = dataclasses.replace(form, name="other", window=24)
    for fields, words in (
        ({"a": form, "b": form, "dot": "shifted"}, "products of mxfp8-e4m3 x mxfp8-e4m3 are cut to a window"),
        ({"a": form, "b": "mxfp4", "dot": "windowed"}, "b = 'mxfp4' has no window"),
        ({"a": form, "b": other, "dot": "windowed"}, "have windows of 25 and 24 bits"),
    ):
        refused(words, **{**fields, "groups": 1})


def test_codes_that_are_added_have_lanes_of_their_own():
    form, other = BLOCK_FORMATS["l-mul"], BLOCK_FORMATS["mxfp8-e4m3"]
    shorter = dataclasses.replace(form, name="shorter", elements=BLOCK_FORMATS["mxfp6-e2m3"].elements, window=25)
    for fields, words in (
        ({"a": form, "b": form, "dot": "windowed"}, "dot = 'windowed': codes of a = 'l-mul' are added, not multiplied"),
        ({"a": "mxfp4", "b": form, "dot": "shifted"}, "codes of b = 'l-mul' are added, not multiplied; use 'additive'"),
        ({"a": form, "b": other, "dot": "additive"}, "b = 'mxfp8-e4m3' has no codes that are added"),
        ({"a": form, "b": shorter, "dot": "additive"}, "codes of l-mul and of shorter have different fields"),
    ):
        refused(words, **{**fields, "groups": 1})


def test_infinite_elements_and_long_ones_have_lanes_of_their_own():
    form = BLOCK_FORMATS["mxfp8-e5m2"]
    for fields, words in (
        ({"a": form, "b": "mxfp4", "dot": "shifted"}, "a = 'mxfp8-e5m2' has infinite elements; only 'windowed' has"),
        ({"a": "mxfp4", "b": form, "dot": "multiplier"}, "b = 'mxfp8-e5m2' has infinite elements"),
        ({"a": "fp16", "b": "int4", "dot": "booth"}, "products of fp16 x int4 are cut to a window; use 'windowed'"),
        ({"a": "mixfp4", "b": "fp16", "dot": "windowed"}, "a = 'mixfp4': products that are cut to a window take one"),
    ):
        refused(words, **{**fields, "groups": 1, "fraction_bits": 35})


def test_sub_groups_that_are_shifted_have_lanes_of_their_own():
    form = BLOCK_FORMATS["hif4"]
    scale = dataclasses.replace(form.scale, name="other")
    other = dataclasses.replace(form, name="other", shifts=(4,), scale=scale)
    plain = dataclasses.replace(
        form, name="plain", elements=BLOCK_FORMATS["mxfp6-e3m2"].elements, shifts=(), scale_bytes=1
    )
    wide = dataclasses.replace(form, name="wide", elements=plain.elements)
    for fields, words in (
        ({"a": form, "b": other, "dot": "nested"}, "dot = 'nested': hif4 x other have no common sub-groups"),
        ({"a": "nvfp4", "b": "nvfp4", "dot": "nested"}, "dot = 'nested': nvfp4 x nvfp4 have no common sub-groups"),
        ({"a": wide, "b": wide, "dot": "nested"}, "a = 'wide' has magnitudes of 9 bits, its lanes take 4"),
        ({"a": plain, "b": form, "dot": "shifted"}, "b = 'hif4' has sub-groups that are shifted"),
        ({"a": form, "b": form, "dot": "merged"}, "partial products of hif4 x hif4 that it joins"),
        ({"a": form, "b": form, "dot": "signed"}, "a = 'hif4' has magnitudes of 5 bits"),
        ({"a": form, "b": form, "dot": "binary"}, "a = 'hif4' has no split into a short significand"),
    ):
        refused(words, **{**fields, "groups": 1})


def test_slots():
    """What a slot demands, and what has no meaning without one."""
    assert TensorCoreConfig(**GOOD).slot == "none"
    assert not {"slot", "half_fraction_bits", "half_scale"} & set(TensorCoreConfig(**GOOD).as_dict())
    config = TensorCoreConfig(**GOOD, slot="separate")
    assert (config.as_dict()["slot"], config.as_dict()["half_fraction_bits"], config.slots) == ("separate", 25, 8)
    refused("half_fraction_bits = 30", "no meaning without a slot", half_fraction_bits=30)
    for field, value, words in (
        ("slot", "both", ("slot = 'both'", "must be one of none, separate, split, full, quadrants")),
        ("numerics", "exact", ("slot = 'separate'", "needs numerics = 'blackwell'")),
        ("half_fraction_bits", 22, ("half_fraction_bits = 22", "from 23 to 35")),
        ("half_fraction_bits", 36, ("half_fraction_bits = 36", "from 23 to 35")),
        ("half_fraction_bits", 25.0, ("half_fraction_bits = 25.0", "whole number")),
    ):
        refused(*words, **{"slot": "separate", field: value})
    for form, dot, words in (
        ("mxint8", "shifted", "blocks of 32 codes of 8 bits"),
        ("mxfp4-2x16", "merged", "a = 'mxfp4-2x16' has blocks of 32 codes of 4 bits"),
        ("razer-weights", "multiplier", "no lanes of plain integers of 4 bits"),
    ):
        refused("slot = 'separate'", words, a=form, b=form, dot=dot, groups=1, slot="separate")
    for slot, dot, words in (
        ("full", "signed", "shares the lanes of dot = 'merged' or 'merged-timed', not of 'signed'"),
        ("split", "merged-binary", "not of 'merged-binary'"),
        ("quadrants", "merged", "shares the lanes of dot = 'significand', not of 'merged'"),
    ):
        refused(f"slot = {slot!r}", words, slot=slot, dot=dot)
    far = biased(60)
    refused("slot = 'separate'", "may be subnormal or infinite", a=far, b=far, slot="separate")
    plain = dataclasses.replace(BLOCK_FORMATS["nvfp4"], name="plain", scale=BLOCK_FORMATS["mxfp4"].scale)
    refused("slot = 'separate'", "scales without a zero", a=plain, b=plain, slot="separate")
    refused("b = 'nvfp4-e0m3'", "steps say by their types which elements it has; it needs a slot", b="nvfp4-e0m3")


def test_scales_of_rows_at_half_the_rate():
    for groups in (1, 2, 4):
        config = TensorCoreConfig(**{**GOOD, "groups": groups}, slot="separate", half_scale="e8m0")
        assert config.as_dict()["half_scale"] == "e8m0"
        assert (config.half_scaled, config.unbounded, config.wide) == (True, True, False)
        assert "half_scale" not in dataclasses.replace(config, half_scale="none").as_dict()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"slot": "none"}, ("no meaning without a slot", "leave it out")),
        ({"slot": "none", "numerics": "exact"}, ("no meaning without a slot",)),
        ({"half_scale": "ue4m3"}, ("must be one of none, e8m0",)),
        ({"groups": 3}, ("a step has 24", "use groups = 1, 2 or 4, not 3")),
        ({"groups": 8}, ("a step has 64", "use groups = 1, 2 or 4, not 8")),
        ({"leading_zeros": "anticipated"}, ("results may be subnormal", "use leading_zeros = 'counted'")),
    ],
)
def test_scales_of_rows_that_a_core_cannot_have(fields, words):
    scaled = {"groups": 1, "slot": "separate", "half_scale": "e8m0", **fields}
    refused(f"half_scale = {scaled['half_scale']!r}", *words, **scaled)


def test_exact_cores_have_no_scales_at_half_the_rate():
    refused("slot = 'separate'", "needs numerics", slot="separate", half_scale="e8m0", numerics="exact", groups=1)


def test_every_micro_architecture_has_a_name():
    assert list(LANES) == list(DOTS)
    assert [name for name, lanes in LANES.items() if lanes.two_words is not Lanes.two_words] == list(CARRY_SAVE)


def test_named_configurations():
    kinds = {
        "nvfp4": ("nvfp4", "nvfp4"),
        "mixfp4": ("mixfp4", "mixfp4"),
        "mixfp4-weights": ("nvfp4", "mixfp4"),
        "nvint4": ("nvint4", "nvint4"),
    }
    others = {"fp4-ue5m3-b16", "fp4-ue5m3-b32", "mxfp4", "mxfp4-2x16", "msfp12", "if4", "blockdialect"}
    others |= {"mxint8", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp8-e4m3", "mxfp8-e5m2", "hif4", "int8", "int4"}
    others |= {"l-mul"}
    names = {f"{kind}-{size}" for kind in kinds for size in ("small", "blackwell")}
    slotted = ("nvfp4", "mixfp4", "nvfp4-e0m3")
    names |= {f"{kind}-multi-{size}" for kind in slotted for size in ("small", "blackwell")}
    names |= {"nvfp4-mx-multi-small", "mixfp4-mx-multi-small"}
    mixed = {"razer": ("razer-activations", "razer-weights"), "w4a8": ("mxfp8-e4m3", "mxfp4")}
    mixed |= {"w4a8-int": ("int8", "int4"), "ternary": ("int8", "ternary"), "int4-fp16": ("fp16", "int4")}
    mixed |= dict.fromkeys(("int8-exact", "opt1"), ("int8", "int8"))
    assert set(NAMED) == names | {f"{form}-small" for form in others | set(mixed)}
    kinds |= {form: (form, form) for form in others | {"nvfp4-e0m3"}} | mixed
    for name, config in NAMED.items():
        assert named(name) is resolve(name) is config
        assert config.name == name
        assert (config.a.name, config.b.name) == kinds[
            name.rpartition("-")[0].removesuffix("-multi").removesuffix("-mx")
        ]
        assert config.slotted == ("multi" in name)
        assert config.macs_per_step == (16 * config.a.size if "small" in name else 4096)


def test_a_small_core_with_more_blocks_in_a_step_has_a_name():
    """What the table of formats measures can be written as Verilog, too."""
    twice = named("mixfp4-2x16-small")
    assert twice == dataclasses.replace(NAMED["mixfp4-small"], name="mixfp4-2x16-small", groups=2)
    assert resolve("mixfp4-2x16-small") == twice
    assert named("nvfp4-4x16-small").depth == named("hif4-small").depth == 64
    # Blocks of 32; and a format of that name comes first.
    assert named("mxfp4-2x32-small").groups == 2
    assert named("mxfp4-2x16-small") is NAMED["mxfp4-2x16-small"]
    assert resolve_pair("2x16-small") == (named("nvfp4-2x16-small"), twice)


def test_blocks_that_a_core_cannot_take_in_a_step():
    for name in ("mxfp4-3x16-small", "nvfp4-9x16-small", "nvfp4-1x16-small", "nvfp4-2x16-blackwell"):
        with pytest.raises(InputError, match=f"unknown configuration '{name}': .*mixfp4-2x16-small and the like"):
            named(name)
    with pytest.raises(InputError, match=r"configuration 'hif4-8x64-small': fraction_bits = 35: must be"):
        named("hif4-8x64-small")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mixfp4-smal", ("'mixfp4-smal'", "did you mean 'mixfp4-small'?")),
        ("zzz", ("'zzz'", "nvfp4-blackwell", "TOML")),
        ("", ("''", "nvfp4-small")),
        ("a\nb", ("nvfp4-small",)),
    ],
)
def test_unknown_name(name, words):
    with pytest.raises(InputError) as caught:
        resolve(name)
    check(str(caught.value), words)


@pytest.fixture
def written(tmp_path):
    """Writes a TOML file into a directory with an awkward name and returns its path."""
    directory = tmp_path / "a b'c\";d"
    directory.mkdir()

    def write(text, name="my-core.toml"):
        path = directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def table(**fields):
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())


def test_every_field_comes_from_the_file(written):
    config = TensorCoreConfig(
        "x",
        "mixfp4",
        "mixfp4",
        3,
        5,
        2,
        dot="e2m2",
        fraction_bits=39,
        rounding="nearest_even",
        pipeline=("sums", "normal"),
        clock_gating=True,
    )
    assert resolve(str(written(table(**config.as_dict())))) == config
    exact = TensorCoreConfig("x", "nvfp4", "nvfp4", 3, 5, 2, pipeline=("sums",), numerics="exact", largest_depth=5000)
    assert resolve(str(written(table(**exact.as_dict())))) == exact


def test_name_is_the_stem_unless_given(written):
    fields = {key: value for key, value in GOOD.items() if key != "name"}
    assert resolve(str(written(table(**fields)))).name == "my-core"
    assert resolve(str(written(table(**GOOD)))).name == "core"


def test_path_without_suffix(written):
    assert resolve(str(written(table(**GOOD), "plain"))).name == "core"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rows =", ("not valid TOML",)),
        ("rows = 1\nrows = 2", ("not valid TOML",)),
        (b"name = '\xff'", ("not valid TOML",)),
        ("x = " + "[" * 5000, ("not valid TOML",)),
        (table(**GOOD, row=3), ("unknown key 'row'", "did you mean 'rows'?")),
        (table(**GOOD, zzz=3), ("unknown key 'zzz'", "fraction_bits")),
        (table(**GOOD) + "[core]\nrows = 3\n", ("unknown key 'core'",)),
        (table(name="x", a="nvfp4", b="nvfp4", rows=1, groups=1), ("key 'columns' is missing",)),
        (table(format="mixfp4", rows=1), ("key 'format' is gone", 'write a = "mixfp4" and b = "mixfp4"')),
        (table(format="mixfp4", tags="weights"), ("key 'format' is gone", 'write a = "nvfp4" and b = "mixfp4"')),
        (table(tags="both", format=3), ("key 'format' is gone", "write a and b")),
        (table(**GOOD, tags="weights"), ("key 'tags' is gone",)),
        (table(**GOOD, numerics="exact", fraction_bits=35), ("fraction_bits = 35: has no meaning", "leave it out")),
        (table(**GOOD, numerics="exact", empty_blocks="excluded"), ("empty_blocks = 'excluded': has no meaning",)),
        (table(**GOOD, numerics="exact", empty_blocks="included"), ("empty_blocks = 'included': has no meaning",)),
        (table(**GOOD, clock_gating="yes"), ("clock_gating = 'yes': must be true or false",)),
        (table(**GOOD, clock_gating=1), ("clock_gating = 1: must be true or false",)),
        (table(**GOOD, empty_blocks="out"), ("empty_blocks = 'out'", "included, excluded")),
        ("", ("is missing",)),
        (table(**{**GOOD, "rows": 65}), ("rows = 65", "from 1 to 64")),
        (table(**{**GOOD, "rows": "4"}), ("rows = '4'",)),
        (table(**{**GOOD, "a": "fp8"}), ("a = 'fp8'",)),
        (table(**GOOD, pipeline=["out"]), ("'out'",)),
    ],
)
def test_bad_files(text, words, written):
    path = written(text)
    with pytest.raises(InputError) as caught:
        resolve(str(path))
    check(str(caught.value), (repr(str(path)), *words))


def test_stem_that_is_no_name(written):
    fields = {key: value for key, value in GOOD.items() if key != "name"}
    with pytest.raises(InputError, match=r"name = '1 core': .*; or set 'name' in the file$"):
        resolve(str(written(table(**fields), "1 core.toml")))


def test_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InputError) as caught:
            resolve(f"{path}/" if path is tmp_path else str(path))
        check(str(caught.value), (repr(str(path)),))


def test_pair_of_a_size():
    assert resolve_pair("small") == (NAMED["nvfp4-small"], NAMED["mixfp4-small"])
    assert resolve_pair("multi-small") == (NAMED["nvfp4-multi-small"], NAMED["mixfp4-multi-small"])


def test_a_design_is_no_pair():
    with pytest.raises(InputError, match=r"'mixfp4-small': is one design.* such as 'small', or --baseline"):
        resolve_pair("mixfp4-small")
    with pytest.raises(InputError, match=r"'razer-2x16-small': is one design.* such as '2x16-small', or --baseline"):
        resolve_pair("razer-2x16-small")
    for name in NAMED:
        with pytest.raises(InputError, match="is one design") as caught:
            resolve_pair(name)
        size = re.search(r"such as '([\w-]+)'", str(caught.value))
        assert size is not None
        assert name.endswith(f"-{size[1]}")
        assert ("multi" in size[1]) == ("multi" in name)
        assert all(config.name.endswith(size[1]) for config in resolve_pair(size[1]))


def test_a_file_of_a_format_is_no_pair(written):
    path = written('[formats.mine]\nelements = ["E2M1"]\nscale = "UE4M3"\nblock = 16\n')
    with pytest.raises(InputError, match=r"describes format 'mine'; .*by --baseline or --candidate$"):
        resolve_pair(str(path))
    # Nor is one of two, which of itself would have to say where each stands.
    path.write_text(path.read_text() + path.read_text().replace("mine", "yours"))
    with pytest.raises(InputError, match=r"describes format 'mine'; .*by --baseline or --candidate$"):
        resolve_pair(str(path))


def test_a_pair_whose_file_gives_no_name_says_where_to_give_one(tmp_path):
    path = tmp_path / "two words.toml"
    path.write_text(table(rows=2, columns=3, groups=1))
    with pytest.raises(InputError, match=r"two words.toml': name = 'nvfp4-two words': .*; or set 'name' in the file$"):
        resolve_pair(str(path))


def test_pair_of_a_file(written):
    fields = {"rows": 2, "columns": 3, "groups": 1, "numerics": "exact"}
    nvfp4, mixfp4 = resolve_pair(str(written(table(**fields))))
    assert nvfp4 == TensorCoreConfig("nvfp4-my-core", "nvfp4", "nvfp4", **fields)
    assert mixfp4 == TensorCoreConfig("mixfp4-my-core", "mixfp4", "mixfp4", **fields)
    assert resolve_pair(str(written(table(**fields, name="own"))))[1].name == "mixfp4-own"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (GOOD, ("stands for both formats", "leave 'a' out")),
        ({"rows": 2, "columns": 3}, ("key 'groups' is missing",)),
        ({"rows": 2, "columns": 3, "groups": 1, "dot": "e2m2"}, ("dot = 'e2m2'", "merged")),
        ({"rows": 2, "columns": 3, "groups": 1, "size": 1}, ("unknown key 'size'",)),
        ({"rows": 2, "columns": 3, "groups": 1, "name": 3}, ("name = 3: must be a text",)),
    ],
)
def test_bad_pairs(fields, words, written):
    path = written(table(**fields))
    with pytest.raises(InputError) as caught:
        resolve_pair(str(path))
    check(str(caught.value), (repr(str(path)), *words))

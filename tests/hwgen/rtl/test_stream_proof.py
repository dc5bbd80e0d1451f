"""The stream protocol of the core, proven: control and registers as they are, blocks of arithmetic replaced by tags.

The arithmetic becomes a function of two bits that is injective in each argument and depends on the order of steps; a
step brings one bit through its lanes and one through its scales, so that both must meet again. Without scales both go
through the lanes. Every C is its own number, modulo four: one that goes to another tile, is lost, or comes twice, is
another number.
"""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, ResetInserter, Signal, Value, signed
from amaranth.lib import data

from hwgen.config import LOOP_REGISTERS, NAMED, TensorCoreConfig
from hwgen.rtl import control, element, tensor_core
from hwgen.rtl.accumulate import exact
from hwgen.rtl.accumulate.fixed_point import StepSum
from hwgen.rtl.accumulate.products import ProductDistances, ProductExponents
from hwgen.rtl.accumulate.round_sum import RoundSum
from hwgen.rtl.accumulate.stepwise import Accumulate
from hwgen.rtl.accumulate.terms import ScaleProduct, TermExponents, TermPlaces
from hwgen.rtl.decode.operand import OperandDecoder
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.lanes import lanes
from hwgen.rtl.significand_products import SignificandProducts


def step_value(before, lanes_tag, scales_tag):
    """What a step makes of the accumulator, two bits each."""
    return (Cat(lanes_tag, scales_tag) - before)[:2]


class TagDecoder(OperandDecoder):
    """In steps of FP4 what is for those at half the rate is 0."""

    def elaborate(self, platform):
        m = Module()
        if self.config.adds_sums:
            m.d.comb += self.operand.lanes[0][0].as_value()[:2].eq(self.codes[0][0][:2])
            return m
        m.d.comb += [
            self.operand.lanes[0][0].magnitude.eq(self.codes[0][0]),
            *(getattr(self.operand.scales[0], field).eq(self.scales[0]) for field in ("significand", "exponent")),
        ]
        if self.config.slotted:
            m.d.comb += self.operand.slots[0][0].exponent.eq(self.scales[0] & self.half)
            if not lanes(self.config).shared:
                m.d.comb += self.operand.significands[0][0].eq(self.codes[0][0] & self.half)
        if self.config.half_scaled:
            m.d.comb += self.operand.half_scale.eq(self.half_scale[0] & self.half)
        return m


class TagDot(DotProduct):
    """Lanes that are shared with a slot give their tag as a sum in steps of FP4, and as a product in others."""

    def elaborate(self, platform):
        m = Module()
        if self.config.adds_sums:
            tags = {"tag": self.a[0].as_value()[:2] ^ self.b[0].as_value()[:2]}
            held = self.held(m, "tree", "enable_tree", tags)
            m.d.comb += (self.words[0] if self.config.carry_save else self.sum).eq(held["tag"])
            return m
        tag = self.a[0].magnitude[0] ^ self.b[0].magnitude[0]
        if not lanes(self.config).shared:
            held = self.held(m, "tree", "enable_tree", {"tag": tag})
            m.d.comb += self.sum.eq(held["tag"])
            return m
        held = self.held(m, "tree", "enable_tree", {"tag": tag & ~self.half})
        held |= self.held(m, "tree", "enable_tree_products", {"product": tag & self.half})
        m.d.comb += [self.sum.eq(held["tag"]), self.products.as_value()[0].eq(held["product"])]
        return m


class TagScale(ScaleProduct):
    """The significands bring the tag of the scales, too: `Accumulate` takes it off again, if it is that of its step."""

    def elaborate(self, platform):
        m = Module()
        held = self.held(m, "factors", "enable_factors", {"tag": self.sum[0] ^ self.a[0] ^ self.b[0]})
        m.d.comb += self.magnitude.eq(held["tag"])
        return m


class TagExponents(TermExponents):
    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.exponent.eq(self.a[0].exponent[0] ^ self.b[0].exponent[0])
        return m


class TagSignificands(SignificandProducts):
    def elaborate(self, platform):
        m = Module()
        held = self.held(m, "tree", "enable_tree_products", {"tag": self.a[0][0] ^ self.b[0][0]})
        m.d.comb += self.products[0].eq(held["tag"])
        return m


class TagProducts(ProductExponents):
    def elaborate(self, platform):
        m = Module()
        held = {"tag": self.a[0][0].exponent[0] ^ self.b[0][0].exponent[0] ^ 1}
        for register in ("tree", "sums") if self.config.early_exponents else ():
            held = self.held(m, register, f"enable_{register}_products", held)
        m.d.comb += self.exponent.eq(held["tag"])
        return m


class TagDistances(ProductDistances):
    """The slots bring the tag of the scales once more: `Accumulate` takes it off again, if it is that of its step."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.distances[0][0].eq(self.a[0][0].exponent[0] ^ self.b[0][0].exponent[0])
        return m


class TagPlaces(TermPlaces):
    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.places[0].eq(self.a[0].exponent[0] ^ self.b[0].exponent[0])
        return m


class TagAccumulate(Accumulate):
    """Products are added in steps of FP4, too, where they are to be 0 although their registers stand still."""

    def elaborate(self, platform):
        m = Module()
        before = self.c.as_value()[:2]
        scales_tag = self.terms.exponent[0]
        lanes_tag = self.terms.terms[0].magnitude[0] ^ scales_tag
        product = Const(0)
        if self.config.slotted:
            half, last = self.terms.half, self.terms.products[0][0]
            product = last.magnitude[0] ^ last.distance[0]
            if not self.config.half_scaled:  # with scales the row's own is in the exponent once more
                scales_tag ^= half
            lanes_tag = half ^ Mux(half, scales_tag, lanes_tag)
        enter = self.enter if self.registers else Const(1)
        held = {"before": before, "lanes": lanes_tag, "scales": scales_tag, "enter": enter}
        held = self.held(m, "compared", "enable", held)
        if self.config.slotted:
            product = self.held(m, "compared", "enable_products", {"product": product})["product"]
        value = step_value(held["before"], held["lanes"] ^ product, held["scales"])
        held = {"tag": Mux(held["enter"], value, held["before"])}
        for register in LOOP_REGISTERS[1:]:
            held = self.held(m, register, "enable", held)
        m.d.comb += self.d.eq(held["tag"])
        return m


class TagStepSum(StepSum):
    def elaborate(self, platform):
        m = Module()
        if self.config.adds_sums:
            m.d.comb += self.sum.eq(self.terms[0])
            return m
        m.d.comb += self.sum.eq(Cat(self.terms[0].magnitude[0] ^ self.terms[0].place[0], self.terms[0].place[0]))
        return m


class TagRoundSum(RoundSum):
    def elaborate(self, platform):
        m = Module()
        held = {"tag": (self.sum + self.c.as_value()[:2])[:2]}
        for register in ("total", "normal"):
            held = self.held(m, register, f"enable_{register}", held)
        m.d.comb += self.d.eq(held["tag"])
        return m


@pytest.fixture
def tags(monkeypatch):
    """Tags in place of arithmetic."""
    monkeypatch.setattr(tensor_core, "OperandDecoder", TagDecoder)
    for module, name, kind in (
        *((element, "DotProduct", TagDot), (element, "ScaleProduct", TagScale)),
        *((element, "TermExponents", TagExponents), (element, "TermPlaces", TagPlaces)),
        *((element, "SignificandProducts", TagSignificands), (element, "ProductExponents", TagProducts)),
        (element, "ProductDistances", TagDistances),
        *((element, "Accumulate", TagAccumulate), (exact, "StepSum", TagStepSum), (exact, "RoundSum", TagRoundSum)),
    ):
        monkeypatch.setattr(module, name, kind)


UNDER_WAY = data.StructLayout({"valid": 1, "first": 1, "last": 1, "watched": 1, "tag": 2, "before": 2, "after": 2})
"""A step in the core as the reference sees it: the accumulator before and after."""


def implies(condition, conclusion):
    return ~condition | conclusion


class Observed(Elaboratable):
    """A core with any traffic that the stream rules allow; ``wrong`` when it breaks one of its own.

    One result is watched, any of them: its value is that of the reference, and it comes in its turn. The
    reference executes a step when it is accepted.
    """

    def __init__(self, config):
        self.config = config
        names = ("offer", "supply", "take", "pick", "reset", "first", "last")
        self.inputs = {name: Signal(name=name) for name in names} | {"tag": Signal(2, name="tag")}
        self.wrong = Signal()

    def elaborate(self, platform):
        m = Module()
        config, turns = self.config, self.config.interleave
        offer, supply, take, pick, reset, *fresh = self.inputs.values()
        self.core = core = tensor_core.TensorCore(config)
        m.submodules.core = ResetInserter(reset)(core)
        m.d.comb += core.result.ready.eq(take)

        # A step on offer stays as it is until it is accepted.
        first, last, tag = fresh
        waiting = Signal()
        began = Signal(range(turns + 1))  # steps since reset, as far as they must be first ones
        held = Signal(len(Cat(*fresh)))
        sent = Signal.like(held)
        valid = core.step.valid
        m.d.comb += [
            valid.eq(offer | waiting),
            sent.eq(Mux(waiting, held, Cat(first | (began != turns), last, tag))),
        ]
        is_first, is_last, sent_tag = sent[0], sent[1], sent[2:4]
        payload = core.step.payload
        m.d.comb += [
            payload.first.eq(is_first),
            payload.last.eq(is_last),
            payload.a.codes[0][0][0].eq(sent_tag if config.adds_sums else sent_tag[0]),
        ]
        if not config.adds_sums:
            m.d.comb += payload.a.scales[0][0].eq(sent_tag[1])
        if config.slotted:  # the mode is one of the tags, and the accumulator takes it off the other one
            m.d.comb += [payload.mode.eq(sent_tag[1]), payload.a.codes[0][0][0].eq(sent_tag[0] ^ sent_tag[1])]
        accepted, answered = Signal(), Signal()
        m.d.comb += [
            accepted.eq(valid & core.step.ready & ~reset),
            answered.eq(core.result.valid & take & ~reset),
        ]
        m.d.sync += [waiting.eq(valid & ~core.step.ready & ~reset), held.eq(sent)]

        # So does C; the steps that take it are numbered as well.
        self.number, self.supplied = number, supplied = Signal(2), Signal(2)
        unsupplied, given = Signal(), Signal()
        self.owed = owed = Signal(signed(5))  # first steps accepted less C accepted
        m.d.comb += [
            core.addend.valid.eq(supply | unsupplied),
            core.addend.payload[0][0].eq(supplied),
            given.eq(core.addend.valid & core.addend.ready & ~reset),
        ]
        m.d.sync += [
            unsupplied.eq(core.addend.valid & ~core.addend.ready & ~reset),
            owed.eq(owed + (accepted & is_first) - given),
            supplied.eq(supplied + given),
            number.eq(number + (accepted & is_first)),
        ]
        sent_c = number

        # The reference, and the results that are due.
        slots = Array(Signal(2, name=f"slot{index}") for index in range(turns))
        slot = Signal(range(turns))
        kept_c, value = Signal(2), Signal(2)
        addend = Mux(is_first, sent_c, kept_c)
        if config.exact:
            following = (Mux(is_first, 0, slots[0]) + sent_tag)[:2]
            m.d.comb += value.eq(following + addend)
        else:
            following = step_value(Mux(is_first, sent_c, slots[slot]), sent_tag[0], sent_tag[1])
            m.d.comb += value.eq(following)
        due = Signal(range(config.latency + turns + 2))
        watched, ahead, expected = Signal(), Signal.like(due), Signal(2)
        with m.If(accepted):
            m.d.sync += [slots[slot].eq(following), slot.eq(Mux(slot == turns - 1, 0, slot + 1)), kept_c.eq(addend)]
            with m.If(began != turns):
                m.d.sync += began.eq(began + 1)
            with m.If(is_last & pick & ~watched):
                m.d.sync += [watched.eq(1), expected.eq(value), ahead.eq(due - answered)]
        m.d.sync += due.eq(due + (accepted & is_last) - answered)
        with m.If(answered & watched):
            m.d.sync += [ahead.eq(ahead - 1), watched.eq(ahead != 0)]

        # How long nothing has moved although it could.
        result = core.result.payload[0][0]
        idle, refused = Signal(range(32)), Signal(range(32))
        before, stayed = Signal.like(result), Signal()
        moving = take | ~core.result.valid
        # Without registers before the loop it is the step on offer that needs C.
        needed = owed > 0 if config.entrance else valid & is_first & (owed == 0)
        lacking = needed & ~core.addend.valid
        m.d.sync += [
            idle.eq(Mux((due != 0) & ~core.result.valid, idle + core.step.ready, 0)),
            refused.eq(Mux(~core.step.ready, refused + (moving & ~lacking), 0)),
            before.eq(result),
            stayed.eq(core.result.valid & ~take),
        ]
        followed = Value.cast(1)
        if turns == 1 and not config.exact:
            fields = {"valid": accepted, "first": is_first, "last": is_last, "tag": sent_tag, "after": following}
            fields |= {"watched": is_last & pick & ~watched, "before": Mux(is_first, sent_c, slots[0])}
            steps, full, taken = self._under_way(m, fields, given, moving)
            followed = self._followed(steps, slots[0], due, watched, ahead, expected, idle)
            followed &= self._c_followed(steps[: config.entrance], full, taken)
        with m.If(reset):
            state = (began, slot, due, watched, idle, refused, stayed, owed, number, supplied)
            m.d.sync += [signal.eq(0) for signal in state]
        m.d.comb += self.wrong.eq(
            ~reset
            & (
                ~followed
                | (core.result.valid & (due == 0))  # nobody asked for it
                | (answered & watched & (ahead == 0) & (result != expected))  # lost, changed, or out of its turn
                | (stayed & ~(core.result.valid & (result == before)))  # changed while it waited
                | (idle > config.latency)  # never came
                | (refused > turns)  # not accepted in its turn, or a cycle after its C
                | (owed < -1)  # more than one C ahead
                | (moving & (turns == 1) & ~core.step.ready & ~core.addend.ready)  # waited, and not for C
            )
        )
        return m

    def _under_way(self, m, accepted, given, moving):
        """What the reference makes of every step that has not left, the youngest first.

        And whether the register of C is full, and whether a step takes what it holds.
        """
        entering = Signal(UNDER_WAY)
        m.d.comb += [entering[name].eq(value) for name, value in accepted.items()]
        steps = [Signal(UNDER_WAY, name=f"step{index}") for index in range(self.config.latency)]
        full, taken, enters = Signal(), Signal(), Signal()
        before = [entering, *steps][self.config.entrance]
        m.d.comb += [
            enters.eq(before.valid & (~before.first | full)),
            taken.eq(moving & enters & before.first),
        ]
        m.d.sync += full.eq(~self.inputs["reset"] & (given | full & ~taken))
        for index, (step, younger) in enumerate(zip(steps, [entering, *steps[:-1]], strict=True)):
            with m.If(self.core.step.ready if index < self.config.entrance else moving):
                m.d.sync += step.eq(younger)
                if index == self.config.entrance:
                    m.d.sync += step.valid.eq(enters)
            with m.If(self.inputs["reset"]):
                m.d.sync += step.valid.eq(0)
        return steps, full, taken

    def _c_followed(self, waiting, full, taken):
        """Whether the numbers of C agree with the steps before the loop."""
        begins = [step.valid & step.first for step in waiting]
        right = [
            self.core.addend.ready == ~full | taken,
            self.owed == sum(begins, Const(0)) - full,
            self.owed[:2] == (self.number - self.supplied)[:2],
        ]
        for index, step in enumerate(waiting):
            younger = sum(begins[:index], Const(0))
            right.append(implies(begins[index], step.before == (self.number - younger - 1)[:2]))
        return Cat(*right).all()

    def _followed(self, steps, newest, due, watched, ahead, expected, idle):
        """Whether reference and counters agree with the steps under way, which makes the proof much shorter."""
        result = self.core.result
        results = [step.valid & step.last for step in steps]
        marks = [step.valid & step.watched for step in steps]
        right = [
            result.valid == results[-1],
            implies(steps[-1].valid, result.payload[0][0][:2] == steps[-1].after),
            due == sum(results),
            watched == sum(marks),
        ]
        for index, step in enumerate(steps):
            older = sum(results[index + 1 :], Const(0))
            right += [
                implies(step.valid, step.after == step_value(step.before, step.tag[0], step.tag[1])),
                implies(results[index] & (older == 0), idle <= index),
                implies(marks[index], step.last & (expected == step.after) & (ahead == older)),
                implies(step.valid & ~Cat(*(younger.valid for younger in steps[:index])).any(), newest == step.after),
            ]
            for place, younger in enumerate(steps[:index]):
                between = Cat(*(other.valid for other in steps[place + 1 : index])).any()
                goes_on = step.valid & younger.valid & ~between & ~younger.first
                right.append(implies(goes_on, younger.before == step.after))
        return Cat(*right).all()


def verdict(observed, prover, commands):
    """What ABC says of ``wrong``."""
    text = rtlil.convert(observed, ports=[*observed.inputs.values(), observed.wrong], emit_src=False)
    return prover.abc(commands, text)


def tiny(pipeline, numerics="blackwell", slot="none", half_scale="none"):
    return TensorCoreConfig(
        *("tiny", "nvfp4", "nvfp4", 1, 1, 1),
        pipeline=pipeline,
        numerics=numerics,
        slot=slot,
        half_scale=half_scale,
    )


def integers(pipeline, accumulator):
    """A core whose block sums are added up as they are."""
    return TensorCoreConfig(
        *("tiny", "int8", "int8", 1, 1, 1, "booth"), pipeline=pipeline, numerics="exact", accumulator=accumulator
    )


CORES = [
    tiny(()),
    # Registers before the loop, and loops of 2, 3 and 5 cycles.
    *(tiny(("operands", "terms")), tiny(("decoded", "sums")), tiny(("decoded", "sums", "terms"))),
    *(tiny(("tree", "factors")), tiny(("factors", "terms"))),
    *(tiny(("total",)), tiny(("terms", "total")), tiny(("aligned", "total")), tiny(LOOP_REGISTERS[1:])),
    tiny(("compared",)),
    *(tiny((), "exact"), tiny(("aligned",), "exact"), tiny(("factors",), "exact")),
    # Without scales, and with the register `resolved`.
    *(integers(("tree", "normal"), accumulator) for accumulator in ("carry_propagate", "carry_save")),
    *(integers(pipeline, "carry_save") for pipeline in ((), ("decoded", "total"))),
    # The mode goes with its step.
    *(tiny(pipeline, slot="separate") for pipeline in (("decoded", "sums"), ("tree", "factors"), ("terms", "total"))),
    tiny(("factors", "compared"), slot="separate"),  # the largest exponent is found before the factors
    # So it does where lanes and slot share a dot product, and its register.
    *(tiny(pipeline, slot="full") for pipeline in (("decoded", "sums"), ("tree", "factors"), ("factors", "compared"))),
    # So does the scale of a row at half the rate.
    *(
        tiny(pipeline, slot="separate", half_scale="e8m0")
        for pipeline in (("tree", "factors"), ("factors", "compared"))
    ),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "config",
    CORES,
    ids=lambda config: "-".join(
        (config.numerics, config.accumulator, config.slot, config.half_scale, *config.pipeline)
    ),
)
@pytest.mark.usefixtures("tags")
def test_stream_protocol(config, prover):
    """For any number of cycles, by property-directed reachability."""
    assert "Property proved." in verdict(Observed(config), prover, "pdr")


@pytest.mark.usefixtures("tags")
def test_a_result_before_its_words_are_added_is_found(prover, monkeypatch):
    """Registers behind the accumulator that are one too few."""
    monkeypatch.setattr(control, "exact_registers", lambda config: ("sum", "total"))
    found = verdict(Observed(integers(("total",), "carry_save")), prover, "bmc3 -F 12")
    assert "was asserted in frame" in found, found


@pytest.mark.parametrize("name", ["nvfp4-small", "nvfp4-blackwell", "nvfp4-multi-small", "nvfp4-multi-blackwell"])
@pytest.mark.usefixtures("tags")
def test_stream_protocol_of_named_pipelines(name, prover):
    """For 14 cycles after reset, more than a step is in the core: without a bound it takes longer than ten minutes."""
    found = verdict(Observed(tiny(NAMED[name].pipeline, slot=NAMED[name].slot)), prover, "bmc3 -F 14")
    assert "No output asserted in 14 frames" in found, found


class Planted(control.Ring):
    """A loop that does not do what its control demands: a step enters out of turn."""

    def advance(self, m, step, addend):
        super().advance(m, step, addend)
        self.enables["enter"] = step.valid


class Late(control.Ring):
    """A loop whose elements hear of a step when it enters, not a cycle ahead."""

    def advance(self, m, step, addend):
        super().advance(m, step, addend)
        valid, first = step.valid, step.first
        self.enables["entering"] = valid & addend.provides(first)


class Greedy(control.Ring):
    """A loop whose elements take C with a step that does not enter yet."""

    def advance(self, m, step, addend):
        super().advance(m, step, addend)
        self.enables["taking"] = step.coming(self.accept)[1]


class Blind(control.Ring):
    """A loop that thinks of C as it was when it says what comes."""

    def advance(self, m, step, addend):
        super().advance(m, step, addend)
        valid, first = step.coming(self.accept)
        self.enables["entering"] = self.enables["entering"] & valid & addend.provides(first)


class Hasty(control.Addend):
    """A register of C that takes the next one before the last has been taken."""

    def advance(self, m, valid, takes):
        super().advance(m, valid, takes)
        return Const(1), valid


class Careless(control.Addend):
    """Steps do not wait for C."""

    def provides(self, step):
        return Const(1)


@pytest.mark.parametrize(
    ("name", "kind", "pipeline"),
    [
        ("Ring", Planted, ("total",)),
        ("Ring", Late, ("terms", "total")),
        ("Ring", Blind, ("terms", "total")),
        ("Ring", Greedy, ("terms", "total")),
        ("Addend", Hasty, ("terms",)),
        ("Addend", Careless, ("terms",)),
        ("Addend", Careless, ()),
        ("Addend", Hasty, ("total",)),
    ],
)
@pytest.mark.usefixtures("tags")
def test_planted_fault_is_found(name, kind, pipeline, prover, monkeypatch):
    monkeypatch.setattr(control, name, kind)
    found = verdict(Observed(tiny(pipeline)), prover, "bmc3 -F 12")
    assert "was asserted in frame" in found, found


class Early(control.Pipeline):
    """Registers that the mode of a step does not wait in."""

    def advance(self, m, accept, step):
        step = super().advance(m, accept, step)
        self.enables["half_terms"] = self.enables["half"]
        return step


@pytest.mark.parametrize("slot", ["separate", "full"])
@pytest.mark.usefixtures("tags")
def test_a_mode_of_another_step_is_found(slot, prover, monkeypatch):
    monkeypatch.setattr(control, "Pipeline", Early)
    found = verdict(Observed(tiny(("tree", "factors"), slot=slot)), prover, "bmc3 -F 12")
    assert "was asserted in frame" in found, found


@pytest.mark.parametrize(
    "changes", [lambda before, held: before, lambda before, held: held], ids=["products stay", "products do not come"]
)
@pytest.mark.parametrize(
    ("pipeline", "slot"),
    [(("tree", "factors"), "separate"), (("tree", "factors"), "full"), (("compared",), "separate")],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
@pytest.mark.usefixtures("tags")
def test_products_of_another_step_are_found(pipeline, slot, changes, prover, monkeypatch):
    """Their registers stand still in steps of FP4, but for the first."""
    monkeypatch.setattr(control, "changes", changes)
    found = verdict(Observed(tiny(pipeline, slot=slot)), prover, "bmc3 -F 12")
    assert "was asserted in frame" in found, found


@pytest.mark.usefixtures("tags")
def test_products_from_before_a_reset_are_found(prover, monkeypatch):
    """After a reset nobody knows what their registers hold."""
    signal = control.Signal

    def kept(*shape, **options):
        stays = {"reset_less": True} if options.get("name", "").endswith("_fp4") else {}
        return signal(*shape, **options, **stays)

    monkeypatch.setattr(control, "Signal", kept)
    found = verdict(Observed(tiny(("tree", "factors"), slot="separate")), prover, "bmc3 -F 12")
    assert "was asserted in frame" in found, found

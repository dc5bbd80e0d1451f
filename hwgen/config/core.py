"""The configuration of one tensor core."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hwgen.config.dots import CARRY_SAVE, DOTS
from hwgen.config.reserved import reserved
from hwgen.config.slots import HALF_SCALES, NO_HALF_SCALE, NO_SLOT, SCALED_ELEMENTS, SCALED_GROUPS, SLOTS, unfit
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS, BlockFormat, Bounds, Formats

__all__ = [
    "DEFAULT_PIPELINE",
    "DESCRIBED",
    "ELEMENT_REGISTERS",
    "EMPTY_BLOCKS",
    "FIELDS",
    "LEADING_ZEROS",
    "LOOP_REGISTERS",
    "MEANINGLESS",
    "NUMERICS",
    "PIPELINE_REGISTERS",
    "REGISTERS",
    "TensorCoreConfig",
]

LEADING_ZEROS = ("counted", "anticipated")
ROUNDINGS = ("toward_zero", "nearest_even")
NUMERICS = ("blackwell", "exact")
ACCUMULATORS = ("carry_propagate", "carry_save")
EMPTY_BLOCKS = ("included", "excluded")
PIPELINE_REGISTERS = (
    *("operands", "decoded", "tree", "sums", "factors", "terms"),
    *("compared", "aligned", "addends", "total", "normal"),
)
ELEMENT_REGISTERS = ("tree", "sums", "factors", "terms")  # in the elements, before the loop
LOOP_REGISTERS = ("compared", "aligned", "addends", "total", "normal")  # in the accumulation loop, unless that is exact
DEFAULT_PIPELINE = ("decoded", "sums")

REGISTERS = {
    "blackwell": PIPELINE_REGISTERS,
    "exact": tuple(register for register in PIPELINE_REGISTERS if register not in ("compared", "addends")),
}
"""Pipeline registers that have a meaning, by numerics."""

DESCRIBED = "described"
"""Key of `TensorCoreConfig.as_dict` that has, by name, the texts of the files that describe a user's formats."""

DEFAULT_FRACTION_BITS = 35
DEFAULT_HALF_FRACTION_BITS = 25
LEAST_HALF_FRACTION_BITS = 23  # with fewer, C would be cut where all products are zero
LARGEST_DEPTHS = range(1 << 12, (1 << 24) + 1)  # the shortest is 32 steps of 8 groups
DEFAULT_LARGEST_DEPTH = 1 << 16


@dataclass(frozen=True)
class TensorCoreConfig:
    """What the generator needs to know about one tensor core.

    Parameters
    ----------
    name
        Letters, digits, ``-`` and ``_``; names the files and, with ``_`` for ``-``, the Verilog module.
    a, b
        Block formats of the operands, records of `hwgen.formats`; the name of a record of the catalogue is taken, too.
    rows, columns
        Outputs of the array: M rows of A by N rows of B (1 to 64 each).
    groups
        Blocks along K that one step consumes, G (1 to 8).
    dot
        Micro-architecture of the dot product, one of `hwgen.config.DOTS` that can multiply these formats.
    fraction_bits
        Bits kept below the largest exponent of a step (Blackwell: 35, arXiv 2511.10909). The formats set the range,
        see `hwgen.formats.Bounds`: 23 to 39 for MixFP4. Long elements allow 35 with few groups only.
    rounding
        Rounding of a step's sum to FP32: ``toward_zero`` (Blackwell) or ``nearest_even``.
    empty_blocks
        Whether blocks whose sum is zero take part in the largest exponent of a step, by which all terms and C are
        truncated: ``included`` (MMA-Sim, arXiv 2511.10909), or ``excluded``, as other models of Blackwell have it.
    leading_zeros
        How the sum is normalised: its leading zeros are ``counted``, or ``anticipated`` beside the adder, for a
        shorter path and more area.
    pipeline
        Which registers there are besides that of the result. Before the accumulation loop: ``operands``
        (codes and scales at the edge of the array), ``decoded`` (the same behind the operand decoders), ``tree`` (the
        last two words of a dot product), ``sums`` (block sums, before they are scaled), ``factors`` (their magnitudes,
        and products of the scales' significands) and ``terms`` (scaled block sums). Where products are cut to a window,
        ``tree`` holds the products and their exponents, ``sums`` the last two words. In the loop: ``compared`` (terms,
        and how far C's exponent is from the largest of theirs), ``aligned`` (words shifted to one exponent),
        ``addends`` (the last two words of their sum), ``total`` (their sum) and ``normal`` (the normalised sum, before
        it is rounded). Those in the loop interleave as many more tiles, see `interleave`.
    numerics
        ``blackwell``, every step rounds to FP32; or ``exact``, a fixed-point accumulator holds every term of
        the whole GEMM and its sum with C is rounded once, to nearest even. There ``fraction_bits``, ``rounding``,
        ``empty_blocks`` and ``leading_zeros`` have no meaning, and no register lies in the loop: ``aligned`` (the sum
        of a step's terms) stands before it, ``total`` (with C) and ``normal`` behind. There is no ``compared`` and no
        ``addends``.
    largest_depth
        Largest K of a GEMM that cannot overflow the accumulator, ``exact`` only (4096 to 2^24).
    accumulator
        How an exact accumulator holds its sum, ``exact`` only: ``carry_propagate``, as one number; or ``carry_save``,
        as two words, to which a step adds without a carry that runs (OPT1 of arXiv 2503.06342). Their sum is made
        where a result is wanted, a cycle later. For formats without scales, and lanes that hand over two words. There
        ``sums``, ``factors`` and ``aligned`` have no meaning.
    clock_gating
        Whether registers that share an enable get their clock through a gate when the core is mapped to a library,
        see `hwgen.mapping.yosys`. The RTL is the same either way.
    slot
        How the core multiplies FP8 and FP6 at half the rate of FP4, one of `hwgen.config.SLOTS`; ``none`` if it does
        not. With a slot each step says which of both it is, and which types its elements have, see
        `hwgen.rtl.tensor_core.step_layout`.
    half_fraction_bits
        Bits kept below the largest exponent of a step at half the rate (Blackwell: 25). From 23 to ``fraction_bits``.
        Has no meaning without a slot.
    half_scale
        Whether rows of steps at half the rate have scales: ``none``, or ``e8m0``, one byte for each row and each 32
        elements along K, as Blackwell's ``kind::mxf8f6f4``. Then results may be subnormal and infinite. For 1, 2 or 4
        groups. Has no meaning without a slot.

    Raises
    ------
    InputError
        A field is out of range; the message names it.
    """

    name: str
    a: BlockFormat
    b: BlockFormat
    rows: int
    columns: int
    groups: int
    dot: str = "merged"
    fraction_bits: int = DEFAULT_FRACTION_BITS
    rounding: str = "toward_zero"
    leading_zeros: str = "counted"
    pipeline: tuple[str, ...] = DEFAULT_PIPELINE
    numerics: str = "blackwell"
    largest_depth: int = DEFAULT_LARGEST_DEPTH
    accumulator: str = "carry_propagate"
    empty_blocks: str = "included"
    clock_gating: bool = False
    slot: str = NO_SLOT
    half_fraction_bits: int = DEFAULT_HALF_FRACTION_BITS
    half_scale: str = NO_HALF_SCALE

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", self.name):
            raise InputError(
                f"name = {self.name!r}: must start with a letter and hold only letters, digits, '-' and '_'"
                " (at most 64)"
            )
        if meaning := reserved(self.identifier):
            raise InputError(f"name = {self.name!r}: is {meaning}; choose another")
        for side in ("a", "b"):
            self._as_record(side)
        self._one_of("dot", tuple(DOTS))
        self._one_of("rounding", ROUNDINGS)
        self._one_of("leading_zeros", LEADING_ZEROS)
        self._one_of("empty_blocks", EMPTY_BLOCKS)
        self._one_of("slot", tuple(SLOTS))
        self._one_of("half_scale", HALF_SCALES)
        if not isinstance(self.clock_gating, bool):
            raise InputError(f"clock_gating = {self.clock_gating!r}: must be true or false")
        self._within("rows", range(1, 65))
        self._within("columns", range(1, 65))
        self._within("groups", range(1, 9))
        if not isinstance(self.pipeline, (tuple, list)):
            raise InputError(f"pipeline = {self.pipeline!r}: must be a list of {PIPELINE_REGISTERS}")
        for register in self.pipeline:
            if register not in PIPELINE_REGISTERS:
                raise InputError(
                    f"pipeline = {list(self.pipeline)}: {register!r} is not one of {', '.join(PIPELINE_REGISTERS)}"
                )
            if list(self.pipeline).count(register) > 1:
                raise InputError(f"pipeline = {list(self.pipeline)}: names {register!r} twice; name each register once")
        # One canonical order, so that equal configurations compare equal.
        ordered = tuple(register for register in PIPELINE_REGISTERS if register in self.pipeline)
        object.__setattr__(self, "pipeline", ordered)
        self._one_of("numerics", NUMERICS)
        self._one_of("accumulator", ACCUMULATORS)
        self._within("largest_depth", LARGEST_DEPTHS)
        for field in MEANINGLESS[self.numerics]:
            if (value := getattr(self, field)) != FIELDS[field].default:
                raise InputError(f"{field} = {value!r}: has no meaning with numerics = {self.numerics!r}; leave it out")
        for register in self.pipeline:
            if register not in REGISTERS[self.numerics]:
                raise InputError(
                    f"pipeline = {list(self.pipeline)}: {register!r} has no meaning with numerics = {self.numerics!r};"
                    " leave it out"
                )
        self._check_formats()
        self._check_slot()

    def _as_record(self, side: str) -> None:
        """Put the record in the place of a format's name."""
        value: object = getattr(self, side)
        if isinstance(value, BlockFormat):
            if BLOCK_FORMATS.get(value.name, value) != value:
                raise InputError(f"{side} = {value.name!r}: is another format of the catalogue; choose another name")
            return
        if not isinstance(value, str) or value not in BLOCK_FORMATS:
            raise InputError(f"{side} = {value!r}: must be one of {', '.join(BLOCK_FORMATS)}")
        object.__setattr__(self, side, BLOCK_FORMATS[value])

    def _check_formats(self) -> None:
        """Refuse formats that no datapath of these settings computes as the contract says."""
        a, b, bounds = self.a, self.b, self.bounds
        pair = f"a = {a.name!r}, b = {b.name!r}"
        if a.size != b.size:
            raise InputError(f"{pair}: have blocks of {a.size} and {b.size}; a step needs equal blocks")
        if a.sums != b.sums:
            raise InputError(f"{pair}: add up blocks in {a.sums} and {b.sums} sums; a step needs equal sums")
        if None not in (a.window, b.window) and a.window != b.window:
            raise InputError(f"{pair}: have windows of {a.window} and {b.window} bits; a step needs equal ones")
        if reason := DOTS[self.dot].supports(a, b):
            raise InputError(f"dot = {self.dot!r}: {reason}")
        if self.exact:
            if not bounds.exact_in_double:
                raise InputError(
                    f"{pair}, numerics = 'exact': blocks have longer sums than the golden model holds; give the"
                    " formats a 'scale' of fewer exponents, or narrower 'elements'"
                )
            assert self.largest_steps is not None
            if not bounds.exact_fits(self.largest_steps * self.sums):
                raise InputError(
                    f"{pair}: exponents of terms from {bounds.lowest_exponent} to {bounds.highest_exponent} are too far"
                    " from 0 for sums that FP32 holds; use a scale of another bias"
                )
            self._check_accumulator(pair)
            return
        self._check_steps(pair)

    def _check_accumulator(self, pair: str) -> None:
        """Refuse registers that exact sums of block sums do not have, and two words of what is one number."""
        chosen = f"accumulator = {self.accumulator!r}"
        if self.carry_save and not self.adds_sums:
            raise InputError(f"{chosen}: {pair} have scales, which multiply one number; use formats without")
        if self.carry_save and self.dot not in CARRY_SAVE:
            raise InputError(f"{chosen}: lanes dot = {self.dot!r} give one number; use {' or '.join(CARRY_SAVE)}")
        for register in self.pipeline:
            if register not in self.registers:
                raise InputError(
                    f"pipeline = {list(self.pipeline)}: {register!r} has no meaning with {chosen} for {pair}, which"
                    f" have no scales; give a pipeline of {', '.join(self.registers)}"
                )

    def _check_steps(self, pair: str) -> None:
        """Refuse formats that the accumulator which rounds every step has no hardware for."""
        bounds = self.bounds
        # What eight blocks allow; and up to Blackwell's number, where so many blocks as there are do.
        most = max(
            bounds.most_fraction_bits(),
            min(bounds.most_fraction_bits(self.groups), DEFAULT_FRACTION_BITS),
        )
        allowed = range(bounds.least_fraction_bits, most + 1)
        if bounds.term_width <= bounds.term_fraction:
            raise InputError(
                f"{pair}: terms of {bounds.term_width} bits, {bounds.term_fraction} of them of the fraction, do not fit"
                " the accumulator that rounds every step; use numerics = 'exact'"
            )
        if not allowed:
            fewer = "" if self.groups == 1 else ", or take fewer 'groups'"
            raise InputError(
                f"{pair}: a step of {self.depth} products has longer sums than the golden model adds without error;"
                f" give the formats narrower 'elements' or a shorter 'block'{fewer}"
            )
        try:
            self._within("fraction_bits", allowed)
        except InputError as error:
            raise InputError(f"{error} with {pair}") from None
        if self.wide and self.anticipated:
            raise InputError(
                f"leading_zeros = 'anticipated': {pair}: results may be subnormal, which ends their normalisation"
                " early; use 'counted'"
            )

    def _check_slot(self) -> None:
        """Refuse a slot that the rest does not allow, and what needs one without it."""
        if not self.slotted:
            for side in "ab":
                if self.form(side).by_step:
                    raise InputError(
                        f"{side} = {self.form(side).name!r}: steps say by their types which elements it has; it needs a"
                        " slot"
                    )
            if (bits := self.half_fraction_bits) != DEFAULT_HALF_FRACTION_BITS:
                raise InputError(f"half_fraction_bits = {bits!r}: has no meaning without a slot; leave it out")
            if self.half_scaled:
                raise InputError(f"half_scale = {self.half_scale!r}: has no meaning without a slot; leave it out")
            return
        if self.exact:
            raise InputError(f"slot = {self.slot!r}: needs numerics = 'blackwell', not {self.numerics!r}")
        if reason := unfit(self.slot, self.dot, self.a, self.b):
            raise InputError(f"slot = {self.slot!r}: {reason}")
        if self.wide:
            raise InputError(
                f"slot = {self.slot!r}: results of a = {self.a.name!r}, b = {self.b.name!r} may be subnormal or"
                " infinite, which its accumulator does not make"
            )
        self._within("half_fraction_bits", range(LEAST_HALF_FRACTION_BITS, self.fraction_bits + 1))
        self._check_half_scale()

    def _check_half_scale(self) -> None:
        """Refuse scales of rows at half the rate that the rest does not allow."""
        if not self.half_scaled:
            return
        if self.groups not in SCALED_GROUPS:
            allowed = f"{', '.join(map(str, SCALED_GROUPS[:-1]))} or {SCALED_GROUPS[-1]}"
            raise InputError(
                f"half_scale = {self.half_scale!r}: a scale is for {SCALED_ELEMENTS} elements, and a step has"
                f" {self.groups * self.slots}; use groups = {allowed}, not {self.groups}"
            )
        if self.anticipated:
            raise InputError(
                f"half_scale = {self.half_scale!r}: results may be subnormal, which ends their normalisation early; use"
                " leading_zeros = 'counted'"
            )

    def _one_of(self, field: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, field)
        if value not in allowed:
            raise InputError(f"{field} = {value!r}: must be one of {', '.join(allowed)}")

    def _within(self, field: str, allowed: range) -> None:
        value = getattr(self, field)
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            raise InputError(f"{field} = {value!r}: must be a whole number from {allowed[0]} to {allowed[-1]}")

    @cached_property
    def bounds(self) -> Bounds:
        """What follows from the pair of formats."""
        return Bounds(self.a, self.b)

    @property
    def formats(self) -> Formats:
        """Block formats of A and B."""
        return self.a, self.b

    def form(self, side: str) -> BlockFormat:
        """Block format of operand ``side``, ``a`` or ``b``."""
        return self.a if side == "a" else self.b

    @property
    def registers(self) -> tuple[str, ...]:
        """Pipeline registers that have a meaning."""
        without = {"factors"} if self.adds_sums else set()
        without |= {"sums", "aligned"} if self.carry_save else set()
        return tuple(register for register in REGISTERS[self.numerics] if register not in without)

    def takes(self, dot: str, *slots: str) -> bool:
        """Whether a micro-architecture of the dot product goes with the formats and one of some slots, or its own."""
        if self.carry_save and dot not in CARRY_SAVE:
            return False
        if DOTS[dot].supports(*self.formats) is not None:
            return False
        return any(unfit(slot, dot, *self.formats) is None for slot in slots or (self.slot,))

    @property
    def identifier(self) -> str:
        """The name as a Verilog identifier."""
        return self.name.replace("-", "_")

    @property
    def depth(self) -> int:
        """Elements along K that one step consumes, a block's times G."""
        return self.a.size * self.groups

    @property
    def sums(self) -> int:
        """Block sums of one output in one step, each of which becomes a term: G, or a multiple of it."""
        return self.groups * self.a.sums

    @property
    def wide(self) -> bool:
        """Whether the accumulator that rounds every step takes sums of any exponent, see `Bounds.wide`."""
        return not self.exact and self.bounds.wide(self.fraction_bits)

    @property
    def slotted(self) -> bool:
        """Whether steps are of FP4 or at half the rate, each as it says."""
        return self.slot != NO_SLOT

    @property
    def half_scaled(self) -> bool:
        """Whether rows of steps at half the rate have scales."""
        return self.half_scale != NO_HALF_SCALE

    @property
    def unbounded(self) -> bool:
        """Whether steps that are rounded may give subnormal and infinite results of any terms."""
        return self.wide or self.half_scaled

    @property
    def slots(self) -> int:
        """Products of a block at half the rate."""
        return self.a.size // 2

    @property
    def macs_per_step(self) -> int:
        """Multiply-accumulates of one step, M N times `depth`."""
        return self.rows * self.columns * self.depth

    @property
    def latency(self) -> int:
        """Clock cycles from the acceptance of a step to its result, without stalls."""
        return len(self.pipeline) + 1 + self.exact + self.carry_save

    @property
    def entrance(self) -> int:
        """Cycles from the acceptance of a step until it enters the accumulation loop, where a first step needs C."""
        behind = ("total", "normal") if self.exact else LOOP_REGISTERS
        return sum(register not in behind for register in self.pipeline)

    @property
    def foresees(self) -> bool:
        """Whether it is known a cycle ahead which steps enter the accumulation loop."""
        return self.interleave > 1 and self.entrance > 0

    @property
    def early_exponents(self) -> bool:
        """Whether the largest exponent of a step with a slot is found before the register ``factors``, not behind it.

        So it is where C is compared with it right behind that register. Blocks that take no part where they are empty
        are not known before.
        """
        beside = {"factors", "compared"} <= set(self.pipeline) and "terms" not in self.pipeline
        return beside and self.slotted and not self.excludes_empty

    @property
    def exact(self) -> bool:
        """Whether the accumulator is exact; it then has a register besides that of the result."""
        return self.numerics == "exact"

    @property
    def adds_sums(self) -> bool:
        """Whether block sums are added up exactly as they are: no block has a scale."""
        return self.exact and not any(form.has_scales for form in self.formats) and not self.bounds.exponent_bits

    @property
    def carry_save(self) -> bool:
        """Whether an exact accumulator holds two words, whose sum is made where a result is wanted."""
        return self.accumulator == "carry_save"

    @property
    def anticipated(self) -> bool:
        """Whether leading zeros are anticipated."""
        return self.leading_zeros == "anticipated"

    @property
    def excludes_empty(self) -> bool:
        """Whether blocks whose sum is zero take no part in the largest exponent."""
        return self.empty_blocks == "excluded"

    @property
    def largest_steps(self) -> int | None:
        """Most steps of one tile, from first to last; None if there is no limit."""
        return -(-self.largest_depth // self.depth) if self.exact else None

    @property
    def interleave(self) -> int:
        """Cycles of the accumulation loop, T: a step continues with the result of the T-th step before it."""
        return 1 if self.exact else 1 + sum(register in LOOP_REGISTERS for register in self.pipeline)

    def as_dict(self) -> dict[str, Any]:
        """The fields that have a meaning, ready for JSON; some only where they are not the default.

        With formats of a user's own there is also `DESCRIBED`, see `hwgen.config.from_dict`.
        """
        fields = {name: getattr(self, name) for name in FIELDS}
        fields |= {"a": self.a.name, "b": self.b.name, "pipeline": list(self.pipeline)}
        unsaid = MEANINGLESS[self.numerics] + (() if self.exact else ("numerics",))
        unsaid += () if self.anticipated else ("leading_zeros",)
        unsaid += () if self.excludes_empty else ("empty_blocks",)
        unsaid += () if self.carry_save else ("accumulator",)
        unsaid += () if self.clock_gating else ("clock_gating",)
        unsaid += () if self.slotted else ("slot", "half_fraction_bits")
        unsaid += () if self.half_scaled else ("half_scale",)
        described = {form.name: form.definition for form in self.formats if form.definition}
        said = {name: value for name, value in fields.items() if name not in unsaid}
        return {**said, DESCRIBED: described} if described else said


FIELDS = {field.name: field for field in dataclasses.fields(TensorCoreConfig)}
"""Fields by name."""
MEANINGLESS = {
    "blackwell": ("largest_depth", "accumulator"),
    "exact": ("fraction_bits", "rounding", "leading_zeros", "empty_blocks"),
}
"""Fields that say nothing about a core, by numerics."""

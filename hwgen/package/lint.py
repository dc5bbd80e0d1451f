"""Waivers for Verilator's lint of a core, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable

from hwgen.config import TensorCoreConfig
from hwgen.package.layout import Layout
from hwgen.package.wires import UNREAD

__all__ = ["quantiser_waivers", "waivers"]

# WIDTH stands for WIDTHEXPAND and WIDTHTRUNC too, which took its place in Verilator 5.008.
_RULES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "One file holds all modules of a core, and its name is that of the configuration.",
        (("DECLFILENAME", ""),),
    ),
    (
        "An operand of an adder or subtractor is narrower than the result: Verilog extends it with zeros (or\n"
        "with the sign, where $signed says so), which is what is meant. Assignments and ports are not waived.",
        tuple(("WIDTH", f"Operator {operator} expects * bits on the ?HS, but *") for operator in ("ADD", "SUB")),
    ),
    (
        "The carry out of an adder or the top bits of a shift, where they cannot be set; the source drops them.",
        tuple(
            ("UNUSEDSIGNAL", message)
            for message in (f"Signal is not used: '*{UNREAD}'*", f"Bits of signal are not used: '*{UNREAD}'[*")
        ),
    ),
    (
        "Bit 0 of a carry word is a bit that has another name as well, and is read under that name.",
        tuple(
            ("UNUSEDSIGNAL", f"Bits of signal are not used: '{name}'[0]*") for name in ("*_carry*", "carry", "last_y")
        ),
    ),
    (
        "All but the top bit of a block sum are read under the name of the output.",
        tuple(
            ("UNUSEDSIGNAL", f"Bits of signal are not used: '{name}'[*") for name in ("total", "sum_word", "below_word")
        ),
    ),
    (
        "Of a block sum less one all but the sign is read: that of the sum says which of both is meant.",
        (("UNUSEDSIGNAL", "Bits of signal are not used: 'below'[*"),),
    ),
    (
        "A number that others are compared with is written without the zeros above it.",
        tuple(
            ("WIDTH", f"Operator {operator} expects * bits on the RHS, but RHS's CONST *") for operator in ("GT", "GTE")
        ),
    ),
    (
        "The exponents of the terms need exponent and zero flag of the decoded scales, not the significand.",
        tuple(("UNUSEDSIGNAL", f"Bits of signal are not used: '{side}'[*") for side in "ab"),
    ),
    (
        "Of two exponents, a bit that always equals the one above it is read there.",
        tuple(("UNUSEDSIGNAL", f"Bits of signal are not used: '{name}'[*") for name in ("lead", "aligned_base")),
    ),
    (
        "Loops are looked for among whole words: where one part of a word is computed from another part of it,\n"
        "as in {carry, sum[2:0]} = ...; sum[3] = ~carry, there seems to be one. No bit depends on itself.",
        (("UNOPTFLAT", "Signal unoptimizable: Circular combinational logic: *"),),
    ),
)
_IGNORED_BITS = (
    "An operand without tags ignores bit 7 of its block scales.",
    (("UNUSEDSIGNAL", "Bits of signal are not used: 'step__payload'[*"),),
)

_SELECTORS = (
    "Bits of a block scale that select the kind of elements are read where elements are decoded.",
    tuple(("UNUSEDSIGNAL", f"Bits of signal are not used: '{name}'[*") for name in ("code", "scale*_code")),
)

_ZEROS = (
    "Above the term of a single group the carries of the two words before the last addition are zero.",
    (("UNUSEDSIGNAL", "Bits of signal are not used: 'addends_x'[*"),),
)

_COUNTS = (
    "Of a count of leading zeros, a bit that says whether a part is empty is read under that name.",
    (("UNUSEDSIGNAL", "Bits of signal are not used: 'groups*'[*"),),
)

_CONSTANTS = "The constants of the package are for the code around the core.", (("UNUSEDPARAM", ""),)

_QUANTISER = (
    ("One file holds all modules of a quantiser, and its name is that of the configuration.", (("DECLFILENAME", ""),)),
    (
        "An operand of an adder, subtractor or comparison is narrower than the result or the other: Verilog extends\n"
        "it with zeros (or with the sign, where $signed says so), which is what is meant. Assignments and ports are\n"
        "not waived.",
        tuple(
            ("WIDTH", f"Operator {operator} expects * bits on the ?HS, but *")
            for operator in ("ADD", "SUB", "EQ", "GT", "GTE", "GTS", "LTS", "LT")
        ),
    ),
    _RULES[2],
    (
        "The leading one of a quotient that is shifted by four places or more is not at the top any more.",
        (("UNUSEDSIGNAL", "Bits of signal are not used: 'lost4'[*"),),
    ),
    (
        "The last of the differences that say where a quotient begins is not negative. Of the difference of two sums\n"
        "of errors the sign alone is read.",
        (("UNUSEDSIGNAL", "Bits of signal are not used: 'difference*'[*"),),
    ),
    _RULES[-1],
)


def waivers(config: TensorCoreConfig) -> str:
    """Configuration file for Verilator with which the core, its wrappers and testbenches are silent under ``-Wall``.

    Parameters
    ----------
    config
        Tensor core configuration.
    """
    unread = any(form.scale_width < form.stored_scale_width for form in (config.a, config.b))
    selected = any(
        form.tagged and (form.by_step or not any(element.fold for element in form.elements)) for form in config.formats
    )
    zeros = "addends" in config.pipeline and config.sums == 1
    counts = config.numerics == "exact"
    rules = (
        *_RULES,
        *[_IGNORED_BITS] * unread,
        *[_ZEROS] * zeros,
        *[_SELECTORS] * selected,
        *[_COUNTS] * counts,
    )
    package = f"{Layout(config).types}.sv"
    return _text(config.name, ", its wrappers and testbenches", rules) + "\n" + _waived(package, *_CONSTANTS)


def quantiser_waivers(name: str) -> str:
    """Such a file for the quantiser of a name."""
    return _text(name, "", _QUANTISER)


def _text(name: str, more: str, rules: Iterable[tuple[str, tuple[tuple[str, str], ...]]]) -> str:
    head = f"// Waivers for {name}.v{more}, as Verilator reads them.\n\n`verilator_config\n"
    return "\n".join([head, *(_waived(f"{name}.v", *rule) for rule in rules)])


def _waived(file: str, reason: str, waived: tuple[tuple[str, str], ...]) -> str:
    """Lines for one reason: of the file with and without folders before it, and of no other whose name ends so."""
    lines = [f"// {line}" for line in reason.split("\n")]
    for rule, message in waived:
        match = f' -match "{message}"' if message else ""
        lines += [f'lint_off -rule {rule} -file "{each}"{match}' for each in (file, f"*/{file}")]
    return "\n".join(lines) + "\n"

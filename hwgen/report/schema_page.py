"""The page on the JSON of reports, made of the records' docstrings.

``python -m hwgen.report.schema_page > docs/report-schema.md`` writes it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import types
import typing
from typing import Any

from hwgen.report import schema

__all__ = ["described", "main", "page"]

_COLUMNS = 120

_METRICS = {
    "`area`": "sum of the cell areas of the library, over all runs",
    "`smallest area`": "the same with the smallest run of each block; no core of one run need have it, and one that is"
    " built for a clock might miss it",
    "`sequential area`, `sequential share`": "flip-flops alone, and their share of the area",
    "`clock gate area`": "clock gates alone, where a design has them; they are in the area of the block that holds"
    " them, and not in the sequential area",
    "`cells`": "number of cells",
    "`critical path`, `maximum clock`": "longest path of the static timing analysis (register to register with setup,"
    " and from and to the ports), and its inverse; of an element in a core that was closed, the longest from a register"
    " of an element to one of the same",
    "`leakage power`, `dynamic power`, `total power`": "at the clock of the conditions, glitches included, on tensors"
    " quantised to each design's own format; dynamic is all but leakage",
    "`wire length`": "um of signals' wire, Steiner trees times the detour, of placed netlists; a net counts for the"
    " block that drives it",
    "`internal power`, `switching power`, `wires power`, `clock power`, `clock tree power`": "parts of dynamic power:"
    " internal energy of the cells, charging of pins, charging of wires (in reports from before the two were told"
    " apart, `switching power` has both), clock pins of flip-flops and clock gates with both, buffers of the"
    " estimated tree",
    "`clock power, idle`, `clock tree power, idle`": "the same of a core that is offered no step, where a design has"
    " clock gates; else they are as at work",
    "`total power, same operands`": "with tensors in the baseline's format: the same bits for both designs",
    "`total power, no glitches`": "every net toggles at most once a cycle",
    "`energy per MAC`": "total power over the rate of multiply-accumulates",
    "`dynamic power, half rate`, `leakage power, half rate`, `total power, half rate`,"
    " `total power, no glitches, half rate`, `energy per MAC, half rate`": "the same of element and core in steps of"
    " FP8, of two cores with a slot; a step has half as many multiply-accumulates",
}

_SCHEMAS = [
    "| schema | of |",
    "| --- | --- |",
    "| `overhead`, `exploration`, `power`, `cost`, `formats`, `libraries`, `quantisers`, `layer` | the reports |",
    "| `manifest` | `NAME.json` of [`hwgen verilog`](verilog.md) |",
    "| `quantiser-manifest` | `NAME.json` of [`hwgen quantiser verilog`](quantiser.md) |",
    "| `vectors` | the text `about` in the `.npz` file of [`hwgen verify`](verification.md) |",
    "| `mutation` | `mutation.json` of [`make mutate`](proofs.md) |",
    "| `mutation-quantiser` | `mutation-quantiser.json` of [`make mutate-quantisers`](proofs.md) |",
    "| `mutation-figures` | `reports/mutation-figures.json` of `make mutate-figures` |",
    "| `configs`, `error`, `place`, `replay`, `simulate`, `verify`, `verilog` | what it prints with `--json` |",
    "| `quantiser-verify`, `quantiser-verilog` | what `hwgen quantiser verify` and `verilog` print with `--json` |",
]


def described(record: type) -> dict[str, str]:
    """What the docstring of a record says of each field, by its name, as one line."""
    text = inspect.getdoc(record) or ""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    for names, meaning in re.findall(r"^(\w[\w, -]*)\n((?:    .*\n?)+)", section, re.MULTILINE):
        words = " ".join(meaning.split()).rstrip(".")
        found |= dict.fromkeys(names.split(", "), words[0].lower() + words[1:] if words[1:2].islower() else words)
    return found


def _form(form: Any) -> str:
    """An annotation in words."""
    plain = {str: "text", float: "number", int: "integer", bool: "true or false"}
    if form in plain:
        return plain[form]
    origin, given = typing.get_origin(form), typing.get_args(form)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (each for each in given if each is not type(None))
        return f"{_form(inner)} or null"
    if form is Any:
        return "anything"
    if origin is tuple:
        return f"list of {_form(given[0])}"
    if origin is not None:
        return f"object of {_form(given[1])}"
    return f"[{form.__name__}](#{form.__name__.lower()})"


def _records(form: Any) -> list[type]:
    """Records that an annotation names, in the order they are met, and those that they name."""
    if dataclasses.is_dataclass(form) and isinstance(form, type):
        if form is schema.Design:
            return [form]
        inner = typing.get_type_hints(form)
        return [form, *(each for field in dataclasses.fields(form) for each in _records(inner[field.name]))]
    return [each for part in typing.get_args(form) for each in _records(part)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _COLUMNS, break_long_words=False, break_on_hyphens=False)


def _item(name: str, form: str, meaning: str) -> list[str]:
    text = f"- {name} ({form}): {meaning}." if form else f"- {name}: {meaning}."
    first, *rest = textwrap.wrap(text, _COLUMNS - 2, break_long_words=False, break_on_hyphens=False)
    return [first, *(f"  {line}" for line in rest)]


def _fields(record: type) -> list[str]:
    hints = typing.get_type_hints(record)
    meanings = described(record)
    return [
        line
        for field in dataclasses.fields(record)
        for line in _item(f"`{field.name}`", _form(hints[field.name]), meanings[field.name])
    ]


def page() -> str:
    """The page as Markdown."""
    kinds = [
        line for each in schema.REPORTS.values() for line in _item(f"`{each.kind}`", f"`{each.command}`", _line(each))
    ]
    lines = [
        "# JSON reports",
        "",
        "<!-- Made by `python -m hwgen.report.schema_page` from the records in hwgen/report/schema.py. -->",
        "",
        *_wrapped(
            "Every measurement is one JSON document. Tables and plots are made from it alone"
            " (`hwgen report FILE.json`), so whatever they show is in it. Each record below is a JSON object: its keys,"
            " their form, and what they mean. An *object of* something has names as keys, of designs, blocks, scopes or"
            " the like: the text says which. Numbers are finite."
        ),
        "",
        *_wrapped(
            "JSON Schema files of the reports, and of all else that hwgen writes as JSON, are in"
            " [hwgen/report/schemas](../hwgen/report/schemas/overhead-5.json): `NAME-VERSION.json`,"
            " draft 7. An installed hwgen has them, too:"
            ' `importlib.resources.files("hwgen.report") / "schemas"`. They are made from the same records'
            " (`python -m hwgen.cli.schemas`), and the tests validate with them whatever is committed or printed. A"
            " version grows when a key changes its meaning or goes. A new key may come along without one."
        ),
        "",
        *_SCHEMAS,
        "",
        "Three keys stand first in every report:",
        "",
        *_item("`schema`", "", f'`"{schema.SCHEMA}"`'),
        *_item("`version`", "", f"{schema.SCHEMA_VERSION}; it changes when a key changes its meaning or goes"),
        *_item("`kind`", "", "one of the following, with the command that writes it"),
        "",
        *kinds,
    ]
    seen: set[type] = set()
    for report in schema.REPORTS.values():
        lines += ["", f"## {report.__name__}", "", *_wrapped(f"{_line(report)[0].upper()}{_line(report)[1:]}."), ""]
        lines += _fields(report)
        for record in _records(report)[1:]:
            if record in seen:
                continue
            seen.add(record)
            lines += ["", f"### {record.__name__}", "", *_wrapped(_summary(record)), ""]
            if record is schema.Design:
                lines += _wrapped("An object with every field of the configuration that has a meaning for it, by name.")
            else:
                lines += _fields(record)
            if record is schema.Figure:
                lines += ["", "Metrics:", ""]
                lines += [line for name, meaning in _METRICS.items() for line in _item(name, "", meaning)]
    return "\n".join(lines) + "\n"


def _summary(record: type) -> str:
    return " ".join((inspect.getdoc(record) or "").partition("\n\n")[0].split())


def _line(record: type) -> str:
    words = _summary(record).rstrip(".")
    return words[0].lower() + words[1:]


def main() -> None:
    """Print the page."""
    print(page(), end="")


if __name__ == "__main__":
    main()

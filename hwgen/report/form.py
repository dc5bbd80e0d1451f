"""What all reports have in common: the schema of their JSON, how numbers look, the conditions of the flow."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hwgen.errors import InputError

__all__ = ["SCHEMA", "SCHEMA_VERSION", "flow_lines", "json_text", "load", "number", "percent", "table"]

SCHEMA = "hwgen-report"
SCHEMA_VERSION = 3
"""Version of the JSON schema, see ``docs/report-schema.md``."""


def json_text(report: dict[str, Any]) -> str:
    """A report as text."""
    return json.dumps(report, indent=2) + "\n"


def load(path: Path) -> dict[str, Any]:
    """Read a report.

    Raises
    ------
    InputError
        Unreadable, not JSON, or not a report of this schema and version.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"), parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise InputError(f"report {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"report {str(path)!r}: not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise InputError(f"report {str(path)!r}: not a report of hwgen (schema {SCHEMA!r})")
    if report.get("version") != SCHEMA_VERSION:
        raise InputError(
            f"report {str(path)!r}: schema version {report.get('version')!r}; this hwgen reads {SCHEMA_VERSION}"
        )
    for key in ("kind", "designs", "conditions", "results"):
        if key not in report:
            raise InputError(f"report {str(path)!r}: {key!r} is missing; write it anew")
    return report


def _finite(text: str) -> float:
    """A number; infinities and NaN, which Python reads and JSON has not, are none."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value


def number(value: float) -> str:
    """A figure with four digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def percent(estimate: dict[str, float | None]) -> str:
    """An estimate in percent, with its interval if it has one."""
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if value is None:
        return ""
    if low is None or high is None:
        return f"{_rounded(value, 1):+.1f} %"
    return f"{_rounded(value, 2):+.2f} % [{_rounded(low, 2):+.2f}, {_rounded(high, 2):+.2f}]"


def _rounded(value: float, digits: int) -> float:
    # Adding 0 makes the zero of a tiny negative value a plain one.
    return round(100 * value, digits) + 0.0


def table(header: list[str], rows: list[list[str]], numbers: int) -> list[str]:
    """Lines of a Markdown table whose last ``numbers`` columns are right-aligned."""
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    return ["| " + " | ".join(row) + " |" for row in (header, rule, *rows)]


def flow_lines(conditions: dict[str, Any]) -> list[str]:
    """Library, recipes, timing and tools as Markdown list items."""
    library, tools = conditions["library"], conditions["tools"]
    avoided = f" (without {', '.join(library['dont_use'])})" if library["dont_use"] else ""
    return [
        f"- Library: {library['name']}, {library['cells']} cells in use{avoided}, {library['voltage']:g} V,"
        f" sha256 {library['sha256'][:16]}.",
        f"- Synthesis: {tools['synthesis']}; then at most {conditions['largest_fanout']} loads on a net."
        " Recipes to choose from, module by module:",
        *(
            f"  - `{how['name']}` ({how['purpose']}): {how['carry']} carries; `{'; '.join(how['abc'])}`"
            for how in conditions["recipes"]
        ),
        f"- Timing: {conditions['wire_load_ff_per_fanout']:.3g} fF of wire per fanout, input slew"
        f" {conditions['input_slew_ns']:.3g} ns, output load {conditions['output_load_ff']:.3g} fF, ideal clock.",
        f"- Tools: hwgen {tools['hwgen']}, Amaranth {tools['amaranth']}, numpy {tools['numpy']},"
        f" Python {tools['python']}.",
    ]

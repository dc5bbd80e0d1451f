"""Print the tables of docs/quantiser.md: how far a hardware quantiser is from the float64 quantiser.

    python examples/quantiser.py                   # drawn tensors
    python examples/quantiser.py --model minilm    # and weights and activations of a trained model; some minutes

A cell has the noise over that of the float64 quantiser, in dB, and the share of equal scale bytes, in percent.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from sim import accuracy
from sim.accuracy.hardware import TABLES, Distance, Table, distances
from sim.tensors import KINDS, Tensor, generate


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables that are asked for; return the exit status."""
    parser = argparse.ArgumentParser(description="Print the tables of docs/quantiser.md.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(map(repr, TABLES))}; all by default")
    parser.add_argument("--model", choices=["minilm"], help="also of a trained model (extra 'workloads')")
    parser.add_argument("--rows", type=int, default=accuracy.SHAPE[0], help="rows of drawn tensors")
    options = parser.parse_args(arguments)
    known = ", ".join(map(repr, TABLES))
    wrong = [f"{name!r}: no such table; there are {known}" for name in options.tables if name not in TABLES]
    if options.rows < 1:
        wrong.append(f"--rows {options.rows}: must be 1 or more")
    if wrong:
        print(wrong[0], file=sys.stderr)
        return 2
    inputs: dict[str, Mapping[str, Tensor]] = {
        kind: {kind: generate(kind, (options.rows, accuracy.SHAPE[1]), accuracy.SEED)} for kind in KINDS
    }
    if options.model:
        trained = accuracy.minilm_model()
        inputs |= {"weights": trained.weights, "activations": trained.activations}
    for name in options.tables or TABLES:
        table = TABLES[name]
        found = {kind: distances(tensors, table.cases) for kind, tensors in inputs.items()}
        print(f"\n### {name}\n")
        print("\n".join(lines(table, found)))
    return 0


def lines(table: Table, found: Mapping[str, Sequence[Distance]]) -> list[str]:
    """Return a table in Markdown: of each case the distances by kind of tensors."""
    ends = ["at worst", "own scale"] if table.scale_varies else []
    header = ["quantiser", table.varies, *found, *ends]
    result = [f"| {' | '.join(header)} |", f"| --- | --- |{' ---: |' * (len(header) - 2)}"]
    for index, case in enumerate(table.cases):
        row = [distance[index] for distance in found.values()]
        # Bytes of one format do not compare with those of another.
        shares = [f", {100 * each.equal:.2f}" if case.goal is None else "" for each in row]
        cells = [f"{each.decibels:.3f}{share}" for each, share in zip(row, shares, strict=True)]
        if table.scale_varies:
            default = max((each.from_default for each in row), key=abs)
            cells += [f"{max(each.worst for each in row):.3f}", f"{default:+.3f}"]
        target = case.target
        name = target.format if target.rule == "nearest" else target.rule
        result.append(f"| `{name}` | {case.label} | {' | '.join(cells)} |")
    return result


if __name__ == "__main__":
    raise SystemExit(main())

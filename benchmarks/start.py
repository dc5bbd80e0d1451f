"""CPU time that a start of ``hwgen`` takes: version, help, completion."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from hwgen.files import write_text

STARTS = {
    "--version": (["--version"], {}),
    "--help": (["--help"], {}),
    "simulate --help": (["simulate", "--help"], {}),
    "compare --help": (["compare", "--help"], {}),
    "cost --help": (["cost", "--help"], {}),
    "configs --json": (["configs", "--json"], {}),
    "completion of a command": ([], {"COMP_WORDS": "hwgen ", "COMP_CWORD": "1"}),
    "completion of an option": ([], {"COMP_WORDS": "hwgen compare --", "COMP_CWORD": "2"}),
}


def seconds(arguments: list[str], completion: dict[str, str]) -> float:
    """User and system time of one start."""
    environment = {**os.environ, **completion, **({"_HWGEN_COMPLETE": "bash_complete"} if completion else {})}
    code = "import sys; sys.argv[0] = 'hwgen'; from hwgen.__main__ import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--runs", type=int, default=5, help="starts of each, of which the median counts")
    arguments = parser.parse_args()

    figures = {}
    for name, start in STARTS.items():
        figures[name] = statistics.median(seconds(*start) for _ in range(arguments.runs))
        print(f"{name:24} {figures[name]:6.2f} s of CPU")
    if arguments.json:
        write_text(arguments.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

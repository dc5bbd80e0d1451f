"""The schema files: of the records as they are, and good for what is committed. Commands' own tests check the rest."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import fastjsonschema
import numpy as np
import pytest

from hwgen.cli import cli
from hwgen.cli.schemas import DIRECTORY, WRITTEN, files
from hwgen.config import NAMED
from sim import verify

ROOT = Path(__file__).parents[3]
REPORTS = sorted((ROOT / "reports").glob("*.json"))

Conforms = Callable[[str, Any], None]


def _content(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_files_are_of_the_records() -> None:
    """If not: python -m hwgen.cli.schemas, and remove the files of old versions."""
    assert {path.name: path.read_text(encoding="utf-8") for path in DIRECTORY.iterdir()} == files()


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_committed_reports_conform(path: Path, conforms: Conforms) -> None:
    content = _content(path)
    conforms(content.get("kind", path.stem), content)


def test_committed_manifests_conform(conforms: Conforms) -> None:
    paths = sorted((ROOT / "rtl_out").glob("*.json"))
    assert len(paths) == len(NAMED)
    for path in paths:
        conforms("manifest", _content(path))


def test_configurations_have_what_the_table_has(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run("configs", "--json")
    assert status == 0
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows.keys() == NAMED.keys()
    _, table, _ = run("configs")
    for name, row in rows.items():
        (line,) = (line for line in table.splitlines() if f" {name} " in line)
        words = line.replace("│", " ").split()
        expected = [name, row["a"], row["b"], str(row["rows"]), "x", str(row["columns"])]
        assert words == [*expected, *(str(row[key]) for key in ("groups", "macs_per_step", "latency"))]


def test_vectors_conform(tmp_path: Path, conforms: Conforms) -> None:
    path = tmp_path / "v.npz"
    core = NAMED["mixfp4-small"]
    verify.save(path, verify.stimulus_of(core, 1, 0, 16), {"seed": 1})
    with np.load(path) as held:
        conforms("vectors", json.loads(str(held["about"])))


@pytest.mark.parametrize("name", WRITTEN)
def test_something_else_does_not_conform(name: str, conforms: Conforms) -> None:
    for other in ({}, [{}], None):
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            conforms(name, other)


def test_a_wrong_figure_or_key_does_not_conform(conforms: Conforms) -> None:
    content = _content(ROOT / "reports" / "overhead.json")
    for path, value in ((("version",), 4), (("conditions", "runs"), 1.5), (("conditions", "more"), 1)):
        wrong = json.loads(json.dumps(content))
        place = wrong
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            conforms("overhead", wrong)


def _printing(group: click.Group, path: str) -> Iterator[str]:
    """Commands with ``--json``, as they are written in a shell."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _printing(command, f"{path} {name}")
        elif any(parameter.name == "as_json" for parameter in command.params):
            yield f"{path} {name}"


def test_every_command_with_json_has_a_schema() -> None:
    with click.Context(cli) as context:
        commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    group = click.Group(commands={name: each for name, each in commands.items() if each and name != "synth"})
    names = [
        name for title in (each.title for each in WRITTEN.values()) for name in re.findall(r"hwgen [\w -]+", title)
    ]
    said = {name.partition(" --")[0].strip() for name in names}
    printing = set(_printing(group, "hwgen"))
    assert len(printing) > 15
    assert printing <= said


def test_a_page_names_every_schema() -> None:
    text = (ROOT / "docs" / "report-schema.md").read_text(encoding="utf-8")
    named = [name for line in text.splitlines() if line.startswith("| `") for name in re.findall(r"`([a-z-]+)`", line)]
    assert {*WRITTEN} <= {*named}

"""The page docs/reference/cli.md, from the commands themselves.

::

    python -m hwgen.cli.reference > docs/reference/cli.md
"""

from __future__ import annotations

import inspect

import click

from hwgen.cli import cli

__all__ = ["page"]

_HEAD = """# The command line

Written by `python -m hwgen.cli.reference`; a test fails where it is old.

`hwgen` is one command with a sub-command for each task. Bad input is one line on standard error.

| status | what it says |
| ---: | --- |
| 0 | done |
| 1 | a bit differs, a tool failed, a coverage goal was not met (`--complete`), or a disk is full |
| 2 | bad input; the line says which, and what would be right |
| 130 | interrupted |

Long work shows its progress on standard error: bars on a terminal, elsewhere a line a minute.

## Shell completion

| shell | line for its start-up file |
| --- | --- |
| bash 4.4 or newer (`~/.bashrc`) | `eval "$(_HWGEN_COMPLETE=bash_source hwgen)"` |
| zsh (`~/.zshrc`) | `eval "$(_HWGEN_COMPLETE=zsh_source hwgen)"` |
| fish (`~/.config/fish/completions/hwgen.fish`) | `_HWGEN_COMPLETE=fish_source hwgen \\| source` |

It completes commands, options, the names that an option takes, and files. Every command has `--help`, or `-h`.
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(context: click.Context, command: click.Command) -> str:
    name = context.command_path.partition(" ")[2]
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## hwgen {name}", "", f"`hwgen {name} {usage}`", "", inspect.cleandoc(command.help or ""), ""]
    if isinstance(command, click.Group):
        inner = [_section(click.Context(each, context, name), each) for name, each in sorted(command.commands.items())]
        return "\n".join([*lines, *inner])
    records = [record for option in command.params if (record := option.get_help_record(context))]
    lines += ["| option | what |", "| --- | --- |"]
    lines += [f"| `{_cell(option)}` | {_cell(words)} |" for option, words in records]
    return "\n".join([*lines, ""])


def page() -> str:
    """The text of the page."""
    context = click.Context(cli, info_name="hwgen")
    sections = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        if command.name == name:
            sections.append(_section(click.Context(command, context, name), command))
        else:
            sections.append(f"## hwgen {name}\n\nThe same as [`hwgen {command.name}`](#hwgen-{command.name}).\n")
    return "\n".join([_HEAD, *sections])


if __name__ == "__main__":
    click.echo(page(), nl=False)

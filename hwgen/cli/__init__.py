"""The ``hwgen`` command: the group of commands, and the exit status.

==========  ===================================================================
module      what it holds
==========  ===================================================================
types       what an option accepts: numbers with bounds, directories, names
options     options that several commands share
output      tables on standard output, progress on standard error
study       what the commands that synthesise two designs have in common
reference   the page docs/reference/cli.md, written from the parser
NAME        the command ``hwgen NAME``, its function called ``command``
==========  ===================================================================

Every start passes through here, that of ``--version`` and of shell completion too. So neither this module nor a
command's imports numpy, or anything that does: a command's function imports what it needs when it is called.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from difflib import get_close_matches
from importlib import import_module

import click

from hwgen import __version__
from hwgen.errors import InputError, ToolError
from hwgen.files import OF_THE_MACHINE

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = {
    name: name
    for name in (
        "compare",
        "configs",
        "cost",
        "diagram",
        "error",
        "explore",
        "formats",
        "layer",
        "place",
        "power",
        "quantiser",
        "replay",
        "report",
        "simulate",
        "site",
        "verify",
        "verilog",
    )
} | {"synth": "compare"}
"""Module of each command."""

_HALF_LINE = 1000


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"hwgen.cli.{COMMANDS[cmd_name]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = get_close_matches(args[0], self.list_commands(ctx), 1)
        if near and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="hwgen")
def cli() -> None:
    """RTL generator and hardware cost model for NVFP4 and MixFP4 tensor cores."""


def main() -> None:
    """Run the command line; bad input is one line and status 2, see `hwgen.errors`."""
    # Python has no file for a stream that was closed before it began.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (it is for the whole run)
    # An ended run takes its tools with it, however it is ended; what nohup has it ignore stays ignored.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    # joblib says so where a process that has grown is replaced between two tasks. Nothing is lost.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    try:
        status = cli.main(prog_name="hwgen", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        status = 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        status = _say("interrupted", 130)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "hwgen"
        status = _say(f"{error.format_message()} (see {command} --help)", 2)
    except click.ClickException as error:
        status = _say(error.format_message(), 2)
    except (InputError, ToolError) as error:
        status = _say(str(error), error.status)
    except _imported(("sim.golden", "ArgumentError")) as error:
        status = _say(str(error), 2)
    except MemoryError:
        status = _say("out of memory: the input is too large for this machine; give a smaller one", 2)
    except _imported(("concurrent.futures.process", "BrokenProcessPool"), ("distributed.scheduler", "KilledWorker")):
        status = _say(
            "a process at work was ended from outside, most likely since memory ran out; give fewer --jobs; what was"
            " built before is kept",
            1,
        )
    except BrokenPipeError:
        # Whoever read has seen enough; keep the interpreter from flushing into the void.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except OSError as error:
        # Another path may be better; what the machine does not take, or standard output, no other input would mend.
        named = error.filename is not None and error.errno not in OF_THE_MACHINE
        status = _say(f"{error.strerror or error}: {error.filename or 'standard output'}", 2 if named else 1)
    sys.exit(status if isinstance(status, int) else 0)


def _imported(*kinds: tuple[str, str]) -> tuple[type[Exception], ...]:
    """Errors by module and name, of those modules that were needed at all: no start is to import them."""
    return tuple(getattr(sys.modules[module], name) for module, name in kinds if module in sys.modules)


def _say(message: str, status: int) -> int:
    line = " ".join(message.split())
    if len(line) > 2 * _HALF_LINE:  # it quotes a file, and what stands there may be of any length
        line = f"{line[:_HALF_LINE]} ... {line[-_HALF_LINE:]}"
    click.echo(f"hwgen: {line}", err=True)
    return status

"""The ``hwgen`` command, also as ``python -m hwgen``."""

import os
import signal

__all__ = ["main"]


def _interrupted(*_: object) -> None:
    os.write(2, b"\nhwgen: interrupted\n")  # behind the terminal's ^C, as click does it
    os._exit(130)


def main() -> None:
    """Run the command line."""
    # What it imports takes seconds; an exception that surfaces somewhere in there gives pages of traceback.
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, _interrupted)
    from hwgen import cli

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()

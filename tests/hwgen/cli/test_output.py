import io
import re
import sys
import time

import pytest

from hwgen.cli import output


def test_a_line_a_minute_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """The work need not come to a next step for it."""
    monkeypatch.setattr(output, "_MINUTE", 0.05)
    with output.progress() as update:
        update("syntheses", 1200, 4000)
        ended = time.monotonic() + 30
        err = ""
        while err.count("\n") < 2 and time.monotonic() < ended:
            time.sleep(0.01)
            err += capsys.readouterr().err
    assert set(err.splitlines()) == {"hwgen: syntheses: 1,200 of 4,000 after 0 min"}
    assert err.count("\n") >= 2


def test_short_work_says_nothing(capsys) -> None:
    with output.progress() as update:
        update("steps", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with output.progress() as update:
        for done in range(5):
            update("syntheses", done, 8)
            time.sleep(0.05)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert re.search(r"syntheses .* [34]/8 \d:\d\d:\d\d left \d:\d\d:\d\d", shown), shown


def test_a_table_in_a_pipe_is_as_wide_as_it_must_be(capsys) -> None:
    output.print_table(["name", "value"], [["x" * 90, "1"], ["y", "20"]])
    out, err = capsys.readouterr()
    assert "x" * 90 in out
    assert err == ""

"""A command that is ended while it writes leaves whole files, old or new, and the next run works.

The moments are chosen, not drawn: after each file is begun, half written and written, before and after each
renaming. One child imports hwgen and is forked for each moment. ``HWGEN_FUZZ`` (or ``make fuzz``) makes it all
moments with all signals.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from joblib import Parallel, delayed

from hwgen import cli

REPORTS = Path(__file__).parents[2] / "reports"
EVERYTHING = bool(os.environ.get("HWGEN_FUZZ"))

DRIVER = r"""
import dataclasses, json, os, signal, sys
from pathlib import Path

import numpy as np

import hwgen.files
from hwgen import cli
from hwgen.cells import libraries, reader
from hwgen.cli import study
from hwgen.mapping.cache import Cache
from hwgen.measure import overhead, power
from hwgen.measure.explore import study as explore
from hwgen.measure.workloads import cost
from hwgen.package import contents
from hwgen.report import check, kinds
from sim import engines, gemm, verify

reports, place, everything = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "1"

# What takes long and writes nothing is left out, done once, or taken from the committed reports.
contents.texts = lambda config, clock: {
    f"{config.name}{end}": f"a text{end}" for end in (".v", ".json", "/Makefile", "/sim.f")
}
# A shell that starts a job in the background lets it ignore this.
signal.signal(signal.SIGINT, signal.default_int_handler)
for kind, form in kinds.FORMS.items():
    kinds.FORMS[kind] = dataclasses.replace(form, png=lambda report: b"a picture")
check.findings = lambda report: []
kept = {"compare": "overhead.json", "explore": "overhead.json", "power": "power.json"}
# Of what is kept, reports alone are there: how they are shown, and what the code is, are made anew.
study._shown = lambda report, stem, *_: study._Shown.of(report, stem)
def entry(self, key):
    return json.loads((reports / kept[sys.argv[1]]).read_text()) if self.directory.name == "synthesis" else None
Cache.get = entry
Cache.put = lambda self, key, body: None
cells = reader.load(libraries.path("generic7"))
reader.load = lambda paths: cells

class Wrong:
    "A core whose results are wrong in a bit."
    name = "python"
    def __init__(self, config, name):
        self.config = config
    def run(self, steps, **streams):
        cycles = np.arange(len(steps))
        return engines.Run(steps.expected() ^ 1, len(steps), np.zeros((2,) * 6, np.int64), cycles, cycles[steps.first])
engines.engine = Wrong
found = {"verify": 1, "simulate": 1}  # status where it ends by itself

moment = [0, None, None]  # how many there were, when to end, and by what
def now():
    moment[0] += 1
    if moment[0] == moment[1]:
        os.kill(os.getpid(), moment[2])

class Halves:
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()
    def write(self, content):
        half = len(content) // 2
        self.file.write(content[:half])
        self.file.flush()
        now()
        self.file.write(content[half:])

replace = os.replace
def begun(name, mode):
    file = open(name, mode)
    now()
    return Halves(file)
def renamed(*names):
    now()
    replace(*names)
    now()

def hwgen_command(command):
    sys.argv = ["hwgen", *command]
    try:
        cli.main()
    except SystemExit as ended:
        sys.stdout.flush()
        return ended.code

def run(command, end=None, by=None):
    "Exit status and standard error of the command in a process of its own."
    child = os.fork()
    if not child:
        hwgen.files.open, os.replace = begun, renamed
        moment[:] = [0, end, by]
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os._exit(hwgen_command(command))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (place / "err").read_text()

def files():
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}

def check(command):
    "Try the moments of a command; how many."
    given = files()
    own = found.get(command[0], 0)
    assert hwgen_command(command) == own
    whole = files()
    ended, err = run(command)
    assert (ended, bool(err)) == (own, bool(own)), err
    assert files() == whole
    moments = 4 * len(whole.keys() - given.keys())
    old = {name: content if name in given else b"old " + name.encode() for name, content in whole.items()}
    tried = 0
    for by, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 130), (signal.SIGINT, 130)):
        for end in range(1, moments + 1):
            if not everything and end not in {1, 2, 3 + int(by) % max(moments - 4, 1), moments - 2, moments}:
                continue
            for name in files():
                Path(name).unlink()
            for name, content in (old if end % 3 else given).items():
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_bytes(content)
            status, err = run(command, end, by)
            assert status == code, (by, end, status, err)
            assert err.strip() == ("" if by == signal.SIGKILL else "hwgen: interrupted"), (by, end, err)
            left = files()
            partial = {name for name in left if Path(name).name.startswith(".") and name.endswith(".partial")}
            assert by == signal.SIGKILL or not partial, (by, end, partial)
            for name in left.keys() - partial:
                assert left[name] in (whole[name], old[name]), (by, end, name)
            assert hwgen_command(command) == own
            after = files()
            assert {name: after[name] for name in after.keys() - partial} == whole, (by, end)
            tried += 1
    return tried

tried = {}
for number, command in enumerate(json.load(sys.stdin)):
    out = place / f"out put {number}"
    out.mkdir()
    os.chdir(out)
    if command[0] == "report":
        Path("r.json").write_bytes((reports / "power.json").read_bytes())
    try:
        tried[command[0]] = check(command)
    except AssertionError as error:
        raise AssertionError(f"{command[0]}: {error}") from error
print(json.dumps(tried), file=sys.stderr)
"""

COST = ("cost", "--gemms", "../own.csv", "--config", "nvfp4-small", "--report", "../measured.json", "--timeloop")
COMMANDS = (
    ("verilog", "../tiny.toml", "../other.toml", "--out", "."),
    ("compare", "--out", "."),
    ("explore", "--out", "."),
    ("power", "--out", "."),
    (*COST, "--out", "."),
    ("report", "r.json"),
    ("simulate", "--config", "../tiny.toml", "--m", "1", "--n", "1", "--k", "16", "--save", "all.npz"),
    ("verify", "--config", "../tiny.toml", "--macs", "2e3", "--jobs", "1", "--out", "."),
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_an_ended_command_leaves_whole_files(tmp_path: Path, own_cache: Callable[[Path], dict[str, str]]) -> None:
    for config in ("tiny", "other"):
        (tmp_path / f"{config}.toml").write_text('a = "mixfp4"\nb = "mixfp4"\nrows = 1\ncolumns = 1\ngroups = 1\n')
    (tmp_path / "own.csv").write_text("name,m,n,k\nfirst,10,20,30\n")
    (tmp_path / "measured.json").write_bytes((REPORTS / "overhead.json").read_bytes())
    environment = {**own_cache(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", DRIVER, REPORTS, tmp_path, "1" if EVERYTHING else "0"]
    done = subprocess.run(
        list(map(str, command)), input=json.dumps(COMMANDS), env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tried = json.loads(done.stderr.splitlines()[-1])
    assert list(tried) == [command for command, *_ in COMMANDS]
    assert min(tried.values()) >= 12


def test_interrupted_while_it_starts(tmp_path: Path) -> None:
    """Imports take seconds; Ctrl-C in there is one line as well."""
    guard = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Guard:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'hwgen.cli':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Guard())\n"
        "from hwgen.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", guard], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nhwgen: interrupted\n")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP on this system")
def test_what_nohup_has_it_ignore_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["hwgen", "configs", "--json"])
    before = {name: signal.signal(name, signal.SIG_DFL) for name in (signal.SIGHUP, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with pytest.raises(SystemExit):
            cli.main()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_process_that_is_gone_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A system without memory left ends the largest process, not the command."""

    def command(**given: object) -> None:
        Parallel(n_jobs=2)(delayed(_end)() for _ in range(2))

    monkeypatch.setattr(cli.cli, "main", command)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("hwgen: a process at work was ended from outside")


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

"""Kills commands at random moments and looks at what they leave.

    python tools/kill_storm.py [--kills 1000] [--jobs 4] [--slower 1] [--command NAME]... [--seed 0] [--json FILE]

Every round starts one command of tests/trust/fault_commands.py, sends it SIGKILL, SIGTERM or SIGINT after a random time
(up to what it took without one, times `--slower` on a busy machine), and then checks: its outputs are as they were or
whole, nothing that it started is alive, no temporary file is left (after SIGKILL only folders that a next run removes),
and the same command works in the same place afterwards (on a sample of the rounds). Every fifth command is started as a
user does, so that signals meet imports too; the others are forked from a process that has imported everything. Prints a
table by command; exit code 1 if anything was broken, alive or left.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import random
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.trust.fault_commands import COMMANDS, Command  # noqa: E402
from tests.trust.fault_states import State, broken_units, missing, says_partial, state  # noqa: E402

import insight_trace  # noqa: E402
from insight_trace.__main__ import main as tool  # noqa: E402
from insight_trace.scratch import PREFIX  # noqa: E402

TOOL = [sys.executable, "-m", "insight_trace"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MARK = "INSIGHT_TRACE_STORM"
Row = dict[str, object]
_STARTED = 5  # every so many rounds the command is started and not forked
_AGAIN = 10  # every so many rounds it is run again
_POOLED = ("profile",)  # has processes of its own
_NOT_MOVED = ("runs prune",)  # its index holds the places of runs
# a dead tool's children are killed by the system; a capture's runner first ends its dump
_GONE_SECONDS = 10.0
_SUBREAPER = 36  # prctl: orphans become children of this process


@dataclass(frozen=True)
class Prepared:
    """A command that was run without a signal: what it finds, what it gives, and how long it takes."""

    command: Command
    template: Path | None  # None: what it finds cannot be copied
    good: tuple[State, State]
    started_seconds: float
    forked_seconds: float


def import_everything() -> None:
    """So that a forked command has nothing left to import."""
    for module in pkgutil.walk_packages(insight_trace.__path__, "insight_trace."):
        with contextlib.suppress(Exception):
            importlib.import_module(module.name)


def begun(words: Sequence[str], folder: Path, said: Path, mark: str, *, fork: bool) -> int:
    """The process of a command, which writes what it says to a file; its temporary files are its own."""
    temporary = temporary_of(folder)
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, MARK: mark, "INSIGHT_TRACE_SANDBOX": "default", "TMPDIR": str(temporary)}
    if not fork:
        with said.open("wb") as file:
            return subprocess.Popen(
                [*TOOL, *words], env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=file
            ).pid
    # a signal between the fork and the block below would go through all of this program
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS[1:])
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS[1:])
        return pid
    code = 99
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS[1:])
        os.environ.update(environment)
        tempfile.tempdir = None  # found anew
        os.chdir(folder)
        file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        null = os.open(os.devnull, os.O_RDWR)
        for ours, theirs in ((null, 0), (null, 1), (file, 2)):
            os.dup2(ours, theirs)
        code = tool(list(words))
    except KeyboardInterrupt:  # before or after the command line handles it, as __main__ does
        code = 130
    except BaseException as wrong:
        os.write(2, f"Traceback insight_trace/: {type(wrong).__name__}: {wrong}".encode())
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
            for thread in threading.enumerate():  # as an interpreter does that ends
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join(_GONE_SECONDS)
        os._exit(code)


def temporary_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.tmp")


def left_over(folder: Path, *, killed: bool) -> list[str]:
    """Temporary files that nobody would remove."""
    return [path.name for path in temporary_of(folder).iterdir() if not (killed and _is_for_the_next(path))]


def _is_for_the_next(path: Path) -> bool:
    """Whether a next run removes it. Python's own try whether it can write there is a file of four bytes."""
    return path.name.startswith(PREFIX) or (path.is_file() and path.stat().st_size <= 4)


def ended(words: Sequence[str], folder: Path, *, fork: bool = True) -> tuple[int, float, bytes]:
    """Exit code, time and words of a command that nobody disturbs."""
    said = folder.with_name(f"{folder.name}.said")
    begin = time.monotonic()
    status = os.waitpid(begun(words, folder, said, "none", fork=fork), 0)[1]
    seconds = time.monotonic() - begin
    told = said.read_bytes()
    said.unlink()
    return os.waitstatus_to_exitcode(status), seconds, told


def fill(folder: Path, command: Command) -> None:
    """What the command finds, made where it will run."""
    folder.mkdir(parents=True)
    for step in command.before:
        if callable(step):
            step(folder)
        elif (done := ended(step, folder))[0]:
            raise SystemExit(f"{step}: {done}")


def put(folder: Path, command: Command, template: Path | None) -> None:
    """The same, copied where it can be."""
    if template is None:
        fill(folder, command)
    else:
        shutil.copytree(template, folder, symlinks=True)


def prepared(name: str, root: Path, places: Sequence[Path]) -> Prepared:
    """Two runs, at places that are as deep as that of a round and have names as long: outputs may hold them."""
    command = COMMANDS[name]
    template = None if name in _NOT_MOVED else root / f"template-{name}"
    if template is not None:
        fill(template, command)
    good, seconds = [], []
    for place, fork in zip(places, (False, True), strict=True):  # the first may compile
        put(place, command, template)
        code, took, said = ended(command.words, place, fork=fork)
        if code:
            raise SystemExit(f"{name}: {code} {said.decode(errors='replace')}")
        seconds.append(took)
        good.append(state(place, command))
        shutil.rmtree(place)
    return Prepared(command, template, (good[0], good[1]), seconds[0], seconds[1])


def alive(mark: str) -> list[str]:
    """Processes that bear the mark of a round, and orphans of it; what has ended is put away."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    wanted = f"{MARK}={mark}".encode()
    orphans = set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if entry.name in orphans or wanted in (entry / "environ").read_bytes().split(b"\0"):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found.append(
                        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
                    )
        except OSError:
            continue
    return found


def drawn(number: int, seed: int, names: Sequence[str]) -> tuple[str, random.Random]:
    """The command of a round, and the dice for the rest of it."""
    dice = random.Random(f"{seed}-{number}")
    return dice.choice(names), dice


def one(
    number: int, names: Sequence[str], table: dict[str, Prepared], root: Path, options: argparse.Namespace
) -> Row:
    seed = options.seed
    name, dice = drawn(number, seed, names)
    tried = table[name]
    command, sent = tried.command, SIGNALS[number % 3]
    folder, mark = root / f"{number:06}", f"{os.getpid()}-{seed}-{number}"
    said = root / f"{number}.said"
    put(folder, command, tried.template)
    given = state(folder, command)
    fork = number % _STARTED != 0
    pid = begun(command.words, folder, said, mark, fork=fork)
    time.sleep(dice.uniform(0, (tried.forked_seconds if fork else tried.started_seconds) * options.slower))
    ended_before = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    os.kill(pid, sent)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    end = time.monotonic() + _GONE_SECONDS
    while (living := alive(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    row: Row = {"name": name, "signal": sent.name, "hit": ended_before is None, "alive": living, "said": ""}
    now = state(folder, command)
    partial = code != 0 and says_partial(folder)
    row["broken"] = [] if partial else broken_units(now, given, tried.good, command)
    text = said.read_bytes() if said.exists() else b""
    if row["broken"]:
        row["code"], row["told"] = code, text.decode(errors="replace")[-400:]
        if options.keep is not None:
            shutil.copytree(folder, options.keep / f"{seed}-{number}", symlinks=True)
    if b"Traceback" in text and b"insight_trace/" in text and sent != signal.SIGKILL:
        row["said"] = text.decode(errors="replace")[-400:]
    row["hidden"] = [p.name for p in folder.iterdir() if p.name.startswith(".") and sent != signal.SIGKILL]
    # processes of a pool are killed, whatever the signal
    row["left"] = left_over(folder, killed=sent == signal.SIGKILL or name in _POOLED)
    if number % _AGAIN == 0 and code != 0 and not partial and missing(now, tried.good):
        again, _, text = ended(command.words, folder, fork=fork)
        row["again"] = again or len(missing(state(folder, command), tried.good))
        if row["again"]:
            row["said"] = text.decode(errors="replace")[-400:]
    for place in (folder, temporary_of(folder)):
        shutil.rmtree(place, ignore_errors=True)
    said.unlink(missing_ok=True)
    return row


def rows_of(
    options: argparse.Namespace, names: Sequence[str], table: dict[str, Prepared], root: Path
) -> Iterator[Row]:
    """Rounds in as many processes as are asked for, each with one round at a time."""
    chosen = selectors.DefaultSelector()
    begin, workers = time.monotonic(), []
    for worker in range(options.jobs):
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
            os.close(reading)
            for number in range(worker, options.kills, options.jobs):
                if options.seconds is not None and time.monotonic() - begin > options.seconds:
                    break
                row = one(number, names, table, root, options)
                os.write(writing, json.dumps(row).encode() + b"\n")
            os._exit(0)
        os.close(writing)
        workers.append(pid)
        chosen.register(os.fdopen(reading), selectors.EVENT_READ)
    while chosen.get_map():
        for key, _ in chosen.select():
            line = key.fileobj.readline()  # type: ignore[union-attr]
            if line:
                yield json.loads(line)
            else:
                chosen.unregister(key.fileobj)
    for pid in workers:
        if os.waitpid(pid, 0)[1]:
            raise SystemExit("a process of the storm failed")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--slower", type=float, default=1.0, help="than a quiet machine is this one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--command", action="append", choices=tuple(COMMANDS), help="only this one (repeatable)"
    )
    parser.add_argument("--seconds", type=float, help="stop after this time, however many kills that were")
    parser.add_argument("--keep", type=Path, help="a folder for copies of what was found broken")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # a shell's background job ignores SIGINT, and what it starts does, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import_everything()
    owner, root = os.getpid(), Path(tempfile.mkdtemp(prefix="insight-trace-storm-"))
    try:
        names = options.command or list(COMMANDS)
        wanted = {drawn(number, options.seed, names)[0] for number in range(options.kills)}
        places = [root / f"{number:06}" for number in (options.kills, options.kills + 1)]
        table = {name: prepared(name, root, places) for name in names if name in wanted}
        rows = []
        for row in rows_of(options, names, table, root):
            rows.append(row)
            if row["broken"] or row["alive"] or row["said"] or row["hidden"] or row["left"]:
                print(json.dumps(row), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1) + "\n")
    finally:
        if os.getpid() == owner:  # not a command that a signal got out of its block
            shutil.rmtree(root, ignore_errors=True)
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row in rows:
        count = counts[str(row["name"]), str(row["signal"])]
        count["kills"] += 1
        count["hit"] += bool(row["hit"])
        count["broken"] += bool(row["broken"])
        count["alive"] += bool(row["alive"])
        count["hidden"] += bool(row["hidden"])
        count["left"] += bool(row["left"])
        count["tracebacks"] += bool(row["said"]) and "again" not in row
        count["again"] += "again" in row
        count["again failed"] += bool(row.get("again"))
    columns = ("kills", "hit", "broken", "alive", "hidden", "left", "tracebacks", "again", "again failed")
    print(f"{'command':28}{'signal':10}" + "".join(f"{c:>13}" for c in columns))
    total: collections.Counter[str] = collections.Counter()
    for (name, sent), count in sorted(counts.items()):
        total.update(count)
        print(f"{name:28}{sent:10}" + "".join(f"{count[c]:>13}" for c in columns))
    print(f"{'all':38}" + "".join(f"{total[c]:>13}" for c in columns))
    return (
        1 if any(total[c] for c in ("broken", "alive", "hidden", "left", "tracebacks", "again failed")) else 0
    )


if __name__ == "__main__":
    sys.exit(main())

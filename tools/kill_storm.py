"""Kills commands at random moments and looks at what they leave.

    python tools/kill_storm.py [--kills 1000] [--jobs 4] [--slower 1] [--command NAME]... [--seed 0] [--json FILE]

Every round starts one command of tests/trust/fault_commands.py, sends it SIGKILL, SIGTERM or SIGINT after a random time
(up to what it took without one, times `--slower` on a busy machine), and then checks: its outputs are as they were or
whole, nothing that it started is alive, and the same command works in the same place afterwards (on a sample of the
rounds). Prints a table by signal and command; exit code 1 if anything was broken or alive.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.trust.fault_commands import COMMANDS, Command  # noqa: E402
from tests.trust.fault_states import State, broken_units, missing, says_partial, state  # noqa: E402

TOOL = [sys.executable, "-m", "insight_trace"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MARK = "INSIGHT_TRACE_STORM"
_NOT_MOVED = ("runs prune",)  # its index holds the places of runs
_GONE_SECONDS = (
    10.0  # a dead tool's children are killed by the system; a capture's runner first ends its dump
)


@dataclass(frozen=True)
class Prepared:
    """A command that was run twice without a signal: what it finds, what it gives, and how long it takes."""

    command: Command
    template: Path | None  # None: what it finds cannot be copied
    good: tuple[State, State]
    seconds: float


def fill(folder: Path, command: Command) -> None:
    """What the command finds, made where it will run."""
    folder.mkdir(parents=True)
    for step in command.before:
        if callable(step):
            step(folder)
        else:
            subprocess.run([*TOOL, *step], cwd=folder, check=True, capture_output=True)


def put(folder: Path, command: Command, template: Path | None) -> None:
    """The same, copied where it can be."""
    if template is None:
        fill(folder, command)
    else:
        shutil.copytree(template, folder, symlinks=True)


def prepared(name: str, folder: Path) -> Prepared:
    command = COMMANDS[name]
    template = None if name in _NOT_MOVED else folder / "template"
    if template is not None:
        fill(template, command)
    good, seconds = [], 0.0
    for number in range(2):  # the first may compile
        place = folder / str(number)
        put(place, command, template)
        begin = time.monotonic()
        subprocess.run([*TOOL, *command.words], cwd=place, check=True, capture_output=True)
        seconds = time.monotonic() - begin
        good.append(state(place, command))
        shutil.rmtree(place)
    return Prepared(command, template, (good[0], good[1]), seconds)


def alive(mark: str) -> list[str]:
    """Processes that bear the mark of a round."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
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
    number: int, seed: int, names: Sequence[str], table: dict[str, Prepared], root: Path, slower: float
) -> dict[str, object]:
    name, dice = drawn(number, seed, names)
    tried = table[name]
    command, sent = tried.command, SIGNALS[number % 3]
    folder, mark = root / str(number), f"{os.getpid()}-{seed}-{number}"
    put(folder, command, tried.template)
    given = state(folder, command)
    environment = {**os.environ, MARK: mark, "INSIGHT_TRACE_SANDBOX": "default"}
    process = subprocess.Popen(
        [*TOOL, *command.words], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(dice.uniform(0, tried.seconds * slower))
    hit = process.poll() is None
    process.send_signal(sent)
    _, said = process.communicate()
    end = time.monotonic() + _GONE_SECONDS
    while (left := alive(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    row: dict[str, object] = {"name": name, "signal": sent.name, "hit": hit, "alive": left, "said": ""}
    now = state(folder, command)
    partial = process.returncode != 0 and says_partial(folder)
    row["broken"] = [] if partial else broken_units(now, given, tried.good, command)
    if b"Traceback" in said and b"insight_trace/" in said and sent != signal.SIGKILL:
        row["said"] = said.decode(errors="replace")[-400:]
    row["hidden"] = [p.name for p in folder.iterdir() if p.name.startswith(".") and sent != signal.SIGKILL]
    if number % 10 == 0 and process.returncode != 0 and not partial and missing(now, tried.good):
        again = subprocess.run([*TOOL, *command.words], cwd=folder, capture_output=True, text=True)
        row["again"] = again.returncode or len(missing(state(folder, command), tried.good))
        if row["again"]:
            row["said"] = again.stderr[-400:]
    shutil.rmtree(folder, ignore_errors=True)
    return row


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
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="insight-trace-storm-"))
    try:
        names = options.command or list(COMMANDS)
        wanted = {drawn(number, options.seed, names)[0] for number in range(options.kills)}
        table = {name: prepared(name, root / f"prepared-{name}") for name in names if name in wanted}
        rows, begin = [], time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            waiting = set()
            numbers = iter(range(options.kills))
            while True:
                late = options.seconds is not None and time.monotonic() - begin > options.seconds
                while (
                    len(waiting) < options.jobs and not late and (number := next(numbers, None)) is not None
                ):
                    waiting.add(pool.submit(one, number, options.seed, names, table, root, options.slower))
                if not waiting:
                    break
                done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
                rows += [each.result() for each in done]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row in rows:
        count = counts[str(row["name"]), str(row["signal"])]
        count["kills"] += 1
        count["hit"] += bool(row["hit"])
        count["broken"] += bool(row["broken"])
        count["alive"] += bool(row["alive"])
        count["hidden"] += bool(row["hidden"])
        count["tracebacks"] += bool(row["said"]) and "again" not in row
        count["again"] += "again" in row
        count["again failed"] += bool(row.get("again"))
        if row["broken"] or row["alive"] or row["said"] or row["hidden"]:
            print(json.dumps(row), flush=True)
    columns = ("kills", "hit", "broken", "alive", "hidden", "tracebacks", "again", "again failed")
    print(f"{'command':28}{'signal':10}" + "".join(f"{c:>13}" for c in columns))
    total: collections.Counter[str] = collections.Counter()
    for (name, sent), count in sorted(counts.items()):
        total.update(count)
        print(f"{name:28}{sent:10}" + "".join(f"{count[c]:>13}" for c in columns))
    print(f"{'all':38}" + "".join(f"{total[c]:>13}" for c in columns))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(total[c] for c in ("broken", "alive", "tracebacks", "again failed")) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Ends commands at random moments, or lets their calls that change a file fail, and checks what they leave.

    python tools/interrupt_commands.py kills [60] [--command NAME]... [--seed 0]
    python tools/interrupt_commands.py faults [6] [--command NAME]...

`kills` sends SIGKILL, SIGTERM or SIGINT to so many commands of tests/trust/interrupted.py, each after a random part of its
time; after every fourth the command runs again in the same place. `faults` lets so many calls of each command fail, one in
each run (tests/trust/faults.c): no room (ENOSPC), a broken device (EIO), no permission (EACCES) or SIGKILL, in turns. With
0 every call is tried. Wrong is an output that is neither as it was nor whole, a process that lives on, an error that nobody
reports, a next run that fails. Exit code 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import collections
import errno
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.trust.interrupted import COMMANDS, HERE, Trial  # noqa: E402

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES, "kill": -1}
_AGAIN = 4
Tried = tuple[str, list[str] | None]  # what was done, and what was wrong; None: it had ended before


def killed(trial: Trial, sent: signal.Signals, part: float, mark: str, *, again: bool) -> Tried:
    """A signal after a part of the time that the command takes."""
    trial.restore()
    child = trial.start(trial.command.words, mark)
    time.sleep(part * trial.seconds)
    hit = child.poll() is None
    if hit:
        child.send_signal(sent)
    said = child.communicate(timeout=120)[0].decode(errors="replace")
    wrong = trial.wrong(child.returncode, "" if sent == signal.SIGKILL else said, mark, again=again)
    return sent.name, wrong if hit or wrong else None


def kills(trial: Trial, count: int, dice: random.Random) -> Iterator[Tried]:
    for turn in range(count):
        mark = f"{os.getpid()}-{trial.folder}-{turn}"
        yield killed(trial, SIGNALS[turn % 3], dice.random(), mark, again=turn % _AGAIN == 0)


def faults(trial: Trial, points: int) -> Iterator[Tried]:
    """At so many of the calls that change a file."""
    shim = trial.folder.parent / "faults.so"
    words = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(shim), str(HERE / "faults.c"), "-ldl"]
    subprocess.run(words, check=True)
    calls = _with_fault(trial, shim)[2]
    step = max(1, calls // points) if points else 1
    for number, at in enumerate(sorted({*range(1, calls + 1, step), calls} - {0})):
        fault, mark = list(FAULTS)[number % len(FAULTS)], f"{trial.folder}-{at}"
        code, said, _ = _with_fault(trial, shim, at, FAULTS[fault], mark)
        yield f"call {at}, {fault}", trial.wrong(code, said, mark, again=True)


def _with_fault(
    trial: Trial, shim: Path, at: int = 0, error: int = 0, mark: str = ""
) -> tuple[int, str, int]:
    """Exit code, what was said, and how many calls change a file, of one run in which the call `at` fails."""
    count = shim.with_suffix(".count")
    count.unlink(missing_ok=True)
    trial.restore()
    armed = {
        "LD_PRELOAD": str(shim),
        "FAULT_AT": str(at),
        "FAULT_ERROR": str(error),
        "FAULT_COUNT": str(count),
    }
    if trial.command.within:
        armed["FAULT_IN"] = trial.command.within
    child = trial.start(trial.command.words, mark, **armed)
    said = child.communicate(timeout=600)[0].decode(errors="replace")
    counted = count.read_text() if count.is_file() else ""  # nothing in it: no such call was made
    return child.returncode, said, int(counted or 0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("kills", "faults"))
    parser.add_argument("count", type=int, nargs="?", help="60 kills in all, 6 faults of each command")
    parser.add_argument(
        "--command", action="append", choices=tuple(COMMANDS), help="only this one (repeatable)"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # a shell's background job ignores SIGINT, and what it starts does, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dice, names = random.Random(options.seed), options.command or list(COMMANDS)
    rounds = dict.fromkeys(names, 6 if options.count is None else options.count)
    if options.what == "kills":
        rounds = collections.Counter(dice.choice(names) for _ in range(options.count or 60))
    total: collections.Counter[str] = collections.Counter()
    print(f"{'command':28}{options.what:>8}{'hit':>8}{'wrong':>8}")
    for name, count in rounds.items():
        mine: collections.Counter[str] = collections.Counter()
        with tempfile.TemporaryDirectory(prefix="insight-trace-interrupted-") as root:
            trial = Trial(name, Path(root))
            for done, wrong in kills(trial, count, dice) if options.what == "kills" else faults(trial, count):
                mine.update(tried=1, hit=int(wrong is not None), wrong=int(bool(wrong)))
                if wrong:
                    print(f"    {done}: {'; '.join(wrong)}", flush=True)
        total += mine
        print(f"{name:28}{mine['tried']:>8}{mine['hit']:>8}{mine['wrong']:>8}", flush=True)
    print(f"{'all':28}{total['tried']:>8}{total['hit']:>8}{total['wrong']:>8}")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Ends commands at random moments and looks at what they leave.

    python tools/kill_storm.py [--kills 60] [--command NAME]... [--seed 0]

Every round starts a command of tests/trust/interrupted.py, sends it SIGKILL, SIGTERM or SIGINT after a random part of the
time that it takes, and checks: its outputs are as they were or whole, nothing that it started is alive, no temporary file is
left (after SIGKILL only what a next run removes), and, every fourth time, that the same command works in the same place.
Prints a table; exit code 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.trust.interrupted import COMMANDS, Trial  # noqa: E402

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_AGAIN = 4


def killed(
    trial: Trial, sent: signal.Signals, part: float, mark: str, *, again: bool
) -> tuple[bool, list[str]]:
    """Whether the command still ran when the signal came, and what was wrong afterwards."""
    trial.restore()
    child = trial.start(trial.command.words, mark)
    time.sleep(part * trial.seconds)
    hit = child.poll() is None
    if hit:
        child.send_signal(sent)
    said = child.communicate(timeout=120)[0].decode(errors="replace")
    return hit, trial.wrong(child.returncode, "" if sent == signal.SIGKILL else said, mark, again=again)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--command", action="append", choices=tuple(COMMANDS), help="only this one (repeatable)"
    )
    options = parser.parse_args()
    # a shell's background job ignores SIGINT, and what it starts does, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dice = random.Random(options.seed)
    names = options.command or list(COMMANDS)
    rounds = collections.Counter(dice.choice(names) for _ in range(options.kills))
    total: collections.Counter[str] = collections.Counter()
    print(f"{'command':28}{'kills':>7}{'hit':>6}{'wrong':>7}")
    with tempfile.TemporaryDirectory(prefix="insight-trace-storm-") as root:
        for number, (name, kills) in enumerate(sorted(rounds.items())):
            trial = Trial(name, Path(root) / str(number))
            count: collections.Counter[str] = collections.Counter()
            for turn in range(kills):
                sent, mark = SIGNALS[(number + turn) % 3], f"{os.getpid()}-{number}-{turn}"
                hit, wrong = killed(trial, sent, dice.random(), mark, again=(number + turn) % _AGAIN == 0)
                count.update(kills=1, hit=int(hit), wrong=int(bool(wrong)))
                for what in wrong:
                    print(f"    {sent.name}: {what}", flush=True)
            total += count
            print(f"{name:28}{count['kills']:>7}{count['hit']:>6}{count['wrong']:>7}", flush=True)
    print(f"{'all':28}{total['kills']:>7}{total['hit']:>6}{total['wrong']:>7}")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

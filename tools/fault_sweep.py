"""Lets calls of every command that change a file fail, one in each run, and looks at what is left.

    python tools/fault_sweep.py [--command NAME]... [--points 6]

At a call: no room (ENOSPC), a broken device (EIO), no permission (EACCES) or SIGKILL, in turns; `--points 0` tries every
call. Two runs without a fault tell what the outputs are. Prints a table; exit code 1 if an output was neither as it was nor
whole, a process lived on, an error was not reported, or the next run in the same place failed.
"""

from __future__ import annotations

import argparse
import errno
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.trust.interrupted import COMMANDS, HERE, Trial  # noqa: E402

FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES, "kill": -1}


def compiled_shim(folder: Path) -> Path | None:
    """faults.c as a library to preload; None without a C compiler."""
    if shutil.which("gcc") is None:
        return None
    made = folder / "faults.so"
    words = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(made), str(HERE / "faults.c"), "-ldl"]
    subprocess.run(words, check=True)
    return made


def calls_of(trial: Trial, shim: Path, at: int = 0, error: int = 0, mark: str = "") -> tuple[int, str, int]:
    """Exit code, what was said, and how many calls change a file, of one run in which the call `at` fails."""
    count = shim.with_name(f"{shim.stem}.count")
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


def swept(
    name: str, shim: Path, folder: Path, points: int
) -> tuple[int, Iterator[tuple[int, str, list[str]]]]:
    """How many calls there are, and for each that is tried: which, with which fault, and what was wrong."""
    trial = Trial(name, folder)
    count = calls_of(trial, shim)[2]
    step = max(1, count // points) if points else 1
    chosen = sorted({*range(1, count + 1, step), count} - {0})

    def rows() -> Iterator[tuple[int, str, list[str]]]:
        for number, at in enumerate(chosen):
            fault = list(FAULTS)[number % len(FAULTS)]
            mark = f"{folder.name}-{at}"
            code, said, _ = calls_of(trial, shim, at, FAULTS[fault], mark)
            yield at, fault, trial.wrong(code, said, mark, again=True)

    return count, rows()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--command", action="append", choices=tuple(COMMANDS), help="only this one (repeatable)"
    )
    parser.add_argument(
        "--points", type=int, default=6, help="calls of each command (%(default)s); 0: every one"
    )
    options = parser.parse_args()
    tried = bad = 0
    with tempfile.TemporaryDirectory(prefix="insight-trace-faults-") as root:
        shim = compiled_shim(Path(root))
        if shim is None:
            sys.exit("gcc is needed")
        print(f"{'command':28}{'calls':>7}{'faults':>8}{'wrong':>8}")
        for number, name in enumerate(options.command or COMMANDS):
            calls, rows = swept(name, shim, Path(root) / str(number), options.points)
            found = list(rows)
            wrong = [row for row in found if row[2]]
            print(f"{name:28}{calls:>7}{len(found):>8}{len(wrong):>8}", flush=True)
            for at, fault, what in wrong:
                print(f"    call {at}, {fault}: {'; '.join(what)}", flush=True)
            tried, bad = tried + len(found), bad + len(wrong)
            shutil.rmtree(Path(root) / str(number), ignore_errors=True)
    print(f"{'all':35}{tried:>8}{bad:>8}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

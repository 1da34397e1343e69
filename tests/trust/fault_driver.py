"""Runs one command again and again, each time with another call failing; prints what came of it as JSON lines.

python fault_driver.py NAME FOLDER turn|all POINTS - with faults.so preloaded. NAME is one of fault_commands, POINTS how
many calls are tried (0: every one). One process imports everything and forks for each run.
"""

import contextlib
import ctypes
import errno
import importlib
import io
import json
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

from insight_trace.__main__ import main
from tests.trust.fault_commands import COMMANDS, TURN
from tests.trust.fault_states import broken_units, everything, missing, says_partial, state

HANGS = 98
FAULTS = (("ENOSPC", errno.ENOSPC), ("EIO", errno.EIO), ("EACCES", errno.EACCES), ("kill", -1))
_SUBREAPER = 36  # prctl: orphans become children of this process
_MOST_SECONDS = 400.0  # of one run
_SOMETIMES = 8
_SETTLED_SECONDS = 15.0  # a dead capture's runner still writes its manifest


def _once(words: tuple[str, ...], folder: Path, at: int, error: int) -> tuple[int, str, int, list[str]]:
    """Exit code (negative: signal), what it said, how many calls were made, and the modules that it imported."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.chdir(folder)
        said, printed = io.StringIO(), io.StringIO()
        faults = ctypes.CDLL(None)
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
            faults.fault_arm(ctypes.c_long(at), error)
            try:
                code = main(list(words))
            except BaseException as wrong:
                code = 99
                print(f"Traceback: {type(wrong).__name__}: {wrong}", file=sys.stderr)
            count = faults.fault_count()
            faults.fault_arm(ctypes.c_long(0), 0)
        text = said.getvalue()[:2000] or printed.getvalue()[-2000:]
        told = json.dumps([code, text, count, [] if at else list(sys.modules)]).encode()
        while told:
            told = told[os.write(writing, told) :]
        os._exit(0)
    os.close(writing)
    if not select.select([reading], [], [], _MOST_SECONDS)[0]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        return HANGS, f"still running after {_MOST_SECONDS:g} s", 0, []
    with os.fdopen(reading, "rb") as file:
        told = file.read()
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return -os.WTERMSIG(status), "", 0, []
    code, text, count, modules = json.loads(told)
    return code, text, count, modules


def _left() -> int:
    """How many processes of a run are alive when they had time to end; they are ours, as their parent is gone."""
    end = time.monotonic() + _SETTLED_SECONDS
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
        except ChildProcessError:
            return 0
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    return len(children)


# --- the runs ---------------------------------------------------------------------------------------------


def _restored(folder: Path, template: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)
    for piece in Path(os.environ["TMPDIR"]).iterdir():
        shutil.rmtree(piece, ignore_errors=True) if piece.is_dir() else piece.unlink(missing_ok=True)


def run(name: str, folder: Path, kinds: str, points: int) -> None:
    command = COMMANDS[name]
    template = folder.with_name("given")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    folder.mkdir()
    for step in command.before:
        if callable(step):
            step(folder)
        elif (told := _once(step, folder, 0, 0))[0] != 0:
            raise SystemExit(f"{step}: {told[:2]}")
    folder.rename(template)
    _restored(folder, template)
    given, untouched = state(folder, command), everything(folder)
    begin = time.monotonic()
    code, said, count, modules = _once(command.words, folder, 0, 0)
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    first = state(folder, command)
    _restored(folder, template)
    code, said, count, _ = _once(command.words, folder, 0, 0)
    good = (first, state(folder, command))
    changed = sorted(unit for unit in {*given, *first} if first.get(unit) != given.get(unit))
    seconds = time.monotonic() - begin
    print(
        json.dumps({"calls": count, "code": code, "said": said, "units": changed, "seconds": seconds}),
        flush=True,
    )
    step_size = max(1, count // points) if points else 1
    for number, at in enumerate(sorted({*range(1, count + 1, step_size), count} - {0})):
        chosen = (FAULTS[number % len(FAULTS)],) if kinds == TURN else FAULTS
        for fault, error in chosen:
            _restored(folder, template)
            begin = time.monotonic()
            code, said, made, _ = _once(command.words, folder, at, error)
            seconds = round(time.monotonic() - begin, 2)
            left = _left()
            now = state(folder, command)
            broken = broken_units(now, given, good, command)
            if code == 0:
                unit, words = command.warned
                excused = {unit} if unit and words in said and now.get(unit) == given.get(unit) else set()
                broken += [unit for unit in missing(now, good) if unit not in {*broken, *excused}]
            partial = bool(code and broken) and says_partial(folder)
            broken = [] if partial else broken
            # the next run, which always follows such a one, has to turn it into the whole output
            told = bool(code == 1 and broken and command.tells) and command.tells(folder)
            broken = [] if told else broken
            again, then = None, []
            # where no file was left or changed, the next run is one without a fault: some of these are run, too
            wanted = told or everything(folder) != untouched or number % _SOMETIMES == 0
            if code != 0 and not partial and wanted and (command.again or missing(now, good)):
                again, more, _, _ = _once(command.words, folder, 0, 0)
                _left()
                then = missing(state(folder, command), good)
                said += more if again else ""
            row = {"at": at, "fault": fault, "code": code, "said": said, "again": again, "then": then}
            row |= {"left": left, "broken": broken, "seconds": seconds, "reached": code < 0 or made >= at}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))

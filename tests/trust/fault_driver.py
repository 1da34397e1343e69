"""Runs one command again and again, each time with another call failing; prints what came of it as JSON lines.

python fault_driver.py FOLDER POINTS WORDS... - with faults.so preloaded. "{}" in WORDS is the output's place.
POINTS is "all" or how many calls to try. One process imports everything and forks for each run.
"""

import contextlib
import ctypes
import errno
import io
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

from insight_trace.__main__ import main

HANGS = 98
_SUBREAPER = 36  # prctl: orphans become children of this process
_MOST_SECONDS = 400.0  # of one run
_SETTLED_SECONDS = 15.0  # a dead capture's runner still writes its manifest


def _once(words: list[str], place: Path, at: int, error: int) -> tuple[int, str, int]:
    """Exit code (negative: signal), what it said, and how many calls were made."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.chdir(place.parent)
        said = io.StringIO()
        faults = ctypes.CDLL(None)
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            faults.fault_arm(ctypes.c_long(at), error)
            try:
                code = main([word.replace("{}", str(place)) for word in words])
            except BaseException as wrong:
                code = 99
                print(f"Traceback: {type(wrong).__name__}: {wrong}", file=sys.stderr)
            count = faults.fault_count()
            faults.fault_arm(ctypes.c_long(0), 0)
        os.write(writing, json.dumps([code, said.getvalue()[:2000], count]).encode())
        os._exit(0)
    os.close(writing)
    if not select.select([reading], [], [], _MOST_SECONDS)[0]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        return HANGS, f"still running after {_MOST_SECONDS:g} s", 0
    with os.fdopen(reading, "rb") as file:
        told = file.read()
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return -os.WTERMSIG(status), "", 0
    code, text, count = json.loads(told)
    return code, text, count


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


def _content(place: Path) -> object:
    if place.is_dir():
        files = [p.relative_to(place) for p in place.rglob("*") if p.is_file()]
        shown = {_stable(p) for p in files if not any(part.startswith(".") for part in p.parts)}
        return sorted(shown) or None  # hidden pieces are what the next run removes
    return len(place.read_bytes()) if place.is_file() else None


def _says_partial(place: Path) -> bool:
    """What a capture recorded until it was killed stays, and its manifest says that it is a part."""
    manifest = place / "args_dump" / "args_dump.json"
    return manifest.is_file() and json.loads(manifest.read_text()).get("partial") is True


def _goes_on(place: Path) -> bool:
    """A profile that was ended is continued by the next one: each of its kernels is whole or absent."""
    runs = list(place.glob("kernel_insight_all_funcs_*"))
    kernels = [kernel for run in runs for kernel in (run / "funcs").glob("[!.]*")]
    bins = "collect/out/OPPROF_*/simulator/visualize_data.bin"
    return bool(runs) and all(any(kernel.glob(bins)) for kernel in kernels)


def _stable(path: Path) -> str:
    """Names of Insight directories hold the time."""
    return "/".join("OPPROF" if "OPPROF" in part else part.split("_2")[0] for part in path.parts)


def _clear(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)
    folder.mkdir()


def run(folder: Path, points: str, words: list[str]) -> None:
    place = folder / "out"
    folder.mkdir(exist_ok=True)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    code, said, count = _once(words, place, 0, 0)
    whole = _content(place)
    print(json.dumps({"calls": count, "code": code, "said": said}), flush=True)
    step = 1 if points == "all" else max(1, count // int(points))
    for at in sorted({*range(1, count + 1, step), count}):
        for name, error in (("ENOSPC", errno.ENOSPC), ("EACCES", errno.EACCES), ("kill", -1)):
            _clear(folder)
            code, said, _ = _once(words, place, at, error)
            left = _left()
            found = _content(place)
            again = None
            if found is None:
                again, more, _ = _once(words, place, 0, 0)
                _left()
                said += more
            row = {"at": at, "fault": name, "code": code, "said": said, "again": again, "left": left}
            whole_now = (
                found is None or found == whole or (code != 0 and (_says_partial(place) or _goes_on(place)))
            )
            row |= {"whole": whole_now, "then": _content(place) == whole}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    import insight_trace.commands.capture
    import insight_trace.commands.check
    import insight_trace.commands.clean
    import insight_trace.commands.dump
    import insight_trace.commands.op
    import insight_trace.commands.profile
    import insight_trace.commands.replay
    import insight_trace.commands.view  # noqa: F401 - all that a fork would import again

    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])

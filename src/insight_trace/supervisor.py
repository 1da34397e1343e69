"""Every program that this one starts: in a session of its own, bounded, and gone with all that it started.

A program ends at its limit, when the caller is interrupted, and when this process dies, however it dies: it holds
the reading end of a pipe whose writing end is ours, and the system kills its group when that closes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from insight_trace import limits
from insight_trace.errors import RequestError

NO_RUN = "INSIGHT_TRACE_NO_RUN"  # --no-run: nothing is started, and nobody's Python is imported
MARK = "INSIGHT_TRACE_SUPERVISED"  # in the environment of everything that is started: who it belongs to
_F_SETSIG = 10
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PDEATHSIG = 1
_GRACE_SECONDS = 3.0
_LOOK_SECONDS = 0.2
_PIECE = 1 << 16


class Limits(Struct, frozen=True):
    """What a program may take. None: what this process may."""

    seconds: float | None = None
    output: int = limits.LOG_BYTES  # bytes that it may print
    kept: int = limits.MIB  # of these, how many are kept
    address_space: int | None = None
    file: int | None = None
    grace: float = 0.0  # seconds between the polite request to end and the end


class Ended(Struct, frozen=True):
    """How a program ended. `over` says which limit ended it: "time", "output", "stop" or nothing."""

    code: int  # negative: the signal
    said: bytes  # stdout and stderr, from the beginning
    seconds: float
    over: str = ""


def require_running(what: str) -> None:
    """Refuses where the user only wants to read."""
    if os.environ.get(NO_RUN):
        hint = "leave --no-run out, or take a command that only reads: SECURITY.md has the table"
        raise RequestError(f"--no-run: {what} would be run", hint=hint)


class Child:
    """A running program. `wait` is to be called, or `end`; a `with` block does."""

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        bounds: Limits,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        output: IO[bytes] | int = subprocess.PIPE,
        only_errors: bool = False,
        pass_fds: Sequence[int] = (),
        leash: bool = True,
    ) -> None:
        """Starts it; OSError where that cannot be. `output` gets what it prints, `only_errors` without stdout.

        `leash=False`: it sees to its own end when we die."""
        require_running(Path(words[0]).name)
        self.bounds = bounds
        self._started = time.monotonic()
        self._mark = f"{os.getpid()}-{'leashed' if leash else 'own'}-{os.urandom(8).hex()}"
        known = {**(os.environ if environment is None else environment), MARK: self._mark}
        reading, self._leash = os.pipe()
        try:
            self.process = subprocess.Popen(
                _within(bounds, [str(word) for word in words]),
                env=known,
                cwd=cwd,
                stdin=stdin,
                stdout=subprocess.DEVNULL if only_errors else output,
                stderr=output if only_errors else subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(*pass_fds, reading) if leash else tuple(pass_fds),
            )
        except BaseException:
            os.close(self._leash)
            raise
        finally:
            if "process" not in self.__dict__ or not leash:
                os.close(reading)
        if leash:
            self._hold(reading)

    def _hold(self, reading: int) -> None:
        """When the writing end closes, the group gets SIGKILL; the child keeps the reading end open."""
        try:
            fcntl.fcntl(reading, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(reading, fcntl.F_SETOWN, -self.process.pid)
            fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        except OSError:
            pass  # it has ended already, or the system does not know this: then only our own end is not seen
        finally:
            os.close(reading)

    def wait(
        self,
        *,
        stop: threading.Event | None = None,
        look: Callable[[], None] = lambda: None,
        on_interrupt: Callable[[], None] | None = None,
    ) -> Ended:
        """Waits for its end, or ends it at a limit, at `stop`, or when an exception comes up here.

        `look` is called now and then. With `on_interrupt`, which asks the program to end by itself, an
        interruption is an end like others, and not raised.
        """
        try:
            said, over = self._follow(stop, look)
        except KeyboardInterrupt:
            if on_interrupt is None:
                self.end(self.bounds.grace)
                raise
            on_interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self.bounds.grace)
            said, over = b"", "stop"
        except BaseException:
            self.end(self.bounds.grace)
            raise
        if over:
            self.end(self.bounds.grace)
        else:
            self._after()
        code = self.process.wait()
        return Ended(code, said, time.monotonic() - self._started, over)

    def _follow(self, stop: threading.Event | None, look: Callable[[], None]) -> tuple[bytes, str]:
        limit = self.bounds.seconds
        deadline = None if limit is None else self._started + limit
        printed, kept = 0, bytearray()
        watched = select.poll()
        pid = os.pidfd_open(self.process.pid)
        stream = self.process.stdout.fileno() if self.process.stdout else -1
        watched.register(pid, select.POLLIN)
        if stream >= 0:
            os.set_blocking(stream, False)
            watched.register(stream, select.POLLIN)
        try:
            while True:
                left = _LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, deadline - time.monotonic())
                ready = {number for number, _ in watched.poll(max(0.0, left) * 1000)}
                if stream in ready:
                    piece = _read(stream)
                    if not piece:  # closed; its end is still to come
                        watched.unregister(stream)
                        stream = -1
                    printed += len(piece)
                    kept += piece[: max(0, self.bounds.kept - len(kept))]
                if pid in ready and not (stream in ready and stream >= 0):
                    return bytes(kept), ""
                if printed > self.bounds.output:
                    return bytes(kept), "output"
                if deadline is not None and time.monotonic() >= deadline:
                    return bytes(kept), "time"
                if stop is not None and stop.is_set():
                    return bytes(kept), "stop"
                look()
        finally:
            os.close(pid)

    def end(self, grace: float = 0.0) -> None:
        """Ends it and everything below it: for certain, after `grace` seconds of a polite request."""
        known = tree_of(self.process.pid)
        if grace:
            _signal(self.process.pid, known, signal.SIGTERM)
            deadline = time.monotonic() + grace
            while time.monotonic() < deadline and any(_alive(pid, born) for pid, born in known.items()):
                self.process.poll()
                known |= tree_of(self.process.pid)
                time.sleep(0.02)
        _signal(self.process.pid, known, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=_GRACE_SECONDS)
        self._after()

    def _after(self) -> None:
        """What it left running goes too: its group, and those of its processes that left the group."""
        group = self.process.pid
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        for pid in _adopted(self._mark):
            if pid != group:
                _kill(pid)
        leash, self._leash = self._leash, -1  # first: who is interrupted here comes again
        if leash >= 0:
            os.close(leash)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None or self._leash >= 0:
            self.end()


def run(
    words: Sequence[str | Path],
    *,
    bounds: Limits,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    given: bytes = b"",
) -> Ended:
    """Runs a program to its end or to its limit, `given` as its input; OSError where it cannot be started."""
    if not given:
        return Child(words, bounds=bounds, environment=environment, cwd=cwd).wait()
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        return Child(words, bounds=bounds, environment=environment, cwd=cwd, stdin=file).wait()


def in_foreground(words: Sequence[str | Path], *, environment: Mapping[str, str] | None = None) -> int:
    """Runs the user's own program to its end, without a limit and with our own input and output; its exit code.

    Ctrl-C of the terminal reaches the program itself; what it does then is its own business.
    """
    require_running(str(words[0]))
    child = subprocess.Popen(words, env=environment)
    before = (
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if threading.current_thread() is threading.main_thread()
        else None
    )
    try:
        code = child.wait()
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    return 128 - code if code < 0 else code


def end_all() -> None:
    """Ends every program that runs on our leash, from whatever thread it was started."""
    for pid in _adopted(f"{os.getpid()}-leashed-"):
        for end in (pid, *tree_of(pid)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(end, signal.SIGKILL)


def end_with_parent(parent: int) -> None:
    """From now on this process is killed when the one that started it ends, however that ends."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """While it lasts, what our children leave behind becomes our child, and does not outlive the block."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        for pid in _adopted(f"{os.getpid()}-"):
            _kill(pid)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _kill(pid: int) -> None:
    for end in (pid, *tree_of(pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(end, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _read(stream: int) -> bytes:
    try:
        return os.read(stream, _PIECE)
    except BlockingIOError:
        return b""


def _within(bounds: Limits, words: list[str]) -> list[str]:
    """The words, with limits that hold from the first moment on: who lowers them later may come too late."""
    if bounds.address_space is None and bounds.file is None:
        return words
    lowered = "ulimit -c 0"
    if bounds.address_space is not None:
        lowered += f"; ulimit -v {bounds.address_space >> 10}"
    if bounds.file is not None:
        lowered += f"; ulimit -f {bounds.file >> 9}"
    return ["/bin/sh", "-c", f'{lowered}; exec "$@"', "sh", *words]


# --- looking at /proc -----------------------------------------------------------------------------------


def _signal(group: int, known: Mapping[int, int], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for pid, born in known.items():
        if _alive(pid, born):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _stat(pid: int) -> tuple[str, int, int] | None:
    """State, parent and time of birth. Fields follow the last bracket, as names may hold some."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        fields = text.rpartition(")")[2].split()
        return fields[0], int(fields[1]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _alive(pid: int, born: int) -> bool:
    """Whether that very process still runs; its number may by now be another's."""
    found = _stat(pid)
    return found is not None and found[0] not in "ZX" and found[2] == born


def _processes() -> dict[int, tuple[str, int, int]]:
    try:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return {}
    return {pid: facts for pid in numbers if (facts := _stat(pid)) is not None}


def tree_of(root: int) -> dict[int, int]:
    """A process and all below it: number -> time of birth."""
    found = _processes()
    children: dict[int, list[int]] = {}
    for pid, (_, parent, _) in found.items():
        children.setdefault(parent, []).append(pid)
    below: dict[int, int] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in found and pid not in below:
            below[pid] = found[pid][2]
            waiting += children.get(pid, ())
    return below


def _adopted(mark: str) -> list[int]:
    """Children of ours, their own parents gone, whose environment bears the mark (or one that begins so)."""
    numbers: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for part in Path("/proc/self/task").iterdir():
            numbers += map(int, (part / "children").read_text().split())
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in numbers if any(entry.startswith(wanted) for entry in _environment(pid))]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []

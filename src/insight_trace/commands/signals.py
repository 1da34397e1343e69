"""Signals and streams of a command line: a signal ends what was started, and streams may be gone or show strangers' text."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TextIO

_AGAIN_SECONDS = 0.01
_CALLBACK = "once_more"  # runs where nothing can be raised, as long as it takes to start a thread
_MOST_WAITS = 50  # for what shall end first: one that never does must not keep us
# files whose functions are not interrupted; by name, for they may never be imported
_TO_ITS_END = (
    "<frozen importlib._bootstrap>",
    str(Path(os.__file__).with_name("tempfile.py")),
    str(Path(__file__).parents[1] / "scratch.py"),
)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: everything is put away as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.code = 128 + number


@contextlib.contextmanager
def orderly() -> Iterator[None]:
    """While it lasts, signals end what we started; the streams are such that printing never fails or misleads."""
    prepare_streams()
    with _visible_streams(), _signals_end_us():
        yield


# Whatever steers a terminal is spelled out, colours, too, which can hide text, and a return to the begin of the line, which
# can replace it. What of our own does goes by `limits.steer`.
_STEERS = re.compile(r"\r(?!\n)|[^\x20-\x7e\n\t\r]")


@contextlib.contextmanager
def _visible_streams() -> Iterator[None]:
    """What strangers wrote (names, messages, sources) does not steer the terminal that shows it."""
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if stream is None or "write" in getattr(stream, "__dict__", {"write": None}):
            continue
        stream.write = _visible(stream.write)  # type: ignore[method-assign]
        changed.append(stream)
    try:
        yield
    finally:
        for stream in changed:
            del stream.write


def _visible(plain: Callable[[str], int]) -> Callable[[str], int]:
    def shown(found: re.Match[str]) -> str:
        return found[0] if found[0].isprintable() else repr(found[0])[1:-1]

    return lambda text: plain(text if text.isprintable() else _STEERS.sub(shown, text))


@contextlib.contextmanager
def _signals_end_us() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    waited = [0]

    def on_signal(number: int, frame: FrameType | None) -> None:
        if _not_now(frame) and waited[0] < _MOST_WAITS:
            waited[0] += 1
            _send_again(number)
            return
        started = sys.modules.get("insight_trace.supervisor")
        if started is not None:
            started.end_all()  # also what other threads wait for
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Terminated(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # who started us with a signal ignored (nohup) wants it ignored
    wanted = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, on_signal) for number in wanted}
    unraisable = sys.unraisablehook

    def once_more(lost: sys.UnraisableHookArgs) -> None:
        """A signal that came while the interpreter ran a callback, where nothing can be raised, comes again after it."""
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            unraisable(lost)
            return
        _send_again(lost.exc_value.number if isinstance(lost.exc_value, Terminated) else signal.SIGINT)

    sys.unraisablehook = once_more
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)


def _not_now(frame: FrameType | None) -> bool:
    """Whether an exception would do harm here.

    Libraries take one out of the midst of an import for something else, or die of it. What makes or removes a temporary
    file would leave it. A callback of the interpreter would lose it.
    """
    while frame is not None:
        code = frame.f_code
        if code.co_filename in _TO_ITS_END or (code.co_name == _CALLBACK and code.co_filename == __file__):
            return True
        frame = frame.f_back
    return False


def _send_again(number: int) -> None:
    again = threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def prepare_streams() -> None:
    """Streams that are closed get a place to write to; what a terminal cannot show becomes a question mark."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # closed by who started us: whatever opens next must not become it
            with contextlib.suppress(OSError):
                setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def flushed() -> OSError | None:
    """Writes out what was printed; what went wrong with that, if anything did."""
    try:
        sys.stdout.flush()
    except OSError as error:
        abandon(sys.stdout)
        return error
    except ValueError:  # it is closed
        return None
    return None


def abandon(stream: TextIO) -> None:
    """What is left in a stream that nobody reads goes nowhere, so that the interpreter can end in peace."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)

"""Files that others wrote are opened whole, and an interruption stays one."""

import os
import random
import signal
from pathlib import Path

import pytest

from insight_trace.errors import InputError
from insight_trace.reading import open_regular, read_regular


def interrupted(call, seconds: float) -> None:
    """The call over and over, until an interruption comes after so long."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_interruption_while_a_file_is_opened_is_that_and_nothing_else(tmp_path):
    """One that came just after a descriptor had its file was told as a bad descriptor of the next."""
    (tmp_path / "file").write_bytes(b"content")
    dice = random.Random(0)
    for _ in range(1000):
        with pytest.raises(KeyboardInterrupt):
            interrupted(lambda: open_regular(tmp_path / "file", most=100).close(), dice.uniform(1e-6, 60e-6))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (Path.mkdir, "a folder"),
        (os.mkfifo, "a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
    ],
)
def test_what_is_no_file_is_refused_by_its_kind(tmp_path, make, what):
    make(tmp_path / "it")
    with pytest.raises(InputError, match=f"is {what}, not a file"):
        read_regular(tmp_path / "it", most=100)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    (tmp_path / "it").write_bytes(bytes(101))
    with pytest.raises(InputError, match="has 101 bytes, and at most 100 are read"):
        read_regular(tmp_path / "it", most=100)

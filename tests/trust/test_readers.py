"""Every reader takes whatever bytes it is given: read, or refused with an error of ours. `make fuzz` runs longer."""

import os
import random
import resource
import signal
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.mutate_readers import mutated

from insight_trace.errors import InsightTraceError
from tests.trust.reader_targets import TARGETS, place

INPUTS = 60
# what these read comes as bytes or text from a reader that is among the others, or from a connection
OF_BYTES = {"cpp_signature", "kernel_source", "generated_main", "compiler_log"}
OF_BYTES |= {"worker_answer", "worker_name", "cluster_time", "capture_rows"}


def _read(name: str, path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[name].read(path)
        return True
    except InsightTraceError:
        return False
    finally:
        assert time.process_time() - begin < 5


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_inputs_are_read_or_refused(name, tmp_path):
    path = place(tmp_path, TARGETS[name])
    dice = random.Random(name)
    for seed in TARGETS[name].seeds:
        assert _read(name, path, seed)
    for _ in range(INPUTS):
        _read(name, path, mutated(dice.choice(TARGETS[name].seeds), dice))


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_read_or_refused(name, tmp_path):
    path = place(tmp_path, TARGETS[name])

    @settings(max_examples=15, database=None)
    @given(
        st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
    )
    def one(content: bytes) -> None:
        _read(name, path, content)

    one()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", sorted(TARGETS.keys() - OF_BYTES))
def test_what_is_no_regular_file_is_refused_at_once(name, kind, tmp_path):
    path = place(tmp_path, TARGETS[name])
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()

    def hangs(*_: object) -> None:
        pytest.fail("it waits")

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(5)
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), before[1]))
    try:
        TARGETS[name].read(path)
    except (InsightTraceError, OSError):  # the command line names the path of the latter
        pass
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - used < 1 << 29

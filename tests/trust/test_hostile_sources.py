"""Sources that mean harm to the compiler or to who exports them."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from insight_trace import limits, simulate
from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.outcome import Fault
from insight_trace.replay.pipeline import make_trace
from insight_trace.simulate.embedded.toolchain import KernelBuildError, Toolchain
from tests.simulate.kernel_text import write_kernel

ONE = {0: np.zeros(64, np.float32)}


def _fails(source: Path) -> str:
    failure = simulate(source, ONE).failure
    assert failure is not None
    assert failure.fault is Fault.KERNEL
    assert "\n" not in failure.message
    return failure.message


def test_a_device_as_a_header_ends_at_the_memory_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "COMPILE_BYTES", 1 << 29)
    begin = time.monotonic()
    _fails(write_kernel(tmp_path, "", before='#include "/dev/zero"\n'))
    assert time.monotonic() - begin < 60


def test_a_pipe_as_a_header_ends_at_the_time_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("INSIGHT_TRACE_COMPILE_SECONDS", "2")
    os.mkfifo(tmp_path / "pipe.h")
    message = _fails(write_kernel(tmp_path, "", before='#include "pipe.h"\n'))
    assert "took more than 2 s" in message
    assert "--compile-limit" in message


def test_a_template_bomb_ends_at_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("INSIGHT_TRACE_COMPILE_SECONDS", "3")
    bomb = (
        "template <int N, int M> struct Bomb { static constexpr long value = Bomb<N - 1, M>::value + "
        "Bomb<N - 1, M + (1 << N)>::value; };\n"
        "template <int M> struct Bomb<0, M> { static constexpr long value = M; };\n"
    )
    _fails(write_kernel(tmp_path, "    args[0] = Bomb<26, 0>::value;", before=bomb))


def test_an_endless_preprocessor_ends_at_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("INSIGHT_TRACE_COMPILE_SECONDS", "3")
    _fails(write_kernel(tmp_path, "", before=f'#include "{tmp_path}/kernel.cpp"\n'))


def test_messages_without_end_end_at_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "COMPILE_OUTPUT", 1 << 16)
    lines = "".join(f'#warning "{"x" * 200} {n}"\n' for n in range(5000)).replace(
        "#warning", "#pragma message"
    )
    source = write_kernel(tmp_path, "    broken;", before=lines)
    failure = simulate(source, ONE).failure
    assert failure is not None
    assert failure.limit == "output" or "does not compile" in failure.message


def test_a_kernel_source_that_is_a_pipe_or_a_device_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.cpp")
    (tmp_path / "zero.cpp").symlink_to("/dev/zero")
    for name in ("pipe.cpp", "zero.cpp"):
        with pytest.raises((InputError, RequestError)):
            simulate(tmp_path / name, ONE)


def test_a_line_directive_copies_no_file_of_the_machine_into_the_trace(tmp_path):
    secret = tmp_path / "elsewhere" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("the secret\n" * 9)
    source = write_kernel(tmp_path, f'#line 1 "{secret}"\n    pipe_barrier(PIPE_ALL);')
    run = simulate(source, ONE)
    assert run.failure is None
    trace = make_trace(run)
    assert all(b"the secret" not in text for text in trace.sources.values())
    honest = make_trace(
        simulate(write_kernel(tmp_path, "    pipe_barrier(PIPE_ALL);", name="honest.cpp"), ONE)
    )
    assert any(name.endswith("honest.cpp") for name in honest.sources)


def test_a_comment_in_another_encoding_on_the_line_of_an_error_is_no_obstacle(tmp_path):
    source = write_kernel(tmp_path, "")
    source.write_bytes(
        source.read_bytes().replace(b"args) {\n", b"args) {\n    broken; // \xc4\xe3\xba\xc3\n")
    )
    assert "does not compile" in _fails(source)


def test_a_program_that_is_no_compiler_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "/bin/echo")
    monkeypatch.setenv("INSIGHT_TRACE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(JobError, match="is no C\\+\\+ compiler") as caught:
        simulate(write_kernel(tmp_path, ""), ONE)
    assert "CXX" in caught.value.hint


@pytest.mark.parametrize(
    "script", ["while true; do echo noise; done", "sleep 1000", "printf '\\377\\376\\n'", "exit 3", ":"]
)
def test_a_compiler_whose_version_is_noise_or_endless_is_told_in_time(tmp_path, monkeypatch, script):
    monkeypatch.setattr(limits, "PROBE_SECONDS", 1.0)
    fake = tmp_path / "cc"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setenv("INSIGHT_TRACE_CACHE", str(tmp_path / "cache"))
    begin = time.monotonic()
    with pytest.raises((RequestError, JobError, KernelBuildError)):
        Toolchain.find().runner()
    assert time.monotonic() - begin < 20

"""The tool that counts how the kernels of a checkout end."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.simulate.kernel_text import write_kernel

TOOL = ROOT / "tools" / "kernel_coverage.py"
SUMMARY = re.compile(
    r"KERNELS total=(\d+) compiled=(\d+) ran=(\d+) endless=(\d+) unsupported=(\d+) failed=(\d+)"
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """Kernels that run, do not compile, lack an op, crash, never end, and wait for a partner or a peer."""
    root = tmp_path_factory.mktemp("checkout")
    kernels = root / "examples" / "a2a3" / "runtime" / "scene" / "kernels"
    for folder in ("aic", "aiv", "mix"):
        (kernels / folder).mkdir(parents=True)
    good = """\
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    reinterpret_cast<__gm__ float *>(out->buffer.addr)[0] = static_cast<float>(args[1]);"""
    write_kernel(kernels / "aiv", good, name="good.cpp")
    write_kernel(kernels / "aiv", "    not_declared();", name="wrong.cpp")
    write_kernel(kernels / "aiv", "    LineTile tile;\n    TNOSUCHOP(tile);", name="lacking.cpp")
    write_kernel(kernels / "aiv", "    *(volatile int *)args[1] = 1;", name="crash.cpp")
    waits = "    wait_flag_dev(1);\n    tensor_in(args, 0);"
    sets = "    ffts_cross_core_sync(PIPE_FIX, 1 | 2 << 4 | 1 << 8);\n    // no wait_flag_dev here"
    write_kernel(kernels / "aiv", "    while (true) {}", name="hang.cpp")
    asks_its_peer = """\
    auto *signals = reinterpret_cast<__gm__ int32_t *>(tensor_in(args, 0)->buffer.addr) + 8192;
    __gm__ int64_t *ctx = reinterpret_cast<__gm__ int64_t *>(args[1]);
    const int64_t rank = static_cast<int32_t>(ctx[2]), ranks = ctx[2] >> 32;
    auto *theirs = signals + (ctx[4 + (rank + 1) % ranks] - ctx[4 + rank]) / 4;
    using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>>;
    Signal mine(signals), other(theirs);
    pto::comm::TNOTIFY(other, 1, pto::comm::NotifyOp::AtomicAdd);
    pto::comm::TWAIT(mine, 5, pto::comm::WaitCmp::GE);
    if (ranks != 2 || theirs == signals) not_a_pair();"""
    not_a_pair = "inline void not_a_pair() { *(volatile int *)8 = 1; }\n"
    write_kernel(kernels / "aiv", asks_its_peer, before=not_a_pair, name="peer.cpp")
    write_kernel(kernels / "aiv", waits, name="pair_aiv.cpp")
    write_kernel(kernels / "aic", sets, name="pair_aic.cpp")
    (kernels / "aiv" / "shared.cpp").write_text("int no_entry_in_this_one;\n")
    of_a5 = root / "examples" / "a5" / "runtime" / "scene" / "kernels" / "aiv"
    of_a5.mkdir(parents=True)
    write_kernel(of_a5, f"    static_assert(__CCE_AICORE__ == 310);\n{good}", name="good.cpp")
    return root


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *map(str, words)], capture_output=True, text=True, check=False
    )


def test_every_kernel_ends_in_one_count_and_every_cause_has_an_example(checkout):
    done = run("--simpler", checkout, "--seconds", 3)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    counts = SUMMARY.fullmatch(lines[-1])
    assert counts, lines[-1]
    total, compiled, ran, endless, unsupported, failed = map(int, counts.groups())
    assert (total, compiled, unsupported) == (9, 7, 1)
    assert ran + endless + unsupported + failed == total
    assert (ran, endless) == (5, 1)
    assert "crashes of the engine itself: 0" in lines
    causes = [lines[i : i + 2] for i in range(0, len(lines) - 2, 2)]
    assert ["TNOSUCHOP is not supported" in cause for cause, _ in causes].count(True) == 1
    for cause, example in causes:
        assert re.match(r" +\d+  (failed|unsupported|endless)", cause)
        assert re.search(r"\w+\.cpp(:\d+)?$", example), example


def test_a_script_gets_an_object_per_kernel(checkout):
    done = run("--simpler", checkout, "--only", "good", "--target", "a2a3", "--json")
    first, last = done.stdout.splitlines()
    outcome = json.loads(first)
    assert outcome["source"].endswith("aiv/good.cpp")
    assert outcome["state"] == "ran"
    assert last == "KERNELS total=1 compiled=1 ran=1 endless=0 unsupported=0 failed=0"


def test_kernels_of_one_family_are_counted_alone_and_run_there(checkout):
    done = run("--simpler", checkout, "--target", "a5")
    assert done.stdout.splitlines()[-1] == "KERNELS total=1 compiled=1 ran=1 endless=0 unsupported=0 failed=0"


@pytest.mark.skipif("INSIGHT_TRACE_LONG_TESTS" not in os.environ, reason="set INSIGHT_TRACE_LONG_TESTS=1")
def test_a_hundred_kernels_of_a5_in_a_checkout_run_or_say_what_they_lack(simpler_checkout):
    done = run("--simpler", simpler_checkout, "--target", "a5")
    counts = SUMMARY.fullmatch(done.stdout.splitlines()[-1])
    assert counts, done.stdout
    total, _, ran, _, unsupported, failed = map(int, counts.groups())
    assert ran + unsupported >= 100
    assert failed <= total // 20
    assert "crashes of the engine itself: 0" in done.stdout


def test_a_checkout_that_is_not_there_is_told(tmp_path):
    done = run("--simpler", tmp_path / "absent")
    assert done.returncode == 2
    assert "there is no directory" in done.stderr

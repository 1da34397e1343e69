"""Kernels as they are written: run per core, with their own lines, the same with every compiler."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from insight_trace import simulate
from insight_trace.model import CoreType, Kernel
from tests.conftest import ROOT
from tests.simulate.kernel_text import write_kernel

SCALE = """\
    LineTile tile;
    TASSIGN(tile, 0);
    Line in(data_in(args, 0)), out(data_in(args, 1));
    TLOAD(tile, in);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(tile, tile, FACTOR);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, tile);"""


def test_each_block_knows_its_number_and_all_see_one_memory(tmp_path):
    body = """\
    int32_t block = get_block_idx(args);
    data_in(args, 0)[block * 16] = static_cast<float>(block + 1);
    data_in(args, 0)[block * 16 + 1] = static_cast<float>(get_block_num(args));
    data_in(args, 0)[block * 16 + 2] = static_cast<float>(get_sub_block_id(args));"""
    result = simulate(write_kernel(tmp_path, body), {0: np.zeros((5, 16), np.float32)}, block_count=5)
    assert result.failure is None
    np.testing.assert_array_equal(result.outputs[0][:, 0], [1, 2, 3, 4, 5])
    assert (result.outputs[0][:, 1] == 5).all()
    assert (result.outputs[0][:, 2] == 0).all()
    assert result.instructions.cores == tuple(f"core{block}.veccore0" for block in range(5))


def test_the_lanes_of_a_mix_know_which_they_are(tmp_path):
    body = (
        "    data_in(args, 0)[get_sub_block_id(args) * 16] += static_cast<float>(get_sub_block_id(args) + 1);"
    )
    source = write_kernel(tmp_path, body)
    kernels = [Kernel("a", source, CoreType.AIV), Kernel("b", source, CoreType.AIV)]
    result = simulate(kernels, {0: np.zeros(32, np.float32)})
    assert result.failure is None
    assert (result.outputs[0][0], result.outputs[0][16]) == (1, 2)


def test_single_elements_of_a_tile_are_read_and_written(tmp_path):
    body = """\
    LineTile tile;
    TASSIGN(tile, 0x100);
    Line in(data_in(args, 0)), out(data_in(args, 1));
    TLOAD(tile, in);
    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    float found = tile.GetValue(5);
    tile.SetValue(7, found + 1);
    set_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, tile);"""
    values = np.arange(64, dtype=np.float32)
    result = simulate(write_kernel(tmp_path, body), {0: values, 1: np.zeros(64, np.float32)})
    assert result.failure is None
    want = values.copy()
    want[7] = 6
    np.testing.assert_array_equal(result.outputs[1], want)


def test_instructions_carry_the_line_of_the_kernel(tmp_path):
    source = write_kernel(tmp_path, SCALE.replace("FACTOR", "2.0f"))
    result = simulate(source, {0: np.ones(64, np.float32), 1: np.zeros(64, np.float32)})
    columns = result.instructions
    lines = source.read_text().splitlines()
    seen = {}
    for name, stack in zip(columns.name, columns.stack, strict=True):
        frame = columns.stacks[stack].split("\n")[0]
        if frame:
            seen[columns.names[name]] = lines[int(frame.rsplit(":", 1)[1]) - 1].strip()
    assert seen["VMULS"].startswith("TMULS(")
    assert seen["MOV_OUT_TO_UB_ALIGN"].startswith("TLOAD(")
    assert seen["MOV_UB_TO_OUT_ALIGN"].startswith("TSTORE(")


def test_forty_gigabytes_that_are_hardly_touched_cost_ten_megabytes(tmp_path):
    """The kernel touches it in three places; what it costs is what its pages take."""
    body = """\
    uint64_t size = tensor_in(args, 0)->buffer.size;
    auto *bytes = reinterpret_cast<__gm__ volatile uint8_t *>(tensor_in(args, 0)->buffer.addr);
    bytes[0] = 1;
    bytes[size / 2] = 2;
    bytes[size - 1] = 3;
    data_in(args, 1)[0] = static_cast<float>(bytes[0] + bytes[size / 2] + bytes[size - 1]);"""
    source = write_kernel(tmp_path, body)
    script = f"""
import resource, numpy as np, insight_trace
from insight_trace.arguments.slots import Zero
from insight_trace.arguments.arrays import from_arrays
from insight_trace.arguments.slots import make_tensor
from insight_trace.dtypes import dtype_named
from insight_trace.model import Tier
small = from_arrays({{1: np.zeros(16, np.float32)}})
large = make_tensor(0, dtype_named("uint8"), (64,), Zero(), Tier.SYNTHETIC, recorded_size=40 << 30)
def used():
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
tiny = make_tensor(0, dtype_named("uint8"), (64,), Zero(), Tier.SYNTHETIC)
assert insight_trace.simulate({str(source)!r}, small.added(tiny)).failure is None
before = used()
result = insight_trace.simulate({str(source)!r}, small.added(large))
assert result.failure is None, result.failure
assert result.outputs[1][0] == 6
print(used() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 10 * 1024


@pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("clang++") is None, reason="needs both compilers"
)
@pytest.mark.skipif("INSIGHT_TRACE_LONG_TESTS" not in os.environ, reason="set INSIGHT_TRACE_LONG_TESTS=1")
def test_both_compilers_give_the_same_numbers_and_instructions():
    results = [_representative({"CXX": compiler}) for compiler in ("g++", "clang++")]
    assert results[0] == results[1]
    assert len(results[0].splitlines()) > 10


@pytest.mark.skipif("INSIGHT_TRACE_LONG_TESTS" not in os.environ, reason="set INSIGHT_TRACE_LONG_TESTS=1")
def test_runner_and_headers_are_clean_under_the_sanitizers():
    plain = _representative({})
    assert _representative({"INSIGHT_TRACE_SANITIZE": "address,undefined"}) == plain


def _representative(environment: dict[str, str]) -> str:
    """Outputs and instructions of ops of every family and of our example kernels, as text."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulate.representative_set"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout

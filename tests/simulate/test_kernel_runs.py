"""Kernels as they are written: compiled when something changed, run per core, the same every time."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from insight_trace import simulate
from insight_trace.arguments.arrays import from_arrays
from insight_trace.cache import Cache
from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.compiler import find_compiler
from insight_trace.simulate.embedded.simulator import run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain
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


def private_toolchain(root: Path) -> Toolchain:
    """A cache of its own for kernels; the engine comes from the usual one."""
    usual = Toolchain.find()
    usual.runner()
    root.mkdir(exist_ok=True)
    for kind in ("runner", "object", "prelude"):
        (usual.cache.root / kind).mkdir(parents=True, exist_ok=True)
        (root / kind).symlink_to(usual.cache.root / kind)
    return Toolchain(find_compiler(), Cache(root))


def run_with(toolchain: Toolchain, source: Path, values: dict) -> Simulation:
    kernel = Kernel("kernel", source, CoreType.AIV)
    result = run_embedded([kernel], from_arrays(values), toolchain=toolchain)
    assert result.failure is None, str(result.failure)
    return result


def scaled(toolchain: Toolchain, source: Path) -> float:
    values = {0: np.ones(64, np.float32), 1: np.zeros(64, np.float32)}
    return float(run_with(toolchain, source, values).outputs[1][0])


def compiled(toolchain: Toolchain) -> set[str]:
    return {path.name for path in (toolchain.cache.root / "kernel").iterdir() if path.name[0] != "."}


def test_a_kernel_is_compiled_again_when_it_or_its_header_changes_and_only_then(tmp_path):
    toolchain = private_toolchain(tmp_path / "cache")
    header = tmp_path / "factor.hpp"
    header.write_text("#define FACTOR 2.0f\n")
    source = write_kernel(tmp_path, SCALE, before='#include "factor.hpp"\n')
    assert scaled(toolchain, source) == 2
    made = next((tmp_path / "cache" / "kernel").rglob("kernel.so"))
    time_made = made.stat().st_mtime_ns
    assert scaled(toolchain, source) == 2
    assert made.stat().st_mtime_ns == time_made
    header.write_text("#define FACTOR 3.0f\n")
    assert scaled(toolchain, source) == 3
    write_kernel(tmp_path, SCALE.replace("FACTOR", "4.0f"))
    assert scaled(toolchain, source) == 4
    assert len(compiled(toolchain)) == 2


@pytest.mark.parametrize("harm", ["cut", "emptied", "depends", "removed"])
def test_a_broken_cache_entry_is_made_again(tmp_path, harm):
    toolchain = private_toolchain(tmp_path / "cache")
    source = write_kernel(tmp_path, SCALE.replace("FACTOR", "2.0f"))
    assert scaled(toolchain, source) == 2
    made = next((tmp_path / "cache" / "kernel").rglob("kernel.so"))
    if harm == "cut":
        made.write_bytes(made.read_bytes()[:3000])
    elif harm == "emptied":
        made.write_bytes(b"")
    elif harm == "depends":
        (made.parent / "depends").write_text("nonsense")
    else:
        made.unlink()
    assert scaled(toolchain, source) == 2
    assert made.stat().st_size > 3000


_RUN = """
import sys, numpy as np, insight_trace
result = insight_trace.simulate(sys.argv[1], {0: np.arange(64, dtype=np.float32), 1: np.zeros(64, np.float32)})
assert result.failure is None, result.failure
assert (result.outputs[1] == np.arange(64) * 2).all()
"""


def test_many_processes_run_one_new_kernel_at_once(tmp_path):
    source = write_kernel(tmp_path, SCALE.replace("FACTOR", "2.0f"))
    Toolchain.find().runner()
    command = [sys.executable, "-c", _RUN, str(source)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ends = [(process.communicate()[1], process.returncode) for process in processes]
    assert [code for _, code in ends] == [0] * 4, ends


def test_the_same_run_gives_the_same_bytes(tmp_path):
    source = write_kernel(tmp_path, SCALE.replace("FACTOR", "0.1f"))
    values = {0: np.random.default_rng(0).normal(size=64).astype(np.float32), 1: np.zeros(64, np.float32)}
    first, second = simulate(source, values), simulate(source, values)
    assert first.outputs[1].tobytes() == second.outputs[1].tobytes()
    for column in ("start", "end", "issue", "name", "pipe", "stack", "process_bytes", "stall"):
        one, other = getattr(first.instructions, column), getattr(second.instructions, column)
        assert one.tobytes() == other.tobytes(), column
    assert list(first.instructions.detail) == list(second.instructions.detail)


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


def test_a_block_local_variable_belongs_to_one_core(tmp_path):
    before = "[[block_local]] static int32_t counter;\n"
    body = """\
    for (int i = 0; i < 3; ++i) {
        counter += 1;
        dcci(args, SINGLE_CACHE_LINE);  // other cores run here
    }
    data_in(args, 0)[get_block_idx(args) * 16] = static_cast<float>(counter);"""
    source = write_kernel(tmp_path, body, before=before)
    result = simulate(source, {0: np.zeros((4, 16), np.float32)}, block_count=4)
    assert result.failure is None
    np.testing.assert_array_equal(result.outputs[0][:, 0], [3, 3, 3, 3])


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

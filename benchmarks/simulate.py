"""The embedded simulator: compiling a kernel, starting it, computing, recording, and large memories.

CPU seconds, not wall clock: other work on the machine does not count.
"""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np

from insight_trace import simulate
from insight_trace.arguments.arrays import from_arrays
from insight_trace.arguments.slots import Zero, make_tensor
from insight_trace.cache import Cache
from insight_trace.dtypes import dtype_named
from insight_trace.model import CoreType, Tier
from insight_trace.simulate.embedded.compiler import find_compiler
from insight_trace.simulate.embedded.toolchain import Toolchain

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CPU_SIMULATION_QK_MS = 4.3  # the public CPU simulation, for the same product
CPU_SIMULATION_COMPILE_S = (2.2, 4.7)

_HEAD = """\
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
inline __gm__ uint8_t *bytes_in(__gm__ int64_t *args, int slot) {
    return reinterpret_cast<__gm__ uint8_t *>(reinterpret_cast<__gm__ ChipTensor *>(args[slot])->buffer.addr);
}
"""
_ENTRY = 'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {\n'


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU of this process and of the children that it waited for."""
    return sum(cpu_split(work))


def cpu_split(work: Callable[[], object]) -> tuple[float, float]:
    """CPU of this process, and of the children that it waited for."""

    def used() -> list[float]:
        times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return [t.ru_utime + t.ru_stime for t in times]

    before = used()
    work()
    after = used()
    return after[0] - before[0], after[1] - before[1]


def kernel(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"{_HEAD}{_ENTRY}{body}}}\n")
    return path


def succeeded(result):
    if result.failure:
        raise SystemExit(str(result.failure))
    return result


def cold_compile(folder: Path) -> None:
    """The softmax kernel of paged attention, with the precompiled header there and nothing else."""
    usual = Toolchain.find()
    usual.runner()
    source = EXAMPLES / "paged_attention" / "kernels" / "softmax.cpp"
    usual.kernel(source, CoreType.AIV)
    cache = Cache(folder / "cache")
    cache.root.mkdir()
    (cache.root / "prelude").symlink_to(usual.cache.root / "prelude")
    times = []
    for _ in range(3):
        times.append(cpu_seconds(lambda: Toolchain(find_compiler(), cache).kernel(source, CoreType.AIV)))
        shutil.rmtree(cache.root / "kernel")
    low, high = (peer / min(times) for peer in CPU_SIMULATION_COMPILE_S)
    print(
        f"cold compile of softmax.cpp: {min(times):.2f} s CPU, the public CPU simulation {low:.1f}-{high:.1f}x"
    )


def warm_start() -> None:
    """From the call to its result, in a process that is already there."""
    values = {slot: np.ones(64, np.float32) for slot in range(3)}
    source = EXAMPLES / "kernels" / "vector_add.cpp"
    succeeded(simulate(source, values))
    times = [cpu_seconds(lambda: succeeded(simulate(source, values))) for _ in range(10)]
    print(f"warm start to result, vector_add of 64 elements: {min(times) * 1e3:.0f} ms CPU")


def scores(folder: Path) -> None:
    """QK of paged attention, 16 x 128 x 128: what more repetitions add is the kernel's own CPU."""
    body = """\
    using Mat = Tile<TileType::Mat, bfloat16_t, 16, 128, BLayout::ColMajor, 16, 128, SLayout::RowMajor, 512>;
    using Turned = Tile<TileType::Mat, bfloat16_t, 128, 128, BLayout::RowMajor, 128, 128, SLayout::ColMajor, 512>;
    GlobalTensor<bfloat16_t, Shape<1, 1, 1, 16, 128>, Stride<1, 1, 1, 128, 1>> q((bfloat16_t *)bytes_in(args, 0));
    GlobalTensor<bfloat16_t, Shape<1, 1, 1, 128, 128>, Stride<1, 1, 1, 1, 128>, Layout::DN> k(
        (bfloat16_t *)bytes_in(args, 1));
    GlobalTensor<float, Shape<1, 1, 1, 16, 128>, Stride<1, 1, 1, 128, 1>> out((float *)bytes_in(args, 2));
    Mat left;
    Turned right;
    TileLeft<bfloat16_t, 16, 128> a;
    TileRight<bfloat16_t, 128, 128> b;
    TileAcc<float, 16, 128> c;
    TASSIGN(left, 0);
    TASSIGN(right, 0x20000);
    TASSIGN(a, 0);
    TASSIGN(b, 0);
    TASSIGN(c, 0);
    for (int64_t i = 0; i < args[3]; ++i) {
        TLOAD(left, q);
        TLOAD(right, k);
        pipe_barrier(PIPE_ALL);
        TMOV(a, left);
        TMOV(b, right);
        pipe_barrier(PIPE_ALL);
        TMATMUL(c, a, b);
        pipe_barrier(PIPE_ALL);
        TSTORE(out, c);
        pipe_barrier(PIPE_ALL);
    }
"""
    source = kernel(folder, "scores.cpp", body)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(16, 128)).astype(ml_dtypes.bfloat16)
    k = rng.normal(size=(128, 128)).astype(ml_dtypes.bfloat16)

    def run(count: int) -> None:
        values = {0: q, 1: k, 2: np.zeros((16, 128), np.float32), 3: count}
        found = succeeded(simulate(source, values, core_type="aic")).outputs[2]
        wanted = q.astype(np.float32) @ k.astype(np.float32).T
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)

    run(1)
    few, many = 10, 1010
    base = min(cpu_seconds(lambda: run(few)) for _ in range(3))
    each = (min(cpu_seconds(lambda: run(many)) for _ in range(3)) - base) / (many - few)
    peer = CPU_SIMULATION_QK_MS / (each * 1e3)
    print(f"QK 16x128x128: {each * 1e3:.3f} ms CPU each, the public CPU simulation (4.3 ms) {peer:.0f}x")


def recording(folder: Path) -> None:
    """What one more instruction costs: a scalar loop of barriers, in the runner and on its way to columns."""
    body = "    for (int64_t i = 0; i < args[0]; ++i) pipe_barrier(PIPE_V);\n"
    source = kernel(folder, "barriers.cpp", body)
    succeeded(simulate(source, {0: 1}))
    few, many = 1_000, 1_001_000

    def best(count: int) -> list[float]:
        runs = [cpu_split(lambda: succeeded(simulate(source, {0: count}))) for _ in range(3)]
        return [min(column) for column in zip(*runs, strict=True)]

    columns, runner = (
        (high - low) / (many - few) * 1e9 for low, high in zip(best(few), best(many), strict=True)
    )
    print(
        f"one instruction issued, timed and recorded: {runner:.0f} ns CPU; read into columns: {columns:.0f} ns"
    )


def sparse(folder: Path) -> None:
    """A tensor of 40 GB that the kernel touches in three places."""
    body = """\
    uint64_t size = reinterpret_cast<__gm__ ChipTensor *>(args[0])->buffer.size;
    volatile uint8_t *bytes = bytes_in(args, 0);
    bytes[0] = bytes[size / 2] = bytes[size - 1] = 1;
"""
    source = kernel(folder, "touch.cpp", body)
    dtype = dtype_named("uint8")
    assert dtype is not None

    def run(size: int) -> int:
        tensor = make_tensor(0, dtype, (64,), Zero(), Tier.SYNTHETIC, recorded_size=size)
        child = os.fork()
        if child == 0:
            result = simulate(source, from_arrays({}).added(tensor))
            os._exit(1 if result.failure else 0)
        _, status, usage = os.wait4(child, 0)
        if status:
            raise SystemExit("the kernel failed")
        return usage.ru_maxrss

    run(1 << 20)
    difference = run(40 << 30) - run(1 << 20)
    print(f"40 GB touched in three places: {max(difference, 0) / 1024:.1f} MiB more than 1 MiB of it")


def main() -> None:
    compiler = find_compiler()
    print(
        f"{compiler.version}, {subprocess.run(['uname', '-m'], capture_output=True, text=True).stdout.strip()}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cold_compile(folder)
        warm_start()
        scores(folder)
        recording(folder)
        sparse(folder)


if __name__ == "__main__":
    main()

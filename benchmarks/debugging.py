"""Looking into a run of a million instructions: a moment, stepping back, who wrote a byte; and shadow arithmetic.

python -m benchmarks.debugging [--turns N] [--only moments|shadow]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from insight_trace.arguments.arrays import from_arrays
from insight_trace.debug.debug_session import Session
from insight_trace.debug.writers import Writers
from insight_trace.model import CoreType, Kernel
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

SCENE = Path(__file__).resolve().parent.parent / "examples" / "vector_chain" / "scene.py"
KERNEL = """
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *in = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    using Shape_ = Shape<1, 1, 1, 8, 64>;
    using Stride_ = Stride<1, 1, 1, 64, 1>;
    GlobalTensor<float, Shape_, Stride_> from(reinterpret_cast<__gm__ float *>(in->buffer.addr));
    GlobalTensor<float, Shape_, Stride_> to(reinterpret_cast<__gm__ float *>(out->buffer.addr));
    using T = Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 64>;
    T a, b, c;
    TASSIGN(a, 0);
    TASSIGN(b, 0x1000);
    TASSIGN(c, 0x2000);
    TLOAD(a, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(b, a, 0.5f);
    for (int i = 0; i < TURNS; ++i) {
        pipe_barrier(PIPE_V);
        TADD(b, b, a);
        pipe_barrier(PIPE_V);
        TMULS(c, b, 0.25f);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, c);
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=250_000, help="of a loop of four instructions")
    parser.add_argument("--only", choices=("moments", "shadow"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "shadow":
            session, seconds = made(Path(folder) / "long", options.turns)
            print(f"{len(session.instructions):,} instructions: the run alone {seconds:.2f} s")
            _moments(session)
            print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB at most")
        if options.only != "moments":
            _shadows(Path(folder), options.turns)


def _shadows(folder: Path, turns: int) -> None:
    """`replay` of the kernel, plain and with --shadow, as a person starts it."""
    source, spec = folder / "loop.cpp", folder / "spec.json"
    source.write_text(KERNEL.replace("TURNS", str(turns)))
    tensor = {"kind": "tensor", "dtype": "FLOAT32", "shape": [8, 64]}
    inputs, outputs = {"index": 0, "role": "input", "fill": 0.3}, {"index": 1, "role": "output"}
    spec.write_text(json.dumps({"args": [tensor | inputs, tensor | outputs]}))
    words = [sys.executable, "-m", "insight_trace", "replay", str(SCENE), "--kernel-source", str(source)]
    words += ["--arg-spec", str(spec), "--time-limit", "600"]
    plain = _measured([*words, "-o", str(folder / "plain")])
    double = _measured([*words, "--shadow", "-o", str(folder / "double")])
    for name, (cpu, wall, memory) in (("replay", plain), ("replay --shadow", double)):
        print(f"{name}: {cpu:.1f} s of processor, {wall:.1f} s by the clock, {memory >> 10} MiB at most")
    print(f"shadow: {double[0] / plain[0]:.1f} times the plain replay of {turns * 4:,} instructions")


def _measured(words: list[str]) -> tuple[float, float, int]:
    """Seconds of processor and by the clock of a program and all that it starts, and its memory in KiB."""
    begin = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - begin, after.ru_maxrss


def made(folder: Path, turns: int) -> tuple[Session, float]:
    """A session of the kernel, and how long its run took."""
    folder.mkdir()
    source = folder / "loop.cpp"
    source.write_text(KERNEL.replace("TURNS", str(turns)))
    values = np.linspace(0.1, 1.0, 512, dtype=np.float32).reshape(8, 64)
    arguments = from_arrays({0: values, 1: np.zeros_like(values)})
    kernel = Kernel("loop", source, CoreType.AIV)
    run_embedded([kernel], arguments, EmbeddedOptions())  # compiled
    begin = time.perf_counter()
    run = run_embedded([kernel], arguments, EmbeddedOptions())
    seconds = time.perf_counter() - begin
    assert run.failure is None, run.failure
    recording = recording_of(run, make_trace(run), [kernel], arguments)
    return Session(folder, recording, {"target": "a2a3"}, ((kernel,), arguments)), seconds


def _moments(session: Session) -> None:
    begin = time.perf_counter()
    journal = session.journal()
    size = sum(file.stat().st_size for file in journal.folder.iterdir())
    print(
        f"journal: {time.perf_counter() - begin:.2f} s, {size / 1e6:.0f} MB, estimated {session.estimate() / 1e6:.0f} MB"
    )
    begin = time.perf_counter()
    session.moment(1000).bytes(0, 0, 0, 0x3000)
    print(f"first moment: {time.perf_counter() - begin:.2f} s")
    dice, times = random.Random(0), []
    for _ in range(50):
        begin = time.perf_counter()
        moment = session.moment(dice.randrange(len(session.instructions)))
        for core, memory in journal.memories:
            if memory != 10:
                moment.bytes(core, memory, 0, int(journal.changes(core, memory).end.max()))
        moment.flags()
        moment.pipes()
        times.append(time.perf_counter() - begin)
    print(
        f"a moment with every memory, flags and pipes: {np.median(times) * 1e3:.0f} ms, at most {max(times) * 1e3:.0f} ms"
    )
    begin = time.perf_counter()
    writers = Writers(session)
    middle = time.perf_counter()
    writers.last(0, 0, np.arange(0x2000, 0x2800, 4), len(session.instructions) // 2)
    print(f"who wrote it: table {middle - begin:.2f} s, a tile {(time.perf_counter() - middle) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()

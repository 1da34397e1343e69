"""Whole kernels against their published times; docs/accuracy.md has the result.

    python benchmarks/whole_kernels.py --pto-isa PATH [--only TEXT] [--long] [--pipes] [--json FILE]

Kernels are compiled from a checkout of pto-isa, unmodified but for their host part, and run with --timing-only on the
chip that the publication names. What is compared is modelled time: the same on every machine.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402

from insight_trace.model import CoreType, Instructions, Kernel, Pipe  # noqa: E402
from insight_trace.outcome import Simulation  # noqa: E402
from insight_trace.simulate import simulate  # noqa: E402
from whole_kernel_points import Whole, points  # noqa: E402

NEAR = 0.15
_SECONDS = 1800.0
# what the host does with a kernel: a launch becomes a call that nobody makes
_LAUNCH = re.compile(r"<<<.*?>>>|#include <pto/npu/kernels/Pto_prefetch.hpp>", re.S)
_HOST = "#pragma once\n#include <cstdint>\nusing aclFloat16 = uint16_t;\nusing aclrtStream = void *;\n"
_RUNTIME = """\
#pragma once
#include <cstdint>
inline int rtGetC2cCtrlAddr(uint64_t *, uint32_t *) { return 0; }
template <bool = true, int = 0> void PTO_PREFETCH(void *, uint64_t, void *) {}
"""
_WRAPPER = """\
{define}#define __COSTMODEL
#include "{source}"

#include "tensor.h"

static __gm__ uint8_t *slot(int64_t value) {{
    auto *tensor = reinterpret_cast<__gm__ Tensor *>(value);
    return reinterpret_cast<__gm__ uint8_t *>(tensor->buffer.addr);
}}

extern "C" void kernel_entry(int64_t *args) {{
{pointers}    {entry};
}}
"""


@dataclass(frozen=True)
class Result:
    """One point as it came out."""

    point: Whole
    micros: float = 0.0  # with what is around the kernel
    inside: float = 0.0
    seconds: float = 0.0
    instructions: int = 0
    hit_rate: float = 0.0
    waves: int = 1
    busy: tuple[tuple[str, float], ...] = ()  # pipes, mean over cores, us
    problem: str = ""

    @property
    def ratio(self) -> float:
        return self.micros / self.point.micros

    @property
    def near(self) -> bool:
        return not self.problem and abs(self.ratio - 1) <= NEAR


def run(point: Whole, checkout: Path, scratch: Path) -> Result:
    """Compiles the point's kernel and runs it on all its cores."""
    began = time.perf_counter()
    done = simulate(
        kernels_of(point, checkout, scratch),
        point.tensors(),
        block_count=point.blocks,
        soc_version=point.chip,
        target=point.family,
        timing_only=True,
        l2=point.l2,
        launch=point.launch,
        seconds=_SECONDS,
        memory_limit=16 * 1024**3,
    )
    seconds = time.perf_counter() - began
    if done.failure:
        return Result(point, problem=str(done.failure.message).splitlines()[0][:120], seconds=seconds)
    assert done.launch is not None
    assert done.memory is not None
    inside = done.cycles / done.mhz
    around = 0.0 if point.method == "cnt" else done.launch.around / done.mhz
    return Result(
        point,
        inside + around,
        inside,
        seconds,
        len(done.instructions),
        done.memory.hit_rate,
        done.launch.waves,
        tuple(_busy(done)),
    )


def kernels_of(point: Whole, checkout: Path, scratch: Path) -> list[Kernel]:
    folder = scratch / re.sub(r"\W+", "_", f"{point.kernel}_{point.case}_{point.chip}")
    folder.mkdir(exist_ok=True)
    if point.source:
        source = at_commit(checkout, point.commit, scratch) / point.source
        text = source.read_text(encoding="utf-8")
        (folder / source.name).write_text(_LAUNCH.sub("", text), encoding="utf-8")
        acl = folder / "acl" / "acl.h"  # what a kernel's header says of the host
        acl.parent.mkdir(exist_ok=True)
        acl.write_text(_HOST, encoding="utf-8")
        # its own program lists the shapes that it launches there
        (folder / "generated_cases.h").write_text("#define TFA_FOR_EACH_CASE(one)\n", encoding="utf-8")
        include, folders = str(folder / source.name), (source.parent, folder)
        if point.headers:
            folders = (*folders, at_commit(checkout, point.commit, scratch) / point.headers)
            runtime = folder / "runtime" / "rt.h"
            runtime.parent.mkdir(exist_ok=True)
            runtime.write_text(_RUNTIME, encoding="utf-8")
    else:
        include, folders = str(ROOT / "benchmarks" / "kernels_add.hpp"), ()
    slots = len(point.tensors())
    pointers = "".join(f"    [[maybe_unused]] auto *p{i} = slot(args[{i}]);\n" for i in range(slots))
    wrapper = folder / "kernel.cpp"
    wrapper.write_text(
        _WRAPPER.format(define=point.define, source=include, pointers=pointers, entry=point.entry),
        encoding="utf-8",
    )
    kinds = {"aic": "c", "aiv": "v", "mix": "cvv"}[point.cores]
    types = {"c": CoreType.AIC, "v": CoreType.AIV}
    return [
        Kernel(point.kernel, wrapper, types[kind], include_dirs=tuple(map(str, folders))) for kind in kinds
    ]


def at_commit(checkout: Path, commit: str, scratch: Path) -> Path:
    """The kernels of a checkout as they were at a commit of its history."""
    if not commit:
        return checkout
    folder = scratch / f"at_{commit}"
    if not folder.is_dir():
        folder.mkdir()
        archive = subprocess.run(
            ["git", "-C", str(checkout), "archive", commit, "kernels", "demos"],
            capture_output=True,
            check=True,
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
    return folder


def _busy(done: Simulation) -> list[tuple[str, float]]:
    columns = done.instructions
    found = []
    for pipe in (Pipe.CUBE, Pipe.VECTOR, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIXP, Pipe.SCALAR):
        if total := _union(columns, pipe):
            found.append((pipe.name, total / len(columns.cores) / done.mhz))
    return found


_WAITS = frozenset({"SET_FLAG", "WAIT_FLAG", "BAR", "WAIT_FLAG_DEV", "SET_CROSS_CORE"})


def _union(columns: Instructions, pipe: Pipe) -> int:
    """Cycles in which a pipe works, all cores together."""
    works = np.array([name not in _WAITS for name in columns.names])[columns.name]
    rows = np.flatnonzero((columns.pipe == pipe) & works)
    if not rows.size:
        return 0
    order = rows[np.lexsort((columns.start[rows], columns.core[rows]))]
    start, end = columns.start[order].astype(np.int64), columns.end[order].astype(np.int64)
    # cores far apart on one axis, so that one sweep does for all
    shift = columns.core[order].astype(np.int64) * (int(end.max()) + 1)
    start, end = start + shift, np.maximum.accumulate(end + shift)
    gaps = np.maximum(0, start[1:] - end[:-1])
    return int(end[-1] - start[0] - gaps.sum())


def mean_ratio(results: Sequence[Result]) -> float:
    """The geometric mean of ours / published."""
    ratios = [math.log(r.ratio) for r in results if not r.problem]
    return math.exp(sum(ratios) / len(ratios)) if ratios else math.nan


def summary(results: Sequence[Result]) -> list[str]:
    """How good, for points that a parameter was set from and for those that only test, apart."""
    lines = []
    for role, what in (("test", "only tested"), ("fit", "set a parameter")):
        mine = [r for r in results if r.point.role == role and not r.problem]
        if not mine:
            continue
        near = sum(r.near for r in mine)
        kernels = {r.point.kernel for r in mine}
        lines.append(
            f"{what}: {len(mine)} points of {len(kernels)} kernels · {near} within {NEAR:.0%} "
            f"({near / len(mine):.0%}) · geometric mean {mean_ratio(mine):.3f}"
        )
    return lines


def as_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    return [
        {
            "kernel": r.point.kernel, "case": r.point.case, "chip": r.point.chip, "blocks": r.point.blocks,
            "role": r.point.role, "method": r.point.method, "l2": r.point.l2, "published_us": r.point.micros, "us": r.micros,
            "inside_us": r.inside, "hit_rate": r.hit_rate, "waves": r.waves, "instructions": r.instructions,
            "busy_us": dict(r.busy), "published_share": r.point.pipes, "spread": r.point.spread, "problem": r.problem,
        }
        for r in results
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pto-isa", type=Path, required=True, metavar="PATH", help="a checkout of pto-isa")
    parser.add_argument("--only", default="", metavar="TEXT", help="points whose kernel or case has it")
    parser.add_argument("--long", action="store_true", help="those that take minutes, too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument(
        "--pipes", action="store_true", help="busy time of each pipe, beside what is published"
    )
    options = parser.parse_args()
    chosen = [
        p
        for p in points()
        if options.only in f"{p.kernel} {p.case} {p.chip}" and (options.long or not p.long)
    ]
    results = []
    with tempfile.TemporaryDirectory(prefix="whole-kernels-") as name:
        for point in chosen:
            result = run(point, options.pto_isa, Path(name))
            results.append(result)
            if options.json:  # as they come: the long ones take minutes
                options.json.write_text(json.dumps(as_json(results), indent=1) + "\n", encoding="utf-8")
            shown = (
                result.problem or f"{result.micros:9.1f} us  {result.ratio:5.2f}  ({result.seconds:.1f} s)"
            )
            print(
                f"{point.kernel:<22} {point.case:<20} {point.micros:9.1f} us  {point.role:<8} {shown}",
                flush=True,
            )
            if options.pipes:
                for pipe, micros in result.busy:
                    share = point.pipes.get(pipe)
                    told = f"  published {share * point.micros / 100:8.1f}" if share else ""
                    print(f"    {pipe:<7} {micros:8.1f}{told}")
    for line in summary(results):
        print(line)


if __name__ == "__main__":
    main()

"""What the checker costs: processor time of checked runs against plain ones, and the memory that it keeps.

    python benchmarks/checker.py [--simpler PATH] [--kernels N] [--seed S]

Our examples' dispatches, and with a checkout of simpler all its kernels with made-up arguments, or N of them.
A ratio is of whole runs: processor time of this process and of the runner, from the arguments to the findings, the
best of three; a ratio over the limit is measured once more. Nothing fails by time. Behind the lines of the kernels
come the ten worst, and last `EXAMPLES kernels=… worst=… over=… bytes=…` and the same for `CHECKOUT`.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

import kernel_coverage  # noqa: E402
from insight_trace.errors import InsightTraceError  # noqa: E402
from insight_trace.replay.examine import dispatches  # noqa: E402
from insight_trace.replay.jobs import ReplayRequest  # noqa: E402
from insight_trace.scratch import scratch_folder  # noqa: E402
from insight_trace.simulate.embedded import simulator  # noqa: E402
from insight_trace.simulate.embedded.checked_run import run_checked  # noqa: E402
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded  # noqa: E402
from insight_trace.simulate.embedded.toolchain import Toolchain  # noqa: E402

SCENES = ("vector_chain", "mixed_example", "paged_attention", "spmd_multiblock")
TIMES = 3
Work = tuple[str, Any, Any, str]  # name, kernels, arguments, target


def _spent() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _best(call: Callable[[], Any], times: int = TIMES) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(times):
        began = _spent()
        result = call()
        best = min(best, _spent() - began)
    return best, result


def examples() -> Iterator[Work]:
    """Every kernel and mix that our scenes dispatch."""
    for name in SCENES:
        request = ReplayRequest(scene=ROOT / "examples" / name / "scene.py")
        with scratch_folder("checker") as folder:
            for job, _ in dispatches(request, folder):
                label = f"{name} {'+'.join(kernel.name for kernel in job.kernels)}"
                yield label, job.kernels, job.arguments, job.target


def checkout(simpler: Path, wanted: int, seed: int) -> Iterator[Work]:
    """A checkout's kernels, each on one core, and mixes on a cluster; `wanted` of them at random, or all (0)."""
    sources = kernel_coverage.kernel_sources(simpler)
    random.Random(seed).shuffle(sources)
    for source in sources[: wanted or None]:
        members, text = kernel_coverage.members_of(
            source, source.read_text(encoding="utf-8", errors="replace")
        )
        dirs = kernel_coverage.include_dirs(simpler, source)
        kernels = [simulator.Kernel(path.stem, path, kind, include_dirs=dirs) for path, kind in members]
        target = kernel_coverage.target_of(simpler, source)
        yield str(source.relative_to(simpler)), kernels, kernel_coverage.made_up_arguments(text), target


def measure(work: Iterator[Work], most: float, title: str) -> None:
    """One line for each, and what was worst."""
    toolchain = Toolchain.find()
    kept: list[tuple[int, ...]] = []
    plainly = simulator.findings_of

    def listening(result: Any, *rest: Any) -> Any:
        kept.append(result.checked)
        return plainly(result, *rest)

    simulator.findings_of = listening
    lines: list[tuple[float, float, str]] = []  # ratio, bytes of a touch, and all of it as text
    for name, kernels, arguments, target in work:
        options = EmbeddedOptions(target=target, seconds=60)
        try:
            first = run_embedded(kernels, arguments, options, toolchain)  # compiles
        except InsightTraceError as error:
            print(f"{name}: {error.what}", file=sys.stderr)
            continue
        if first.failure is not None:
            continue
        plain, _ = _best(lambda: run_embedded(kernels, arguments, options, toolchain))  # noqa: B023
        checked, _ = _best(lambda: run_checked(kernels, arguments, options, toolchain))  # noqa: B023
        touches, size = next(memory for memory in reversed(kept) if memory)
        if checked > most * plain:  # was it the machine?
            plain = min(plain, _best(lambda: run_embedded(kernels, arguments, options, toolchain))[0])  # noqa: B023
            checked = min(checked, _best(lambda: run_checked(kernels, arguments, options, toolchain))[0])  # noqa: B023
        ratio = checked / plain
        each = size / max(1, touches)
        text = (
            f"{ratio:5.2f}x  {1000 * plain:8.1f} ms -> {1000 * checked:8.1f} ms  {len(first.instructions):8,} instructions"
            f"  {touches:7,} touches of {each:5.0f} bytes  {name}"
        )
        print(text, flush=True)
        lines.append((ratio, each, text))
    simulator.findings_of = plainly
    print(f"the worst of {len(lines)}:")
    print(*(text for _, _, text in sorted(lines, reverse=True)[:10]), sep="\n")
    over = sum(ratio > most for ratio, _, _ in lines)
    worst, largest = (max((line[i] for line in lines), default=0.0) for i in (0, 1))
    print(f"{title} kernels={len(lines)} worst={worst:.2f} over={over} bytes={largest:.0f}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simpler", type=Path, help="a checkout of simpler")
    parser.add_argument("--kernels", type=int, default=0, help="how many of its kernels (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="which kernels")
    options = parser.parse_args(argv)
    measure(examples(), 4.0, "EXAMPLES")
    if options.simpler:
        measure(checkout(options.simpler, options.kernels, options.seed), 6.0, "CHECKOUT")


if __name__ == "__main__":
    main()

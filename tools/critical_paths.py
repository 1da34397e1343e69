"""Walks the critical path of every kernel of a simpler checkout, and holds two promises about it.

python tools/critical_paths.py --simpler PATH [--jobs N] [--only TEXT] [--seconds S] [--advice]

On one core, time on the path in which nothing is known to have been waited for is issue and flags on their way, and no
more. A kernel that ends with a flag to the scalar unit (`pipe_sync()`) gets the same first advice as the same kernel that
ends with `pipe_barrier(PIPE_ALL)`. Kernels and their made-up arguments are those of tools/kernel_coverage.py.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

import kernel_coverage as coverage
from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel
from insight_trace.outcome import Simulation
from insight_trace.replay.pipeline import make_trace
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.trace.advice import advise
from insight_trace.trace.critical import critical_path
from insight_trace.trace.stats import stats

_PIPE_SYNC = re.compile(r"^(\s*)pipe_sync\(\);", re.MULTILINE)
# Share of the path, and cycles of one piece of it, up to which idle time is issue and flags.
MOST_SHARE, MOST_PIECE = 0.05, 64


@dataclass(frozen=True)
class Walked:
    """What the path of one kernel showed."""

    source: str
    cycles: int = 0
    idle: int = 0  # cycles of the path in which nothing is known to have been waited for
    longest: int = 0  # the longest such piece
    cores: int = 1
    failed: str = ""
    endings: tuple[str, str] | None = None  # first advice with either ending, numbers left out
    advice: tuple[str, ...] = ()

    @property
    def stands_idle(self) -> bool:
        return self.cores == 1 and (self.idle > MOST_SHARE * self.cycles or self.longest > MOST_PIECE)

    @property
    def differs(self) -> bool:
        return self.endings is not None and self.endings[0] != self.endings[1]


def simulate(
    root: Path, source: Path, text: str, toolchain: Toolchain, options: EmbeddedOptions
) -> Simulation:
    """One kernel, with another text than its file has where that is given."""
    members, everything = coverage.members_of(source, text)
    dirs = (*coverage.include_dirs(root, source), str(source.parent))
    options = replace(options, target=coverage.target_of(root, source))
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder, source.name)
        changed.write_text(text, encoding="utf-8")
        kernels = [
            Kernel(path.stem, changed if path == source else path, core_type, include_dirs=dirs)
            for path, core_type in members
        ]
        return run_embedded(kernels, coverage.made_up_arguments(everything), options, toolchain)


def sentences(simulation: Simulation) -> tuple[str, ...]:
    trace = make_trace(simulation)
    return tuple(advice.text for advice in advise(trace, stats(trace)))


def first_without_numbers(simulation: Simulation) -> str:
    return re.sub(r"[\d,.]+", "N", next(iter(sentences(simulation)), ""))


def walk(root: Path, source: Path, toolchain: Toolchain, options: EmbeddedOptions) -> Walked:
    """One kernel; whatever happens is an outcome."""
    place = str(source.relative_to(root))
    text = source.read_text(encoding="utf-8", errors="replace")
    try:
        ran = simulate(root, source, text, toolchain, options)
        if ran.failure is not None:
            return Walked(place, failed=ran.failure.message)
        path = critical_path(make_trace(ran))
        idle = (path.end - path.begin)[path.idle]
        endings = None
        if _PIPE_SYNC.search(text):
            barrier = _PIPE_SYNC.sub(r"\1pipe_barrier(PIPE_ALL);", text)
            other = simulate(root, source, barrier, toolchain, options)
            endings = first_without_numbers(ran), first_without_numbers(other)
        return Walked(
            place, path.cycles, int(idle.sum()), int(idle.max(initial=0)), len(ran.instructions.cores),
            endings=endings, advice=sentences(ran),
        )  # fmt: skip
    except InsightTraceError as error:
        return Walked(place, failed=error.what)


def report(found: list[Walked], *, advice: bool) -> list[str]:
    lines = []
    for one in found:
        if one.stands_idle:
            lines.append(
                f"idle     {one.source}: {one.idle:,} of {one.cycles:,} cycles, once {one.longest:,}"
            )
        if one.differs and one.endings:
            lines.append(f"endings  {one.source}: {one.endings[0]} | {one.endings[1]}")
        if advice:
            lines += [f"{one.source}: {one.cycles:,} cycles", *(f"    {text}" for text in one.advice)]
    walked = [one for one in found if not one.failed]
    alone = [one for one in walked if one.cores == 1]
    ends = [one for one in walked if one.endings]
    lines.append(
        f"PATHS total={len(found)} walked={len(walked)} on_one_core={len(alone)} "
        f"idle={sum(one.stands_idle for one in alone)} two_endings={len(ends)} "
        f"differ={sum(one.differs for one in ends)}"
    )
    return lines


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simpler", type=Path, required=True, help="the checkout")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="kernels at a time")
    parser.add_argument("--only", default="", help="kernels whose path contains this text")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit for one run")
    parser.add_argument("--advice", action="store_true", help="also print what is advised")
    options = parser.parse_args(argv)
    root = options.simpler.resolve()
    if not root.is_dir():
        parser.error(f"--simpler: there is no directory {root}")
    sources = [path for path in coverage.kernel_sources(root) if options.only in str(path)]
    toolchain = Toolchain.find()
    toolchain.runner()
    how = EmbeddedOptions(seconds=options.seconds, timing_only=True)
    found = []
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for one in pool.map(lambda source: walk(root, source, toolchain, how), sources):
            found.append(one)
            print(f"\r{len(found)} of {len(sources)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print("\n".join(report(found, advice=options.advice)))
    return int(
        any(one.stands_idle or one.differs for one in found) or not any(not one.failed for one in found)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

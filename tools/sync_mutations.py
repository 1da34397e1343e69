"""Takes flags and barriers out of kernels, one at a time, and counts how often the checker sees what that breaks.

python tools/sync_mutations.py [--simpler PATH] [--kernels N] [--most-rows N] [--seed S] [--json F]

Kernels are our examples and a sample of a simpler checkout's, on one core, with made-up arguments. A slow oracle
(order_oracle.py) decides for each removal whether it leaves a dependent pair unordered. Then the engine runs the
kernel without these lines and its checker is asked. Last line: `MUTATIONS kernels=… removals=… broken=… found=…
false=… redundant=… redundant_broken=…`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernel_coverage
import order_oracle
from insight_trace.arguments.slots import ReplayArguments
from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel, Severity, Simulation
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain

ROOT = Path(__file__).resolve().parent.parent
_RACES = ("race", "race-same-pipe")


@dataclasses.dataclass
class Counts:
    """What came of all removals."""

    kernels: int = 0
    removals: int = 0
    broken: int = 0  # of them, leave a dependent pair unordered
    found: int = 0  # of those, reported by the checker
    false: int = 0  # removals that break nothing and are reported all the same
    redundant: int = 0  # called redundant by the checker
    redundant_broken: int = 0  # of those, wrongly
    racy: list[str] = dataclasses.field(default_factory=list)  # kernels with a race as they are
    missed: list[str] = dataclasses.field(default_factory=list)


def candidates(
    simpler: Path | None, wanted: int, seed: int
) -> Iterator[tuple[str, Kernel, ReplayArguments, str]]:
    """Single-core kernels: name, kernel, arguments, target."""
    roots = [ROOT / "examples", *([simpler] if simpler else [])]
    for number, root in enumerate(roots):
        sources = kernel_coverage.kernel_sources(root)
        if number:
            random.Random(seed).shuffle(sources)
            sources = sources[:wanted]
        for source in sources:
            text = source.read_text(encoding="utf-8", errors="replace")
            types = kernel_coverage.core_types(source, text)
            if len(types) != 1:
                continue
            target = kernel_coverage.target_of(root, source)
            dirs = kernel_coverage.include_dirs(root, source) if number else ()
            kernel = Kernel(source.stem, source, types[0], include_dirs=dirs)
            yield str(source.relative_to(root)), kernel, kernel_coverage.made_up_arguments(text), target


def races(run: Simulation) -> set[tuple[str, tuple[str, ...]]]:
    return {
        (f.category, tuple(f"{place.file}:{place.line}" for place in f.places))
        for f in run.findings
        if f.category in _RACES
    }


def mutate(
    kernel: Kernel, arguments: ReplayArguments, target: str, most_rows: int, counts: Counts, name: str
) -> None:
    """All removals of one kernel."""
    toolchain = Toolchain.find()
    options = EmbeddedOptions(target=target, check=True, seconds=20)
    plain = run_embedded([kernel], arguments, options, toolchain)
    if plain.failure is not None or len(plain.instructions) > most_rows:
        return
    stream = order_oracle.stream_of(plain.instructions, target)
    if any(f.category in _RACES and f.severity is Severity.ERROR for f in plain.findings):
        counts.racy.append(name)
    counts.kernels += 1
    idle = {
        frozenset(f"{place.file}:{place.line}" for place in f.places)
        for f in plain.findings
        if f.category == "redundant-sync"
    }
    known = set(order_oracle.unordered(stream))
    for lines, rows in order_oracle.sync_groups(stream):
        broken = [pair for pair in order_oracle.unordered(stream, rows) if pair not in known]
        places = tuple((line.rpartition(":")[0], int(line.rpartition(":")[2])) for line in lines)
        without = run_embedded([kernel], arguments, dataclasses.replace(options, left_out=places), toolchain)
        if without.failure is not None:
            continue
        counts.removals += 1
        told = bool(races(without) - races(plain))
        counts.broken += bool(broken)
        counts.found += bool(broken) and told
        counts.false += told and not broken
        if bool(broken) and not told:
            counts.missed.append(
                f"{name}: {', '.join(lines)}: {stream.lines[broken[0][0]]} -> {stream.lines[broken[0][1]]}"
            )
        if frozenset(lines) in idle:
            counts.redundant += 1
            counts.redundant_broken += bool(broken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simpler", type=Path, help="a checkout of simpler")
    parser.add_argument("--kernels", type=int, default=200, help="how many of its kernels to try")
    parser.add_argument(
        "--most-rows", type=int, default=1500, help="leave kernels with more instructions out"
    )
    parser.add_argument("--seed", type=int, default=0, help="which kernels")
    parser.add_argument("--json", type=Path, help="also write everything there")
    options = parser.parse_args()
    counts = Counts()
    for name, kernel, arguments, target in candidates(options.simpler, options.kernels, options.seed):
        try:
            mutate(kernel, arguments, target, options.most_rows, counts, name)
        except InsightTraceError as error:
            print(f"{name}: {error.what}", file=sys.stderr)
        print(f"\r{counts.kernels} kernels, {counts.removals} removals", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for line in [
        *(f"racy as it is: {name}" for name in counts.racy),
        *(f"missed: {text}" for text in counts.missed),
    ]:
        print(line)
    if options.json:
        options.json.write_text(json.dumps(dataclasses.asdict(counts), indent=1) + "\n")
    figures = " ".join(f"{f.name}={getattr(counts, f.name)}" for f in dataclasses.fields(counts)[:7])
    print(f"MUTATIONS {figures}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

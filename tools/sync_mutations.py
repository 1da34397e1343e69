"""Takes flags and barriers out of kernels, one at a time, and counts how often the checker sees what that breaks.

python tools/sync_mutations.py [--simpler PATH] [--kernels N] [--several mixes|blocks] [--most-rows N] [--seed S] [--json F]

Kernels are our examples and a sample of a simpler checkout's, with made-up arguments: on one core, or on several. A slow
oracle (order_oracle.py) decides for each removal whether it leaves a dependent pair unordered. Then the engine runs
the kernel without these lines and its checker is asked. Last line: `MUTATIONS kernels=… removals=… broken=… found=…
false=… redundant=… redundant_broken=…`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernel_coverage
import order_oracle
from insight_trace.arguments.slots import ReplayArguments
from insight_trace.errors import InsightTraceError
from insight_trace.finding import Severity
from insight_trace.model import Kernel
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain

ROOT = Path(__file__).resolve().parent.parent
_ASKS_FOR_ITS_BLOCK = re.compile(r"\bget_block_idx\s*\(")
_RACES = ("race", "race-same-pipe", "race-cores", "atomic-mix")


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
    racy: list[str] = dataclasses.field(default_factory=list)  # kernels with a race as they are, and which
    missed: list[str] = dataclasses.field(default_factory=list)
    falsely: list[str] = dataclasses.field(default_factory=list)


Candidate = tuple[str, list[Kernel], ReplayArguments, str]  # name, kernels, arguments, target


def candidates(simpler: Path | None, wanted: int, seed: int, several: str = "") -> Iterator[Candidate]:
    """Kernels on one core; with `several` mixes on a cluster, or kernels on two blocks."""
    roots = [ROOT / "examples", *([simpler] if simpler else [])]
    for root in roots:
        sources = kernel_coverage.kernel_sources(root)
        if root is simpler:
            random.Random(seed).shuffle(sources)
        taken = 0
        for source in sources:
            if root is simpler and taken >= wanted:
                break
            text = source.read_text(encoding="utf-8", errors="replace")
            types = kernel_coverage.core_types(source, text)
            target = kernel_coverage.target_of(root, source)
            dirs = kernel_coverage.include_dirs(root, source) if root is simpler else ()
            members = [(source, core_type) for core_type in types]
            if several == "mixes":
                members, text = kernel_coverage.members_of(source, text)
            if (len(members) > 1) != (several == "mixes"):
                continue
            if several == "blocks" and not _ASKS_FOR_ITS_BLOCK.search(text):
                continue  # two blocks of it do the same to the same bytes
            arguments = kernel_coverage.made_up_arguments(text)
            if several == "blocks":
                arguments = replace(arguments, block_count=2)
            kernels = [Kernel(path.stem, path, each, include_dirs=dirs) for path, each in members]
            taken += 1
            yield str(source.relative_to(root)), kernels, arguments, target


Race = tuple[str, Severity, tuple[str, ...]]


def races(run: Simulation) -> set[Race]:
    return {
        (f.category, f.severity, tuple(f"{place.file}:{place.line}" for place in f.places))
        for f in run.findings
        if f.category in _RACES
    }


def mutate(
    kernels: Sequence[Kernel],
    arguments: ReplayArguments,
    target: str,
    most_rows: int,
    counts: Counts,
    name: str,
) -> None:
    """All removals of one kernel."""
    toolchain = Toolchain.find()
    options = EmbeddedOptions(target=target, check=True, seconds=20)
    plain = run_embedded(kernels, arguments, options, toolchain)
    if plain.failure is not None or len(plain.instructions) > most_rows:
        return
    stream = order_oracle.stream_of(plain.instructions, target)
    racing = [f for f in plain.findings if f.category in _RACES and f.severity is Severity.ERROR]
    if racing:
        counts.racy.append(f"{name}: {racing[0].message}")
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
        without = run_embedded(kernels, arguments, replace(options, left_out=places), toolchain)
        if without.failure is not None:
            continue
        counts.removals += 1
        new = races(without) - races(plain)
        told = bool(new)
        counts.broken += bool(broken)
        counts.found += bool(broken) and told
        # accesses whose place the data decide are notes, and the oracle leaves them out
        wrongly = not broken and any(severity is Severity.ERROR for _, severity, _ in new)
        counts.false += wrongly
        if wrongly:
            counts.falsely.append(f"{name}: {', '.join(lines)}: {min(new)}")
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
    parser.add_argument("--several", choices=("mixes", "blocks"), default="", help="kernels on several cores")
    parser.add_argument("--seed", type=int, default=0, help="which kernels")
    parser.add_argument("--json", type=Path, help="also write everything there")
    options = parser.parse_args()
    counts = Counts()
    chosen = candidates(options.simpler, options.kernels, options.seed, options.several)
    for name, kernels, arguments, target in chosen:
        try:
            mutate(kernels, arguments, target, options.most_rows, counts, name)
        except InsightTraceError as error:
            print(f"{name}: {error.what}", file=sys.stderr)
        print(f"\r{counts.kernels} kernels, {counts.removals} removals", end="", file=sys.stderr, flush=True)
        if options.json:  # as it stands: a long run may be ended
            options.json.write_text(json.dumps(dataclasses.asdict(counts), indent=1) + "\n")
    print(file=sys.stderr)
    for line in [
        *(f"racy as it is: {name}" for name in counts.racy),
        *(f"missed: {text}" for text in counts.missed),
        *(f"reported, and nothing broken: {text}" for text in counts.falsely),
    ]:
        print(line)
    figures = " ".join(f"{f.name}={getattr(counts, f.name)}" for f in dataclasses.fields(counts)[:7])
    print(f"MUTATIONS {figures}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

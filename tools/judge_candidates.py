"""Judges 200 candidates of one task twice: how many are called what they are, how fast, in how much memory.

    python tools/judge_candidates.py [--share N] [--runs N] [--jobs N]

The candidates are made by tests/judge/candidates.py: right, slow, wrong by one op, racing, hanging, cheating in ten ways.
"""

import argparse
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.judge.candidates import write_candidates  # noqa: E402

from insight_trace.judge import judge_all  # noqa: E402
from insight_trace.judge.verdict import Verdict  # noqa: E402
from insight_trace.supervisor import tree_of  # noqa: E402


def resident() -> int:
    """MiB of this process and of those that judge for it."""
    total = 0
    for pid in (os.getpid(), *tree_of(os.getpid())):
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        total += pages * os.sysconf("SC_PAGE_SIZE")
    return total >> 20


def processor() -> float:
    """Seconds that this process and those that ended for it have used of a core."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def one_run(
    folder: Path, share: int, jobs: int | None
) -> tuple[list[Verdict], list[str], float, float, list[int]]:
    task, paths, outcomes = write_candidates(folder, share)
    found: dict[int, Verdict] = {}
    memory = []
    begin, used = time.monotonic(), processor()
    for place, verdict in judge_all(paths, task, jobs=jobs):
        found[place] = verdict
        if len(found) % max(1, len(paths) // 4) == 0:
            memory.append(resident())
    seconds = time.monotonic() - begin
    return [found[place] for place in range(len(paths))], outcomes, seconds, processor() - used, memory


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=int, default=1, help="every n-th candidate")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--jobs", type=int, help="processes (as many as cores)")
    options = parser.parse_args()
    runs = []
    with TemporaryDirectory() as folder:
        for number in range(options.runs):
            verdicts, outcomes, seconds, used, memory = one_run(
                Path(folder) / "candidates", options.share, options.jobs
            )
            right = sum(
                verdict.outcome == outcome for verdict, outcome in zip(verdicts, outcomes, strict=True)
            )
            rate = len(verdicts) / seconds * 3600
            load = os.getloadavg()[0]
            print(
                f"run {number + 1}: {right} of {len(verdicts)} called what they are, {seconds:.0f} s, {rate:,.0f} an hour, "
                f"{used / len(verdicts):.2f} s of a core each (load of the machine {load:.1f}), "
                f"MiB after each quarter: {memory}",
                flush=True,
            )
            for verdict, outcome in zip(verdicts, outcomes, strict=True):
                if verdict.outcome != outcome:
                    print(f"  {verdict.candidate}: {verdict.outcome}, is {outcome}: {verdict.reason}")
            runs.append((verdicts, Counter(outcomes), right == len(verdicts)))
    same = all(verdicts == runs[0][0] for verdicts, _, _ in runs)
    print(f"outcomes {dict(runs[0][1])}; the same verdicts in every run: {'yes' if same else 'NO'}")
    return 0 if same and all(good for _, _, good in runs) else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""Makes one tile op of a kernel wrong, and asks `why --first-mismatch` and `diverge` which one it was.

python tools/inject_faults.py --scene examples/paged_attention/scene.py [--scene ...] [--tree SIMPLER] [--tree examples]
python tools/inject_faults.py --tree SIMPLER --part 0 2 --json A; ... --part 1 2 --json B; ... --join A --join B

A kernel is a source with its arguments: those of a scene's dispatches, or of a tree's kernels, on arguments that are
made up. A fault changes the operands of one op while the kernel runs, in one execution of its line or in all: another
rounding mode, another element type, a row less, a valid size off by one, another buffer, another number
(tools/fault_kinds.py). A fault that ends the run or that no output shows is counted and drawn again; none comes twice.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fault_kernels import Subject, of_scene, of_tree
from fault_kinds import KINDS, Fault, draw
from insight_trace.debug.debug_session import Session
from insight_trace.debug.divergence import diverge
from insight_trace.debug.mismatch import wrong_outputs
from insight_trace.debug.tile_calls import TileCalls
from insight_trace.debug.why import first_mismatch
from insight_trace.errors import InsightTraceError
from insight_trace.replay.pipeline import make_trace, recording_of

_DRAWS = 4  # of one kind in one kernel
Result = dict[str, Any]


def wrong_session(good: Session, fault: Fault, folder: Path) -> Session | str:
    """The run with the fault; or why there is none: it fails, or no output shows it."""
    run = good.run(fault.changes)
    if run.failure is not None:
        return "fails"
    about = dict(good.recording.about) | {
        "changes": [[c.call, c.operand, c.field, c.value] for c in fault.changes]
    }
    folder.mkdir()
    recording = recording_of(run, make_trace(run), good.kernels, good.arguments, (), about)
    session = Session(folder, recording, good.record, (good.kernels, good.arguments))
    return session if wrong_outputs(session, run) else "not seen"


def asked(good: Session, fault: Fault, bad: Session, seconds: float) -> Result:
    """What both commands say."""
    wanted = (fault.file, fault.line, fault.op)
    begin = time.perf_counter()
    plain = first_mismatch(bad, seconds=0)
    middle = time.perf_counter()
    said = first_mismatch(bad, seconds=seconds) if seconds > 0 else plain
    between = time.perf_counter()
    parted = diverge(good, bad)
    named = parted.origin[0] if parted.origin else parted.first.a if parted.first else None
    place = (*good.place_of(named.first), named.op) if named is not None else None

    def rank(found: Any) -> int:
        for number, one in enumerate(found.suspects, 1):
            # a workspace's copy of a kernel has a number before its name
            same_file = Path(one.file).name.endswith(Path(fault.file).name.lstrip("0123456789_"))
            if same_file and (one.line, one.op) == wanted[1:]:
                return number
        return 0

    first = said.suspects[0] if said.suspects else None
    return {
        "kind": fault.kind, "op": fault.op, "line": fault.line, "fault": fault.text, "executions": fault.executions,
        "rank": rank(said), "rank_without_runs": rank(plain), "suspects": len(said.suspects), "runs": said.runs,
        "diverge": place == wanted, "seconds": round(between - middle, 2), "seconds_without": round(middle - begin, 2),
        "first": f"{first.op}:{first.line} {first.fix} {first.explained:.2f}" if first else "",
        "diverged": f"{place[2]}:{place[1]}" if place else "",
    }  # fmt: skip


class Injection:
    """Faults in one kernel after the other, kinds that were rare so far first."""

    def __init__(self, seed: int, faults: int, seconds: float) -> None:
        self.results: list[Result] = []
        self.left_out: Counter[tuple[str, str]] = Counter()
        self.kernels: set[str] = set()
        self._seed, self._faults, self._seconds = seed, faults, seconds

    def of(self, subject: Subject) -> int:
        """How many faults of a kernel were looked for."""
        if subject.identity in self.kernels:
            return 0
        dice = random.Random(f"{self._seed} {subject.identity}")
        calls = TileCalls(subject.session)
        found, seen = 0, set()
        for kind in self._kinds(dice):
            for number in range(_DRAWS):
                fault = draw(kind, subject.session, calls, dice)
                if fault is None or found >= self._faults:
                    break
                if fault in seen:
                    continue
                seen.add(fault)
                folder = subject.session.workspace / f"fault-{kind}-{number}"
                bad = wrong_session(subject.session, fault, folder)
                if isinstance(bad, str):
                    self.left_out[kind, bad] += 1
                else:
                    answer = asked(subject.session, fault, bad, self._seconds)
                    self.results.append({"kernel": subject.name, "identity": subject.identity} | answer)
                    print(json.dumps(self.results[-1]), flush=True)
                    found += 1
                shutil.rmtree(folder, ignore_errors=True)
                if not isinstance(bad, str):
                    break
        if found:
            self.kernels.add(subject.identity)
        return found

    def join(self, other: dict[str, Any]) -> None:
        """Adds what another run found; of a kernel that both had the first."""
        fresh = [result for result in other["results"] if result["identity"] not in self.kernels]
        self.results += fresh
        self.kernels |= {result["identity"] for result in fresh}
        for kind, why, count in other["left_out"]:
            self.left_out[kind, why] += count

    def _kinds(self, dice: random.Random) -> list[str]:
        so_far = Counter(result["kind"] for result in self.results)
        return sorted(KINDS, key=lambda kind: (so_far[kind], dice.random()))

    def table(self) -> Iterator[str]:
        """How often each was right, by kind."""
        yield f"{'fault':<10}{'faults':>7}{'first':>8}{'three':>8}   without runs: first, three{'diverge':>10}   left out"
        for kind in [*KINDS, "all"]:
            mine = [r for r in self.results if kind in (r["kind"], "all")]
            if not mine:
                continue

            def share(key: str, most: int, of: list[Result] = mine) -> str:
                return f"{100 * sum(1 <= int(r[key]) <= most for r in of) / len(of):.1f} %"

            left = Counter[str]()
            for (of_kind, why), count in self.left_out.items():
                left[why] += count if kind in (of_kind, "all") else 0
            yield (
                f"{kind:<10}{len(mine):>7}{share('rank', 1):>8}{share('rank', 3):>8}"
                f"{share('rank_without_runs', 1):>23}{share('rank_without_runs', 3):>8}{share('diverge', 1):>9}   "
                f"{left['fails']} end the run, {left['not seen']} no output shows"
            )
        yield f"{len(self.kernels)} kernels, seed {self._seed}, {self._seconds:g} s of runs for an answer"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scene", action="append", default=[], metavar="SCENE[::CASE]")
    parser.add_argument(
        "--tree", action="append", type=Path, default=[], help="a folder of sources with kernel_entry"
    )
    parser.add_argument("--kernels", type=int, default=10_000, help="with a fault, of each tree")
    parser.add_argument("--faults", type=int, default=1, help="of each kernel (default: %(default)s)")
    parser.add_argument("--target", choices=("a2a3", "a5"), help="of scenes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="of runs for one answer")
    parser.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), metavar=("I", "N"), help="the Ith of N of a tree"
    )
    parser.add_argument(
        "--join", type=Path, action="append", default=[], help="results of another run (its --json)"
    )
    parser.add_argument("--json", type=Path, metavar="F")
    options = parser.parse_args()
    injection = Injection(options.seed, options.faults, options.seconds)
    for text in options.scene:
        scene, _, case = text.partition("::")
        with tempfile.TemporaryDirectory() as folder:
            try:
                for subject in of_scene(Path(scene), case or None, Path(folder), options.target):
                    injection.of(subject)
            except InsightTraceError as error:
                print(f"  {text}: {error.what}", file=sys.stderr)
    for root in options.tree:
        found = 0
        with tempfile.TemporaryDirectory() as folder:
            part = (options.part[0], options.part[1])
            for subject in of_tree(root.resolve(), Path(folder), random.Random(options.seed), part):
                found += injection.of(subject) > 0
                shutil.rmtree(subject.session.workspace, ignore_errors=True)
                if found >= options.kernels:
                    break
    for file in options.join:
        injection.join(json.loads(file.read_text()))
    if injection.results:
        print("\n".join(injection.table()))
    if options.json:
        left = [[*key, count] for key, count in injection.left_out.items()]
        options.json.write_text(json.dumps({"results": injection.results, "left_out": left}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

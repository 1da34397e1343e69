"""Captures every scene of a checkout, one case each, and prints which pass and why the others do not.

    python tools/scene_coverage.py CHECKOUT [--platform a2a3sim a5sim] [--only TEXT] [--jobs N] [--seconds S]

A scene is recorded at level 3, on each platform that it has a case for. It passes when it runs to its end
and gives what its golden function expects. Scenes import torch, so this needs an environment that has it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from insight_trace import load_scene
from insight_trace.errors import InsightTraceError


@dataclass(frozen=True)
class Outcome:
    path: str
    platform: str
    runtime: str
    case: str
    status: str  # passed, golden failed, nothing compared, failed, not for here
    cause: str


def find_scenes(checkout: Path) -> list[Path]:
    """Python files below examples/ and tests/st/ that declare a scene."""
    found = []
    for folder in ("examples", "tests/st"):
        for path in sorted((checkout / folder).rglob("test_*.py")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if "@scene_test" in text and "CALLABLE" in text:
                found.append(path)
    return found


def capture_scene(path: Path, options: argparse.Namespace) -> list[Outcome]:
    """What becomes of a scene on each of the platforms that it is for."""
    checkout: Path = options.checkout
    name = str(path.relative_to(checkout))
    try:
        scene = load_scene(path)
    except InsightTraceError as error:
        return [Outcome(name, "", "", "", "failed", str(error).replace(f"{checkout}/", ""))]
    runs_on = {p for case in scene.cases for p in case.platforms}
    if scene.level > 3:
        return [Outcome(name, "", scene.runtime, "", "not for here", f"level {scene.level}")]
    wanted = [p if p in runs_on else p.removesuffix("sim") for p in options.platform]
    # cases that only running the module tells: the first of them, wherever it runs
    wanted = [p for p in wanted if p in runs_on] if runs_on else [""]
    if not wanted:
        cause = f"for {', '.join(sorted(runs_on))}"
        return [Outcome(name, "", scene.runtime, "", "not for here", cause)]
    return [_capture(path, name, scene.runtime, platform, options) for platform in wanted]


def _capture(path: Path, name: str, runtime: str, platform: str, options: argparse.Namespace) -> Outcome:
    checkout, seconds = options.checkout, options.seconds

    def outcome(case: str, status: str, cause: str) -> Outcome:
        return Outcome(name, platform, runtime, case, status, cause.replace(f"{checkout}/", ""))

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "insight_trace", "capture", str(path), "--json", "--dump-args", "3"]
        command += ["-o", f"{folder}/run", "--time-limit", str(seconds)]
        command += ["--platform", platform] if platform else []
        try:
            tried = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=4 * seconds,
                preexec_fn=lambda: _limit_memory(options.gigabytes),
            )
        except subprocess.TimeoutExpired:
            return outcome("", "failed", f"not done after {4 * seconds:g} s")
    if not tried.stdout.startswith("{"):
        cause = next((line for line in tried.stderr.splitlines() if line.strip()), "no word")
        cause = cause.removeprefix("insight-trace capture: ")
        return outcome("", "not for here" if tried.returncode == 2 else "failed", cause)
    result = json.loads(tried.stdout)
    failure, golden = result["failure"], result["golden"]
    if failure:
        where = f"{failure['where']}: " if failure["where"] else ""
        return outcome(result["case"], "failed", f"[{failure['fault']}] {where}{failure['message']}")
    if golden is None or golden["passed"] is None:
        why = "its golden function changes no output" if golden else "it has no golden function"
        return outcome(result["case"], "nothing compared", why)
    if not golden["passed"]:
        return outcome(result["case"], "golden failed", golden["message"])
    return outcome(result["case"], "passed", f"{golden['compared']:,} elements")


def _limit_memory(gigabytes: float) -> None:
    # the tensors of a few scenes are those of a whole model: better no room than a machine that stands still
    most = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--platform", nargs="+", default=["a2a3sim", "a5sim"])
    parser.add_argument("--only", default="", help="part of the path of the scenes to run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--gigabytes", type=float, default=6.0, help="that one scene may take")
    options = parser.parse_args()
    options.checkout = options.checkout.resolve()
    scenes = [p for p in find_scenes(options.checkout) if options.only in str(p)]
    counts: Counter[str] = Counter()
    passed: set[str] = set()
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcomes in pool.map(lambda p: capture_scene(p, options), scenes):
            for outcome in outcomes:
                counts[outcome.status] += 1
                counts[f"{outcome.status}, {outcome.runtime}"] += 1
                if outcome.status == "passed":
                    passed.add(outcome.path)
                    counts[f"passed, {outcome.platform or 'first platform of the case'}"] += 1
                print(
                    f"{outcome.status:<13} {outcome.path} {outcome.platform} {outcome.case}".rstrip(),
                    flush=True,
                )
                if outcome.cause:
                    print(f"{'':<13} {outcome.cause}", flush=True)
    print(f"{len(passed):>5}  of {len(scenes)} scenes pass")
    for status, count in sorted(counts.items()):
        print(f"{count:>5}  {status}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

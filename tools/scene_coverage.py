"""Captures every scene of a checkout, one case each, and prints which pass and why the others do not.

    python tools/scene_coverage.py CHECKOUT [--platform a2a3sim] [--only TEXT] [--jobs N] [--seconds S]

A scene passes when it runs to its end and gives what its golden function expects. Scenes import torch, so
this needs an environment that has it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from insight_trace import load_scene
from insight_trace.errors import InsightTraceError


@dataclass(frozen=True)
class Outcome:
    path: str
    runtime: str
    case: str
    status: str  # passed, golden failed, failed, not for here
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


def capture_one(path: Path, checkout: Path, platform: str, seconds: float) -> Outcome:
    name = str(path.relative_to(checkout))
    try:
        scene = load_scene(path)
    except InsightTraceError as error:
        return Outcome(name, "", "", "failed", str(error).replace(f"{checkout}/", ""))
    runs_on = {p for case in scene.cases for p in case.platforms}
    wanted = next((p for p in (platform, platform.removesuffix("sim")) if p in runs_on), None)
    if wanted is None or scene.level > 2:
        cause = f"for {', '.join(sorted(runs_on))}" if scene.level <= 2 else f"level {scene.level}"
        return Outcome(name, scene.runtime, "", "not for here", cause)
    command = [sys.executable, "-m", "insight_trace", "capture", str(path), "--json", "--dump-args", "0"]
    command += ["--time-limit", str(seconds), "--platform", wanted]
    runtime = scene.runtime
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=4 * seconds)
    except subprocess.TimeoutExpired:
        return Outcome(name, runtime, "", "failed", f"not done after {4 * seconds:g} s")
    if not tried.stdout.startswith("{"):
        cause = next((line for line in tried.stderr.splitlines() if line.strip()), "no word")
        cause = cause.removeprefix("insight-trace capture: ").replace(f"{checkout}/", "")
        return Outcome(name, runtime, "", "not for here" if tried.returncode == 2 else "failed", cause)
    result = json.loads(tried.stdout)
    failure, golden = result["failure"], result["golden"]
    if failure:
        where = f"{failure['where']}: ".replace(f"{checkout}/", "") if failure["where"] else ""
        cause = f"[{failure['fault']}] {where}{failure['message']}"
        return Outcome(name, runtime, result["case"], "failed", cause)
    if golden and not golden["passed"]:
        return Outcome(name, runtime, result["case"], "golden failed", golden["message"])
    cause = "" if golden else "no golden function"
    return Outcome(name, runtime, result["case"], "passed", cause)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--platform", default="a2a3sim")
    parser.add_argument("--only", default="", help="part of the path of the scenes to run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    scenes = [p for p in find_scenes(checkout) if options.only in str(p)]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda p: capture_one(p, checkout, options.platform, options.seconds), scenes)
        for outcome in outcomes:
            counts[outcome.status] += 1
            counts[f"{outcome.status}, {outcome.runtime}"] += 1
            print(f"{outcome.status:<13} {outcome.path} {outcome.case}".rstrip(), flush=True)
            if outcome.cause:
                print(f"{'':<13} {outcome.cause}", flush=True)
    for status, count in sorted(counts.items()):
        print(f"{count:>5}  {status}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

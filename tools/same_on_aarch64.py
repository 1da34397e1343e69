"""Runs the demo and the example scenes here and, compiled for aarch64, in qemu, and compares every byte.

    python tools/same_on_aarch64.py

Compared are the captured dump and the replay's export: arguments, results, instructions and their times.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AARCH64 = {
    "CXX": "aarch64-linux-gnu-g++",
    "INSIGHT_TRACE_EMULATOR": "qemu-aarch64 -L /usr/aarch64-linux-gnu",
}
_TIME = re.compile(r"_\d{14}(?:\d{3})?(?:_[A-Z]{16})?")  # in the names of an export


def commands() -> list[list[str]]:
    """The demo, and a capture of every example."""
    scenes = sorted((ROOT / "examples").glob("*/scene.py"))
    captures = [["capture", str(scene), "-o", f"captured/{scene.parent.name}"] for scene in scenes]
    return [["demo", "-o", "demo"], *captures]


def digests(folder: Path) -> dict[str, str]:
    """Of every file under `folder`, without the kernels as machine code and without the times of the run."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = _TIME.sub("", str(path.relative_to(folder)))
        if path.is_file() and path.name != "replay.json" and "/kernel/" not in name:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def run(arguments: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "insight_trace", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"insight-trace {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        results = []
        for machine, environment in (("here", {}), ("aarch64", AARCH64)):
            folder = Path(name) / machine
            folder.mkdir()
            for command in commands():
                run(command, folder, environment)
            results.append(digests(folder))
    here, there = results
    differing = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    for path in differing:
        print(f"differs: {path}")
    whole = hashlib.sha256(repr(sorted(there.items())).encode()).hexdigest()
    print(f"{len(here) - len(differing)} of {len(here)} files are the same on aarch64 · digest {whole[:16]}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

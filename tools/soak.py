"""Works many times, many at once, and watches what the machine loses: memory, descriptors, processes, files.

    python tools/soak.py [--seconds 60] [--at-once 8]

One process replays an example kernel and reads a scene, a dump and a trace on `--at-once` threads; after each round follows
a command line, in turns. Figures are taken when every command line was run once, and at the end; exit code 1 if memory grew
by more than a tenth and 64 MiB (threads leave holes in it), what lives there by a fiftieth, or anything else at all.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import gc
import io
import itertools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from insight_trace import load_dump, load_scene, open_trace, simulate
from insight_trace.__main__ import main as tool
from insight_trace.report.page import write_page
from insight_trace.simulate.embedded import job_files

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "data" / "fuzz"
SCENE = str(ROOT / "examples" / "vector_chain" / "scene.py")
KERNEL = ROOT / "examples" / "kernels" / "vector_add.cpp"
LINES = (
    ["capture", SCENE, "-o", "dump"],
    ["replay", SCENE, "--func-id", "0", "--dump-dir", "dump", "--dispatch-id", "0", "-o", "workspace"],
    ["why", "workspace", "2[0,0]"],
    ["run", SCENE, "--jobs", "1", "-o", "run"],
    ["gate", "base.json", SCENE, "--update", "--jobs", "1"],
    ["check", SCENE, "--sarif", "found.sarif"],
    ["clean", str(CORPUS / "trace.json"), "-o", "clean"],
    ["view", str(CORPUS / "trace.json"), "--no-browser", "-o", "page.html"],
    ["dump", "export", str(CORPUS / "kernel_args_dump.json"), "-o", "exported"],
)


def figures(*folders: str) -> dict[str, int]:
    """What this process holds, and what it left on the machine."""
    gc.collect()
    return {
        "live blocks": sys.getallocatedblocks(),
        "memory": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
        "files": sum(len(list(Path(folder).iterdir())) for folder in folders),
    }


def turn(number: int) -> bool:
    """One replay, or one of each reader; whether it gave what it should."""
    if number % 4:
        return simulate(KERNEL, {slot: np.ones(64 * 64, np.float32) for slot in range(3)}).failure is None
    load_scene(ROOT / "examples" / "paged_attention" / "scene.py")
    page = io.BytesIO()
    write_page(page, [open_trace(CORPUS / "trace.json")], ["one"])
    return bool(list(load_dump(CORPUS / "args_dump.json").dispatches)) and page.tell() > 0


def command_line(words: list[str], folder: Path) -> bool:
    if words is LINES[0]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = tool(words)
    if code:
        print(f"{' '.join(words)}: {code}\n{said.getvalue()[-500:]}")
    return code == 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    begin, early, results = time.monotonic(), dict[str, int](), list[bool]()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory, tempfile.TemporaryDirectory() as disk:
        # places for temporary files that nobody else uses
        job_files._SHARED_MEMORY, tempfile.tempdir = Path(memory), disk
        # every command line has been loaded when the first figures are taken, and comes again before the last
        for rounds, words in enumerate(itertools.cycle(LINES)):
            if rounds > 2 * len(LINES) and time.monotonic() - begin >= options.seconds:
                break
            if rounds == len(LINES):
                early = figures(memory, disk)
            with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
                results += pool.map(turn, range(options.at_once))
            results.append(command_line(words, Path(disk, "commands")))
        late = figures(memory, disk)
        tempfile.tempdir = None
    allowed = {"memory": early["memory"] // 10 + (64 << 20), "live blocks": early["live blocks"] // 50}
    bad = [name for name in late if late[name] - early[name] > allowed.get(name, 0)]
    failures = results.count(False)
    print(f"{len(results)} turns, {options.at_once} at once; {failures} differ")
    for name, value in late.items():
        print(f"{name:14}{early[name]:>16,}{value:>16,}{'  grows' if name in bad else ''}")
    return 1 if bad or failures else 0


if __name__ == "__main__":
    sys.exit(main())

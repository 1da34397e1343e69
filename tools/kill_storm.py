"""Kills commands at random moments and looks at what they leave.

    python tools/kill_storm.py [--kills 1000] [--jobs 4] [--slower 1] [--seed 0] [--json FILE]

Every round starts one command, sends it SIGKILL, SIGTERM or SIGINT after a random time (up to what it usually takes,
times `--slower` on a busy machine), and then checks: its output
is absent or whole, nothing that it started is alive, and the same command works in the same place afterwards (on a
sample of the rounds). Prints a table by signal and command; exit code 1 if anything was broken or alive.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "data" / "fuzz"
TOOL = [sys.executable, "-m", "insight_trace"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MARK = "INSIGHT_TRACE_STORM"
_GONE_SECONDS = (
    10.0  # a dead tool's children are killed by the system; a capture's runner first ends its dump
)


def commands(dump: Path) -> dict[str, tuple[list[str], float]]:
    """What is run ("{}" is its output's place), and about how long it takes."""
    scene = str(ROOT / "examples" / "vector_chain" / "scene.py")
    trace = str(CORPUS / "trace.json")
    replay = ["replay", scene, "--func-id", "0", "--dump-dir", str(dump), "--dispatch-id", "0", "-o", "{}"]
    return {
        "replay": (replay, 1.5),
        "capture": (["capture", scene, "-o", "{}"], 2.0),
        "profile": (
            ["profile", "--build-dir", "{build}", "--func", "vector_add", "--output-root", "{}"],
            2.0,
        ),
        "clean": (["clean", trace, "-o", "{}"], 0.7),
        "view": (["view", trace, "--no-browser", "-o", "{}"], 0.7),
        "dump export": (["dump", "export", str(CORPUS / "kernel_args_dump.json"), "-o", "{}"], 0.5),
        "op": (["op", "TADD", "--dtype", "float", "--rows", "64", "--cols", "64"], 1.0),
        "stats": (["stats", trace], 0.6),
    }


def alive(mark: str) -> list[str]:
    """Processes that bear the mark of a round."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found.append(
                        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
                    )
        except OSError:
            continue
    return found


def whole(name: str, place: Path) -> bool:
    """Whether what stands at the output's place is what the command promises of a finished one, or nothing."""
    if name in ("op", "stats") or not place.exists():
        return True
    if name == "replay":
        return (place / "replay.json").is_file() and any(
            place.glob("insight_export/OPPROF_*/simulator/trace.json")
        )
    if name == "capture":
        return (place / "args_dump" / "args_dump.json").is_file()
    if name == "clean":
        return (place / "summary.txt").is_file() and (place / "instr_metrics.json").is_file()
    if name == "view":
        return b"</html>" in place.read_bytes()[-2000:]
    if name == "profile":
        done = [p for run in place.glob("kernel_insight_all_funcs_*") for p in (run / "funcs").glob("[!.]*")]
        return all(any(p.glob("collect/out/OPPROF_*/simulator/visualize_data.bin")) for p in done)
    return any(place.iterdir())


def one(
    number: int, seed: int, table: dict[str, tuple[list[str], float]], root: Path, slower: float
) -> dict[str, object]:
    dice = random.Random(f"{seed}-{number}")
    name = dice.choice(list(table))
    words, usual = table[name]
    sent = SIGNALS[number % 3]
    folder = root / str(number)
    folder.mkdir()
    place, mark = folder / "out", f"{os.getpid()}-{seed}-{number}"
    if "{build}" in words:
        shutil.copytree(ROOT / "examples" / "pypto_build", folder / "build")
    filled = [w.replace("{}", str(place)).replace("{build}", str(folder / "build")) for w in words]
    environment = {**os.environ, MARK: mark, "INSIGHT_TRACE_SANDBOX": "default"}
    process = subprocess.Popen(
        [*TOOL, *filled], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(dice.uniform(0, usual * slower))
    hit = process.poll() is None
    process.send_signal(sent)
    _, said = process.communicate()
    end = time.monotonic() + _GONE_SECONDS
    while (left := alive(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    row = {"name": name, "signal": sent.name, "hit": hit, "alive": left, "said": ""}
    row["broken"] = not whole(name, place)
    if b"Traceback" in said and b"insight_trace/" in said and sent != signal.SIGKILL:
        row["said"] = said.decode(errors="replace")[-400:]
    row["hidden"] = (
        [p.name for p in folder.iterdir() if p.name.startswith(".")] if sent != signal.SIGKILL else []
    )
    if number % 10 == 0 and not place.exists() and name not in ("op", "stats"):
        again = subprocess.run([*TOOL, *filled], cwd=folder, capture_output=True, text=True)
        row["again"] = again.returncode
        if again.returncode:
            row["said"] = again.stderr[-400:]
    shutil.rmtree(folder, ignore_errors=True)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--slower", type=float, default=1.0, help="than a quiet machine is this one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="stop after this time, however many kills that were")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="insight-trace-storm-"))
    try:
        dump = root / "dump"
        scene = str(ROOT / "examples" / "vector_chain" / "scene.py")
        subprocess.run([*TOOL, "capture", scene, "-o", str(dump)], check=True, capture_output=True)
        table = commands(dump)
        for words, _ in table.values():  # compiled once, so that kills hit the runs
            filled = [w.replace("{}", str(root / "first" / "out")).replace(
                "{build}", str(ROOT / "examples" / "pypto_build")) for w in words]  # fmt: skip
            subprocess.run([*TOOL, *filled], capture_output=True)
            shutil.rmtree(root / "first", ignore_errors=True)
        rows, begin = [], time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            waiting = set()
            numbers = iter(range(options.kills))
            while True:
                late = options.seconds is not None and time.monotonic() - begin > options.seconds
                while (
                    len(waiting) < options.jobs and not late and (number := next(numbers, None)) is not None
                ):
                    waiting.add(pool.submit(one, number, options.seed, table, root, options.slower))
                if not waiting:
                    break
                done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
                rows += [each.result() for each in done]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row in rows:
        count = counts[str(row["name"]), str(row["signal"])]
        count["kills"] += 1
        count["hit"] += bool(row["hit"])
        count["broken"] += bool(row["broken"])
        count["alive"] += bool(row["alive"])
        count["hidden"] += bool(row["hidden"])
        count["tracebacks"] += bool(row["said"]) and "again" not in row
        count["again"] += "again" in row
        count["again failed"] += bool(row.get("again"))
        if row["broken"] or row["alive"] or row["said"] or row["hidden"]:
            print(json.dumps(row))
    columns = ("kills", "hit", "broken", "alive", "hidden", "tracebacks", "again", "again failed")
    print(f"{'command':14}{'signal':10}" + "".join(f"{c:>13}" for c in columns))
    total: collections.Counter[str] = collections.Counter()
    for (name, sent), count in sorted(counts.items()):
        total.update(count)
        print(f"{name:14}{sent:10}" + "".join(f"{count[c]:>13}" for c in columns))
    print(f"{'all':24}" + "".join(f"{total[c]:>13}" for c in columns))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(total[c] for c in ("broken", "alive", "tracebacks", "again failed")) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Every command as faults and kills find it: what stands there before, the words, and what is an output."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from insight_trace.profile.manifest import POINTER

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = ROOT / "tests" / "data" / "fuzz"
EXAMPLES = ROOT / "examples"
CHAIN = str(EXAMPLES / "vector_chain" / "scene.py")
_DISPATCHES = 4  # of that scene
TURN, ALL = "turn", "all"  # each call with one of the faults, or with every one


@dataclass(frozen=True)
class Command:
    """Runs in an empty folder, which is all that it may change."""

    words: tuple[str, ...]
    before: tuple[
        tuple[str, ...] | Callable[[Path], object], ...
    ] = ()  # what fills the folder: commands, or calls
    units: tuple[str, ...] = ("*",)  # patterns below the folder: each of these is whole, or as it was
    working: tuple[str, ...] = ()  # what a run that was ended goes on with
    last: str = ""  # if this one is there, all are
    again: bool = False  # it works where an output of it stands
    warned: tuple[str, str] = ("", "")  # a unit that may stay as it was, and the words that then tell it
    tells: Callable[[Path], bool] | None = None  # an output that says itself, truly, what of it failed


def _copied(source: Path, name: str = "") -> Callable[[Path], object]:
    def fill(folder: Path) -> None:
        target = folder / (name or source.name)
        shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)

    return fill


def _logs(folder: Path) -> None:
    """What the vendor's simulator leaves of one core."""
    from tests.trust.reader_targets import TARGETS, place

    target = TARGETS["camodel_log"]
    path = place(folder / "logs", target)
    path.write_bytes(target.seeds[0])


def _tells_failed(folder: Path) -> bool:
    """A table of every dispatch, each verified or failed with a reason, the same in its two forms."""
    rows = json.loads((folder / "out" / "summary.json").read_text())["dispatches"]
    lines = list(csv.DictReader((folder / "out" / "summary.csv").open(newline="")))
    same = [(str(r["dispatch_id"]), r["verdict"], r["why"], str(r["cycles"])) for r in rows]
    same_too = [(line["dispatch_id"], line["verdict"], line["why"], line["cycles"]) for line in lines]
    told = all(r["verdict"] == "verified" if not r["why"] else r["verdict"] == "failed" for r in rows)
    whole = [r["dispatch_id"] for r in rows] == list(range(_DISPATCHES))
    return same == same_too and told and whole and any(r["why"] for r in rows)


def _measured(folder: Path) -> None:
    """A device on which moves take longer than in the chip's file."""
    tasks = json.loads((folder / "dump" / "args_dump" / "args_dump.json").read_text())["args"]
    ids = sorted({str(task["task_id"]) for task in tasks})[:1]
    lines = ["thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,mte2_busy_cycles"]
    noise = np.random.default_rng(0).normal(1, 0.01, len(ids))
    lines += [f"0,3,{i},0,1,{1900 * n:.0f},{1500 * n:.0f}" for i, n in zip(ids, noise, strict=True)]
    (folder / "pmu.csv").write_text("\n".join(lines) + "\n")


_DUMP = ("capture", CHAIN, "-o", "dump")
_REPLAY = ("replay", CHAIN, "--func-id", "0", "--dump-dir", "dump", "--dispatch-id", "0")
_WORKSPACE = (*_REPLAY, "-o", "workspace")
_JOURNALED = ("workspace/journal", "workspace/[!j]*", "[!w]*")
_RUN = ("run", CHAIN, "--jobs", "1", "-o")
_TRACE = _copied(CORPUS / "trace.json")

COMMANDS: dict[str, Command] = {
    "clean": Command(("clean", "trace.json"), (_TRACE,)),
    "clean -o": Command(("clean", "trace.json", "-o", "out"), (_TRACE,)),
    "clean --force": Command(
        ("clean", "trace.json", "-o", "out", "--keep-scalar", "--force"), (_TRACE, ("clean", "trace.json", "-o", "out")),
        again=True,
    ),
    "view": Command(("view", "trace.json", "--no-browser", "-o", "out.html"), (_TRACE,)),
    "view --table": Command(("view", "trace.json", "--table", "--no-browser", "-o", "out"), (_TRACE,)),
    "view --values": Command(
        ("view", "workspace", "--values", "--no-browser", "-o", "out.html"), (_DUMP, _WORKSPACE), _JOURNALED, again=True
    ),
    "dump export": Command(
        ("dump", "export", str(CORPUS / "kernel_args_dump.json"), "-o", "out"), units=("out",)
    ),
    "export": Command(("export", "logs", "-o", "out"), (_logs,), units=("logs", "out/*")),
    "op": Command(("op", "TADD", "--dtype", "float", "--rows", "64", "--cols", "64")),
    "check --sarif": Command(("check", CHAIN, "--sarif", "out.sarif")),
    "capture": Command(("capture", CHAIN, "-o", "out")),
    "capture, a build": Command(("capture", "pypto_run", "-o", "out"), (_copied(EXAMPLES / "pypto_run"),)),
    "capture, several chips": Command(
        ("capture", str(EXAMPLES / "several_chips" / "scene.py"), "-o", "out")
    ),
    "replay": Command((*_REPLAY, "-o", "out", "--dump-logs", "--check"), (_DUMP,)),
    "replay --all": Command(
        ("replay", CHAIN, "--all", "--dump-dir", "dump", "--jobs", "1", "-o", "out"),
        (_DUMP,), ("dump", "out/*"), ("out/replays.jsonl",), last="out/summary.json", again=True,
        tells=_tells_failed,
    ),
    "core-swimlane": Command(
        ("core-swimlane", "--test", CHAIN, "--func-id", "0", "--platform", "a2a3sim"), units=("outputs/*",), again=True
    ),
    "profile": Command(
        ("profile", "--build-dir", "pypto_run", "--func", "square_rows", "--output-root", "out"),
        (_copied(EXAMPLES / "pypto_run"),),
        ("pypto_run/*", "out/*/funcs/*"),
        ("out/*.*", "out/*/*.*", "out/*/logs/*"),
        again=True,
        # a build may lie where nothing can be written: the run is whole without it, and says so
        warned=(f"pypto_run/{POINTER}", "the pointer to this run cannot be written"),
    ),
    "run": Command(
        (*_RUN, "out", "--replay-slowest", "1"), (), ("out/*",),
        ("out/jobs.jsonl", "out/rows", "out/dispatches/*"), last="out/run.json",
    ),
    "runs prune": Command(
        ("runs", "prune", "--keep", "0", "--yes"), ((*_RUN, "one"), (*_RUN, "two")), ("one", "two"), again=True
    ),
    "gate": Command(
        ("gate", "base.json", CHAIN, "--update", "--jobs", "1", "--junit", "j.xml", "--sarif", "s.sarif"), again=True
    ),
    "calibrate": Command(
        ("calibrate", CHAIN, "--dump-dir", "dump", "--pmu", "pmu.csv", "-o", "mine.toml"), (_DUMP, _measured), again=True
    ),
    "debug --export": Command(
        ("debug", "workspace", "--op", "TADD", "--export", "dst", "tile.npy"), (_DUMP, _WORKSPACE), _JOURNALED
    ),
    "why": Command(("why", "workspace", "2[0,0]"), (_DUMP, _WORKSPACE), _JOURNALED, again=True),
    "diverge": Command(
        ("diverge", "workspace", "workspace"), (_DUMP, _WORKSPACE), _JOURNALED, again=True
    ),
    "query": Command(("query", "workspace", "select op, count(*) from calls group by op"), (_DUMP, _WORKSPACE)),
    "scene": Command(("scene", CHAIN)),
    "stats": Command(("stats", "trace.json"), (_TRACE,)),
    "compare": Command(("compare", "trace.json", "trace.json"), (_TRACE,)),
    "dump list": Command(("dump", "list", "dump"), (_DUMP,)),
    "dump show": Command(("dump", "show", "dump", "--dispatch-id", "0"), (_DUMP,)),
    "dump diff": Command(("dump", "diff", "dump", "dump"), (_DUMP,)),
    "runs list": Command(("runs", "list"), ((*_RUN, "one"),)),
    "doctor": Command(("doctor",)),
    "demo": Command(("demo", "-o", "out"), (), ("out/*",), again=True),
    "replay-all": Command(
        ("replay-all", CHAIN, "--dump-dir", "dump", "--jobs", "1", "-o", "out"),
        (_DUMP,), ("dump", "out/*"), ("out/replays.jsonl",), last="out/summary.json", again=True,
        tells=_tells_failed,
    ),
    "new": Command(("new", "mine")),
    "kernel": Command(
        ("kernel", str(EXAMPLES / "own_program" / "add.cpp"), "--arg", "x=f32[8,1024]:random", "--arg", "y=f32[8,1024]",
         "--arg", "z=f32[8,1024]", "--arg", "rows=8", "-o", "out")
    ),
    "exec": Command(("exec", "-o", "out", "--", "true"), again=True),
}  # fmt: skip


def compiled_shim(folder: Path) -> Path | None:
    """faults.c as a library to preload; None without a C compiler."""
    if shutil.which("gcc") is None:
        return None
    made = folder / "faults.so"
    words = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(made), str(HERE / "faults.c"), "-ldl"]
    subprocess.run(words, check=True)
    return made


def swept(
    name: str, shim: Path, folder: Path, kinds: str, points: int = 0
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """What the runs without fault and those with one gave. `points`: so many calls instead of every one."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    driver = [sys.executable, str(HERE / "fault_driver.py"), name, str(folder / "run"), kinds, str(points)]
    environment = {
        **os.environ, "LD_PRELOAD": str(shim), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(temporary),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }  # fmt: skip
    environment.pop("INSIGHT_TRACE_RUNS", None)
    done = subprocess.run(driver, env=environment, capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    first, *rows = map(json.loads, done.stdout.splitlines())
    return first, rows


def wrong(row: dict[str, object]) -> str:
    """What is wrong with a run with a fault; empty: nothing."""
    said = str(row["said"])
    if "Traceback" in said or "a fault of Insight Trace" in said:
        return "traceback"
    if row["code"] not in (0, 1, 2, -9):
        return "exit code"
    if row["code"] in (1, 2) and not said.strip():
        return "silent"
    if row["broken"]:
        return "broken"
    if row["left"]:
        return "alive"
    if row["again"] not in (None, 0) or (row["again"] == 0 and row["then"]):
        return "next run"
    return ""

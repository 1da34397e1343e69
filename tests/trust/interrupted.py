"""Commands that are ended in the midst: what each finds, and whether its outputs are as they were, whole, or broken.

tools/interrupt_commands.py sends them signals, or lets their calls fail (tests/trust/faults.c).
"""

import contextlib
import csv
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from insight_trace.profile.manifest import POINTER

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = ROOT / "tests" / "data" / "fuzz"
EXAMPLES = ROOT / "examples"
CHAIN = str(EXAMPLES / "vector_chain" / "scene.py")
_DISPATCHES = 4  # of that scene
MARK = "INSIGHT_TRACE_INTERRUPTED"  # in the environment of a run: which one
_GONE_SECONDS = 15.0  # the system kills a dead tool's children; a capture's runner first ends its dump
_TIME = re.compile(r"20\d{6}[_-]?\d{6}(_\d+)?|OPPROF_.*|_0x[0-9a-f]+")
_VARIES = re.compile(rb'20\d{6}[_-]?\d{6}(_\d+)?|"timed_before": \d+')
Files = dict[str, tuple[int, str]]  # size and digest
State = dict[str, Files]  # of each unit


@dataclass(frozen=True)
class Command:
    """Runs in an empty folder, which is all that it may change."""

    words: tuple[str, ...]
    before: tuple[
        tuple[str, ...] | Callable[[Path], object], ...
    ] = ()  # fills the folder: commands, or calls
    units: tuple[str, ...] = ("*",)  # patterns below the folder: each of these is whole, or as it was
    working: tuple[str, ...] = ()  # what a run that was ended goes on with
    last: str = ""  # if this one is there, all are
    again: bool = False  # it works where an output of it stands
    warned: tuple[str, str] = ("", "")  # a unit that may stay as it was, and the words that then report it
    tells: Callable[[Path], bool] | None = None  # an output that says itself, truly, what of it failed
    asks: tuple[dict[str, object], ...] = ()  # requests on its input, which ends with the last answer
    within: str = ""  # a word of the process of it that faults are tried on, where another one writes


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

_ARGUMENTS = {"x": "f32[4096]:random", "y": "f32[4096]:random", "z": "f32[4096]"}
_CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "trial", "version": "1"},
}
_ASKED: tuple[dict[str, object], ...] = (
    {"id": 1, "method": "initialize", "params": _CLIENT},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call",
     "params": {"name": "kernel", "arguments": {"file": "judge/good.cpp", "arguments": _ARGUMENTS}}},
)  # fmt: skip
_PYPTO = _copied(EXAMPLES / "pypto_run")

COMMANDS: dict[str, Command] = {
    "clean": Command(("clean", "trace.json"), (_TRACE,)),
    "clean --force": Command(
        ("clean", "trace.json", "-o", "out", "--keep-scalar", "--force"), (_TRACE, ("clean", "trace.json", "-o", "out")),
        again=True,
    ),
    "view": Command(("view", "trace.json", "--no-browser", "-o", "out.html"), (_TRACE,)),
    "view --table": Command(("view", "trace.json", "--table", "--no-browser", "-o", "out"), (_TRACE,)),
    "view --values": Command(
        ("view", "workspace", "--values", "--no-browser", "-o", "out.html"), (_DUMP, _WORKSPACE), _JOURNALED, again=True
    ),
    "dump export": Command(("dump", "export", str(CORPUS / "kernel_args_dump.json"), "-o", "out"), units=("out",)),
    "export": Command(("export", "logs", "-o", "out"), (_logs,), units=("logs", "out/*")),
    "op": Command(("op", "TADD", "--dtype", "float", "--rows", "64", "--cols", "64")),
    "check --sarif": Command(("check", CHAIN, "--sarif", "out.sarif")),
    "capture": Command(("capture", CHAIN, "-o", "out")),
    "capture, a build": Command(("capture", "pypto_run", "-o", "out"), (_PYPTO,)),
    "capture, several chips": Command(("capture", str(EXAMPLES / "several_chips" / "scene.py"), "-o", "out")),
    "replay": Command((*_REPLAY, "-o", "out", "--dump-logs", "--check"), (_DUMP,)),
    "core-swimlane": Command(
        ("core-swimlane", "--test", CHAIN, "--func-id", "0", "--platform", "a2a3sim"), units=("outputs/*",), again=True
    ),
    "profile": Command(
        ("profile", "--build-dir", "pypto_run", "--func", "square_rows", "--output-root", "out"),
        (_PYPTO,),
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
    "diverge": Command(("diverge", "workspace", "workspace"), (_DUMP, _WORKSPACE), _JOURNALED, again=True),
    "query": Command(("query", "workspace", "select op, count(*) from calls group by op"), (_DUMP, _WORKSPACE)),
    "scene": Command(("scene", CHAIN)),
    "stats": Command(("stats", "trace.json"), (_TRACE,)),
    "compare": Command(("compare", "trace.json", "trace.json"), (_TRACE,)),
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
    "diff": Command(("diff", "pypto_run", "pypto_run", "--jobs", "1"), (_PYPTO,)),
    "judge": Command(("judge", "judge/axpy.json", "judge/good.cpp", "--jobs", "1"), (_copied(EXAMPLES / "judge"),)),
    "mcp": Command(
        ("mcp",), (_copied(EXAMPLES / "judge"),), ("judge", "runs/*"), asks=_ASKED, within="agents.worker", again=True,
        warned=("runs/good_1", '"isError":true'),  # the server goes on, and the call says what went wrong
    ),
}  # fmt: skip


# --- what stands there ------------------------------------------------------------------------------------


def state(folder: Path, command: Command) -> State:
    """Files of every unit; hidden pieces are what the next run removes, names may hold the time, and files the place."""
    found: State = {}
    place = os.fsencode(folder.resolve())
    for pattern in command.units:
        for unit in folder.glob(pattern):
            name = _stable(unit.relative_to(folder))
            if unit.name.startswith(".") or _any(name, command.working):
                continue
            mine = found.setdefault(name, {})
            for path in [unit] if unit.is_file() else [p for p in unit.rglob("*") if p.is_file()]:
                # a page may be named after the folder
                inner = _stable(path.relative_to(folder)).replace(folder.name, "*")
                if "/." not in f"/{inner}" and not _any(inner, command.working):
                    content = _VARIES.sub(b"*", path.read_bytes().replace(place, b"*"))
                    mine[inner] = (len(content), hashlib.sha256(content).hexdigest())
    return {name: files for name, files in found.items() if files}


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern names it or a folder above it; a `*` stays within one name."""
    parts = name.split("/")
    split = [pattern.split("/") for pattern in patterns]
    return any(len(one) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, one)) for one in split)


def _stable(path: Path) -> str:
    return "/".join(_TIME.sub("*", part) for part in path.parts)


def _same(files: Files, one: Files, other: Files) -> bool:
    """Whether files are those of a good run, where two good ones (at another time) tell what must be the same."""

    def same(name: str, size: int, digest: str) -> bool:
        (size_one, digest_one), (size_other, digest_other) = one[name], other[name]
        if digest_one == digest_other:
            return digest == digest_one
        if size_one == size_other and not name.endswith(".html"):  # compressed: any size
            return size == size_one
        return size >= min(size_one, size_other) * 0.9

    return files.keys() == one.keys() and all(same(name, *found) for name, found in files.items())


def broken_units(now: State, given: State, good: tuple[State, State], command: Command) -> list[str]:
    """Units that are neither as they were nor whole."""
    found = [u for u in missing(now, good, given) if now.get(u, {}) != given.get(u, {})]
    if command.last and command.last in now and command.last not in given:
        found += [unit for unit in good[0] if unit not in now]
    return found


def missing(now: State, good: tuple[State, State], *more: State) -> list[str]:
    """Units that are not those of a good run."""
    units = sorted(set().union(now, good[0], *more))
    return [u for u in units if not _same(now.get(u, {}), good[0].get(u, {}), good[1].get(u, {}))]


def says_partial(folder: Path) -> bool:
    """What a capture recorded until it was killed stays, and its manifest says that it is a part."""
    found = [*folder.glob("**/args_dump/args_dump.json"), *folder.glob("*/node.json")]
    return any(json.loads(manifest.read_text()).get("partial") is True for manifest in found)


# --- runs ---------------------------------------------------------------------------------------------------


class Trial:
    """A command in a folder of its own, which is made anew for each run from what the command finds there."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.command = name, COMMANDS[name]
        self.folder, self._template = root / "run", root / "template"
        self.temporary = root / "temporary"
        self.folder.mkdir(parents=True)
        self.temporary.mkdir()
        for step in self.command.before:
            if callable(step):
                step(self.folder)
            else:
                self._well(step)
        self.folder.rename(self._template)
        good = []
        for _ in range(2):  # what differs between two good runs (times, names) may differ in a third
            self.restore()
            begin = time.monotonic()
            self._well(self.command.words)
            self.seconds = time.monotonic() - begin
            good.append(state(self.folder, self.command))
        self.good = (good[0], good[1])
        self.restore()
        self.found = state(self.folder, self.command)

    def restore(self) -> None:
        for place in (self.folder, self.temporary):
            shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._template, self.folder, symlinks=True)
        self.temporary.mkdir()

    def start(self, words: tuple[str, ...], mark: str = "", **more: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(self.temporary), MARK: mark or "none",
            "PYTHONPATH": str(ROOT / "src"), **more,
        }  # fmt: skip
        environment.pop("INSIGHT_TRACE_RUNS", None)
        asks = self.command.asks if words == self.command.words else ()
        words = (sys.executable, "-m", "insight_trace", *words)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        given = subprocess.PIPE if asks else subprocess.DEVNULL
        child = subprocess.Popen(words, cwd=self.folder, env=environment, stdin=given, **pipes)
        if asks:
            read, passed = os.pipe()
            threading.Thread(target=_talk, args=(child.stdin, child.stdout, passed, asks)).start()
            child.stdin, child.stdout = None, os.fdopen(read, "rb")
        return child

    def _well(self, words: tuple[str, ...]) -> None:
        done = self.start(words)
        said = done.communicate()[0].decode(errors="replace")
        assert done.returncode == 0, f"{words}: {said[-2000:]}"

    def wrong(self, code: int, said: str, mark: str, *, again: bool) -> list[str]:
        """What a run that was cut off did wrong, and the run after it."""
        found = [f"alive: {one}" for one in alive(mark)]
        ours = "Traceback" in said and "insight_trace/" in said  # not Python's own start
        if ours or "a fault of Insight Trace" in said:
            found.append(f"traceback: {said[-600:]}")
        if code in (1, 2) and not said.strip():
            found.append("silent")
        now = state(self.folder, self.command)
        partial = code != 0 and says_partial(self.folder)
        broken = broken_units(now, self.found, self.good, self.command)
        if code == 0:
            unit, words = self.command.warned
            excused = {unit} if unit and words in said and now.get(unit) == self.found.get(unit) else set()
            broken += [unit for unit in missing(now, self.good) if unit not in {*broken, *excused}]
        reported = bool(code == 1 and broken and self.command.tells) and self.command.tells(self.folder)
        found += [] if partial or reported else [f"broken: {unit}" for unit in broken]
        if code not in (0, -9):  # after SIGKILL the next run removes them
            left = [*self.folder.glob(".*insight-trace-*"), *self.temporary.glob("insight-trace-*")]
            found += [f"left: {path.name}" for path in left]
        if again and code != 0 and not partial and (self.command.again or missing(now, self.good)):
            done = self.start(self.command.words)
            more = done.communicate()[0].decode(errors="replace")
            if done.returncode or missing(state(self.folder, self.command), self.good):
                found.append(f"next run: {done.returncode} {more[-300:]}")
        return found


def _talk(to: IO[bytes], said: IO[bytes], passed: int, asks: tuple[dict[str, object], ...]) -> None:
    """Asks, passes on what is said, and ends the input with the answer to the last request."""
    with os.fdopen(passed, "wb") as on, said, contextlib.suppress(BrokenPipeError), to:
        to.write(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in asks))
        to.flush()
        for line in said:
            on.write(line)
            if b'"id":%d,' % asks[-1]["id"] in line:
                to.close()


def alive(mark: str) -> list[str]:
    """Processes of a run that live when they had time to end."""
    end = time.monotonic() + _GONE_SECONDS
    while (found := _marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def _marked(mark: str) -> list[str]:
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state_of = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if state_of not in "ZX" and wanted in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                found.append(words.decode(errors="replace")[:120])
        except OSError:
            continue
    return found

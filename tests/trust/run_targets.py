"""Readers of what runs, profiles and caches of ours left behind, and of what stands beside traces."""

import argparse
import contextlib
import io
import json
import sqlite3
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from insight_trace.arguments.slots import ReplayTensor, Tier, Zero
from insight_trace.cache import _STAMP, Cache
from insight_trace.capture.dump_rows import ROW
from insight_trace.capture.growing_dump import main as recover
from insight_trace.capture.task_graph import _EDGE_FIELDS, _TASK_FIELDS, _read_graph
from insight_trace.check.suppressions import in_sources
from insight_trace.commands import runs
from insight_trace.commands.profile import _print_findings
from insight_trace.dtypes import DTYPES
from insight_trace.dump.dump_diff import golden_array
from insight_trace.executor.journal import Journal
from insight_trace.executor.packing import answered
from insight_trace.insight.metrics import metrics_of_csvs
from insight_trace.profile.manifest import POINTER, latest_run
from insight_trace.ptoas.buffer_content import _from_file
from insight_trace.ptoas.planned_kernel import BufferArg
from insight_trace.ptoas.planned_kernel import Content as BufferContent
from insight_trace.replay.build_dump import _program, kernel_names
from insight_trace.report.kernel_table import traces_below
from insight_trace.report.recorded_facts import estimates, part, recorded_facts, rows_of
from insight_trace.run.baseline import differences, read_baseline
from insight_trace.run.bulk_replay import ReplayRow, text_lines
from insight_trace.run.run_store import RunStore
from insight_trace.run.timing import Timed
from insight_trace.scene.static import load_scenes
from insight_trace.simulate.embedded.carried_core import fits
from insight_trace.simulate.embedded.source_lines import KEPT, _lines
from insight_trace.simulate.embedded.variants import _WELL
from insight_trace.simulate.embedded.variants import _read as read_variants
from insight_trace.simulate.msprof.toolkit import version_key, version_of
from tests.trust.target import Target

_FLOAT32 = next(d for d in DTYPES if d.name == "FLOAT32")


# --- runs ---------------------------------------------------------------------------------------------------

_KERNEL = {"dispatches": 2, "cycles": 900, "most": 500, "source": "add.cpp", "findings": {"error race": 1}}
_CASE = {
    "scene": "scene.py",
    "case": "A",
    "chip": "x",
    "cycles": 1000,
    "verdict": "passed",
    "kernels": {"ADD": _KERNEL},
}
_BASELINE = json.dumps({"version": 1, "threshold": 0.01, "cases": [_CASE]}, indent=1).encode()
_ROW = {
    "name": "ADD",
    "dispatches": 2,
    "least": 1,
    "median": 2,
    "most": 3,
    "path_share": 0.5,
    "bound": "MTE2",
    "work": 9,
}
_RUN = {
    "scene": "scene.py", "case": "A", "chip": "x", "cycles": 1000, "micros": 0.5, "dispatches": 2, "distinct": 1,
    "path": {"ADD": 900}, "kernels": [_ROW],
}  # fmt: skip
_REPLAYED = ReplayRow(3, "0x3", "ADD", "0", 1, "verified", 900, 0.5, 0.0, "", 0, 0)
_TIMED = Timed(900, ((900,),), {"MTE2": 0.5}, 0.1, 15)


def _baseline(path: Path) -> None:
    found = read_baseline(path)
    differences(found.cases, found.cases[:1], found.threshold)


def _index() -> bytes:
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "runs.sqlite"
        for name in ("one", "two"):
            RunStore(path).add(_RUN, Path(made) / name)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("pragma page_size = 512")
            connection.execute("vacuum")
        return path.read_bytes()


def _runs(path: Path) -> None:
    for what, words in (("list", []), ("show", ["last"]), ("compare", ["last-1", "last"])):
        options = argparse.Namespace(what=what, runs=words, index=path, scene=None, case=None, json=False)
        with contextlib.redirect_stdout(io.StringIO()):
            runs.run(options)


def _replays(path: Path) -> None:
    with Journal(path, ReplayRow) as journal:
        text_lines(list(journal.known.values()))


def _times(path: Path) -> None:
    with Journal(path, Timed) as journal:
        assert all(timed.bound is not None for timed in journal.known.values())


# --- what a capture's runner leaves -------------------------------------------------------------------------

_GRAPH = np.array([1, 1], "<u8").tobytes() + bytes(
    np.dtype(_TASK_FIELDS).itemsize + np.dtype(_EDGE_FIELDS).itemsize
)


def _rows() -> bytes:
    rows = np.zeros(2, ROW)
    rows["arg_index"] = (0, 1)
    rows["scalar"] = (0, 1)
    rows["ndims"] = (1, 0)
    return rows.tobytes()


def _recovered(path: Path) -> None:
    folder = path.parent / "dump" / "args_dump"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".rows").write_bytes(path.read_bytes())
    (folder / "args.bin").write_bytes(bytes(64))
    recover(folder, 3, {0: "ADD"})


_TENSOR = ReplayTensor(0, _FLOAT32, (4,), (1,), Zero(), Tier.EXACT, 16, 4)
_VARIANTS = (bytes([_WELL]) + bytes(16)) * 2


# --- traces, tables, caches ---------------------------------------------------------------------------------


def _table(path: Path) -> None:
    for found in traces_below(path.parent):
        assert isinstance(found.title, str)


_HEADER = json.dumps(
    {
        "about": {"estimates": {"share": 0.5, "numbers": [
            {"parameter": "mmad.head", "source": "here", "instructions": 3, "cycles": 9}]}, "changes": [[1, 2, "type", 3]]},
        "findings": [{"severity": "error", "category": "race"}],
    }
).encode()  # fmt: skip


def _facts(path: Path) -> None:
    facts = recorded_facts(path.parent)
    estimates(facts)
    rows_of(part(facts, "findings"))


def _buffer(path: Path) -> None:
    _from_file(BufferArg(0, "v1", "x", _FLOAT32, 16, BufferContent.FILE, "given"), path)


def _core_folder(folder: Path) -> None:
    (folder / "core0.veccore0").mkdir(exist_ok=True)


def _said(path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        _print_findings(path.parent)


def _kept_lines(path: Path) -> None:
    _lines.cache_clear()
    _lines(str(path.with_name("k.so")))


class _KeptCache(Cache):
    def drop(self, entry: Path) -> None:
        """The entry stays for the next input."""


def _entry(folder: Path) -> None:
    (folder / "kernel" / "abc").mkdir(parents=True, exist_ok=True)
    (folder / "kernel" / "abc" / "k.so").write_bytes(b"abc")


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


_FINDINGS = b'[{"severity": "error", "category": "race", "message": "two writers"}, {"severity": "note"}]'
_NEIGHBOUR = b"SIZES = [64 * n for n in range(1, 3)]\nNAME = f'Case{SIZES[0]}'\nPARAMS = {'rows': SIZES[0]}\n"
_IMPORTS = b"""from simpler_setup import SceneTestCase, scene_test
from sizes import NAME, PARAMS
@scene_test(level=2, runtime="host_build_graph")
class One(SceneTestCase):
    CALLABLE = {"orchestration": {"source": "o.cpp", "function_name": "entry", "signature": ["IN"]},
        "incores": [{"func_id": 0, "name": "ADD", "source": "add.cpp", "core_type": "aiv"}]}
    CASES = [{"name": NAME, "platforms": ["a2a3"], "params": PARAMS}]
"""
_MANIFEST = b'{"machine": "x86_64", "glibc": "2.36", "programs": {"runner": "abc"}}'
_CSV = b"instr,addr,pipe,call_count,cycles,running_time(us),detail\nVADD,0x1000,VECTOR,3,12,0.006,a\n"
_ALLOWS = b"int x; // insight-trace: allow race\n// insight-trace: allow out-of-bounds because it is known\n"

RUN_TARGETS: dict[str, Target] = {
    "gate_baseline": Target(_baseline, "base.json", (_BASELINE,)),
    "run_index": Target(_runs, "runs.sqlite", (_index(),)),
    "replay_journal": Target(_replays, "replays.jsonl", (b'["a",' + msgspec.json.encode(_REPLAYED) + b"]\n",)),
    "timing_journal": Target(_times, "jobs.jsonl", (b'["a",' + msgspec.json.encode(_TIMED) + b"]\n",)),
    "cluster_time": Target(
        lambda p: answered(p.read_bytes(), Timed), "answer", (msgspec.msgpack.encode(("", _TIMED, [])),)
    ),
    "task_graph": Target(lambda p: _read_graph(p), "graph", (_GRAPH,)),
    "capture_rows": Target(_recovered, "rows", (_rows(),)),
    "kernel_table": Target(_table, "manifest_export.csv", (b"func,status,message\na,EXPORTED,fine\nb,FAILED,no\n",)),
    "recorded_facts": Target(_facts, "recording.json", (_HEADER,)),
    "instruction_tables": Target(
        lambda p: metrics_of_csvs(p.parents[1]), "core0.veccore0/core0.veccore0_instr_exe_1.csv", (_CSV,),
        prepare=_core_folder,
    ),
    "profile_findings": Target(_said, "findings.json", (_FINDINGS,)),
    "profile_pointer": Target(lambda p: latest_run(p.parent), POINTER, (b"/tmp\n",)),
    "input_npy": Target(_buffer, "x.npy", (_npy(np.zeros(16, np.float32)),)),
    "input_bin": Target(_buffer, "x.bin", (bytes(64),)),
    "golden_npy": Target(lambda p: golden_array(p, _FLOAT32, (4, 4)), "g.npy", (_npy(np.zeros((4, 4), np.float32)),)),
    "golden_bin": Target(lambda p: golden_array(p, _FLOAT32, (4, 4)), "g.bin", (bytes(64),)),
    "scene_neighbour": Target(
        lambda p: load_scenes(p.with_name("scene.py")), "sizes.py", (_NEIGHBOUR,), {"scene.py": _IMPORTS}
    ),
    "allowances": Target(lambda p: in_sources({"k.cpp": p}), "k.cpp", (_ALLOWS,)),
    "toolkit_version": Target(lambda p: version_key(version_of(p.parent)), "version.info", (b"Version=8.2.RC1\n",)),
    "carried_manifest": Target(lambda p: fits(p.parent, "runner", "abc"), "manifest.json", (_MANIFEST,)),
    "cache_stamp": Target(
        lambda p: _KeptCache(p.parents[2]).get("kernel", "abc"), f"kernel/abc/{_STAMP}", (b"3 k.so",), prepare=_entry
    ),
    "variant_outputs": Target(lambda p: read_variants(p, 2, [_TENSOR]), "variants", (_VARIANTS,)),
    "build_program": Target(lambda p: _program(p.parent), "dispatch_program.json", (b'{"program": "attention"}',)),
    "build_names": Target(
        lambda p: kernel_names(p.parent), "name_map_1.json", (b'{"level": 2, "callable_id_to_name": {"0": "QK"}}',)
    ),
    "kept_lines": Target(_kept_lines, KEPT, (b"16\t3\tk.cpp\n32\t4\tk.cpp\n",)),
}  # fmt: skip

"""Every reader of files that others wrote, as a function of bytes: what mutation and fuzzing run.

A target may raise InsightTraceError and nothing else, whatever it is given. Most inputs are made from small seeds, so
that thousands are tried in a second; beside each stands a seed as long as a real file.
"""

import argparse
import contextlib
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from insight_trace.arguments.arg_spec import read_arg_spec
from insight_trace.arguments.buffers import file_elements
from insight_trace.arguments.slots import ReplayTensor, Tier, Zero
from insight_trace.cache import _STAMP, Cache
from insight_trace.capture import process as capture_process
from insight_trace.capture.dump_rows import ROW
from insight_trace.capture.growing_dump import main as recover
from insight_trace.capture.task_graph import _EDGE_FIELDS, _TASK_FIELDS, _read_graph
from insight_trace.check.suppressions import in_file, in_sources
from insight_trace.chips.chip_files import read_chip_file
from insight_trace.commands import runs
from insight_trace.commands.profile import _print_findings
from insight_trace.debug import journal as debug_journal
from insight_trace.debug.debug_session import Session
from insight_trace.dtypes import DTYPES
from insight_trace.dump.dump_diff import golden_array
from insight_trace.dump.load import load_dump
from insight_trace.executor.cluster import identity
from insight_trace.executor.journal import Journal
from insight_trace.executor.packing import answered
from insight_trace.insight import details_page as page
from insight_trace.insight.camodel.read import read_dump
from insight_trace.insight.camodel.sources import Symbols
from insight_trace.insight.container import write_block
from insight_trace.insight.csv_files import read_instruction_csv
from insight_trace.insight.details_page import read_details
from insight_trace.insight.memory_page import read_memory_page
from insight_trace.insight.metrics import metrics_of_csvs
from insight_trace.insight.reader import open_trace
from insight_trace.insight.validator import validate
from insight_trace.model import Instructions, Operands, Trace
from insight_trace.profile.kernel_runner import RunOutcome
from insight_trace.profile.manifest import POINTER, latest_run, read_manifest
from insight_trace.profile.msprof_runner import input_sizes
from insight_trace.ptoas.buffer_content import _from_file
from insight_trace.ptoas.cpp_signature import parse_cpp
from insight_trace.ptoas.kernel_plan import kernels_of_pto
from insight_trace.ptoas.launch_arguments import Wishes, kernel_arguments
from insight_trace.ptoas.planned_kernel import BufferArg, Content
from insight_trace.ptoas.pto_parser import read_pto
from insight_trace.ptoas.python_lines import python_lines, tile_names
from insight_trace.recording import open_recording, save
from insight_trace.recording.detail import Details
from insight_trace.recording.operands import byte_ranges
from insight_trace.recording.store import _TABLES, HEADER, Recording, _column
from insight_trace.recording.stream import COLUMNS, OPERAND_COLUMNS
from insight_trace.replay.build_dump import _program, kernel_names
from insight_trace.replay.workspace import read_record
from insight_trace.report.kernel_table import traces_below
from insight_trace.report.recorded_facts import estimates, part, recorded_facts, rows_of
from insight_trace.run.baseline import differences, read_baseline
from insight_trace.run.bulk_replay import ReplayRow, text_lines
from insight_trace.run.device_records import read_deps, read_names
from insight_trace.run.measured import read_pmu, read_swimlane
from insight_trace.run.run_store import RunStore
from insight_trace.run.timing import Timed
from insight_trace.scene.build_directory import build_scenes, recorded_arch
from insight_trace.scene.build_golden import read_golden
from insight_trace.scene.kernel_source import shape_of_source
from insight_trace.scene.static import load_scenes
from insight_trace.scene.torch_file import read_torch_file
from insight_trace.simulate.embedded import runner, source_lines, variants
from insight_trace.simulate.embedded.carried_core import fits
from insight_trace.simulate.embedded.compile_errors import first_error
from insight_trace.simulate.embedded.records import _FIELDS, Site, load_instructions
from insight_trace.simulate.embedded.single_op import table_requests
from insight_trace.simulate.embedded.source_lines import KEPT, _read_debug_lines
from insight_trace.simulate.msprof.toolkit import version_key, version_of
from tests.torch_files import torch_file

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "fuzz"
EXAMPLES = ROOT / "examples"
_BUILD = EXAMPLES / "pypto_build" / "ptoas"
_PYPTO = EXAMPLES / "pypto_run"
_FLOAT32 = next(d for d in DTYPES if d.name == "FLOAT32")


@dataclass(frozen=True)
class Target:
    """A reader, the name under which its file lies in a folder, what a good one looks like, and what lies beside."""

    read: Callable[[Path], object]
    file: str
    seeds: tuple[bytes, ...]
    beside: dict[str, bytes] = field(default_factory=dict)
    prepare: Callable[[Path], object] | None = None  # fills the folder


def _seed(name: str) -> bytes:
    return (CORPUS / name).read_bytes()


# --- dumps, arguments, traces -----------------------------------------------------------------------------


def _dump(path: Path) -> None:
    dump = load_dump(path)
    for dispatch in dump.dispatches:
        _ = dispatch.arguments


def _small_dump(name: str, key: str) -> bytes:
    """The dump with its first record alone."""
    document = json.loads(_seed(name))
    document[key] = document[key][:1]
    return json.dumps(document).encode()


def _npy(path: Path) -> None:
    tensor = ReplayTensor(0, _FLOAT32, (4, 4), (4, 1), Zero(), Tier.EXACT, 64, 64)
    np.array(file_elements(path, tensor))


def _npy_seed(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _trace(path: Path) -> None:
    trace = open_trace(path)
    list(trace.instructions.detail)


def _small_trace() -> bytes:
    """A few events of each kind."""
    document = json.loads(_seed("trace.json"))
    kept: list[dict[str, object]] = []
    for event in document["traceEvents"]:
        if sum(other["ph"] == event["ph"] for other in kept) < 2:
            kept.append(event)
    return json.dumps({**document, "traceEvents": kept}).encode()


_MEMORY_PAGE = (
    b'{"Header":{"KernelName":"k"},"Record":[{"scope":"ub","status":"success","memory_info_array":[{"alloc_time_in_ir":3,'
    b'"buffer":"%in0","extent":131072,"is_tmpbuf":false,"life_time_in_ir":[3,20],"offset":[0],"source_location":"k.py:1"}]}]}'
)


def _details_bin() -> bytes:
    """Every block of the Details page, each with one entry."""
    load = page.Load("0", "vector", "MTE2", page.PERCENT, 1.0, 1)
    table = page.MemoryTable("Pipe", ["", "a"], [page.NamedRow("x", ["1"])], [1, 1])
    blocks = page.BlockTable(["Block ID"], [page.BlockRow(["0"])], [2, 1])
    line = page.LineUse((1, 1.0), [])
    whole = page.DetailsPage(
        base=page.BaseInfo("k", "vector", 1, 1.0, "Ascend910B1", blocks),
        compute_bars=page.ComputeLoad([load]),
        compute_rows=page.ComputeLoad([load]),
        memory_graphs=page.MemoryGraphs(
            [page.MemoryGraph("0", "vector", "910B", [], [page.PathLoad(12, 1.0, 1, "NA")])]
        ),
        memory_tables=page.MemoryTables([page.BlockTables("0", "vector", [], [table])]),
        occupancy=page.Occupancy(
            "Ascend910B1", "vector", "", [page.CoreLoad(0, [page.SubCore(0, "vector", 1, 1)])]
        ),
        roofline=page.Roofline(
            "", [page.RoofChart("GM/L2", [page.Roof(1.0, "GM", 1.0, "Cube", [1.0, 1.0], 1.0)])]
        ),
        cache=page.CacheLines([page.CacheLine(0, line, line)]),
        stalls=page.StallReasons({"a": 1}),
    )
    file = io.BytesIO()
    for type_, payload in page.details_blocks(whole):
        write_block(file, type_, payload)
    return file.getvalue()


_CSV = b"instr,addr,pipe,call_count,cycles,running_time(us),detail\nVADD,0x1000,VECTOR,3,12,0.006,a\n"


# --- recordings and what the runner writes ----------------------------------------------------------------


def _recording(folder: Path) -> None:
    """A recording of four instructions, each with one operand."""
    rows = 4
    columns = {name: np.zeros(rows, kind) for name, kind in COLUMNS.items()}
    columns["pipe"] += 1
    parts = {name: np.zeros((rows, 3) if name == "times" else rows, k) for name, k in OPERAND_COLUMNS.items()}
    parts |= {"first": np.arange(rows, dtype="<u4"), "count": np.ones(rows, "<u4")}
    tables = {name: np.zeros(rows, np.dtype(kind)) for name, kind in _TABLES.items()}
    tables["footprints"]["count"] = 2
    tables["footprints"]["run"] = 32
    operands = Operands(**parts, **tables, ops=("TADD",))
    stream = Instructions(
        cores=("core0.veccore0",), names=("VADD",), stacks=("k.cpp:3",), detail=Details(operands),
        operands=operands, **columns,
    )  # fmt: skip
    trace = Trace(stream, 1850.0, "Ascend910B1", {"k.cpp": b"int x;\n"})
    save(Recording(trace, about={"case": "one"}), folder / "recording")


def _look(recording: Recording) -> None:
    stream = recording.instructions
    list(stream.detail)
    assert stream.operands is not None
    byte_ranges(stream.operands, np.arange(len(stream.operands.rows)))


def _session(recording: Recording) -> None:
    session = Session(Path(), recording, {})
    _ = session.remarks, session.recorded_changes, session.recording.chip.get("name")


def _recorded(name: str, look: Callable[[Recording], None] = _look) -> Target:
    """A recording with one file of it changed."""
    with tempfile.TemporaryDirectory() as made:
        _recording(Path(made))
        content = (Path(made) / "recording" / name).read_bytes()
    return Target(
        lambda p: look(open_recording(p.parent)), f"recording/{name}", (content,), prepare=_recording
    )


_STEPS = np.zeros(3, _FIELDS)
_SITES = [Site("k.cpp", 3, "VADD", 1), Site("k.cpp", 4, "SET_FLAG", 1)]


_WITH_OPERANDS = _STEPS.copy()
_WITH_OPERANDS["operands"] = (0, 1, 2)
_BESIDE = {
    name: np.zeros(3, np.dtype(kind)).tobytes() for name, kind in _TABLES.items() if name != "rows"
} | {"operands": np.zeros(3, np.dtype(_TABLES["rows"])).tobytes()}


def _records(path: Path, ranges: bool = False) -> None:
    found = load_instructions(path, _SITES, ("core0.veccore0",))
    list(found.detail)
    if ranges:
        assert found.operands is not None
        byte_ranges(found.operands, np.arange(len(found.operands.rows)))


def _debug_journal(path: Path) -> None:
    journal = debug_journal.Journal(path.parent)
    for core, memory in journal.memories:
        journal.state(core, memory, 0, 64, 5)


def _run_journal(path: Path) -> None:
    with Journal(path, dict[str, float]):
        pass


_ENTRIES = np.zeros(3, debug_journal._ENTRY)
_ENTRIES["length"] = 16
_ENTRIES["row"] = (1, 2, 3)
_JOURNAL = {"entries": _ENTRIES.tobytes(), "contents": bytes(64), "bases": b""}
_JOURNAL_HEADER = b'{"first": 0, "complete": 1, "instructions": 4}'

_RESULT = (
    b"status\tfailed\nfault\tkernel\nmessage\tdeadlock\nat\tk.cpp\t7\npc\tk.so\t99\nsignal\t11\ninstructions\t0\n"
    b"site\tk.cpp\t3\tVADD\t1\nunused\t0\t4\t1\t2\t1\nremark\tk.cpp\t3\tit waits\nend\n"
)
_LOG = (
    b"In file included from k.cpp:3:\nh.hpp:7:5: error: 'TNOSUCH' was not declared in this scope\n"
    b"k.cpp:9:3:   required from here\n"
)
_OUTCOME = msgspec.msgpack.encode(("", RunOutcome("FAILED", "it stopped"), [{"a/b.json": b"{}"}]))


# --- scenes, builds, kernels ------------------------------------------------------------------------------

_SCENE = b"""from simpler_setup import SceneTestCase, scene_test
SIZES = [64 * n for n in range(1, 3)]
@scene_test(level=2, runtime="host_build_graph")
class One(SceneTestCase):
    CALLABLE = {"orchestration": {"source": "o.cpp", "function_name": "entry", "signature": ["IN"]},
        "incores": [{"func_id": 0, "name": "ADD", "source": "add.cpp", "core_type": "aiv"}]}
    CASES = [{"name": f"Case{n}", "platforms": ["a2a3"], "params": {"rows": n}} for n in SIZES]
"""
_PTO = b"""module attributes {pto.target_arch = "a2a3"} {
  func.func @copy(%arg0: !pto.ptr<f32>, %arg1: index) {
    %c0 = arith.constant 0 : i64
    %c16 = arith.constant 16 : index
    %v = pto.make_tensor_view %arg0, shape = [%c16, %arg1], strides = [%arg1, %c16] : !pto.tensor_view<?x?xf32>
    %row__tile = pto.alloc_tile addr = %c0 : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64>
    pto.aic_initialize_pipe {dir_mask = 1, slot_size = 1024} (gm_slot_buffer = %arg0 : !pto.ptr<f32>)
    pto.tload ins(%v : !pto.tensor_view<?x?xf32>) outs(%row__tile : !pto.tile_buf<loc=vec>) loc("model.py":4:2)
    scf.for %i = %c0 to %c16 step %c16 {
      pto.tstore ins(%row__tile : !pto.tile_buf<loc=vec>) outs(%v : !pto.tensor_view<?x?xf32>) loc(#loc1)
    }
    return
  }
}
#loc1 = loc("model.py":5:3)
"""
_CPP = b"""#include <pto/pto-inst.hpp>
AICORE void copy(__gm__ float* v1, int64_t v2) {
  Tile<TileType::Vec, float, 16, 64> v3;
  if (v2 > 3) { TLOAD(v3, v1); set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0); }
  for (int64_t v4 = 0; v4 < v2; v4 += 1) { wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0); TSTORE(v1, v3); }
}
extern "C" __global__ AICORE void kernel_entry(__gm__ int64_t* args) { copy((__gm__ float*)args[0], args[1]); }
"""
_MAIN = b"""size_t elemCount_v1 = 16 * 64;
size_t fileSize_v1 = elemCount_v1 * sizeof(float);
ReadFile("./v1.bin", fileSize_v1, v1Host, fileSize_v1);
"""


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _symbols(path: Path) -> None:
    Symbols.of(path.parent, {0x1000, 0x1004, 0x1010}, [])


def _arguments(path: Path) -> None:
    module = read_pto(path)
    for kernel in kernels_of_pto(module):
        kernel_arguments(kernel, module, Wishes())


def _lines(path: Path) -> None:
    python_lines(path, path.with_name("copy.cpp"))
    tile_names(path)


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
_VARIANTS = (bytes([variants._WELL]) + bytes(16)) * 2


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
    _from_file(BufferArg(0, "v1", "x", _FLOAT32, 16, Content.FILE, "given"), path)


def _core_folder(folder: Path) -> None:
    (folder / "core0.veccore0").mkdir(exist_ok=True)


def _said(path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        _print_findings(path.parent)


def _kept_lines(path: Path) -> None:
    source_lines._lines.cache_clear()
    source_lines._lines(str(path.with_name("k.so")))


class _KeptCache(Cache):
    def drop(self, entry: Path) -> None:
        """The entry stays for the next input."""


def _entry(folder: Path) -> None:
    (folder / "kernel" / "abc").mkdir(parents=True, exist_ok=True)
    (folder / "kernel" / "abc" / "k.so").write_bytes(b"abc")


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
_ALLOWS = b"int x; // insight-trace: allow race\n// insight-trace: allow out-of-bounds because it is known\n"

# --- the targets ------------------------------------------------------------------------------------------

_CHIP = ROOT / "src" / "insight_trace" / "chips" / "ascend910b1.toml"
_ELF = _seed("aicore_binary.o")
_PMU = (
    b"thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,vec_busy_cycles\n"
    b"0,1,0x0000000200000005,1,1,1412,760\n0,2,0x6,0,0,99.5,\n"
)
_SWIMLANE = json.dumps(
    {
        "metadata": {"clock_freq_hz": 50000000, "core_types": ["aic", "aiv"]},
        "aicore_tasks": [[0, 8589934597, 0, 100, 220], [1, 6, 1, 90, 100, 3]],
    }
).encode()
_OPS = (
    b'op,case,params,measured_cycles,quality,peer_precision\nTADD,a,"float 64 64 64 64",312,ok,0.9\n'
    b'TLOAD,b,"float 1 1 1 16 64 16 64 0 PadValue::Null 16 64",99,ok,\n'
)
_DEPS = b'{"tasks": [{"task_id": 1, "kernel_ids": [0, 1, 1], "block_num": 2}], "edges": [[1, 2], {"pred": 2, "succ": 3}]}'
_META = b'{"platform": "a2a3", "backend_type": "Ascend910B"}'

TARGETS: dict[str, Target] = {
    "scene": Target(load_scenes, "scene.py", (_SCENE, (EXAMPLES / "paged_attention" / "scene.py").read_bytes())),
    "args_dump": Target(_dump, "args_dump.json", (_small_dump("args_dump.json", "args"), _seed("args_dump.json"))),
    "tensor_dump": Target(
        _dump, "tensor_dump.json", (_small_dump("tensor_dump.json", "tensors"), _seed("tensor_dump.json"))
    ),
    "kernel_args_dump": Target(
        _dump, "kernel_args_dump.json",
        (_small_dump("kernel_args_dump.json", "dispatches"), _seed("kernel_args_dump.json"))
    ),
    "arg_spec": Target(read_arg_spec, "spec.json", (_seed("arg_spec.json"),)),
    "replay_record": Target(lambda p: read_record(p.parent), "replay.json", (_seed("replay.json"),)),
    "trace_json": Target(_trace, "trace.json", (_small_trace(), _seed("trace.json"))),
    "trace_bin": Target(_trace, "visualize_data.bin", (_seed("visualize_data.bin"),)),
    "instruction_csv": Target(read_instruction_csv, "core0_instr_exe.csv", (_CSV,)),
    "validate_json": Target(validate, "trace.json", (_small_trace(), _seed("trace.json"))),
    "validate_bin": Target(validate, "visualize_data.bin", (_seed("visualize_data.bin"),)),
    "validate_details": Target(validate, "visualize_data.bin", (_details_bin(),)),
    "validate_memory_page": Target(validate, "memory_info.json", (_MEMORY_PAGE,)),
    "memory_page": Target(read_memory_page, "memory_info.json", (_MEMORY_PAGE,)),
    "details_page": Target(read_details, "visualize_data.bin", (_details_bin(), _seed("visualize_data.bin"))),
    "camodel_log": Target(
        lambda p: read_dump(p.parent), "core0.veccore0.instr_log.dump", (_seed("instr_log.dump"),),
        {"core0.veccore0.instr_popped_log.dump": _seed("instr_log.dump"), "pc_start_addr.txt": b"0x10000000"},
    ),
    "camodel_kernel": Target(_symbols, "aicore_binary.o", (_ELF,), {"pc_start_addr.txt": b"0x1000"}),
    "recording_header": _recorded(HEADER),
    "recording_debugged": _recorded(HEADER, _session),
    "recording_times": _recorded("times.npy"),
    "recording_rows": _recorded("rows.npy"),
    "recording_forms": _recorded("form.npy"),
    "recording_footprints": _recorded("footprints.npy"),
    "recording_geometries": _recorded("geometries.npy"),
    "recording_tiles": _recorded("tiles.npy"),
    "recording_calls": _recorded("calls.npy"),
    "recording_lists": _recorded("lists.npy"),
    "recording_column": Target(
        lambda p: _column(p.parent, "core", COLUMNS["core"], 4), "core.npy", (_npy_seed(np.zeros(4, "<u2")),)
    ),
    "journal_header": Target(_debug_journal, "journal.json", (_JOURNAL_HEADER,), _JOURNAL),
    "journal_entries": Target(
        _debug_journal, "entries", (_ENTRIES.tobytes(),), {**_JOURNAL, "journal.json": _JOURNAL_HEADER},
    ),
    "run_journal": Target(_run_journal, "timed.jsonl", (b'["SF@5",{"total":1412.0}]\n["PV@6",{"total":9}]\n',)),
    "torch_file": Target(read_torch_file, "x.pt", (torch_file(np.ones((3, 4), np.float32)),)),
    "npy": Target(_npy, "a.npy", (_npy_seed(np.zeros((4, 4), np.float32)),)),
    "pto": Target(read_pto, "k.pto", (_PTO, (_BUILD / "vector_add.pto").read_bytes())),
    "pto_arguments": Target(_arguments, "k.pto", (_PTO, (_BUILD / "vector_add.pto").read_bytes())),
    "python_lines": Target(_lines, "copy.pto", (_PTO,), {"copy.cpp": _CPP}),
    "cpp_signature": Target(lambda p: parse_cpp(_text(p)), "k.cpp", (_CPP, (_BUILD / "strided_copy.cpp").read_bytes())),
    "kernel_source": Target(
        lambda p: shape_of_source(_text(p), None), "k.cpp", (_CPP, (EXAMPLES / "kernels" / "softmax.cpp").read_bytes())
    ),
    "kernel_config": Target(
        lambda p: build_scenes(p.parent), "kernel_config.py", ((_PYPTO / "kernel_config.py").read_bytes(),)
    ),
    "golden": Target(read_golden, "golden.py", ((_PYPTO / "golden.py").read_bytes(),)),
    "compiled_meta": Target(
        lambda p: recorded_arch(p.with_name("kernel_config.py"), p.parent), "compiled_meta.json", (_META,)
    ),
    "generated_main": Target(lambda p: input_sizes(_text(p)), "main.cpp", (_MAIN,)),
    "runner_result": Target(lambda p: runner._read(p, p.with_name("records")), "result", (_RESULT,)),
    "capture_result": Target(lambda p: capture_process._read(p, 0), "result", (_RESULT,)),
    "runner_records": Target(_records, "records", (_STEPS.tobytes(),)),
    **{
        f"runner_{name}": Target(
            lambda p: _records(p.with_name("records"), ranges=True),
            f"records.{name}",
            (content,),
            {f"records.{other}": text for other, text in _BESIDE.items()}
            | {"records": _WITH_OPERANDS.tobytes()},
        )
        for name, content in _BESIDE.items()
    },
    "worker_answer": Target(lambda p: answered(p.read_bytes(), RunOutcome, (p.parent / "out",)), "answer", (_OUTCOME,)),
    "worker_name": Target(lambda p: identity(p.read_bytes()), "name", (msgspec.msgpack.encode(("1.0", "embedded")),)),
    "compiler_log": Target(lambda p: first_error(_text(p), Path("k.cpp")), "log", (_LOG,)),
    "debug_lines": Target(lambda p: _read_debug_lines(str(p)), "k.so", (_ELF,)),
    "chip": Target(read_chip_file, "chip.toml", (_CHIP.read_bytes(),)),
    "manifest": Target(
        lambda p: read_manifest(p.parent), "manifest_export.csv", (b"func,status,message\na,EXPORTED,fine\n",)
    ),
    "pmu": Target(read_pmu, "pmu.csv", (_PMU,)),
    "swimlane": Target(read_swimlane, "chip_swimlane_records.json", (_SWIMLANE,)),
    "deps": Target(read_deps, "deps.json", (_DEPS,)),
    "name_map": Target(read_names, "name_map.json", (b'{"level": 2, "callable_id_to_name": {"0": "QK"}}',)),
    "op_table": Target(table_requests, "cycles.csv", (_OPS,)),
    "suppressions": Target(in_file, "allow.txt", (b"# known\nadd.cpp:7 race\nmul.cpp out-of-bounds\n",)),
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
    "input_npy": Target(_buffer, "x.npy", (_npy_seed(np.zeros(16, np.float32)),)),
    "input_bin": Target(_buffer, "x.bin", (bytes(64),)),
    "golden_npy": Target(lambda p: golden_array(p, _FLOAT32, (4, 4)), "g.npy", (_npy_seed(np.zeros((4, 4), np.float32)),)),
    "golden_bin": Target(lambda p: golden_array(p, _FLOAT32, (4, 4)), "g.bin", (bytes(64),)),
    "scene_neighbour": Target(
        lambda p: load_scenes(p.with_name("scene.py")), "sizes.py", (_NEIGHBOUR,), {"scene.py": _IMPORTS},
    ),
    "allowances": Target(lambda p: in_sources({"k.cpp": p}), "k.cpp", (_ALLOWS,)),
    "toolkit_version": Target(lambda p: version_key(version_of(p.parent)), "version.info", (b"Version=8.2.RC1\n",)),
    "carried_manifest": Target(lambda p: fits(p.parent, "runner", "abc"), "manifest.json", (_MANIFEST,)),
    "cache_stamp": Target(
        lambda p: _KeptCache(p.parents[2]).get("kernel", "abc"), f"kernel/abc/{_STAMP}", (b"3 k.so",), prepare=_entry,
    ),
    "variant_outputs": Target(lambda p: variants._read(p, 2, [_TENSOR]), "variants", (_VARIANTS,)),
    "build_program": Target(lambda p: _program(p.parent), "dispatch_program.json", (b'{"program": "attention"}',)),
    "build_names": Target(
        lambda p: kernel_names(p.parent), "name_map_1.json", (b'{"level": 2, "callable_id_to_name": {"0": "QK"}}',)
    ),
    "kept_lines": Target(_kept_lines, KEPT, (b"16\t3\tk.cpp\n32\t4\tk.cpp\n",)),
}  # fmt: skip


def place(folder: Path, target: Target) -> Path:
    """The folder with what a reader finds beside its file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "args.bin").write_bytes(bytes(4096))
    (folder / "kernel_args_dump.bin").write_bytes(bytes(4096))
    (folder / "records").write_bytes(b"")
    for name, content in target.beside.items():
        (folder / name).write_bytes(content)
    if target.prepare is not None:
        target.prepare(folder)
    return folder / target.file

"""Every reader of files that others wrote, as a function of bytes: what mutation and fuzzing run.

A target may raise InsightTraceError and nothing else, whatever it is given.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from insight_trace.arguments.arg_spec import read_arg_spec
from insight_trace.arguments.buffers import file_elements
from insight_trace.arguments.content import Zero
from insight_trace.arguments.slots import ReplayTensor, Tier
from insight_trace.chips.chip_files import read_chip_file
from insight_trace.dtypes import DTYPES
from insight_trace.dump.load import load_dump
from insight_trace.insight.camodel.read import read_dump
from insight_trace.insight.reader import open_trace
from insight_trace.insight.validator import validate
from insight_trace.ptoas.cpp_signature import parse_cpp
from insight_trace.ptoas.profile_books import read_manifest
from insight_trace.ptoas.pto_parser import read_pto
from insight_trace.replay.replay_folder import read_record
from insight_trace.scene.kernel_source import shape_of_source
from insight_trace.scene.static import load_scenes
from insight_trace.simulate.embedded.compile_errors import first_error
from insight_trace.simulate.embedded.runner import _read

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "fuzz"
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Target:
    """A reader, the name under which its file lies in a folder, and what a good one looks like."""

    read: Callable[[Path], object]
    file: str
    seeds: tuple[bytes, ...]


def _dump(path: Path) -> None:
    dump = load_dump(path)
    for dispatch in dump.dispatches:
        _ = dispatch.arguments


def _npy(path: Path) -> None:
    dtype = next(d for d in DTYPES if d.name == "FLOAT32")
    tensor = ReplayTensor(0, dtype, (4, 4), (4, 1), Zero(), Tier.EXACT, 64, 64)
    np.array(file_elements(path, tensor))


def _trace(path: Path) -> None:
    trace = open_trace(path)
    len(trace.instructions)


def _npy_seed() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros((4, 4), np.float32))
    return file.getvalue()


def _seed(path: Path) -> bytes:
    return path.read_bytes()


_RESULT = (
    b"status\tfailed\nfault\tkernel\nmessage\tdeadlock\nat\tk.cpp\t7\npc\tk.so\t99\nsignal\t11\ninstructions\t0\n"
    b"site\tk.cpp\t3\tVADD\t1\nunused\t0\t4\t1\t2\t1\nend\n"
)
_LOG = (
    b"In file included from k.cpp:3:\nh.hpp:7:5: error: 'TNOSUCH' was not declared in this scope\n"
    b"k.cpp:9:3:   required from here\n"
)
_BUILD = EXAMPLES / "pypto_build" / "ptoas"

TARGETS: dict[str, Target] = {
    "scene": Target(load_scenes, "scene.py", (_seed(EXAMPLES / "paged_attention" / "scene.py"),)),
    "args_dump": Target(_dump, "args_dump.json", (_seed(CORPUS / "args_dump.json"),)),
    "tensor_dump": Target(_dump, "tensor_dump.json", (_seed(CORPUS / "tensor_dump.json"),)),
    "kernel_args_dump": Target(_dump, "kernel_args_dump.json", (_seed(CORPUS / "kernel_args_dump.json"),)),
    "arg_spec": Target(read_arg_spec, "spec.json", (_seed(CORPUS / "arg_spec.json"),)),
    "replay_record": Target(lambda p: read_record(p.parent), "replay.json", (_seed(CORPUS / "replay.json"),)),
    "trace_json": Target(_trace, "trace.json", (_seed(CORPUS / "trace.json"),)),
    "trace_bin": Target(_trace, "visualize_data.bin", (_seed(CORPUS / "visualize_data.bin"),)),
    "validate_json": Target(validate, "trace.json", (_seed(CORPUS / "trace.json"),)),
    "validate_bin": Target(validate, "visualize_data.bin", (_seed(CORPUS / "visualize_data.bin"),)),
    "camodel_log": Target(
        lambda p: read_dump(p.parent), "core0.veccore0.instr_log.dump", (_seed(CORPUS / "instr_log.dump"),)
    ),
    "pto": Target(read_pto, "k.pto", (_seed(_BUILD / "vector_add.pto"), _seed(_BUILD / "strided_copy.pto"))),
    "cpp_signature": Target(
        lambda p: parse_cpp(p.read_text(errors="replace")), "k.cpp", (_seed(_BUILD / "strided_copy.cpp"),)
    ),
    "kernel_source": Target(
        lambda p: shape_of_source(p.read_text(errors="replace"), None),
        "k.cpp",
        (_seed(EXAMPLES / "kernels" / "softmax.cpp"),),
    ),
    "npy": Target(_npy, "a.npy", (_npy_seed(),)),
    "runner_result": Target(lambda p: _read(p, p.with_name("records")), "result", (_RESULT,)),
    "compiler_log": Target(
        lambda p: first_error(p.read_text(errors="replace"), Path("k.cpp")), "log", (_LOG,)
    ),
    "chip": Target(
        read_chip_file, "chip.toml", (_seed(ROOT / "src" / "insight_trace" / "chips" / "ascend910b1.toml"),)
    ),
    "manifest": Target(
        lambda p: read_manifest(p.parent), "manifest_export.csv", (b"func,status,message\na,EXPORTED,fine\n",)
    ),
}


def place(folder: Path, target: Target) -> Path:
    """The folder with what a reader finds beside its file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "args.bin").write_bytes(bytes(4096))
    (folder / "kernel_args_dump.bin").write_bytes(bytes(4096))
    (folder / "records").write_bytes(b"")
    path = folder / target.file
    if target.file.endswith("instr_log.dump"):
        (folder / "core0.veccore0.instr_popped_log.dump").write_bytes(target.seeds[0])
        (folder / "pc_start_addr.txt").write_text("0x10000000")
    return path

"""Every reader takes whatever bytes it is given: read, or refused with an error of ours. `make fuzz` runs longer."""

import contextlib
import io
import json
import os
import random
import re
import resource
import signal
import struct
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tools.mutate_readers import mutated

from insight_trace.errors import InputError, InsightTraceError
from insight_trace.insight.container import BlockType, write_block
from insight_trace.reading import read_regular
from tests.torch_files import archive
from tests.trust.reader_targets import TARGETS, place

INPUTS = 60
DEEP = b"[" * 200_000
DIGITS = b"9" * 5000
LONG_NAME = b"k" * 5000
EVENT = {"ph": "X", "name": "VADD", "ts": 0, "dur": 1, "pid": 1, "tid": 1}
# what every reader is given
ANY = (
    b"",
    DEEP,
    DIGITS,
    LONG_NAME,
    b"null",
    b"[]",
    b"{}",
    b"7",
    b"1.5",
    b'"x"',
    b'[1, {"severity": []}, {}]',
    b"\xff" * 288,
)
# what these read comes as bytes or text from a reader that is among the others, or from a connection
OF_BYTES = {"cpp_signature", "kernel_source", "generated_main", "compiler_log"}
OF_BYTES |= {"worker_answer", "worker_name", "cluster_time", "capture_rows"}
RUNS = TARGETS["run_index"].seeds[0]
TABLE = TARGETS["instruction_tables"].seeds[0]


def _read(name: str, path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[name].read(path)
        return True
    except InsightTraceError:
        return False
    finally:
        assert time.process_time() - begin < 5


@contextlib.contextmanager
def _in_little_memory(most: int) -> Iterator[int]:
    """Gives the memory in use, which may grow by less than that."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    yield used
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - used < most


@contextlib.contextmanager
def _address_space(most: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_and_any_and_mutated_bytes_are_read_or_refused(name, tmp_path):
    path = place(tmp_path, TARGETS[name])
    dice = random.Random(name)
    for seed in TARGETS[name].seeds:
        assert _read(name, path, seed)
    with _in_little_memory(1 << 30):
        for content in ANY:
            _read(name, path, content)
        for _ in range(INPUTS):
            _read(name, path, mutated(dice.choice(TARGETS[name].seeds), dice))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", sorted(TARGETS.keys() - OF_BYTES))
def test_what_is_no_regular_file_is_refused_at_once(name, kind, tmp_path):
    path = place(tmp_path, TARGETS[name])
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()

    def hangs(*_: object) -> None:
        pytest.fail("it waits")

    handler = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(5)
    try:
        # the command line names the path of an OSError
        with (
            _in_little_memory(1 << 29) as used,
            _address_space(used + (1 << 30)),
            contextlib.suppress(InsightTraceError, OSError),
        ):
            TARGETS[name].read(path)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)


# --- what mutation found: each input once ended in an exception of somebody else's, or took gigabytes -------


def _block(type_: BlockType, content: bytes) -> bytes:
    file = io.BytesIO()
    write_block(file, BlockType.TRACE, b'{"traceEvents":[]}')
    write_block(file, type_, content)
    return file.getvalue()


FINDS = {
    "a swimlane's clock beyond every float": ("swimlane", b'{"metadata": {"clock_freq_hz": 1' + b"0" * 400 + b"}}"),
    "a swimlane's endless token": (
        "swimlane", b'{"metadata": {"clock_freq_hz": 1}, "aicore_tasks": [[0, Infinity, 0, 1, 2]]}',
    ),
    "a swimlane's core before the first": (
        "swimlane", b'{"metadata": {"clock_freq_hz": 1}, "aicore_tasks": [[-1, 1, 0, 1, 2]]}',
    ),
    "counters with a field of a megabyte": ("pmu", b"task_id\n" + b"x" * (1 << 20)),
    "suppressions that are no text": ("suppressions", b"\xb7 race\n"),
    "a suppression at a line of 5,000 digits": ("suppressions", b"k.cpp:" + DIGITS + b" race\n"),
    "a worker's answer that is no text": ("worker_answer", b"\x93\x92\xa2\xff\xfe\xa1x\x80\x80"),
    "a worker's name that is no text": ("worker_name", b"\x92\xa2\xff\xfe\xa1x"),
    "a remark without a place": ("capture_result", b"remark\nstatus\tok\nend\n"),
    "a size of 5,000 digits": ("generated_main", b"size_t elemCount_v1 = " + DIGITS + b";\n"),
    "an op's size of 5,000 digits": ("op_table", b"op,case,params,measured_cycles\nTADD,a,float " + DIGITS + b" 64,1\n",),
    "an op's size in other people's digits": (
        "op_table", "op,case,params,measured_cycles\nTADD,a,float ²² 64,1\n".encode(),
    ),
    "an op's row that stops early": ("op_table", b"op,case,params,measured_cycles\nTADD\n"),
    "a kernel's source that no file can be": (
        "kernel_config", b'KERNELS = [{"func_id": 0, "name": "k", "source": "' + LONG_NAME + b'"}]\n',
    ),
    "a golden's file that no file can be": (
        "golden",
        b"import torch\n__outputs__ = ['z']\ndef generate_inputs(params):\n"
        b"    x = torch.load('/" + LONG_NAME + b"')\n    return [('x', x)]\n",
    ),
    "a block nested too deep": ("details_page", _block(BlockType.BASE_INFO, DEEP)),
    "a block nested too deep, checked": ("validate_details", _block(BlockType.BASE_INFO, DEEP)),
    "a table nested too deep, checked": ("validate_details", _block(BlockType.API_INSTR, DEEP)),
    "a core without end": (
        "validate_details",
        _block(
            BlockType.OCCUPANCY,
            b'{"op_detail":[{"core_id":1e999,"core_detail":[{"subcore_id":"inf","cycles":"inf"}]}]}',
        ),
    ),
    "a kernel's object cut in its sections": ("camodel_kernel", TARGETS["camodel_kernel"].seeds[0][:1500]),
    "a shared object cut in its sections": ("debug_lines", TARGETS["debug_lines"].seeds[0][:1500]),
    "a slot in octal": ("kernel_source", b"void kernel_entry(__gm__ int64_t* args) {f(args[01], args[09]);}"),
    "a tolerance of 400 digits": ("golden", b"RTOL = 1" + b"0" * 400 + b"\n"),
    "a tolerance that is no number": ("golden", b"RTOL = float('nan')\n"),
    "a timeline's version of 5,000 digits": ("validate_json", b'{"schemaVersion": ' + DIGITS + b', "traceEvents": []}'),
    "a Python line of 5,000 digits": (
        "python_lines",
        TARGETS["python_lines"].seeds[0].replace(b'"model.py":4:', b'"model.py":' + DIGITS + b":"),
    ),
    "a tile's address of 5,000 digits": (
        "python_lines", TARGETS["python_lines"].seeds[0].replace(b"constant 16 :", b"constant " + DIGITS + b" :"),
    ),
    "a logged address of 5,000 digits": (
        "camodel_log", TARGETS["camodel_log"].seeds[0].replace(b"(PC: 0x1000)", b"(PC: 0x" + DIGITS + b")"),
    ),
    "a logged time of 5,000 digits": (
        "camodel_log", TARGETS["camodel_log"].seeds[0].replace(b"[00000011]", b"[" + DIGITS + b"]"),
    ),
    "a logged register of 5,000 digits": (
        "camodel_log", TARGETS["camodel_log"].seeds[0].replace(b"XD:X29=0x7f80", b"XD:X29=0x" + DIGITS),
    ),
    "a slot size that begins with 0": (
        "pto_arguments", TARGETS["pto_arguments"].seeds[0].replace(b"slot_size = 1024", b"slot_size = 024"),
    ),
    "dependences that are no text": ("deps", b'{"edges": [["\xff", 1]]}'),
    "a map of names that is no text": ("name_map", b'{"0": "\xff"}'),
    "an index of runs with another's data": ("run_index", RUNS.replace(b'"path"', b'"qath"')),
    "an index of runs with a key cut off": ("run_index", RUNS.replace(b'"kernels"', b'"kern\x00ls"')),
    "an index of runs that is no text": ("run_index", RUNS.replace(b"scene.py", b"scene\xff\xfe.")),
    "a timing that is no text": ("cluster_time", b"\x98\xcd\x03\x84\x91\x91\x01\x81\xa2\xc2"),
    "a graph of tasks that is cut off": ("task_graph", TARGETS["task_graph"].seeds[0][:-1]),
    "a graph whose task waits for one that there is not": (
        "task_graph", TARGETS["task_graph"].seeds[0][:-12] + b"\x09" * 12,
    ),
    "rows of arguments that a kernel wrote over": ("capture_rows", b"\xff" * 288),
    "a manifest that is no text": ("kernel_table", b"func,status\n\xff,FAILED\n"),
    "a kernel's name that no folder has": ("kernel_table", b"func,status\n" + LONG_NAME + b",FAILED\n"),
    "a kernel's name that leads elsewhere": ("kernel_table", b"func,status\n../../..,FAILED\n"),
    "a count of 400 digits": ("instruction_tables", TABLE.replace(b",3,", b"," + b"9" * 400 + b",")),
    "findings of another form": ("profile_findings", b'[1, {"severity": []}, {}]'),
    "a toolkit's version of 5,000 digits": ("toolkit_version", b"Version=" + DIGITS),
    "a tensor kept under a number of billions": (
        "torch_file", archive(b"\x80\x02N" + b"r" + struct.pack("<I", 0xFFFFFFF0) + b".", b""),
    ),
    **{
        f"a trace with {what}": ("trace_json", json.dumps({"traceEvents": events}).encode())
        for what, events in {
            "a list for ph": [{**EVENT, "ph": []}],
            "a list for the name": [{**EVENT, "name": ["a"]}],
            "a time of 1e18": [{**EVENT, "ts": 1e18}, {**EVENT, "ts": 1e18, "dur": 1e18}],
            "a negative time": [{**EVENT, "ts": -5, "dur": -1}],
            "a thread that is a list": [{**EVENT, "tid": [1]}],
            "numbers as text": [{**EVENT, "ts": "now"}],
            "NaN": [{**EVENT, "ts": float("nan")}],
            "an event that is a number": [7],
        }.items()
    },
    "a trace 2,000 deep": ("trace_json", b'{"traceEvents": [{"ph": "X", "args": ' + b"[" * 2000 + b"]" * 2000 + b"}]}"),
    "a trace with a time of 5,000 digits": ("trace_json", b'{"traceEvents": [{"ph": "X", "ts": ' + DIGITS + b"}]}"),
    **{
        f"a record that is {text}": ("replay_record", text.encode())
        for text in ('{"version": 1}', '{"version": [1]}', '{"version": 1e400}', '{"version": 1, "kernels": [7]}',
                     '{"version": 1, "kernels": {}, "scene": [], "case": 5}')
    },
    "a damaged array": ("npy", b"\x93NUMPY\x01\x00v\x00{'descr': ((((("),
    "a slot of 5,000 digits": (
        "kernel_source", b'extern "C" void kernel_entry(long *args) { args[' + DIGITS + b"] = 1; }",
    ),
    "a chip with a number too large for a float": (
        "chip", re.sub(rb"= \d+(\.\d+)?\b", b"= " + b"9" * 400, TARGETS["chip"].seeds[0], count=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDS)
def test_it_is_read_or_refused(name, tmp_path):
    reader, content = FINDS[name]
    path = place(tmp_path, TARGETS[reader])
    with _in_little_memory(1 << 30):
        _read(reader, path, content)


@pytest.mark.parametrize(
    ("table", "field", "row", "value", "said"),
    [
        ("footprints", "count", 1, (1 << 20, 1 << 20, 2, 2), "more than 1,048,576 pieces"),
        ("footprints", "mask", 0, 3, "more than 1,048,576 pieces"),
        ("rows", "footprint", 2, 0xFFFFFFFF, "names row 4294967295"),
    ],
)
def test_operands_of_endless_pieces_or_without_a_footprint_are_refused(
    tmp_path, table, field, row, value, said
):
    target = TARGETS[f"recording_{table}"]
    path = place(tmp_path, target)
    content = np.load(path)
    content[field][row] = value
    if field == "mask":
        content["run"][row] = 0xFFFFFFFF
    np.save(path, content)
    with pytest.raises(InputError, match=said):
        target.read(path)


def test_a_small_file_is_read_into_little_memory_whatever_its_limit(tmp_path):
    (tmp_path / "small").write_bytes(b"abc")
    with _in_little_memory(1 << 29) as used, _address_space(used + (8 << 30)):
        assert read_regular(tmp_path / "small", most=1 << 40) == b"abc"
    assert read_regular(tmp_path / "small", most=3) == b"abc"
    with pytest.raises(InputError, match="has 3 bytes"):
        read_regular(tmp_path / "small", most=2)
    assert b"Name" in read_regular(Path("/proc/self/status"), most=1 << 20)  # its size reads 0

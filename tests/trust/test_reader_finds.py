"""What mutation found, kept: each input once ended in an exception of somebody else's, or took gigabytes."""

import contextlib
import io
import resource
import struct

import numpy as np
import pytest

from insight_trace.errors import InputError, InsightTraceError
from insight_trace.insight.container import BlockType, write_block
from insight_trace.reading import read_regular
from tests.torch_files import archive
from tests.trust.reader_targets import TARGETS, place

DEEP = b"[" * 200_000
DIGITS = b"9" * 5000
LONG_NAME = b"k" * 5000

RUNS = TARGETS["run_index"].seeds[0]
TABLE = TARGETS["instruction_tables"].seeds[0]


def _block(type_: BlockType, content: bytes) -> bytes:
    file = io.BytesIO()
    write_block(file, BlockType.TRACE, b'{"traceEvents":[]}')
    write_block(file, type_, content)
    return file.getvalue()


FINDS = {
    "a swimlane nested too deep": ("swimlane", DEEP),
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
    "an op's size of 5,000 digits": (
        "op_table", b"op,case,params,measured_cycles\nTADD,a,float " + DIGITS + b" 64,1\n",
    ),
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
    "a recording's header nested too deep": ("recording_header", DEEP),
    "a memory page nested too deep": ("memory_page", DEEP),
    "a memory page nested too deep, checked": ("validate_memory_page", DEEP),
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
    "a slot in octal": ("kernel_source", b"void kernel_entry(__gm__ int64_t* args) { f(args[01], args[09]); }"),
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
    "a journal of no replays": ("replay_journal", b""),
    "a timing that is no text": ("cluster_time", b"\x98\xcd\x03\x84\x91\x91\x01\x81\xa2\xc2"),
    "a graph of tasks without end": ("task_graph", b"\xff" * 16),
    "a graph of tasks that is cut off": ("task_graph", TARGETS["task_graph"].seeds[0][:-1]),
    "a graph of tasks that is empty": ("task_graph", b""),
    "a graph whose task waits for one that there is not": (
        "task_graph", TARGETS["task_graph"].seeds[0][:-12] + b"\x09" * 12,
    ),
    "rows of arguments that a kernel wrote over": ("capture_rows", b"\xff" * 288),
    "a manifest that is no text": ("kernel_table", b"func,status\n\xff,FAILED\n"),
    "a kernel's name that no folder has": ("kernel_table", b"func,status\n" + LONG_NAME + b",FAILED\n"),
    "a kernel's name that leads elsewhere": ("kernel_table", b"func,status\n../../..,FAILED\n"),
    "a header beside a trace nested too deep": ("recorded_facts", DEEP),
    "a count of 400 digits": ("instruction_tables", TABLE.replace(b",3,", b"," + b"9" * 400 + b",")),
    "findings of another form": ("profile_findings", b'[1, {"severity": []}, {}]'),
    "findings nested too deep": ("profile_findings", DEEP),
    "a pointer to a run that no folder can be": ("profile_pointer", LONG_NAME),
    "a toolkit's version of 5,000 digits": ("toolkit_version", b"Version=" + DIGITS),
    "a wheel's manifest of another form": ("carried_manifest", b"1.5"),
    "a wheel's manifest nested too deep": ("carried_manifest", DEEP),
    "a tensor kept under a number of billions": (
        "torch_file", archive(b"\x80\x02N" + b"r" + struct.pack("<I", 0xFFFFFFF0) + b".", b""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDS)
def test_it_is_read_or_refused(name, tmp_path):
    reader, content = FINDS[name]
    path = place(tmp_path, TARGETS[reader])
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.suppress(InsightTraceError):
        TARGETS[reader].read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


def changed(tmp_path, name, change):
    """A recording with one of its tables changed."""
    path = place(tmp_path, TARGETS[f"recording_{name}"])
    table = np.load(path)
    change(table)
    np.save(path, table)
    return path


def test_an_operand_of_endless_pieces_is_refused(tmp_path):
    def change(table):
        table["count"][1] = (1 << 20, 1 << 20, 2, 2)

    path = changed(tmp_path, "footprints", change)
    with pytest.raises(InputError, match="more than 1,048,576 pieces"):
        TARGETS["recording_footprints"].read(path)


def test_a_mask_over_gigabytes_is_refused(tmp_path):
    def change(table):
        table["mask"][0] = 3
        table["run"][0] = 0xFFFFFFFF

    path = changed(tmp_path, "footprints", change)
    with pytest.raises(InputError, match="more than 1,048,576 pieces"):
        TARGETS["recording_footprints"].read(path)


def test_an_operand_without_a_footprint_is_refused(tmp_path):
    def change(table):
        table["footprint"][2] = 0xFFFFFFFF

    path = changed(tmp_path, "rows", change)
    with pytest.raises(InputError, match="names row 4294967295"):
        TARGETS["recording_rows"].read(path)


def test_a_small_file_is_read_into_little_memory_whatever_its_limit(tmp_path):
    (tmp_path / "small").write_bytes(b"abc")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 30), hard))
    try:
        assert read_regular(tmp_path / "small", most=1 << 40) == b"abc"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert read_regular(tmp_path / "small", most=3) == b"abc"
    with pytest.raises(InputError, match="has 3 bytes"):
        read_regular(tmp_path / "small", most=2)
    assert b"Name" in read_regular(type(tmp_path)("/proc/self/status"), most=1 << 20)  # its size reads 0

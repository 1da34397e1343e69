"""How instructions are drawn: when a WAIT begins, which flags belong together, which thread a slice gets."""

import json

import numpy as np
import pytest
from insight_made_up import FLAGS, trace_of
from tests.synthetic_recording import mix_recording

from insight_trace.insight import open_trace, write_insight_directory
from insight_trace.insight.encoding import spelled
from insight_trace.insight.event_text import fragments_of
from insight_trace.insight.prepared import Extras, Prepared
from insight_trace.model import Pipe, Stall


def _events(rows, folder, name="trace.json"):
    directory = write_insight_directory(trace_of(rows), folder)
    return json.loads((directory / name).read_text())["traceEvents"]


def _us(cycles):
    return float(np.float32(cycles / 1850))


def test_a_wait_begins_where_the_work_before_it_on_its_pipe_ends(tmp_path):
    rows = [
        {"name": "VADD", "pipe": int(Pipe.VECTOR), "start": 10, "end": 50},
        {"name": "WAIT_FLAG", "pipe": int(Pipe.VECTOR), "start": 20, "end": 90, "detail": FLAGS[0]},
        {"name": "WAIT_FLAG", "pipe": int(Pipe.MTE3), "start": 20, "end": 95, "detail": FLAGS[1]},
    ]
    begun = {each["tid"]: each["ts"] for each in _events(rows, tmp_path) if each["ph"] == "B"}
    assert begun == {"VECTOR": _us(50), "MTE3": _us(20)}


def test_flags_without_a_recorded_partner_are_paired_first_in_first_out(tmp_path):
    rows = [
        {"name": "SET_FLAG", "pipe": int(Pipe.MTE2), "start": 1, "end": 10, "detail": FLAGS[0]},
        {"name": "SET_FLAG", "pipe": int(Pipe.MTE2), "start": 11, "end": 30, "detail": FLAGS[0]},
        {"name": "WAIT_FLAG", "pipe": int(Pipe.VECTOR), "start": 2, "end": 12, "detail": FLAGS[0]},
        {"name": "WAIT_FLAG", "pipe": int(Pipe.VECTOR), "start": 13, "end": 31, "detail": FLAGS[0]},
        {"name": "WAIT_FLAG", "pipe": int(Pipe.MTE3), "start": 13, "end": 40, "detail": FLAGS[1]},
    ]
    events = _events(rows, tmp_path)
    flows = [(each["id"], each["ph"], each["ts"]) for each in events if each["ph"] in "st"]
    assert flows == [
        ("core0.veccore0_0", "s", _us(10)),
        ("core0.veccore0_0", "t", _us(12)),
        ("core0.veccore0_1", "s", _us(30)),
        ("core0.veccore0_1", "t", _us(31)),
    ]
    assert sum(each.get("id") == "core0.veccore0_2" for each in events) == 2, "a lone flag has no arrow"


def test_flags_of_two_cores_can_be_partners(tmp_path):
    rows = [
        {"name": "SET_FLAG", "core": 0, "pipe": int(Pipe.FIXP), "start": 1, "end": 10, "detail": "to vector"},
        {"name": "WAIT_FLAG", "core": 1, "pipe": int(Pipe.MTE2), "start": 2, "end": 12, "detail": "of cube"}
        | {"partner": 0},
    ]
    directory = write_insight_directory(trace_of(rows), tmp_path)
    read = open_trace(directory).instructions
    wait = int(np.flatnonzero(read.core == read.cores.index("core0.veccore0"))[0])
    assert read.cores[read.core[read.partner[wait]]] == "core0.cubecore0"


def test_slices_that_overlap_get_the_first_thread_that_is_free(tmp_path):
    rows = [
        {"name": "MOV_OUT_TO_UB", "pipe": int(Pipe.MTE2), "start": start, "end": end}
        for start, end in ((0, 10), (5, 20), (11, 30), (15, 40), (21, 50))
    ]
    events = _events(rows, tmp_path, "core0.veccore0/trace.json")
    assert [(each["pid"], each["tid"]) for each in events if each["ph"] == "X"] == [
        (60, 1),
        (60, 2),
        (60, 1),
        (60, 3),
        (60, 2),
    ]
    named = [each["args"]["name"] for each in events if each["name"] == "thread_name"]
    assert named == ["MTE2_1", "MTE2_2", "MTE2_3"]


def test_scalar_work_with_a_target_register_has_a_process_of_its_own(tmp_path):
    rows = [
        {"name": "MOV_XD_IMM", "start": 1, "end": 2, "detail": "XD:X1=0x1,"},
        {"name": "BAR", "start": 3, "end": 9, "detail": "PIPE:ALL,"},
    ]
    events = _events(rows, tmp_path, "core0.veccore0/trace.json")
    drawn = {each["name"]: (each["pid"], each["ts"], each["dur"]) for each in events if each["ph"] == "X"}
    assert drawn == {"MOV_XD_IMM": (20, _us(1), _us(1)), "BAR": (10, _us(8), _us(1))}


@pytest.mark.parametrize("core", ["core0.cubecore0", "core0.veccore0", "core0.veccore1"])
def test_every_core_gets_every_lane_in_the_order_that_insight_shows(tmp_path, core):
    rows = [{"name": "VADD", "core": number, "start": 1, "end": 2} for number in range(3)]
    events = _events(rows, tmp_path)
    lanes = {
        each["tid"]: each["args"]["sort_index"]
        for each in events
        if each["name"] == "thread_sort_index" and each["pid"] == core
    }
    assert lanes == {pipe.name: int(pipe) for pipe in Pipe} | {"WARP_-1": 99}
    order = {
        each["pid"]: each["args"]["sort_index"] for each in events if each["name"] == "process_sort_index"
    }
    assert order == {"core0.cubecore0": 1, "core0.veccore0": 2, "core0.veccore1": 3}


def test_arguments_from_tables_are_those_that_each_row_spells_by_itself():
    recording = mix_recording(2, 4, seed=3)
    columns = recording.instructions
    fragments = fragments_of(Prepared(columns, Extras(), recording.trace.mhz))
    rows = np.arange(len(columns))[::-1].copy()
    joined = [spelled(part, len(rows)) for part in fragments.head(rows)]
    waiting = 0
    for place, row in enumerate(rows.tolist()):
        args = json.loads(b"".join(column[place] for column in joined) + b"}")["args"]
        expected = {
            "code": columns.stacks[columns.stack[row]],
            "detail": columns.detail[row],
            "pc_addr": f"0x{columns.pc[row]:x}",
            "cycles": int(columns.end[row] - columns.start[row]),
            "start_cycle": int(columns.start[row]),
        }
        if (moved := int(columns.process_bytes[row])) > 0:
            expected["process_bytes"] = str(moved)
            expected["bytes_per_cycle"] = float(f"{moved / max(1, expected['cycles']):.4g}")
        waited, stall, other = (
            int(columns.start[row] - columns.issue[row]),
            columns.stall[row],
            columns.partner[row],
        )
        if stall and waited > 0:
            waiting += 1
            expected["waited_cycles"] = waited
            if other >= 0 and stall in (Stall.FLAG, Stall.CROSS_CORE):
                away = columns.core[other] != columns.core[row]
                owner = f" of {columns.cores[columns.core[other]]}" if away else ""
                expected["waited_for"] = f"a flag of {Pipe(int(columns.pipe[other])).name}{owner}"
            else:
                assert args["waited_for"]
                expected["waited_for"] = args["waited_for"]
        assert args == expected
    assert waiting

"""The critical path adds up and goes through what was waited for."""

import numpy as np
from hypothesis import given

from insight_trace.model import Pipe, Stall
from insight_trace.trace.compare import total_cycles
from insight_trace.trace.critical import critical_path
from tests.synthetic_trace import TraceBuilder, matmul_trace, softmax_trace
from tests.trace_strategies import traces


@given(traces())
def test_the_pieces_follow_each_other_and_add_up_to_the_total(trace):
    path = critical_path(trace)
    assert path.cycles == total_cycles(trace)
    assert (path.end[:-1] == path.begin[1:]).all()
    assert (path.end > path.begin).all()


def test_one_buffer_makes_load_compute_and_the_last_store_critical():
    trace = softmax_trace(3, cores=1)
    path = critical_path(trace)
    instructions = trace.instructions
    work = [
        instructions.names[instructions.name[row]]
        for row in path.row
        if instructions.pipe[row] != Pipe.SCALAR
    ]
    tile = ["MOV_OUT_TO_UB_ALIGN", "VMULS", "VEXP", "VADD"]
    seen = [name for name in work if "FLAG" not in name]
    assert [name for i, name in enumerate(seen) if i == 0 or seen[i - 1] != name] == [
        *tile, *tile, *tile, "MOV_UB_TO_OUT_ALIGN",
    ]  # fmt: skip


def test_loads_in_flight_together_are_work_and_not_idle_time():
    trace = matmul_trace(1)
    path = critical_path(trace)
    on_mte1 = trace.instructions.pipe[path.row] == Pipe.MTE1
    assert int((path.end - path.begin)[on_mte1 & path.idle].sum()) <= 1


def test_two_loads_that_start_together_were_let_in_by_what_is_in_flight_before_both():
    builder = TraceBuilder()
    for name, start, end in (
        ("VST", 0, 50),
        ("VF", 40, 75),
        ("VLD", 60, 70),
        ("VLD", 60, 70),
        ("VMUL", 70, 80),
    ):
        builder.add(Pipe.VECTOR, name, start, end)
    path = critical_path(builder.build())
    assert path.row.tolist() == [0, 1, 3, 4]
    assert path.begin.tolist() == [0, 40, 60, 70]
    assert not path.idle.any()


def test_a_full_queue_leads_to_the_wait_that_held_it_up_and_to_the_flag():
    builder = TraceBuilder()
    product = builder.add(Pipe.CUBE, "MMAD", 0, 300)
    flag = builder.add(Pipe.CUBE, "SET_FLAG", 300, 301, issue=0)
    builder.add(Pipe.MTE1, "LOAD_L1_TO_L0A_3Dv2", 1, 20, issue=0)
    builder.add(Pipe.MTE1, "WAIT_FLAG", 20, 301, issue=0, partner=flag, stall=Stall.FLAG)
    builder.add(Pipe.MTE1, "LOAD_L1_TO_L0A_3Dv2", 301, 400, issue=0)
    builder.add(Pipe.MTE1, "LOAD_L1_TO_L0A_3Dv2", 400, 500, issue=301, stall=Stall.QUEUE)
    load = builder.add(Pipe.MTE2, "MOV_OUT_TO_L1", 306, 900, issue=305)
    path = critical_path(builder.build())
    work = [row for row, idle in zip(path.row, path.idle, strict=True) if not idle]
    assert work[0] == product
    assert work[-1] == load
    assert int((path.end - path.begin)[path.idle].sum()) <= 5


def test_what_starts_makes_room_in_a_full_queue_before_the_one_ahead_has_ended():
    builder = TraceBuilder()
    builder.add(Pipe.CUBE, "MMAD", 0, 300)
    builder.add(Pipe.CUBE, "SET_FLAG", 279, 301, issue=0)
    builder.add(Pipe.CUBE, "MMAD", 301, 600, issue=279, stall=Stall.QUEUE)
    builder.add(Pipe.MTE2, "MOV_OUT_TO_L1", 284, 900, issue=283)
    path = critical_path(builder.build())
    assert path.row.tolist() == [0, 3, 3]
    assert path.idle.tolist() == [False, True, False]
    assert path.begin.tolist() == [0, 279, 284]


def test_an_empty_trace_has_an_empty_path():
    assert critical_path(TraceBuilder().build()).cycles == 0


def test_many_instructions_of_no_length_at_one_time_do_not_trap_the_walk():
    builder = TraceBuilder()
    for _ in range(50):
        builder.add(Pipe.SCALAR, "NOP", 5, 5)
        builder.add(Pipe.VECTOR, "VNOP", 5, 5)
    builder.add(Pipe.VECTOR, "VADD", 5, 9)
    path = critical_path(builder.build())
    assert np.array_equal(path.end - path.begin, [4])

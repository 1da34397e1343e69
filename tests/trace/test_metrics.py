"""The table of instructions: sums over executions, per core."""

import io
import json

from hypothesis import given

from insight_trace.model import Pipe
from insight_trace.trace.instr_metrics import instruction_text, metrics, write_metrics
from tests.synthetic_trace import TraceBuilder, softmax_trace
from tests.trace_strategies import traces


def test_executions_of_one_instruction_are_one_row_with_sums():
    rows = metrics(softmax_trace(4, cores=1))["core0.veccore0"]
    load = next(row for row in rows if row["source"].startswith("MOV_OUT_TO_UB_ALIGN"))
    assert load["instructions_executed"] == 4
    assert load["cycles"] == 4 * (180 + 16384 // 110)
    assert load["process_bytes"] == 4 * 16384
    assert load["pipe"] == "MTE2"
    assert load["ascendc_inner_code"] == "kernels/aiv_softmax_step.cpp:10"
    assert load["vector_utilization_percentage"] == -1.0
    add = next(row for row in rows if row["source"].startswith("VADD"))
    assert add["ub_read_conflict"] == 64
    assert add["vector_utilization_percentage"] == 50.0
    assert add["stall_cycles"] > 0


@given(traces())
def test_every_execution_is_counted_once(trace):
    by_core = metrics(trace)
    misses = int((trace.instructions.pipe == Pipe.CACHEMISS).sum())
    noted = sum(row["instructions_executed"] for rows in by_core.values() for row in rows)
    named_elsewhere = sum(
        trace.instructions.names[name] == "BAR"
        for name, pipe in zip(trace.instructions.name, trace.instructions.pipe, strict=True)
        if pipe == Pipe.CACHEMISS
    )
    assert noted == len(trace.instructions) - misses + named_elsewhere


def test_the_file_has_the_shape_that_readers_of_the_old_one_know():
    file = io.BytesIO()
    count = write_metrics(softmax_trace(1), file)
    document = json.loads(file.getvalue())
    assert set(document) == {"cores", "instructions", "column_types"}
    assert document["cores"] == list(document["instructions"])
    assert sum(map(len, document["instructions"].values())) == count
    row = document["instructions"]["core0.veccore0"][0]
    types = document["column_types"]["Instructions"]
    assert set(row) == {name.lower().replace(" ", "_") for name in types}


def test_an_instruction_is_named_without_the_values_of_one_execution():
    assert instruction_text("MOV_XD_IMM", "XD:X29=0x7f80,IMM:0x7f80,") == "MOV_XD_IMM XD:X29,IMM"
    assert instruction_text("ADD", "XM:X15=0,") == "ADD XM:X15=0"
    assert instruction_text("END", "") == "END"


def test_an_empty_trace_has_an_empty_table():
    assert metrics(TraceBuilder().build()) == {}

"""Traces of the 950 family, whose vector unit is on several lanes."""

import numpy as np
import pytest
from msgspec.structs import replace

from insight_trace.chips import roofs_of
from insight_trace.model import Pipe, Trace
from insight_trace.simulate.embedded.op_forms import OpRequest
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.single_op import named_dtype, time_op
from insight_trace.trace.advice import advise
from insight_trace.trace.critical import critical_path
from insight_trace.trace.stats import stats
from insight_trace.trace.work import path_of
from tests.synthetic_trace import TraceBuilder, flag_detail

CORE = "core0.veccore0"


def _op(op: str, rows: int, cols: int, **more) -> Trace:
    run = time_op(
        OpRequest(op, named_dtype("float"), rows, cols, **more), EmbeddedOptions(target="a5")
    ).simulation
    return Trace(run.instructions, run.mhz, run.soc_version)


def _functions() -> Trace:
    """A load of 0..200, then two functions of 200..300 and 310..400, waited for from 20 on; their lanes within."""
    builder = TraceBuilder(mhz=1800)
    builder.add(Pipe.MTE2, "MOV_OUT_TO_UB_ALIGN_V2", 0, 200, moved=16384, stack="k.cpp:5")
    row = builder.add(Pipe.MTE2, "SET_FLAG", 200, 201, detail=flag_detail("MTE2", "VEC", 2), stack="k.cpp:6")
    builder.add(
        Pipe.VECTOR, "WAIT_FLAG", 20, 201, detail=flag_detail("MTE2", "VEC", 2), partner=row, stack="k.cpp:7"
    )
    for begin, end in ((201, 300), (310, 400)):
        builder.add(Pipe.PUSHQ, "VF", begin, end, stack="k.cpp:8")
        builder.add(Pipe.RVECLD, "RV_VLD", begin + 10, end - 30, stack="k.cpp:8")
        detail = "dtype:F32,XD:0x0,XN:0x0,repeat:64,stride:1/1/1/8/8/8,elements:2048,"
        builder.add(
            Pipe.RVECEX, "RV_VADD", begin + 20, end - 20, detail=detail, utilisation=50.0, stack="k.cpp:8"
        )
        builder.add(Pipe.RVECST, "RV_VST", begin + 30, end, stack="k.cpp:8")
    return replace(builder.build(), soc_version="Ascend950PR_9599")


def test_the_critical_path_goes_through_the_lanes_of_a_function_without_a_gap():
    trace = _op("TEXP", 64, 64)
    path, columns = critical_path(trace), trace.instructions
    lanes = {Pipe(int(columns.pipe[row])) for row in path.row}
    assert lanes & {Pipe.PUSHQ, Pipe.RVECST}
    busy = (path.end - path.begin)[~path.idle].sum()
    assert busy >= 0.9 * np.ptp(np.r_[columns.start, columns.end])


def test_the_vector_unit_is_busy_while_any_of_its_lanes_is():
    figures = stats(_functions())
    vector = figures.pipe(CORE, "VECTOR")
    assert (vector.busy, vector.waiting, vector.idle) == (99 + 90, 181, 400 - 99 - 90 - 181)
    assert figures.pipe(CORE, "RVECLD").busy == 59 + 50
    assert figures.pipe(CORE, "RVECEX").busy == 59 + 50
    assert figures.pipe(CORE, "RVECST").busy == 69 + 60
    names = [pipe.pipe for pipe in figures.pipes]
    assert names.index("VECTOR") + 1 == names.index("RVECLD"), "the lanes follow their unit"
    for pipe in figures.pipes:
        assert pipe.busy + pipe.waiting + pipe.idle == 400


def test_overlap_is_between_units_and_never_between_a_unit_and_its_own_lane():
    (core,) = stats(_functions()).cores
    assert core.overlap["MTE2+VECTOR"] == 0
    assert not [pair for pair in core.overlap if "RVEC" in pair or "PUSHQ" in pair]
    assert core.nothing == 1 + 10
    assert core.scalar_alone == 0


def test_a_line_is_charged_once_for_the_time_of_its_lanes():
    hot = {line.frame: line for line in stats(_functions()).hot_lines}
    assert hot["k.cpp:8"].cycles == 99 + 90
    by_name = {hot.what: hot.cycles for hot in stats(_functions()).hot_instructions}
    assert by_name["RV_VST"] == 69 + 60


def test_a_trace_that_does_not_name_its_chip_is_held_against_the_950_by_its_lanes():
    assert stats(replace(_functions(), soc_version="")).roofs.bandwidth["GM_TO_UB"] == 177.96
    slower = replace(_functions(), soc_version="", mhz=1650)
    assert stats(slower).roofs.bandwidth["GM_TO_UB"] == 163.13


def test_the_critical_path_names_the_unit():
    shares = {(share.pipe, share.doing): share.cycles for share in stats(_functions()).critical}
    assert shares["VECTOR", "work"] == 99 + 90
    assert not {pipe for pipe, _ in shares} & {"PUSHQ", "RVECLD", "RVECEX", "RVECST"}


def test_advice_sees_empty_lanes_of_the_vector_unit():
    trace = _functions()
    advice = {item.topic: item for item in advise(trace, stats(trace))}
    # half of 59 + 50 cycles of arithmetic are empty; the second function is issued when it was
    assert "worth 54 cycles" in advice["lanes"].text
    assert advice["lanes"].saves == 25
    assert "wider rows that fill the loops" in advice["lanes"].text
    assert advice["lanes"].frame == "k.cpp:8"


def test_a_kernel_that_only_computes_is_bound_by_the_vector_unit():
    trace = _op("TEXP", 255, 64, dynamic=False)
    texts = [item.text for item in advise(trace, stats(trace))]
    assert any(text.startswith("VECTOR works") and "bound by it" in text for text in texts), texts


def test_operations_of_functions_are_counted_against_the_roofs():
    (vector,) = stats(_functions()).arithmetic
    assert (vector.unit, vector.operations, vector.bytes) == ("vector", 2 * 2048, 16384)
    assert vector.roof_giga_per_s == pytest.approx(64 * 1.8)


def test_a_function_has_as_many_operations_as_its_tile_has_elements():
    trace = _op("TEXP", 64, 64)
    rows = np.flatnonzero(trace.instructions.pipe == Pipe.RVECEX)
    assert [trace.instructions.detail[int(row)].rsplit("elements:")[1] for row in rows] == ["4096,"]
    assert (trace.instructions.utilisation[rows] == 100).all()


def test_nothing_is_said_about_banks_that_nobody_has_described():
    columns = _op("TADD", 64, 64).instructions
    assert set(columns.read_conflict.tolist()) == set(columns.write_conflict.tolist()) == {-1}


def test_paths_out_of_the_accumulator_are_told_apart():
    assert path_of("core0.cubecore0", Pipe.FIXP, "FIX_L0C_TO_OUT") == "L0C_TO_GM"
    assert path_of("core0.cubecore0", Pipe.FIXP, "FIX_L0C_TO_UB") == "L0C_TO_UB"
    assert path_of("core0.cubecore0", Pipe.FIXP, "FIX_L0C_TO_L1") == "L0C_TO_L1"


def test_its_ceilings_follow_the_name_of_the_chip():
    assert roofs_of("Ascend950PR_9599").bandwidth["GM_TO_UB"] == 177.96
    assert roofs_of("Ascend950DT_95A1").bandwidth["UB_TO_GM"] == 143.74
    assert roofs_of("Ascend950PR_9589").bandwidth["GM_TO_UB"] == 163.13
    assert roofs_of("Ascend910B1").bandwidth["GM_TO_UB"] == 220.0
    assert roofs_of("Ascend950PR_9599").memories["UB"] == 256 * 1024
    assert roofs_of("Ascend910B1").memories["UB"] == 192 * 1024
    assert roofs_of("Ascend950PR_9599").cube_flop_per_cycle["F32"] == 512
    assert roofs_of("Ascend910B1").cube_flop_per_cycle["F32"] == 2048
    assert "B8" not in roofs_of("Ascend910B1").cube_flop_per_cycle

"""What the checker says of whole arguments: outputs that nothing is written to, bytes past a view, numbers that are none."""

import numpy as np
import pytest

from insight_trace.arguments.slots import CallerArray, ReplayArguments, Zero, make_tensor
from insight_trace.dtypes import dtype_named
from insight_trace.finding import Severity
from insight_trace.model import CoreType, Kernel, Role, Tier
from insight_trace.outcome import Fault, Simulation
from insight_trace.simulate.embedded.checked_run import run_checked
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from tests.simulate.kernel_text import line_of, write_kernel

_LOAD = """\
    LineTile t0;
    TASSIGN(t0, 0x0);
    Line in0(data_in(args, 0)), out(data_in(args, 1));
    TLOAD(t0, in0);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
"""


def _run(source, *, shape=(64,), recorded=0, role=Role.OUTPUT, **options) -> Simulation:
    float32 = dtype_named("float32")
    assert float32
    ones = np.ones(shape, np.float32)
    given = make_tensor(
        0, float32, shape, CallerArray(ones), Tier.EXACT, role=Role.INPUT, recorded_size=recorded or None
    )
    made = make_tensor(1, float32, (64,), Zero(), Tier.EXACT, role=role)
    kernel = Kernel("kernel", source, CoreType.AIV)
    return run_checked([kernel], ReplayArguments((given, made)), EmbeddedOptions(**options))


def _found(run: Simulation, category: str):
    assert run.failure is None, str(run.failure)
    return [finding for finding in run.findings if finding.category == category]


def test_an_output_that_nothing_is_written_to_is_named(tmp_path):
    silent = write_kernel(tmp_path, _LOAD, name="silent.cpp")
    (finding,) = _found(_run(silent), "output-unwritten")
    assert finding.severity is Severity.WARNING
    assert "slot 1" in finding.message
    assert not _found(_run(silent, role=Role.INOUT), "output-unwritten")
    assert not _found(_run(write_kernel(tmp_path, _LOAD + "    TSTORE(out, t0);")), "output-unwritten")


def test_an_output_that_is_read_before_it_is_written_is_named_with_its_line(tmp_path):
    source = write_kernel(
        tmp_path, _LOAD.replace("TLOAD(t0, in0)", "TLOAD(t0, out)") + "    TSTORE(out, t0);"
    )
    (finding,) = _found(_run(source), "unwritten-read")
    assert finding.severity in (Severity.WARNING, Severity.ERROR)
    assert finding.lines == (line_of(source, "TLOAD"),)


def test_past_the_view_is_a_note_and_past_the_buffer_an_error(tmp_path):
    source = write_kernel(tmp_path, _LOAD + "    TSTORE(out, t0);")
    (inside,) = _found(_run(source, shape=(48,), recorded=64 * 4), "gm-out-of-bounds")
    assert (inside.severity, inside.begin, inside.end) == (Severity.NOTE, 48 * 4, 64 * 4)
    (outside,) = _found(_run(source, shape=(48,)), "gm-out-of-bounds")
    assert outside.severity is Severity.ERROR
    assert not _found(_run(source), "gm-out-of-bounds")


# A slice is as wide as the tile it is cut out of: its last row ends long before its size says.
_SLICES = """\
    Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 64> whole;
    Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 16> first, last;
    Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, 8, 16> scratch;
    Tile<TileType::Vec, float, 8, 1, BLayout::ColMajor, 8, 1> most;
    TASSIGN(whole, 0x0);
    TASSIGN(first, 0x0);
    TASSIGN(last, 0xC0);
    TASSIGN(scratch, 0x800);
    TASSIGN(most, 0x2000);
    TEXPANDS(whole, 1.0f);
    pipe_barrier(PIPE_V);
    TROWMAX(most, first, scratch);
    pipe_barrier(PIPE_V);
    TROWMAX(most, last, scratch);
"""


def test_scratch_right_behind_a_slice_overlaps_nothing(tmp_path):
    assert not _found(_run(write_kernel(tmp_path, _SLICES)), "tile-overlap")


@pytest.mark.parametrize(
    "call", ["get_buf(PIPE_V, 0, 0)", "rls_buf(PIPE_V, 0, 0)", "pipe_barrier(PIPE_MTE4)"]
)
def test_synchronisation_that_is_not_modelled_is_refused_by_name(tmp_path, call):
    source = write_kernel(tmp_path, f"    {call};")
    failure = _run(source).failure
    assert failure
    assert failure.fault is Fault.NOT_SUPPORTED
    assert call.split("(")[0].replace("pipe_barrier", "PIPE_MTE4") in failure.message
    assert failure.line == line_of(source, call)


# The vector unit reads what is still being loaded: the order in which the host does it hides that.
_RACE = """\
    LineTile t0, t1;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x1000);
    Line in0(data_in(args, 0)), out(data_in(args, 1));
    TLOAD(t0, in0);
FLAG
    TADDS(t1, t0, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, t1);
"""
_FLAG = "    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"


def test_other_orders_of_the_pipes_change_what_a_race_gives_and_nothing_else(tmp_path):
    kernel = {name: write_kernel(tmp_path, _RACE.replace("FLAG", text), name=f"{name}.cpp")
              for name, text in (("wrong", ""), ("right", _FLAG))}  # fmt: skip
    found = {}
    for name, source in kernel.items():
        arguments = _arguments()
        kernels = [Kernel(name, source, CoreType.AIV)]
        run = run_checked(kernels, arguments, EmbeddedOptions(), orders=8)
        assert (run.outputs[1] == 2).all()  # the usual order hides it
        found[name] = [f for f in run.findings if f.category == "order-dependent"]
    assert not found["right"]
    (finding,) = found["wrong"]
    assert finding.severity is Severity.ERROR
    assert "slot 1 changes in" in finding.message
    assert 1 <= finding.count <= 8


# Two buffers in turn, handed on by their number: what the library's queues do on the 950.
_BUFFERS = """\
    LineTile t[2], sum;
    TASSIGN(t[0], 0x0);
    TASSIGN(t[1], 0x1000);
    TASSIGN(sum, 0x2000);
    Line in0(data_in(args, 0)), out(data_in(args, 1));
    for (int i = 0; i < 4; ++i) {
        get_buf(PIPE_MTE2, i % 2, 0);
        TLOAD(t[i % 2], in0);
        rls_buf(PIPE_MTE2, i % 2, 0);
        get_buf(PIPE_V, i % 2, 0);
        if (i)
            TADD(sum, sum, t[i % 2]);
        else
            TADDS(sum, t[i % 2], 0.0f);
        rls_buf(PIPE_V, i % 2, 0);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, sum);
"""


@pytest.mark.parametrize("leaves_out", [None, "PIPE_MTE2", "PIPE_V"])
def test_a_buffer_that_pipes_hand_on_by_its_number_keeps_them_apart(tmp_path, leaves_out):
    kept = [line for line in _BUFFERS.splitlines() if not (leaves_out and f"_buf({leaves_out}" in line)]
    kernel = Kernel("buffers", write_kernel(tmp_path, "\n".join(kept)), CoreType.AIV)
    run = run_checked([kernel], _arguments(), EmbeddedOptions(target="a5"), orders=4)
    assert run.failure is None, str(run.failure)
    assert (run.outputs[1] == 4).all()
    races = [f for f in run.findings if f.category in ("race", "order-dependent")]
    assert bool(races) == bool(leaves_out)
    assert not [f for f in run.findings if f.category not in ("race", "order-dependent")]


def _arguments() -> ReplayArguments:
    float32 = dtype_named("float32")
    assert float32
    given = make_tensor(0, float32, (64,), CallerArray(np.ones(64, np.float32)), Tier.EXACT, role=Role.INPUT)
    return ReplayArguments((given, make_tensor(1, float32, (64,), Zero(), Tier.EXACT, role=Role.OUTPUT)))


_TWO_CORES = """\
    LineTile t0;
    TASSIGN(t0, 0x0);
    const int block = get_block_idx(args);
    Line in0(data_in(args, 0)), shared(data_in(args, 1));
    if (block == 0) {
        TLOAD(t0, in0);
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        TSTORE(shared, t0);
    }
MEET
    if (block == 1) {
        TLOAD(t0, shared);
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
        TSTORE(in0, t0);
    }
"""


def test_other_orders_of_the_cores_show_a_meeting_that_is_missing(tmp_path):
    found = {}
    for name, text in (("wrong", ""), ("right", "    SYNCALL<SyncCoreType::AIVOnly>();")):
        source = write_kernel(tmp_path, _TWO_CORES.replace("MEET", text), name=f"{name}.cpp")
        float32 = dtype_named("float32")
        assert float32
        slots = (
            make_tensor(0, float32, (64,), CallerArray(np.ones(64, np.float32)), Tier.EXACT, role=Role.INOUT),
            make_tensor(1, float32, (64,), Zero(), Tier.EXACT, role=Role.INOUT),
        )
        arguments = ReplayArguments(slots, block_count=2)
        run = run_checked([Kernel(name, source, CoreType.AIV)], arguments, EmbeddedOptions(), orders=8)
        assert (run.outputs[0] == 1).all()
        found[name] = [f for f in run.findings if f.category == "order-dependent"]
    assert found["wrong"]
    assert not found["right"]

"""Cleaning keeps the work, loses nothing without a count, and ties the right instructions together."""

from hypothesis import given

from insight_trace.model import Pipe
from insight_trace.recording.flag_pairs import flag_at, partners
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.trace.clean import clean
from tests.synthetic_trace import TraceBuilder, flag_detail, matmul_trace, softmax_trace
from tests.trace_strategies import traces


@given(traces())
def test_every_row_is_either_drawn_once_or_counted_as_left_out(trace):
    cleaned = clean(trace)
    assert len(set(cleaned.rows.tolist())) == len(cleaned.rows)
    assert len(cleaned.rows) + sum(cleaned.dropped.values()) == len(trace.instructions)


@given(traces())
def test_no_two_slices_of_a_lane_overlap(trace):
    cleaned = clean(trace, keep_scalar=True)
    last: dict[int, int] = {}
    for row, lane in zip(cleaned.rows.tolist(), cleaned.lane.tolist(), strict=True):
        start, end = int(trace.instructions.start[row]), int(trace.instructions.end[row])
        assert last.get(lane, start) <= start
        last[lane] = max(start, end)
        assert cleaned.lanes[lane].pipe == trace.instructions.pipe[row]
        assert cleaned.lanes[lane].core == trace.instructions.core[row]


@given(traces())
def test_an_arrow_leaves_the_last_instruction_before_the_set_and_reaches_the_first_after_the_wait(trace):
    """Both ends found by bisection are those that a plain look at every instruction finds."""
    cleaned = clean(trace)
    instructions = trace.instructions
    kept = set(cleaned.rows.tolist())
    kind = kinds(instructions)
    partner = partners(instructions, kind)
    expected = set()
    for wait, set_ in enumerate(partner.tolist()):
        if set_ < 0:
            continue

        def lane(flag):
            return [
                row
                for row in kept
                if instructions.core[row] == instructions.core[flag]
                and instructions.pipe[row] == instructions.pipe[flag]
            ]

        before = [
            int(instructions.start[r])
            for r in lane(set_)
            if instructions.start[r] <= instructions.start[set_]
        ]
        after = [
            int(instructions.start[r]) for r in lane(wait) if instructions.start[r] >= instructions.end[wait]
        ]
        if before and after:
            expected.add((set_, wait, max(before), min(after)))
    arrows = cleaned.arrows
    found = {
        (set_, wait, int(instructions.start[producer]), int(instructions.start[consumer]))
        for set_, wait, producer, consumer in zip(
            arrows.set_row.tolist(),
            arrows.wait_row.tolist(),
            arrows.producer.tolist(),
            arrows.consumer.tolist(),
            strict=True,
        )
    }
    assert found == expected
    pairs = int((partner >= 0).sum())
    assert len(arrows.producer) + arrows.hidden + arrows.unanchored == pairs


def test_lanes_stand_in_the_order_of_the_dataflow():
    pipes = [lane.pipe for lane in clean(matmul_trace()).lanes]
    assert pipes == [Pipe.MTE2, *[Pipe.MTE1] * 4, Pipe.CUBE, Pipe.FIXP]
    pipes = [lane.pipe for lane in clean(softmax_trace(2, cores=1), keep_scalar=True).lanes]
    assert pipes == [Pipe.MTE2, Pipe.VECTOR, Pipe.MTE3, Pipe.SCALAR]


def test_loads_in_flight_together_get_sub_lanes():
    lanes = [lane.label for lane in clean(matmul_trace(2)).lanes if lane.pipe == Pipe.MTE1]
    assert lanes == ["MTE1 L1→L0", "MTE1 L1→L0 #1", "MTE1 L1→L0 #2", "MTE1 L1→L0 #3"]


def test_a_kernel_that_only_ran_scalar_instructions_shows_them_and_says_why():
    builder = TraceBuilder()
    builder.add(Pipe.SCALAR, "MOV", 0, 1)
    cleaned = clean(builder.build())
    assert len(cleaned.rows) == 1
    assert "only scalar" in cleaned.notes[0]


def test_an_instruction_that_ends_before_it_starts_is_drawn_with_no_length_and_noted():
    builder = TraceBuilder()
    builder.add(Pipe.VECTOR, "VADD", 10, 4)
    cleaned = clean(builder.build())
    assert len(cleaned.rows) == 1
    assert "end before they start" in cleaned.notes[0]


def test_an_empty_trace_is_clean():
    cleaned = clean(TraceBuilder().build())
    assert len(cleaned.rows) == 0
    assert cleaned.lanes == ()


def test_flags_without_a_recorded_partner_are_paired_first_in_first_out_whatever_the_order_of_the_text():
    builder = TraceBuilder()
    first = builder.add(Pipe.MTE2, "SET_FLAG", 10, 11, detail="FLAGID:0,PIPE:MTE2,TRIGGERPIPE:VEC,")
    second = builder.add(Pipe.MTE2, "SET_FLAG", 20, 21, detail=flag_detail("MTE2", "VEC", 0))
    builder.add(Pipe.MTE2, "SET_FLAG", 5, 6, detail=flag_detail("MTE2", "VEC", 1))
    one = builder.add(Pipe.VECTOR, "WAIT_FLAG", 3, 12, detail=flag_detail("MTE2", "VEC", 0))
    two = builder.add(Pipe.VECTOR, "WAIT_FLAG", 13, 22, detail=flag_detail("MTE2", "VECTOR", 0))
    trace = builder.build()
    found = partners(trace.instructions, kinds(trace.instructions))
    assert found[one] == first
    assert found[two] == second
    assert clean(trace).arrows.unpaired == 1


def test_a_flag_left_alone_by_a_trace_that_knows_its_pairs_stays_alone():
    builder = TraceBuilder()
    set_ = builder.add(Pipe.MTE2, "SET_FLAG", 10, 11, detail=flag_detail("MTE2", "VEC", 0))
    builder.add(Pipe.VECTOR, "WAIT_FLAG", 3, 12, detail=flag_detail("MTE2", "VEC", 0), partner=set_)
    alone = builder.add(Pipe.VECTOR, "WAIT_FLAG", 13, 22, detail=flag_detail("MTE2", "VEC", 1))
    builder.add(Pipe.MTE2, "SET_FLAG", 20, 21, detail=flag_detail("MTE2", "VEC", 1))
    trace = builder.build()
    assert partners(trace.instructions, kinds(trace.instructions))[alone] == -1


def test_arrows_cross_from_one_core_to_another():
    builder = TraceBuilder()
    made = builder.add(Pipe.FIXP, "FIX_L0C_TO_OUT", 0, 90, core="core0.cubecore0")
    set_ = builder.add(Pipe.FIXP, "SET_CROSS_CORE", 90, 91, core="core0.cubecore0", detail="ID:1,")
    builder.add(Pipe.MTE2, "WAIT_FLAG_DEV", 5, 100, core="core0.veccore0", partner=set_, detail="ID:1,")
    used = builder.add(Pipe.MTE2, "MOV_OUT_TO_UB", 100, 200, core="core0.veccore0")
    arrows = clean(builder.build()).arrows
    assert arrows.producer.tolist() == [made]
    assert arrows.consumer.tolist() == [used]


def test_marks_barriers_misses_and_control_are_told_apart():
    builder = TraceBuilder()
    for pipe, name in (
        (Pipe.VECTOR, "VADD"), (Pipe.SCALAR, "ADD"), (Pipe.VECTOR, "BAR"), (Pipe.CACHEMISS, "0x10"),
        (Pipe.FLOWCTRL, "JUMP"), (Pipe.USERMARK, "Mark 0x1"),
    ):  # fmt: skip
        builder.add(pipe, name, 0, 1)
    found = [Kind(value) for value in kinds(builder.build().instructions)]
    assert found == [Kind.WORK, Kind.SCALAR, Kind.BARRIER, Kind.MISS, Kind.CONTROL, Kind.MARK]


def test_a_flag_is_called_by_its_pipes_and_number():
    texts = {
        "PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:3,": "MTE2→VECTOR flag 3",
        "sync_id:4,": "sync_id:4",
        "": "flag",
    }
    builder = TraceBuilder()
    for text in texts:
        builder.add(Pipe.VECTOR, "SET_FLAG", 0, 1, detail=text)
    instructions = builder.build().instructions
    assert [flag_at(instructions, row).label for row in range(3)] == list(texts.values())

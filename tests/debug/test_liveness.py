"""What becomes of results on chip, in the kernel as it ran and as it would be with a line fixed."""

from insight_trace.debug import open_session
from insight_trace.debug.liveness import liveness
from insight_trace.debug.tile_calls import ChangedCalls, TileCalls
from insight_trace.simulate.embedded.journaling import OperandChange


def test_a_fixed_line_leaves_the_calls_and_the_oddities_of_the_kernel_that_is_right(wrong_softmax):
    right, wrong = (open_session(wrong_softmax[name]) for name in ("", "wrong tile"))
    wanted, given = TileCalls(right), TileCalls(wrong)
    changes = [
        OperandChange(number, operand, "address", tile.address)
        for number in range(len(given))
        for operand, tile in wanted[number].tiles
        if given[number].operands[operand] != tile
    ]
    assert changes
    fixed = ChangedCalls(given, changes)
    assert [fixed[n].operands for n in range(len(fixed))] == [wanted[n].operands for n in range(len(wanted))]
    as_it_is, as_fixed, as_right = (
        liveness(session, calls) for session, calls in ((wrong, given), (wrong, fixed), (right, wanted))
    )
    assert as_fixed == as_right
    assert as_it_is.oddities > as_right.oddities


def test_a_number_a_type_and_a_size_are_changed_alone(wrong_softmax):
    calls = TileCalls(open_session(wrong_softmax[""]))
    scaled = next(calls[n] for n in range(len(calls)) if calls[n].op == "TMULS")
    number = next(operand for operand, _ in scaled.numbers)
    changed = ChangedCalls(
        calls,
        [
            OperandChange(scaled.number, number, "scalar", -1),
            OperandChange(scaled.number, 0, "valid_rows", 3),
            OperandChange(scaled.number, 0, "type", 5),
        ],
    )[scaled.number]
    assert changed.operands[number].bits == 2**64 - 1
    assert (changed.operands[0].valid_rows, changed.operands[0].type) == (3, 5)
    assert changed.operands[0].address == scaled.operands[0].address
    assert changed.tiles[0][1] == changed.operands[0]
    assert changed.tiles[1:] == scaled.tiles[1:]

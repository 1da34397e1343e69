"""Holding arguments means that their slots are valid."""

import pytest

from insight_trace.arguments.slots import (
    TILE_MARGIN,
    ReplayArguments,
    ReplayScalar,
    Zero,
    buffer_sizes,
    make_tensor,
)
from insight_trace.dtypes import dtype_named
from insight_trace.errors import RequestError
from insight_trace.model import Role, Tier

F32, I32, U64 = dtype_named("f32"), dtype_named("i32"), dtype_named("u64")


def a_scalar(slot):
    return ReplayScalar(slot, U64, 1, Tier.EXACT)


@pytest.mark.parametrize("slot", [-1, 50, 51, 2**40])
def test_a_slot_outside_the_array_is_refused(slot):
    with pytest.raises(RequestError, match=str(slot)):
        ReplayArguments((a_scalar(slot),))


@pytest.mark.parametrize("slot", [48, 49])
def test_the_context_slots_cannot_be_given(slot):
    with pytest.raises(RequestError, match="context"):
        ReplayArguments((a_scalar(slot),))


def test_a_slot_given_twice_is_refused_and_every_fault_is_named():
    with pytest.raises(RequestError) as caught:
        ReplayArguments((a_scalar(3), a_scalar(-2), a_scalar(3), a_scalar(77)))
    assert all(text in str(caught.value) for text in ("slot -2", "slot 3 is given twice", "slot 77"))


def test_slots_are_kept_in_order_and_found_by_number():
    arguments = ReplayArguments((a_scalar(7), a_scalar(0)))
    assert [item.slot for item in arguments.slots] == [0, 7]
    assert arguments.at(7) is not None
    assert arguments.at(1) is None


def test_a_view_of_part_of_a_tile_gets_a_buffer_of_whole_rows_and_a_margin():
    declared, allocated = buffer_sizes(F32, (16, 1), (16, 1), 0)
    assert declared == 16 * 16 * 4
    assert allocated >= declared + TILE_MARGIN


def test_a_recorded_buffer_size_is_kept_unless_the_view_does_not_fit_in_it():
    assert buffer_sizes(F32, (4,), (1,), 0, recorded=4096)[0] == 4096
    assert buffer_sizes(F32, (4,), (1,), 8, recorded=16)[0] == 48


@pytest.mark.parametrize(
    ("shape", "strides", "start", "text"),
    [
        ((1,) * 6, (1,) * 6, 0, "dimensions"),
        ((2, 2), (1,), 0, "strides"),
        ((-1,), (1,), 0, "extent"),
        ((2,), (-1,), 0, "strides"),
        ((2,), (1,), -5, "negative"),
        ((2**32,), (1,), 0, "extent"),
        ((2**32 - 1, 2**32 - 1), (2**32 - 1, 1), 0, "device memory"),
    ],
)
def test_a_view_that_no_kernel_can_get_is_refused(shape, strides, start, text):
    with pytest.raises(RequestError, match=text):
        make_tensor(0, F32, shape, Zero(), Tier.SYNTHETIC, strides=strides, start_offset=start)


def test_made_up_control_tensors_warn_and_made_up_data_does_not():
    control = make_tensor(2, I32, (4,), Zero(), Tier.SYNTHETIC, role=Role.INPUT, origin="zero")
    data = make_tensor(3, F32, (4,), Zero(), Tier.SYNTHETIC, role=Role.INPUT, origin="zero")
    warnings = ReplayArguments((control, data)).warnings
    assert len(warnings) == 1
    assert "slot 2" in warnings[0]
    assert "--set-arg 2=" in warnings[0]


def test_suspects_of_an_empty_replay_are_made_up_inputs_control_first():
    slots = [
        make_tensor(0, F32, (4,), Zero(), Tier.SYNTHETIC, role=Role.INPUT),
        make_tensor(1, I32, (4,), Zero(), Tier.EXACT, role=Role.INPUT),
        make_tensor(2, I32, (4,), Zero(), Tier.SYNTHETIC, role=Role.INPUT),
        make_tensor(3, F32, (4,), Zero(), Tier.OUTPUT, role=Role.OUTPUT),
    ]
    assert ReplayArguments(tuple(slots)).suspects == (2, 0)

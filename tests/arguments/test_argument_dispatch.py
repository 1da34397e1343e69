"""What was recorded of a dispatch becomes what its replay starts with."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_dispatches import dispatch, payload, real_dispatches, scalar, tensor
from tests.materialised import materialise_all

from insight_trace.arguments.buffers import materialise, view_of
from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.arguments.slots import Zero
from insight_trace.dtypes import DTYPES
from insight_trace.dump.load import Dump
from insight_trace.errors import InputError, InsightTraceError, RequestError
from insight_trace.model import ContextArg, Payload, Role, TensorArg, Tier
from insight_trace.replay.verification import verify_outputs

FOUR = np.array([1, 2, 3, 4], np.float32).tobytes()


def among(dispatches):
    """What a dump of these finds."""
    return Dump(Path("args_dump.json"), "L", None, dispatches).earlier


def test_context_pointers_are_left_out():
    arguments = from_dispatch(
        dispatch(
            tensor(0, role=Role.OUTPUT), scalar(1, bits=7), ContextArg(48, 0x1000), ContextArg(49, 0x2000)
        )
    )
    assert [item.slot for item in arguments.slots] == [0, 1]


def test_each_kind_of_record_gets_its_tier(tmp_path):
    arguments = from_dispatch(
        dispatch(
            tensor(0, role=Role.INPUT, before=payload(tmp_path, FOUR)),
            tensor(1, role=Role.OUTPUT, after=payload(tmp_path, FOUR)),
            tensor(2, role=Role.INPUT),
            tensor(3, role=Role.INPUT, before=payload(tmp_path, FOUR[:8], truncated=True)),
            scalar(4, bits=3),
            scalar(5, "FLOAT32", bits=0x3F800000, exact=False),
        )
    )
    tiers = {item.slot: item.tier for item in arguments.slots}
    assert tiers == {
        0: Tier.EXACT,
        1: Tier.OUTPUT,
        2: Tier.SYNTHETIC,
        3: Tier.SYNTHETIC,
        4: Tier.EXACT,
        5: Tier.RECONSTRUCTED,
    }
    assert "first 8 of 16 bytes" in arguments.at(3).origin
    assert any("slot 5" in text and "printed decimal" in text for text in arguments.warnings)


def test_block_count_and_expected_payload_are_carried_over(tmp_path):
    after = payload(tmp_path, FOUR)
    arguments = from_dispatch(dispatch(tensor(0, role=Role.OUTPUT, after=after), block_count=24))
    assert arguments.block_count == 24
    assert arguments.at(0).expected is after


def test_the_kernels_signature_says_what_the_dump_does_not():
    bare = dispatch(tensor(0), tensor(1), scalar(2))
    arguments = from_dispatch(bare, signature=("IN", "OUT", "SCALAR", "IN"))
    assert [t.role for t in arguments.tensors] == [Role.INPUT, Role.OUTPUT]
    assert [t.tier for t in arguments.tensors] == [Tier.SYNTHETIC, Tier.OUTPUT]
    assert any("slot 3" in text and "IN" in text for text in arguments.warnings)


def test_a_payload_that_does_not_fit_its_shape_is_refused_with_its_place(tmp_path):
    bad = dispatch(tensor(3, role=Role.INPUT, before=payload(tmp_path, FOUR[:12])), dispatch_id=9)
    with pytest.raises(InputError, match=r"dispatch 9.*slot 3.*12 bytes"):
        from_dispatch(bad)


@pytest.mark.parametrize("slot", [-1, 50])
def test_a_dump_with_an_impossible_slot_is_refused(slot):
    with pytest.raises(RequestError, match=f"slot {slot}"):
        from_dispatch(dispatch(scalar(slot)))


def test_a_missing_payload_is_taken_from_the_last_earlier_record_of_the_same_buffer(tmp_path):
    old = tensor(2, role=Role.OUTPUT, pointer=0x1000, after=payload(tmp_path, bytes(16)))
    new = tensor(1, role=Role.OUTPUT, pointer=0x1000, after=payload(tmp_path, FOUR))
    later = tensor(0, role=Role.OUTPUT, pointer=0x1000, after=payload(tmp_path, b"\xff" * 16))
    wanted = dispatch(tensor(0, role=Role.INPUT, pointer=0x1000), dispatch_id=2)
    dump = [
        dispatch(old, dispatch_id=0),
        dispatch(new, dispatch_id=1),
        wanted,
        dispatch(later, dispatch_id=3),
    ]
    arguments = from_dispatch(wanted, earlier=among(dump))
    found = arguments.at(0)
    assert found.tier is Tier.RECONSTRUCTED
    assert "slot 1 of dispatch 1" in found.origin
    assert view_of(found, materialise(found)).ravel().tolist() == [1, 2, 3, 4]


def test_a_record_that_covers_only_part_of_the_view_is_not_used(tmp_path):
    part = tensor(0, shape=(2,), role=Role.OUTPUT, pointer=0x1000, after=payload(tmp_path, FOUR[:8]))
    wanted = dispatch(tensor(0, role=Role.INPUT, pointer=0x1000), dispatch_id=1)
    arguments = from_dispatch(wanted, earlier=among([dispatch(part), wanted]))
    assert arguments.at(0).tier is Tier.SYNTHETIC
    assert arguments.at(0).content == Zero()


def test_slots_with_one_address_share_one_buffer(tmp_path):
    arguments = from_dispatch(
        dispatch(
            tensor(0, role=Role.INPUT, pointer=0x1000, before=payload(tmp_path, FOUR)),
            tensor(1, role=Role.OUTPUT, pointer=0x1000),
            tensor(2, role=Role.OUTPUT, pointer=0x2000),
        )
    )
    assert [t.shares for t in arguments.tensors] == [None, 0, None]
    buffers = materialise_all(arguments)
    assert view_of(arguments.at(1), buffers[1]).ravel().tolist() == [1, 2, 3, 4]


def test_a_payload_file_is_not_touched_before_a_buffer_is_asked_for(tmp_path):
    absent = Payload(tmp_path / "absent.bin", 0, 16)
    arguments = from_dispatch(dispatch(tensor(0, role=Role.INPUT, before=absent)))
    assert arguments.at(0).tier is Tier.EXACT


def test_the_real_softmax_task_with_a_one_column_view_gets_room_for_its_whole_tile(recorded_dumps):
    dump = real_dispatches(recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2/args_dump")
    narrow = [d for d in dump if d.func_ids == (1,) and d.arguments[0].shape == (16, 1)]
    assert len(narrow) == 1
    arguments = from_dispatch(narrow[0], earlier=among(dump))
    view = arguments.at(0)
    assert view.extent == 241
    assert view.buffer_size >= 256 * 4
    assert arguments.at(4).bits == 0x3F800000
    assert not arguments.warnings


def test_every_real_dispatch_of_paged_attention_verifies_against_itself(recorded_dumps):
    """What the run left in its outputs, put into the buffers, is verified; the buffers before it are not."""
    dump = real_dispatches(recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2/args_dump")
    assert len(dump) == 12
    for one in dump:
        arguments = from_dispatch(one, earlier=among(dump))
        assert {t.tier for t in arguments.tensors} <= {Tier.EXACT, Tier.OUTPUT}
        buffers = materialise_all(arguments)
        untouched = verify_outputs(arguments, buffers)
        assert "mismatch" in [check.status for check in untouched]
        for t in arguments.tensors:
            if t.expected:
                raw = np.fromfile(t.expected.path, np.uint8, t.expected.size, offset=t.expected.offset)
                view_of(t, buffers[t.slot])[...] = raw.view(t.dtype.numpy).reshape(t.shape)
        checks = verify_outputs(arguments, buffers)
        assert checks
        assert {check.status for check in checks} == {"verified"}


@pytest.mark.parametrize(
    "name", ["mixed_example_case2_args_dump_level2", "paged_attention_CaseSmall1_args_dump_level3"]
)
def test_real_dumps_of_mixes_and_of_metadata_only_give_arguments(shared_data, name):
    dump = real_dispatches(shared_data / "dumps" / name / "args_dump")
    payload_free = name.endswith("level3")
    for one in dump:
        arguments = from_dispatch(one, earlier=among(dump))
        inputs = [t for t in arguments.tensors if t.role is not Role.OUTPUT]
        assert {t.tier for t in inputs} <= {Tier.SYNTHETIC if payload_free else Tier.EXACT}
        assert len(materialise_all(arguments)) == len(arguments.tensors)


extents = st.integers(-2, 6) | st.sampled_from([2**16, 2**32, 2**40])


@given(
    st.integers(-1, 51),
    st.sampled_from(DTYPES),
    st.lists(extents, max_size=6),
    st.lists(extents, max_size=6),
    extents,
    st.sampled_from([None, *Role]),
    st.none() | st.integers(0, 64),
    st.booleans(),
    st.none() | st.integers(0, 2**50),
)
def test_any_recorded_tensor_gives_a_buffer_or_an_error_of_ours(
    tmp_path_factory, slot, dtype, shape, strides, start, role, size, truncated, buffer_size
):
    path = tmp_path_factory.getbasetemp() / "zeros.bin"
    path.write_bytes(bytes(64))
    before = None if size is None else Payload(path, 0, size, truncated)
    argument = TensorArg(
        slot, dtype, tuple(shape), tuple(strides), start, role, before, buffer_size=buffer_size
    )
    try:
        arguments = from_dispatch(dispatch(argument))
        buffers = materialise_all(arguments)
    except InsightTraceError:
        return
    for one in arguments.tensors:
        assert view_of(one, buffers[one.slot]).shape == one.shape
        assert buffers[one.slot].nbytes == one.buffer_size >= one.extent * one.dtype.size

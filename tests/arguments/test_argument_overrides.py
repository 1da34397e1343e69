"""What the user changes holds, and contradictions are refused."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_dispatches import dispatch, payload, scalar, tensor

from insight_trace.arguments.buffers import materialise, view_of
from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.arguments.overrides import apply_overrides, parse_overrides
from insight_trace.errors import RequestError
from insight_trace.model import Role, Tier


@pytest.fixture
def recorded_dispatch(tmp_path):
    floats = payload(tmp_path, np.array([1, 2, 3, 4], np.float32).tobytes())
    cut = payload(tmp_path, b"\0" * 4, truncated=True)
    return dispatch(
        tensor(0, role=Role.INPUT, before=floats),
        tensor(1, "INT32", (4,), role=Role.INPUT),
        tensor(2, role=Role.OUTPUT),
        tensor(3, role=Role.INPUT, before=cut),
        tensor(4, role=Role.INPUT),
        scalar(5, "UINT64", 0x3F800000),
        scalar(6, "INT32", 8),
    )


def change(recorded_dispatch, *set_args, restore=(), fill=None, seed=None):
    overrides = parse_overrides(set_args, restore, fill, seed)
    return apply_overrides(from_dispatch(recorded_dispatch), overrides, recorded_dispatch)


def content(item):
    return view_of(item, materialise(item)).ravel().tolist()


def test_a_set_tensor_is_filled_and_no_longer_warned_about(recorded_dispatch):
    assert any("slot 1" in text for text in change(recorded_dispatch).warnings)
    arguments = change(recorded_dispatch, "1=16")
    assert arguments.at(1).tier is Tier.FILLED
    assert content(arguments.at(1)) == [16, 16, 16, 16]
    assert not any("slot 1:" in text for text in arguments.warnings)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("6=3", 3),
        ("6=-1", 0xFFFFFFFF),
        ("6=2.0", 2),
        ("6=true", 1),
        ("6=0x7", 7),
        ("5=f32:0.5", 0x3F000000),
        ("5=0x3f000000", 0x3F000000),
        ("5= 1065353216 ", 1065353216),
    ],
)
def test_a_set_scalar_has_the_bits_that_were_asked_for(recorded_dispatch, text, bits):
    slot = int(text[0])
    item = change(recorded_dispatch, text).at(slot)
    assert item.bits == bits
    assert item.tier is Tier.FILLED


def test_a_float_tensor_takes_a_number_or_a_bit_pattern(recorded_dispatch):
    assert content(change(recorded_dispatch, "4=0.25").at(4)) == [0.25] * 4
    assert content(change(recorded_dispatch, "4=0x3f800000").at(4)) == [1.0] * 4


def test_a_scalar_above_its_recorded_value_is_noted(recorded_dispatch):
    assert any("slot 6" in text and "larger" in text for text in change(recorded_dispatch, "6=9").warnings)
    assert not any("larger" in text for text in change(recorded_dispatch, "6=8").warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1=1.5", "whole number"),
        ("1=3000000000", "does not fit in INT32"),
        ("1=1e30", "does not fit in INT32"),
        ("6=1.5", "6=f32:1.5"),
        ("5=0.5", "5=f32:0.5"),
        ("4=1e39", "too large"),
        ("4=0x1ffffffff", "more bits"),
        ("1=f32:1", "INT32, not FLOAT32"),
        ("9=1", "slots present: 0, 1, 2, 3, 4, 5, 6"),
        ("1", "SLOT=VALUE"),
        ("1=", "SLOT=VALUE"),
        ("x=1", "slot number"),
        ("-1=1", "slot number"),
        ("1=x", "not a number"),
        ("1=q9:1", "no type"),
        ("5=0xzz", "bit pattern"),
        ("5=0x10000000000000000", "bit pattern"),
    ],
)
def test_a_setting_that_cannot_hold_is_refused_as_a_wrong_request(recorded_dispatch, text, message):
    with pytest.raises(RequestError) as caught:
        change(recorded_dispatch, text)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_set_and_restore_of_one_slot_contradict_each_other(recorded_dispatch):
    with pytest.raises(RequestError, match="slot 0 is both set and restored"):
        change(recorded_dispatch, "0=1", restore=["0"])


@pytest.mark.parametrize(("set_args", "restore"), [(["1=1", "1=2"], []), ([], ["0", "0"])])
def test_the_same_slot_twice_is_refused(recorded_dispatch, set_args, restore):
    with pytest.raises(RequestError, match="twice"):
        change(recorded_dispatch, *set_args, restore=restore)


def test_a_restored_slot_has_its_recorded_bytes(recorded_dispatch):
    item = change(recorded_dispatch, restore=["0"]).at(0)
    assert content(item) == [1, 2, 3, 4]
    assert item.tier is Tier.EXACT


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        ("2", "output"),
        ("3", "cut off"),
        ("4", "no payload"),
        ("5", "scalar"),
        ("9", "no slot 9"),
        ("x", "slot number"),
    ],
)
def test_what_cannot_be_restored_is_refused_with_the_reason(recorded_dispatch, slot, message):
    with pytest.raises(RequestError, match=message):
        change(recorded_dispatch, restore=[slot])


def test_restore_without_a_dump_is_refused(recorded_dispatch):
    with pytest.raises(RequestError, match="no dump"):
        apply_overrides(from_dispatch(recorded_dispatch), parse_overrides(restore_args=["0"]))


def test_random_fill_changes_only_what_has_no_content(recorded_dispatch):
    arguments = change(recorded_dispatch, fill="random", seed=7)
    assert content(arguments.at(0)) == [1, 2, 3, 4]
    assert content(arguments.at(2)) == [0, 0, 0, 0]
    assert len(set(content(arguments.at(4)))) > 1
    assert arguments.at(4).tier is Tier.SYNTHETIC
    assert "seed 7" in arguments.at(4).origin
    again = change(recorded_dispatch, fill="random", seed=7)
    assert content(again.at(4)) == content(arguments.at(4))


@pytest.mark.parametrize(("fill", "seed"), [("noise", None), (None, 3), ("zero", 3), ("random", -1)])
def test_fill_and_seed_that_make_no_sense_are_refused(fill, seed):
    with pytest.raises(RequestError):
        parse_overrides(fill=fill, seed=seed)


words = st.text(alphabet="0123456789.-+xeEfaninbt:_= 3²", max_size=12)


@given(words | st.builds("{}={}".format, st.integers(0, 9), words), words)
def test_any_words_are_overrides_or_a_wrong_request(set_text, restore_text):
    with contextlib.suppress(RequestError):
        overrides = parse_overrides([set_text], [restore_text])
        assert overrides.set_args[0].slot != overrides.restore[0]


def test_a_scalar_that_the_source_lacks_is_added_when_its_type_is_named(recorded_dispatch):
    arguments = change(recorded_dispatch, "9=f32:0.5", "30=i32:-1")
    assert (arguments.at(9).bits, arguments.at(9).tier) == (0x3F000000, Tier.FILLED)
    assert arguments.at(30).bits == 0xFFFFFFFF
    for text in ("48=u64:1", "50=u64:1", "9=i8:300"):
        with pytest.raises(RequestError):
            change(recorded_dispatch, text)

"""Did the replay compute what the run computed?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arguments.recorded_dispatches import dispatch, payload, tensor
from tests.materialised import materialise_all

from insight_trace.arguments.buffers import view_of
from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.dtypes import dtype_named
from insight_trace.model import Role
from insight_trace.replay import verification as verification_module
from insight_trace.replay.verification import OutputCheck, Status, verdict, verify_outputs


def check(directory, expected, actual, dtype="FLOAT32", *, truncated_to=None, before=True, **options):
    numpy_type = dtype_named(dtype).numpy
    expected = np.asarray(expected).astype(numpy_type)
    raw = expected.tobytes()
    cut = truncated_to is not None
    after = payload(directory, raw[:truncated_to] if cut else raw, truncated=cut)
    source = payload(directory, np.ones(2, np.float32).tobytes()) if before else None
    arguments = from_dispatch(
        dispatch(
            tensor(0, "FLOAT32", (2,), role=Role.INPUT, before=source),
            tensor(1, dtype, expected.shape, role=Role.OUTPUT, after=after),
        )
    )
    buffers = materialise_all(arguments)
    view_of(arguments.at(1), buffers[1])[...] = np.asarray(actual).astype(numpy_type)
    (result,) = verify_outputs(arguments, buffers, **options)
    return result


def test_equal_bytes_are_verified_as_exact(tmp_path):
    result = check(tmp_path, [[1, 2], [3, np.nan]], [[1, 2], [3, np.nan]])
    assert (result.status, result.max_error, result.text) == (
        Status.VERIFIED,
        0.0,
        "slot 1 exact in 4 elements",
    )


def test_a_rounding_difference_is_verified_with_its_size(tmp_path):
    result = check(tmp_path, [1.0, 2.0], [1.0 + 1.2e-7, 2.0])
    assert result.status is Status.VERIFIED
    assert 1e-7 < result.max_error < 1.3e-7
    assert (result.ulp, result.furthest, result.compared) == (1.0, (0,), 2)
    assert result.text == "slot 1 within 1 ulp in 2 elements, furthest at [0]"


def test_a_mismatch_names_the_largest_error_the_first_index_and_the_count(tmp_path):
    result = check(tmp_path, np.zeros((3, 4)), [[0, 0, 0, 0], [0, 0, 0.5, 0], [0, -2, 0, 0]])
    assert result.status is Status.MISMATCH
    assert (result.max_error, result.first_index, result.wrong, result.compared) == (2.0, (1, 2), 2, 12)
    assert "2 of 12 elements, largest error 2 (" in result.text


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        ("FLOAT32", 1.000005, 1.00005),
        ("FLOAT16", 1.001, 1.01),
        ("BFLOAT16", 1.008, 1.05),
        ("FP8E4M3FN", 1.125, 1.5),
        ("INT32", 1, 2),
        ("UINT8", 1, 2),
        ("BOOL", 1, 0),
    ],
)
def test_tolerance_follows_the_type(tmp_path, dtype, near, far):
    assert check(tmp_path, [1.0, 1.0], [1.0, near], dtype).status is Status.VERIFIED
    assert check(tmp_path, [1.0, 1.0], [1.0, far], dtype).status is Status.MISMATCH


@pytest.mark.parametrize(
    "pair", [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (1.0, np.inf), (np.inf, -np.inf)]
)
def test_nan_and_infinity_agree_only_with_themselves(tmp_path, pair):
    result = check(tmp_path, [0.0, pair[0]], [0.0, pair[1]])
    assert result.status is Status.MISMATCH
    assert result.max_error == np.inf
    assert result.first_index == (1,)


def test_neighbouring_large_integers_do_not_pass_as_equal(tmp_path):
    result = check(tmp_path, np.array([2**63 - 1], np.int64), np.array([2**63 - 2], np.int64), "INT64")
    assert result.status is Status.MISMATCH
    assert result.max_error >= 1


@pytest.mark.parametrize(("dtype", "size"), [("FLOAT16", 0.0156), ("FLOAT32", 1e-6), ("BFLOAT16", 1e-8)])
def test_a_kernel_that_stores_nothing_is_wrong_however_small_its_values_are(tmp_path, dtype, size):
    """A softmax over 64 columns in FP16 was verified "within 0.00057" so, and FP32 below 1e-5."""
    expected = size * np.linspace(0.5, 1.5, 64)
    result = check(tmp_path, expected, np.zeros(64), dtype)
    assert result.status is Status.MISMATCH
    assert result.wrong == 64


def test_what_nearly_cancels_is_held_to_the_size_of_its_neighbours(tmp_path):
    expected, actual = (
        np.array([1.0, 0.7, 1e-9, 2.0], np.float32),
        np.array([1.0, 0.7, 9e-8, 2.0], np.float32),
    )
    assert check(tmp_path, expected, actual).status is Status.VERIFIED
    assert check(tmp_path, expected * 1e-3, actual * 1e-3).status is Status.VERIFIED
    assert check(tmp_path, [1e-9] * 4, [1e-9, 1e-9, 9e-8, 1e-9]).status is Status.MISMATCH


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_slot_in_which_no_byte_was_written_is_never_verified(tmp_path, value):
    nothing, one = np.zeros(16, np.uint8), np.array([255] + [0] * 15, np.uint8)
    result = check(tmp_path, [value] * 4, [value] * 4, written=lambda _: nothing)
    assert result.status is Status.UNWRITTEN
    assert result.text == "slot 1 unwritten: as recorded, but no byte of it was written"
    assert check(tmp_path, [value] * 4, [value] * 4, written=lambda _: one).status is Status.VERIFIED
    unknown = check(tmp_path, [value] * 4, [value] * 4, written=lambda _: None)
    assert unknown.status is (Status.VERIFIED if value else Status.UNWRITTEN)


def test_a_dispatch_is_verified_only_by_a_slot_that_is():
    slots = {status: OutputCheck(0, status) for status in Status}
    good, bad = slots[Status.VERIFIED], slots[Status.MISMATCH]
    assert verdict([]) is Status.UNVERIFIABLE
    assert verdict([slots[Status.UNWRITTEN]]) is Status.UNVERIFIABLE
    assert verdict([slots[Status.UNWRITTEN], good]) is Status.VERIFIED
    assert verdict([slots[Status.UNVERIFIABLE], good]) is Status.UNVERIFIABLE
    assert verdict([good, slots[Status.UNVERIFIABLE], bad]) is Status.MISMATCH


def test_without_a_recording_an_output_is_unverifiable():
    arguments = from_dispatch(dispatch(tensor(1, role=Role.OUTPUT)))
    (result,) = verify_outputs(arguments, materialise_all(arguments))
    assert result.status is Status.UNVERIFIABLE
    assert "nothing was recorded" in result.why


def test_without_a_buffer_an_output_is_unverifiable(tmp_path):
    arguments = from_dispatch(dispatch(tensor(1, role=Role.OUTPUT, after=payload(tmp_path, bytes(16)))))
    (result,) = verify_outputs(arguments, {})
    assert "returned no content" in result.why


def test_a_difference_that_made_up_inputs_explain_is_unverifiable_and_equality_still_counts(tmp_path):
    result = check(tmp_path, [1.0], [2.0], before=False)
    assert result.status is Status.UNVERIFIABLE
    assert "slot 0 is made up" in result.why
    assert result.max_error == 1.0
    assert check(tmp_path, [1.0], [1.0], before=False).status is Status.VERIFIED


def test_a_partial_run_explains_a_difference(tmp_path):
    result = check(tmp_path, [1.0], [2.0], partial="only block 0 of 4 ran")
    assert result.status is Status.UNVERIFIABLE
    assert "only block 0 of 4 ran" in result.why


def test_a_recording_that_was_cut_off_is_compared_as_far_as_it_goes(tmp_path):
    agreeing = check(tmp_path, [1, 2, 3, 4], [1, 2, 9, 9], truncated_to=8)
    assert agreeing.status is Status.UNVERIFIABLE
    assert "only 2 of 4 elements" in agreeing.why
    assert check(tmp_path, [1, 2, 3, 4], [1, 9, 3, 4], truncated_to=8).status is Status.MISMATCH


@given(data=st.data())
def test_comparing_in_blocks_is_the_same_as_comparing_at_once(tmp_path_factory, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    count = int(np.prod(shape))
    wrong = sorted(data.draw(st.sets(st.integers(0, count - 1), max_size=3)))
    expected = np.arange(count, dtype=np.float32).reshape(shape)
    actual = expected.copy()
    actual.reshape(-1)[wrong] += 1000
    original = verification_module._BLOCK
    verification_module._BLOCK = data.draw(st.integers(1, 20))
    try:
        result = check(tmp_path_factory.mktemp("v"), expected, actual)
    finally:
        verification_module._BLOCK = original
    assert result.wrong == len(wrong)
    assert result.compared == count
    first = tuple(int(i) for i in np.unravel_index(wrong[0], shape)) if wrong else None
    assert result.first_index == first


@pytest.mark.parametrize(
    ("actual", "status"),
    [
        ([1.0, 2.0, 0.0, 0.0], Status.VERIFIED),  # two of four were written, and agree
        ([1.0, 0.0, 0.0, 0.0], Status.UNVERIFIABLE),  # a zero that was written is compared as well
        ([1.0, 5.0, 0.0, 0.0], Status.UNVERIFIABLE),
    ],
)
def test_a_shortened_run_is_compared_where_its_instructions_wrote(tmp_path, actual, status):
    mask = np.array([255] * 8 + [0] * 8, np.uint8)
    result = check(
        tmp_path, [1.0, 2.0, 3.0, 4.0], actual, partial="slot 4 was changed", written=lambda _: mask
    )
    assert result.status is status
    if status is Status.VERIFIED:
        assert result.text == "slot 1 exact in the 2 of 4 elements that it wrote"
    else:
        assert result.why == "it differs from the recording, as it may: slot 4 was changed"


@pytest.mark.parametrize("mask", [None, np.zeros(16, np.uint8)])
def test_a_shortened_run_that_wrote_nothing_known_is_unverifiable(tmp_path, mask):
    result = check(
        tmp_path, [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 0.0, 0.0], partial="short", written=lambda _: mask
    )
    assert result.status is Status.UNVERIFIABLE

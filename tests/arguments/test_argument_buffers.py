"""Logical content lands where the strides say, and nowhere else."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from recorded_dispatches import payload
from tests.materialised import materialise_all

from insight_trace.arguments.buffers import content_span, materialise, span_bytes, view_of
from insight_trace.arguments.slots import (
    Fill,
    FromFile,
    OtherRecord,
    Random,
    Recorded,
    ReplayArguments,
    Zero,
    make_tensor,
)
from insight_trace.dtypes import DTYPES, dtype_named
from insight_trace.errors import InputError, RequestError
from insight_trace.model import Payload, Tier

F32, I32, BF16 = dtype_named("f32"), dtype_named("i32"), dtype_named("bf16")


def a_tensor(content, dtype=F32, shape=(2, 2), **rest):
    return make_tensor(0, dtype, shape, content, Tier.EXACT, **rest)


def test_a_strided_view_scatters_as_documented(tmp_path):
    raw = np.array([10, 20, 30, 40], np.int32).tobytes()
    buffer = materialise(a_tensor(Recorded(payload(tmp_path, raw)), I32, strides=(3, 1), start_offset=1))
    assert buffer.view(np.int32)[:6].tolist() == [0, 10, 20, 0, 30, 40]
    assert not buffer[24:].any()


@given(data=st.data())
def test_scatter_then_gather_is_the_identity_and_touches_nothing_else(tmp_path_factory, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=0, max_size=4)))
    strides, step = [], 1
    for extent in reversed(shape):  # non-overlapping: each stride is at least the span of the inner ones
        step *= data.draw(st.integers(1, 3))
        strides.insert(0, step)
        step *= extent
    start = data.draw(st.integers(0, 9))
    dtype = data.draw(st.sampled_from(DTYPES))
    numel = int(np.prod(shape, dtype=int))
    raw = data.draw(st.binary(min_size=numel * dtype.size, max_size=numel * dtype.size))
    if dtype.name == "BOOL":
        raw = bytes(b & 1 for b in raw)
    content = Recorded(payload(tmp_path_factory.mktemp("p"), raw))
    tensor = a_tensor(content, dtype, shape, strides=tuple(strides), start_offset=start)
    buffer = materialise(tensor)
    assert view_of(tensor, buffer).tobytes() == raw
    expected = bytearray(tensor.buffer_size)
    for number, index in enumerate(itertools.product(*map(range, shape))):
        at = (start + sum(i * s for i, s in zip(index, strides, strict=True))) * dtype.size
        expected[at : at + dtype.size] = raw[number * dtype.size : (number + 1) * dtype.size]
    assert buffer.tobytes() == bytes(expected)
    first, span = span_bytes(tensor)
    assert buffer[first : first + span.nbytes].tobytes() == span.tobytes()
    assert not buffer[:first].any()
    assert not buffer[first + span.nbytes :].any()


@given(st.integers(0, 24))
def test_a_payload_that_was_cut_off_fills_its_prefix(tmp_path_factory, size):
    raw = bytes(range(1, size + 1))
    content = Recorded(payload(tmp_path_factory.mktemp("p"), raw, truncated=True))
    tensor = a_tensor(content, dtype_named("u8"), (2, 3, 4), strides=(20, 5, 1))
    got = view_of(tensor, materialise(tensor)).tobytes()
    assert got == raw + bytes(24 - size)


def test_a_view_far_into_a_pool_of_forty_gigabytes_costs_only_what_it_touches(tmp_path):
    start = 20 * 2**30 // 2
    raw = np.arange(256, dtype=np.uint16).tobytes()
    tensor = a_tensor(
        Recorded(payload(tmp_path, raw)), BF16, (16, 16), start_offset=start, recorded_size=40 * 2**30
    )
    buffer = materialise(tensor)
    assert buffer.nbytes >= 40 * 2**30
    assert buffer[start * 2 : start * 2 + 512].tobytes() == raw
    assert content_span(tensor) == (start * 2, start * 2 + 512)


def test_fill_and_random_stay_inside_the_view_and_random_repeats_by_seed_and_slot():
    filled = a_tensor(Fill(7), I32, (2, 2), strides=(4, 1))
    assert materialise(filled).view(np.int32)[:8].tolist() == [7, 7, 0, 0, 7, 7, 0, 0]
    one = a_tensor(Random(5), F32, (64,))
    assert materialise(one).tobytes() == materialise(one).tobytes()
    other_slot = replace(one, slot=1)
    other_seed = replace(one, content=Random(6))
    assert len({materialise(t).tobytes() for t in (one, other_slot, other_seed)}) == 3
    values = view_of(one, materialise(one))
    assert np.all(np.abs(values) <= 1)
    assert np.unique(values).size > 32


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_every_type_can_be_random_without_nan_or_infinity(dtype):
    tensor = a_tensor(Random(1), dtype, (50,))
    values = view_of(tensor, materialise(tensor)).astype(np.float32)
    assert np.isfinite(values).all()
    assert np.unique(values).size > 1


def test_a_payload_outside_its_file_is_an_input_error_that_names_the_file(tmp_path):
    path = tmp_path / "args.bin"
    path.write_bytes(b"\0" * 10)
    with pytest.raises(InputError, match=r"args\.bin.*lie outside"):
        materialise(a_tensor(Recorded(Payload(path, 4, 16))))
    with pytest.raises(InputError, match="cannot be read"):
        materialise(a_tensor(Recorded(Payload(tmp_path / "absent.bin", 0, 16))))


def test_files_of_raw_elements_and_npy_give_the_same_buffer(tmp_path):
    array = np.arange(4, dtype=np.float32).reshape(2, 2)
    (tmp_path / "a.bin").write_bytes(array.tobytes())
    np.save(tmp_path / "a.npy", array)
    raw, npy = (materialise(a_tensor(FromFile(tmp_path / name))) for name in ("a.bin", "a.npy"))
    assert raw.tobytes() == npy.tobytes()
    assert raw.view(np.float32)[:4].tolist() == [0, 1, 2, 3]


def test_a_file_of_the_wrong_size_or_type_is_refused(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\0" * 15)
    np.save(tmp_path / "type.npy", np.zeros((2, 2), np.int64))
    np.save(tmp_path / "shape.npy", np.zeros((3, 2), np.float32))
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    np.save(tmp_path / "pickle.npy", np.array([{}], object), allow_pickle=True)
    for name in ("a.bin", "type.npy", "shape.npy", "broken.npy", "pickle.npy", "absent.bin"):
        with pytest.raises(InputError, match=name.replace(".", r"\.")):
            materialise(a_tensor(FromFile(tmp_path / name)))


def test_content_of_another_record_lands_where_that_record_lay(tmp_path):
    raw = np.arange(8, dtype=np.float32).tobytes()
    other = OtherRecord(payload(tmp_path, raw), F32, (8,), (1,), 0)
    tensor = a_tensor(other, shape=(2,), start_offset=4, recorded_size=32)
    assert view_of(tensor, materialise(tensor)).tolist() == [4, 5]
    first, span = span_bytes(tensor)
    assert (first, span.tobytes()) == (0, raw)


def test_slots_that_share_a_buffer_see_each_others_content(tmp_path):
    raw = np.array([1, 2, 3, 4], np.float32).tobytes()
    first = a_tensor(Recorded(payload(tmp_path, raw)))
    second = replace(a_tensor(Zero(), shape=(2,), start_offset=1), slot=5, shares=0)
    buffers = materialise_all(ReplayArguments((first, second)))
    assert buffers[0] is buffers[5]
    assert view_of(second, buffers[5]).tolist() == [2, 3]


def test_a_buffer_that_does_not_hold_the_view_is_refused():
    with pytest.raises(RequestError, match="slot 0"):
        view_of(a_tensor(Zero()), np.zeros(8, np.uint8))

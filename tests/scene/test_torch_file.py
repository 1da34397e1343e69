"""A .pt file is read without torch, and nothing that it says is run."""

import io
import os
import pickle
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.torch_files import STORAGES, archive, description, names, text, torch_file

from insight_trace.errors import InputError
from insight_trace.scene.torch_file import read_torch_file

TYPES = [*STORAGES, "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]


def read(content, folder):
    path = folder / "t.pt"
    path.write_bytes(content)
    return read_torch_file(path)


def refused(content, folder):
    with pytest.raises(InputError) as error:
        read(content, folder)
    assert "t.pt" in str(error.value)
    return str(error.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("torch_files")


@given(data=st.data(), name=st.sampled_from(TYPES))
def test_every_type_and_shape_comes_back_bit_for_bit(data, name, folder):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
    count = int(np.prod(shape)) * dtype.itemsize
    raw = data.draw(st.binary(min_size=count, max_size=count))
    if name == "bool":
        raw = bytes(b & 1 for b in raw)
    array = np.frombuffer(raw, dtype).reshape(shape)
    found = read(torch_file(array), folder)
    assert found.dtype == dtype
    assert found.shape == shape
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable


@given(start=st.integers(0, 5), rows=st.integers(1, 4), cols=st.integers(1, 4), turned=st.booleans())
def test_a_view_of_a_larger_storage_is_the_view(start, rows, cols, turned, folder):
    storage = np.arange(64, dtype=np.float32)
    strides = (1, 7) if turned else (7, 1)
    content = archive(description("float32", (rows, cols), strides, start, 64), storage.tobytes())
    wanted = np.lib.stride_tricks.as_strided(storage[start:], (rows, cols), [s * 4 for s in strides])
    assert np.array_equal(read(content, folder), wanted)


@given(cut=st.integers(0, 1000))
def test_a_file_that_was_cut_is_refused(cut, folder):
    whole = torch_file(np.arange(40, dtype=np.int32))
    refused(whole[: min(cut, len(whole) - 1)], folder)


class _Runs:
    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.mark.parametrize(
    "hostile",
    [
        pickle.dumps(_Runs(), 2),
        pickle.dumps(print, 2),
        b"cbuiltins\neval\n(" + text("1") + b"tR.",
        names("torch._utils", "_rebuild_tensor_v2") + b"(" + text("no storage") + b"tR.",
        names("numpy.core.multiarray", "_reconstruct") + b".",
        b"(" * 100_000 + b".",
        b"]" + b"2a" * 50 + b".",
        b"\x80\x05\x95" + b"\xff" * 8 + b".",
        b"",
    ],
)
def test_a_hostile_description_is_refused_and_nothing_of_it_is_run(hostile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(archive(hostile, b"\0" * 64), tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_tensor_larger_than_its_storage_is_refused(folder):
    said = refused(archive(description("float32", (1 << 20, 1 << 20), (0, 0), count=1), b"\0" * 4), folder)
    assert "repeats its elements" in said
    said = refused(archive(description("float32", (9,), (1,), count=8), b"\0" * 32), folder)
    assert "ends at element 9 of 8" in said


def test_a_file_that_unpacks_to_more_than_it_is_is_refused(folder):
    bomb = archive(description("uint8", (8,), (1,), count=8), b"\0" * (1 << 20), zipfile.ZIP_DEFLATED)
    assert "compressed" in refused(bomb, folder)


def test_other_content_is_named(folder):
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as file:
        file.writestr("readme", "x")
    assert "no data.pkl" in refused(empty.getvalue(), folder)
    assert "holds a dict" in refused(archive(b"}.", b""), folder)
    assert "not a .pt file" in refused(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", folder)
    other = archive(description("float32", (1,), (1,), count=1), b"\0" * 4, byteorder=b"big")
    assert "big-endian" in refused(other, folder)

"""The bytes a kernel reads are where simpler's headers put them."""

import ctypes
import struct

import pytest

from insight_trace.arguments.packing import (
    ARGS_SIZE,
    GLOBAL_CONTEXT_SIZE,
    LOCAL_CONTEXT_SIZE,
    pack_arguments,
    pack_descriptor,
    pack_global_context,
    pack_local_context,
)
from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, Zero, make_tensor
from insight_trace.dtypes import dtype_named
from insight_trace.errors import RequestError
from insight_trace.model import Tier


class ChipTensor(ctypes.Structure):
    """The C struct, laid out by the compiler's rules and not by ours."""

    _fields_ = [
        ("addr", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("owner_task_id", ctypes.c_uint64),
        ("start_offset", ctypes.c_uint64),
        ("version", ctypes.c_int32),
        ("ndims", ctypes.c_uint32),
        ("dtype", ctypes.c_uint8),
        ("manual_dep", ctypes.c_bool),
        ("is_contiguous", ctypes.c_bool),
        ("address_space", ctypes.c_uint8),
        ("shapes", ctypes.c_uint32 * 5),
        ("extent_elem_cache", ctypes.c_uint64),
        ("strides", ctypes.c_uint32 * 5),
        ("pad", ctypes.c_uint8 * 36),
    ]


class LocalContext(ctypes.Structure):
    _fields_ = [
        ("block_idx", ctypes.c_int32),
        ("block_num", ctypes.c_int32),
        ("pointers", ctypes.c_void_p * 3),
        ("capacity", ctypes.c_uint32),
        ("task_token", ctypes.c_uint64),
    ]


class GlobalContext(ctypes.Structure):
    _fields_ = [("sub_block_id", ctypes.c_int32), ("dma_workspace", ctypes.c_uint64 * 2)]


def a_view():
    bf16 = dtype_named("bf16")
    return make_tensor(3, bf16, (16, 4), Zero(), Tier.SYNTHETIC, strides=(16, 1), start_offset=512)


def test_the_descriptor_reads_back_through_the_c_struct():
    raw = pack_descriptor(a_view(), 0x123456789000, owner_task=0x200000005)
    assert len(raw) == ctypes.sizeof(ChipTensor) == 128
    read = ChipTensor.from_buffer_copy(raw)
    assert read.addr == 0x123456789000
    assert read.size == (512 + 16 * 16) * 2
    assert read.owner_task_id == 0x200000005
    assert read.start_offset == 512
    assert (read.version, read.ndims, read.dtype, read.is_contiguous, read.address_space) == (
        0,
        2,
        6,
        False,
        0,
    )
    assert list(read.shapes) == [16, 4, 0, 0, 0]
    assert list(read.strides) == [16, 1, 0, 0, 0]
    assert read.extent_elem_cache == 15 * 16 + 4


def test_the_descriptor_offsets_are_those_of_the_facts():
    raw = pack_descriptor(a_view(), 0xA0)
    for offset, form, value in [
        (0, "<Q", 0xA0),
        (24, "<Q", 512),
        (36, "<I", 2),
        (40, "B", 6),
        (42, "B", 0),
        (44, "<I", 16),
        (64, "<Q", 244),
        (72, "<I", 16),
    ]:
        assert struct.unpack_from(form, raw, offset)[0] == value, offset


def test_a_dense_view_is_contiguous_wherever_it_starts():
    f32 = dtype_named("f32")
    dense = make_tensor(0, f32, (4, 4), Zero(), Tier.SYNTHETIC, start_offset=16)
    assert pack_descriptor(dense, 0)[42] == 1


def test_contexts_read_back_through_the_c_structs():
    local = LocalContext.from_buffer_copy(pack_local_context(3, 24))
    assert (local.block_idx, local.block_num, local.capacity) == (3, 24, 0)
    assert GlobalContext.from_buffer_copy(pack_global_context(1)).sub_block_id == 1
    assert ctypes.sizeof(LocalContext) == LOCAL_CONTEXT_SIZE == 48
    assert ctypes.sizeof(GlobalContext) == GLOBAL_CONTEXT_SIZE == 24


def test_the_array_has_descriptors_scalars_and_contexts_in_their_slots():
    scalar = ReplayScalar(9, dtype_named("u64"), 2**64 - 1, Tier.EXACT)
    raw = pack_arguments(
        ReplayArguments((a_view(), scalar)), {3: 0x1000}, local_context=0x2000, global_context=0x3000
    )
    assert len(raw) == ARGS_SIZE == 400
    slots = struct.unpack("<50Q", raw)
    assert {i: v for i, v in enumerate(slots) if v} == {3: 0x1000, 9: 2**64 - 1, 48: 0x2000, 49: 0x3000}


def test_a_tensor_without_an_address_is_refused():
    with pytest.raises(RequestError, match="slot 3"):
        pack_arguments(ReplayArguments((a_view(),)), {}, local_context=1, global_context=2)

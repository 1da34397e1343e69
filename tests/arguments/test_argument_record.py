"""A workspace repeats its replay without the dump: arguments come back from disk as they were."""

import json
import math
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from recorded_dispatches import dispatch, payload, real_dispatches, scalar, tensor
from tests.materialised import materialise_all

from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.arguments.record import from_record, keep, to_record
from insight_trace.arguments.slots import (
    Fill,
    FromFile,
    OtherRecord,
    Random,
    ReplayArguments,
    Zero,
    make_tensor,
)
from insight_trace.dtypes import DTYPES, dtype_named
from insight_trace.errors import InsightTraceError
from insight_trace.model import Role, Tier

F32 = dtype_named("f32")


def through_disk(arguments, directory):
    return from_record(json.loads(json.dumps(to_record(arguments, directory), allow_nan=False)), directory)


def test_every_kind_of_content_comes_back(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2), np.float32))
    recorded = from_dispatch(
        dispatch(
            tensor(
                0, role=Role.INPUT, before=payload(tmp_path, bytes(16)), after=payload(tmp_path, bytes(16))
            ),
            tensor(1, role=Role.INPUT, before=payload(tmp_path, bytes(4), truncated=True)),
            scalar(2, "FLOAT32", 0x3F800001),
            block_count=24,
        ),
        signature=("IN", "IN", "SCALAR", "OUT"),
    )
    other = OtherRecord(payload(tmp_path, bytes(32)), F32, (8,), (1,), 0)
    more = [
        make_tensor(slot, F32, (2, 2), content, Tier.SYNTHETIC, start_offset=slot, name=f"t{slot}")
        for slot, content in enumerate(
            (Zero(), Fill(0.1), Fill(math.inf), Random(3), FromFile(tmp_path / "x.npy")), 5
        )
    ]
    odd = make_tensor(20, F32, (2,), other, Tier.RECONSTRUCTED, strides=(4,), recorded_size=32)
    placed = replace(make_tensor(21, F32, (2,), Zero(), Tier.EXACT), address=0x2000_0000_1000)
    arguments = ReplayArguments((*recorded.slots, *more, odd, placed), 24, recorded.notes)
    back = through_disk(arguments, tmp_path)
    assert back.at(21).address == placed.address
    again = through_disk(back, tmp_path)
    assert back == again
    assert back.warnings == arguments.warnings
    before, after = materialise_all(arguments), materialise_all(back)
    assert all(before[slot].tobytes() == after[slot].tobytes() for slot in before)


@given(st.sampled_from(DTYPES), st.data())
def test_a_fill_comes_back_bit_for_bit(tmp_path_factory, dtype, data):
    raw = data.draw(st.binary(min_size=dtype.size, max_size=dtype.size))
    value = np.frombuffer(raw, dtype.numpy)[0]
    number = bool(raw[0] & 1) if dtype.name == "BOOL" else float(value) if dtype.is_float else int(value)
    if dtype.is_float and math.isnan(number):
        return
    one = ReplayArguments((make_tensor(0, dtype, (3,), Fill(number), Tier.FILLED),))
    back = through_disk(one, tmp_path_factory.getbasetemp())
    assert materialise_all(back)[0].tobytes() == materialise_all(one)[0].tobytes()


def test_kept_arguments_need_neither_the_dump_nor_the_place(recorded_dumps, tmp_path):
    dump = tmp_path / "dump"
    shutil.copytree(recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2/args_dump", dump)
    for one in real_dispatches(dump)[:4]:
        arguments = from_dispatch(one)
        here = tmp_path / f"workspace{one.dispatch_id}"
        record = to_record(keep(arguments, here / "inputs"), here)
        expected = {slot: buffer.tobytes() for slot, buffer in materialise_all(arguments).items()}
        moved = tmp_path / f"moved{one.dispatch_id}"
        here.rename(moved)
        assert str(tmp_path) not in json.dumps(record)
        back = from_record(record, moved)
        assert {slot: b.tobytes() for slot, b in materialise_all(back).items()} == expected
        assert [t.expected.size for t in back.tensors if t.expected] == [
            t.expected.size for t in arguments.tensors if t.expected
        ]


@pytest.mark.parametrize("key", ["slots", "notes", "block_count"])
def test_a_record_without_a_key_is_refused_by_name(tmp_path, key):
    record = to_record(ReplayArguments(()), tmp_path)
    del record[key]
    with pytest.raises(InsightTraceError, match=key):
        from_record(record, tmp_path, where="replay.json")


@pytest.mark.parametrize(
    "change", [{"strides": [1]}, {"shape": [-1, 2]}, {"buffer_size": 8}, {"start_offset": -1}, {"dtype": "X"}]
)
def test_a_record_with_an_impossible_tensor_is_refused(tmp_path, change):
    record = to_record(from_dispatch(dispatch(tensor(0))), tmp_path)
    record["slots"][0] |= change
    with pytest.raises(InsightTraceError, match=r"replay\.json"):
        from_record(record, tmp_path, where="replay.json")

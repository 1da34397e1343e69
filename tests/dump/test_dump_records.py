"""Every row of what a tolerant reader has to handle in a record."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dump_examples import dtype, only, record, scalar, write

from insight_trace import load_dump
from insight_trace.dump.recorded_bytes import tensor_array
from insight_trace.errors import RequestError
from insight_trace.model import ContextArg, CoreType, Role, Stage, TensorArg

# --- kinds and ids --------------------------------------------------------------------------------------


def test_without_a_kind_a_record_is_a_tensor_and_scalars_are_missing(tmp_path):
    old = record(kind=..., func_id=3, subtask_id=1)
    dispatch = only(load_dump(write(tmp_path, [old], key="tensors")))
    assert isinstance(dispatch.arguments[0], TensorArg)
    assert "scalars" in dispatch.missing
    assert (dispatch.func_ids, dispatch.subtask_id, dispatch.core_type) == ((3,), 1, CoreType.AIV)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(..., ()), (-1, ()), (5, (5,)), ([-1], ()), ([2], (2,)), ([0, 1, 1], (0, 1, 1))],
    ids=str,
)
def test_func_ids_are_missing_a_number_or_a_list(given, expected, tmp_path):
    dispatch = only(load_dump(write(tmp_path, [record(func_id=given)])))
    assert dispatch.func_ids == expected
    assert ("func_ids" in dispatch.missing) is (not expected)


def test_a_slot_shared_by_members_of_a_mix_is_one_argument(tmp_path):
    shared = [
        record(func_id=0, arg_index=0, role="output", stage="after_completion"),
        record(func_id=1, arg_index=0, role="input", stage="before_dispatch"),
        record(func_id=1, arg_index=1),
    ]
    dispatch = only(load_dump(write(tmp_path, shared)))
    assert dispatch.func_ids == (0, 1)
    assert dispatch.core_type is CoreType.MIX
    assert [a.slot for a in dispatch.arguments] == [0, 1]
    assert dispatch.arguments[0].role is Role.INOUT
    assert dispatch.block_count == 1


@pytest.mark.parametrize("given", ["0x000000020000000A", "0X000000020000000a", 0x20000000A, "8589934602"])
def test_task_ids_are_numbers_or_hex_in_any_case(given, tmp_path):
    assert only(load_dump(write(tmp_path, [record(task_id=given)]))).task_id == 0x20000000A


def test_records_of_one_task_are_one_dispatch_wherever_they_stand(tmp_path):
    records = [record(task_id="0xa"), record(task_id="0xb"), record(task_id="0xA", arg_index=1)]
    dump = load_dump(write(tmp_path, records))
    assert [(d.dispatch_id, d.task_id, len(d.arguments)) for d in dump.dispatches] == [(0, 10, 2), (1, 11, 1)]


# --- blocks and duplicates ------------------------------------------------------------------------------


def test_records_repeated_per_block_are_folded_into_a_block_count(tmp_path):
    group = [record(bin_offset=0), record(arg_index=1), scalar(7, arg_index=2)]
    after = record(arg_index=3, role="output", stage="after_completion")
    dispatch = only(load_dump(write(tmp_path, group * 16 + [after])))
    assert dispatch.block_count == 16
    assert "block_count" in dispatch.inferred
    assert [a.slot for a in dispatch.arguments] == [0, 1, 2, 3]


def test_scalars_repeated_per_member_of_a_mix_are_not_blocks(tmp_path):
    records = [record(func_id=...), scalar(7, func_id=..., arg_index=1), scalar(7, func_id=..., arg_index=1)]
    dispatch = only(load_dump(write(tmp_path, records, key="tensors")))
    assert dispatch.block_count == 1
    assert [a.slot for a in dispatch.arguments] == [0, 1]


def test_a_block_count_that_scalars_alone_suggest_is_only_taken_where_it_is_certain(tmp_path):
    lone = scalar(7, arg_index=0)
    assert only(load_dump(write(tmp_path / "one", [lone] * 3))).block_count == 3
    unsure = only(load_dump(write(tmp_path / "two", [scalar(7, func_id=...)] * 3, key="tensors")))
    assert unsure.block_count == 1
    assert "block_count" in unsure.missing


# --- geometry -------------------------------------------------------------------------------------------


def test_geometry_comes_from_strides(tmp_path):
    a = only(load_dump(write(tmp_path, [record(shape=[2, 2], strides=[3, 1], start_offset=1)]))).arguments[0]
    assert (a.strides, a.start_offset, a.extent) == ((3, 1), 1, 6)


def test_geometry_comes_from_the_raw_shape_in_the_oldest_dumps(tmp_path):
    old = record(
        strides=..., start_offset=..., kind=..., subtask_id=0, shape=[2, 3], raw_shape=[4, 8], offsets=[1, 2]
    )
    dump = load_dump(write(tmp_path, [old], key="tensors"))
    a = only(dump).arguments[0]
    assert (a.shape, a.strides, a.start_offset) == ((2, 3), (8, 1), 10)
    assert dump.schema == "B"


def test_a_record_without_geometry_is_contiguous(tmp_path):
    a = only(load_dump(write(tmp_path, [record(shape=[2, 3], strides=..., start_offset=...)]))).arguments[0]
    assert (a.strides, a.start_offset) == ((3, 1), 0)


# --- scalar values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "name", "bits", "exact"),
    [
        (1065353216, "UINT64", 0x3F800000, True),
        (2**64 - 1, "UINT64", 2**64 - 1, True),
        (1.0, "FLOAT32", 0x3F800000, True),
        (1.5, "float32", 0x3FC00000, True),
        (-0.0, "FLOAT32", 0x80000000, True),
        (0.0883883, "FLOAT32", 0x3DB504ED, False),
        (1e06, "FLOAT32", 0x49742400, True),
        (None, "FLOAT32", 0x7FC00000, False),
        ("$Inf", "FLOAT32", 0x7F800000, True),
        ("-$Inf", "FLOAT32", 0xFF800000, True),
        (-1, "INT32", 0xFFFFFFFF, True),
        (-1, "INT64", 2**64 - 1, True),
        (-128, "INT8", 0x80, True),
        (4294967295, "UINT32", 0xFFFFFFFF, True),
        (True, "BOOL", 1, True),
        (False, "BOOL", 0, True),
        (1065353216, "FLOAT32", 0x3F800000, True),
        (16256, "BFLOAT16", 0x3F80, True),
        ("0x3F800000", "UINT64", 0x3F800000, True),
    ],
)
def test_scalar_values_go_back_to_the_bits_of_their_slot(value, name, bits, exact, tmp_path):
    a = only(load_dump(write(tmp_path, [scalar(value, name)]))).arguments[0]
    assert (a.bits, a.exact) == (bits, exact)


def test_a_float_that_six_digits_do_not_pin_down_is_warned_of(tmp_path):
    dump = load_dump(write(tmp_path, [scalar(0.0883883, "FLOAT32"), scalar(1.5, "FLOAT32", arg_index=1)]))
    assert [w for w in dump.warnings if "six digits" in w] == [
        "1 float scalars are printed with six digits or as null, which does not give their exact bits"
    ]


def test_a_scalar_without_a_value_is_reported_missing(tmp_path):
    dispatch = only(load_dump(write(tmp_path, [scalar(..., arg_index=2)])))
    assert "slot 2 value" in dispatch.missing
    assert not dispatch.arguments[0].exact


# --- stages and payload ---------------------------------------------------------------------------------


def test_an_output_has_no_content_before_and_an_inout_has_both(tmp_path):
    records = [
        record(arg_index=0, role="inout", bin_size=16, bin_offset=0),
        record(arg_index=0, role="inout", stage="after_completion", bin_size=16, bin_offset=16),
        record(arg_index=1, role="output", stage="after_completion", bin_size=16, bin_offset=32),
    ]
    both, out = only(load_dump(write(tmp_path, records, payload=bytes(range(48))))).arguments
    assert (both.before.offset, both.after.offset) == (0, 16)
    assert (out.before, out.after.offset) == (None, 32)


def test_the_stage_decides_even_if_the_later_record_stands_first(tmp_path):
    records = [
        record(role="inout", stage="after_completion", bin_size=16, bin_offset=16),
        record(role="inout", bin_size=16, bin_offset=0),
    ]
    a = only(load_dump(write(tmp_path, records, payload=bytes(32)))).arguments[0]
    assert (a.before.offset, a.after.offset) == (0, 16)


def test_a_truncated_payload_is_a_prefix(tmp_path):
    cut = record(shape=[100], bin_size=8, truncated=True)
    values = np.array([1.5, -2.0], np.float32).tobytes()
    dump = load_dump(write(tmp_path, [cut], payload=values, truncated_args=1))
    a = only(dump).arguments[0]
    assert a.before.truncated
    assert tensor_array(a, Stage.BEFORE).tolist() == [1.5, -2.0]
    assert any("cut off" in w for w in dump.warnings)


def test_an_overwritten_payload_is_missing(tmp_path):
    dump = load_dump(write(tmp_path, [record(overwritten=True)], payload=b"", dropped_overwrite=1))
    assert only(dump).arguments[0].before is None
    assert "slot 0 payload, overwritten" in only(dump).missing
    assert any("overwritten" in w for w in dump.warnings)


def test_dropped_records_are_warned_of(tmp_path):
    dump = load_dump(write(tmp_path, [record()], dropped_records=3))
    assert any("3 records were dropped" in w for w in dump.warnings)


def test_missing_slots_are_legal(tmp_path):
    dispatch = only(load_dump(write(tmp_path, [record(arg_index=2), record(arg_index=9)])))
    assert [a.slot for a in dispatch.arguments] == [2, 9]


def test_metadata_only_has_no_content_and_says_so_when_asked(tmp_path):
    a = only(load_dump(write(tmp_path, [record()]))).arguments[0]
    with pytest.raises(RequestError, match="no recorded content"):
        tensor_array(a, Stage.BEFORE)


def test_dtypes_are_known_in_any_case(tmp_path):
    assert only(load_dump(write(tmp_path, [record(dtype="bfloat16")]))).arguments[0].dtype is dtype(
        "BFLOAT16"
    )


# --- contexts -------------------------------------------------------------------------------------------


def test_context_slots_are_kept_apart_from_arguments(tmp_path):
    entry = {
        "dispatch_id": 4,
        "func_id": 1,
        "task_id": "0x7",
        "stage": "before_dispatch",
        "args": [
            {"arg_index": 0, "kind": "tensor", "dtype": "FLOAT32", "shape": [2], "pointer": "0xABC"},
            {"arg_index": 1, "kind": "context", "pointer": 99},
            {"arg_index": 48, "kind": "scalar", "dtype": "UINT64", "pointer": "0x1000"},
            {"arg_index": 49, "kind": "global_context", "pointer": "0x2000"},
        ],
    }
    (tmp_path / "kernel_args_dump.json").write_text(json.dumps({"dispatches": [entry]}))
    arguments = only(load_dump(tmp_path)).arguments
    assert [a for a in arguments if isinstance(a, ContextArg)] == [
        ContextArg(1, 99),
        ContextArg(48, 0x1000),
        ContextArg(49, 0x2000),
    ]
    assert [a.slot for a in arguments if not isinstance(a, ContextArg)] == [0]
    assert arguments[0].pointer == 0xABC


def test_a_context_pointer_in_a_unified_manifest_is_no_scalar(tmp_path):
    dispatch = only(load_dump(write(tmp_path, [scalar(4096, arg_index=48), record(arg_index=0)])))
    assert [type(a) for a in dispatch.arguments] == [TensorArg, ContextArg]
    assert dispatch.arguments[1].pointer == 4096


# --- threads --------------------------------------------------------------------------------------------

_AT_ONCE = """
import sys, threading
from pathlib import Path
from insight_trace.dump.load import load_dump

def read():
    together.wait()
    found.append(len(list(load_dump(Path(sys.argv[1])).dispatches)))

found, together = [], threading.Barrier(8)
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(found) == 8 and len(set(found)) == 1 and found[0] > 0, found
"""


def test_threads_that_are_the_first_to_read_a_dump_do_not_end_the_process():
    dump = Path(__file__).parents[1] / "data" / "fuzz" / "args_dump.json"
    for _ in range(6):  # without `prepared` about half of them end with a segmentation fault
        assert subprocess.run([sys.executable, "-c", _AT_ONCE, str(dump)], check=False).returncode == 0

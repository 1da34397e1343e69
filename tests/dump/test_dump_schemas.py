"""Every schema that exists, and every row of what a tolerant reader has to handle."""

import json
from pathlib import Path

import numpy as np
import pytest
from dump_examples import content, dtype, record, scalar, scene_file, write

from insight_trace import load_dump, load_scene
from insight_trace.dump.load import stream_dispatches
from insight_trace.dump.payload import tensor_array
from insight_trace.errors import InputError, RequestError
from insight_trace.model import ContextArg, CoreType, Role, ScalarArg, Stage, TensorArg

PAGED = "paged_attention_CaseSmall1_"
SCHEMAS = {
    "tensor_dump_before_unified": "C",
    "tensor_dump_unified": "D",
    "tensor_dump_typed_scalars": "D",  # all of its scalars are raw numbers
    "args_dump_func_id_int": "J",
    "args_dump_level2": "L",
    "args_dump_level3": "L",
}


def only(dump):
    assert len(dump.dispatches) == 1
    return dump.dispatches[0]


def of_slot(dispatch, slot):
    return next(a for a in dispatch.arguments if a.slot == slot)


# --- the real dumps -------------------------------------------------------------------------------------


@pytest.fixture
def scene(tmp_path):
    return load_scene(scene_file(tmp_path))


def test_all_nine_real_folders_load(shared_data):
    folders = sorted((shared_data / "dumps").iterdir())
    assert len(folders) == 9
    counts = {folder.name: len(load_dump(folder).dispatches) for folder in folders}
    assert {name: n for name, n in counts.items() if not name.startswith(PAGED)} == {
        "args_dump_scene_level1": 4,
        "args_dump_scene_level3": 5,
        "mixed_example_case2_args_dump_level2": 5,
    }
    assert {n for name, n in counts.items() if name.startswith(PAGED)} == {12}


@pytest.mark.parametrize("name", SCHEMAS)
def test_paged_attention_gives_the_same_dispatches_in_every_schema(name, shared_data, scene):
    dumps = shared_data / "dumps"
    dump, reference = (
        load_dump(dumps / (PAGED + name), scene),
        load_dump(dumps / (PAGED + "args_dump_level2")),
    )
    assert dump.schema == SCHEMAS[name]
    for one, other in zip(dump.dispatches, reference.dispatches, strict=True):
        assert (one.dispatch_id, one.task_id) == (other.dispatch_id, other.task_id)
        assert one.func_ids == other.func_ids
        for a, b in zip(tensors(one), tensors(other), strict=True):
            assert (a.slot, a.dtype, a.shape, a.strides, a.start_offset, a.role) == (
                (b.slot, b.dtype, b.shape, b.strides, b.start_offset, b.role)
            )
        if name == "tensor_dump_before_unified":
            assert "scalars" in one.missing
            assert not scalars(one)
        else:
            assert "scalars" not in one.missing
            assert scalars(one) == scalars(other)


def tensors(dispatch):
    return [a for a in dispatch.arguments if isinstance(a, TensorArg)]


def scalars(dispatch):
    return [a for a in dispatch.arguments if isinstance(a, ScalarArg)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_paged_attention_kernels_have_their_names_in_every_schema(name, shared_data, scene):
    dump = load_dump(shared_data / "dumps" / (PAGED + name), scene)
    assert [d.kernel for d in dump.dispatches] == ["QK", "SF", "PV", "UP"] * 3
    assert [d.core_type for d in dump.dispatches] == [CoreType.AIC, CoreType.AIV] * 6
    inferred = name in ("tensor_dump_unified", "tensor_dump_typed_scalars")
    assert {"func_ids" in d.inferred for d in dump.dispatches} == {inferred}


def test_the_same_payload_is_read_from_files_that_order_it_differently(shared_data):
    dumps = shared_data / "dumps"
    one = load_dump(dumps / (PAGED + "args_dump_func_id_int"))
    other = load_dump(dumps / (PAGED + "tensor_dump_unified"))
    places = [
        [a.before.offset for d in dump.dispatches for a in tensors(d) if a.before] for dump in (one, other)
    ]
    assert places[0] != places[1] or len(places[0]) == 36
    for left, right in zip(one.dispatches, other.dispatches, strict=True):
        assert content(left) == content(right)


def test_a_real_matmul_follows_from_its_recorded_inputs(shared_data):
    first = load_dump(shared_data / "dumps" / (PAGED + "args_dump_level2")).dispatches[0]
    query, key, score = tensors(first)
    a = tensor_array(query, Stage.BEFORE).astype(np.float32)
    b = tensor_array(key, Stage.BEFORE).astype(np.float32)
    np.testing.assert_allclose(tensor_array(score, Stage.AFTER), a @ b.T, atol=1e-5)


def test_mix_tasks_name_all_their_members(shared_data):
    dump = load_dump(shared_data / "dumps" / "mixed_example_case2_args_dump_level2")
    assert [d.func_ids for d in dump.dispatches] == [(0, 1, 2), (0,), (3,), (3, 4), (0, 1)]
    assert dump.dispatches[0].core_type is CoreType.MIX


def test_a_hybrid_dump_has_payload_for_marked_tensors_only(shared_data):
    dump = load_dump(shared_data / "dumps" / "args_dump_scene_level3")
    held = [a.before is not None or a.after is not None for d in dump.dispatches for a in tensors(d)]
    assert any(held)
    assert not all(held)
    assert dump.level == 3


def test_a_selective_dump_keeps_its_typed_and_ambiguous_scalars(shared_data):
    dump = load_dump(shared_data / "dumps" / "args_dump_scene_level1")
    found = {(d.task_id, a.slot): a for d in dump.dispatches for a in scalars(d)}
    assert found[0x100000000, 2].bits == 0x3F800000
    assert found[0x100000000, 3].bits == 3
    assert any(a.ambiguous for a in found.values())


# --- file names and places ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        "args_dump/args_dump.json",
        "tensor_dump/tensor_dump.json",
        "tensor_dump_20260415_101112/tensor_dump_20260415_101112.json",
        "args_dump.json",
        "tensor_dump.json",
    ],
)
def test_a_dump_is_found_by_file_by_its_directory_and_by_the_run_directory(place, tmp_path):
    path = write(tmp_path / "made", [record()])
    target = tmp_path / "run" / place
    target.parent.mkdir(parents=True)
    path.rename(target)
    for given in (target, target.parent, tmp_path / "run"):
        assert load_dump(given).path == target


@pytest.mark.parametrize("place", ["kernel_args_dump.json", "tensor_dump/kernel_args_dump.json"])
def test_the_per_dispatch_dump_is_found_in_both_of_its_places(place, tmp_path):
    target = tmp_path / place
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"schema_version": 1, "dispatches": [{"task_id": 1, "args": []}]}))
    assert load_dump(tmp_path).schema == "kernel_args"


def test_a_directory_without_a_dump_is_a_wrong_request(tmp_path):
    with pytest.raises(RequestError, match="no dump in"):
        load_dump(tmp_path)
    with pytest.raises(RequestError, match="does not exist"):
        load_dump(tmp_path / "absent")


def test_a_manifest_of_any_layout_reads_the_same(tmp_path):
    records = [record(task_id=f"0x{n:016x}", arg_index=n % 3) for n in range(50)]
    path = write(tmp_path, records)
    text = json.loads(path.read_text())
    expected = list(load_dump(path).dispatches)
    for indent in (None, 0, 1, 4):
        path.write_text(json.dumps(text, indent=indent))
        assert list(load_dump(path).dispatches) == expected
    path.write_text(json.dumps({"args": text.pop("args"), **text}))
    assert list(load_dump(path).dispatches) == expected


def test_a_list_of_the_same_name_further_down_is_not_mistaken_for_the_records(tmp_path):
    path = tmp_path / "args_dump.json"
    path.write_text('{"note": {"args": [\n]}, "args": [\n' + json.dumps(record()) + "\n]}")
    assert len(load_dump(path).dispatches) == 1


def test_unknown_keys_are_ignored(tmp_path):
    dump = load_dump(write(tmp_path, [record(colour="blue", nested={"a": [1]})], future={"key": 1}))
    assert only(dump).arguments[0].slot == 0


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


# --- the per-dispatch form ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "bits"),
    [
        ({"value": 3, "dtype": "INT32"}, 3),
        ({"value": 3, "dtype": "FLOAT32"}, 0x40400000),
        ({"value": 1.0, "dtype": "FLOAT32"}, 0x3F800000),
        ({"value": 1065353216, "dtype": "FLOAT32_BITS"}, 0x3F800000),
        ({"value": 1065353216, "dtype": "FLOAT32", "pack_mode": "bits"}, 0x3F800000),
        ({"bits": "0x3F800000", "dtype": "FLOAT32"}, 0x3F800000),
        ({"bits": 2**64 - 1, "value": "NaN", "dtype": "FLOAT32"}, 2**64 - 1),
        ({"value": -1, "dtype": "INT64"}, 2**64 - 1),
    ],
)
def test_per_dispatch_scalars_are_a_value_or_bits(given, bits, tmp_path):
    entry = {"task_id": 1, "args": [{"arg_index": 0, "kind": "scalar", **given}]}
    (tmp_path / "kernel_args_dump.json").write_text(json.dumps({"dispatches": [entry]}))
    assert only(load_dump(tmp_path)).arguments[0].bits == bits


def test_per_dispatch_ids_come_from_the_file_else_from_the_order(tmp_path):
    entries = [{"task_id": 1, "dispatch_id": "0x10", "args": []}, {"task_id": 2, "args": []}]
    (tmp_path / "kernel_args_dump.json").write_text(json.dumps({"dispatches": entries}))
    assert [d.dispatch_id for d in load_dump(tmp_path).dispatches] == [16, 1]


def test_per_dispatch_entries_without_payload_take_it_from_the_manifest_beside_them(tmp_path):
    write(tmp_path, [record(task_id="0x7", bin_size=16)], payload=bytes(range(16)))
    entry = {
        "task_id": "0x7",
        "func_id": 1,
        "args": [{"arg_index": 0, "kind": "tensor", "dtype": "FLOAT32", "ndims": 1, "shape": [4]}],
    }
    (tmp_path / "kernel_args_dump.json").write_text(json.dumps({"dispatches": [entry]}))
    dump = load_dump(tmp_path)
    assert dump.schema == "kernel_args"
    assert content(only(dump)) == {(0, "before"): bytes(range(16)), (0, "after"): None}


# --- selection ------------------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path):
    rows = [record(task_id=f"0x{n}", func_id=[f]) for n, f in ((1, 0), (2, 1), (3, 1))]
    return load_dump(write(tmp_path, rows))


def test_a_dispatch_is_chosen_by_func_id_and_dispatch_id_together(three):
    assert three.dispatch(func_ids=[1], dispatch_id=2).task_id == 3
    assert three.dispatch(func_ids=[1]).dispatch_id == 1
    assert three.dispatch(task_id=2).dispatch_id == 1


def test_a_dispatch_of_another_kernel_is_refused_and_named(three):
    with pytest.raises(RequestError, match="no dispatch has func id 1 and dispatch id 0") as error:
        three.dispatch(func_ids=[1], dispatch_id=0)
    assert "ran func id 0" in str(error.value)
    with pytest.raises(RequestError) as error:
        three.dispatch(func_ids=[1], dispatch_id=9)
    assert "1 (task 0x0000000000000002), 2 (task" in str(error.value)


def test_a_mix_is_chosen_by_the_set_of_its_members(tmp_path):
    dump = load_dump(write(tmp_path, [record(func_id=[0, 1, 1])]))
    assert dump.dispatch(func_ids=[1, 0]).func_ids == (0, 1, 1)
    with pytest.raises(RequestError):
        dump.dispatch(func_ids=[0])


def test_without_func_ids_a_choice_by_kernel_asks_for_the_scene(tmp_path):
    dump = load_dump(write(tmp_path, [record(func_id=...)], key="tensors"))
    with pytest.raises(RequestError, match="no dispatch has func id 1") as error:
        dump.dispatch(func_ids=[1], dispatch_id=0)
    assert "give the scene" in str(error.value)


# --- inference ------------------------------------------------------------------------------------------


def unnamed(task, *roles, dtype="FLOAT32", shape=(4,)):
    return [
        record(task_id=task, func_id=..., arg_index=i, role=role, dtype=dtype, shape=list(shape), strides=[1])
        for i, role in enumerate(roles)
    ]


MATMUL = ("input", "input", "output")
SOFTMAX = ("input", "output", "output", "output")


def test_kernels_of_one_signature_are_told_apart_by_their_turn(tmp_path, scene):
    rows = [r for n, kind in enumerate([MATMUL, SOFTMAX] * 2) for r in unnamed(n, *kind)]
    dump = load_dump(write(tmp_path, rows, key="tensors"), scene)
    # matmul, softmax, matmul, softmax: the second matmul stands after a softmax, as PV does
    assert [d.kernel for d in dump.dispatches] == ["QK", "SF", "PV", "SF"]
    assert all("func_ids" in d.inferred for d in dump.dispatches)


def test_a_turn_that_contradicts_itself_is_not_guessed(tmp_path, scene):
    rows = [r for n, kind in enumerate([MATMUL, SOFTMAX, MATMUL, MATMUL]) for r in unnamed(n, *kind)]
    rows += unnamed(9, *MATMUL)
    dump = load_dump(write(tmp_path, rows, key="tensors"), scene)
    assert [d.kernel for d in dump.dispatches] == ["", "SF", "", "", ""]
    assert any("cannot be told" in w for w in dump.warnings)


def test_an_odd_number_of_turns_is_not_guessed(tmp_path, scene):
    rows = [r for n, kind in enumerate([MATMUL, SOFTMAX, MATMUL, SOFTMAX, MATMUL]) for r in unnamed(n, *kind)]
    dump = load_dump(write(tmp_path, rows, key="tensors"), scene)
    assert [d.kernel for d in dump.dispatches] == ["", "SF", "", "SF", ""]
    assert any("3 of 5 dispatches cannot be told" in w for w in dump.warnings)
    assert "func_ids" in dump.dispatches[0].missing


def test_kernels_of_one_signature_are_told_apart_by_their_dtypes(tmp_path, scene):
    rows = unnamed(0, *MATMUL) + unnamed(1, *MATMUL) + unnamed(2, *MATMUL, dtype="BFLOAT16")
    dump = load_dump(write(tmp_path, rows, key="tensors"), scene)
    assert [d.kernel for d in dump.dispatches] == ["QK", "QK", "PV"]


def test_kernels_alone_with_their_like_are_not_guessed(tmp_path, scene):
    rows = unnamed(0, *MATMUL) + unnamed(1, *MATMUL)
    dump = load_dump(write(tmp_path, rows, key="tensors"), scene)
    assert [d.kernel for d in dump.dispatches] == ["", ""]


def test_a_mix_is_inferred_from_the_signatures_of_its_members(tmp_path, scene):
    rows = unnamed(0, *MATMUL, *SOFTMAX)
    dispatch = only(load_dump(write(tmp_path, rows, key="tensors"), scene))
    # QK+SF and PV+SF fit equally well, so it stays open
    assert dispatch.func_ids == ()
    up = ("input",) * 3 + ("inout",) * 4
    rows = unnamed(0, *SOFTMAX, *up)
    dispatch = only(load_dump(write(tmp_path / "other", rows, key="tensors"), scene))
    assert dispatch.func_ids == (1, 3)
    assert (dispatch.kernel, dispatch.core_type) == ("SF+UP", CoreType.MIX)


def test_without_a_scene_the_warning_says_what_to_give(tmp_path):
    dump = load_dump(write(tmp_path, unnamed(0, *MATMUL), key="tensors"))
    assert any("give the scene" in w for w in dump.warnings)


def test_roles_that_a_per_dispatch_file_lacks_come_from_the_scene(tmp_path, scene):
    args = [{"arg_index": i, "kind": "tensor", "dtype": "FLOAT32", "shape": [4]} for i in range(4)]
    (tmp_path / "kernel_args_dump.json").write_text(
        json.dumps({"dispatches": [{"task_id": 1, "func_id": 1, "args": args}]})
    )
    dispatch = only(load_dump(tmp_path, scene))
    assert [a.role for a in dispatch.arguments] == [Role.INPUT, Role.OUTPUT, Role.OUTPUT, Role.OUTPUT]
    assert "role" in dispatch.inferred
    assert dispatch.kernel == "SF"


def test_a_payload_file_that_shrank_after_loading_is_an_error_not_a_crash(tmp_path):
    a = only(load_dump(write(tmp_path, [record(bin_size=16)], payload=bytes(16)))).arguments[0]
    (tmp_path / "args.bin").write_bytes(b"")
    with pytest.raises(InputError, match="lie outside"):
        tensor_array(a, Stage.BEFORE)


# --- the rest -------------------------------------------------------------------------------------------


def test_the_payload_file_may_be_given_instead_of_the_manifest(tmp_path):
    path = write(tmp_path, [record(bin_size=16)], payload=bytes(16))
    assert load_dump(tmp_path / "args.bin").path == path


def test_func_ids_missing_in_some_records_are_inferred_for_those(tmp_path, scene):
    rows = [r | {"func_id": [3]} for r in unnamed(0, *SOFTMAX)]
    rows += [r | {"func_id": [-1]} for r in unnamed(1, *SOFTMAX)]
    dump = load_dump(write(tmp_path, rows), scene)
    assert [(d.func_ids, "func_ids" in d.inferred) for d in dump.dispatches] == [((3,), False), ((1,), True)]


def test_what_is_streamed_is_what_is_loaded(shared_data, scene):
    for folder in sorted((shared_data / "dumps").iterdir()):
        for given in (None, scene):
            warnings: list[str] = []
            streamed = list(stream_dispatches(folder, given, warnings))
            dump = load_dump(folder, given)
            assert streamed == list(dump.dispatches)
            assert [w for w in dump.warnings if "lacks func ids" not in w] == warnings


def test_the_example_of_the_documentation_loads(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "dump-formats.md").read_text()
    examples = [block.split("```")[0] for block in text.split("```json\n")[1:]]
    assert len(examples) == 2
    (tmp_path / "kernel_args_dump.json").write_text(examples[0])
    (tmp_path / "kernel_args_dump.bin").write_bytes(bytes(1024))
    dump = load_dump(tmp_path)
    assert dump.warnings == ()
    found = dump.dispatch(func_ids=[1], dispatch_id=5)
    assert [a.slot for a in found.arguments] == [0, 4, 48, 49]
    assert (found.kernel, found.core_id, found.arguments[1].bits) == ("SF", 3, 0x3F800000)
    (tmp_path / "other.json").write_text(examples[1])
    assert load_dump(tmp_path / "other.json").dispatches[0].arguments[0].bits == 1065353216


def test_the_two_names_of_the_package_are_the_functions_themselves():
    import insight_trace
    from insight_trace.dump.load import load_dump as function

    assert insight_trace.load_dump is function

"""Every schema that exists: the real dumps, and the places and names they are found under."""

import json

import numpy as np
import pytest
from dump_examples import content, only, record, scene_file, write

from insight_trace import load_dump, load_scene
from insight_trace.dump.recorded_bytes import tensor_array
from insight_trace.errors import RequestError
from insight_trace.model import CoreType, ScalarArg, Stage, TensorArg

PAGED = "paged_attention_CaseSmall1_"
SCHEMAS = {
    "tensor_dump_before_unified": "C",
    "tensor_dump_unified": "D",
    "tensor_dump_typed_scalars": "D",  # all of its scalars are raw numbers
    "args_dump_func_id_int": "J",
    "args_dump_level2": "L",
    "args_dump_level3": "L",
}


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
def test_paged_attention_gives_the_same_dispatches_in_every_schema(name, recorded_dumps, scene):
    dumps = recorded_dumps
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
def test_paged_attention_kernels_have_their_names_in_every_schema(name, recorded_dumps, scene):
    dump = load_dump(recorded_dumps / (PAGED + name), scene)
    assert [d.kernel for d in dump.dispatches] == ["QK", "SF", "PV", "UP"] * 3
    assert [d.core_type for d in dump.dispatches] == [CoreType.AIC, CoreType.AIV] * 6
    inferred = name in ("tensor_dump_unified", "tensor_dump_typed_scalars")
    assert {"func_ids" in d.inferred for d in dump.dispatches} == {inferred}


def test_the_same_payload_is_read_from_files_that_order_it_differently(recorded_dumps):
    dumps = recorded_dumps
    one = load_dump(dumps / (PAGED + "args_dump_func_id_int"))
    other = load_dump(dumps / (PAGED + "tensor_dump_unified"))
    places = [
        [a.before.offset for d in dump.dispatches for a in tensors(d) if a.before] for dump in (one, other)
    ]
    assert places[0] != places[1] or len(places[0]) == 36
    for left, right in zip(one.dispatches, other.dispatches, strict=True):
        assert content(left) == content(right)


def test_a_real_matmul_follows_from_its_recorded_inputs(recorded_dumps):
    first = load_dump(recorded_dumps / (PAGED + "args_dump_level2")).dispatches[0]
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

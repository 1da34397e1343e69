"""Dispatches: their own form of a dump, how one is chosen, and what is inferred where ids are missing."""

import json
from pathlib import Path

import pytest
from dump_examples import content, only, record, scene_file, write

from insight_trace import load_dump, load_scene
from insight_trace.dump.load import stream_dispatches
from insight_trace.dump.recorded_bytes import tensor_array
from insight_trace.errors import InputError, RequestError
from insight_trace.model import CoreType, Role, Stage


@pytest.fixture
def scene(tmp_path):
    return load_scene(scene_file(tmp_path))


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

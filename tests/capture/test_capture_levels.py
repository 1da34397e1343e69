"""Levels and markers decide what is recorded, as they do on the device."""

import json

import pytest
from capture_scenes import EXAMPLES, make_scene

from insight_trace.__main__ import main

CHAIN = EXAMPLES / "vector_chain" / "scene.py"


def manifest_at(level, folder, scene=CHAIN):
    assert main(["capture", str(scene), "--dump-args", str(level), "-o", str(folder)]) == 0
    path = folder / "args_dump" / "args_dump.json"
    return json.loads(path.read_text()) if path.exists() else None


def marked(records):
    return {(int(r["task_id"], 16), r["arg_index"], r["stage"][0]) for r in records}


# task 0 marks its first input, task 1 its output and its first scalar, task 3 everything
TENSORS = {(0, 0, "b"), (1, 1, "a"), (3, 0, "b"), (3, 1, "b"), (3, 2, "a")}
SCALARS = {(1, 2, "b")}


def test_level_0_runs_and_records_nothing(tmp_path):
    assert manifest_at(0, tmp_path / "run") is None
    assert not (tmp_path / "run").exists()


def test_level_1_records_what_is_marked(tmp_path):
    manifest = manifest_at(1, tmp_path / "run")
    assert manifest["dump_args_level"] == 1
    assert marked(manifest["args"]) == TENSORS | SCALARS
    assert all(r["bin_size"] == 64 * 64 * 4 for r in manifest["args"] if r["kind"] == "tensor")


def test_level_2_records_everything(tmp_path):
    manifest = manifest_at(2, tmp_path / "run")
    assert len(manifest["args"]) == 14
    assert all(r["bin_size"] for r in manifest["args"] if r["kind"] == "tensor")


def test_level_3_has_all_metadata_and_the_payload_of_what_is_marked(tmp_path):
    manifest = manifest_at(3, tmp_path / "run")
    assert len(manifest["args"]) == 14
    assert marked(r for r in manifest["args"] if r["bin_size"]) == TENSORS
    assert manifest["bin_file"] == "args.bin"


def test_level_3_without_markers_has_no_payload_file(tmp_path):
    manifest = manifest_at(3, tmp_path / "run", EXAMPLES / "spmd_multiblock" / "scene.py")
    assert manifest["bin_file"] is None
    assert len(manifest["args"]) == 9


def test_level_1_without_markers_writes_nothing_and_says_why(tmp_path, capsys):
    assert manifest_at(1, tmp_path / "run", EXAMPLES / "spmd_multiblock" / "scene.py") is None
    assert not (tmp_path / "run").exists()
    assert "nothing is marked" in capsys.readouterr().out


def test_a_scalar_that_was_added_twice_is_marked_once_and_called_ambiguous(tmp_path):
    body = """
    int32_t twice = 7;
    CoreTaskArgs other;
    other.add_input(a, b);
    other.add_output(out);
    other.add_scalar(twice, twice);
    other.dump(twice);
    rt_submit_aiv_task(0, other);
    """
    manifest = manifest_at(1, tmp_path / "run", make_scene(tmp_path, body))
    (record,) = manifest["args"]
    assert (record["arg_index"], record["value"], record["arg_index_ambiguous"]) == (3, 7, True)


@pytest.mark.parametrize("level", ["4", "-1"])
def test_a_level_that_does_not_exist_is_refused(level, tmp_path, capsys):
    assert main(["capture", str(CHAIN), "--dump-args", level, "-o", str(tmp_path / "run")]) == 2
    assert "0, 1, 2 or 3" in capsys.readouterr().err

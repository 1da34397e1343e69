"""simpler's own scenes, unmodified: the dump is the one that its runtime wrote. Needs torch and a checkout."""

import json

import pytest

import insight_trace

SCENE = "examples/a2a3/tensormap_and_ringbuffer/paged_attention/test_paged_attention.py"


def test_paged_attention_gives_the_records_and_bytes_of_the_real_dump(
    simpler_checkout, shared_data, tmp_path
):
    pytest.importorskip("torch")
    result = insight_trace.capture(
        simpler_checkout / SCENE, "CaseSmall1", output=tmp_path / "run", seed=20260601
    )
    assert result.passed
    real = shared_data / "dumps" / "paged_attention_CaseSmall1_args_dump_level2" / "args_dump"
    theirs, their_bytes = _read(real)
    ours, our_bytes = _read(tmp_path / "run" / "args_dump")
    assert {k: v for k, v in ours.items() if k != "args"} == {k: v for k, v in theirs.items() if k != "args"}
    assert len(ours["args"]) == len(theirs["args"]) == 72
    different = []
    for our, their in zip(ours["args"], theirs["args"], strict=True):
        assert {k: our[k] for k in their if k != "bin_offset"} == {
            k: v for k, v in their.items() if k != "bin_offset"
        }
        if _payload(our, our_bytes) != _payload(their, their_bytes):
            different.append((our["func_id"], our["arg_index"]))
    # the output, until its last write: device memory that nobody had written, so its bytes mean nothing
    assert different == [([3], 6)] * 5


ST = "tests/st/a2a3/tensormap_and_ringbuffer"


@pytest.mark.parametrize(
    ("scene", "case", "level", "dump"),
    [
        (f"{ST}/dfx/args_dump/test_args_dump.py", None, 1, "args_dump_scene_level1"),
        (f"{ST}/dfx/args_dump/test_args_dump.py", None, 3, "args_dump_scene_level3"),
        (f"{ST}/mixed_example/test_mixed_example.py", "case2", 2, "mixed_example_case2_args_dump_level2"),
    ],
)
def test_levels_markers_and_mixes_give_the_metadata_of_the_real_dumps(
    scene, case, level, dump, simpler_checkout, shared_data, tmp_path
):
    pytest.importorskip("torch")
    options = {"level": level, "platform": "a2a3sim"}
    assert insight_trace.capture(simpler_checkout / scene, case, output=tmp_path / "run", **options).passed
    theirs, _ = _read(shared_data / "dumps" / dump / "args_dump")
    ours, _ = _read(tmp_path / "run" / "args_dump")
    theirs, ours = ([_metadata(r, theirs["args"][0]) for r in m["args"]] for m in (theirs, ours))
    assert ours == theirs


def _metadata(record, like):
    keys = {*like, "value", "arg_index_ambiguous"} - {"bin_offset"}
    return {k: record.get(k) for k in keys}


def _read(folder):
    return json.loads((folder / "args_dump.json").read_text()), (folder / "args.bin").read_bytes()


def _payload(record, content):
    return content[record["bin_offset"] : record["bin_offset"] + record["bin_size"]]

"""simpler's own scenes, unmodified: the dump is the one that its runtime wrote. Needs torch and a checkout."""

import json

import numpy as np
import pytest

import insight_trace
from insight_trace.scene.live import LiveScene

SCENE = "examples/a2a3/tensormap_and_ringbuffer/paged_attention/test_paged_attention.py"


REAL = "dumps/paged_attention_CaseSmall1_args_dump_level2/args_dump"


def test_paged_attention_gives_the_records_and_bytes_of_the_real_dump(
    simpler_checkout, shared_data, tmp_path
):
    pytest.importorskip("torch")
    result = insight_trace.capture(
        simpler_checkout / SCENE, "CaseSmall1", output=tmp_path / "run", seed=20260601
    )
    assert result.passed
    theirs, their_bytes = _read(shared_data / REAL)
    ours, our_bytes = _read(tmp_path / "run" / "args_dump")
    assert ours.pop("case") == "CaseSmall1"  # what the runtime does not say
    assert {k: v for k, v in ours.items() if k != "args"} == {k: v for k, v in theirs.items() if k != "args"}
    assert len(ours["args"]) == len(theirs["args"]) == 72
    never_written = []
    for our, their in zip(ours["args"], theirs["args"], strict=True):
        assert {k: our[k] for k in their if k != "bin_offset"} == {
            k: v for k, v in their.items() if k != "bin_offset"
        }
        mine, real = _payload(our, our_bytes), _payload(their, their_bytes)
        if (our["func_id"], our["arg_index"]) == ([3], 6) and not _last_write(our):
            never_written.append((mine, real))
        else:
            assert mine == real, our
    # `out` before the only task that writes it: the scene's zeros here, what malloc gave there
    assert [mine for mine, _ in never_written] == [bytes(1024)] * 5
    (real,) = {real for _, real in never_written}
    found = np.frombuffer(real, np.uint64)
    # addresses in the process that recorded: another process cannot have them
    assert len(set(found.tolist())) == 128
    assert set((found >> 32).tolist()) == {0x7FEC}
    assert not (found % 16).any()


def test_where_out_begins_with_what_malloc_gave_all_72_payloads_are_those_of_the_real_dump(
    simpler_checkout, shared_data, tmp_path, monkeypatch
):
    torch = pytest.importorskip("torch")
    theirs, their_bytes = _read(shared_data / REAL)
    before = next(r for r in theirs["args"] if (r["func_id"], r["arg_index"]) == ([3], 6))
    remains = torch.frombuffer(bytearray(_payload(before, their_bytes)), dtype=torch.float32)
    make = LiveScene.generate_args

    def generate_args(live, case):
        args = make(live, case)
        args.out[:] = remains.reshape(args.out.shape)
        return args

    monkeypatch.setattr(LiveScene, "generate_args", generate_args)
    result = insight_trace.capture(
        simpler_checkout / SCENE, "CaseSmall1", output=tmp_path / "run", seed=20260601
    )
    assert result.passed
    ours, our_bytes = _read(tmp_path / "run" / "args_dump")
    payloads = [
        [_payload(r, content) for r in manifest["args"]]
        for manifest, content in ((ours, our_bytes), (theirs, their_bytes))
    ]
    assert payloads[0] == payloads[1]
    assert len(payloads[0]) == 72


def _last_write(record):
    return record["task_id"] == "0x000000020000000b" and record["stage"] == "after_completion"


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

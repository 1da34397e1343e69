"""Replays of what the runtime really recorded: every schema, every dispatch, our kernels and upstream's."""

from pathlib import Path

import pytest

import insight_trace
from insight_trace.insight import validate
from insight_trace.options import RunOptions
from insight_trace.replay.jobs import ReplayRequest
from insight_trace.replay.replaying import run_replay
from insight_trace.replay.verification import Status, verdict

ROOT = Path(__file__).resolve().parents[2]
OUR_SCENE = ROOT / "examples" / "paged_attention" / "scene.py"
UPSTREAM = "examples/a2a3/tensormap_and_ringbuffer/paged_attention/test_paged_attention.py"
WITH_PAYLOAD = [
    "paged_attention_CaseSmall1_tensor_dump_before_unified",
    "paged_attention_CaseSmall1_tensor_dump_unified",
    "paged_attention_CaseSmall1_tensor_dump_typed_scalars",
    "paged_attention_CaseSmall1_args_dump_func_id_int",
    "paged_attention_CaseSmall1_args_dump_level2",
]


def _replays(scene, dump, tmp_path):
    for dispatch_id in range(12):
        yield run_replay(
            ReplayRequest(
                scene,
                case="CaseSmall1",
                func_ids=(dispatch_id % 4,),
                dump_dir=dump,
                dispatch_id=dispatch_id,
                options=RunOptions(simulator="embedded"),
                output=tmp_path / f"replay{dispatch_id}",
            )
        )


@pytest.mark.parametrize("name", WITH_PAYLOAD)
def test_our_kernels_reproduce_every_recorded_dispatch_of_every_schema(name, recorded_dumps, tmp_path):
    for replay in _replays(OUR_SCENE, recorded_dumps / name, tmp_path):
        kernel = replay.job.kernels[0].name
        assert verdict(replay.checks) is Status.VERIFIED, [check.text for check in replay.checks]
        # UP carries its running sum on but for the last block, and writes the output but for the others
        unwritten = [check.slot for check in replay.checks if check.status is Status.UNWRITTEN]
        assert len(unwritten) == (kernel == "UP"), [check.text for check in replay.checks]
        assert replay.cycles
        assert replay.cycles > 100
        assert replay.directory is not None
        assert replay.directory.is_dir()


def test_upstreams_own_kernels_reproduce_what_they_recorded(simpler_checkout, recorded_dumps, tmp_path):
    dump = recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2"
    for replay in _replays(simpler_checkout / UPSTREAM, dump, tmp_path):
        assert verdict(replay.checks) is Status.VERIFIED, [check.text for check in replay.checks]
        for check in replay.checks:
            if replay.job.label in ("QK", "PV"):
                assert check.max_error == 0.0


def test_the_softmax_of_a_one_column_view_reads_its_whole_tile(recorded_dumps, tmp_path):
    dump = recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2"
    replay = insight_trace.replay(
        OUR_SCENE,
        case="CaseSmall1",
        func_id=1,
        dump_dir=dump,
        dispatch_id=9,
        simulator="embedded",
        output=tmp_path / "sf",
    )
    view = replay.arguments.at(0)
    assert view.shape == (16, 1)
    assert [check.status for check in replay.checks] == [Status.VERIFIED] * 3
    assert validate(replay.directory) == []


def test_a_dump_without_payload_replays_but_verifies_nothing(recorded_dumps, tmp_path):
    dump = recorded_dumps / "paged_attention_CaseSmall1_args_dump_level3"
    replay = insight_trace.replay(
        OUR_SCENE, func_id=0, dump_dir=dump, simulator="embedded", output=tmp_path / "qk"
    )
    assert {check.status for check in replay.checks} == {Status.UNVERIFIABLE}
    assert {str(item.tier) for item in replay.arguments.tensors} == {"synthetic", "output"}


def test_the_members_of_a_mix_replay_together_by_their_func_ids(simpler_checkout, shared_data, tmp_path):
    dump = shared_data / "dumps" / "mixed_example_case2_args_dump_level2"
    scene = simpler_checkout / "tests/st/a2a3/tensormap_and_ringbuffer/mixed_example/test_mixed_example.py"
    sets = {d.func_ids for d in insight_trace.load_dump(dump).dispatches}
    assert any(len(ids) == 3 for ids in sets)
    for number, ids in enumerate(sorted(sets)):
        replay = insight_trace.replay(
            scene, func_id=ids, dump_dir=dump, simulator="embedded", output=tmp_path / f"mix{number}"
        )
        assert verdict(replay.checks) is Status.VERIFIED, [check.text for check in replay.checks]

"""A replay without a dump records the one dispatch that it needs, and runs it as it was dispatched."""

import json
import shutil
from pathlib import Path

import pytest

import insight_trace
from insight_trace.__main__ import main
from insight_trace.arguments.overrides import parse_overrides
from insight_trace.capture.growing_dump import payload_limit
from insight_trace.errors import InputError, JobError, RequestError

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "examples" / "pypto_run"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def manifest():
    (found,) = Path("outputs").glob("*/args_dump/args_dump.json")
    return json.loads(found.read_text())


def test_the_payload_of_one_dispatch_is_recorded_and_the_run_ends_there():
    replay = insight_trace.replay(BUILD, func_id=1, output=Path("w"))
    assert [c.status for c in replay.checks] == ["verified"]
    recorded = manifest()
    assert {tuple(r["func_id"]) for r in recorded["args"]} == {(1,)}
    assert len({r["task_id"] for r in recorded["args"]}) == 1
    (payload,) = Path("outputs").glob("*/args_dump/args.bin")
    assert payload.stat().st_size == 2 * 16 * 64 * 4


def test_a_task_that_is_named_is_the_one_that_is_recorded():
    replay = insight_trace.replay(BUILD, func_id=1, task_id=0x1_0000_0004, output=Path("w"))
    assert replay.dispatch.task_id == 0x1_0000_0004
    assert {r["task_id"] for r in manifest()["args"]} == {"0x0000000100000004"}


def test_a_task_that_never_runs_is_an_error_and_leaves_nothing():
    with pytest.raises(JobError, match="the run has no such dispatch"):
        insight_trace.replay(BUILD, func_id=1, task_id=0x7777, output=Path("w"))
    assert not list(Path("outputs").glob("*"))


def test_payload_that_finds_no_room_is_refused_before_or_ends_the_run_and_is_removed():
    with pytest.raises(RequestError, match="do not fit"):
        payload_limit(Path("x"), 1 << 60)
    result = insight_trace.capture(BUILD, output=Path("run"), max_payload=1000)
    assert result.failure is not None
    assert "the payload grows past" in result.failure.message
    assert "--max-payload" in result.note
    assert not Path("run").exists()


def test_a_dump_whose_capture_has_not_ended_is_not_read():
    assert main(["capture", str(BUILD), "-o", "run"]) == 0
    Path("run/args_dump/.rows").write_bytes(b"")
    insight_trace.replay(
        BUILD, func_id=1, dump_dir="run", collect=False
    )  # killed when all but the rows was done
    manifest = Path("run/args_dump/args_dump.json")
    manifest.write_text(manifest.read_text().replace("{", '{"partial": true,', 1))
    with pytest.raises(InputError, match="has not ended"):
        insight_trace.replay(BUILD, func_id=1, dump_dir="run")


def test_the_recorded_members_decide_the_lanes(shared_data):
    build = shared_data / "pypto_builds" / "a5" / "spmd_mixed_matmul_bias_256x64"
    if not build.is_dir():
        pytest.skip("the shared data has no pypto_builds")
    replay = insight_trace.replay(build, func_id=(0, 1), output=Path("w"))
    assert replay.dispatch.func_ids == (0, 1, 1)
    assert [k.func_id for k in replay.job.kernels] == [0, 1, 1]
    assert replay.arguments.block_count == 4
    assert not replay.mismatched
    assert "verified" in {c.status for c in replay.checks}
    fewer = insight_trace.replay(build, func_id=(0, 1), output=Path("v"), blocks=1)
    assert "1 blocks ran, not 4" in fewer.differences


def test_a_build_and_the_dump_of_its_run_are_enough(capsys):
    shutil.copytree(BUILD, "build")
    dump = Path("build/dfx_outputs")
    assert main(["capture", "build", "-o", str(dump)]) == 0
    capsys.readouterr()
    assert main(["replay", "--build-dir", "build", "--list-tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[1].split() == ["0x0000000100000001", "0", "1", "2/2", "scale_blocks"]
    assert main(["replay", "--build-dir", "build", "--func", "square_rows", "--no-collect", "-o", "w"]) == 0
    assert "square_rows (aiv, func 1)" in capsys.readouterr().out
    assert main(["replay", "--build-dir", "build", "--args-dump", str(dump), "--func", "nobody"]) == 2


def test_the_kernel_of_a_build_gets_the_folder_that_its_users_present(capsys):
    shutil.copytree(BUILD, "build")
    assert main(["capture", "build", "-o", "build/dfx_outputs"]) == 0
    assert main(["replay", "--build-dir", "build", "--func", "square_rows"]) == 0
    (folder,) = Path("build_output").glob("incore_square_rows_build_*")
    assert {"square_rows.clean.json", "instr_metrics.json", "raw_simulator", "summary.txt"} <= {
        path.name for path in folder.iterdir()
    }
    assert (folder / "raw_simulator" / "visualize_data.bin").stat().st_size > 0
    text = (folder / "summary.txt").read_text()
    assert "square_rows (aiv)" in text
    assert "task 0x" in text
    assert "exact in" in text
    capsys.readouterr()
    # and of any trace in a workspace of ours
    assert main(["clean", str(folder), "--build-output-root", "again"]) == 0
    (same,) = Path("again").glob("incore_square_rows_build_*")
    assert {path.name for path in same.iterdir()} == {
        "square_rows.clean.json",
        "instr_metrics.json",
        "raw_simulator",
        "summary.txt",
    }


def test_the_dump_of_one_chip_of_several_belongs_to_the_program_it_ran(capsys):
    shutil.copytree(BUILD, "whole/next_levels/decode")
    place = Path("whole/dfx_outputs/rank1/d0")
    assert main(["capture", "whole::decode", "-o", str(place)]) == 0
    (place / "dispatch_program.json").write_text('{"program": "decode"}')
    capsys.readouterr()
    assert main(["replay", "--build-dir", "whole", "--list-tasks"]) == 0
    assert "square_rows" in capsys.readouterr().out
    shutil.copytree(place, place.with_name("d1"))
    assert main(["replay", "--build-dir", "whole", "--list-tasks"]) == 2
    assert "holds 2 dumps: rank1/d0, rank1/d1" in capsys.readouterr().err


def test_a_run_may_name_its_kernels_by_a_map_of_its_own(capsys):
    shutil.copytree(BUILD, "build")
    dump = Path("build/dfx_outputs")
    assert main(["capture", "build", "-o", str(dump)]) == 0
    names = {"level": 2, "callable_id_to_name": {"0": "Scale", "1": "Square"}}
    (dump / "name_map_build.json").write_text(json.dumps(names))
    (dump / "name_map_above.json").write_text('{"level": 3, "callable_id_to_name": {"0": "Square"}}')
    capsys.readouterr()
    assert main(["replay", "--build-dir", "build", "--func", "Square", "--no-collect", "-o", "w"]) == 0
    assert "square_rows (aiv, func 1)" in capsys.readouterr().out
    assert main(["replay", "--build-dir", "build", "--func", "scale_blocks", "--no-collect", "-o", "v"]) == 0
    assert main(["replay", "--build-dir", "build", "--func", "Cube"]) == 2
    capsys.readouterr()
    assert main(["replay", "--build-dir", "build", "--list-tasks"]) == 0
    assert "Square" in capsys.readouterr().out
    (dump / "name_map_build.json").write_text("[" * 60_000)
    assert main(["replay", "--build-dir", "build", "--func", "Square"]) == 1
    assert "nested too deep" in capsys.readouterr().err


SCALAR_STORES = """#include <cstdint>
#include <pto/pto-inst.hpp>
#include "tensor.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ float *data[3];
    for (int i = 0; i < 3; ++i) {
        __gm__ ChipTensor *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[i]);
        data[i] = reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset;
    }
    for (int i = 0; i < 64 * 64; ++i) data[2][i] = data[0][i] + data[1][i];
    dcci(data[2], ENTIRE_DATA_CACHE, CACHELINE_OUT);
}
"""


def test_a_kernel_of_scalar_stores_that_is_verified_is_not_degenerate():
    scene = Path(shutil.copytree(ROOT / "examples" / "vector_chain", "chain")) / "scene.py"
    (scene.parent / "kernels" / "add.cpp").write_text(SCALAR_STORES)
    replay = insight_trace.replay(scene, func_id=0, output=Path("w"))
    assert [c.status for c in replay.checks] == ["verified"]
    assert not [w for w in replay.warnings if "degenerate" in w]


def test_a_kernel_that_was_steered_past_its_work_is_degenerate():
    scene = ROOT / "examples" / "vector_chain" / "scene.py"
    replay = insight_trace.replay(scene, func_id=1, output=Path("w"), overrides=parse_overrides(["3=7"]))
    assert [c.status for c in replay.checks] == ["unverifiable"]
    assert [w for w in replay.warnings if "degenerate" in w]

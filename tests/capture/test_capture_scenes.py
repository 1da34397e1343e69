"""Our scenes run on the host, give what their golden functions expect, and leave a dump that loads."""

import json
import shutil

import pytest
from capture_scenes import EXAMPLES

import insight_trace
from insight_trace.__main__ import main
from insight_trace.model import CoreType, ScalarArg, TensorArg

CASES = [
    ("paged_attention", "CaseSmall1", 12, 72),
    ("paged_attention", "CaseSmall2", 32, 192),
    ("paged_attention", "CaseVarSeq2", 20, 120),
    ("paged_attention", "CaseWide", 12, 72),
    ("vector_chain", "Default", 4, 14),
    ("mixed_example", "Default", 1, 9),
    ("mixed_example", "Many", 4, 36),
    ("spmd_multiblock", "Blocks4", 1, 9),
    ("spmd_multiblock", "Blocks48", 1, 97),
]


@pytest.mark.parametrize(("scene", "case", "tasks", "records"), CASES)
def test_every_scene_of_ours_passes_its_golden_comparison(scene, case, tasks, records, tmp_path, capsys):
    out = tmp_path / "run"
    code = main(["capture", str(EXAMPLES / scene / "scene.py"), "--case", case, "-o", str(out), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == 0, result
    assert result["golden"]["passed"]
    assert (result["tasks"], result["records"]) == (tasks, records)
    manifest = json.loads((out / "args_dump" / "args_dump.json").read_text())
    assert manifest["total_args"] == records == len(manifest["args"])
    assert "partial" not in manifest
    assert manifest["dropped_records"] == 0
    assert not insight_trace.load_dump(out).warnings


def test_what_one_task_writes_is_what_the_next_one_reads(tmp_path):
    capture = insight_trace.capture(
        EXAMPLES / "paged_attention" / "scene.py", "CaseSmall1", output=tmp_path / "run"
    )
    assert capture.passed
    dispatches = list(insight_trace.load_dump(tmp_path / "run").dispatches)
    assert [d.kernel for d in dispatches] == ["QK", "SF", "PV", "UP"] * 3
    assert [d.task_id for d in dispatches] == [0x2_0000_0000 + n for n in range(12)]
    payload = (tmp_path / "run" / "args_dump" / "args.bin").read_bytes()

    def taken(dispatch, slot, when):
        record = getattr(dispatches[dispatch].arguments[slot], when)
        return payload[record.offset : record.offset + record.size]

    assert taken(0, 2, "after") == taken(1, 0, "before")  # QK -> SF
    assert taken(1, 1, "after") == taken(2, 0, "before")  # SF -> PV
    assert taken(2, 2, "after") == taken(3, 2, "before")  # PV -> UP
    assert taken(3, 3, "after") == taken(7, 3, "before")  # UP -> the next block's UP
    # the last block holds a single key: a strided view of one column, gathered
    view = dispatches[9].arguments[0]
    assert (view.shape, view.strides, view.before.size) == ((16, 1), (16, 1), 64)
    assert view.buffer_size == 1024


def test_a_tensor_dump_lies_beside_the_other_and_holds_the_same(tmp_path):
    scene = str(EXAMPLES / "vector_chain" / "scene.py")
    assert main(["capture", scene, "-o", str(tmp_path / "run"), "--tensor-dump"]) == 0
    (tmp_path / "alone").mkdir()
    (tmp_path / "run" / "tensor_dump").rename(tmp_path / "alone" / "tensor_dump")
    assert (tmp_path / "alone" / "tensor_dump" / "kernel_args_dump.json").is_file()
    with_payload = [
        [(d.kernel, d.task_id, [a.before.size for a in d.arguments if isinstance(a, TensorArg) and a.before])
         for d in insight_trace.load_dump(tmp_path / place).dispatches]
        for place in ("run", "alone")
    ]  # fmt: skip
    assert with_payload[0] == with_payload[1]
    command = ["replay", scene, "--func-id", "0", "--dump-dir", str(tmp_path / "alone"), "--dispatch-id", "0"]
    assert main([*command, "-o", str(tmp_path / "replayed")]) == 0


def test_the_dump_says_what_ran_where(tmp_path):
    insight_trace.capture(EXAMPLES / "mixed_example" / "scene.py", "Default", output=tmp_path / "mix")
    (mix,) = insight_trace.load_dump(tmp_path / "mix").dispatches
    assert mix.core_type is CoreType.MIX
    assert mix.func_ids == (0, 1, 2)
    assert mix.kernel == "MATMUL+ADD+MUL"
    insight_trace.capture(EXAMPLES / "spmd_multiblock" / "scene.py", "Blocks4", output=tmp_path / "spmd")
    manifest = json.loads((tmp_path / "spmd" / "args_dump" / "kernel_args_dump.json").read_text())
    assert [d["block_idx"] for d in manifest["dispatches"]] == [0, 1, 2, 3]
    assert {d["block_count"] for d in manifest["dispatches"]} == {4}
    before = [r for r in _records(tmp_path / "spmd") if r["stage"] == "before_dispatch"]
    after = [r for r in _records(tmp_path / "spmd") if r["stage"] == "after_completion"]
    assert len(before) == 4 * 2  # once for each block: one tensor and one scalar
    assert len(after) == 1  # once for the task


def test_scalars_keep_their_type_value_and_bits(tmp_path):
    insight_trace.capture(EXAMPLES / "vector_chain" / "scene.py", output=tmp_path / "run")
    dispatches = insight_trace.load_dump(tmp_path / "run").dispatches
    value, count = (a for a in dispatches[1].arguments if isinstance(a, ScalarArg))
    assert (value.dtype.name, value.bits) == ("FLOAT32", 0x3F800000)
    assert (count.dtype.name, count.bits) == ("INT32", 64)
    assert all(isinstance(a, TensorArg) for a in dispatches[0].arguments)


def test_the_same_seed_gives_the_same_bytes_whatever_the_order(tmp_path):
    scene = EXAMPLES / "paged_attention" / "scene.py"
    runs = {"plain": {}, "one worker": {"workers": 1}}
    runs |= {f"shuffled {n}": {"shuffle": n, "workers": 3} for n in (1, 2, 3)}
    found = set()
    for name, options in runs.items():
        result = insight_trace.capture(scene, "CaseVarSeq2", output=tmp_path / name, seed=5, **options)
        assert result.passed
        folder = tmp_path / name / "args_dump"
        found.add(
            tuple((folder / f).read_bytes() for f in ("args_dump.json", "args.bin", "kernel_args_dump.json"))
        )
    assert len(found) == 1
    insight_trace.capture(scene, "CaseVarSeq2", output=tmp_path / "other", seed=6)
    assert (tmp_path / "other" / "args_dump" / "args.bin").read_bytes() != next(iter(found))[1]


# each step is a name as it was before; the orchestration is the same
EARLIER = [
    {"ChipTensor": "Tensor", "CoreTaskArgs": "Arg", "const ChipTaskArgs": "const ChipStorageTaskArgs"},
    {"CoreTaskArgs": "L0TaskArgs", "ChipTaskArgs": "L2TaskArgs", "rt_submit_": "pto2_rt_submit_"},
    {".ref()": "", "args.tensor(2).ref()": "from_tensor_arg(args.tensor(2))"},
]


@pytest.mark.parametrize("names", EARLIER)
def test_orchestrations_with_earlier_names_run_too(names, tmp_path):
    shutil.copytree(EXAMPLES / "vector_chain", tmp_path / "chain")
    source = tmp_path / "chain" / "orchestration.cpp"
    text = source.read_text()
    for new, old in sorted(names.items(), key=lambda pair: -len(pair[0])):
        assert new in text
        text = text.replace(new, old)
    source.write_text(text)
    assert insight_trace.capture(tmp_path / "chain" / "scene.py", level=0).passed


def _records(folder):
    return json.loads((folder / "args_dump" / "args_dump.json").read_text())["args"]

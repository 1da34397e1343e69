"""`insight-trace dump` as a person types it."""

import json
import os
import shutil

import ml_dtypes
import numpy as np
import pytest
from dump_examples import record, scalar, scene_file, write

from insight_trace.__main__ import main
from insight_trace.dump.load import stream_dispatches
from insight_trace.dump.manifest_reader import Manifest

PAGED = "paged_attention_CaseSmall1_"


@pytest.fixture
def dumps(shared_data):
    return shared_data / "dumps"


@pytest.fixture
def small(tmp_path):
    """Two dispatches: tensors with content, a scalar, an inout and an unnamed slot."""
    values = np.array([1.5, -2.0, np.nan, np.inf], np.float32)
    halves = np.array([0.5, 1.0], ml_dtypes.bfloat16)
    payload = values.tobytes() + halves.tobytes() + values[::-1].tobytes()
    rows = [
        record(task_id="0x5", func_id=[0], arg_index=0, bin_size=16),
        scalar(1.5, "FLOAT32", task_id="0x5", func_id=[0], arg_index=2),
        record(
            task_id="0x5",
            func_id=[0],
            arg_index=1,
            role="output",
            stage="after_completion",
            dtype="BFLOAT16",
            shape=[1, 2],
            strides=[2, 1],
            bin_offset=16,
            bin_size=4,
        ),
        record(task_id="0x6", func_id=[1], role="inout", bin_offset=20, bin_size=16),
        record(task_id="0x6", func_id=[1], role="inout", stage="after_completion"),
    ]
    write(tmp_path / "run" / "args_dump", rows, payload=payload)
    return tmp_path / "run"


def run(capsys, *words):
    status = main(["dump", *map(str, words)])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return status, captured.out, captured.err


def test_list_shows_one_row_per_dispatch(small, capsys):
    status, out, _ = run(capsys, "list", small)
    assert status == 0
    heading, *rows = out.splitlines()
    assert heading.split()[:3] == ["disp", "task", "func"]
    assert [row.split()[:3] for row in rows] == [
        ["0", "0x0000000000000005", "0"],
        ["1", "0x0000000000000006", "1"],
    ]


def test_list_shows_one_row_per_argument_and_stage(small, capsys):
    status, out, _ = run(capsys, "list", small, "--args")
    assert status == 0
    lines = out.splitlines()
    assert len(lines) == 6
    assert lines[0].split()[:4] == ["index", "disp", "task", "func"]
    assert lines[2].split()[-3:] == ["1.5", "bits", "0x3fc00000"]


@pytest.mark.parametrize(
    ("words", "indices"),
    [
        (["--task", "0x6"], [3, 4]),
        (["--task-id", "5"], [0, 1, 2]),
        (["--func-id", "1"], [3, 4]),
        (["--dispatch-id", "0", "--slot", "2"], [1]),
        (["--stage", "after"], [2, 4]),
        (["--stage", "before_dispatch"], [0, 1, 3]),
        (["--role", "inout"], [3, 4]),
        (["-a", "0"], [0, 3, 4]),
        (["--index", "2"], [2]),
    ],
)
def test_list_filters(words, indices, small, capsys):
    _, out, _ = run(capsys, "list", small, "--args", *words)
    assert [int(line.split()[0]) for line in out.splitlines()[1:]] == indices


def test_list_filters_by_the_name_a_scene_gives(small, tmp_path, capsys):
    scene = scene_file(tmp_path)
    _, out, _ = run(capsys, "list", small, "--scene", scene, "--kernel", "sf")
    assert [line.split()[3] for line in out.splitlines()[1:]] == ["SF"]


def test_a_kernel_name_without_a_scene_asks_for_it(small, capsys):
    status, _, err = run(capsys, "list", small, "--kernel", "SF")
    assert status == 2
    assert "give --scene" in err


def test_list_says_what_there_is_when_nothing_matches(small, capsys):
    status, out, err = run(capsys, "list", small, "--func-id", "9")
    assert (status, out) == (2, "")
    assert "nothing matches func id 9" in err
    assert "func ids 0, 1" in err


def test_list_as_json_holds_every_promised_key(small, capsys):
    _, out, _ = run(capsys, "list", small, "--json")
    rows = json.loads(out)
    assert [row["dispatch_id"] for row in rows] == [0, 1]
    first = rows[0]
    assert first.keys() >= {
        "dispatch_id",
        "task_id",
        "func_ids",
        "kernel",
        "core_type",
        "block_count",
        "args",
        "inferred",
    }
    for arg in first["args"]:
        assert arg.keys() >= {"slot", "kind", "dtype", "shape", "strides", "value", "bits", "payload"}
    assert first["task_id"] == "0x0000000000000005"
    assert [a["slot"] for a in first["args"]] == [0, 1, 2]
    assert first["args"][0]["payload"] == {"before": True, "after": False}
    assert first["args"][2] | {"value": 1.5, "bits": "0x000000003fc00000"} == first["args"][2]
    assert rows[1]["args"][0]["payload"] == {"before": True, "after": False}


def test_list_as_json_of_nothing_is_an_empty_list(small, capsys):
    status, out, _ = run(capsys, "list", small, "--json", "--func-id", "9")
    assert (status, json.loads(out)) == (0, [])


def test_list_as_json_holds_dispatches_without_arguments(tmp_path, capsys):
    (tmp_path / "kernel_args_dump.json").write_text(
        '{"dispatches": [{"task_id": 3, "func_id": 1, "args": []}]}'
    )
    _, out, _ = run(capsys, "list", tmp_path, "--json")
    assert [(row["task_id"], row["args"]) for row in json.loads(out)] == [("0x0000000000000003", [])]


def test_list_as_json_names_what_was_inferred(dumps, tmp_path, capsys):
    words = [dumps / (PAGED + "tensor_dump_unified"), "--scene", scene_file(tmp_path), "--json"]
    _, out, _ = run(capsys, "list", *words)
    rows = json.loads(out)
    assert [row["kernel"] for row in rows] == ["QK", "SF", "PV", "UP"] * 3
    assert all("func_ids" in row["inferred"] for row in rows)


def test_list_prints_its_first_rows_while_it_reads(tmp_path, capsys):
    rows = [record(task_id=n) for n in range(20_000)]
    rows[-1]["shape"] = [-1]
    status, out, err = run(capsys, "list", "--args", write(tmp_path, rows))
    assert status == 1
    assert "args[19999], key shape" in err
    assert len(out.splitlines()) > 10_000, "rows before the broken one were printed before it was reached"


def test_the_first_dispatch_needs_only_the_first_piece_of_the_manifest(tmp_path, monkeypatch):
    path = write(tmp_path, [record(task_id=n) for n in range(20_000)])
    decoded = []
    whole = Manifest.batches

    def counted(self, kind):
        for batch in whole(self, kind):
            decoded.append(len(batch))
            yield batch

    monkeypatch.setattr(Manifest, "batches", counted)
    assert next(stream_dispatches(path, None, [])).dispatch_id == 0
    assert sum(decoded) < 1000


def test_show_gives_statistics_and_bits(small, capsys):
    _, out, _ = run(capsys, "show", small, "--dispatch-id", "0")
    assert "min -2  max 1.5  mean -0.25" in out
    assert "1 NaN, 1 Inf of 4" in out
    assert "first     1.5 -2 nan inf" in out
    assert "scalar    f32  1.5  bits 0x3fc00000" in out


def test_show_as_json_is_valid_json_even_with_nan(small, capsys):
    _, out, _ = run(capsys, "show", small, "--index", "0", "--json")
    [row] = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert row["statistics"] == {
        "count": 4,
        "minimum": -2.0,
        "maximum": 1.5,
        "mean": -0.25,
        "nan": 1,
        "infinite": 1,
        "first": [1.5, -2.0, "NaN", "Inf"],
        "last": [],
    }


def test_export_writes_numpy_files(small, tmp_path, capsys):
    status, out, _ = run(capsys, "export", small, "-o", tmp_path / "out")
    assert status == 0
    assert out.startswith("4 files, 1 without recorded content left out")
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names[0] == "dispatch_0_task_0x0000000000000005_after_out1.npy"
    halves = np.load(tmp_path / "out" / names[0])
    assert (halves.dtype, halves.tolist()) == (np.float32, [[0.5, 1.0]])
    factor = np.load(tmp_path / "out" / "dispatch_0_task_0x0000000000000005_before_in2.npy")
    assert (factor.shape, float(factor)) == ((), 1.5)


def test_export_writes_an_aligned_overview_and_every_index(small, tmp_path, capsys):
    run(capsys, "export", small, "--index", "2", "--format", "txt", "-o", tmp_path)
    text = (tmp_path / "dispatch_0_task_0x0000000000000005_after_out1.txt").read_text()
    assert "# dtype: BFLOAT16\n" in text
    assert text.endswith("# Overview:\n0.5   1\n\n# Detail:\n[0, 0] 0.5\n[0, 1] 1\n")


def test_export_writes_tables(small, tmp_path, capsys):
    run(capsys, "export", small, "--task", "5", "--format", "csv", "-o", tmp_path)
    assert (tmp_path / "dispatch_0_task_0x0000000000000005_after_out1.csv").read_text() == (
        "i0,i1,value\n0,0,0.5\n0,1,1\n"
    )
    assert (tmp_path / "dispatch_0_task_0x0000000000000005_before_in2.csv").read_text() == (
        "value,bits\n1.5,0x000000003fc00000\n"
    )


def test_export_replaces_nothing_unasked(small, tmp_path, capsys):
    words = ["export", small, "--index", "0", "-o", tmp_path / "out"]
    assert run(capsys, *words)[0] == 0
    next((tmp_path / "out").iterdir()).write_bytes(b"mine")
    status, _, err = run(capsys, *words)
    assert status == 2
    assert "exists already" in err
    assert run(capsys, *words, "--force")[0] == 0


def test_export_goes_beside_the_manifest_by_default(small, capsys):
    run(capsys, "export", small, "--index", "0")
    assert len(list((small / "args_dump" / "npy").iterdir())) == 1


def test_the_newest_dump_under_outputs_is_the_default(tmp_path, monkeypatch, capsys):
    for age, name in enumerate(["new", "old"]):
        path = write(tmp_path / "outputs" / name / "args_dump", [record(task_id=age)])
        os.utime(path, (1e9 - age, 1e9 - age))
    monkeypatch.chdir(tmp_path)
    _, out, err = run(capsys, "list")
    assert "outputs/new" in err
    assert "0x0000000000000000" in out
    shutil.rmtree(tmp_path / "outputs")
    status, _, err = run(capsys, "list")
    assert status == 2
    assert "no dump under outputs/" in err


# --- diff -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        "tensor_dump_unified",
        "tensor_dump_typed_scalars",
        "args_dump_func_id_int",
        "tensor_dump_before_unified",
        "args_dump_level3",
    ],
)
def test_paged_attention_is_equal_in_every_schema(other, dumps, capsys):
    status, out, _ = run(capsys, "diff", dumps / (PAGED + "args_dump_level2"), dumps / (PAGED + other))
    assert status == 0
    assert out.startswith("equal      12 dispatches")


def copied(folder, to):
    shutil.copytree(folder, to, copy_function=shutil.copyfile)
    for path in to.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return to


@pytest.mark.parametrize("name", ["args_dump_level2", "tensor_dump_unified"])
def test_one_changed_byte_of_any_payload_is_named_by_task_slot_and_element(name, dumps, tmp_path, capsys):
    """Every payload of the dump in turn, one byte changed: the first difference is that byte's element."""
    other = PAGED + ("tensor_dump_unified" if name == "args_dump_level2" else "args_dump_level2")
    changed = copied(dumps / (PAGED + name), tmp_path / "changed")
    manifest = next(changed.rglob("*.json"))
    rows = json.loads(manifest.read_text())
    bin_path = manifest.parent / rows["bin_file"]
    whole = bin_path.read_bytes()
    for row in rows.get("args") or rows["tensors"]:
        if not row["bin_size"]:
            continue
        place = row["bin_offset"] + row["bin_size"] // 2
        bin_path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        _, out, _ = run(capsys, "diff", changed, dumps / other, "--json")
        found = json.loads(out)
        width = row["bin_size"] // row["numel"]
        element = np.unravel_index((row["bin_size"] // 2) // width, row["shape"])
        assert not found["equal"], row
        first = found["first"]
        assert (first["task_id"], first["slot"]) == (row["task_id"], row["arg_index"])
        # Slot 6 of UP is memory that nobody has written yet in one of the two runs.
        assert first["stage"] == row["stage"] or row["arg_index"] == 6
        assert first["element"] == [int(i) for i in element]
        assert first["count"] == 1


def test_a_difference_is_a_failed_job_with_a_readable_line(small, tmp_path, capsys):
    changed = copied(small, tmp_path / "changed")
    path = changed / "args_dump" / "args.bin"
    content = bytearray(path.read_bytes())
    content[4:8] = np.float32(-2.5).tobytes()
    path.write_bytes(content)
    status, out, _ = run(capsys, "diff", small, changed)
    assert status == 1
    assert out.splitlines()[0] == (
        "differs    first at dispatch 0 · task 0x0000000000000005 · slot 0 · before · element [1]: "
        "-2.0 against -2.5 (1 of 4 elements differ, largest by 0.5)"
    )


@pytest.mark.parametrize(("words", "status"), [(["--atol", "0.6"], 0), (["--rtol", "0.01"], 1), ([], 1)])
def test_tolerances_decide(words, status, small, tmp_path, capsys):
    changed = copied(small, tmp_path / "changed")
    path = changed / "args_dump" / "args.bin"
    content = bytearray(path.read_bytes())
    content[4:8] = np.float32(-2.5).tobytes()
    path.write_bytes(content)
    assert run(capsys, "diff", small, changed, *words)[0] == status


def test_without_tolerance_the_sign_of_zero_counts(tmp_path, capsys):
    for name, zero in (("a", 0.0), ("b", -0.0)):
        write(tmp_path / name, [record(bin_size=16)], payload=np.full(4, zero, np.float32).tobytes())
    assert run(capsys, "diff", tmp_path / "a", tmp_path / "b")[0] == 1
    assert run(capsys, "diff", tmp_path / "a", tmp_path / "b", "--atol", "1e-9")[0] == 0


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([record()], [record(shape=[5])], "slot 0: shape (4,) against (5,)"),
        ([record()], [record(dtype="INT32")], "slot 0: dtype FLOAT32 against INT32"),
        ([record()], [record(strides=[2])], "slot 0: strides (1,) against (2,)"),
        ([record()], [record(func_id=[2])], "func ids [1] against [2]"),
        ([scalar(1)], [scalar(2)], "slot 0: bits 0x1 against 0x2"),
        ([record()], [scalar(2)], "slot 0: a tensor against a scalar"),
        ([record()], [record(), record(arg_index=1)], "slot 1: only in the second dump"),
        ([record(), record(task_id=9)], [record()], "only in the first dump"),
        ([record()], [record(), record(task_id=9)], "only in the second dump"),
        ([record()] * 2, [record()], "2 blocks against 1"),
    ],
)
def test_everything_that_can_differ_is_named(left, right, expected, tmp_path, capsys):
    write(tmp_path / "a", left)
    write(tmp_path / "b", right)
    status, out, _ = run(capsys, "diff", tmp_path / "a", tmp_path / "b")
    assert status == 1
    assert expected in out


def test_a_recorded_tensor_is_compared_with_a_golden_file(small, tmp_path, capsys):
    golden = tmp_path / "golden.npy"
    np.save(golden, np.array([[0.5, 1.0]], np.float32))
    chosen = ["--dispatch-id", "0", "--slot", "1"]
    assert run(capsys, "diff", small, golden, *chosen)[0] == 0
    np.save(golden, np.array([[0.5, 1.25]], np.float32))
    status, out, _ = run(capsys, "diff", small, golden, *chosen)
    assert status == 1
    assert "slot 1 · after · element [0,1]: 1.0 against 1.25" in out
    assert run(capsys, "diff", small, golden, *chosen, "--rtol", "0.3")[0] == 0


def test_a_golden_file_may_be_raw_bytes(small, tmp_path, capsys):
    golden = tmp_path / "golden.bin"
    golden.write_bytes(np.array([0.5, 1.0], ml_dtypes.bfloat16).tobytes())
    assert run(capsys, "diff", small, golden, "--slot", "1")[0] == 0
    golden.write_bytes(b"123")
    status, _, err = run(capsys, "diff", small, golden, "--slot", "1")
    assert status == 1
    assert "3 bytes, the tensor has 4" in err


def test_a_golden_file_needs_one_tensor_to_be_compared_with(small, tmp_path, capsys):
    golden = tmp_path / "golden.npy"
    np.save(golden, np.zeros(4, np.float32))
    status, _, err = run(capsys, "diff", small, golden)
    assert status == 2
    assert "--dispatch-id, --slot" in err


def test_a_broken_golden_file_is_an_error(small, tmp_path, capsys):
    golden = tmp_path / "golden.npy"
    golden.write_bytes(b"nothing")
    status, _, err = run(capsys, "diff", small, golden, "--slot", "1")
    assert status == 1
    assert "golden.npy" in err

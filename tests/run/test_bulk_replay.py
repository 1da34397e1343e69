"""Every dispatch of a dump, or a sample of all kinds of them, is replayed, verified and told in one table."""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.dump.load import load_dump
from insight_trace.errors import RequestError
from insight_trace.run.bulk_replay import JOURNAL, open_folder, sampled
from insight_trace.scene.static import load_scene

SCENE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dump") / "small"
    assert main(["capture", str(SCENE), "--case", "CaseSmall1", "-o", str(folder)]) == 0
    return folder


def test_all_dispatches_are_verified_and_told_in_one_table(dump, tmp_path, capsys):
    words = ["replay", str(SCENE), "--case", "CaseSmall1", "--dump-dir", str(dump), "--all", "--jobs", "2"]
    assert main([*words, "-o", str(tmp_path / "all")]) == 0
    said = capsys.readouterr().out
    assert "12 dispatches · 12 verified · 0 wrong" in said
    with (tmp_path / "all" / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["dispatch_id"]) for row in rows] == list(range(12))
    assert {row["verdict"] for row in rows} == {"verified"}
    assert Counter(row["kernel"] for row in rows) == {"QK": 3, "SF": 3, "PV": 3, "UP": 3}
    summary = json.loads((tmp_path / "all" / "summary.json").read_text())
    assert [entry["verified"] for entry in summary["kernels"]] == [3, 3, 3, 3]
    assert ("summary.parquet" in said) == (not (tmp_path / "all" / "summary.parquet").exists())
    capsys.readouterr()
    # nothing is run again
    assert main([*words, "-o", str(tmp_path / "all"), "--json"]) == 0
    assert main([*words, "-o", str(tmp_path / "all")]) == 0
    assert "12 known before" in capsys.readouterr().out


def test_one_kernel_and_a_sample_are_chosen(dump, tmp_path, capsys):
    words = ["replay", str(SCENE), "--case", "CaseSmall1", "--dump-dir", str(dump), "--jobs", "1", "--json"]
    assert main([*words, "--all", "--func-id", "1", "-o", str(tmp_path / "sf")]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["kernels"]
    assert (entry["kernel"], entry["verified"]) == ("SF", 3)
    assert main([*words, "--sample", "5", "-o", str(tmp_path / "five")]) == 0
    entries = json.loads(capsys.readouterr().out)["kernels"]
    assert sum(entry["dispatches"] for entry in entries) == 5
    assert len(entries) == 4


def test_a_wrong_output_is_a_mismatch_with_its_dispatch(dump, tmp_path, capsys):
    shutil.copytree(dump, tmp_path / "dump")
    loaded = load_dump(tmp_path / "dump")
    victim = next(d for d in loaded.dispatches if d.func_ids == (1,))
    after = next(a.after for a in victim.arguments if getattr(a, "after", None) is not None)
    with after.path.open("r+b") as file:
        file.seek(after.offset)
        file.write(b"\x41\x41\x41\x41")
    words = ["replay", str(SCENE), "--case", "CaseSmall1", "--dump-dir", str(tmp_path / "dump"), "--all"]
    assert main([*words, "--jobs", "1", "-o", str(tmp_path / "all"), "--func-id", "1"]) == 1
    assert f"mismatch   dispatch {victim.dispatch_id} SF" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--all"], "replay dispatches of a dump"),
        (["--all", "--dump-dir", "D", "--dispatch-id", "3"], "choose their dispatches"),
        (["--sample", "0", "--dump-dir", "D"], "at least one"),
    ],
)
def test_what_does_not_go_together_is_refused(words, said, capsys):
    assert main(["replay", str(SCENE), "--case", "CaseSmall1", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("force", [False, True])
def test_a_table_of_somebody_elses_is_not_replaced(force, tmp_path):
    (tmp_path / "summary.csv").write_text("mine")
    with pytest.raises(RequestError, match="is not of this command"):
        open_folder(tmp_path, "all", force=force)
    (tmp_path / JOURNAL).touch()
    assert open_folder(tmp_path, "all", force=force) == tmp_path


def test_a_sample_has_every_form_before_it_has_one_twice(dump):
    forms = [d.form for d in load_dump(dump).dispatches]
    for count in range(1, len(forms) + 3):
        chosen = sampled(forms, count)
        assert len(chosen) == len(set(chosen)) == min(count, len(forms))
        assert len({forms[i] for i in chosen}) == min(count, len(set(forms)))


def test_old_verdicts_are_not_repeated_when_a_header_or_the_payload_changed(dump, tmp_path, capsys):
    scene = tmp_path / "scene"
    shutil.copytree(SCENE.parent, scene)
    copy = tmp_path / "dump"
    shutil.copytree(dump, copy)
    (kernel,) = scene.rglob("softmax.cpp")
    (kernel.parent / "mine.h").write_text("#define MINE 0\n")
    kernel.write_text(
        '#include "mine.h"\n' + kernel.read_text() + '\nextern "C" int mine() { return MINE; }\n'
    )
    words = [
        "replay",
        str(scene / "scene.py"),
        "--case",
        "CaseSmall1",
        "--dump-dir",
        str(copy),
        "--all",
        "--jobs",
        "1",
    ]
    words += ["--func-id", "1", "-o", str(tmp_path / "all")]
    assert main(words) == 0
    assert main(words) == 0
    assert "3 known before" in capsys.readouterr().out
    (kernel.parent / "mine.h").write_text("#define MINE 1\n")
    assert main(words) == 0
    assert "known before" not in capsys.readouterr().out
    payload = next(iter(copy.rglob("args.bin")))
    payload.write_bytes(bytes(payload.stat().st_size))
    assert main(words) == 1
    assert "3 wrong" in capsys.readouterr().out


def test_a_dump_that_lost_records_or_has_nothing_to_compare_with_is_not_called_right(dump, tmp_path, capsys):
    copy = tmp_path / "dump"
    shutil.copytree(dump, copy)
    for manifest in copy.rglob("kernel_args_dump.json"):
        manifest.unlink()  # as a device leaves it: one manifest
    (manifest,) = copy.rglob("args_dump.json")
    document = json.loads(manifest.read_text())
    document["dropped_records"] = 52
    manifest.write_text(json.dumps(document))
    words = ["replay", str(SCENE), "--case", "CaseSmall1", "--dump-dir", str(copy), "--all", "--jobs", "1"]
    words += ["--func-id", "1", "-o", str(tmp_path / "all")]
    assert main(words) == 1
    told = capsys.readouterr()
    assert "the dump lost 52 records" in told.err
    assert "52 records were dropped" in told.out
    document["dropped_records"] = 0
    for row in document["args"]:
        if row["stage"] == "after_completion":
            row["bin_size"] = 0
    manifest.write_text(json.dumps(document))
    assert main(words) == 1
    told = capsys.readouterr()
    assert "could not be verified" in told.out
    assert "none of the 3 dispatches could be verified" in told.err


def test_a_dump_of_another_case_is_refused_and_its_own_case_is_taken(dump, tmp_path, capsys):
    scene = tmp_path / "scene"
    shutil.copytree(SCENE.parent, scene)
    names = [case.name for case in load_scene(SCENE).cases]
    other = next(name for name in names if name != "CaseSmall1")
    words = ["replay", str(scene / "scene.py"), "--dump-dir", str(dump), "--func-id", "1"]
    assert main([*words, "--case", other, "-o", str(tmp_path / "w")]) == 2
    assert "this dump is of the case CaseSmall1" in capsys.readouterr().err
    assert main([*words, "--case", other, "--all", "-o", str(tmp_path / "a")]) == 2
    assert main([*words, "-o", str(tmp_path / "w")]) == 0
    assert "CaseSmall1" in capsys.readouterr().out


def test_a_mistyped_platform_is_refused_with_what_was_meant(dump, capsys):
    words = ["replay", str(SCENE), "--dump-dir", str(dump), "--func-id", "1", "--platform", "a5sin"]
    assert main(words) == 2
    assert "did you mean 'a5sim'?" in capsys.readouterr().err

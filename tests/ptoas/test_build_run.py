"""Kernels are traced on dispatches of the build's own run, and the books say so."""

import contextlib
import csv
import io
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.insight import open_trace
from insight_trace.profile.build_run import _chosen
from insight_trace.profile.manifest import MANIFEST, SUMMARY

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "examples" / "pypto_run"


@pytest.fixture
def build(tmp_path):
    return Path(shutil.copytree(BUILD, tmp_path / "build"))


def profiled(build, *words):
    assert main(["profile", "--build-dir", str(build), *words]) == 0
    root = Path((build / "latest_all_funcs_kernel_insight_export_root.txt").read_text().strip())
    with (root / MANIFEST).open(newline="") as file:
        return root, {row["func"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A build, the run that is made of it without any choice, and what was printed."""
    build = Path(shutil.copytree(BUILD, tmp_path_factory.mktemp("usual") / "build"))
    with contextlib.redirect_stdout(io.StringIO()) as said:
        return (build, *profiled(build, "--keep-outputs"), said)


def test_by_default_a_kernel_is_traced_on_the_median_dispatch_and_verified(usual):
    _, root, rows, printed = usual
    said = printed.getvalue()
    assert "EXPORTED 2/2" in said
    assert "workload: run verified" in said
    assert {row["workload"] for row in rows.values()} == {"run"}
    assert rows["square_rows"]["workload_note"].endswith("of 8")
    assert rows["square_rows"]["verified"].startswith("slot 1 exact in ")
    assert rows["scale_blocks"]["warnings"] == ""
    assert "workload_run=2" in (root / SUMMARY).read_text()
    kept = np.load(root / "funcs" / "square_rows" / "outputs" / "slot1.npy")
    assert kept.shape == (16, 64)
    assert kept.any()


def test_the_users_python_lines_are_behind_the_generated_ones(usual):
    build, root, rows, _ = usual
    (simulator,) = (root / "funcs" / "scale_blocks").glob("collect/out/OPPROF_*/simulator")
    trace = open_trace(simulator)
    model = str(build / "model.py")
    assert any(stack.endswith(f"{model}:14") for stack in trace.instructions.stacks)
    assert trace.sources[model] == (build / "model.py").read_bytes()
    hot = json.loads((root / "funcs" / "scale_blocks" / "python_lines.json").read_text())
    assert {row["frame"] for row in hot} == {f"model.py:{line}" for line in (14, 15, 16, 17)}
    assert sum(row["share"] for row in hot) >= 0.95
    assert rows["scale_blocks"]["python"].startswith(hot[0]["frame"])
    from insight_trace.report.payload import payload
    from insight_trace.trace.advice import advise
    from insight_trace.trace.stats import stats
    from insight_trace.trace.text import stats_text

    figures = stats(trace)
    assert "(model.py:14)" in stats_text(figures, advise(trace, figures))
    page = payload(trace, title="scale_blocks").facts
    assert set(page["lines"][model]) == {"14", "15", "16", "17"}
    assert [(t["name"], t["memory"]) for t in page["tiles"]] == [
        (n, "UB") for n in ("rows", "scaled", "shifted")
    ]


@pytest.mark.parametrize(
    ("choice", "chosen"), [("first", [5]), ("slowest", [7]), ("median", [5]), ("1", [6]), ("all", [5, 6, 7])]
)
def test_a_choice_names_dispatches_by_order_or_by_time(choice, chosen):
    ran = [
        SimpleNamespace(dispatch_id=number, cycles=cycles) for number, cycles in ((5, 20), (6, 10), (7, 30))
    ]
    assert _chosen(ran, choice, "k") == chosen


def test_any_dispatch_can_be_asked_for(build):
    _, rows = profiled(build, "--dispatch", "all", "--jobs", "1")
    assert len(rows) == 9
    _, third = profiled(build, "--dispatch", "3", "--func", "square_rows")
    assert third["square_rows"]["workload_note"] == "dispatch 3 of 8"
    assert main(["profile", "--build-dir", str(build), "--dispatch", "99"]) == 2
    assert main(["profile", "--build-dir", str(build), "--dispatch", "fastest"]) == 2


def test_without_a_golden_arguments_are_made_up_and_a_guard_counts_as_a_loop_bound(build):
    (build / "golden.py").unlink()
    root, rows = profiled(build)
    assert {row["workload"] for row in rows.values()} == {"synthetic"}
    assert "golden.py" in rows["scale_blocks"]["workload_note"]
    assert "int64_t = 8 (loop bound, by a guard)" in (root / "README.txt").read_text()
    assert rows["scale_blocks"]["warnings"] == ""


def test_a_value_of_the_user_is_what_the_kernel_runs_with(build, capsys):
    _, rows = profiled(build, "--func", "scale_blocks", "--scalar", "arg3=2", "--no-source")
    assert rows["scale_blocks"]["workload"] == "synthetic"
    assert rows["scale_blocks"]["workload_note"] == "its arguments were given"
    capsys.readouterr()


def test_a_run_that_fails_is_named_and_its_kernels_get_made_up_arguments(build, capsys):
    source = build / "orchestration" / "main.cpp"
    source.write_text(source.read_text().replace("block < 8", "block < 9"))
    _, rows = profiled(build, "--func", "square_rows")
    assert "leaves dimension 0" in rows["square_rows"]["workload_note"]
    said = capsys.readouterr().err
    assert "its kernels get made-up arguments" in said
    assert "leaves dimension 0" in said
    assert {row["workload"] for row in rows.values()} == {"synthetic"}


def test_a_kernel_that_fails_says_what_to_do_next(build, capsys):
    (source,) = build.glob("ptoas/square_rows.cpp")
    source.write_text(source.read_text().replace("TLOAD(", "__builtin_trap(); TLOAD(", 1))
    assert main(["profile", "--build-dir", str(build), "--synthetic", "--func", "square_rows"]) == 1
    lines = capsys.readouterr().out.splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith("FAIL square_rows: failed: "))
    assert "square_rows.cpp:" in lines[at]
    assert lines[at + 1] == "  look at that line of the kernel"


def test_a_warm_l2_and_a_launch_are_what_a_profile_says_they_are(build):
    times = {}
    for words in ((), ("--l2", "warm"), ("--launch", "kernel")):
        root, _ = profiled(build, "--synthetic", "--func", "scale_blocks", *words)
        (simulator,) = (root / "funcs" / "scale_blocks").glob("collect/out/OPPROF_*/simulator")
        times[words] = open_trace(simulator)
    cold, warm, launched = times.values()
    assert warm.memory.fetched == 0 < cold.memory.fetched
    assert cold.launch.around == 0 < launched.launch.around


def test_a_chip_file_is_what_a_profile_runs_on(build, tmp_path):
    chip = tmp_path / "mine.toml"
    chip.write_text('name = "Mine"\nbase = "ascend910b1"\n')
    root, _ = profiled(build, "--synthetic", "--func", "scale_blocks", "--soc-version", str(chip))
    (simulator,) = (root / "funcs" / "scale_blocks").glob("collect/out/OPPROF_*/simulator")
    assert open_trace(simulator).soc_version == "Mine"


NO_GOLDEN = {
    "a2a3/dynamic_paged_attention_64bat_64h_256d_64bs",
    "a2a3/paged_attention_unaligned_ptoas_64bat_16h_128d_128bs_8100ctx",
}
SAMPLE = {"a2a3/add_mul_orchestration", "a5/spmd_mixed_matmul_bias_256x64"}


def test_every_kernel_of_real_builds_is_exported_on_real_work_and_none_is_degenerate(shared_data, tmp_path):
    builds = shared_data / "pypto_builds"
    if not builds.is_dir():
        pytest.skip("the shared data has no pypto_builds")
    found = {f"{b.parent.name}/{b.name}": b for b in sorted(builds.glob("*/*"))}
    names = found if os.environ.get("INSIGHT_TRACE_LONG_TESTS") else SAMPLE
    kernels = 0
    for name in names:
        copy = Path(shutil.copytree(found[name], tmp_path / "build"))
        root, rows = profiled(copy, "--target", name.partition("/")[0])
        for func, row in rows.items():
            told = f"{name} {func}: {row['warnings']} {row['workload_note']}"
            assert row["status"] == "exported", told
            assert row["workload"] == ("synthetic" if name in NO_GOLDEN else "run"), told
            if name not in NO_GOLDEN:
                assert "degenerate" not in row["warnings"], told
                assert "mismatch" not in row["verified"], told
        summary = dict(
            line.split("=", 1) for line in (root / SUMMARY).read_text().splitlines() if "=" in line
        )
        assert summary["total"] == summary["exported"] == str(len(rows)), name
        kernels += len(rows)
        shutil.rmtree(copy)
    print(f"{kernels} kernels of {len(names)} builds")

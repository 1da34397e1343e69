"""Kernels run side by side, the books are true at every moment, and a killed run can be continued."""

import csv
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_runner import ScriptedRunner
from small_kernels import write_kernel

import insight_trace.profile as profile_module
from insight_trace.errors import InputError, RequestError
from insight_trace.limits import cell
from insight_trace.profile import ProfileRequest, run_profile
from insight_trace.profile.manifest import (
    COLUMNS,
    OUR_COLUMNS,
    POINTER,
    ManifestRow,
    latest_run,
    read_manifest,
    write_books,
)
from insight_trace.ptoas.kernel_plan import Settings


@pytest.fixture
def build(tmp_path: Path) -> Path:
    for index in range(8):
        write_kernel(tmp_path / "build" / "ptoas", f"k{index}")
    return tmp_path / "build"


def manifest(root: Path) -> list[dict[str, str]]:
    with (root / "manifest_export.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def lasting(root: Path) -> list[dict[str, str]]:
    """The manifest without what no two runs share: times and the run's own place."""
    rows = manifest(root)
    for row in rows:
        row["duration_sec"] = ""
    return [{key: value.replace(str(root), "RUN") for key, value in row.items()} for row in rows]


def test_a_run_leaves_the_documented_tree(build):
    result = run_profile(ProfileRequest(build, jobs=2), ScriptedRunner())
    assert result.exported == 8
    assert result.root.parent == build
    assert result.root.name.startswith("kernel_insight_all_funcs_20")
    assert (build / POINTER).read_text() == f"{result.root}\n"
    simulator = result.root / "funcs" / "k3" / "collect" / "out" / "OPPROF_20261115_AAAA" / "simulator"
    assert (simulator / "trace.json").is_file()
    rows = manifest(result.root)
    assert [row["func"] for row in rows] == [f"k{i}" for i in range(8)]
    assert list(rows[0]) == [*COLUMNS, *OUR_COLUMNS]
    row = rows[3]
    assert row["status"] == "exported"
    assert row["trace_json"] == str(simulator / "trace.json")
    assert (row["core_trace_count"], row["instr_csv_count"], row["artifact_count"]) == ("1", "1", "4")
    assert (row["kind"], row["arch"], row["cycles"], row["bound_by"]) == ("aiv", "a2a3", "1002", "VECTOR")
    summary = (result.root / "summary.txt").read_text().splitlines()
    assert summary[:4] == [f"run_root={result.root}", "total=8", "exported=8", "failed=0"]
    assert summary[6].split("\t")[:2] == ["k0", "exported"]


def test_kernels_run_side_by_side_and_the_result_does_not_depend_on_it(build, tmp_path):
    four = threading.Barrier(4)
    side, single = ScriptedRunner(hook=lambda _kernel: four.wait(60)), ScriptedRunner()
    many = run_profile(ProfileRequest(build, jobs=4, output_root=tmp_path / "a"), side)
    one = run_profile(ProfileRequest(build, jobs=1, output_root=tmp_path / "b"), single)
    assert side.most_at_once == 4
    assert single.most_at_once == 1
    assert lasting(many.root) == lasting(one.root)


def test_a_failure_says_its_cause_and_the_others_go_on(build):
    runner = ScriptedRunner(fail=("k1", "raise:k2", "bug:k3"))
    result = run_profile(ProfileRequest(build, jobs=3), runner)
    assert result.exported == 5
    status = {row.func: (row.status, row.cell("message")) for row in result.rows}
    assert status["k1"] == ("collect_failed", "kernel.cpp:7: error: 'TFOO' was not declared")
    assert status["k2"][1].endswith("the compiler is gone install one")
    assert status["k3"][0] == "failed"
    assert "ZeroDivisionError" in status["k3"][1]
    assert "Traceback" in (result.root / "logs" / "k3" / "error.log").read_text()
    assert not (result.root / "funcs" / "k1").exists()
    assert "failed=3" in (result.root / "summary.txt").read_text()


def test_a_full_disk_is_no_fault_of_the_simulator(build):
    def full(kernel):
        if kernel.name == "k1":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/place")

    result = run_profile(ProfileRequest(build, jobs=1), ScriptedRunner(hook=full))
    (message,) = [row.cell("message") for row in result.rows if row.func == "k1"]
    assert message.startswith("/some/place: No space left on device")
    assert "make room" in message
    assert "fault in the simulator" not in message


def test_no_keep_going_stops_and_names_what_was_not_run(build):
    runner = ScriptedRunner(fail=("k2",))
    result = run_profile(ProfileRequest(build, jobs=1, keep_going=False), runner)
    assert runner.ran == ["k0", "k1", "k2"]
    assert [row.status for row in result.rows] == ["exported"] * 2 + ["collect_failed"] + ["skipped"] * 5


def test_the_books_are_rewritten_after_every_kernel(build, tmp_path):
    seen = []
    root = tmp_path / "out"

    def look(_kernel):
        found = list(root.glob("*/manifest_export.csv"))
        seen.append(len(manifest(found[0].parent)) if found else 0)

    run_profile(ProfileRequest(build, jobs=1, output_root=root), ScriptedRunner(hook=look))
    assert seen == list(range(8))


def test_resume_keeps_what_is_finished_and_runs_the_rest(build):
    first = run_profile(ProfileRequest(build, jobs=2), ScriptedRunner(fail=("k1", "k4")))
    runner = ScriptedRunner()
    second = run_profile(ProfileRequest(build, jobs=2, resume=True), runner)
    assert second.root == first.root
    assert sorted(runner.ran) == ["k1", "k4"]
    assert second.exported == 8


def test_a_resumed_run_never_has_fewer_rows_in_its_books_than_before(build):
    first = run_profile(ProfileRequest(build, jobs=2), ScriptedRunner(fail=("k7",)))
    seen = []
    run_profile(
        ProfileRequest(build, resume=True),
        ScriptedRunner(),
        report=lambda _: seen.append(len(manifest(first.root))),
    )
    assert seen
    assert min(seen) >= 7  # what is to be tried again has no row until then


def test_resume_runs_again_what_changed_or_was_lost(build):
    first = run_profile(ProfileRequest(build), ScriptedRunner())
    (build / "ptoas" / "k0.cpp").write_text((build / "ptoas" / "k0.cpp").read_text() + "// newer\n")
    (first.root / "funcs" / "k1" / "collect/out/OPPROF_20261115_AAAA/simulator/trace.json").unlink()
    runner = ScriptedRunner()
    run_profile(ProfileRequest(build, resume=True), runner)
    assert sorted(runner.ran) == ["k0", "k1"]
    again = ScriptedRunner()
    run_profile(ProfileRequest(build, resume=True, settings=Settings(seed=5)), again)
    assert len(again.ran) == 8


def test_resume_in_a_copied_build_leaves_the_run_of_the_build_it_was_copied_from_alone(build, tmp_path):
    run_profile(ProfileRequest(build), ScriptedRunner())
    root = latest_run(build)
    assert root is not None
    books = (root / "manifest_export.csv").read_bytes()
    shutil.copytree(build, tmp_path / "copy", ignore=shutil.ignore_patterns("kernel_insight_*"))
    for named in (True, root):
        with pytest.raises(RequestError, match="a run of another build"):
            run_profile(
                ProfileRequest(tmp_path / "copy", resume=named, settings=Settings(seed=5)),
                ScriptedRunner(),
            )
    assert (root / "manifest_export.csv").read_bytes() == books


def test_a_build_that_was_moved_with_its_runs_may_be_resumed(build, tmp_path):
    run_profile(ProfileRequest(build), ScriptedRunner())
    root = latest_run(build)
    assert root is not None
    moved = build.rename(tmp_path / "moved")
    again = run_profile(ProfileRequest(moved, resume=moved / root.name), ScriptedRunner())
    assert again.exported == len(again.rows)


def test_resume_without_a_run_is_a_wrong_request(build):
    with pytest.raises(RequestError, match="no run to continue"):
        run_profile(ProfileRequest(build, resume=True), ScriptedRunner())


DRIVER = """
import sys
sys.path[:0] = [{here!r}]
from pathlib import Path
from scripted_runner import ScriptedRunner
from insight_trace.profile import ProfileRequest, run_profile
run_profile(ProfileRequest(Path({build!r}), jobs=2, resume="resume" in sys.argv), ScriptedRunner(seconds=0.03))
"""


def test_a_run_killed_at_any_moment_and_resumed_equals_an_undisturbed_one(build, tmp_path):
    undisturbed = run_profile(
        ProfileRequest(build, jobs=2, output_root=tmp_path / "whole"), ScriptedRunner()
    ).root
    (build / POINTER).unlink()
    script = DRIVER.format(here=str(Path(__file__).parent), build=str(build))
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    pause = random.Random(tmp_path.name)
    while not list(build.glob("kernel_insight_all_funcs_*/manifest_export.csv")) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(pause.uniform(0, 0.1))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run([*command, "resume"], env=environment, check=True)
    (root,) = build.glob("kernel_insight_all_funcs_*")
    assert lasting(root) == lasting(undisturbed)
    assert not [path for path in (root / "funcs").iterdir() if path.name.startswith(".")]


def test_a_simulator_that_leaves_nothing_is_not_believed(build):
    class Liar(ScriptedRunner):
        def _run(self, kernel, out, logs):
            outcome = super()._run(kernel, out, logs)
            (out / "OPPROF_20261115_AAAA" / "simulator" / "trace.json").unlink()
            return outcome

    result = run_profile(ProfileRequest(build), Liar())
    assert {row.status for row in result.rows} == {"export_failed"}


def test_an_interrupt_stops_the_runner_and_leaves_true_books(build):
    def interrupt(progress):
        if progress.step == "exported":
            raise KeyboardInterrupt

    runner = ScriptedRunner()
    with pytest.raises(KeyboardInterrupt):
        run_profile(ProfileRequest(build, jobs=2), runner, interrupt)
    assert runner.stopped
    (root,) = build.glob("kernel_insight_all_funcs_*")
    assert all(row["status"] == "exported" for row in manifest(root))
    again = ScriptedRunner()
    assert run_profile(ProfileRequest(build, resume=True), again).exported == 8
    assert len(again.ran) < 8


def test_a_build_that_cannot_be_written_is_profiled_to_elsewhere(build, tmp_path, monkeypatch):
    def refuse(place, _root):
        if place == build:
            raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(profile_module, "write_pointer", refuse)
    said = []
    result = run_profile(
        ProfileRequest(build, output_root=tmp_path / "out"), ScriptedRunner(), warn=said.append
    )
    assert result.exported == 8
    assert said == [f"{build}: the pointer to this run cannot be written: Permission denied"]


def test_a_source_that_went_away_fails_alone(build):
    class Hasty(ScriptedRunner):
        @property
        def name(self):
            (build / "ptoas" / "k3.cpp").unlink(missing_ok=True)
            return "hasty"

    result = run_profile(ProfileRequest(build), Hasty())
    assert [row.func for row in result.rows if not row.exported] == ["k3"]
    assert "cannot be read" in result.rows[3].cell("message")


texts = st.text(max_size=20)


@given(st.dictionaries(st.sampled_from(["message", "warnings", "symbol", "cycles"]), texts))
def test_any_text_goes_through_the_manifest_on_one_line(tmp_path_factory, columns):
    root = tmp_path_factory.mktemp("books")
    row = ManifestRow("k", "exported", columns)
    write_books(root, [row], 1)
    assert len((root / "manifest_export.csv").read_text().splitlines()) == 2
    back = read_manifest(root)["k"]
    for column in columns:
        assert back.cell(column) == cell(row.cell(column))


def test_a_file_that_is_no_manifest_is_refused(tmp_path):
    (tmp_path / "manifest_export.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not the manifest"):
        read_manifest(tmp_path)
    assert read_manifest(tmp_path / "none") == {}

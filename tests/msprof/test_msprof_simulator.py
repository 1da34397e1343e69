"""From arguments to an Insight directory through the stand-in toolkit, and every documented way to fail."""

import dataclasses
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from replay_cases import ADD, LANE, MEMBERS, arguments, job
from tests.materialised import materialise_all

from insight_trace.arguments.buffers import view_of
from insight_trace.errors import InsightTraceError, JobError, RequestError
from insight_trace.model import CoreType
from insight_trace.simulate.msprof import building
from insight_trace.simulate.msprof.collecting import collect
from insight_trace.simulate.msprof.msprof_simulator import find_ready, simulate
from insight_trace.simulate.msprof.vendor_workspace import read_outputs, write_workspace


@pytest.fixture
def run(toolkit_home, clean_environ, pto_isa_root, tmp_path):
    """Simulates a job; the mode chooses what the stand-in msprof does."""

    def start(members="aiv", mode="new", workspace=None, limit=None, **rest):
        environ = clean_environ | {"STANDIN_MSPROF": mode, "STANDIN_CALLS": str(tmp_path / "calls")}
        environ |= rest.pop("environ", {})
        ready = find_ready(rest.get("target", "a2a3"), environ, cann_home=toolkit_home)
        asked = job(members, pto_isa_root=pto_isa_root, simpler_root=None, **rest)
        return simulate(asked, ready, workspace or tmp_path / "workspace", limit_seconds=limit)

    return start


@pytest.fixture(scope="session")
def built(toolkit_home, pto_isa_root, tmp_path_factory):
    """A workspace that is built once, for tests of what comes after."""
    workspace = tmp_path_factory.mktemp("built") / "workspace"
    environ = {key: os.environ[key] for key in ("PATH", "HOME")}
    ready = find_ready("a2a3", environ, cann_home=toolkit_home)
    asked = job("aiv", pto_isa_root=pto_isa_root, simpler_root=None, soc_version=ready.soc_version)
    write_workspace(asked, workspace)
    building.build(asked, ready, workspace)
    return asked, ready, workspace


@pytest.fixture
def collect_as(built, tmp_path):
    """Runs the built workspace, in a copy, in the way that the mode says."""

    def start(mode, *, limit=None, name="copy", timeout_minutes=120, environ=()):
        asked, ready, workspace = built
        copy = tmp_path / name
        shutil.copytree(workspace, copy)
        settings = {"STANDIN_MSPROF": mode, "STANDIN_CALLS": str(tmp_path / "calls"), **dict(environ)}
        toolkit = dataclasses.replace(ready.toolkit, environment={**ready.toolkit.environment, **settings})
        asked = dataclasses.replace(asked, timeout_minutes=timeout_minutes)
        chosen = dataclasses.replace(ready, toolkit=toolkit)
        return collect(asked, chosen, copy, copy / "build/replay_host", limit_seconds=limit)

    return start


def calls(tmp_path):
    lines = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    return [line for line in lines if "--help" not in line]


@pytest.mark.parametrize("members", MEMBERS)
def test_a_replay_runs_each_member_on_its_core_and_leaves_outputs_and_a_trace(run, tmp_path, members):
    result = run(members)
    assert result.directory.parent.parent == tmp_path / "workspace/insight_export"
    assert result.directory.name == "simulator"
    assert (result.directory / "trace.json").is_file()
    assert (result.partial, result.exported, result.warnings) == (False, False, ())
    given = arguments()
    before = materialise_all(given)
    outputs = read_outputs(given, tmp_path / "workspace")
    values = {t.slot: view_of(t, before[t.slot]) for t in given.tensors}
    got = {t.slot: view_of(t, outputs[t.slot]) for t in given.tensors if t.slot in outputs}
    np.testing.assert_array_equal(got[1], 2 * values[0] if members != "aiv" else 0 * values[0])
    np.testing.assert_array_equal(got[3], values[2] + np.float32(0.5) if members != "aic" else 0 * values[2])
    # only lane 1 runs the second vector member, with its own sub-block id
    lanes = [[0, 0, 0, 0], [0, 1, 1, 1]] if members == "mix-2" else [[0] * 4, [0] * 4]
    np.testing.assert_array_equal(got[5], lanes)


def test_a_kernel_given_twice_runs_on_both_lanes_and_every_block_has_its_contexts(run, tmp_path):
    run(kernels=(LANE, LANE), arguments=arguments(block_count=24), hardware_blocks=3)
    written = read_outputs(arguments(), tmp_path / "workspace")[5][:32].view(np.int32)
    assert written.reshape(2, 4).tolist() == [[2, 24, 0, 1], [2, 24, 1, 1]]  # the last block wrote last


def test_a_mix_of_one_source_runs_on_all_three_cores(run, tmp_path):
    mix = replace(LANE, core_type=CoreType.MIX)
    run(kernels=(mix,))
    written = read_outputs(arguments(), tmp_path / "workspace")[5][:32].view(np.int32)
    assert written.reshape(2, 4).tolist() == [[0, 1, 0, 1], [0, 1, 1, 1]]


def test_msprof_is_asked_in_its_own_words(collect_as, tmp_path):
    collect_as("new", timeout_minutes=7)
    (words,) = calls(tmp_path)
    workspace = tmp_path / "copy"
    assert words == [
        "op",
        "simulator",
        f"--application={workspace}/build/replay_host",
        "--kernel-name=replay_entry",
        "--launch-count=1",
        "--soc-version=dav_2201",
        "--timeout=7",
        f"--output={workspace}/msprof_collect/out",
    ]


def test_a_workspace_with_blanks_in_a_long_path_works(run, tmp_path):
    workspace = tmp_path / ("long " * 20) / ("name " * 20) / "w"
    result = run(workspace=workspace)
    assert result.directory.is_relative_to(workspace)


def test_the_target_a5_is_simulated_on_its_own_chip(toolkit_home, clean_environ):
    ready = find_ready("a5", clean_environ, cann_home=toolkit_home)
    assert (ready.soc_version, ready.target.aicore_arch) == ("dav_3510", "dav-c310")
    assert ready.simulator_lib.parent.name == "dav_3510"


def test_an_older_release_gets_a_second_pass_with_the_start_address_in_place(collect_as, tmp_path):
    result = collect_as("old")
    assert result.exported
    assert (result.directory / "trace.json").is_file()
    assert result.directory.is_relative_to(tmp_path / "copy/insight_export")
    first, second = calls(tmp_path)
    assert any(word.startswith("--application=") for word in first)
    assert any(word.startswith("--export=") and word.endswith("device0/tmp_dump") for word in second)


def test_a_newer_release_gets_no_second_pass(collect_as, tmp_path):
    assert not collect_as("new").exported
    assert len(calls(tmp_path)) == 1


def test_several_launches_are_found_in_their_deeper_folders(collect_as):
    result = collect_as("many")
    assert result.directory.match("insight_export/OPPROF_*/replay_entry/1/simulator")


@pytest.mark.parametrize(
    ("mode", "environ", "text"),
    [
        ("silent", {}, "no kernel ran in the simulator"),
        ("empty", {}, "no usable dump file"),
        ("old_nothing", {}, "no usable dump file"),
        ("new", {"STANDIN_ACL_FAILS": "1"}, "no kernel ran"),
    ],
)
def test_exit_code_zero_without_a_trace_is_a_failure_that_says_why(collect_as, tmp_path, mode, environ, text):
    with pytest.raises(JobError) as caught:
        collect_as(mode, environ=environ)
    assert text in caught.value.what
    assert Path(caught.value.where).is_file()
    assert Path(caught.value.where).is_relative_to(tmp_path / "copy/msprof_collect")


def test_when_msprof_stops_at_its_limit_the_partial_trace_is_kept_and_said_to_be_partial(collect_as):
    result = collect_as("slow", timeout_minutes=5)
    assert result.partial
    assert any("5 minutes" in text for text in result.warnings)
    assert (result.directory / "trace.json").is_file()


def test_a_run_that_never_ends_is_ended_with_everything_it_started_and_still_exported(collect_as, tmp_path):
    started = time.monotonic()
    result = collect_as("hang", limit=2.0)
    assert time.monotonic() - started < 30
    assert result.partial
    assert result.exported
    assert (result.directory / "trace.json").is_file()
    for pid in (tmp_path / "copy/standin_pids").read_text().split():
        assert not running(int(pid)), "a process of the run is left"
    assert "ended after" in (tmp_path / "copy/msprof_collect/collect.log").read_text()


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_second_run_in_the_same_workspace_gives_its_own_result(collect_as, built, tmp_path):
    asked, ready, _ = built
    first = collect_as("new")
    shutil.rmtree(first.directory.parent)
    again = collect(asked, ready, tmp_path / "copy", tmp_path / "copy/build/replay_host")
    assert (again.directory / "trace.json").is_file()


def test_folders_of_a_run_are_private(collect_as, tmp_path):
    collect_as("new")
    for folder in ("build", "msprof_collect", "insight_export", "outputs"):
        assert (tmp_path / "copy" / folder).stat().st_mode & 0o077 == 0, folder


def test_a_kernel_that_does_not_compile_is_named_by_the_compilers_own_line(run, tmp_path):
    broken = tmp_path / "broken.cpp"
    broken.write_text('extern "C" void kernel_entry(long *) { undeclared(); }\n')
    kernel = replace(ADD, source=broken)
    with pytest.raises(JobError) as caught:
        run(kernels=(kernel,))
    assert "undeclared" in caught.value.what
    assert caught.value.where.endswith("logs/build.log")


def test_a_header_that_is_missing_is_said_to_be_whose_it_is(run, tmp_path):
    source = tmp_path / "needs.cpp"
    source.write_text('#include "tensor.h"\nextern "C" void kernel_entry(long *) {}\n')
    with pytest.raises(JobError, match="SIMPLER_ROOT"):
        run(kernels=(replace(ADD, source=source),))


def test_without_pto_isa_the_request_is_refused(tmp_path, toolkit_home, clean_environ):
    ready = find_ready("a2a3", clean_environ, cann_home=toolkit_home)
    with pytest.raises(RequestError, match="pto-isa"):
        simulate(job("aiv", pto_isa_root=None), ready, tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_a_library_without_the_entry_is_refused_with_what_it_exports_instead(built, tmp_path):
    _, ready, _ = built
    source = tmp_path / "x.cpp"
    source.write_text("void replay_entry(long *) {}\n")  # mangled: extern "C" was forgotten
    library = tmp_path / "libx.so"
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", library], check=True)
    with pytest.raises(JobError, match=r"does not export replay_entry; it exports replay_entry\(long\*\)"):
        building.check_symbols(library, ready.toolkit.environment)


def test_odd_answers_of_cppfilt_are_not_paired_with_the_wrong_names(built, monkeypatch):
    _, ready, _ = built
    monkeypatch.setattr(building, "capture", lambda *_a, **_k: (0, b"one\ntwo\nthree\n"))
    assert building.demangled(["_Za", "_Zb"], ready.toolkit.environment) == {"_Za": "_Za", "_Zb": "_Zb"}


def test_run_collect_works_by_itself_in_another_place(toolkit_home, clean_environ, pto_isa_root, tmp_path):
    """The workspace is copied away, as to another machine, and only told where its tools are."""
    asked = job("mix-2", simpler_root=None)
    write_workspace(asked, tmp_path / "here")
    there = tmp_path / "another place" / "w"
    shutil.copytree(tmp_path / "here", there)
    shutil.rmtree(tmp_path / "here")
    for mode in ("new", "old", "old_nothing"):
        environ = clean_environ | {"STANDIN_MSPROF": mode, "CANN_HOME": str(toolkit_home)}
        environ["PTO_ISA_ROOT"] = str(pto_isa_root)
        done = subprocess.run(
            [there / "run_collect.sh"], env=environ, capture_output=True, text=True, cwd=tmp_path
        )
        if mode == "old_nothing":
            assert done.returncode == 1
            assert "no simulator/trace.json" in done.stderr
            break
        assert done.returncode == 0, done.stdout + done.stderr
        simulator = Path(done.stdout.strip().splitlines()[-1])
        assert simulator.match("w/insight_export/OPPROF_*/simulator")
        assert (simulator / "trace.json").is_file()
        shutil.rmtree(there / "insight_export")
        shutil.rmtree(there / "msprof_collect")
    outputs = read_outputs(asked.arguments, there)
    assert set(outputs) == {1, 3, 5}


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({}, "set CANN_HOME"),
        ({"CANN_HOME": "HOME", "SOC_VERSION": "Ascend310P"}, "no simulator"),
        ({"CANN_HOME": "HOME", "PTO_ISA_ROOT": "/absent"}, "PTO_ISA_ROOT"),
        ({"CANN_HOME": "HOME", "STANDIN_MSPROF": "silent"}, "left nothing to export"),
    ],
)
def test_run_collect_fails_with_a_reason(
    built, toolkit_home, clean_environ, pto_isa_root, tmp_path, environ, text
):
    shutil.copytree(built[2], tmp_path / "w")
    shutil.rmtree(tmp_path / "w/build")
    merged = clean_environ | {"PTO_ISA_ROOT": str(pto_isa_root)} | environ
    if "CANN_HOME" in environ:
        merged["CANN_HOME"] = str(toolkit_home)
    done = subprocess.run([tmp_path / "w/run_collect.sh"], env=merged, capture_output=True, text=True)
    assert done.returncode == 1
    assert text in done.stderr


def test_every_failure_is_an_error_of_ours(run):
    with pytest.raises(InsightTraceError, match="worker"):
        run(mode="no_worker")
    with pytest.raises(InsightTraceError, match="tile language"):
        run(environ={"STANDIN_BISHENG": "no_tl"})


# simpler's insight-trace skill, steps 3 and 4, as they are printed there.
SHELL_STEPS = """set -euo pipefail
source "$CANN_HOME/set_env.sh"
cmake -G Ninja -S "$WS" -B "$WS/build" \\
    -DSOC_VERSION=dav_2201 \\
    -DREPO_ROOT="$REPO_ROOT"
cmake --build "$WS/build" --target replay_host
nm -D "$WS/build/libreplay_kernel.so" | grep -E ' T (replay_entry|launch_replay)$'
bash $WS/run_collect.sh
"""


def test_the_shell_steps_of_simplers_skill_run_in_a_workspace_of_ours(
    toolkit_home, clean_environ, pto_isa_root, tmp_path
):
    if shutil.which("ninja") is None:
        pytest.skip("the skill builds with ninja")
    workspace = tmp_path / "w"
    write_workspace(job("mix-2", simpler_root=None, pto_isa_root=pto_isa_root), workspace)
    environ = clean_environ | {
        "CANN_HOME": str(toolkit_home),
        "WS": str(workspace),
        "REPO_ROOT": str(tmp_path),
    }
    environ |= {"PTO_ISA_ROOT": str(pto_isa_root), "STANDIN_MSPROF": "new"}
    done = subprocess.run(
        ["bash", "-c", SHELL_STEPS], env=environ, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " T launch_replay" in done.stdout
    simulator = Path(done.stdout.strip().splitlines()[-1])
    assert (simulator / "trace.json").is_file()

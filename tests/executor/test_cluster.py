"""Jobs on the workers of a Dask cluster take, and give, what they do at home; a worker that dies loses no other."""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from benchmarks.cluster_jobs import DaskProcesses, survived

from insight_trace.__main__ import main
from insight_trace.capture.session import CaptureOptions
from insight_trace.capture.task_graph import take_graph
from insight_trace.errors import InputError, InsightTraceError
from insight_trace.executor import Local, Output, required
from insight_trace.executor.cluster import Cluster
from insight_trace.executor.packing import answered, pack, run_packed
from insight_trace.insight.validator import validate_directory
from insight_trace.options import RunOptions
from insight_trace.profile import ProfileRequest, list_kernels
from insight_trace.profile.embedded_runner import EmbeddedRunner, KernelJob, profile_kernel
from insight_trace.profile.kernel_runner import EXPORTED, RunOutcome
from insight_trace.profile.manifest import latest_run, read_manifest
from insight_trace.ptoas.planned_kernel import Content
from insight_trace.run.bulk_replay import ReplayRow, plan, run_replay_job
from insight_trace.run.timing import Dispatches, Timed, run_timing_job

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENE = EXAMPLES / "paged_attention" / "scene.py"

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler"),
    pytest.mark.filterwarnings("default"),  # of distributed's own
]


@pytest.fixture
def build(tmp_path):
    shutil.copytree(EXAMPLES / "pypto_build", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture
def cluster(running):
    """With both of its workers, also after a test that ended some."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(running, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=300)
    with contextlib.closing(Cluster(running)) as executor:
        yield executor


@pytest.fixture(scope="module")
def timings(tmp_path_factory):
    graph = take_graph(SCENE, "CaseSmall1", tmp_path_factory.mktemp("graph"), options=CaptureOptions())
    dispatches = Dispatches(graph, RunOptions(), 1 << 27)
    return [dispatches.job(place) for place in range(len(dispatches.tasks))]


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in (root / "funcs").rglob("*") if p.is_file()}


def lasting(root: Path) -> dict[str, dict[str, str]]:
    rows = {name: dict(row.columns) for name, row in read_manifest(root).items()}
    for row in rows.values():
        row["duration_sec"] = ""
    return {n: {k: v.replace(str(root), "RUN") for k, v in row.items()} for n, row in rows.items()}


def test_times_and_verdicts_are_those_of_this_machine(cluster, timings, tmp_path):
    here = Local(1)
    there = dict(required(cluster.run(run_timing_job, timings[:4], Timed)))
    assert there == dict(here.run(run_timing_job, timings[:4], Timed))
    dump = tmp_path / "dump"
    assert main(["capture", str(SCENE), "--case", "CaseSmall1", "-o", str(dump)]) == 0
    replays = [job for _, job in plan(SCENE, dump, "CaseSmall1", RunOptions(), sample=4).jobs()]
    there = dict(required(cluster.run(run_replay_job, replays, ReplayRow)))
    assert there == dict(here.run(run_replay_job, replays, ReplayRow))
    assert {row.verdict for row in there.values()} == {"verified"}


def test_a_profile_has_the_same_manifest_and_bytes_and_goes_on_without_the_cluster(cluster, tmp_path, capsys):
    """Dispatches of the build's own run go there with sources, headers, payload and the user's Python."""
    build = tmp_path / "build"
    shutil.copytree(EXAMPLES / "pypto_run", build)
    kernel = build / "kernels" / "aiv" / "square_rows.cpp"
    kernel.with_name("mine.h").write_text("// one of the user's\n")
    kernel.write_text('#include "mine.h"\n' + kernel.read_text())
    words = ["profile", "--build-dir", str(build), "--target", "a2a3"]
    assert main([*words, "--cluster", cluster.address, "--output-root", str(tmp_path / "there")]) == 0
    assert capsys.readouterr().out.endswith("EXPORTED 2/2\n")
    there = latest_run(tmp_path / "there")
    words += ["--simulator", "embedded"]
    assert main([*words, "--output-root", str(tmp_path / "here")]) == 0
    here = latest_run(tmp_path / "here")
    rows = lasting(there)
    assert {row["workload"] for row in rows.values()} == {"run"}
    assert all("exact" in row["verified"] for row in rows.values()), rows
    assert rows == lasting(here)
    assert files(there) == files(here)
    assert (there / "logs/square_rows/simulate.log").is_file()
    for directory in there.glob("funcs/*/collect/out/OPPROF_*/simulator"):
        assert validate_directory(directory) == []
    capsys.readouterr()
    assert main([*words, "--resume", str(there)]) == 0
    assert capsys.readouterr().out.count("kept from the earlier run") == 2


def test_a_kernel_that_fails_on_a_worker_says_where_in_the_users_own_file(cluster, build, capsys):
    source = build / "ptoas" / "strided_copy.cpp"
    source.write_text(source.read_text().replace("TSTORE(", "TSTOER("))
    words = ["profile", "--build-dir", str(build), "--func", "strided_copy", "--func", "vector_add"]
    assert main([*words, "--cluster", cluster.address]) == 1
    out = capsys.readouterr().out
    assert "TSTOER" in out
    assert f"{source}:" in out
    assert out.endswith("EXPORTED 1/2\n")


def test_a_worker_that_has_none_of_the_files_gives_the_same_result(build, tmp_path):
    """The build is taken away before the job is run, as on a machine that never had it."""
    (kernel,) = list_kernels(ProfileRequest(build, funcs=("vector_add",)))
    size = kernel.arguments[0].nbytes
    data = tmp_path / "x.bin"
    data.write_bytes((b"\0\0\x80\x3f" * size)[:size])
    given = dataclasses.replace(kernel.arguments[0], content=Content.FILE, file=data)
    runner = EmbeddedRunner()
    job = runner.job(dataclasses.replace(kernel, arguments=(given, *kernel.arguments[1:])))
    found = []
    for name in ("here", "there"):
        outputs = [Output(tmp_path / name / part) for part in ("results", "logs")]
        for output in outputs:
            output.path.mkdir(parents=True)
        asked = KernelJob(job, runner.options, str(kernel.source), "20260101000000", *outputs)
        if name == "here":
            assert profile_kernel(asked).status == EXPORTED
        else:
            packed, sent, folders = pack(profile_kernel, asked)
            content = {str(path): path.read_bytes() for path in sent}
            shutil.rmtree(build)
            data.unlink()
            assert answered(run_packed(packed, content), RunOutcome, folders).status == EXPORTED
        root = tmp_path / name
        found.append({str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()})
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []


def test_a_file_that_went_away_is_an_error_of_its_job_alone(cluster, timings, tmp_path):
    gone = msgspec.structs.replace(timings[0].job.kernels[0], source=tmp_path / "gone.cpp")
    lost = msgspec.structs.replace(timings[0], job=msgspec.structs.replace(timings[0].job, kernels=(gone,)))
    found = dict(cluster.run(run_timing_job, [lost, timings[1]], Timed))
    assert "cannot be read" in str(found[0])
    assert found[1] == run_timing_job(timings[1])


def test_jobs_are_taken_as_there_is_room_for_them(cluster):
    """However many there are: no more are with the scheduler than a few for each worker."""
    taken = []
    jobs = (taken.append(number) or number for number in range(200))
    most = 0
    for done, (_, result) in enumerate(cluster.run(abs, jobs, int), 1):
        assert isinstance(result, int)
        most = max(most, len(taken) - done)
    assert len(taken) == 200
    assert most <= cluster.width * 2


class Sent:
    """What a hostile worker would like us to unpickle."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


def test_nothing_that_a_worker_sends_is_unpickled_here(cluster, tmp_path):
    mark = tmp_path / "unpickled"
    future = cluster._client.submit(Sent, str(mark), pure=False)
    assert isinstance(cluster._result(future, int, ()), InsightTraceError)
    assert not mark.exists()


@pytest.mark.parametrize(
    "content", [b"", b"\x93", b"\xc1" * 9, [], None, b"\x83\xa7outcome\xc0", {"cycles": 3}]
)
def test_what_is_no_result_is_refused(content):
    with pytest.raises(InputError, match="a worker sent"):
        answered(content, RunOutcome)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\0b"])
def test_a_file_that_would_leave_its_folder_is_refused(name, tmp_path):
    content = msgspec.msgpack.encode(("", 1, [{name: b""}]))
    with pytest.raises(InputError, match="a worker sent a file called"):
        answered(content, int, (tmp_path,))


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        *((wrong, 2, "that is no address") for wrong in ("garbage", "tcp://", "tcp://host", "x" * 5000)),
        ("carrier-pigeon://x", 2, "one looks like tcp://HOST:8786 or tls://HOST:8786"),
        ("tcp://127.0.0.1:1", 1, "no Dask scheduler answers"),
    ],
)
def test_an_address_where_nobody_answers_is_refused_in_a_line(
    address, code, said, build, capsys, monkeypatch
):
    pytest.importorskip("distributed")
    monkeypatch.setattr("insight_trace.executor.cluster._CONNECT_SECONDS", 1)
    assert main(["profile", "--build-dir", str(build), "--cluster", address]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert len(error) < 600


def test_without_distributed_the_extra_is_named_and_msprof_is_refused(build, capsys, monkeypatch):
    words = ["profile", "--build-dir", str(build), "--cluster", "tcp://127.0.0.1:1"]
    assert main([*words, "--simulator", "msprof"]) == 2
    assert "embedded simulator" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(words) == 2
    assert "pip install 'insight-trace[cluster]'" in capsys.readouterr().err
    assert not list(build.glob("kernel_insight*"))


def test_workers_of_another_version_and_an_empty_cluster_are_refused(running, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("insight_trace.executor.cluster.__version__", "99.0")
    with pytest.raises(InsightTraceError, match=r"here is 99\.0"):
        Cluster(running)
    empty = distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1")
    with empty, pytest.raises(InsightTraceError, match="has no workers"):
        Cluster(empty.scheduler_address)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_tls_settings_of_dask_are_passed_through_and_a_stranger_is_kept_out(tmp_path, monkeypatch):
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tls = {"distributed.comm.tls.ca-file": str(certificate), "distributed.comm.require-encryption": True}
    for who in ("client", "scheduler", "worker"):
        tls |= {
            f"distributed.comm.tls.{who}.cert": str(certificate),
            f"distributed.comm.tls.{who}.key": str(key),
        }
    with dask.config.set(tls):
        started = distributed.LocalCluster(
            n_workers=1, processes=False, protocol="tls://", host="127.0.0.1", dashboard_address=None,
            security=distributed.security.Security(),
        )  # fmt: skip
        with started:
            assert started.scheduler_address.startswith("tls://")
            Cluster(started.scheduler_address).close()
            monkeypatch.setattr("insight_trace.executor.cluster._CONNECT_SECONDS", 1)
            stranger = dask.config.set(dict.fromkeys(tls, None))
            with stranger, pytest.raises(InsightTraceError, match="tls://"):
                Cluster(started.scheduler_address)


@pytest.mark.skipif("INSIGHT_TRACE_LONG_TESTS" not in os.environ, reason="INSIGHT_TRACE_LONG_TESTS=1 runs it")
def test_two_hundred_jobs_come_back_though_a_worker_is_killed(cluster, timings):
    many = [timings[number % len(timings)] for number in range(200)]
    here = [run_timing_job(job) for job in timings]
    victim = next(iter(cluster._client.run(os.getpid).values()))
    killed = []

    def kill() -> None:
        time.sleep(1.5)
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    there = dict(required(cluster.run(run_timing_job, many, Timed)))
    thread.join()
    assert killed
    assert all(there[number] == here[number % len(timings)] for number in range(200))


def test_a_run_whose_worker_and_then_scheduler_were_killed_goes_on_where_it_was(timings, tmp_path):
    """2,000 jobs of each kind: benchmarks/cluster_jobs.py."""
    pytest.importorskip("distributed")
    jobs = [(f"{number}", timings[number % len(timings)]) for number in range(15)]
    with DaskProcesses(2) as dask:
        found, first, reused, ended = survived(dask, run_timing_job, jobs, Timed, tmp_path)
    assert ended.startswith("the scheduler at tcp://127.0.0.1:")
    assert 6 <= first == reused < 15
    here = [run_timing_job(job) for job in timings]
    assert found == {number: here[number % len(timings)] for number in range(15)}


def test_a_worker_that_dies_fails_its_job_alone(cluster):
    """Behind all others that want the workers: until new ones are there takes long on a busy machine."""
    found = dict(cluster.run(eval, ["1", "__import__('os')._exit(1)", "2"], int))
    assert (found[0], found[2]) == (1, 2)
    assert "did not finish the job" in str(found[1])


# a program of its own: where tests run there are threads, and copies of the process are not made
_PROGRAM = """
import sys
from pathlib import Path
from insight_trace.profile import ProfileRequest, run_profile

def results(jobs):
    request = ProfileRequest(Path(sys.argv[1]), funcs=("vector_add", "matmul_64"), jobs=jobs, synthetic=True,
                             output_root=Path(sys.argv[2]) / str(jobs))
    done = run_profile(request)
    assert done.exported == 2, done.rows
    return {str(p.relative_to(done.root)): p.read_bytes() for p in (done.root / "funcs").rglob("*") if p.is_file()}

assert results(1) == results(2)
"""


def test_two_processes_of_a_profile_leave_what_one_leaves(build, tmp_path):
    words = [sys.executable, "-c", _PROGRAM, str(build), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr

"""Dispatches on the workers of a Dask cluster take, and give, what they do at home; a worker that dies loses none."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.batch.cluster_jobs import ClusterJobs, _result
from insight_trace.capture.session import CaptureOptions
from insight_trace.capture.task_graph import take_graph
from insight_trace.errors import InputError, InsightTraceError
from insight_trace.run.bulk_replay import BulkRequest, plan, run_replay_job
from insight_trace.run.distinct import Dispatches, How
from insight_trace.run.timing_job import Timed, run_timing_job

SCENE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler"),
    pytest.mark.filterwarnings("default"),  # of distributed's own
]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    graph = take_graph(SCENE, "CaseSmall1", tmp_path_factory.mktemp("graph"), options=CaptureOptions())
    dispatches = Dispatches(graph, How(None, "a2a3", capacity=1 << 27))
    return [dispatches.job(place) for place in range(len(dispatches.tasks))]


def test_times_and_verdicts_are_those_of_this_machine(running, jobs, tmp_path):
    cluster = ClusterJobs(running)
    try:
        assert dict(cluster.time(jobs[:4])) == {
            place: run_timing_job(job) for place, job in enumerate(jobs[:4])
        }
        dump = tmp_path / "dump"
        assert main(["capture", str(SCENE), "--case", "CaseSmall1", "-o", str(dump)]) == 0
        replays = plan(BulkRequest(SCENE, dump, "CaseSmall1", sample=4)).jobs
        there = dict(cluster.replay(replays))
        assert there == {place: run_replay_job(job) for place, job in enumerate(replays)}
        assert {row.verdict for row in there.values()} == {"verified"}
    finally:
        cluster.close()


def test_what_is_no_result_is_refused():
    class Answer:
        def __init__(self, content):
            self.content = content

        def result(self):
            return self.content

    for content in (b"", b"\x81\xa1a\x01", {"cycles": 3}, Timed(1, (), {}, 0.0, 1)):
        with pytest.raises(InputError, match="something else than a result"):
            _result(Answer(content), "tcp://somewhere:1", Timed)


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
            ClusterJobs(started.scheduler_address).close()
            monkeypatch.setattr("insight_trace.batch.cluster._CONNECT_SECONDS", 1)
            stranger = dask.config.set(dict.fromkeys(tls, None))
            with stranger, pytest.raises(InsightTraceError, match="tls://"):
                ClusterJobs(started.scheduler_address)


@pytest.mark.skipif("INSIGHT_TRACE_LONG_TESTS" not in os.environ, reason="INSIGHT_TRACE_LONG_TESTS=1 runs it")
def test_two_hundred_jobs_come_back_though_a_worker_is_killed(running, jobs):
    distributed = pytest.importorskip("distributed")
    many = [jobs[number % len(jobs)] for number in range(200)]
    here = [run_timing_job(job) for job in jobs]
    with distributed.Client(running, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=300)
        victim = next(iter(client.run(os.getpid).values()))
    killed = []

    def kill() -> None:
        time.sleep(1.5)
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    thread = threading.Thread(target=kill)
    cluster = ClusterJobs(running)
    thread.start()
    try:
        there = dict(cluster.time(many))
    finally:
        thread.join()
        cluster.close()
    assert killed
    assert len(there) == 200
    assert all(there[number] == here[number % len(jobs)] for number in range(200))

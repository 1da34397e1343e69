"""Kernels on the workers of a Dask cluster give what they give at home."""

import contextlib
import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.errors import InputError
from insight_trace.insight.validator import validate_directory
from insight_trace.options import RunOptions
from insight_trace.profile import ProfileRequest, list_kernels, run_profile
from insight_trace.profile.embedded_runner import EmbeddedRunner
from insight_trace.profile.kernel_runner import EXPORTED, FAILED
from insight_trace.profile.manifest import latest_run, read_manifest
from insight_trace.profile.sent_kernel import opened, pack, run_sent_job, unpack_into
from insight_trace.ptoas.planned_kernel import Content

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "pypto_build"
KERNELS = ("vector_add", "matmul_64", "up_group_0")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")


@pytest.fixture
def build(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture
def cluster(running):
    """With both of its workers, also after a test that ended some."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(running, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=300)
    return running


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in (root / "funcs").rglob("*") if p.is_file()}


def lasting(root: Path) -> dict[str, dict[str, str]]:
    rows = {name: dict(row.columns) for name, row in read_manifest(root).items()}
    for row in rows.values():
        row["duration_sec"] = ""
    return {n: {k: v.replace(str(root), "RUN") for k, v in row.items()} for n, row in rows.items()}


@pytest.mark.filterwarnings("default")  # of distributed's own
def test_a_cluster_gives_the_same_manifest_and_the_same_bytes_as_this_machine(
    cluster, build, tmp_path, capsys
):
    wanted = [word for name in KERNELS for word in ("--func", name)]
    words = ["profile", "--build-dir", str(build), *wanted]
    assert main([*words, "--cluster", cluster, "--output-root", str(tmp_path / "there")]) == 0
    assert capsys.readouterr().out.endswith("EXPORTED 3/3\n")
    there = latest_run(tmp_path / "there")
    assert main([*words, "--simulator", "embedded", "--output-root", str(tmp_path / "here")]) == 0
    here = latest_run(tmp_path / "here")
    assert lasting(there) == lasting(here)
    assert files(there) == files(here)
    assert (there / "logs/matmul_64/simulate.log").is_file()
    for directory in there.glob("funcs/*/collect/out/OPPROF_*/simulator"):
        assert validate_directory(directory) == []
    capsys.readouterr()
    assert main([*words, "--simulator", "embedded", "--resume", str(there)]) == 0
    assert capsys.readouterr().out.count("kept from the earlier run") == 3


@pytest.mark.filterwarnings("default")
def test_a_cluster_runs_dispatches_of_the_builds_own_run_with_what_was_recorded(cluster, tmp_path, capsys):
    """The same verified results as here, to the byte: sources with their headers, payload and the user's Python go along."""
    build = tmp_path / "build"
    shutil.copytree(EXAMPLE.with_name("pypto_run"), build)
    kernel = build / "kernels" / "aiv" / "square_rows.cpp"
    kernel.with_name("mine.h").write_text("// one of the user's\n")
    kernel.write_text('#include "mine.h"\n' + kernel.read_text())
    words = ["profile", "--build-dir", str(build), "--target", "a2a3"]
    assert main([*words, "--cluster", cluster, "--output-root", str(tmp_path / "there")]) == 0
    assert capsys.readouterr().out.endswith("EXPORTED 2/2\n")
    there = latest_run(tmp_path / "there")
    assert main([*words, "--simulator", "embedded", "--output-root", str(tmp_path / "here")]) == 0
    here = latest_run(tmp_path / "here")
    rows = lasting(there)
    assert {row["workload"] for row in rows.values()} == {"run"}
    assert all("exact" in row["verified"] for row in rows.values()), rows
    assert rows == lasting(here)
    assert files(there) == files(here)


@pytest.mark.filterwarnings("default")
def test_a_kernel_that_fails_on_a_worker_says_where_in_the_users_own_file(cluster, build, capsys):
    source = build / "ptoas" / "strided_copy.cpp"
    source.write_text(source.read_text().replace("TSTORE(", "TSTOER("))
    words = ["profile", "--build-dir", str(build), "--func", "strided_copy", "--func", "vector_add"]
    assert main([*words, "--cluster", cluster]) == 1
    out = capsys.readouterr().out
    assert "TSTOER" in out
    assert f"{source}:" in out
    assert out.endswith("EXPORTED 1/2\n")


def test_a_worker_that_has_none_of_the_files_gives_the_same_result(build, tmp_path):
    """The build is taken away before the job is run, as on a machine that never had it."""
    data = tmp_path / "x.bin"
    data.write_bytes(bytes(range(256)) * 128)
    (kernel,) = list_kernels(ProfileRequest(build, funcs=("vector_add",)))
    size = kernel.arguments[0].nbytes
    data.write_bytes((b"\0\0\x80\x3f" * size)[:size])
    given = dataclasses.replace(kernel.arguments[0], content=Content.FILE, file=data)
    kernel = dataclasses.replace(kernel, arguments=(given, *kernel.arguments[1:]))
    from insight_trace.profile.profile_run import ProfileRun

    ProfileRun(tmp_path / "here", EmbeddedRunner()).run([kernel])
    sent = pack(kernel, RunOptions())
    shutil.rmtree(build)
    data.unlink()
    returned = opened(run_sent_job(sent))
    assert returned.outcome.status == EXPORTED
    local = tmp_path / "here" / "funcs" / "vector_add"
    assert dict(returned.results) == {
        str(p.relative_to(local)): p.read_bytes() for p in local.rglob("*") if p.is_file()
    }


def test_a_file_that_went_away_or_would_leave_its_folder_is_an_error(build, tmp_path):
    (kernel,) = list_kernels(ProfileRequest(build, funcs=("vector_add",)))
    kernel.source.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        pack(kernel, RunOptions())
    for name in ("../x", "/x", "a/../../x"):
        with pytest.raises(InputError, match="a worker sent"):
            unpack_into({name: b""}, tmp_path)


def test_without_distributed_the_extra_is_named(build, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["profile", "--build-dir", str(build), "--cluster", "tcp://127.0.0.1:1"]) == 2
    error = capsys.readouterr().err
    assert "pip install 'insight-trace[cluster]'" in error
    assert not list(build.glob("kernel_insight*"))


def test_msprof_and_a_cluster_do_not_go_together(build, capsys):
    words = ["profile", "--build-dir", str(build), "--cluster", "tcp://127.0.0.1:1"]
    assert main([*words, "--simulator", "msprof"]) == 2
    assert "embedded simulator" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_does_not_answer_and_a_wrong_address_are_told_in_a_line(build, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("insight_trace.batch.cluster._CONNECT_SECONDS", 1)
    for address, code, said in (
        ("tcp://127.0.0.1:1", 1, "no Dask scheduler answers"),
        ("carrier-pigeon://x", 2, "one looks like tcp://HOST:8786 or tls://HOST:8786"),
    ):
        assert main(["profile", "--build-dir", str(build), "--cluster", address]) == code
        error = capsys.readouterr().err
        assert said in error
        assert "Traceback" not in error


@pytest.mark.filterwarnings("default")
def test_workers_of_another_version_and_an_empty_cluster_are_refused(cluster, build, capsys, monkeypatch):
    monkeypatch.setattr("insight_trace.batch.cluster.__version__", "99.0")
    assert main(["profile", "--build-dir", str(build), "--cluster", cluster]) == 1
    assert "here is 99.0" in capsys.readouterr().err
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as empty:
        assert main(["profile", "--build-dir", str(build), "--cluster", empty.scheduler_address]) == 1
    assert "has no workers" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_a_worker_that_dies_fails_its_kernel_alone(cluster, build, monkeypatch):
    from insight_trace.profile import cluster_runner as module

    def fatal(sent):
        if sent.kernel.name == "vector_add":
            import os

            os._exit(1)
        return run_sent_job(sent)

    monkeypatch.setattr(module, "run_sent_job", fatal)
    with contextlib.closing(module.ClusterRunner(cluster, RunOptions())) as runner:
        request = ProfileRequest(build, funcs=("vector_add", "matmul_64"), jobs=1)
        rows = {row.func: row for row in run_profile(request, runner).rows}
    assert rows["matmul_64"].exported
    assert rows["vector_add"].status == FAILED
    assert "did not finish the kernel" in rows["vector_add"].cell("message")


class Sent:
    """What a hostile worker would like us to unpickle."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


def hostile(_parcel, mark):
    return Sent(mark)


@pytest.mark.filterwarnings("default")
def test_nothing_that_a_worker_sends_is_unpickled_here(cluster, tmp_path):
    from insight_trace.profile import cluster_runner as module

    runner = module.ClusterRunner(cluster, RunOptions())
    try:
        mark = tmp_path / "unpickled"
        future = runner._client.submit(hostile, None, str(mark), pure=False)
        with pytest.raises(Exception):  # noqa: B017 - whatever distributed makes of it
            opened(future.result(timeout=30))
        assert not mark.exists()
    finally:
        runner.close()


@pytest.mark.parametrize("content", [b"", b"\x93", b"\xc1" * 9, [], None, b"\x83\xa7outcome\xc0"])
def test_what_is_no_result_is_refused(content):
    with pytest.raises(InputError, match="a worker sent"):
        opened(content)


@pytest.mark.parametrize("address", ["garbage", "tcp://", "://:", "tcp://host", "x" * 5000])
def test_an_address_that_is_none_is_refused_at_once(address, build, capsys):
    assert main(["profile", "--build-dir", str(build), "--cluster", address]) == 2
    said = capsys.readouterr().err
    assert "that is no address" in said
    assert len(said) < 600

"""Outputs appear whole, never over what somebody else put there, and a killed writer stands in nobody's way."""

import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from insight_trace import storage
from insight_trace.__main__ import main
from insight_trace.errors import JobError, RequestError
from insight_trace.storage import require_reports, whole_directory, whole_file, whole_files

ROOT = Path(__file__).resolve().parents[2]
SCENE = str(ROOT / "examples" / "paged_attention" / "scene.py")
CHAIN = str(ROOT / "examples" / "vector_chain" / "scene.py")
RECORD = ("record",)


def _fill(place: Path, text: str = "new") -> None:
    (place / "record").write_text(text)


@pytest.fixture(params=["renameat2", "fallback"])
def any_machine(request, monkeypatch):
    """With renameat2, and as on a file system that does not know it."""
    if request.param == "fallback":
        monkeypatch.setattr(storage, "_renameat2", lambda *_: False)


@pytest.mark.parametrize("theirs", [[], ["theirs"]])
def test_a_folder_made_meanwhile_is_left_alone_and_the_result_kept(tmp_path, any_machine, theirs):
    place = tmp_path / "out"
    with pytest.raises(JobError, match="in the meantime") as caught, whole_directory(place) as beside:
        _fill(beside)
        place.mkdir()
        for name in theirs:
            (place / name).touch()
    assert caught.value.exit_code == 1
    assert os.listdir(place) == theirs
    assert f"{place}.2" in caught.value.hint
    assert (tmp_path / "out.2" / "record").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["out", "out.2"]


def test_a_file_made_meanwhile_is_left_alone_and_the_result_kept(tmp_path, any_machine):
    place = tmp_path / "page.html"
    with pytest.raises(JobError, match="in the meantime"), whole_file(place) as file:
        file.write(b"ours")
        place.write_text("theirs")
    assert place.read_text() == "theirs"
    assert (tmp_path / "page.html.2").read_bytes() == b"ours"


def _writer(place: Path, text: str, all_inside: "multiprocessing.synchronize.Barrier") -> None:
    try:
        with whole_directory(place) as beside:
            _fill(beside, text)
            all_inside.wait(60)
    except (JobError, RequestError):
        sys.exit(1)


def test_eight_writers_of_one_place_lose_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    inside = context.Barrier(8)
    writers = [context.Process(target=_writer, args=(tmp_path / "out", str(n), inside)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(90)
    places = sorted(tmp_path.iterdir())
    assert [writer.exitcode for writer in writers].count(0) == 1
    assert len(places) == 8
    assert sorted((place / "record").read_text() for place in places) == [str(n) for n in range(8)]


def test_force_replaces_what_carries_our_record(tmp_path, any_machine):
    place = tmp_path / "out"
    for text in ("old", "new"):
        with whole_directory(place, force=True, record=RECORD) as beside:
            _fill(beside, text)
    assert (place / "record").read_text() == "new"
    assert os.listdir(tmp_path) == ["out"]


def test_force_leaves_a_folder_that_is_no_output(tmp_path):
    place = tmp_path / "thesis"
    place.mkdir()
    (place / "chapter").write_text("years")
    with (
        pytest.raises(RequestError, match="is no output of this command"),
        whole_directory(place, force=True, record=RECORD),
    ):
        pass
    assert (place / "chapter").read_text() == "years"


def test_force_never_replaces_an_input_the_working_folder_a_link_or_a_mount(tmp_path, monkeypatch):
    place = tmp_path / "out"
    (place / "below").mkdir(parents=True)
    _fill(place)

    def refused(path: Path, why: str, inputs: tuple[Path, ...] = ()) -> None:
        with (
            pytest.raises(RequestError, match=why),
            whole_directory(path, force=True, record=RECORD, inputs=inputs),
        ):
            pass
        assert (path / "record").exists() or path == Path("/")

    refused(place, "is an input", (place,))
    refused(place, "holds an input", (place / "record",))
    (tmp_path / "link").symlink_to(place)
    refused(tmp_path / "link", "is a link")
    refused(place, "holds an input", (tmp_path / "link" / "record",))
    monkeypatch.setattr(storage, "_mount_points", lambda: [place / "below"])
    refused(place, "mount point")
    monkeypatch.setattr(storage, "_mount_points", lambda: [])
    monkeypatch.chdir(place / "below")
    refused(place, "working folder")
    refused(Path("/"), "working folder")


def test_a_file_is_never_put_over_a_device_a_link_or_a_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "fifo")
    for name in ("folder", "link", "fifo"):
        with pytest.raises(RequestError), whole_file(tmp_path / name, force=True) as file:
            file.write(b"x")
    with pytest.raises(RequestError, match="no regular file"), whole_file(Path("/dev/null"), force=True):
        pass
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_page_over_its_own_trace_is_refused(tmp_path, capsys):
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": 0, "dur": 1, "pid": 1, "tid": 1}]}')
    before = trace.read_bytes()
    assert main(["view", str(trace), "-o", str(trace), "--force", "--no-browser"]) == 2
    assert "is an input" in capsys.readouterr().err
    assert trace.read_bytes() == before


def test_no_command_gives_others_more_than_the_umask(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o077)
    try:
        for words in (
            ["capture", CHAIN, "-o", "dump"],
            ["dump", "export", "dump", "-o", "arrays"],
            ["replay", CHAIN, "--func-id", "0", "--dump-dir", "dump", "--dispatch-id", "0", "-o", "replayed"],
            ["clean", "replayed", "-o", "cleaned"],
            ["view", "replayed", "--no-browser", "-o", "page.html"],
            ["run", CHAIN, "--jobs", "1", "-o", "run"],
            ["gate", "base.json", CHAIN, "--update", "--jobs", "1"],
        ):
            assert main(words) == 0, (words, capsys.readouterr().err)
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if not path.is_symlink()]
    assert len(made) > 40
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []


def test_what_a_killed_writer_left_is_removed_by_the_next_and_a_living_ones_piece_is_not(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from insight_trace.storage import whole_directory\n"
        "with whole_directory(Path(sys.argv[1])) as b: print(b, flush=True); time.sleep(60)"
    )
    place = tmp_path / "out"
    words = [sys.executable, "-c", code, str(place)]
    dead, living = (subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2))
    try:
        left, busy = (Path(p.stdout.readline().strip()) for p in (dead, living))
        dead.kill()
        dead.wait()
        old = time.time() - 60
        for piece in (left, busy):
            os.utime(piece, (old, old))
        assert left.is_dir()
        with whole_directory(place) as beside:
            _fill(beside)
        assert not left.exists()
        assert busy.is_dir()
        living.send_signal(signal.SIGKILL)
    finally:
        for process in (dead, living):
            process.kill()
            process.wait()
            process.stdout.close()
    assert (place / "record").exists()


@pytest.mark.parametrize(
    ("writer", "owner", "name"), [(whole_directory, Path, "mkdir"), (whole_file, os, "open")]
)
def test_an_interruption_as_soon_as_the_hidden_piece_is_there_leaves_nothing(
    tmp_path, monkeypatch, writer, owner, name
):
    make = getattr(owner, name)

    def interrupted(*arguments, **options):
        made = make(*arguments, **options)
        if ".insight-trace-" in str(arguments[0]):
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt), writer(tmp_path / "out"):
        pass
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


def test_files_of_an_export_appear_together_or_not_at_all(tmp_path):
    with pytest.raises(KeyboardInterrupt), whole_files(tmp_path / "npy") as beside:
        (beside / "a").write_text("a")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with whole_files(tmp_path / "npy") as beside:
        (beside / "a").write_text("a")
    with whole_files(tmp_path / "npy") as beside:
        (beside / "a").write_text("a")
        (beside / "b").write_text("b")
    assert sorted(os.listdir(tmp_path / "npy")) == ["a", "b"]
    with pytest.raises(RequestError), whole_files(tmp_path / "npy") as beside:
        (beside / "b").write_text("other")
        (beside / "c").write_text("c")
    assert sorted(os.listdir(tmp_path / "npy")) == ["a", "b"]
    assert (tmp_path / "npy" / "b").read_text() == "b"


def test_force_does_not_delete_the_scene_or_the_dump_that_is_replayed(tmp_path, capsys):
    chain, dump = tmp_path / "chain", tmp_path / "dump"
    shutil.copytree(Path(CHAIN).parent, chain)
    assert main(["capture", CHAIN, "-o", str(dump)]) == 0
    before = sorted(tmp_path.rglob("*"))
    words = ["replay", str(chain / "scene.py"), "--func-id", "0", "--dump-dir", str(dump), "--force", "-o"]
    for place in (chain, dump, dump / "args_dump", tmp_path):
        (place / "replay.json").write_text("{}")  # even where it looks like an output
        assert main([*words, str(place)]) == 2, place
        assert "an input" in capsys.readouterr().err
        (place / "replay.json").unlink()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sarif", "mine/README.md"], "is no SARIF report"),
        (["--junit", "mine/README.md"], "is no JUnit report"),
        (["--junit", "report", "--sarif", "./report"], "cannot hold both reports"),
    ],
)
def test_a_report_replaces_a_report_of_its_form_and_nothing_else(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples" / "pypto_build", "mine")
    before = (tmp_path / "mine" / "README.md").read_bytes()
    for command in (["diff", "mine", "mine"], ["gate", "base.json", "mine", "--update"]):
        assert main([*command, *words]) == 2
        assert said in capsys.readouterr().err
    assert (tmp_path / "mine" / "README.md").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    for form, begin in (("s.sarif", '{"$schema": "sarif"}'), ("j.xml", "<testsuites/>"), ("empty.xml", "")):
        (tmp_path / form).write_text(begin)
    require_reports(Path("s.sarif"), Path("j.xml"))
    require_reports(None, Path("empty.xml"))

"""A folder to begin with: it runs, is right and has nothing to remark."""

import errno
from pathlib import Path

from insight_trace.__main__ import main


def test_what_new_writes_runs_passes_its_golden_and_has_no_findings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my_first"]) == 0
    assert "insight-trace replay my_first/scene.py" in capsys.readouterr().out
    assert main(["capture", "my_first/scene.py", "-o", "dump"]) == 0
    assert "golden     passed" in capsys.readouterr().out
    # one kernel needs no --func-id
    assert main(["replay", "my_first/scene.py", "-o", "replayed"]) == 0
    assert "verified   slot 2 exact" in capsys.readouterr().out
    # a workspace says which text it repeats
    kernel = tmp_path / "my_first" / "my_first.cpp"
    assert main(["check", "replayed"]) == 0
    assert capsys.readouterr().out.startswith(
        "source     my_first.cpp as it was replayed, which is what it is now"
    )
    text = kernel.read_text()
    kernel.write_text(text.replace("TADD(", "TSUB("))
    assert main(["replay", "replayed", "-o", "again"]) == 1
    assert "my_first.cpp as it is now: my_first.cpp has changed" in capsys.readouterr().out.splitlines()[0]
    assert main(["replay", "replayed", "--as-recorded", "-o", "then"]) == 0
    assert "as it was replayed; my_first.cpp has changed since" in capsys.readouterr().out.splitlines()[0]
    kernel.write_text(text)
    assert main(["check", "my_first/scene.py"]) == 0
    assert "MY_FIRST: nothing to remark\n1 kernel · 0 errors" in capsys.readouterr().out


def test_a_wrong_name_and_a_folder_that_is_there_are_answered(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-kernel"]) == 2
    assert "use letters, digits and _" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    assert main(["new", "mine"]) == 2
    assert "choose another name" in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_failure_on_the_way_leaves_no_half_of_it_and_the_next_call_works(tmp_path, monkeypatch):
    write = Path.write_text

    def full(path, *words, **more):
        if path.name == "scene.py":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, *words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        assert main(["new", "mine", "-o", str(tmp_path / "mine")]) == 1
    assert not list(tmp_path.iterdir())
    assert main(["new", "mine", "-o", str(tmp_path / "mine")]) == 0
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"mine.cpp", "scene.py"}

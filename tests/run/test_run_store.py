"""The index of runs holds every run that was added, however many add to it, and removes only what runs made."""

import json
import multiprocessing
import shutil
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.errors import InputError, RequestError
from insight_trace.run.run_store import RunStore, compared


def data_of(cycles: int, case: str = "Case") -> dict:
    kernels = [
        {
            "name": "QK", "work": cycles // 2, "dispatches": 3, "least": 1, "median": 2, "most": 3, "path_share": 0.5,
            "bound": "MTE2 60%",
        }
    ]  # fmt: skip
    return {
        "scene": "some/scene.py", "case": case, "chip": "Ascend910B1", "cycles": cycles, "micros": cycles / 1850,
        "dispatches": 3, "distinct": 1, "path": {"kernel": cycles}, "kernels": kernels,
    }  # fmt: skip


def made(folder: Path, name: str) -> Path:
    place = folder / name
    place.mkdir()
    (place / "run.json").write_text("{}")
    return place


def add_many(index: str, folder: str, writer: int, count: int) -> None:
    store = RunStore(Path(index))
    for number in range(count):
        store.add(data_of(1000 + number), Path(folder) / f"{writer}_{number}")


def test_many_writers_lose_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    index = tmp_path / "runs.sqlite"
    writers = [context.Process(target=add_many, args=(str(index), str(tmp_path), w, 20)) for w in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    found = RunStore(index).runs()
    assert len(found) == 80
    assert len({run.directory for run in found}) == 80
    assert sorted(run.id for run in found) == list(range(1, 81))


def test_runs_are_found_by_number_and_by_how_long_ago(tmp_path):
    store = RunStore(tmp_path / "runs.sqlite")
    with pytest.raises(RequestError, match="no index"):
        store.runs()
    for number in range(3):
        store.add(data_of(1000 * (number + 1), f"C{number}"), tmp_path / str(number))
    assert store.run("last").case == "C2"
    assert store.run("last-2").case == "C0"
    assert store.run("2").case == "C1"
    assert [run.case for run in store.runs(case="C1")] == ["C1"]
    for word in ("4", "last-3", "first"):
        with pytest.raises(RequestError, match="there is no run"):
            store.run(word)
    assert store.add(data_of(5), tmp_path / "1") == 4  # a folder that was used again
    assert len(store.runs()) == 3


def test_a_file_that_is_no_index_is_named(tmp_path):
    path = tmp_path / "runs.sqlite"
    path.write_text("not a database, and long enough to look like one" * 30)
    with pytest.raises(InputError, match="cannot be used"):
        RunStore(path).runs()


def test_two_runs_are_compared_by_kernel():
    assert compared(data_of(100), data_of(150)) == [("the run", 100, 150), ("QK", 50, 75)]


def test_the_command_lists_shows_compares_and_prunes(tmp_path, capsys):
    index = tmp_path / "runs.sqlite"
    store = RunStore(index)
    places = [made(tmp_path, f"run{number}") for number in range(3)]
    for number, place in enumerate(places):
        store.add(data_of(1000 * (number + 1)), place)
    stranger = tmp_path / "other"
    stranger.mkdir()
    store.add(data_of(9), stranger)  # a folder without a run in it
    words = ["--index", str(index)]
    assert main(["runs", "list", *words, "--json"]) == 0
    assert [r["there"] for r in json.loads(capsys.readouterr().out)["runs"]] == [False, True, True, True]
    assert main(["runs", "list", *words]) == 0
    assert main(["runs", "show", "2", *words]) == 0
    assert "2,000 cycles" in capsys.readouterr().out
    assert main(["runs", "compare", "1", "2", *words]) == 0
    assert "+100.00%" in capsys.readouterr().out
    assert main(["runs", "compare", "1", *words]) == 2
    assert main(["runs", "prune", *words]) == 2
    assert main(["runs", "prune", "--keep", "2", *words]) == 0
    assert "would remove run 1" in capsys.readouterr().out
    assert places[0].exists()
    assert main(["runs", "prune", "--keep", "0", "--yes", *words]) == 0
    assert not any(place.exists() for place in places)
    assert stranger.exists()
    assert store.runs() == []


CHAIN = Path(__file__).parents[2] / "examples" / "vector_chain"


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_prune_removes_what_a_run_wrote_and_nothing_that_somebody_put_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "kept"
    assert (
        main(["run", str(CHAIN / "scene.py"), "-o", str(place), "--replay-slowest", "1", "--jobs", "1"]) == 0
    )
    assert _names(place) > {"run.json", "files.json", "index.html", "tasks.csv"}
    assert any(name.startswith("dispatches/") for name in _names(place))
    (place / "notes.txt").write_text("mine")
    (place / "dispatches" / "mine").mkdir()
    (place / "dispatches" / "mine" / "thesis.txt").write_text("mine, too")
    (place / "tasks.csv").write_text("mine now")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_text("mine")
    listed = json.loads((place / "files.json").read_text())
    listed |= {"../elsewhere/precious": [4, (tmp_path / "elsewhere" / "precious").stat().st_mtime_ns]}
    (place / "files.json").write_text(json.dumps(listed))
    capsys.readouterr()
    assert main(["runs", "prune", "--keep", "0", "--yes"]) == 0
    assert "3 files that it did not write stay" in capsys.readouterr().out
    assert _names(place) == {"notes.txt", "dispatches/mine/thesis.txt", "tasks.csv"}
    assert (tmp_path / "elsewhere" / "precious").read_text() == "mine"


def test_prune_of_a_run_in_the_project_leaves_the_project(tmp_path, monkeypatch, capsys):
    project = tmp_path / "project"
    shutil.copytree(CHAIN, project)
    before = _names(project)
    monkeypatch.chdir(project)
    assert main(["run", "scene.py", "-o", ".", "--force", "--jobs", "1"]) == 0
    assert main(["runs", "prune", "--keep", "0", "--yes"]) == 0
    assert {name for name in _names(project) if "__pycache__" not in name} == before | {"outputs/runs.sqlite"}
    for name in ("index.html", "run.json"):  # a file of that name says nothing of the others
        (project / name).write_text("<p>mine")
        assert main(["run", "scene.py", "-o", ".", "--force", "--jobs", "1"]) == 2
        assert "is not of a run" in capsys.readouterr().err
        assert (project / name).read_text() == "<p>mine"

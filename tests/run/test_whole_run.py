"""A case on a whole chip: every dispatch timed once, placed, told in parts that add up, and continued after an end."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.errors import InputError, JobError
from insight_trace.executor import Local, Remaining, required
from insight_trace.executor.journal import Journal
from insight_trace.options import RunOptions
from insight_trace.run.timing import Dispatches, Timed, run_timing_job
from insight_trace.run.whole_run import RunRequest, run_case
from tests.chromium import Browser, find_chromium

SCENE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"


class Counted:
    """Runs jobs here and counts them; ends like a person's Ctrl-C after `most`."""

    def __init__(self, most: int = 1000) -> None:
        self.names: list[str] = []
        self.most = most

    def run(self, work, jobs, _kind):
        for place, job in enumerate(jobs):
            if len(self.names) == self.most:
                raise KeyboardInterrupt
            self.names.append(job.job.name)
            yield place, work(job)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    counted = Counted()
    return run_case(RunRequest(SCENE, "CaseSmall1"), tmp_path_factory.mktemp("small"), counted), counted


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A run as it is typed: the words, what it says as JSON, and its folder."""
    out = tmp_path_factory.mktemp("run") / "out"
    words = [
        "run",
        str(SCENE),
        "--case",
        "CaseSmall1",
        "-o",
        str(out),
        "--jobs",
        "1",
        "--replay-slowest",
        "1",
    ]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main([*words, "--json"]) == 0
    return words, json.loads(said.getvalue()), out


def test_the_page_holds_its_numbers_and_nothing_from_elsewhere(left):
    folder = left[2]
    text = (folder / "index.html").read_text()
    assert "PagedAttention" in text or "paged_attention CaseSmall1" in text
    assert not re.findall(r"https?:(?!//www\.w3\.org/2000/svg)", text)
    assert text.count("</script>") == 2


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium")
def test_the_page_leads_from_a_task_to_its_trace(left, tmp_path):
    """And opens without a complaint, and draws every core."""
    folder = left[2]
    browser = Browser(find_chromium(), tmp_path / "profile")
    try:
        browser.open((folder / "index.html").as_uri())
        browser.wait("document.querySelectorAll('#kernels tr').length == 5")
        assert browser.evaluate("data.bars.length") == 12
        assert browser.evaluate("data.names.length") == 72
        assert browser.evaluate("[data.names[0], data.names[24], data.names[71]]") == [
            "AIC 0",
            "AIV 0",
            "AIV 47",
        ]
        assert "bound by scheduling" in browser.evaluate("document.getElementById('bound').textContent")
        legend = browser.evaluate("document.getElementById('kernel-legend').textContent")
        assert legend == "".join(browser.evaluate("data.kernels.map((kernel) => kernel.name)"))
        browser.evaluate("document.querySelectorAll('#kernels tr')[1].click()")
        said = browser.evaluate("document.getElementById('answer').textContent")
        assert "insight-trace replay" in said
        assert "AIV" in said or "AIC" in said
        before = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        browser.evaluate("document.getElementById('theme').click()")
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") != before
        link = browser.evaluate("document.querySelector('#answer a').getAttribute('href')")
        assert (folder / link / "visualize_data.bin").is_file()
        assert browser.errors == []
    finally:
        browser.close()


def test_the_command_says_what_a_run_is_made_of_and_leaves_it(left, capsys):
    words, data, out = left
    assert data["dispatches"] == 12
    assert data["tasks"] == 13
    assert sum(data["path"].values()) == data["cycles"]
    assert [row["name"] for row in data["kernels"] if row["dispatches"] == 3]
    assert len(data["kernels"]) == 4
    assert sum(row["distinct"] for row in data["kernels"]) == data["distinct"] <= 12
    for row in data["kernels"]:
        assert row["least"] <= row["median"] <= row["most"]
        assert row["verified"] == "no"
        # a scheduler that places what is ready may do worse with less to do (Graham's anomaly), not by much: a task
        # that comes to another cluster finds fewer pages known there
        assert 0 < row["without"] <= 1.05 * data["cycles"]
    assert sum(row["without"] > data["cycles"] for row in data["kernels"]) <= 1
    assert data["longest_chain"] <= data["cycles"]
    kept = json.loads((out / "run.json").read_text())
    assert kept["cycles"] == data["cycles"]
    timeline = json.loads((out / "timeline.json").read_text())["traceEvents"]
    cores = {
        e["tid"]
        for e in timeline
        if e["name"] == "thread_name" and e["args"]["name"].startswith(("AIC", "AIV"))
    }
    kernels = [e for e in timeline if e["ph"] == "X" and e["tid"] in cores]
    assert len(kernels) == 12
    assert max(e["ts"] + e["dur"] for e in timeline if e["ph"] == "X") == pytest.approx(
        data["micros"], abs=1e-3
    )
    with (out / "tasks.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert {row["kernel"] for row in rows} == {"QK", "SF", "PV", "UP"}
    (opened,) = data["replayed"]
    assert (Path(opened) / "visualize_data.bin").is_file()
    assert main(words) == 2
    assert "a finished run" in capsys.readouterr().err
    assert main([*words[:-2], "--force"]) == 0
    said = capsys.readouterr().out
    assert "known before" in said
    assert "insight-trace replay" in said


def test_tasks_of_one_form_take_what_each_of_them_takes_alone(small):
    done, _ = small
    dispatches = Dispatches(done.graph, RunOptions(), round(done.chip.value("l2.capacity")))
    for variant in done.variants:
        for place in variant.tasks.tolist():
            alone = run_timing_job(dispatches.job(place))
            assert alone.cycles == variant.timed.cycles
            assert alone.times == variant.timed.times


def test_every_task_is_in_one_variant_and_no_job_is_run_twice(small):
    done, counted = small
    assert sorted(np.concatenate([v.tasks for v in done.variants]).tolist()) == list(range(12))
    assert len(counted.names) == len(done.variants)


def test_a_run_that_was_ended_goes_on_and_repeats_nothing(small, tmp_path):
    whole, all_jobs = small
    first, second = Counted(4), Counted()
    with pytest.raises(KeyboardInterrupt):
        run_case(RunRequest(SCENE, "CaseSmall1"), tmp_path, first)
    done = run_case(RunRequest(SCENE, "CaseSmall1"), tmp_path, second)
    assert len(first.names) + len(second.names) == len(all_jobs.names)
    assert done.reused == 4
    assert done.total == whole.total
    for column in ("task", "place", "start", "end"):
        assert (getattr(done.schedule, column) == getattr(whole.schedule, column)).all()


def test_results_that_are_not_used_are_not_counted_as_known(small, tmp_path):
    """Four entries of a journal that nothing asks for: every dispatch is simulated, and that is what is said."""
    whole, _ = small
    with Journal(tmp_path / "jobs.jsonl", Timed) as journal:
        for number in range(4):
            journal.add(f"of another engine {number}", whole.variants[0].timed)
    again = Counted()
    done = run_case(RunRequest(SCENE, "CaseSmall1"), tmp_path, again)
    assert len(again.names) == len(whole.variants)
    assert done.reused == 0


def test_with_values_every_kernel_is_run_and_the_golden_is_compared(tmp_path, capsys):
    words = ["run", str(SCENE), "--case", "CaseSmall1", "-o", str(tmp_path / "run"), "--values", "--json"]
    assert main(words) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kernels_ran"]
    assert data["golden"]
    assert {row["verified"] for row in data["kernels"]} == {"golden"}
    assert data["dispatches"] == 12


def test_a_kernel_that_cannot_be_run_takes_the_time_that_is_given(tmp_path, capsys):
    shutil.copytree(SCENE.parent, tmp_path / "scene")
    scene = str(tmp_path / "scene" / "scene.py")
    kernel = tmp_path / "scene" / "kernels" / "softmax.cpp"
    kernel.write_text('#include "basic_api/kernel_operator.h"\n' + kernel.read_text())
    words = ["run", scene, "--case", "CaseSmall2", "--jobs", "1", "--json", "-o", str(tmp_path / "out")]
    assert main(words) == 1
    assert "--assume KERNEL=US" in capsys.readouterr().err
    assert main([*words, "--force", "--assume", "SF=3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["assumed"] == {"SF": 3.0}
    (row,) = [row for row in data["kernels"] if row["name"] == "SF"]
    assert row["least"] == row["most"] == round(3 * data["mhz"])
    assert sum(data["path"].values()) == data["cycles"]
    for wrong in ("XX=3", "SF", "SF=-1", "SF=nan"):
        assert main([*words, "--force", "--assume", wrong]) == 2
    assert main([*words, "--force", "--assume", "SF=3", "--values"]) == 2


def test_a_chip_of_another_family_is_refused(tmp_path, capsys):
    words = ["run", str(SCENE), "--case", "CaseSmall1", "--platform", "a2a3", "--chip", "Ascend950PR_9599"]
    assert main([*words, "-o", str(tmp_path / "run")]) == 2
    assert "is a chip of a5" in capsys.readouterr().err


def test_a_run_that_is_killed_goes_on_with_what_it_had(tmp_path):
    out = tmp_path / "run"
    words = [sys.executable, "-m", "insight_trace", "run", str(SCENE), "--case", "CaseSmall2", "-o", str(out)]
    process = subprocess.Popen([*words, "--jobs", "1"], stdout=subprocess.DEVNULL, cwd=tmp_path)
    journal = out / "jobs.jsonl"
    while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < 2):
        time.sleep(0.005)
    process.kill()
    process.wait()
    known = journal.read_bytes().count(b"\n")
    assert known >= 2
    subprocess.run([*words, "--jobs", "1", "--force"], stdout=subprocess.DEVNULL, check=True, cwd=tmp_path)
    names = [json.loads(line)[0] for line in journal.read_text().splitlines()]
    assert len(set(names)) == len(names)  # nothing twice
    data = json.loads((out / "run.json").read_text())
    assert data["distinct"] == len(names)
    assert data["timed_before"] in (known, known + 1)  # one more may have come in before the end


def test_a_journal_forgets_a_line_that_was_cut_off_and_names_one_that_is_wrong(tmp_path):
    path = tmp_path / "jobs.jsonl"
    timed = Timed(5, ((5,),), {"MTE2": 0.5}, 0.1, 7, (1,))
    with Journal(path, Timed) as journal:
        journal.add("a", timed)
        journal.add("b", timed)
    path.write_bytes(path.read_bytes()[:-9])
    with Journal(path, Timed) as journal:
        assert journal.known == {"a": timed}
        journal.add("c", timed)
    with Journal(path, Timed) as journal:
        assert set(journal.known) == {"a", "c"}
    path.write_text('["a", {"cycles": "many"}]\n')
    with pytest.raises(InputError, match=r"this is no result"):
        Journal(path, Timed)


def run_jobs(work, jobs, processes):
    return required(Local(processes).run(work, iter(jobs), object))


def square(number: int) -> int:
    return number * number


def once(path: str) -> str:
    """Fails, or ends its process, the first time."""
    mark = Path(path)
    if not mark.exists():
        mark.touch()
        if "kill" in mark.name:
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("the first time")
    return mark.name


def never(text: str) -> str:
    raise ValueError(text)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_pool_gives_every_job_its_result_and_tries_a_failed_one_again(processes, tmp_path):
    assert sorted(run_jobs(square, range(7), processes)) == [(i, i * i) for i in range(7)]
    jobs = [str(tmp_path / name) for name in ("a", "b", "c")]
    assert sorted(run_jobs(once, jobs, processes)) == [(0, "a"), (1, "b"), (2, "c")]
    with pytest.raises(JobError, match="failed twice: ValueError: no"):
        list(run_jobs(never, ["no", "no"], processes))


def test_a_process_that_is_killed_loses_no_job(tmp_path):
    jobs = [str(tmp_path / name) for name in ("a", "kill", "c", "d")]
    for name in ("a", "c", "d"):
        (tmp_path / name).touch()
    assert sorted(run_jobs(once, jobs, 2)) == [(0, "a"), (1, "kill"), (2, "c"), (3, "d")]


_WAITS = """
import os, sys, time
from pathlib import Path
from insight_trace.executor import Local
def wait(name):
    Path(name).write_text(str(os.getpid()))
    time.sleep(600)
if __name__ == "__main__":
    list(Local(2).run(wait, sys.argv[1:], object))
"""


def test_a_pool_leaves_no_thread_so_that_the_next_is_made_of_copies_too():
    before = threading.active_count()
    for _ in range(3):
        assert sorted(run_jobs(abs, [-1, -2, -3], 2)) == [(0, 1), (1, 2), (2, 3)]
        assert threading.active_count() <= before  # threads of earlier tests may end meanwhile


def test_no_process_of_a_pool_outlives_the_one_that_is_killed(tmp_path):
    program = tmp_path / "waits.py"
    program.write_text(_WAITS)
    marks = [tmp_path / "a", tmp_path / "b"]
    owner = subprocess.Popen([sys.executable, str(program), *map(str, marks)])
    end = time.monotonic() + 60
    while not all(mark.exists() and mark.read_text() for mark in marks) and time.monotonic() < end:
        time.sleep(0.01)
    workers = [Path("/proc", mark.read_text()) for mark in marks]
    owner.kill()
    owner.wait()

    def runs(worker: Path) -> bool:
        try:
            return (worker / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    while any(map(runs, workers)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(runs, workers))


def test_what_is_left_is_told_from_what_was_done():
    rest = Remaining()
    assert rest.text(2, 10) == "2 of 10"
    assert "left" in rest.text(4, 10)
    assert rest.text(10, 10) == "10 of 10"

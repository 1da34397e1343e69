"""A gate lets nothing worse through and says nothing of what is as it was."""

import dataclasses
import json
import multiprocessing
import random
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.errors import InputError, RequestError
from insight_trace.run.baseline import (
    Baseline,
    CaseFigures,
    KernelFigures,
    differences,
    junit_text,
    read_baseline,
    sarif_of,
    update_baseline,
    write_baseline,
)

EXAMPLES = Path(__file__).parents[2] / "examples"


def forty(dice: random.Random) -> CaseFigures:
    kernels = {
        f"K{i}": KernelFigures(
            dice.randrange(1, 500), dice.randrange(100_000, 10**8), dice.randrange(1000, 90_000)
        )
        for i in range(40)
    }
    return CaseFigures("scene.py", "Case", "Ascend910B1", 10**9, "passed", kernels)


def with_kernel(case: CaseFigures, name: str, **changes) -> CaseFigures:
    kernel = dataclasses.replace(case.kernels[name], **changes)
    return dataclasses.replace(case, kernels={**case.kernels, name: kernel})


def test_one_kernel_of_forty_that_is_three_percent_slower_is_found_and_nothing_else_a_thousand_times():
    dice = random.Random(7)
    for _ in range(1000):
        before = forty(dice)
        name = f"K{dice.randrange(40)}"
        kernel = before.kernels[name]
        now = with_kernel(before, name, cycles=round(kernel.cycles * 1.03), most=round(kernel.most * 1.03))
        found = differences([before], [now], 0.01)
        assert {change.kernel for change in found if change.worse} == {name}
        assert {change.what for change in found} == {"slower"}
        assert differences([before], [before], 0.0) == []


def test_what_is_within_the_threshold_is_told_and_lets_through():
    before = forty(random.Random(1))
    now = with_kernel(before, "K3", cycles=round(before.kernels["K3"].cycles * 1.005))
    (change,) = differences([before], [now], 0.01)
    assert not change.worse
    assert "+0.50%" in change.text
    (change,) = differences([before], [now], 0.001)
    assert change.worse


def test_new_findings_verdicts_and_what_is_gone_are_worse():
    before = forty(random.Random(1))
    now = with_kernel(before, "K1", findings={"error race": 1})
    now = with_kernel(now, "K2", findings={"note idle-flag": 4})
    now = dataclasses.replace(
        now, verdict="failed", kernels={k: v for k, v in now.kernels.items() if k != "K5"}
    )
    found = {(c.kernel, c.what): c.worse for c in differences([before], [now], 0.01)}
    assert found == {
        ("", "verdict"): True,
        ("K1", "finding"): True,
        ("K2", "finding"): False,
        ("K5", "gone"): True,
    }
    found = {(c.kernel, c.what): c.worse for c in differences([now], [before], 0.01)}
    assert found[("K1", "fixed")] is False
    assert found[("", "verdict")] is False
    assert differences([before], [], 0.01)[0].what == "gone"


def test_reports_name_the_kernel(tmp_path):
    before = with_kernel(forty(random.Random(1)), "K1", source="kernels/one.cpp")
    now = with_kernel(before, "K1", cycles=before.kernels["K1"].cycles * 2)
    changes = differences([before], [now], 0.01)
    suites = ET.fromstring(junit_text([now], changes))
    assert suites.attrib["tests"] == "41"
    assert suites.attrib["failures"] == "1"
    (failed,) = [test for test in suites.iter("testcase") if test.find("failure") is not None]
    assert failed.attrib["name"] == "K1"
    (result,) = sarif_of(changes, [], tmp_path)["runs"][0]["results"]
    assert result["ruleId"] == "gate-slower"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kernels/one.cpp"


def test_a_baseline_is_read_as_it_was_written_and_a_wrong_one_is_named(tmp_path):
    path = tmp_path / "base.json"
    whole = Baseline(
        (forty(random.Random(1)), dataclasses.replace(forty(random.Random(2)), case="Other")), 0.02
    )
    write_baseline(path, whole)
    first = path.read_bytes()
    assert read_baseline(path) == whole
    write_baseline(path, read_baseline(path))
    assert path.read_bytes() == first
    path.write_text('{"cases": 3}')
    with pytest.raises(InputError, match="no baseline"):
        read_baseline(path)
    path.write_text('{"cases": [], "version": 9}')
    with pytest.raises(InputError, match="version 9"):
        read_baseline(path)
    path.write_text('{"cases": [], "threshold": 1e9}')
    with pytest.raises(RequestError, match="a share such as"):
        read_baseline(path)


def test_the_command_lets_a_case_through_until_a_kernel_does_more(tmp_path, capsys):
    shutil.copytree(EXAMPLES / "vector_chain", tmp_path / "chain")
    scene, base = tmp_path / "chain" / "scene.py", tmp_path / "base.json"
    assert main(["gate", str(base)]) == 2
    assert "there is no baseline" in capsys.readouterr().err
    assert main(["gate", str(base), f"{scene}", "--update", "--jobs", "1"]) == 0
    capsys.readouterr()
    kept = read_baseline(base)
    (case,) = kept.cases
    assert case.scene == "chain/scene.py"
    assert case.verdict == "passed"
    assert main(["gate", str(base), "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"] == []
    kernel = tmp_path / "chain" / "kernels" / "add.cpp"
    text = kernel.read_text()
    place = text.rindex("TSTORE(")
    kernel.write_text(text[:place] + "pipe_barrier(PIPE_ALL); pipe_barrier(PIPE_ALL);\n    " + text[place:])
    reports = ["--junit", str(tmp_path / "j.xml"), "--sarif", str(tmp_path / "s.json")]
    assert main(["gate", str(base), "--jobs", "1", "--threshold", "0", "--json", *reports]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["worse"] >= 1
    slower = {change["kernel"] for change in data["changes"] if change["what"] == "slower"}
    assert slower
    assert {change["source"] for change in data["changes"] if change["what"] == "slower"} == {
        "chain/kernels/add.cpp"
    }
    assert ET.fromstring((tmp_path / "j.xml").read_text()).attrib["failures"] != "0"
    assert json.loads((tmp_path / "s.json").read_text())["runs"][0]["results"]
    assert main(["gate", str(base), "--jobs", "1", "--update"]) == 0
    assert main(["gate", str(base), "--jobs", "1"]) == 0


def _add(path: str, case: str, ready, go) -> None:
    """What `gate --update SCENE::CASE` does with what it measured, after another has read the same file."""
    known = read_baseline(Path(path)).cases
    ready.release()
    go.acquire()
    figures = dataclasses.replace(forty(random.Random(3)), case=case)
    update_baseline(Path(path), known, [figures], None, replace_all=False)


def test_two_updates_at_once_lose_no_case(tmp_path):
    path = tmp_path / "base.json"
    write_baseline(path, Baseline((forty(random.Random(1)),), 0.02))
    context = multiprocessing.get_context("fork")
    ready, go = context.Semaphore(0), context.Semaphore(0)
    writers = [context.Process(target=_add, args=(str(path), f"C{n}", ready, go)) for n in range(6)]
    for writer in writers:
        writer.start()
    for _ in writers:
        ready.acquire()
    for _ in writers:
        go.release()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    found = read_baseline(path)
    assert [case.case for case in found.cases] == [*(f"C{n}" for n in range(6)), "Case"]
    assert found.threshold == 0.02
    assert [file.name for file in tmp_path.iterdir()] == ["base.json"]


def test_an_update_of_all_cases_keeps_one_that_was_added_meanwhile(tmp_path):
    path = tmp_path / "base.json"
    first = forty(random.Random(1))
    write_baseline(path, Baseline((first, dataclasses.replace(first, case="New"))))
    update_baseline(path, [first], [dataclasses.replace(first, cycles=5)], None, replace_all=True)
    assert {case.case: case.cycles for case in read_baseline(path).cases} == {"Case": 5, "New": first.cycles}

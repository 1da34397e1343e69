"""Every product writes workspaces, and everything that opens one opens each of them."""

import json
import re
import shutil
from pathlib import Path

import pytest

from insight_trace.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """Workspaces of a build's kernels: one on a dispatch of the build's run, one on made-up arguments."""
    folder = tmp_path_factory.mktemp("profiled")
    build = folder / "build"
    shutil.copytree(ROOT / "examples" / "pypto_run", build)
    found = {}
    for kind, more in (("run", []), ("made-up", ["--synthetic"])):
        root = folder / kind
        words = ["profile", "--build-dir", str(build), "--output-root", str(root), "--jobs", "1", *more]
        assert main([*words, "--func", _first_kernel(build)]) == 0
        (found[kind],) = root.glob("*/funcs/*")
    return found


def _first_kernel(build: Path) -> str:
    return sorted(path.stem for path in (build / "ptoas").glob("*.cpp"))[0]


def _output(workspace: Path) -> tuple[int, int]:
    """The slot of an output, and its dimensions."""
    slots = json.loads((workspace / "replay.json").read_text())["arguments"]["slots"]
    found = [slot for slot in slots if slot["kind"] == "tensor" and slot["role"] in ("output", "inout")]
    return found[0]["slot"], len(found[0]["shape"])


@pytest.mark.parametrize("kind", ["run", "made-up"])
def test_what_profile_wrote_opens_everywhere(kind, profiled, tmp_path, capsys):
    workspace = profiled[kind]
    words = str(workspace)
    assert main(["replay", words, "-o", str(tmp_path / "again"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["cycles"] == json.loads((workspace / "replay.json").read_text())["cycles"]
    assert main(["check", words]) == 0
    assert main(["query", words, "select count(*) from instructions"]) == 0
    assert main(["stats", words]) == 0
    assert main(["debug", words, "--end", "--tiles", "--json"]) == 0
    assert main(["diverge", words, str(tmp_path / "again"), "--json"]) == 0
    assert main(["compare", words, str(tmp_path / "again")]) == 0
    assert main(["view", words, "--no-browser", "-o", str(tmp_path / "page.html")]) == 0
    title = re.search("<title>(.*) · Insight Trace</title>", (tmp_path / "page.html").read_text())
    assert title, "a page without a title"
    of_a_run = {"run": f"build · {workspace.name} · dispatch 0", "made-up": workspace.name}[kind]
    assert title[1] == f"{of_a_run} · Ascend910B1", "what ran, and on which chip"
    slot, dims = _output(workspace)
    assert main(["why", words, f"{slot}[{','.join(['0'] * dims)}]", "--json"]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_a_workspace_holds_every_file_that_its_kernel_included(tmp_path, capsys, monkeypatch):
    scene = tmp_path / "scene"
    shutil.copytree(ROOT / "examples" / "vector_chain", scene)
    kernel = next(iter(sorted((scene / "kernels").rglob("*.cpp"))))
    header = kernel.parent / "steps.h"
    header.write_text('#include "../above.h"\n')
    (kernel.parent.parent / "above.h").write_text("#define INSIGHT_STEPS 1\n")
    kernel.write_text('#include "steps.h"\nstatic_assert(INSIGHT_STEPS == 1);\n' + kernel.read_text())
    monkeypatch.chdir(tmp_path)
    assert main(["replay", str(scene / "scene.py"), "--func-id", "0", "-o", "first", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    # the files of now are taken, unless the text of then is asked for: headers of now do not matter to that
    (kernel.parent.parent / "above.h").write_text("#define INSIGHT_STEPS 2\n")
    assert main(["replay", "first", "-o", "second"]) == 1
    told = capsys.readouterr()
    assert "as it is now: above.h has changed since" in told.out
    assert "static assertion failed" in told.err
    assert main(["replay", "first", "--as-recorded", "-o", "second", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == first["cycles"]
    shutil.rmtree(scene)
    assert main(["replay", "second", "-o", "third", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == first["cycles"]


def test_a_workspace_that_names_a_kernel_outside_of_it_is_refused(tmp_path, capsys):
    (tmp_path / "elsewhere.cpp").write_text("")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    kernel = {"name": "k", "func_id": 0, "core_type": "aiv", "entry": "kernel_entry", "source": "/k.cpp",
              "copy": "../elsewhere.cpp", "include_dirs": [], "signature": None}  # fmt: skip
    scene = {"path": "s.py", "name": "s", "class_name": "S", "runtime": "r"}
    record = {"version": 1, "kernels": [kernel], "scene": scene, "case": None,
              "arguments": {"slots": [], "notes": [], "block_count": 1}}  # fmt: skip
    (workspace / "replay.json").write_text(json.dumps(record))
    assert main(["replay", str(workspace)]) == 1
    assert "outside its folder" in capsys.readouterr().err

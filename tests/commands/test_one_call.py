"""A command parses, calls one function of the API and prints what that returns."""

import argparse
import contextlib
import functools
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import insight_trace
from insight_trace import commands
from insight_trace.options import RunOptions, VendorOptions
from insight_trace.program.run_kernel import KernelFunction

ROOT = Path(__file__).resolve().parent.parent.parent
SCENE = "examples/vector_chain/scene.py"
# command -> what is typed, the function that it calls. A judge's verdicts come one by one, so that a person sees how far it
# is, and a server calls what it is asked for: both have tests of their own.
LINES: dict[str, tuple[str, str]] = {
    "scene": (f"{SCENE} --json", "load_scene"),
    "capture": (f"{SCENE} -o captured --json", "capture"),
    "dump": ("list DUMP --json", "dump_entries"),
    "replay": ("WORKSPACE -o again --json", "replay"),
    "replay-all": (f"{SCENE} --dump-dir DUMP --sample 1 --json", "replay_all"),
    "profile": ("--build-dir BUILD --func square_rows --synthetic", "profile"),
    "exec": ("--json -- true", "run_program"),
    "kernel": (
        "examples/kernels/vector_add.cpp --arg left=f32[64] --arg right=f32[64] --arg out=f32[64]",
        "kernel",
    ),
    "run": (f"{SCENE} -o whole --json", "run"),
    "op": ("TADD --rows 16 --cols 64 --json", "time_op"),
    "core-swimlane": (f"--test {SCENE} --func-id 0 --platform a2a3 --dump-json DUMP", "replay"),
    "view": ("WORKSPACE --no-browser -o page.html", "view"),
    "stats": ("WORKSPACE --json", "stats"),
    "compare": ("WORKSPACE WORKSPACE --json", "compare"),
    "query": ("WORKSPACE SELECT --json", "query"),
    "clean": ("WORKSPACE -o cleaned --json", "clean"),
    "export": ("--validate WORKSPACE/insight_export --json", "validate"),
    "check": (f"{SCENE} --kernel ADD --json", "check"),
    "debug": ("WORKSPACE --pipes --json", "open_session"),
    "why": ("WORKSPACE 2[0,0] --json", "why"),
    "diverge": ("WORKSPACE WORKSPACE --json", "diverge"),
    "diff": ("WORKSPACE WORKSPACE --json", "diff"),
    "gate": (f"baseline.json {SCENE}::Default --update --json", "gate"),
    "runs": ("list --index INDEX --json", "runs"),
    "calibrate": (f"{SCENE} --dump-dir DUMP --pmu COUNTERS --json", "calibrate"),
    "demo": ("-o demo", "demo"),
    "new": ("first", "new"),
    "doctor": ("--json", "doctor"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dump, a workspace and what a device might have measured of them."""
    folder = tmp_path_factory.mktemp("one_call")
    insight_trace.capture(ROOT / SCENE, output=folder / "dump")
    insight_trace.replay(ROOT / SCENE, kernel="ADD", dump_dir=folder / "dump", output=folder / "workspace")
    task = json.loads((folder / "dump/args_dump/args_dump.json").read_text())["args"][0]["task_id"]
    columns = "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,vec_busy_cycles"
    (folder / "pmu.csv").write_text(f"{columns}\n0,0,{task},0,1,9000,400\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSIGHT_TRACE_RUNS", str(folder / "runs.sqlite"))
        insight_trace.run(ROOT / SCENE, output=folder / "run")
    shutil.copytree(ROOT / "examples" / "pypto_run", folder / "build")
    return folder


def test_every_command_has_a_line_here():
    assert {*LINES, "judge", "mcp"} == set(commands.COMMANDS)


@pytest.mark.parametrize("command", LINES)
def test_a_command_prints_what_its_one_call_returns(command, made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    calls = []

    def recorded(name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            calls.append((name, function(*args, **kwargs)))
            return calls[-1][1]

        return call

    for name, module in insight_trace.FUNCTIONS.items():
        with contextlib.suppress(ModuleNotFoundError):  # a package of that name would stand over it later
            importlib.import_module(f"insight_trace.{name}")
        function = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(insight_trace, name, recorded(name, function), raising=False)
    line, expected = LINES[command]
    places = {
        "WORKSPACE": "workspace", "DUMP": "dump", "BUILD": "build", "COUNTERS": "pmu.csv", "INDEX": "runs.sqlite",
    }  # fmt: skip
    words = ["select count(*) as n from instructions" if w == "SELECT" else w for w in line.split()]
    for place, file in places.items():
        words = [word.replace(place, str(made / file)) for word in words]
    assert commands.run_line([command, *words]) == 0
    ((called, result),) = calls
    assert called == expected
    said = capsys.readouterr()
    if hasattr(result, "data") and "--json" in words:
        assert json.loads(said.err if command == "exec" else said.out) == json.loads(
            json.dumps(result.data())
        )


@pytest.mark.parametrize("command", LINES)
def test_every_flag_of_a_command_is_a_parameter_of_its_call_or_read_by_the_command(command):
    module = importlib.import_module(f"insight_trace.commands.{command.replace('-', '_')}")
    text = Path(module.__file__).read_text(encoding="utf-8")
    if command in ("replay", "replay-all"):
        text += Path(importlib.import_module("insight_trace.commands.replay_all").__file__).read_text()
        text += Path(importlib.import_module("insight_trace.commands.replay_text").__file__).read_text()
    known = {*RunOptions.__struct_fields__, *VendorOptions.__struct_fields__, "sandbox", "compile_limit"}
    known |= {"help", "help_all", *({"json"} if "show(options" in text else set())}
    for name in {LINES[command][1], *re.findall(r'call\(\s*"(\w+)"', text)}:
        function = getattr(insight_trace, name)
        known |= getattr(function, "__wrapped__", function).__annotations__.keys()
    if command == "kernel":  # a function of arrays, whose replay takes the rest
        known |= KernelFunction.replay.__annotations__.keys()
    for action in commands._parser(command, module, everything=True)._actions:
        hidden = action.help == argparse.SUPPRESS  # names of other tools
        read = re.search(rf'(options|typed)\.{action.dest}\b|"{action.dest}"', text)
        assert action.dest in known or read or hidden, action.dest


@pytest.mark.parametrize(("said", "kept"), [({}, "4"), ({"OPENBLAS_THREAD_TIMEOUT": "26"}, "26")])
def test_threads_of_openblas_sleep_at_once_unless_the_environment_says_otherwise(said, kept):
    """They cost a replay a third of its CPU: benchmarks/replay.py."""
    code = "import insight_trace.__main__, os; print(os.environ['OPENBLAS_THREAD_TIMEOUT'])"
    plain = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    done = subprocess.run([sys.executable, "-c", code], env=plain | said, capture_output=True, text=True)
    assert done.stdout.strip() == kept

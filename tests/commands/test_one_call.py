"""A command parses, calls one function of the API and prints what that returns."""

import ast
import importlib
import json
from pathlib import Path

import pytest

import insight_trace
from insight_trace.commands import COMMANDS, run_line

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src" / "insight_trace"
SCENE = "examples/vector_chain/scene.py"
# of its commands each calls another function; `replay` keeps the flags of `replay-all` and of `dump list` as aliases
SEVERAL = {"dump", "export", "op", "profile", "replay"}
# verdicts come one by one, so that a person sees how far it is; a server calls what it is asked for
STREAMS = {"judge", "mcp"}


def called(command: str) -> set[str]:
    """The functions of the API that a command's module imports."""
    tree = ast.parse((PACKAGE / "commands" / f"{command.replace('-', '_')}.py").read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "insight_trace":
            found |= {alias.name for alias in node.names}
    return found & set(insight_trace.FUNCTIONS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_is_made_of_functions_of_the_api(command):
    functions = called(command)
    if command in STREAMS:
        return
    if command == "replay-all":
        assert functions == {"replay_all"}
    elif command in SEVERAL:
        assert functions
    else:
        assert len(functions) == 1, functions


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    place = tmp_path_factory.mktemp("one_call") / "workspace"
    insight_trace.replay(ROOT / SCENE, kernel="ADD", output=place)
    return place


LINES = [
    ("stats", "WORKSPACE"),
    ("compare", "WORKSPACE", "WORKSPACE"),
    ("check", SCENE, "--kernel", "ADD"),
    ("replay", "WORKSPACE", "-o", "again"),
    ("why", "WORKSPACE", "2[0,0]"),
    ("diverge", "WORKSPACE", "WORKSPACE"),
    ("op", "TADD", "--rows", "16", "--cols", "64"),
]


@pytest.mark.parametrize("words", LINES, ids=lambda words: words[0])
def test_what_a_command_prints_is_what_its_one_call_returns(words, workspace, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    calls = []

    def recorded(name, function):
        def call(*args, **kwargs):
            calls.append((name, function(*args, **kwargs)))
            return calls[-1][1]

        return call

    (name,) = {"time_op"} if words[0] == "op" else called(words[0]) & {words[0]}
    module = importlib.import_module(insight_trace.FUNCTIONS[name])
    monkeypatch.setattr(insight_trace, name, recorded(name, getattr(module, name)), raising=False)
    code = run_line([*(str(workspace) if word == "WORKSPACE" else word for word in words), "--json"])
    assert code == 0
    ((called_name, result),) = calls
    assert called_name == name
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(result.data()))

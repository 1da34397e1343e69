"""Data goes once through the house, in one direction: a package imports only what stands before it."""

import ast

from tests.source_trees import trees

# From the ground up. A package may import those above it in this list and itself, never those below.
ORDER = [
    "errors",
    "limits",
    "results",
    "pages",
    "reading",
    "dtypes",
    "chips",
    "options",
    "finding",
    "model",
    "outcome",
    "storage",
    "scratch",
    "cache",
    "supervisor",
    "recording",
    "check",
    "scene",
    "dump",
    "arguments",
    "job",
    "simulate",
    "digest",
    "capture",  # runs kernels and writes dumps, so it stands after both
    "insight",
    "trace",
    "ptoas",
    "executor",  # where jobs run
    "replay",
    "program",  # a user's program: its launches become replays
    "debug",
    "run",
    "profile",
    "guard",  # two builds, judged by running both
    "judge",
    "report",
    "demo",
    "doctor",
    "api",
    "agents",  # tools over a protocol, made of the API
    "commands",
    "simpler_names",  # started by its .pth file, as __main__ is by Python
    "__main__",
]


def _imports(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("insight_trace.")}
    return found


def test_every_module_imports_only_what_stands_before_it():
    wrong = []
    for relative, tree in trees().items():
        own = relative.parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        assert own in ORDER, f"{relative}: add the package {own} to ORDER where it belongs"
        for name in _imports(tree) - {own}:
            if ORDER.index(name) > ORDER.index(own):
                wrong.append(f"{relative} imports {name}")
    assert not wrong


def test_no_module_uses_relative_imports_or_is_called_utils():
    for path, tree in trees().items():
        assert path.stem not in ("utils", "helpers", "manager", "common"), path
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: relative import"

"""The site that `make docs` builds: every page has its place, and the reference is what the code says."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import insight_trace
from insight_trace.commands import COMMANDS

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def build_docs():
    spec = importlib.util.spec_from_file_location("build_docs", ROOT / "tools" / "build_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_stands_in_a_group_of_the_readme(build_docs, tmp_path):
    groups = build_docs.navigation((ROOT / "README.md").read_text(encoding="utf-8"))
    assert list(groups) == ["Start", "Use", "Files and numbers", "Inside"]
    assert not build_docs.without_a_group(ROOT, groups)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "nobody-finds-me.md").write_text("# Lost")
    assert build_docs.without_a_group(tmp_path, groups) == ["docs/nobody-finds-me.md"]


def test_the_reference_has_every_command_and_every_function(build_docs):
    commands = build_docs.commands_page()
    for name in COMMANDS:
        assert f"### {name}\n" in commands
        assert f"usage: insight-trace {name}" in commands
    api = build_docs.api_page()
    for name in insight_trace.__all__:
        assert name.startswith("__") or f"## {name}\n" in api


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="`make docs` installs MkDocs Material"
)
def test_the_site_builds_with_every_link_checked(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "build_docs.py", "-o", tmp_path / "site"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "docs" / "tutorial" / "index.html").is_file()
    assert "insight-trace replay" in (tmp_path / "site" / "reference" / "commands" / "index.html").read_text()

"""docs/finding-a-wrong-number.md: its commands run as they stand, and print what it shows of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "finding-a-wrong-number.md"


def test_every_command_of_the_guide_runs_and_prints_the_lines_that_are_shown(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "insight-trace").write_text(f'#!/bin/sh\nexec {sys.executable} -m insight_trace "$@"\n')
    (tools / "insight-trace").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "120"}
    ran = 0
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        said, wanted = "", []
        for line in block.splitlines():
            if not line.startswith("$ "):
                wanted.append(line.strip())
                continue
            done = subprocess.run(
                ["bash", "-c", line[2:]],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
            )
            mismatch = "replay wrong" in line
            assert done.returncode == (1 if mismatch else 0), done.stderr
            said += done.stdout
            ran += 1
        assert [line for line in wanted if line not in said] == [], said
    assert ran == 11
    monkeypatch.chdir(tmp_path)
    (python,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(compile(python, str(PAGE), "exec"), {})

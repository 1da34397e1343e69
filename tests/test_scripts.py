"""Every script of the repository starts."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("tools", "benchmarks", "skills")
    for path in (ROOT / folder).rglob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_starts_and_explains_its_options(script, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str((ROOT / script).parent))
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    text = Path(script).read_text(encoding="utf-8")
    if "ArgumentParser(" not in text and "run_line(" not in text:
        runpy.run_path(script, run_name="loaded")  # it has no options, and would do all of its work
        return
    with pytest.raises(SystemExit) as left:
        runpy.run_path(script, run_name="__main__")
    assert not left.value.code
    assert "usage:" in capsys.readouterr().out


def test_the_scripts_of_the_skill_do_their_work(tmp_path):
    def start(script, *words):
        command = [sys.executable, f"skills/insight-trace/scripts/{script}", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    build, run = "examples/pypto_run", str(tmp_path / "run")
    assert "vector_add" in start("incore_profile.py", "--list-funcs", "--build-dir", "examples/pypto_build")
    assert main(["capture", str(ROOT / build), "-o", run]) == 0
    assert "0x" in start("profile_extern_cce.py", "--list-tasks", "--build-dir", build, "--args-dump", run)

"""What a clone holds beside the package: types, hosted CI, benchmarks, and nothing that a run left behind."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "src/insight_trace/py.typed").is_file()


def test_hosted_ci_runs_what_everybody_runs():
    assert "- run: .ci/run" in (ROOT / ".github/workflows/ci.yml").read_text()
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    assert (ROOT / "CONTRIBUTING.md").is_file()
    assert (ROOT / "SECURITY.md").is_file()


def test_hosted_ci_runs_the_demo_on_every_python_that_the_locks_have_files_for():
    locked = re.search(r'"--python", nargs="\+", default=(\[.*?\])', (ROOT / "tools/lock.py").read_text())[1]
    demo = (ROOT / ".github/workflows/ci.yml").read_text().partition("demo:")[2].partition("\n  test:")[0]
    assert f"python: {locked}" in demo
    assert "- run: make demo" in demo


def test_an_older_python_is_refused_with_a_sentence(tmp_path):
    old = tmp_path / "python"
    old.write_text(f"#!{sys.executable}\nimport sys\nsys.version_info = (3, 10, 0)\nexec(sys.argv[2])\n")
    old.chmod(0o755)
    made = subprocess.run(
        ["make", "demo", f"VENV={tmp_path}/venv", f"PYTHON={old}"], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode != 0
    assert "Insight Trace needs Python 3.11 or newer" in made.stderr
    assert not (tmp_path / "venv").exists()


def test_what_needs_a_checkout_is_run_by_a_target_that_the_readme_names():
    target = (ROOT / "Makefile").read_text().partition("\ntest-upstream:")[2].partition("\n\n")[0]
    assert "-m upstream" in target
    line = next(
        line for line in (ROOT / "README.md").read_text().splitlines() if "make test-upstream" in line
    )
    for name in ("SIMPLER", "PYPTO", "PTO_ISA"):
        assert f"$({name})" in target
        assert f"{name}=" in line


def test_every_benchmark_is_one_and_starts_on_a_clean_clone():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonsense"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    known = done.stderr.strip().partition("known: ")[2].split(", ")
    assert len(known) >= 8
    assert not {"svg_plots", "accuracy", "whole_kernels"} & set(known)
    for name in known:
        text = (ROOT / "benchmarks" / f"{name}.py").read_text()
        assert "def main(" in text, name
        assert "required=True" not in text, name
        assert importlib.util.find_spec(f"benchmarks.{name}") is not None


def test_no_file_of_a_run_is_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        return  # not a checkout
    left = [name for name in listed.stdout.splitlines() if name.endswith((".part", ".orig", ".rej", ".log"))]
    assert not left


def test_goldens_are_kept_once():
    files = [path for path in (ROOT / "tests/data/msprof/golden").rglob("*") if path.is_file()]
    assert sum(len(path.read_text().splitlines()) for path in files) <= 900


def test_the_overview_starts_as_quickly_as_a_parser_alone():
    """`insight-trace --help` loads argparse and our own few lines, nothing that is slow to import."""
    code = "import sys; from insight_trace.__main__ import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-X", "frozen_modules=on", "-c", code], capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert not loaded & {
        "numpy",
        "ml_dtypes",
        "msgspec",
        "jinja2",
        "elftools",
        "rich",
        "tomllib",
        "subprocess",
    }


def test_every_dependency_is_locked_with_its_hashes_and_has_a_licence_that_is_accepted():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text().replace("\\\n", " ")
        wanted = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "-"))]
        assert wanted
        for line in wanted:
            assert "==" in line, line
            assert "--hash=sha256:" in line, line
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "sbom.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr

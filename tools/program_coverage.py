"""A project of kernels and their tests, as it is, under `insight-trace exec`: what compiles, and which of its tests pass.

    python tools/program_coverage.py pto-kernels [--site FOLDER] [--cases 12] [--seconds 300]
    python tools/program_coverage.py pto-isa --device-tests a5 --only texp,tlog

The project is copied first, so that nothing of it changes. Its kernels (csrc/kernel/*.cpp) are compiled as its
Makefile does; a Python package is installed by pip with the project's own CMake into a scratch folder (--site names
one that has it); each file of tests and each example runs in a process of its own. Of a file with more than --cases
cases every n-th is run: the same ones every time.

With --device-tests the programs of tests/npu/FAMILY of a pto-isa checkout are built by its own CMake files and run over
the inputs and goldens of its own generators, all under exec.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree

_PLUGIN = """
import json, os
from collections import defaultdict

def pytest_collection_modifyitems(config, items):
    most = int(os.environ["PROGRAM_COVERAGE_CASES"])
    wanted = range(len(items)) if len(items) <= most else {i * len(items) // most for i in range(most)}
    _write({"collected": len(items)})
    items[:] = [item for index, item in enumerate(items) if index in wanted]

def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed" and report.when == "setup":
        text = str(report.longrepr or "").strip().splitlines()
        said = [line[1:].strip() for line in text if line.startswith("E ")] or text[-1:] or [""]
        _write({"case": report.nodeid, "outcome": report.outcome, "said": said[0][:200]})

def _write(row):
    with open(os.environ["PROGRAM_COVERAGE_LOG"], "a") as log:
        log.write(json.dumps(row) + "\\n")
"""
_COMPILE = (
    "bisheng -fPIC -shared -xcce -DMEMORY_BASE -O2 -std=c++17 -Icsrc/kernel -I$PTO_LIB_PATH/include "
    "-I$ASCEND_TOOLKIT_HOME/pkg_inc -I$ASCEND_TOOLKIT_HOME/pkg_inc/runtime --npu-arch=dav-2201 {source} -o {made}"
)


@dataclass(frozen=True)
class Row:
    """What became of one file."""

    name: str
    collected: int
    passed: int
    failed: int
    skipped: int
    note: str
    seconds: float

    @property
    def run(self) -> int:
        return self.passed + self.failed


@dataclass(frozen=True)
class Place:
    """The copy of the project, and how its files are run."""

    folder: Path
    site: Path
    python: str
    cases: int
    seconds: float

    def run(self, words: list[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
        """A command under exec; one that takes too long is ended, which is code 124."""
        tool = [sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--time-limit", "300", "--"]
        path = os.pathsep.join([str(self.site), str(self.folder.parent), os.environ.get("PYTHONPATH", "")])
        limited = ["timeout", "--signal=INT", "--kill-after=20", str(self.seconds), *tool, *words]
        environment = {**os.environ, "PYTHONPATH": path.strip(os.pathsep), **more}
        return subprocess.run(
            limited, cwd=cwd, capture_output=True, text=True, env=environment, errors="replace"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "project", type=Path, help="a checkout of pto-kernels, or a folder that is built like it"
    )
    parser.add_argument("--site", type=Path, help="where the project's package is installed already")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of its tests, with torch where they import it"
    )
    parser.add_argument("--cases", type=int, default=12, help="cases of one file (12)")
    parser.add_argument("--seconds", type=float, default=300, help="of one file (300)")
    parser.add_argument(
        "--only",
        default="",
        metavar="WORD",
        help="files with this in their path; device tests by name: a,b,c",
    )
    parser.add_argument(
        "--device-tests", metavar="FAMILY", help="a2a3 or a5: programs of a pto-isa checkout instead"
    )
    parser.add_argument("--no-compile", action="store_true", help="leave out csrc/kernel")
    options = parser.parse_args(arguments)
    if not options.project.is_dir():
        print(f"{options.project} is no folder", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="program-coverage-") as scratch:
        copy = Path(scratch) / "project"
        copytree(options.project, copy, symlinks=True, ignore=ignore_patterns(".git"))
        (Path(scratch) / "program_coverage_plugin.py").write_text(_PLUGIN)
        site = (options.site or Path(scratch) / "site").resolve()
        place = Place(copy, site, options.python, options.cases, options.seconds)
        if options.device_tests:
            print_rows(device_tests(place, options.device_tests, options.only))
            return 0
        if not options.no_compile:
            print_compiled(place)
        if options.site is None and (copy / "pyproject.toml").is_file():
            install(place)
        rows = [row for path in files_of(copy, options.only) for row in [measured(place, path)]]
        print_rows(rows)
    return 0


def print_compiled(place: Place) -> None:
    sources = sorted(place.folder.glob("csrc/kernel/*.cpp"))
    right = 0
    for source in sources:
        line = _COMPILE.format(source=source, made=place.folder.parent / "kernel.so")
        done = place.run(["sh", "-c", line], place.folder)
        right += done.returncode == 0
        if done.returncode:
            print(f"{source.name}: {next(iter(done.stderr.splitlines()), '')}")
    print(f"kernels that compile: {right} of {len(sources)}", flush=True)


def install(place: Place) -> None:
    words = [
        place.python,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "--target",
        str(place.site),
        ".",
    ]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--", *words],
        cwd=place.folder, capture_output=True, text=True,
        env={"CMAKE_GENERATOR": "Unix Makefiles", "CMAKE_BUILD_PARALLEL_LEVEL": "2", **os.environ},
    )  # fmt: skip
    said = "" if done.returncode == 0 else f": {done.stderr.strip().splitlines()[-1:]}"
    print(
        f"pip install of the project: exit {done.returncode} after {time.monotonic() - began:.0f} s{said}",
        flush=True,
    )


def files_of(project: Path, only: str) -> list[Path]:
    """Files of tests, and examples that are scripts of their own."""
    found = [
        *project.glob("tests/**/test_*.py"),
        *project.glob("examples/**/test_*.py"),
        *project.glob("examples/**/run_*.py"),
    ]
    found += project.glob(".skills/**/run_*ctypes.py")
    return [path for path in sorted(found) if only in str(path.relative_to(project))]


def measured(place: Place, path: Path) -> Row:
    """One file, run by pytest or, where it is no file of tests, by Python."""
    name = str(path.relative_to(place.folder))
    began = time.monotonic()
    row = _tests(place, path, name) if path.name.startswith("test") else _script(place, path, name)
    row = Row(
        *[getattr(row, field) for field in Row.__dataclass_fields__ if field != "seconds"],
        time.monotonic() - began,
    )
    print(
        f"{name}: {row.passed} of {row.run} passed, {row.collected} collected, {row.seconds:.0f} s {row.note}",
        file=sys.stderr,
        flush=True,
    )
    return row


def _tests(place: Place, path: Path, name: str) -> Row:
    log = place.folder.parent / "log"
    log.unlink(missing_ok=True)
    # from the file's own folder where it imports what lies next to it, else from the project's
    cwd = place.folder if path.is_relative_to(place.folder / "tests") else path.parent
    words = [
        place.python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "program_coverage_plugin",
        str(path),
    ]
    done = place.run(words, cwd, PROGRAM_COVERAGE_LOG=str(log), PROGRAM_COVERAGE_CASES=str(place.cases))
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
    outcomes = [row for row in rows if "case" in row]
    count = {
        word: sum(row["outcome"] == word for row in outcomes) for word in ("passed", "failed", "skipped")
    }
    note = next((row["said"] for row in outcomes if row["outcome"] == "failed"), "")
    if done.returncode == 124:
        note = f"ended after {place.seconds:.0f} s" + (f"; {note}" if note else "")
    elif not outcomes:
        wrong = [line for line in done.stdout.splitlines() if line.startswith("E ")]
        note = (wrong or [done.stderr.strip().splitlines()[0] if done.stderr.strip() else ""])[0]
    collected = next((row["collected"] for row in rows if "collected" in row), 0)
    failed = count["failed"] + (not outcomes)
    return Row(name, collected, count["passed"], failed, count["skipped"], note, 0)


def _script(place: Place, path: Path, name: str) -> Row:
    done = place.run([place.python, path.name], path.parent)
    right = done.returncode == 0
    # what exec itself says stands behind the program's own lines
    own = re.split(r"\nkernel |insight-trace: the program launched no kernel", done.stderr)[0].strip()
    said = (own or done.stdout.strip()).splitlines()
    note = "" if right else (said or [""])[-1][:200]
    if done.returncode == 124:
        note = f"ended after {place.seconds:.0f} s, at: {(done.stdout.strip().splitlines() or ['nothing'])[-1][:100]}"
    return Row(name, 1, int(right), int(not right), 0, note, 0)


_BUILD = (
    "cmake -DRUN_MODE=npu -DSOC_VERSION={soc} -DTEST_CASE={name} .. > log 2>&1 && make -s {name} >> log 2>&1"
)
_SOCS = {"a2a3": "Ascend910B1", "a5": "Ascend910_9599"}


def device_tests(place: Place, family: str, only: str) -> list[Row]:
    """Each program built in a folder of its own, as the project's run_st.py does it, and run."""
    source = place.folder / "tests" / "npu" / family / "src" / "st"
    names = (
        only.split(",") if only else sorted(path.parent.name for path in source.glob("testcase/*/main.cpp"))
    )
    rows = []
    for name in names:
        build = source / f"build_{name}"
        build.mkdir()
        script = source / "testcase" / name / "gen_data.py"
        line = (
            f"{_BUILD.format(soc=_SOCS[family], name=name)} && cp {script} gen_data.py && {place.python} gen_data.py "
            f">> log 2>&1 && cd bin && ./{name}"
        )
        began = time.monotonic()
        done = place.run(["sh", "-c", line], build)
        outcome = {
            word: len(re.findall(rf"^\[ +{mark} \] \S+ \(", done.stdout, re.M))
            for word, mark in (("passed", "OK"), ("failed", "FAILED"))
        }
        collected = len(re.findall(r"^\[ RUN ", done.stdout, re.M))
        wrong = re.findall(r"^\[  FAILED  \] (\S+) \(", done.stdout, re.M)
        log = (build / "log").read_text(errors="replace") if (build / "log").is_file() else ""
        error = next((text for text in log.splitlines() if "error" in text.lower()), "")
        note = ", ".join(wrong) or ("" if collected else error or f"exit {done.returncode}")
        row = Row(
            name, collected, outcome["passed"], collected - outcome["passed"] or not collected, 0, note, 0
        )
        print(
            f"{name}: {row.passed} of {row.run}, {time.monotonic() - began:.0f} s {note}",
            file=sys.stderr,
            flush=True,
        )
        rows.append(row)
        rmtree(build)
    return rows


def print_rows(rows: list[Row]) -> None:
    print("\n| file | cases | run | passed | note |\n|---|---|---|---|---|")
    for row in rows:
        note = row.note.replace("|", "/")
        print(f"| {row.name} | {row.collected} | {row.run} | {row.passed} | {note} |")
    run, passed = sum(row.run for row in rows), sum(row.passed for row in rows)
    right = sum(row.passed == row.run > 0 for row in rows)
    print(f"\n{passed} of {run} cases passed; {right} of {len(rows)} files passed whole")


if __name__ == "__main__":
    sys.exit(main())

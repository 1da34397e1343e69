"""Builds and runs the samples of an asc-devkit checkout as their README files say, each under `insight-trace exec`.

A sample counts for one chip: its own CMake project, data, program and verification, in a copy of its folder.

right        every command of the README ended well, and its verification said so; and did not when its program ran
             again with kernels that compute nothing
wrong        the program ran and its verification did not agree, or it ended with an error that is no refusal of ours
refused      we said what is not simulated or that the kernel is at fault, with its line, or the time was up
uncompiled   it does not build
nodata       it has nothing to verify, or its data cannot be made
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

KINDS = ("right", "wrong", "refused", "uncompiled", "nodata")
_PASSED = re.compile(
    r"test pass|verif\w* (?:pass|success)|\bpass(?:ed)?!|(?:precision|accuracy).{0,20}pass|compar\w*\b.{0,40}success",
    re.I,
)
_FAILED = re.compile(r"\bfail(?:ed|ure|s)?\b|\[ERROR\]|result error", re.I)
_PRODUCTS = {"dav-2201": "Atlas A2", "dav-3510": "Ascend 950"}
_NOT_OURS = re.compile(r"npu_op_library|aclnn|add_ops_|msopgen|hccl|aicpu|torch", re.I)
_REFUSED = re.compile(
    r"insight-trace: [^\n]*?: ([^\n:]*(?:below the tile ops|not modelled|not published)[^\n]*)|"
    r"(?:insight-trace|error|not supported)[^\n]*?((?:\S+ )?(?:is|are) not (?:supported|simulated|modelled|there)[^\n]*)|"
    r"(not supported: [^\n]*)|(undefined symbol: [^\n]*)|"
    r"insight-trace: ([^\n]+)\n  in the kernel at|"
    r"(did not end within its limit[^\n]*|went over its limit[^\n]*|time limit[^\n]*)",
)


@dataclass(frozen=True)
class Sample:
    folder: Path
    name: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    name: str
    kind: str
    reason: str
    seconds: float


def samples(root: Path, arch: str, api: str = "01_simd_cpp_api") -> list[Sample]:
    """Samples of an API for one chip: no packages of operators, no torch, no several cards."""
    found = []
    base = root / "examples" / api
    for build in sorted(base.rglob("CMakeLists.txt")):
        text, folder = build.read_text(encoding="utf-8", errors="replace"), build.parent
        named = re.search(r'CMAKE_ASC_ARCHITECTURES\s+"([^"]*)"(?:\s+CACHE\s+STRING\s+"([^"]*)")?', text)
        chips = named[0] if named else " ".join(re.findall(r"--npu-arch=dav-\d{4}", text))
        if arch not in chips or "not supported" in chips:
            continue
        name = folder.relative_to(base).as_posix()
        if _NOT_OURS.search(text) or "add_executable" not in text or not (folder / "README.md").is_file():
            continue
        page = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
        rows = [line for line in page.splitlines() if line.startswith("|") and re.search(r">=? ?CANN", line)]
        if rows and not any(_PRODUCTS[arch] in row for row in rows):
            continue  # its table of products leaves this chip out, whatever its build names
        found.append(Sample(folder, name, commands(folder / "README.md", arch)))
    return found


def commands(readme: Path, arch: str) -> tuple[str, ...]:
    """The lines of the README that build, run and verify."""
    text = readme.read_text(encoding="utf-8", errors="replace")
    blocks = [
        block
        for block in fenced(text)
        if re.search(r"^\s*cmake\b", block, re.M) and not re.search(r"RUN_MODE=cpu", block)
    ]
    if not blocks:
        return ()
    # the one that goes from an empty folder to a run, for this chip, on a device rather than on a simulator
    chosen = max(blocks, key=lambda b: ("mkdir" in b, arch in b, "RUN_MODE=sim" not in b))
    lines = [re.sub(r"(?:^|\s)#.*", "", line).strip() for line in chosen.splitlines()]
    made = [re.sub(r"dav-\d{4}", arch, line).replace("make -j", "make") for line in lines if line]
    # a variable that is a number chooses a scenario; others say where a toolkit is
    left_out = re.compile(r"source |cat |export (?!\w+=\d+$)")
    return tuple(line for line in made if not left_out.match(line))


def fenced(text: str) -> list[str]:
    """The blocks of shell commands of a page."""
    found: list[str] = []
    language: str | None = None
    lines: list[str] = []
    for line in text.splitlines():
        if not line.strip().startswith("```"):
            lines.append(line)
        elif language is None:
            language, lines = line.strip()[3:].strip(), []
        else:
            if language in ("", "bash", "shell", "sh"):
                found.append("\n".join(lines))
            language = None
    return found


def run(sample: Sample, root: Path, limit: float, scratch: Path, logs: Path | None) -> Result:
    began = time.monotonic()

    def result(kind: str, reason: str) -> Result:
        return Result(sample.name, kind, reason, time.monotonic() - began)

    if not sample.commands:
        return result("nodata", "the README names no commands")
    place = Path(tempfile.mkdtemp(dir=scratch))
    try:
        shutil.copytree(sample.folder, place / "sample")
        said = _commands(place, _steps(sample.commands), root, limit)
        if said is None:
            return result("refused", "over the time limit")
        if logs:
            (logs / f"{sample.name.replace('/', '.')}.log").write_text(f"{said.stdout}\n{said.stderr}\n")
        kind, reason = judge(sample, said.stdout, said.stderr, said.returncode)
        if kind == "right" and is_right_without_kernels(sample, place, root, limit):
            return result("nodata", "right without its kernels, too")
        return result(kind, reason)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def is_right_without_kernels(sample: Sample, place: Path, root: Path, limit: float) -> bool:
    """The built program once more, with fresh data and with kernels that compute nothing."""
    for left in ("output", "build/output"):
        shutil.rmtree(place / "sample" / left, ignore_errors=True)
    steps = [step for step in _steps(sample.commands) if not re.match(r"(?:cmake|make)\b", step)]
    said = _commands(place, steps, root, limit, "--timing-only")
    if said is None or re.search(r"Assertion `.*' failed", said.stderr):
        return False  # a failed assertion is right for what it computed
    return said.returncode == 0 and _says_right(said.stdout)


def _says_right(out: str) -> bool:
    return _PASSED.search(out) is not None and not _FAILED.search(out)


def _commands(
    place: Path, steps: list[str], root: Path, limit: float, *options: str
) -> subprocess.CompletedProcess[str] | None:
    """Commands of a sample under `exec`; none when they take too long."""
    script = place / "run.sh"
    lines = "\n".join(f"echo '@@ {i}' >&2\n{line} || exit 91" for i, line in enumerate(steps))
    script.write_text(f"set -o pipefail\n{lines}\necho '@@ done' >&2\n")
    words = [
        sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--time-limit", str(limit), *options,
        "--", "bash", str(script),
    ]  # fmt: skip
    try:
        return subprocess.run(
            words, cwd=place / "sample", capture_output=True, text=True, errors="replace", timeout=2 * limit + 120,
            env=_environment(root), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None


def _environment(root: Path) -> dict[str, str]:
    """With the packages of this Python: samples make their data with them."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "INSIGHT_TRACE_ASCENDC": str(root)}


def _steps(lines: tuple[str, ...]) -> list[str]:
    """One command a line: what stands between semicolons."""
    return [part.strip() for line in lines for part in line.split(";") if part.strip()]


def judge(sample: Sample, out: str, err: str, code: int) -> tuple[str, str]:
    steps = _steps(sample.commands)
    reached = [int(number) for number in re.findall(r"^@@ (\d+)$", err, re.M)]
    last = steps[reached[-1]] if reached else ""
    said = out + err
    ended = re.search(r"^@@ done$", err, re.M) is not None and code == 0
    refusal = _REFUSED.search(err)
    if not ended and re.match(r"(?:cmake|make|mkdir)", last):
        error = re.search(
            r"^.*?((?:fatal )?error: .*|undefined reference.*|CMake Error.*|not simulated.*)$", said, re.M
        )
        return "uncompiled", error[1][:160] if error else "the build failed"
    failed = re.search(r"Assertion `(.*)' failed", err)
    if failed and failed[1] in (sample.folder / "README.md").read_text(encoding="utf-8", errors="replace"):
        return "right", ""  # an assertion that fails is what the sample is for
    if refusal and not (ended and _says_right(out)):
        return "refused", next(group for group in refusal.groups() if group)[:160]
    if not ended and "python" in last and "gen" in last:
        return "nodata", _last_line(err)
    if ended and _says_right(out):
        return "right", ""
    if ended and "verify" not in " ".join(steps) and not re.search(r"fail|error", out, re.I):
        return "nodata", "nothing is verified"
    return "wrong", _error_of(said) or _last_line(said)


def _error_of(said: str) -> str:
    found = re.findall(r"^(?:insight-trace: |error: |.*(?:kernel error|fault|stuck).*)(.*)$", said, re.M)
    line = re.search(r"^(insight-trace: .*|.*: error: .*)$", said, re.M)
    return (line[1] if line else found[0] if found else "")[:200]


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("@@")]
    return lines[-1][:160] if lines else ""


def _known(file: Path | None, wanted: set[str]) -> list[Result]:
    if file is None or not file.is_file():
        return []
    rows = [Result(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row.name in wanted]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--asc-devkit", type=Path, required=True, metavar="PATH", help="the checkout")
    parser.add_argument("--arch", choices=("dav-2201", "dav-3510"), default="dav-2201")
    parser.add_argument(
        "--api",
        default="01_simd_cpp_api",
        metavar="NAME",
        help="of examples/NAME of the checkout (01_simd_cpp_api)",
    )
    parser.add_argument("--only", default="", metavar="RE", help="samples whose path matches")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N of them")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument(
        "--time-limit", type=float, default=120.0, metavar="SECONDS", help="of one launch (120)"
    )
    parser.add_argument(
        "--list", action="store_true", help="name the samples and their commands, run nothing"
    )
    parser.add_argument(
        "--results", type=Path, metavar="FILE",
        help="a line of JSON for each sample, as it comes; samples that stand there are not run again",
    )  # fmt: skip
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep what each sample printed")
    options = parser.parse_args()
    root = options.asc_devkit.resolve()
    chosen = [one for one in samples(root, options.arch, options.api) if re.search(options.only, one.name)]
    chosen = chosen[options.skip :]
    if options.list:
        for sample in chosen:
            print(sample.name, *sample.commands, sep="\n    ")
        return 0
    results = _known(options.results, {sample.name for sample in chosen})
    chosen = [sample for sample in chosen if sample.name not in {result.name for result in results}]
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ascendc-") as scratch, ThreadPoolExecutor(options.jobs) as pool:
        started = [
            pool.submit(run, one, root, options.time_limit, Path(scratch), options.logs) for one in chosen
        ]
        for result in (done.result() for done in as_completed(started)):
            print(f"{result.kind:10} {result.seconds:6.1f}s {result.name}  {result.reason}", flush=True)
            results.append(result)
            if options.results:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(vars(result)) + "\n")
    counts = Counter(result.kind for result in results)
    for reason, number in Counter((r.kind, r.reason) for r in results if r.kind != "right").most_common(20):
        print(f"    {number:3} {reason[0]}: {reason[1]}")
    print(
        f"ASCENDC {options.arch} total={len(results)} " + " ".join(f"{kind}={counts[kind]}" for kind in KINDS)
    )
    return int(bool(counts["wrong"]))


if __name__ == "__main__":
    sys.exit(main())

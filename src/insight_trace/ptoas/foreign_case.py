"""Test cases made by PTOAS's own generator, for `--ptoas-root`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from insight_trace.errors import JobError, RequestError
from insight_trace.ptoas.spec import ProfileKernel
from insight_trace.ptoas.steps import cause_in, run_step

_GENERATOR = "test/npu_validation/scripts/generate_testcase.py"
_SIZEOF = {
    "float": 4,
    "int32_t": 4,
    "uint32_t": 4,
    "int64_t": 8,
    "uint64_t": 8,
    "aclFloat16": 2,
    "int16_t": 2,
    "uint16_t": 2,
    "int8_t": 1,
    "uint8_t": 1,
    "bool": 1,
}
_SIZE = re.compile(r"\bsize_t\s+(\w+)\s*=\s*([\w\s*()]+);")
_READ = re.compile(r'\bReadFile\(\s*"\./([\w.\-]+)"\s*,\s*(\w+)')


def find_generator(root: Path) -> Path:
    path = root / _GENERATOR
    if not path.is_file():
        raise RequestError(f"--ptoas-root: {root} has no {_GENERATOR}", hint="name a checkout of PTOAS")
    return path


def generate_case(
    root: Path,
    kernel: ProfileKernel,
    out: Path,
    log: Path,
    *,
    soc_version: str,
    aicore_arch: str,
    timeout: float,
) -> Path:
    """The directory of the test case. Where below `out` the generator puts it is its own affair."""
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = re.sub(r"[^\w]", "_", kernel.name)
    command = [sys.executable, str(find_generator(root)), "--input", str(kernel.source), "--testcase", name]
    command += ["--output-root", str(out), "--run-mode", "sim", "--soc-version", soc_version]
    command += ["--aicore-arch", aicore_arch]
    if run_step(command, log, timeout=timeout) != 0:
        raise JobError("PTOAS's generator failed", where=str(log), hint=cause_in(log))
    found = sorted(path.parent for path in out.rglob("main.cpp"))
    if len(found) != 1:
        raise JobError(f"PTOAS's generator left {len(found)} test cases below {out}", where=str(log))
    return found[0]


def input_sizes(main_cpp: str) -> dict[str, int]:
    """Bytes of each input file that a generated main.cpp reads; sizes it cannot tell are left out."""
    sizes: dict[str, int] = {}
    for name, expression in _SIZE.findall(main_cpp):
        value = _product(expression, sizes)
        if value is not None:
            sizes[name] = value
    return {file: sizes[size] for file, size in _READ.findall(main_cpp) if size in sizes}


def _product(expression: str, known: dict[str, int]) -> int | None:
    """A product of numbers, sizes that are known, and `sizeof(T)`."""
    result = 1
    for factor in expression.split("*"):
        word = factor.strip().strip("()").strip()
        sizeof = re.fullmatch(r"sizeof\s*\(\s*(\w+)", word) or re.fullmatch(
            r"sizeof\s*\(\s*(\w+)\s*\)", factor.strip()
        )
        if sizeof and sizeof.group(1) in _SIZEOF:
            result *= _SIZEOF[sizeof.group(1)]
        elif word.isdigit():
            result *= int(word)
        elif word in known:
            result *= known[word]
        else:
            return None
    return result

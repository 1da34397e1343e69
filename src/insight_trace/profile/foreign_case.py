"""Test cases made by PTOAS's own generator, for `--ptoas-root`."""

from __future__ import annotations

import re
import shutil
import sys
import threading
from pathlib import Path

from insight_trace.dtypes import DTYPES
from insight_trace.errors import JobError, RequestError
from insight_trace.profile.testcase import HOST_TYPES, LauncherCase
from insight_trace.profile.tool_steps import cause_in, run_step
from insight_trace.ptoas.buffer_content import write_content
from insight_trace.ptoas.planned_kernel import BufferArg, Content, ProfileKernel, ValueArg

_GENERATOR = "test/npu_validation/scripts/generate_testcase.py"
_SIZEOF = {HOST_TYPES.get(kind.cpp, kind.cpp): kind.size for kind in DTYPES}
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
    stop: threading.Event | None = None,
) -> Path:
    """The directory of the test case. Where below `out` the generator puts it is its own affair."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, mode=0o700)
    name = _case_name(kernel)
    command = [sys.executable, str(find_generator(root)), "--input", str(kernel.source), "--testcase", name]
    command += ["--output-root", str(out), "--run-mode", "sim", "--soc-version", soc_version]
    command += ["--aicore-arch", aicore_arch]
    if run_step(command, log, timeout=timeout, stop=stop) != 0:
        raise JobError("PTOAS's generator failed", where=str(log), hint=cause_in(log))
    found = sorted(path.parent for path in out.rglob("main.cpp"))
    if len(found) != 1:
        raise JobError(f"PTOAS's generator left {len(found)} test cases below {out}", where=str(log))
    return found[0]


def foreign_case(
    root: Path,
    kernel: ProfileKernel,
    out: Path,
    build: Path,
    log: Path,
    *,
    soc_version: str,
    aicore_arch: str,
    timeout: float,
    stop: threading.Event | None = None,
) -> LauncherCase:
    """PTOAS's own test case of a kernel, and what comes of it in `build`."""
    how = {"soc_version": soc_version, "aicore_arch": aicore_arch}
    directory = generate_case(root, kernel, out, log, **how, timeout=timeout, stop=stop)
    name = _case_name(kernel)
    text = (directory / "main.cpp").read_text(encoding="utf-8", errors="replace")
    functions = (function.name for function in kernel.functions)
    return LauncherCase(
        directory,
        f"{name}_sim",
        build / f"lib{name}_kernel.so",
        build / f"{name}_sim",
        tuple(dict.fromkeys((kernel.entry, kernel.source.stem, *functions))),
        input_sizes(text),
        debug_lines=False,  # its build file has no such switch
    )


def given_to(case: LauncherCase, kernel: ProfileKernel) -> list[str]:
    """Puts the user's files into a case of PTOAS's; returns what it has no place for."""
    warnings = []
    for argument in kernel.arguments:
        if isinstance(argument, ValueArg) and argument.why == "given":
            warnings.append(f"PTOAS's generator takes no values: --scalar {argument.label} has no effect")
        elif isinstance(argument, BufferArg) and argument.content is Content.FILE:
            file = f"{argument.name}.bin"
            if case.inputs.get(file) == argument.nbytes:
                write_content(argument, kernel.seed, case.directory / file)
            else:
                size = case.inputs.get(file, "an unknown number of")
                warnings.append(
                    f"PTOAS's generator reads {size} bytes for {argument.label}, not {argument.nbytes}: "
                    "--input has no effect"
                )
    return warnings


def _case_name(kernel: ProfileKernel) -> str:
    return re.sub(r"\W", "_", kernel.name)


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
        elif word.isdecimal() and len(word) < 20:
            result *= int(word)
        elif word in known:
            result *= known[word]
        else:
            return None
    return result

"""`bisheng` and `ccec` in the environment of `insight-trace exec`: the host compiler, for kernels and launches, too."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from insight_trace import supervisor
from insight_trace.errors import InsightTraceError
from insight_trace.program import launchers, linker, toolkit
from insight_trace.program.command_line import CommandLine, Input, parse
from insight_trace.program.compile import HEADERS, CompileError, compile_program, report
from insight_trace.simulate.embedded.toolchain import Toolchain


def main(arguments: list[str] | None = None) -> int:
    """One call of the compiler; its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        line = parse(given)
        toolchain = Toolchain.find()
        if line.print_only and not line.inputs:
            return _print(toolchain, line)
        if not line.inputs:
            sys.stderr.write("bisheng: error: no input files\n")
            return 1
        return _run(toolchain, line)
    except CompileError as error:
        report(error)
        return 1
    except InsightTraceError as error:
        sys.stderr.write(f"insight-trace: {error}\n")
        return 1


def _print(toolchain: Toolchain, line: CommandLine) -> int:
    if any(word in ("--version", "-v", "-V") for word in line.print_only):
        print("clang version 15.0.5 (bisheng as insight-trace has it)")
        print(f"Host compiler: {toolchain.compiler.version}")
        print("Thread model: posix")
        print(f"InstalledDir: {toolkit.current() / 'bin'}")
        return 0
    if any("help" in word for word in line.print_only):
        print("insight-trace's stand-in of bisheng: kernels and launches are compiled for a simulated chip.")
        return 0
    return supervisor.in_foreground([*toolchain.compiler.command, *line.print_only])


def _run(toolchain: Toolchain, line: CommandLine) -> int:
    sources = [one for one in line.inputs if one.source]
    if line.mode in ("preprocess", "depend", "assemble"):
        return _plain(toolchain, line, sources[0])
    objects: dict[int, str] = {}
    for index, one in enumerate(line.inputs):
        if not one.source:
            continue
        if one.kernel or _has_launches(one):
            objects[index] = str(compile_program(toolchain, line, _by_name(one) if line.device_only else one))
        elif line.mode == "compile":
            return _plain(toolchain, line, one)
        else:
            objects[index] = _plain_object(toolchain, line, one)
    if line.mode == "compile" and line.device_only and objects:
        line.shared = True  # what the runtime loads is a library
        return _link(toolchain, line, objects)
    if line.mode == "compile":
        for index, made in objects.items():
            target = line.output or f"{Path(line.inputs[index].path).stem}.o"
            shutil.copyfile(made, target)
        return 0
    return _link(toolchain, line, objects)


def _by_name(one: Input) -> Input:
    """The source with what the runtime finds by the names of its kernels."""
    shim = toolkit.scratch() / f"{Path(one.path).stem}_kernels.cpp"
    launchers.write_by_name(Path(one.path).resolve(), shim)
    return replace(one, path=str(shim), kernel=True)


def _has_launches(one: Input) -> bool:
    """A plain C++ file that launches kernels all the same."""
    if one.path == "-" or one.language == "c":
        return False
    try:
        text = Path(one.path).read_bytes()
    except OSError:
        return False
    return b"<<<" in text and re.search(rb"__global__|\bkernel_operator\.h|pto-inst\.hpp", text) is not None


def _plain_command(toolchain: Toolchain, line: CommandLine, one: Input) -> list[str]:
    language = ["-x", one.language] if one.language else ["-x", "c++"] if one.kernel else []
    return [
        *toolchain.compiler.command, *line.preprocessor, f"-I{HEADERS}", "-w", *line.kept,
        *line.depends, *language, one.path,
    ]  # fmt: skip


def _plain(toolchain: Toolchain, line: CommandLine, one: Input) -> int:
    mode = {"preprocess": "-E", "depend": "-M", "assemble": "-S", "compile": "-c"}[line.mode]
    output = ["-o", line.output] if line.output else []
    return supervisor.in_foreground([*_plain_command(toolchain, line, one), mode, *output])


def _plain_object(toolchain: Toolchain, line: CommandLine, one: Input) -> str:
    folder = toolkit.scratch()
    made = folder / f"{len(list(folder.iterdir()))}_{Path(one.path).stem}.o"
    if supervisor.in_foreground(
        [*_plain_command(toolchain, line, one), "-fPIC", "-g1", "-c", "-o", str(made)]
    ):
        raise CompileError("")
    return str(made)


_VENDOR_ONLY = re.compile(r"-Wl,(?:--dependency-file.*|-cce.*)")


def _link(toolchain: Toolchain, line: CommandLine, objects: dict[int, str]) -> int:
    words = [
        objects[int(word[1:])] if word.startswith("\0") else word
        for word in line.link
        if not _VENDOR_ONLY.match(word)
    ]
    libraries = toolkit.current() / "lib64"
    kept = [flag for flag in line.kept if not flag.startswith("-std=")]
    command = [
        *kept, *(["-shared"] if line.shared else []), "-o", line.output or "a.out",
        *words, f"-L{libraries}", f"-Wl,-rpath,{libraries}",
        "-Wl,--no-as-needed", "-linsight_trace_runtime", "-Wl,--as-needed",
        "-ldl", "-lpthread", "-lm",
    ]  # fmt: skip
    done = linker.link(
        toolchain,
        lambda more: toolchain.compiler.run([*command, *more]),
        library=(line.output or "a.out") if line.shared else "",
    )
    sys.stderr.write(done.said.decode("utf-8", errors="replace"))
    return int(done.code != 0 or bool(done.over))


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())

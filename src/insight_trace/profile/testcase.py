"""A standalone test case of one kernel for CANN: a launcher, its build file and its inputs.

The kernel's source is copied unmodified and included; what a launcher needs stands around it. Both sides
declare the entry with C linkage, so the symbol is the same whatever form the source has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from insight_trace.chips import family_named
from insight_trace.errors import InputError
from insight_trace.ptoas.buffer_content import write_content
from insight_trace.ptoas.cpp_signature import EntryForm
from insight_trace.ptoas.planned_kernel import BufferArg, Content, ProfileKernel, Purpose, ValueArg
from insight_trace.storage import whole_directory

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?: [A-Za-z_]\w*)*")
HOST_TYPES = {"bfloat16_t": "uint16_t", "half": "aclFloat16"}


@dataclass(frozen=True, slots=True)
class LauncherCase:
    """A launcher's sources on disk, what is built of them, and the files that it reads."""

    directory: Path
    target: str  # of CMake
    library: Path
    application: Path
    symbols: tuple[str, ...]  # names that the kernel may have in the library, the likeliest first
    inputs: Mapping[str, int]  # files that the application reads -> bytes
    debug_lines: bool  # whether -DDEBUG_LINES=OFF builds it without -g


class _Word(str):
    """Text that a filter has checked or quoted; only this and numbers may enter a template's output."""


def _identifier(text: str) -> _Word:
    if not _IDENTIFIER.fullmatch(text):
        raise InputError(f"{text!r} cannot stand in C++ as a name")
    return _Word(text)


def _c_string(text: str) -> _Word:
    quoted = "".join(
        c if c.isalnum() or c in " _-./:,+=" else f"\\{ord(c):03o}" for c in text if ord(c) < 128
    )
    return _Word(f'"{quoted}"')


def _literal(argument: ValueArg) -> _Word:
    return _Word(argument.literal)


def _cmake_word(text: str) -> _Word:
    if not re.fullmatch(r"[\w.+\-]+", text):
        raise InputError(f"{text!r} cannot stand in CMakeLists.txt as a name")
    return _Word(text)


def _python(value: object) -> _Word:
    return _Word(repr(value))


def _only_checked(value: object) -> object:
    if isinstance(value, _Word) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError(f"a template writes {value!r} without a filter that makes it safe")


def template_environment() -> Any:
    """Templates in which nothing can be written that a filter has not checked or quoted."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("insight_trace.ptoas", "templates"),
        undefined=jinja2.StrictUndefined,
        finalize=_only_checked,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters |= {
        "name": _identifier,
        "c_string": _c_string,
        "literal": _literal,
        "cmake": _cmake_word,
        "py": _python,
    }
    return environment


def entry_symbol(kernel: ProfileKernel) -> str:
    """The exported name that a launcher calls and a profiler filters by."""
    if kernel.functions[0].form is EntryForm.BARE:
        return f"{kernel.entry}_insight_entry"  # a bare function cannot be launched: it gets a wrapper
    return kernel.entry


def _parameter(argument: BufferArg | ValueArg) -> dict[str, Any]:
    if isinstance(argument, BufferArg):
        return {
            "name": argument.name,
            "pointer": True,
            "device": argument.dtype.cpp,
            "host": HOST_TYPES.get(argument.dtype.cpp, argument.dtype.cpp),
            "bytes": argument.nbytes,
            "file": f"{argument.name}.bin",
            "ffts": argument.purpose is Purpose.FFTS,
            "input": argument.content is not Content.ZERO,
        }
    return {"name": argument.name, "pointer": False, "device": argument.cpp_type, "value": argument}


def _calls(kernel: ProfileKernel) -> list[dict[str, Any]]:
    """How the wrapper of bare functions calls each of them; the lane comes from the core that runs."""
    calls = []
    for function in kernel.functions:
        arguments = []
        for argument in kernel.arguments_of(function):
            lane = isinstance(argument, ValueArg) and argument.per_lane
            arguments.append({"name": argument.name, "lane": lane})
        guard = ""
        if len(kernel.functions) > 1:
            guard = "__DAV_CUBE__" if function is kernel.functions[0] else "__DAV_VEC__"
        calls.append({"name": function.name, "arguments": arguments, "guard": guard})
    return calls


def render_testcase(
    kernel: ProfileKernel, *, aicore_arch: str = "", debug_lines: bool = True
) -> dict[str, str]:
    """The files of the test case by name, the kernel's own source aside."""
    environment = template_environment()
    recipe = resources.files("insight_trace.ptoas").joinpath("made_up_content.py").read_text(encoding="utf-8")
    recipe = recipe.partition("from __future__ import annotations\n")[2]  # golden.py has a head of its own
    context = {
        "case": kernel.name,
        "target": _target(kernel),
        "symbol": entry_symbol(kernel),
        "bare": kernel.functions[0].form is EntryForm.BARE,
        "calls": _calls(kernel),
        "parameters": [_parameter(argument) for argument in kernel.arguments],
        "arch": aicore_arch or family_named(kernel.arch).aicore_arch,
        "debug_lines": debug_lines,
        "recipe": _Word(recipe.strip()),
        "seed": kernel.seed,
        "buffers": [
            (
                f"{a.name}.bin",
                a.dtype.numpy_name,
                a.elements,
                a.content.value,
                a.low,
                a.high,
                a.position,
                a.positive,
            )
            for a in kernel.buffers
            if a.content is not Content.FILE
        ],
    }
    names = ("kernel.cpp", "launch.cpp", "main.cpp", "CMakeLists.txt", "golden.py")
    return {name: environment.get_template(f"{name}.j2").render(context) for name in names}


def write_testcase(
    kernel: ProfileKernel,
    directory: Path,
    *,
    aicore_arch: str = "",
    debug_lines: bool = True,
    force: bool = False,
) -> None:
    """The whole test case in a private directory; inputs given as files are in it already."""
    files = render_testcase(kernel, aicore_arch=aicore_arch, debug_lines=debug_lines)
    with whole_directory(directory, force=force, record=("kernel_source.cpp",), mode=0o700) as beside:
        for name, text in files.items():
            (beside / name).write_text(text, encoding="utf-8")
        (beside / "kernel_source.cpp").write_bytes(kernel.source.read_bytes())
        for argument in kernel.buffers:
            if argument.content is Content.FILE:
                write_content(argument, kernel.seed, beside / f"{argument.name}.bin")


def own_case(
    kernel: ProfileKernel, directory: Path, build: Path, *, aicore_arch: str = "", debug_lines: bool = True
) -> LauncherCase:
    """Writes the test case and says what comes of it in `build`."""
    write_testcase(kernel, directory, aicore_arch=aicore_arch, debug_lines=debug_lines, force=True)
    target = _target(kernel)
    return LauncherCase(
        directory,
        f"{target}_msprof_sim",
        build / f"lib{target}_kernel.so",
        build / f"{target}_msprof_sim",
        (entry_symbol(kernel),),
        {f"{a.name}.bin": a.nbytes for a in kernel.buffers if a.purpose is not Purpose.FFTS},
        debug_lines,
    )


def _target(kernel: ProfileKernel) -> str:
    return re.sub(r"[^\w+\-]", "_", kernel.name)


def write_zero_inputs(case: LauncherCase) -> tuple[str, ...]:
    """Zeros for the files that are missing or of another size; returns their names, for the caller to warn."""
    written = []
    for name, size in case.inputs.items():
        path = case.directory / name
        if not path.is_file() or path.stat().st_size != size:
            with path.open("wb") as file:
                file.truncate(size)
            written.append(name)
    return tuple(written)

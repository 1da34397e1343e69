"""`aclrtlaunch_<kernel>(blocks, stream, …)` for the kernels of a source: a header, and a source that holds both.

For kernels that a program loads from a file the source says by their names how each is launched.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from insight_trace.errors import InsightTraceError
from insight_trace.ptoas.cpp_signature import CppFunction, CppParameter, EntryForm, parse_cpp


def main(arguments: list[str] | None = None) -> int:
    """SOURCE SHIM FOLDER [KIND]: writes the shim and, unless KIND is MODULE, a header for each kernel into the folder."""
    given = sys.argv[1:] if arguments is None else arguments
    source, shim, folder = map(Path, given[:3])
    try:
        if given[3:] == ["MODULE"]:
            write_by_name(source, shim)
        else:
            write(source, shim, folder)
    except (InsightTraceError, OSError) as error:
        print(f"insight-trace: {error}", file=sys.stderr)
        return 1
    return 0


def write(source: Path, shim: Path, folder: Path) -> None:
    """A launcher for each kernel, and the header that declares it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for function in _kernels(source):
        head = ", ".join(
            ["uint32_t blocks", "void *stream", *(f"{_host(p)}{p.name}" for p in function.parameters)]
        )
        passed = ", ".join(_passed(p) for p in function.parameters)
        lines.append(
            f'extern "C" uint32_t aclrtlaunch_{function.name}({head}) {{\n'
            f"    {function.name}<<<blocks, nullptr, stream>>>({passed});\n    return 0;\n}}\n"
        )
        _write_if_new(
            folder / f"aclrtlaunch_{function.name}.h",
            "#pragma once\n#include <stdint.h>\n"
            f"#ifndef ACLRT_LAUNCH_KERNEL\n#define ACLRT_LAUNCH_KERNEL(kernel) aclrtlaunch_##kernel\n#endif\n"
            f'extern "C" uint32_t aclrtlaunch_{function.name}({head});\n',
        )
    _write_shim(shim, f'#include "{source}"\n', lines)


def write_by_name(source: Path, shim: Path) -> None:
    """What a program finds by a kernel's name when it loads the compiled kernels from a file."""
    head = f'#include "{source}"\n#include <insight_trace_program/kernel_file.hpp>\n'
    _write_shim(shim, head, [_by_name(function) for function in _kernels(source)])


def _kernels(source: Path) -> Iterator[CppFunction]:
    text = source.read_text(encoding="utf-8", errors="replace")
    for kernel in parse_cpp(text).kernels:
        function = kernel.functions[0]
        if function.form is not EntryForm.BARE and f"aclrtlaunch_{function.name}" not in text:
            yield function


def _write_shim(shim: Path, head: str, parts: Iterable[str]) -> None:
    shim.parent.mkdir(parents=True, exist_ok=True)
    _write_if_new(shim, "\n".join([head, *parts]))


def _by_name(function: CppFunction) -> str:
    """How the runtime launches a kernel that it finds by its name: with a pointer to each argument."""
    types = [f"{p.type} *" if p.is_pointer else p.type for p in function.parameters]
    values = ", ".join(f"*({type_} *)values[{number}]" for number, type_ in enumerate(types))
    sizes = ", ".join(f"{{sizeof({type_}), alignof({type_})}}" for type_ in types)
    return (
        f"static void insight_trace_launch_{function.name}(uint32_t blocks, void *stream, void *const *values) {{\n"
        f"    {function.name}<<<blocks, nullptr, stream>>>({values});\n}}\n"
        f'extern "C" const insight_trace_kernel_of_file insight_trace_kernel_{function.name}{{\n'
        f"    insight_trace_launch_{function.name}, {len(types)}, {{{sizes}}}}};\n"
    )


def _write_if_new(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


_PLAIN = re.compile(
    r"(?:unsigned |signed )?(?:u?int\d+_t|int|long|char|short|float|double|bool|size_t|unsigned)"
)


def _host(parameter: CppParameter) -> str:
    if parameter.is_pointer:
        return "void *"
    return f"{parameter.type} " if _PLAIN.fullmatch(parameter.type) else f"{parameter.type} *"


def _passed(parameter: CppParameter) -> str:
    """A struct by value comes as a pointer of the host's."""
    if parameter.is_pointer:
        return f"(decltype(+({parameter.type} *)nullptr)){parameter.name}"
    return parameter.name if _PLAIN.fullmatch(parameter.type) else f"*{parameter.name}"


if __name__ == "__main__":
    sys.exit(main())

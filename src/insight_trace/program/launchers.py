"""`aclrtlaunch_<kernel>(blocks, stream, …)` for the kernels of a source: a header, and a source that holds both."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from insight_trace.errors import InsightTraceError
from insight_trace.ptoas.cpp_signature import CppParameter, EntryForm, parse_cpp


def main(arguments: list[str] | None = None) -> int:
    """SOURCE SHIM FOLDER: writes the shim and a header for each kernel into the folder."""
    given = sys.argv[1:] if arguments is None else arguments
    source, shim, folder = map(Path, given)
    try:
        write(source, shim, folder)
    except (InsightTraceError, OSError) as error:
        print(f"insight-trace: {error}", file=sys.stderr)
        return 1
    return 0


def write(source: Path, shim: Path, folder: Path) -> None:
    text = source.read_text(encoding="utf-8", errors="replace")
    shim.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f'#include "{source}"', ""]
    names = []
    for kernel in parse_cpp(text).kernels:
        function = kernel.functions[0]
        if function.form is not EntryForm.EXTERN_GLOBAL or f"aclrtlaunch_{function.name}" in text:
            continue
        names.append(function.name)
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
    _write_if_new(shim, "\n".join(lines) + "\n")


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

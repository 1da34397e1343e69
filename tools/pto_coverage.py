"""Reads every sample `.pto` of a PTOAS checkout and checks each buffer's size against a second evaluator.

The evaluator here shares nothing with the package: it rewrites a function as a small Python program with
regular expressions and runs it, every iteration of every loop, noting the last element that each view and
partition reaches. It gets the same scalar values that the package chose.

    python tools/pto_coverage.py --ptoas PATH [--verbose]
    python tools/pto_coverage.py --simpler PATH [--compile [--every N]]
    python tools/pto_coverage.py --ptoas PATH --simpler PATH --compile

With --simpler it takes every kernel that PyPTO generated, in the form that the assembler gave it, and
checks that its entry is found; with --compile that it compiles on the headers of the embedded core.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from insight_trace.errors import InsightTraceError
from insight_trace.ptoas.cpp_signature import parse_cpp
from insight_trace.ptoas.kernel_plan import kernels_of_pto
from insight_trace.ptoas.launch_arguments import Wishes, kernel_arguments
from insight_trace.ptoas.planned_kernel import BufferArg, Purpose, ValueArg
from insight_trace.ptoas.pto_parser import read_pto

STARTS = re.compile(r"\s*(%[\w$.#:, %]*=|[a-z_]+\.[a-z]|return\b|call\b|\}|module\b|\^|\"[a-z])")
BINARY = {
    "addi": "+", "subi": "-", "muli": "*", "divsi": "//", "divui": "//", "remsi": "%", "remui": "%",
    "andi": "&", "ori": "|", "xori": "^", "shli": "<<", "shrsi": ">>", "shrui": ">>",
}  # fmt: skip
COMPARE = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">=", "ult": "<", "ule": "<="}
ELEMENT_BYTES = {"f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "ui8": 1, "i64": 8}


def statements(text: str) -> list[str]:
    """One logical statement per entry: comments gone, attribute dictionaries gone, broken lines joined."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(
        r"(?:aic|aiv)_initialize_pipe\s*\{([^{}]*)\}\s*\(([^()]*)\)",
        lambda m: "PIPE " + " ".join((m[1] + " , " + m[2]).split()),
        text,
    )
    while True:  # dictionaries hold no %, regions do
        shorter = re.sub(r"\{[^{}%]*=[^{}%]*\}", " ", text)
        if shorter == text:
            break
        text = shorter
    text = re.sub(r"attributes\s*\{[^{}%]*\}", " ", text)
    joined: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if joined and not STARTS.match(line):
            joined[-1] += " " + line.strip()
        else:
            joined.append(line.strip())
    return joined


def name(word: str) -> str:
    return "v_" + re.sub(r"\W", "_", word.strip().lstrip("%"))


def listed(statement: str, key: str) -> str:
    found = re.search(rf"\b{key}\s*=?\s*\[([^\]]*)\]", statement)
    words = [w.strip() for w in found[1].split(",")] if found else []
    return "[" + ", ".join(name(w) if w.startswith("%") else w for w in words) + "]"


def python_of(text: str) -> str:
    """A Python program with one function per `func.func`."""
    out: list[str] = []
    depth = 0
    targets: list[list[str]] = []  # results that a region's yield goes to

    def emit(line: str) -> None:
        out.append("    " * depth + line)

    for statement in statements(text):
        s = statement
        if s.startswith("}"):
            emit("pass")
            depth -= 1
            if re.match(r"\}\s*else\s*\{", s):
                emit("if True:")
                depth += 1
            elif re.match(r"\}\s*do\s*\{", s):
                emit("for _ in range(1):")
                depth += 1
            elif targets:
                targets.pop()
            continue
        if s.startswith("module"):
            emit("if True:")
            depth += 1
            targets.append([])
            continue
        if found := re.match(r"func\.func\s+(?:private\s+)?@(\w+)\s*\(([^()]*)\)", s):
            if "{" not in s[found.end() :]:
                continue
            arguments = ", ".join(name(a) for a in re.findall(r"%[\w$.]+", found[2]))
            emit(f"def {found[1]}({arguments}):")
            depth += 1
            targets.append([])
            continue
        results = []
        if found := re.match(r"((?:%[\w$.]+(?::\d+)?\s*,?\s*)+)=\s*(.*)", s):
            for word in (r.strip() for r in found[1].split(",")):
                base, _, count = word.partition(":")
                results += [f"{base}#{i}" for i in range(int(count))] if count else [base]
            s = found[2]
        left = ", ".join(name(r) for r in results)
        operands = re.findall(r"%[\w$.]+(?:#\d+)?", s if s[0] == "^" else s.partition(" : ")[0])
        operation = s.split("(")[0].split()[0]
        if operation == "arith.constant":
            value = {"true": "1", "false": "0"}.get(s.split()[1], s.split()[1])
            emit(f"{left} = {value if re.fullmatch(r'-?[0-9]+', value) else 'None'}")
        elif operation.startswith("arith.") and operation[6:] in BINARY:
            emit(f"{left} = {name(operands[0])} {BINARY[operation[6:]]} {name(operands[1])}")
        elif operation in ("arith.minsi", "arith.maxsi"):
            emit(f"{left} = {operation[6:9]}({name(operands[0])}, {name(operands[1])})")
        elif operation == "arith.cmpi":
            sign = COMPARE[s.split()[1].rstrip(",")]
            emit(f"{left} = int({name(operands[0])} {sign} {name(operands[1])})")
        elif operation in ("arith.index_cast", "arith.extsi", "arith.trunci", "arith.extui"):
            emit(f"{left} = {name(operands[0])}")
        elif operation == "pto.get_subblock_idx":
            emit(f"{left} = LANE")
        elif operation == "pto.get_subblock_num":
            emit(f"{left} = 2")
        elif operation in ("pto.get_block_idx", "pto.get_block_num"):
            emit(f"{left} = {int(operation.endswith('num'))}")
        elif operation == "scf.for":
            carried = re.search(r"iter_args\(([^()]*)\)", s)
            if carried:
                for target, start in re.findall(r"(%[\w$.]+)\s*=\s*(%[\w$.#]+)", carried[1]):
                    emit(f"{name(target)} = {name(start)}")
            counter, lower, upper, step = (name(o) for o in operands[:4])
            emit(f"for {counter} in range({lower}, {upper}, {step}):")
            depth += 1
            targets.append([name(r) for r in results])
        elif operation == "scf.if":
            for r in results:
                emit(f"{name(r)} = []")
            emit("if True:")
            depth += 1
            targets.append([name(r) for r in results])
        elif operation == "scf.while":
            for target, start in re.findall(r"(%[\w$.]+)\s*=\s*(%[\w$.#]+)", s):
                emit(f"{name(target)} = {name(start)}")
            emit("for _ in range(1):")
            depth += 1
            targets.append([name(r) for r in results])
        elif operation == "scf.condition":
            emit(f"PASSED = [{', '.join(name(o) for o in operands[1:])}]")
        elif operation.startswith("^"):
            emit(f"{', '.join(name(a) for a in operands)}, = PASSED")
        elif operation.startswith("pto.section"):
            emit("if True:")
            depth += 1
            targets.append([])
        elif operation == "scf.yield":
            for target, value in zip(targets[-1] if targets else [], operands, strict=False):
                source = name(value)
                emit(f"{target} = {target} + {source} if isinstance({source}, list) else {source}")
        elif operation == "pto.make_tensor_view":
            emit(f"{left} = [VIEW({name(operands[0])}, {listed(s, 'shape')}, {listed(s, 'strides')})]")
        elif operation in ("pto.partition_view", "pto.subview"):
            emit(f"{left} = PART({name(operands[0])}, {listed(s, 'offsets')}, {listed(s, 'sizes')})")
        elif operation == "pto.addptr":
            emit(f"{left} = ({name(operands[0])}[0], {name(operands[0])}[1] + {name(operands[1])})")
        elif operation == "pto.load_scalar":
            emit(f"{left} = LOAD({name(operands[0])}, {name(operands[1])})")
        elif operation == "pto.store_scalar":
            emit(f"LOAD({name(operands[1])}, {name(operands[2])})")
        elif "PIPE " in s:
            buffer = re.search(r"gm_slot_buffer = (%[\w$.]+) : !pto.ptr<(\w+)>", s)
            if buffer:
                sizes = {k: int(v) for k, v in re.findall(r"(\w+) = (\d+)", s)}
                rings, slots = (2, 4) if sizes.get("dir_mask") == 3 else (1, 8)
                size = sizes["slot_size"] * sizes.get("slot_num", slots) * rings
                emit(f"PIPE({name(buffer[1])}, {size // ELEMENT_BYTES[buffer[2]]})")
        elif operation in ("func.call", "call"):
            callee = re.search(r"@(\w+)", s)
            assert callee
            emit(f"{callee[1]}({', '.join(name(o) for o in operands)})")
        elif results:
            emit(f"{' = '.join(name(r) for r in results)} = None")
    return "\n".join(out) + "\n"


def reached(
    program: str, functions: list[str], values: list[object], fills: dict[str, int], lane: int
) -> dict[str, int]:
    """Elements that each argument must have, found by running the program."""
    ends: dict[str, int] = {}

    def note(pointer: tuple[str, int], last: int) -> None:
        ends[pointer[0]] = max(ends.get(pointer[0], 0), pointer[1] + last + 1)

    def view(pointer: tuple[str, int], shape: list[int], strides: list[int]) -> object:
        note(pointer, sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)))
        return pointer, strides

    def part(views: list[object], offsets: list[int], sizes: list[int]) -> list[object]:
        for pointer, strides in views:  # type: ignore[misc]
            if all(size > 0 for size in sizes):
                triples = zip(offsets, sizes, strides, strict=True)
                note(pointer, sum((offset + size - 1) * stride for offset, size, stride in triples))
        return views

    def load(pointer: tuple[str, int], offset: int) -> int:
        note(pointer, offset)
        return fills.get(pointer[0], 0)

    space: dict[str, object] = {
        "LOAD": load,
        "VIEW": view,
        "PART": part,
        "PIPE": lambda p, n: note(p, n - 1),
        "LANE": lane,
    }
    exec(compile(program, "<pto>", "exec"), space)
    for function in functions:
        entry = space[function]
        count = entry.__code__.co_argcount  # type: ignore[attr-defined]
        given = [lane if value == "LANE" else value for value in values[:count]]
        entry(*given)  # type: ignore[operator]
    return ends


def check(path: Path, verbose: bool) -> tuple[int, list[str]]:
    """(buffers compared, complaints) of one file."""
    module = read_pto(path)
    program = python_of(path.read_text(encoding="utf-8"))
    compared, wrong = 0, []
    for kernel in kernels_of_pto(module):
        prepared = kernel_arguments(kernel, module, Wishes())
        values: list[object] = []
        fills: dict[str, int] = {}  # the largest element of each integer buffer
        for argument in prepared.arguments:
            if isinstance(argument, BufferArg):
                values.append((str(argument.position), 0))
                fills[str(argument.position)] = argument.high
            elif isinstance(argument, ValueArg):
                values.append("LANE" if argument.per_lane else argument.value)
        names = [function.name for function in kernel.functions]
        ends: dict[str, int] = {}
        for lane in (0, 1):
            for key, end in reached(program, names, values, fills, lane).items():
                ends[key] = max(ends.get(key, 0), end)
        for argument in prepared.arguments:
            if isinstance(argument, BufferArg) and argument.purpose in (Purpose.TENSOR, Purpose.PIPE):
                expected = ends.get(str(argument.position))
                if expected is None:
                    continue
                compared += 1
                if expected != argument.elements:
                    wrong.append(
                        f"{kernel.name}: {argument.label}: {argument.elements}, not {expected} elements"
                    )
        if verbose:
            for argument in prepared.arguments:
                print(f"  {kernel.name}: {argument}")
            for warning in prepared.warnings:
                print(f"  {kernel.name}: warning: {warning}")
    return compared, wrong


def raw_form(text: str) -> str:
    """The assembler's own output inside a kernel that PyPTO wrapped; "" for other kernels."""
    _, mark, rest = text.partition("// --- ptoas-generated code ---")
    raw = rest.partition("// --- Kernel entry point ---")[0] if mark else ""
    return raw.replace("static __aicore__ void", "AICORE void")


def generated_kernels(root: Path) -> list[tuple[Path, str, str]]:
    """(path, function, raw form) of every kernel that PyPTO generated."""
    found = []
    for path in sorted(root.rglob("*.cpp")):
        text = path.read_text(encoding="utf-8", errors="replace")
        raw = raw_form(text)
        wanted = re.search(r"// Kernel Function: (\w+)", text)
        if raw and wanted is not None:
            found.append((path, wanted[1], raw))
    return found


def check_compiles(root: Path, every: int) -> int:
    from insight_trace.chips import family_named
    from insight_trace.simulate.embedded.engine_objects import INCLUDE
    from insight_trace.simulate.embedded.toolchain import PRELUDE, Toolchain

    compiler = Toolchain.find().compiler.command
    kernels = generated_kernels(root)[::every]

    def compiles(item: tuple[Path, str, str]) -> str:
        path, _, raw = item
        side = "-D__DAV_CUBE__" if path.parent.name == "aic" else "-D__DAV_VEC__"
        target = "a5" if "a5" in path.relative_to(root).parts else "a2a3"
        with tempfile.TemporaryDirectory() as place:
            source = Path(place) / "raw.cpp"
            source.write_text(f'#include "pto/pto-inst.hpp"\nusing namespace pto;\n{raw}', encoding="utf-8")
            flags = ["-std=c++17", "-fsyntax-only", "-w", side, *family_named(target).defines, f"-I{INCLUDE}"]
            command = [*compiler, *flags, "-include", str(PRELUDE), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        lines = [line.partition(" error: ")[2] for line in done.stderr.splitlines() if " error: " in line]
        return "" if done.returncode == 0 else (lines or ["no message"])[0]

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        complaints = list(pool.map(compiles, kernels))
    for (path, _, _), complaint in zip(kernels, complaints, strict=True):
        if complaint:
            print(f"{path.relative_to(root)}: {complaint}")
    right = sum(not complaint for complaint in complaints)
    print(f"{right}/{len(kernels)} generated kernels compile ({100 * right / max(1, len(kernels)):.0f} %)")
    return 0 if kernels and right >= 0.9 * len(kernels) else 1


def check_signatures(root: Path) -> int:
    total = found = 0
    for path, wanted, raw in generated_kernels(root):
        total += 1
        names = {function.name for kernel in parse_cpp(raw).kernels for function in kernel.functions}
        if wanted in names:
            found += 1
        else:
            print(f"{path.relative_to(root)}: {wanted} not among {sorted(names)}")
    print(f"{found}/{total} generated kernels have their entry read")
    return 0 if total and found == total else 1


def check_samples(root: Path, verbose: bool) -> int:
    files = sorted((root / "test" / "samples").rglob("*.pto"))
    if not files:
        print(f"{root}: no test/samples/**/*.pto", file=sys.stderr)
        return 2
    right = buffers = empty = 0
    begin = time.process_time()
    for path in files:
        where = path.relative_to(root)
        try:
            compared, wrong = check(path, verbose)
        except InsightTraceError as error:
            compared, wrong = 0, [str(error)]
        except Exception as error:  # the second evaluator met something it cannot run
            compared, wrong = 0, [f"not evaluated: {type(error).__name__}: {error}"]
        buffers += compared
        right += not wrong and compared > 0
        empty += not wrong and compared == 0
        for complaint in wrong:
            print(f"{where}: {complaint}")
    spent = (time.process_time() - begin) / len(files) * 1000
    print(f"{right}/{len(files)} files right, {buffers} buffers compared, {spent:.1f} ms per file")
    if empty:
        print(f"{empty} files have nothing to compare")
    return 0 if right + empty == len(files) else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ptoas", type=Path, metavar="PATH", help="a checkout of PTOAS")
    parser.add_argument("--simpler", type=Path, metavar="PATH", help="a checkout of simpler")
    parser.add_argument("--compile", action="store_true", help="with --simpler: compile each kernel")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="with --compile: one in N (1: all)")
    parser.add_argument("--verbose", action="store_true", help="print every argument")
    options = parser.parse_args()
    if not options.ptoas and not options.simpler:
        parser.error("--ptoas or --simpler is needed")
    codes = []
    if options.ptoas:
        codes.append(check_samples(options.ptoas, options.verbose))
    if options.simpler:
        codes.append(check_signatures(options.simpler))
    if options.simpler and options.compile:
        codes.append(check_compiles(options.simpler, options.every))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())

"""What the scalar unit executes of a kernel's own code, counted block by block.

A kernel is compiled for the host with a call at the beginning of each basic block (`-fsanitize-coverage=trace-pc`). In the
assembly those calls are replaced by additions to counters of the thread (engine/scalar_code.hpp): how many instructions
the block has, in the classes that the scalar unit prices apart. Only work counts that another compiler for another machine
would have, too: arithmetic, comparisons, branches, accesses to memory. Moves between registers, constants, spills and calls
are this machine's; so is all that was inlined from our own headers, which stand for the vendor's.

A block also says in which piece of 2 KB of the device's code it lies, since that is what the instruction cache fetches. How
long the device's code is nobody knows here: as many instructions of 4 bytes as this machine's has, our headers' included.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from insight_trace.simulate.embedded.source_lines import is_ours

HOOKS = ("-fsanitize-coverage=trace-pc",)
_CALL = "__sanitizer_cov_trace_pc"
_COUNTERS = "insight_trace_code"
# in the order of struct CodeCounts in engine/scalar_code.hpp
_PLAIN, _MULTIPLY, _DIVIDE, _FLOAT, _FLOAT_DIVIDE = range(5)
_WHERE, _LOOP = 5, 6
_FETCHED = 8 * 7  # bytes before its bits
_INSTRUCTION, _PIECE, _MOST_PIECES = 4, 2048, 256

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s")
_MNEMONIC = re.compile(r"\s+([a-z][a-z0-9_.]*)\b\s*(.*)")

_X86_FREE = re.compile(
    r"(mov(?!\w*s[sd]$)|movs|movz|cmov|push|pop|call|ret|jmp|nop|endbr|leave|cl?t[dq]|cqt|cwt|data16|rep|lock|ud2|movap|movup)"
)
_X86_FLOAT = re.compile(r"(add|sub|mul|min|max|u?comi|cvt\w*|vfm\w*)s?[sd]\b|v?cvt|(add|sub|mul)p[sd]")
_ARM_FREE = re.compile(
    r"(mov|movz|movk|movn|fmov|adrp|bl|blr|ret|b|br|nop|stp|ldp|hint|bti|paciasp|autiasp|mrs|sxtw|uxtw)$"
)


class _Block(Struct):
    line: int  # of the call in the assembly
    begins: int  # bytes of device code before it
    loop: bool = False  # a jump from behind leads to it
    counts: list[int] = field(default_factory=lambda: [0] * 5)


def count_blocks(assembly: str) -> str:
    """The same program, which counts what it executes; unchanged for a machine whose instructions are not known here."""
    lines = assembly.split("\n")
    files: dict[str, bool] = {}
    blocks: list[_Block] = []
    labels: dict[str, int] = {}  # how many blocks stand before it
    ours, x86, size = False, True, 0
    for number, line in enumerate(lines):
        if not line.startswith(("\t", " ")):
            if line.endswith(":"):
                labels[line[:-1]] = len(blocks)
            continue
        if found := _LOC.match(line):
            ours = files.get(found[1], False)
            continue
        if found := _FILE.match(line):
            files[found[1]] = is_ours(found[3] or found[2])
            continue
        found = _MNEMONIC.match(line)
        if not found:
            continue
        name, operands = found[1], found[2]
        if _CALL in operands:
            x86 = name.startswith("call")
            blocks.append(_Block(number, size))
            continue
        size += _INSTRUCTION * bool(blocks)
        target = labels.get(operands.rpartition(",")[2].strip(), len(blocks))
        if target < len(blocks):
            blocks[target].loop = True
        if blocks and not ours:
            counts = blocks[-1].counts
            for kind, times in (_of_x86 if x86 else _of_arm)(name, operands):
                counts[kind] += times
    for block in blocks:
        lines[block.line] = "\n".join((_add_on_x86 if x86 else _add_on_arm)(block))
    return "\n".join(lines)


def _of_x86(name: str, operands: str) -> list[tuple[int, int]]:
    on_stack = "(%rsp" in operands or "(%rbp" in operands
    memory = (
        "(" in operands and not on_stack and "(%rip)" not in operands and not name.startswith(("lea", "nop"))
    )
    found = [(_PLAIN, 1)] if memory else []
    if name.startswith(("div", "idiv")):
        kind = _FLOAT_DIVIDE if name in ("divss", "divsd") else _DIVIDE
    elif name.startswith(("sqrts", "vsqrts", "vdivs")):
        kind = _FLOAT_DIVIDE
    elif name.startswith(("imul", "mulq", "mull", "mulw")):
        kind = _MULTIPLY
    elif _X86_FLOAT.match(name):
        kind = _FLOAT
    elif _X86_FREE.match(name) or (name.startswith(("xor", "pxor")) and _twice_the_same(operands)):
        return found
    else:
        kind = _PLAIN
    return [*found, (kind, 1)]


def _of_arm(name: str, operands: str) -> list[tuple[int, int]]:
    if "[sp" in operands or _ARM_FREE.match(name) or ":lo12:" in operands or ":got" in operands:
        return []
    if name in ("sdiv", "udiv"):
        return [(_DIVIDE, 1)]
    if name in ("mul", "madd", "msub", "smull", "umull", "smulh", "umulh", "mneg"):
        return [(_MULTIPLY, 1)]
    if name in ("fdiv", "fsqrt"):
        return [(_FLOAT_DIVIDE, 1)]
    if name.startswith("f") or name.startswith(("scvtf", "ucvtf")):
        return [(_FLOAT, 1)]
    return [(_PLAIN, 1)]


def _twice_the_same(operands: str) -> bool:
    words = [word.strip() for word in operands.split(",")]
    return len(words) == 2 and words[0] == words[1]


def _piece(block: _Block) -> tuple[int, int]:
    """Where its byte lies among the counters, and its bit."""
    piece = min(block.begins // _PIECE, _MOST_PIECES - 1)
    return _FETCHED + piece // 8, 1 << piece % 8


# Registers that a call may change are free at the call that this replaces.


def _add_on_x86(block: _Block) -> list[str]:
    text = [f"\tmovq\t{_COUNTERS}@gottpoff(%rip), %rax"]
    text += [f"\taddq\t${n}, %fs:{8 * kind}(%rax)" for kind, n in enumerate(block.counts) if n]
    text += ["\tleaq\t(%rip), %rcx", f"\tmovq\t%rcx, %fs:{8 * _WHERE}(%rax)"]
    at, bit = _piece(block)
    text.append(f"\torb\t${bit}, %fs:{at}(%rax)")
    return [*text, f"\tmovq\t%rcx, %fs:{8 * _LOOP}(%rax)"] if block.loop else text


def _add_on_arm(block: _Block) -> list[str]:
    text = [
        f"\tadrp\tx9, :gottprel:{_COUNTERS}",
        f"\tldr\tx9, [x9, #:gottprel_lo12:{_COUNTERS}]",
        "\tmrs\tx10, tpidr_el0",
        "\tadd\tx9, x9, x10",
    ]
    for kind, n in enumerate(block.counts):
        if n:
            text += [
                f"\tldr\tx11, [x9, #{8 * kind}]",
                f"\tadd\tx11, x11, #{min(n, 4095)}",
                f"\tstr\tx11, [x9, #{8 * kind}]",
            ]
    text += ["\tadr\tx11, .", f"\tstr\tx11, [x9, #{8 * _WHERE}]"]
    at, bit = _piece(block)
    text += [f"\tldrb\tw12, [x9, #{at}]", f"\torr\tw12, w12, #{bit}", f"\tstrb\tw12, [x9, #{at}]"]
    return [*text, f"\tstr\tx11, [x9, #{8 * _LOOP}]"] if block.loop else text

"""Which cores a launched kernel is for: what it reaches in the pass for each kind of core decides, as in the vendor's
compiler, unless the source or the command line says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from insight_trace.model import CoreType

# Work that only one kind of core has; what both have (loads, stores, flags) says nothing.
_CUBE = re.compile(
    r"\b(?:TMATMUL\w*|TGEMV\w*|TEXTRACT\w*|TIMG2COL\w*|TileLeft\w*|TileRight\w*|TileAcc\w*|mad|mad_\w+|Mmad\w*|MatMul\w*|LoadData\w*|"
    r"Fixpipe|load_cbuf_to_c\w+|load_gm_to_c\w+|img2colv2\w*|copy_gm_to_cbuf\w*|copy_matrix_cc_to_\w+|copy_cbuf_to_\w+)\b"
)
_VECTOR = re.compile(
    r"\b(?:T(?:ADD|SUB|MUL|DIV|EXP|LOG|LN|SQRT|RSQRT|RECIP|ABS|NEG|MAX|MIN|CVT|SEL|CMP|AND|OR|XOR|NOT|SHL|SHR|POW|REM|FMOD|"
    r"ROW\w*|COL\w*|EXPANDS|FILLPAD\w*|GATHER\w*|SCATTER\w*|CI|TRANS|SORT32|MRGSORT|RELU|PRELU|LRELU|TRI|PART\w*|QUANT|DEQUANT|"
    r"HISTOGRAM|CONCAT|INTERLEAVE|DEINTERLEAVE|AXPY|ADDRELU|RANDOM)(?:S|C|SC)?|MGATHER|MSCATTER|TileType::Vec|"
    r"v(?:add|sub|mul|div|max|min|exp|ln|abs|sqrt|rsqrt|rec|relu|and|or|not|adds|muls|maxs|mins|conv_\w+|sel|cmp\w*|cadd|cmax|cmin|"
    r"cgadd|cgmax|cgmin|copy|brcb|gather\w*|reduce\w*|bitsort|mrgsort4|axpy|shl|shr|lds|sts|ldas|stas)|vector_dup|copy_gm_to_ubuf\w*|"
    r"copy_ubuf_to_\w+|Vec(?:In|Out|Calc)|VEC(?:IN|OUT|CALC)|__VEC_SCOPE__)\b"
)
_ANY = re.compile(
    r"\b(?:TLOAD|TSTORE|TMOV|TPUSH|TPOP|TPREFETCH\w*|TASSIGN|DataCopy\w*|ffts_cross_core_sync|wait_flag_dev|SyncAll|CrossCore\w+)\b"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_DECLARED = re.compile(r"\binsight_trace_(vector|cube|mix)_core(?:_\d+_(\d+))?\b")
# as it stands in a source, and as the text of what ascendc_prelude.hpp makes of it
_TASK_TYPE = re.compile(r"KERNEL_TASK_TYPE(?:_DEFAULT)?\W*\(\W*(?:\w+\W*,\W*)?KERNEL_TYPE_(\w+)")


class Reach:
    """What the functions of one preprocessed text mention, by the functions that they may call."""

    def __init__(self, text: str) -> None:
        self._bodies: dict[str, list[str]] = {}
        self._collect(_without_markers(text))

    def _collect(self, text: str) -> None:
        for match in re.finditer(r"\{", text):
            opened = match.start()
            head = text[max(0, opened - 2000) : opened]
            name = _defined_name(head)
            if name is None:
                continue
            end = _closing_brace(text, opened)
            self._bodies.setdefault(name, []).append(head[head.rfind("(") :] + text[opened:end])

    def defines(self, kernel: str) -> bool:
        return kernel in self._bodies

    def of(self, kernel: str) -> str:
        """The text of a kernel and of all that it may reach."""
        wanted, seen, found = [kernel], {kernel}, []
        while wanted:
            for body in self._bodies.get(wanted.pop(), ()):
                found.append(body)
                for name in set(_NAME.findall(body)) - seen:
                    if name in self._bodies:
                        seen.add(name)
                        wanted.append(name)
        return "\n".join(found)


def _without_markers(text: str) -> str:
    """The user's own lines: what comes from system headers or from ours is left out."""
    kept, keep = [], True
    for line in text.splitlines():
        if line.startswith("#"):
            match = re.match(r'#(?:line)? \d+ "([^"]*)"', line)
            if match:
                file = match[1]
                keep = not (
                    file.startswith(("/usr/", "<"))
                    or "/insight_trace/simulate/embedded/include/" in file
                    or "/insight_trace/program/include/" in file
                    or "/torch/include/" in file
                )
            continue
        if keep:
            kept.append(line)
    return "\n".join(kept)


_KEYWORDS = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "do", "else", "namespace"}
)


def _defined_name(head: str) -> str | None:
    """The name of the function, struct or class whose body follows."""
    stripped = head.rstrip()
    cut = max(stripped.rfind(";"), stripped.rfind("}"), stripped.rfind("{"))
    statement = stripped[cut + 1 :]
    record = re.search(r"\b(?:struct|class)\s+(?:\[\[[^\]]*\]\]\s*)?([A-Za-z_]\w*)[^()]*$", statement)
    if record:
        return record[1]
    call = re.search(r"([A-Za-z_]\w*)\s*\(", statement)
    while call and call[1] in (
        "__attribute__",
        "insight_trace_kernel",
        "alignas",
        "__launch_bounds__",
        "__mix__",
        "decltype",
        "noexcept",
        "enable_if_t",
    ):
        call = re.compile(r"([A-Za-z_]\w*)\s*\(").search(statement, call.end())
    if (
        call is None
        or call[1] in _KEYWORDS
        or not re.search(r"[A-Za-z_>*&]\s+[*&]*[\w:~]*$", statement[: call.start(1)] + " ")
    ):
        return None
    return call[1]


def _closing_brace(text: str, opened: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, opened):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def infer(kernel: str, cube: Reach | None, vector: Reach | None, *, both_kinds: bool = False) -> CoreType:
    """The kind of a launch, from the passes that were made.

    `both_kinds`: compiled for both by name. Then both start, unless the source has the work of one in the pass for
    the other.
    """
    if cube is None or vector is None:
        return CoreType.AIV if cube is None else CoreType.AIC
    on_cube, on_vector = cube.of(kernel), vector.of(kernel)
    stated = _TASK_TYPE.search(on_vector) or _TASK_TYPE.search(on_cube)
    if stated:
        word = stated[1]
        return (
            CoreType.MIX
            if "_1_1" in word or "_1_2" in word
            else CoreType.AIV
            if "AIV" in word
            else CoreType.AIC
        )
    works_cube, works_vector = bool(_CUBE.search(on_cube)), bool(_VECTOR.search(on_vector))
    if works_cube and works_vector:
        return CoreType.MIX
    if works_cube or works_vector:
        unguarded = _CUBE.search(on_vector) if works_cube else _VECTOR.search(on_cube)
        if both_kinds and not unguarded:
            return CoreType.MIX
        return CoreType.AIC if works_cube else CoreType.AIV
    moves_cube, moves_vector = bool(_ANY.search(on_cube)), bool(_ANY.search(on_vector))
    return CoreType.AIC if moves_cube and not moves_vector else CoreType.AIV


_KERNEL = re.compile(r"\binsight_trace_kernel\)\)")
_ATTRIBUTE = re.compile(r"__attribute__\(\(\w+\)\)")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")


def kernels_in(text: str) -> set[str]:
    """The names of all functions that are declared `__global__`."""
    return {name for name, _ in _kernels(text)}


def kernel_parameters(text: str) -> list[int]:
    """Where the parameters of each of them begin."""
    return [opened for _, opened in _kernels(text)]


def _kernels(text: str) -> Iterator[tuple[str, int]]:
    for match in _KERNEL.finditer(text):
        name = _CALLED.search(_ATTRIBUTE.sub(_blank, text[match.end() : match.end() + 1000]))
        if name:
            yield name[1], match.end() + name.end() - 1


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def held_by(text: str, variable: str, kernels: set[str]) -> set[str]:
    """The kernels that a variable may hold: those that its values name, or every one where they do not say."""
    found: set[str] = set()
    for match in re.finditer(rf"\b{re.escape(variable)}\s*=(?!=)", text):
        depth, end = 0, match.end()
        while end < len(text) and not (text[end] == ";" and depth <= 0):
            depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(text[end], 0)
            end += 1
        found |= set(_NAME.findall(text[match.end() : end])) & kernels
    return found or kernels


def declared(text: str, kernel: str) -> CoreType | None:
    """What `__vector__`, `__cube__` or `__mix__` before a kernel's definition says (program.hpp has what they become)."""
    found = _declaration(text, kernel)
    kinds = {"vector": CoreType.AIV, "cube": CoreType.AIC, "mix": CoreType.MIX}
    return kinds[found[1]] if found else None


def vector_cores(kernel: str, text: str, reach: Reach | None) -> int:
    """How many of them a block of a mix has: two, unless the kernel says one."""
    found = _declaration(text, kernel)
    if found:
        return int(found[2] or 2)
    stated = _TASK_TYPE.search(reach.of(kernel)) if reach else None
    return 1 if stated and stated[1].endswith("_1_1") else 2


def _declaration(text: str, kernel: str) -> re.Match[str] | None:
    for match in re.finditer(rf"\b{re.escape(kernel)}\s*\(", text):
        head = text[max(0, match.start() - 300) : match.start()]
        head = head[max(head.rfind(";"), head.rfind("}")) + 1 :]
        found = _DECLARED.search(head)
        if found:
            return found
    return None

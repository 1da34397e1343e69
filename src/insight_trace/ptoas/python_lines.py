"""Which line of the user's Python a line of generated C++ comes from.

A `.pto` operation may end in `loc("model.py":41:9)`. The assembler keeps the order of a function's tile operations,
so its n-th operation is the n-th call in the C++: both are lined up by their names. A wait belongs to the call that
it lets start, a set to the call that it follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from insight_trace.errors import InsightTraceError
from insight_trace.finding import Finding
from insight_trace.limits import SOURCE_BYTES
from insight_trace.ptoas.pto_parser import read_pto
from insight_trace.ptoas.pto_syntax import Operation, operations
from insight_trace.reading import regular_text

_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*([0-9]{1,9})\s*:\s*([0-9]{1,9})\b')
_USED = re.compile(r"\bloc\((.*)\)\s*$")
_ALIAS = re.compile(r"^\s*(#loc\w*)\s*=\s*loc\((.*)\)\s*$", re.MULTILINE)
_ALIAS_NAME = re.compile(r"#loc\w*")
_CALL = re.compile(r"\b(T[A-Z][A-Z0-9_]*)\s*(?:<[^;(){}]*>)?\s*\(")
_BEFORE_A_CALL = re.compile(r"\b(?:wait_flag|pipe_barrier|wait_intra_block)\s*\(")
_AFTER_A_CALL = re.compile(r"\b(?:set_flag|set_intra_block|ffts_cross_core_sync)\s*\(")
# Names that the assembler spells in another way, and calls that no operation stands for.
_CALLED = {"tpush_to_aiv": "TPUSH", "tpush_to_aic": "TPUSH", "tpop_from_aic": "TPOP", "tpop_from_aiv": "TPOP"}
_CALLED |= {"tfree_from_aic": "TFREE", "tfree_from_aiv": "TFREE"}
_NO_OPERATION = frozenset({"TASSIGN", "TSYNC"})
_NO_CALL = frozenset({"tassign", "tsync"})


@dataclass(frozen=True, slots=True)
class PythonLine:
    """A place in the user's program, and the operation that was made of it."""

    file: str
    line: int
    column: int
    operation: str  # tload
    tiles: tuple[str, ...]  # the tiles it works on, as the program calls them

    @property
    def frame(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    line: int


def python_lines(pto: Path, cpp: Path) -> dict[int, PythonLine]:
    """By line of the C++ file; empty where the `.pto` has no locations or either cannot be read."""
    try:
        text = regular_text(pto, most=SOURCE_BYTES, errors="replace")
        generated = regular_text(cpp, most=SOURCE_BYTES, errors="replace")
        if "loc(" not in text:
            return {}
        module = read_pto(pto)
    except (OSError, InsightTraceError):
        return {}
    aliases = dict(_ALIAS.findall(text))
    lines = text.splitlines()
    found: dict[int, PythonLine] = {}
    for name, function in module.functions.items():
        body = _body(generated, name)
        if body is None:
            continue
        first, inside = body
        made = [op for op in operations(function.body) if _is_tile_operation(op)]
        calls = list(_calls(inside, first))
        placed = {
            call.line: place
            for op, call in _lined_up(made, calls)
            if (place := _place(op, lines, aliases)) is not None
        }
        found |= _with_sync(inside, first, placed)
    return found


def tile_names(pto: Path) -> list[dict[str, object]]:
    """Tiles as the program calls them, with the memory and the address that the `.pto` gives each.

    Empty where the assembler chooses the addresses.
    """
    try:
        module = read_pto(pto)
    except InsightTraceError:
        return []
    found: dict[tuple[str, int, str], dict[str, object]] = {}
    for function in module.functions.values():
        numbers: dict[str, int] = {}
        for op in operations(function.body):
            if op.name == "arith.constant" and op.results and op.tokens and op.tokens[0].kind == "number":
                text = op.tokens[0].text
                if re.fullmatch(r"-?[0-9]{1,15}", text):
                    numbers[op.results[0]] = int(text)
            place = op.after("addr") if op.name == "pto.alloc_tile" else None
            kind = next((t.text for t in op.tokens if t.kind == "type"), "")
            memory = re.search(r"loc=(\w+)", kind)
            if place is None or memory is None or place.text[1:] not in numbers or not op.results:
                continue
            name, address = _tile_name(op.results[0]), numbers[place.text[1:]]
            if name:
                entry: dict[str, object] = {"name": name, "memory": memory[1], "address": address}
                entry |= dict(re.findall(r"\b(dtype|rows|cols)=(\w+)", kind))
                found.setdefault((memory[1], address, name), entry)
    return list(found.values())


def _is_tile_operation(op: Operation) -> bool:
    return op.name.startswith("pto.t") and op.name[4:] not in _NO_CALL


def _called(op: Operation) -> str:
    short = op.name[4:]
    return _CALLED.get(short, short.upper().replace(".", "_"))


def _place(op: Operation, lines: Sequence[str], aliases: Mapping[str, str]) -> PythonLine | None:
    used = _USED.search(lines[op.line - 1]) if op.line <= len(lines) else None
    if used is None:
        return None
    inside = used[1]
    for _ in range(4):  # an alias may name another
        alias = _ALIAS_NAME.search(inside)
        if alias is None or alias[0] not in aliases:
            break
        inside = aliases[alias[0]]
    location = _LOCATION.search(inside)
    if location is None:
        return None
    tiles = tuple(dict.fromkeys(_tile_name(value) for value in op.values() if _tile_name(value)))
    return PythonLine(location[1], int(location[2]), int(location[3]), op.name[4:], tiles)


def _tile_name(value: str) -> str:
    """`rows` of `%rows__tile_3`: PyPTO keeps the program's names in front."""
    name, marked, _ = value.partition("__tile")
    return name if marked else ""


def _body(text: str, name: str) -> tuple[int, str] | None:
    """The first line and the text of a function's body."""
    for match in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        at = _closing(text, match.end() - 1, "(", ")")
        after = re.compile(r"\s*\{").match(text, at)
        if after is not None:
            end = _closing(text, after.end() - 1, "{", "}")
            return text.count("\n", 0, after.end()) + 1, text[after.end() : end]
    return None


def _closing(text: str, start: int, opens: str, closes: str) -> int:
    depth = 0
    for match in re.compile(rf"[{re.escape(opens + closes)}]").finditer(text, start):
        depth += 1 if match[0] == opens else -1
        if depth == 0:
            return match.end()
    return len(text)


def _calls(body: str, first: int) -> Iterator[_Call]:
    for match in _CALL.finditer(body):
        if match[1] not in _NO_OPERATION:
            yield _Call(match[1], first + body.count("\n", 0, match.start()))


def _lined_up(made: Sequence[Operation], calls: Sequence[_Call]) -> Iterator[tuple[Operation, _Call]]:
    names = [_called(op) for op in made]
    import difflib

    matcher = difflib.SequenceMatcher(None, names, [call.name for call in calls], autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        # another name for the same operation, where as many stand on both sides
        if tag == "equal" or (tag == "replace" and a1 - a0 == b1 - b0):
            yield from zip(made[a0:a1], calls[b0:b1], strict=True)


def _with_sync(body: str, first: int, placed: Mapping[int, PythonLine]) -> dict[int, PythonLine]:
    found = dict(placed)
    lines = body.split("\n")
    before: PythonLine | None = None
    waiting: list[int] = []
    for number, text in enumerate(lines, first):
        if number in placed:
            before = placed[number]
            found |= dict.fromkeys(waiting, before)
            waiting = []
        elif _BEFORE_A_CALL.search(text):
            waiting.append(number)
        elif _AFTER_A_CALL.search(text) and before is not None:
            found[number] = before
    if before is not None:  # what waits after the last call waits for it
        found |= dict.fromkeys(waiting, before)
    return found


def with_python_lines(
    findings: Sequence[Finding], lines: Mapping[str, Mapping[int, PythonLine]]
) -> tuple[Finding, ...]:
    """The same findings; a place in a generated file (by its path) says which Python line it comes from."""
    by_name = {Path(path).name: known for path, known in lines.items()}
    return tuple(_with_lines(finding, by_name) for finding in findings)


def _with_lines(finding: Finding, lines: Mapping[str, Mapping[int, PythonLine]]) -> Finding:
    places = []
    for place in finding.places:
        found = lines.get(Path(place.file).name, {}).get(place.line)
        places.append(replace(place, python=found.frame) if found else place)
    return replace(finding, places=tuple(places))

"""Which kernel of one build is which of the other, although names and numbers have changed.

Text decides before names: PyPTO numbers its kernels (`main_incore_3`), and one that is added renumbers all that follow.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from insight_trace.errors import InputError
from insight_trace.limits import SOURCE_BYTES
from insight_trace.reading import regular_text

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|[A-Za-z_]\w*|\d[\w.']*|\S", re.DOTALL
)  # fmt: skip
_NUMBERED = re.compile(r"v\d+\w*\Z")  # how ptoas names a value
_CALL = re.compile(
    r"\b(T[A-Z][A-Z0-9_]+|M(?:GATHER|SCATTER)|set_flag|wait_flag|pipe_barrier)\s*(?:<[^;{}()]*>)?\(([^;]*)\)"
)
_PIPE = re.compile(r"PIPE_(\w+)")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_DIGITS = re.compile(r"\d+")
_MARKER = re.compile(r'^# \d+ "([^"\n]*)"[^\n]*$', re.MULTILINE)
_LEAST_ALIKE = 0.6  # of two kernels whose names say nothing


class Listed(Struct, frozen=True):
    """One kernel as matching sees it."""

    name: str
    kind: str  # aic, aiv or mix
    signature: tuple[str, ...]  # types of its parameters
    text: str  # normalised
    ops: tuple[str, ...]


def listed(
    name: str, kind: str, signature: Sequence[str], texts: Iterable[str], own_names: Iterable[str]
) -> Listed:
    """A kernel with its sources in the form in which renumbered ones are equal."""
    joined = "\n".join(texts)
    return Listed(name, kind, tuple(signature), normalised(joined, own_names), _ops(joined))


def _ops(text: str) -> tuple[str, ...]:
    """Tile ops with the number of their operands, flags and barriers with their pipes, in the order of the text."""
    return tuple(
        f"{op} {' '.join(_PIPE.findall(given))}" if op.islower() else f"{op}/{given.count(',') + 1}"
        for op, given in _CALL.findall(text)
    )


def normalised(text: str, own_names: Iterable[str] = ()) -> str:
    """C++ without comments and layout, numbered values and the kernel's own names by their first use."""
    names: dict[str, str] = {name: f"kernel{i}" for i, name in enumerate(dict.fromkeys(own_names))}
    words = []
    for token in _TOKEN.findall(text):
        if token.startswith(("//", "/*")):
            continue
        if _NUMBERED.match(token):
            token = names.setdefault(token, f"value{len(names)}")
        words.append(names.get(token, token))
    return " ".join(words)


def source_text(path: Path, include_dirs: Sequence[str] = ()) -> str:
    """A source with the headers of its own folders that it includes, each once; "" for a file that is not there."""
    seen: set[Path] = set()

    def read(file: Path) -> str:
        seen.add(file)
        try:
            text = regular_text(file, most=SOURCE_BYTES, errors="replace")
        except (OSError, InputError):
            return ""
        if text.startswith("# ") and _MARKER.match(text):
            return _own_lines(text)
        for name in _INCLUDE.findall(text):
            for folder in (file.parent, *map(Path, include_dirs)):
                header = (folder / name).resolve()
                if header.is_file():
                    if header not in seen:
                        text += "\n" + read(header)
                    break
        return text

    return read(path.resolve())


def _own_lines(preprocessed: str) -> str:
    """Of a preprocessed source what its main file says."""
    pieces = _MARKER.split(preprocessed)
    main = next((name for name in pieces[1::2] if name and not name.startswith("<")), "")
    return "\n".join(text for name, text in zip(pieces[1::2], pieces[2::2], strict=True) if name == main)


class Match(Struct, frozen=True):
    """Places in the two lists, and what they were matched by."""

    a: int
    b: int
    by: str


def match(a: Sequence[Listed], b: Sequence[Listed]) -> tuple[list[Match], list[int], list[int]]:
    """Pairs in the order of the first list, then what is left over of each."""
    found: list[Match] = []
    left, right = dict(enumerate(a)), dict(enumerate(b))

    def take(i: int, j: int, by: str) -> None:
        found.append(Match(i, j, by))
        del left[i], right[j]

    by_name = {one.name: j for j, one in right.items() if not _DIGITS.search(one.name)}
    for i, one in list(left.items()):
        j = by_name.get(one.name)
        if j is not None and _fit(one, b[j]):
            take(i, j, "name")
    bases = dict.fromkeys(_base(one.name) for one in left.values() if _DIGITS.search(one.name))
    for base in bases:
        rows = [i for i in left if _base(a[i].name) == base and a[i].name != base]
        columns = [j for j in right if _base(b[j].name) == base and b[j].name != base]
        rows.sort(key=lambda i: _numbers(a[i].name))
        columns.sort(key=lambda j: _numbers(b[j].name))
        for row, column in _in_order([a[i] for i in rows], [b[j] for j in columns]):
            i, j = rows[row], columns[column]
            by = "text" if a[i].text == b[j].text else "similarity in order"
            take(i, j, "name" if a[i].name == b[j].name else by)
    for i, one in list(left.items()):
        same = [j for j, other in right.items() if other.text == one.text and _fit(one, other)]
        if same:
            take(i, min(same, key=lambda j: abs(i - j)), "text")
    scores = sorted(
        (
            (_alike(one, other) + (one.name == other.name), -abs(i - j), i, j)
            for i, one in left.items()
            for j, other in right.items()
            if _fit(one, other)
        ),
        reverse=True,
    )
    for score, _, i, j in scores:
        if i in left and j in right and score >= _LEAST_ALIKE:
            take(i, j, "name" if a[i].name == b[j].name else f"similarity {score:.2f}")
    return sorted(found, key=lambda pair: pair.a), list(left), list(right)


def _in_order(a: Sequence[Listed], b: Sequence[Listed]) -> list[tuple[int, int]]:
    """The pairs of two lists, both in order, that are most alike together; what is not half alike is no pair."""
    known: dict[tuple[int, int], float] = {}
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            known[i, j] = _alike(one, other) - 0.5 if _fit(one, other) else -1.0
            best[i + 1][j + 1] = max(best[i][j] + known[i, j], best[i][j + 1], best[i + 1][j])
    pairs = []
    i, j = len(a), len(b)
    while i and j:
        if known[i - 1, j - 1] > 0 and best[i][j] == best[i - 1][j - 1] + known[i - 1, j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif best[i][j] == best[i - 1][j]:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def _fit(a: Listed, b: Listed) -> bool:
    return a.kind == b.kind or "?" in (a.kind, b.kind)


def _base(name: str) -> str:
    return _DIGITS.sub("", name)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in _DIGITS.findall(name))


def _alike(a: Listed, b: Listed) -> float:
    """From 0 to 1: 1 for the same text, else by the ops in their order and by the signature."""
    if a.text == b.text:
        return 1.0
    return 0.75 * _common(a.ops, b.ops) + 0.2 * (a.signature == b.signature)


@functools.lru_cache(maxsize=100_000)
def _common(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    longest = max(len(a), len(b))
    common = sum((Counter(a) & Counter(b)).values()) / max(1, longest)
    if common < 0.5 or longest > 2000:
        return common
    return difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()


def code_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Words and signs of C++ with their lines, without comments."""
    line, at = 1, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        if not found[0].startswith(("//", "/*")):
            yield found[0], line

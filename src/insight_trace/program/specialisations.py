"""Member templates that are specialised inside their class, in a form that every compiler takes.

The device compiler takes `template <> void operator()<AIC>(…) {…}` within the class, and so does clang;
g++ wants it outside. So each becomes an overload that exists for its argument alone, and the general template
goes. A member class gets one more parameter, which makes its specialisations partial ones.
"""

from __future__ import annotations

import re

_SPECIALISED = re.compile(
    r"template\s*<\s*>(?P<words>(?:[^;{}()]|__attribute__\s*\(\([^()]*\)\))*?)\boperator\s*\(\s*\)\s*<(?P<value>[^<>;{}]+)>(?=\s*\()"
)
_ANY = "insight_trace_any"
_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|[{}]|'
    r"template\s*<\s*>\s*(?:struct|class)\s+(?P<name>\w+)\s*<(?P<values>[^<>;{}]*)>(?=[^;{}]*\{)"
)
_GENERAL = re.compile(
    r"template\s*<\s*(?P<type>[\w:]+)\s+(?P<name>\w+)\s*=\s*(?P<default>[\w:]+)\s*>"
    r"(?P<words>(?:[^;{}()]|__attribute__\s*\(\([^()]*\)\))*?)\boperator\s*\(\s*\)\s*\([^(){}]*\)\s*(?:;|\{\s*\}\s*;?)"
)


def as_overloads(text: str) -> str:
    """A preprocessed source, line by line where it was."""
    made, done = [], 0
    general: re.Match[str] | None = None
    for match in re.compile(f"(?P<general>{_unnamed(_GENERAL)})|{_unnamed(_SPECIALISED)}").finditer(text):
        if match["general"]:
            general = _GENERAL.match(text, match.start())
            after = _SPECIALISED.search(text, match.end())
            if not general or not after or _leaves_class(text, match.end(), after.start()):
                general = None
                continue
            made += [text[done : match.start()], "\n" * match[0].count("\n")]
            done = match.end()
        elif general:
            found = _SPECIALISED.match(text, match.start())
            assert found
            head = (
                f"template <{general['type']} {general['name']} = {general['default']}, "
                f"::std::enable_if_t<{general['name']} == ({found['value']}), int> = 0>"
            )
            lines = "\n" * (found[0].count("\n") - found["words"].count("\n"))
            made += [text[done : match.start()], head, lines, found["words"], "operator()"]
            done = match.end()
    return "".join([*made, text[done:]])


def as_partial(text: str) -> str:
    """A preprocessed source whose member classes are specialised in part."""
    if not re.search(r"template\s*<\s*>\s*(?:struct|class)", text):
        return text
    opened: list[int] = []
    changes: list[tuple[int, int, str]] = []
    for match in _TOKEN.finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}":
            opened[-1:] = []
        elif match["name"] and opened and _opens_class(text, opened[-1]):
            general = list(
                re.compile(
                    rf"template\s*<([^<>;{{}}]*)>\s*(?:struct|class)\s+{match['name']}\b(?!\s*<)"
                ).finditer(text, opened[-1], match.start())
            )
            if not general:
                continue
            changes.append((general[-1].end(1), general[-1].end(1), f", int {_ANY} = 0"))
            head = match[0].replace(match["values"], f"{match['values']}, {_ANY}")
            changes.append((match.start(), match.end(), re.sub(r"<\s*>", f"<int {_ANY}>", head, count=1)))
    for start, end, made in sorted(set(changes), reverse=True):
        text = text[:start] + made + text[end:]
    return text


def _opens_class(text: str, brace: int) -> bool:
    start = max(text.rfind(mark, 0, brace) for mark in ";{}")
    return re.search(r"\b(?:struct|class)\b", text[start + 1 : brace]) is not None


def _unnamed(pattern: re.Pattern[str]) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern.pattern)


def _leaves_class(text: str, start: int, end: int) -> bool:
    """Whether the class that `start` stands in ends before `end`."""
    depth = 0
    for brace in re.findall(r"[{}]", text[start:end]):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return True
    return False

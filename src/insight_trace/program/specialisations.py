"""Member templates that are specialised inside their class, in a form that every compiler takes.

The device compiler takes `template <> void operator()<AIC>(…) {…}` within the class, and so does clang;
g++ wants it outside. So each becomes an overload that exists for its argument alone, and the general template goes.
"""

from __future__ import annotations

import re

_SPECIALISED = re.compile(
    r"template\s*<\s*>(?P<words>(?:[^;{}()]|__attribute__\s*\(\([^()]*\)\))*?)\boperator\s*\(\s*\)\s*<(?P<value>[^<>;{}]+)>(?=\s*\()"
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

"""Names that two kernels both define at file scope, so that both can be included into one file.

Reads C++ loosely: comments, strings and preprocessor lines are blanked, and what is defined outside of any
braces (those of `extern "C"` and anonymous namespaces do not count) is collected. Declarations are left
alone: both files may mean the same thing by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANKED = re.compile(
    r"""//(?:\\\n|[^\n])* | /\*.*?\*/ | R"([^(\s\\]{0,16})\(.*?\)\1"
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_OPEN_SCOPE = re.compile(r'(?:extern\s+"C"|namespace)\s*\{')
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(", re.ASCII)
_TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+class)?)\s+([A-Za-z_]\w*)", re.ASCII)
_ALIAS = re.compile(r"\busing\s+([A-Za-z_]\w*)\s*=", re.ASCII)
_VARIABLE = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*=(?!=)", re.ASCII)
_NOT_FUNCTIONS = frozenset({"alignas", "__attribute__", "decltype", "noexcept", "sizeof", "operator"})


def shared_names(first: str, second: str) -> tuple[str, ...]:
    """Names to rename in each, sorted."""
    return tuple(sorted(file_scope_names(first) & file_scope_names(second)))


def file_scope_names(source: str) -> set[str]:
    """Functions, types and variables that a source defines at file scope."""
    text = _BLANKED.sub(_blank, source)
    return {name for words, body in _statements(text) if (name := _defined(words.strip(), body)) is not None}


def _without_template(words: str) -> str:
    """A template's own parameters may have defaults, which look like variables."""
    while words.startswith("template"):
        depth, end = 0, len(words)
        for position, character in enumerate(words):
            depth += (character == "<") - (character == ">")
            if character == ">" and depth == 0:
                end = position + 1
                break
        words = words[end:].lstrip()
    return words


def _defined(words: str, has_body: bool) -> str | None:
    words = _without_template(words)
    alias = _ALIAS.search(words)
    if alias:
        return alias[1]
    if words.startswith(("using ", "typedef ", "static_assert")):
        return None
    variable = _VARIABLE.search(words)
    if variable and "(" not in words[: variable.start()]:
        return variable[1]
    if not has_body:
        return None
    function = next((name for name in _FUNCTION.findall(words) if name not in _NOT_FUNCTIONS), None)
    if function is not None:
        return str(function)
    type_ = _TYPE.search(words)
    return type_[1] if type_ else None


def _blank(match: re.Match[str]) -> str:
    # `extern "C"` keeps its string, by which it is recognised; a blanked comment leaves a space.
    return match[0] if match[0] == '"C"' else " "


def _statements(text: str) -> Iterator[tuple[str, bool]]:
    """What stands outside braces, cut at the ends of declarations, and whether braces belong to it."""
    current: list[str] = []
    depth = open_scopes = position = 0
    while position < len(text):
        scope = _OPEN_SCOPE.match(text, position) if depth == 0 else None
        if scope:
            open_scopes += 1
            position = scope.end()
            continue
        character = text[position]
        position += 1
        if character == "{":
            depth += 1
        elif character == "}" and depth == 0:
            open_scopes -= 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                yield "".join(current), True
                current = []
        elif depth == 0 and character == ";":
            yield "".join(current), False
            current = []
        elif depth == 0:
            current.append(character)

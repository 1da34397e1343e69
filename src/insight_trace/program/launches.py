"""Launches `kernel<<<blocks, bytes, stream>>>(arguments)` in preprocessed C++, as calls of our runtime.

A launch becomes a call whose arguments the host evaluates as they stand. In the passes for the cores the call names
the kernel, which makes an entry point of it; in the pass for the host the kernel is not named at all.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_LINE_MARKER = re.compile(r'^#(?:line)? (\d+)(?: "((?:[^"\\]|\\.)*)")?.*$', re.M)
_CALLEE = re.compile(r"[A-Za-z_:][\w:]*\s*(?:<.*>)?(?:::\w+\s*(?:<.*>)?)*", re.S)
_CLOSURE = re.compile(r"\]\s*[({]")
_ZERO = re.compile(r"(?:0[uUlL]*|NULL|__null)$")


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """One launch in the text."""

    identity: int  # the same in every pass over the same source
    callee: str  # as it is written, with its template arguments
    file: str
    line: int

    @property
    def name(self) -> str:
        """The kernel's name without namespaces and template arguments."""
        return self.callee.split("<", 1)[0].split("::")[-1].strip()


def rewrite_launches(text: str, *, host: bool) -> tuple[str, list[LaunchSite]]:
    """The text with every launch rewritten, and the launches; lines stay where they were."""
    out: list[str] = []
    sites: list[LaunchSite] = []
    seen: dict[tuple[str, int], int] = {}
    at = 0
    position = 0
    while (found := text.find("<<<", position)) >= 0:
        position = found + 3
        if _in_string(text, found):
            continue
        start = _callee_start(text, found)
        closed = _config_end(text, found + 3)
        if start is None or start < at or closed is None:
            continue
        opened = closed + 3
        while opened < len(text) and text[opened].isspace():
            opened += 1
        if opened >= len(text) or text[opened] != "(" or (end := _closing(text, opened)) is None:
            continue
        callee = " ".join(text[start:found].split()).strip("( )")
        config = split_arguments(text[found + 3 : closed])
        arguments = split_arguments(text[opened + 1 : end])
        file, line = _place(text, start)
        count = seen[file, line] = seen.get((file, line), -1) + 1
        site = LaunchSite(_identity(file, line, count), callee, file, line)
        sites.append(site)
        call = _call(site, config, arguments, host=host)
        missing = text.count("\n", start, end + 1) - call.count("\n")
        out += [text[at:start], call, "\n" * missing]
        at = position = end + 1
    out.append(text[at:])
    return "".join(out), sites


def _call(site: LaunchSite, config: list[str], arguments: list[str], *, host: bool) -> str:
    values = [_by_value(argument) for argument in arguments]
    body = "" if host else f"{site.callee}(a...);"
    parts = [" ".join(part.split()) for part in config]
    words = ", ".join([*parts[:2], *(_by_value(part) for part in parts[2:])])
    name = site.callee.replace("\\", "").replace('"', "'")
    passed = "".join(f", {value}" for value in values)
    return (
        f"::insight_trace_program::launch<{site.identity}ull>("
        f'::insight_trace_program::Place{{"{name}", "{site.file}", {site.line}}}, '
        f"::insight_trace_program::config({words}), [](auto... a) {{ {body} }}{passed})"
    )


def _by_value(argument: str) -> str:
    """An argument as its value; one that owns what it points to is not copied."""
    if _ZERO.match(argument):
        return "::insight_trace_program::Zero{}"
    if _CLOSURE.search(argument):  # may not stand in decltype before C++20
        return argument
    pack = argument.endswith("...")
    value = argument.removesuffix("...")
    return f"::insight_trace_program::Argument<decltype(({value}))>::of({value})" + "..." * pack


def _identity(file: str, line: int, count: int) -> int:
    digest = hashlib.sha256(f"{file}\0{line}\0{count}".encode()).digest()
    return int.from_bytes(digest[:7], "little")


def _place(text: str, at: int) -> tuple[str, int]:
    """The file and line of a position in preprocessed text."""
    marker = None
    start = at
    while True:
        start = text.rfind("\n#", 0, start)
        if start < 0:
            if text.startswith("#"):
                marker = _LINE_MARKER.match(text)
            break
        marker = _LINE_MARKER.match(text, start + 1)
        if marker:
            break
    if marker is None:
        return "", text.count("\n", 0, at) + 1
    file = marker[2]
    if file is None:
        file = _place(text, max(0, marker.start() - 1))[0]
    return file, int(marker[1]) + text.count("\n", marker.end(), at) - 1


def _in_string(text: str, at: int) -> bool:
    begin = text.rfind("\n", 0, at) + 1
    quote = ""
    position = begin
    while position < at:
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and not (position and text[position - 1].isalnum())):
            quote = char
        position += 1
    return bool(quote)


def _callee_start(text: str, end: int) -> int | None:
    """Where the name before `<<<` begins: `ns::name<template arguments>`, also in brackets, as macros have it."""
    at = _before_blanks(text, end)
    if at and text[at - 1] == ")":
        opened = _opening(text, at - 1)
        inside = text[opened or 0 : at].strip("() \n")
        before = text[max(0, (opened or 0) - 80) : opened or 0].rstrip()[-1:]
        is_call = before.isalnum() or before in ("_", ">", ")", "]")
        return opened if opened is not None and not is_call and _CALLEE.fullmatch(inside) else None
    if at and text[at - 1] == ">":
        depth = 0
        while at:
            at -= 1
            char = text[at]
            if char == ">" and text[at - 1] != "-":
                depth += 1
            elif char == ")":
                opened = _opening(text, at)
                if opened is None:
                    return None
                at = opened
            elif char == "<":
                depth -= 1
                if depth == 0:
                    break
            elif char in ";{}":
                return None
        at = _before_blanks(text, at)
    begin = at
    while begin and (text[begin - 1].isalnum() or text[begin - 1] in "_:"):
        begin -= 1
    if begin == at or text[begin].isdigit():
        return None
    # `ns::Type<T>::kernel<<<`
    if text.startswith("::", begin) and begin and text[_before_blanks(text, begin) - 1] == ">":
        return _callee_start(text, begin)
    return begin


def _before_blanks(text: str, at: int) -> int:
    while at and text[at - 1].isspace():
        at -= 1
    return at


def _opening(text: str, closed: int) -> int | None:
    depth = 0
    for at in range(closed, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def _config_end(text: str, at: int) -> int | None:
    """Where the `>>>` that ends a launch's configuration stands."""
    depth = 0
    for position in range(at, min(len(text), at + 20_000)):
        char = text[position]
        depth += (char in "([{") - (char in ")]}")
        if depth < 0 or char == ";":
            return None
        if depth == 0 and text.startswith(">>>", position):
            # `f<A<B>>>>>`: the last three are ours
            while text.startswith(">>>>", position):
                position += 1
            return position
    return None


def _closing(text: str, opened: int) -> int | None:
    depth, quote, at = 0, "", opened
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and not text[at - 1].isalnum()):
            quote = char
        else:
            depth += (char == "(") - (char == ")")
            if depth == 0:
                return at
        at += 1
    return None


def split_arguments(text: str) -> list[str]:
    """The parts between commas that no bracket holds, template arguments included."""
    parts, begin, depth, quote, at = [], 0, 0, "", 0
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and not (at and text[at - 1].isalnum())):
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "<" and (closed := _template_end(text, at)):
            at = closed
        elif char == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    last = text[begin:].strip()
    return [*parts, last] if last or parts else []


def _template_end(text: str, at: int) -> int | None:
    """The `>` of template arguments that begin at `at`; None where `<` compares."""
    name = _before_blanks(text, at)
    if not name or not (text[name - 1].isalnum() or text[name - 1] == "_"):
        return None
    depth = 0
    for position in range(at, len(text)):
        char = text[position]
        if char == "<":
            depth += 1
        elif char == ">" and text[position - 1] != "-":
            depth -= 1
            if depth == 0:
                follows = text[position + 1 :].lstrip()[:1]
                return position if follows in ("(", "{", ":", "*", "&", ">", ",", ")", "") else None
        elif char in ";&|" or text.startswith("==", position):
            return None
    return None

"""Launches of device kernels in the text of a host program."""

from __future__ import annotations


def rewrite_launches(text: str) -> str:
    """`callee<<<blocks, …>>>(arguments)` as a call of launch(); every line stays where it was."""
    out, at, count = [], 0, 0
    while (found := text.find("<<<", at)) >= 0:
        start = _callee_start(text, found)
        close = text.find(">>>", found)
        opened = text.find("(", close)
        end = _match(text, opened)
        if start is None or close < 0 or end is None or "//" in text[text.rfind("\n", 0, found) : found]:
            out.append(text[at : found + 3])
            at = found + 3
            continue
        blocks = _first_argument(text[found + 3 : close])
        callee, arguments = text[start:found], text[opened:end]
        out.append(text[at:start])
        # a launch in a macro is as many as there are uses of it: their lines tell them apart
        which = f"{count} * 100000 + __LINE__"
        call = f"::device_tests::launch<{which}>({blocks}, [&]() {{ {callee.strip()}{arguments}; }})"
        in_macro = "\\\n" in text[start:end]
        if in_macro:
            call = call.replace("\\\n", " ")
        missing = text[start:end].count("\n") - call.count("\n")
        out.append(call + ("\\\n" if in_macro else "\n") * missing)
        at = end
        count += 1
    out.append(text[at:])
    return "".join(out)


def _callee_start(text: str, end: int) -> int | None:
    at = end
    while at and text[at - 1].isspace():
        at -= 1
    if at and text[at - 1] == ">":
        depth = 0
        while at:
            at -= 1
            if text[at] == ">":
                depth += 1
            elif text[at] == "<":
                depth -= 1
                if depth == 0:
                    break
            elif text[at] in ";{}":
                return None
        while at and text[at - 1].isspace():
            at -= 1
    if at and text[at - 1] == ")":  # a name that a macro makes
        depth = 0
        while at:
            at -= 1
            depth += {")": 1, "(": -1}.get(text[at], 0)
            if depth == 0:
                break
        name = at
        while name and (text[name - 1].isalnum() or text[name - 1] == "_"):
            name -= 1
        return name if name < at else None
    begin = at
    while begin and (text[begin - 1].isalnum() or text[begin - 1] in "_:#"):
        begin -= 1
    return begin if begin < at else None


def _match(text: str, opened: int) -> int | None:
    depth = 0
    for at in range(opened, len(text)) if opened >= 0 else ():
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return None


def _first_argument(text: str) -> str:
    depth = 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1, "{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            return text[:at]
    return text

"""The terminal prompt: commands of looks.py with completion and a history."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable

from insight_trace.debug.answer_text import as_lines
from insight_trace.debug.questions import COMMANDS, Questions
from insight_trace.errors import InsightTraceError
from insight_trace.recording.operands import MEMORIES

_ALSO = {"why": "TILE[i,j]", "help": "", "quit": ""}
_SHORT = {
    "s": "step",
    "b": "back",
    "n": "next-op",
    "p": "previous-op",
    "c": "continue",
    "q": "quit",
    "w": "where",
}


def completions(looks: Questions, text: str, words: list[str]) -> list[str]:
    """What may stand where `text` was begun, after the words before it."""
    if not words:
        return sorted(name for name in [*COMMANDS, *_ALSO] if name.startswith(text))
    first = words[0]
    tiles = [name for name, _ in looks.moment.tiles()]
    memories = [name.replace(" ", "_") for name in MEMORIES]
    choices: Iterable[str] = ()
    if first in ("show", "stats", "diff", "export", "why") and len(words) == 1:
        choices = [*tiles, *(memories if first in ("show", "export") else ())]
    elif first == "bytes" and len(words) == 1:
        choices = memories
    elif first == "break":
        choices = ("line", "op", "write", "nan") if len(words) == 1 else ()
        if len(words) == 2 and words[1] == "write":
            choices = [*tiles, *memories]
        elif len(words) == 2 and words[1] == "op":
            choices = _ops(looks)
    elif first == "op" and len(words) == 1:
        choices = _ops(looks)
    elif first == "core" and len(words) == 1:
        choices = looks.session.instructions.cores
    elif first == "help" and len(words) == 1:
        choices = COMMANDS
    return sorted(choice for choice in choices if choice.casefold().startswith(text.casefold()))


def _ops(looks: Questions) -> list[str]:
    operands = looks.session.operands
    return sorted({operands.ops[op] for op in set(operands.calls["op"].tolist())})


def help_lines() -> list[str]:
    width = max(map(len, COMMANDS))
    lines = [
        f"{name:<{width}}  {takes + '  ' if takes else ''}{what}"
        for name, (takes, what, _) in COMMANDS.items()
    ]
    short = ", ".join(f"{key} {name}" for key, name in _SHORT.items())
    return [*lines, f"{'why':<{width}}  TILE[i,j]  the lines that made an element", f"short: {short}"]


def execute(looks: Questions, line: str, width: int) -> list[str] | None:
    """The answer to one line; None: the user is done."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        return [f"cannot be read: {error}"]
    if not words:
        return []
    name = _SHORT.get(words[0], words[0])
    if name == "quit":
        return None
    if name == "help":
        return help_lines()
    try:
        if name == "why":
            return _why(looks, words[1:])
        return as_lines(looks.do(name, words[1:]), width)
    except InsightTraceError as error:
        return str(error).splitlines()


def _why(looks: Questions, words: list[str]) -> list[str]:
    import re

    import numpy as np

    from insight_trace.debug.chain import chain, input_lines, link_lines
    from insight_trace.debug.questions import tile_named
    from insight_trace.debug.slices import Backward

    found = re.fullmatch(r"(dst|src\d+)\[(\d+),(\d+)\]", "".join(words))
    if found is None:
        return ["why takes an element of a tile: why dst[0,0]"]
    tile = tile_named(looks.moment, found[1])
    offsets = tile.offsets()
    row, col = int(found[2]), int(found[3])
    if row >= offsets.shape[0] or col >= offsets.shape[1]:
        return [f"element [{row},{col}] lies outside the tile, {list(offsets.shape)}"]
    place = np.array([tile.address + int(offsets[row, col])], np.int64)
    slice_ = Backward(looks.session).slice(looks.moment.core, tile.memory, place, looks.moment.row + 1)
    return [*link_lines(chain(looks.session, slice_), 12), *input_lines(looks.session, slice_)]


def run_prompt(looks: Questions) -> None:
    """Reads commands until the end of input."""
    _prepare_keys(looks)
    for remark in looks.session.remarks:
        print(f"note: {remark}")
    rows = len(looks.session.instructions)
    print(
        f"{rows:,} instructions on {len(looks.session.instructions.cores)} cores. help lists the commands, Tab completes."
    )
    while True:
        try:
            line = input(f"({looks.moment.row}) ")
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            continue
        answer = execute(looks, line, shutil.get_terminal_size().columns)
        if answer is None:
            return
        print("\n".join(answer))
        sys.stdout.flush()


def _prepare_keys(looks: Questions) -> None:
    try:
        import readline
    except ImportError:  # a Python without it still reads lines
        return
    found: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            before = readline.get_line_buffer()[: readline.get_begidx()]
            found[:] = completions(looks, text, before.split())
        return found[state] + " " if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t")
    readline.parse_and_bind("tab: complete")

"""Answers as a terminal shows them, and as JSON has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from insight_trace.debug.questions import plain

_MOST_ROWS = 24


def as_data(answer: dict[str, Any]) -> dict[str, Any]:
    """Plain data; the values of a tile as lists of numbers."""
    found = dict(answer)
    values = found.get("values")
    if isinstance(values, np.ndarray):
        found["values"] = [[plain(element) for element in row] for row in values]
    return found


def as_lines(answer: dict[str, Any], width: int = 100) -> list[str]:
    """Lines for a window of so many columns."""
    word = str(answer.get("command", "")).split(" ")[0]
    body = _FORMS.get(word, _place)
    return [line if len(line) <= width else line[: width - 1] + "…" for line in body(answer, width)]


def _place(answer: dict[str, Any], _width: int) -> list[str]:
    if not answer.get("stopped", True):
        return [str(answer["text"])]
    if answer["row"] < 0:
        return [str(answer["text"])]
    lines = [f"stopped at: {answer['at']}"] if answer.get("at") else []
    op = f" of {answer['op']}" if answer["op"] else ""
    lines.append(
        f"{answer['row']}  {answer['core']}  {answer['instruction']}{op}  cycles {answer['start']:,} to {answer['cycle']:,}"
    )
    if answer["file"]:
        lines.append(f"    {Path(answer['file']).name}:{answer['line']}  {answer['source']}")
    return lines


def _tiles(answer: dict[str, Any], _width: int) -> list[str]:
    return [
        f"{tile['name']:<6} {tile['memory']:<4} 0x{tile['address']:x}  {tile['dtype']}  valid "
        f"{tile['valid'][0]}x{tile['valid'][1]}  {tile['layout']}"
        for tile in answer["tiles"]
    ] or ["it belongs to no tile op"]


def _statistics(facts: dict[str, Any]) -> str:
    text = f"{facts['elements']:,} elements"
    if "min" in facts:
        text += f" · {facts['min']:.6g} to {facts['max']:.6g} · mean {facts['mean']:.6g}"
    return text + "".join(f" · {facts[name]} {name}" for name in ("nan", "inf", "zero") if facts.get(name))


def _show(answer: dict[str, Any], width: int) -> list[str]:
    values = answer["values"]
    rows, cols = answer["valid"]
    lines = [f"{answer['name']}  {answer['layout']}  valid {rows}x{cols}", _statistics(answer["statistics"])]
    if not values.size:
        return lines
    cells = max(1, (width - 6) // 11)
    shown_rows, shown_cols = min(len(values), _MOST_ROWS), min(values.shape[1], cells)
    lines.append("      " + "".join(f"{c:>11}" for c in range(shown_cols)))
    for r in range(shown_rows):
        texts = (_cell(values[r, c], r < rows and c < cols) for c in range(shown_cols))
        lines.append(f"{r:>5} " + "".join(texts))
    left_out = []
    if shown_rows < len(values):
        left_out.append(f"{len(values) - shown_rows} rows")
    if shown_cols < values.shape[1]:
        left_out.append(f"{values.shape[1] - shown_cols} columns")
    if left_out:
        lines.append(f"      and {' and '.join(left_out)} more; export TILE FILE.npy has all")
    return lines


def _cell(value: Any, valid: bool) -> str:
    number = plain(value)
    text = f"{number:.5g}" if isinstance(number, float) else str(number)
    return f"{text if valid else '(' + text + ')':>11}"


def _stats(answer: dict[str, Any], _width: int) -> list[str]:
    return [answer["name"], _statistics(answer["statistics"])]


def _diff(answer: dict[str, Any], _width: int) -> list[str]:
    lines = [f"{answer['name']}: {answer['changed']:,} elements changed since instruction {answer['from']}"]
    for change in answer["changes"][:16]:
        r, c = change["element"]
        lines.append(f"  [{r},{c}]  {change['before']}  ->  {change['after']}")
    if answer["changed"] > 16:
        lines.append(f"  and {answer['changed'] - 16:,} more")
    return lines


def _bytes(answer: dict[str, Any], _width: int) -> list[str]:
    content = bytes.fromhex(answer["hex"])
    lines = []
    for at in range(0, min(len(content), 512), 16):
        lines.append(f"0x{answer['address'] + at:08x}  {content[at : at + 16].hex(' ', 4)}")
    if len(content) > 512:
        lines.append(f"and {len(content) - 512} bytes more")
    if answer["untouched"]:
        lines.append(
            f"{answer['untouched']} of these bytes the kernel never touched: they are not known, shown as 0"
        )
    return lines


def _list(key: str, none: str) -> Callable[[dict[str, Any], int], list[str]]:
    def lines(answer: dict[str, Any], _width: int) -> list[str]:
        return [_words(one) for one in answer[key]] or [none]

    return lines


def _words(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    parts = []
    for name, value in one.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        if isinstance(value, int) and name in ("begin", "end", "value"):
            shown = f"0x{value:x}"
        parts.append(f"{name.replace('_', ' ')} {shown if shown != '' else '-'}")
    return "  ".join(parts)


def _export(answer: dict[str, Any], _width: int) -> list[str]:
    return [f"wrote {answer['file']}: {answer['dtype']} {answer['shape']}"]


_FORMS: dict[str, Callable[[dict[str, Any], int], list[str]]] = {
    "tiles": _tiles, "show": _show, "stats": _stats, "diff": _diff, "bytes": _bytes, "export": _export,
    "flags": _list("flags", "no flag is set that nobody has waited for"), "pipes": _list("pipes", "no pipes"),
    "registers": _list("registers", "no register was written"), "changed": _list("changed", "nothing changed"),
    "break": _list("breaks", "no stops"), "forget": _list("breaks", "no stops"),
    "core": lambda answer, _width: [f"looking at {answer['core']}"],
}  # fmt: skip

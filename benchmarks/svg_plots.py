"""Small plots as SVG text: points and lines on logarithmic axes, and bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 640, 420, 70, 50, 34, 20
COLOURS = ("#2a6fdb", "#d9542b", "#2f9e62", "#8b5cd6")

Points = Sequence[tuple[float, float]]


class LogPlot:
    """Both axes logarithmic; what is drawn stays inside the given ranges."""

    def __init__(self, title: str, x: tuple[str, float, float], y: tuple[str, float, float]) -> None:
        self.x_name, self.x_from, self.x_to = x
        self.y_name, self.y_from, self.y_to = y
        self.parts = [_text(_WIDTH / 2, 20, title, 15, "middle")]
        self._axes()

    def _place(self, x: float, y: float) -> tuple[float, float]:
        across = math.log(x / self.x_from) / math.log(self.x_to / self.x_from)
        up = math.log(y / self.y_from) / math.log(self.y_to / self.y_from)
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _TOP),
        )

    def _axes(self) -> None:
        for value in _ticks(self.x_from, self.x_to):
            x, bottom = self._place(value, self.y_from)
            self.parts.append(_line(x, bottom, x, _TOP, "#8884"))
            self.parts.append(_text(x, bottom + 16, _short(value), 11, "middle"))
        for value in _ticks(self.y_from, self.y_to):
            left, y = self._place(self.x_from, value)
            self.parts.append(_line(left, y, _WIDTH - _RIGHT, y, "#8884"))
            self.parts.append(_text(left - 6, y + 4, _short(value), 11, "end"))
        self.parts.append(_text((_LEFT + _WIDTH) / 2, _HEIGHT - 12, self.x_name, 12, "middle"))
        middle = _HEIGHT / 2
        turned = f' transform="rotate(-90 16 {middle:.0f})"'
        self.parts.append(_text(16, middle, self.y_name, 12, "middle", turned))

    def line(self, points: Points, colour: str, dashed: bool = False) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self._place(*p) for p in points))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>'
        )

    def dots(self, points: Points, colour: str) -> None:
        for point in points:
            x, y = self._place(*point)
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')

    def key(self, names: Sequence[tuple[str, str]]) -> None:
        for i, (name, colour) in enumerate(names):
            y = _TOP + 16 + 16 * i
            self.parts.append(f'<circle cx="{_LEFT + 14}" cy="{y - 4}" r="4" fill="{colour}"/>')
            self.parts.append(_text(_LEFT + 24, y, name, 12, "start"))

    def svg(self) -> str:
        return _document(self.parts)


def bars(title: str, groups: Sequence[tuple[str, Sequence[float]]], names: Sequence[str]) -> str:
    """Groups of bars side by side, each with its number."""
    parts = [_text(_WIDTH / 2, 20, title, 15, "middle")]
    most = max(value for _, values in groups for value in values)
    room = (_WIDTH - _LEFT - _RIGHT) / len(groups)
    for i, (group, values) in enumerate(groups):
        width = room * 0.7 / len(values)
        for j, value in enumerate(values):
            height = value / most * (_HEIGHT - _BOTTOM - _TOP - 40)
            x, y = _LEFT + room * i + room * 0.15 + width * j, _HEIGHT - _BOTTOM - height
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width - 4:.1f}" height="{height:.1f}" fill="{COLOURS[j]}"/>'
            )
            parts.append(_text(x + width / 2 - 2, y - 5, f"{value:.0f}", 12, "middle"))
        parts.append(_text(_LEFT + room * (i + 0.5), _HEIGHT - _BOTTOM + 20, group, 12, "middle"))
    for j, name in enumerate(names):
        parts.append(f'<rect x="{_LEFT + 120 * j}" y="{_TOP}" width="10" height="10" fill="{COLOURS[j]}"/>')
        parts.append(_text(_LEFT + 16 + 120 * j, _TOP + 10, name, 12, "start"))
    return _document(parts)


def _document(parts: Sequence[str]) -> str:
    # a grey that reads on white and on black
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" fill="#777">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, size: int, anchor: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _ticks(low: float, high: float) -> list[float]:
    value = 10 ** math.ceil(math.log10(low))
    found = []
    while value <= high:
        found.append(value)
        value *= 10
    return found


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"

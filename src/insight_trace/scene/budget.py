"""What reading a scene may cost: steps, elements of what it builds, and the size of what it hands on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from insight_trace import limits

_BYTES_PER_ELEMENT = 16  # of a text


class OverBudgetError(Exception):
    """The module asks for more than a scene has use for."""


class Budget:
    """One for a module and all that it imports."""

    def __init__(self) -> None:
        self.steps = limits.SCENE_STEPS
        self.elements = limits.SCENE_ELEMENTS

    def step(self) -> None:
        """One expression is evaluated."""
        self.steps -= 1
        if self.steps < 0:
            raise OverBudgetError("takes too many steps to evaluate")

    def made(self, value: Any) -> Any:
        """A value was built: its own elements count, those that it shares with others do not count again."""
        if isinstance(value, str | bytes):
            self.elements -= len(value) // _BYTES_PER_ELEMENT
        elif isinstance(value, list | tuple | dict | set | frozenset):
            self.elements -= len(value)
        elif isinstance(value, int) and value.bit_length() > 4 * limits.SCENE_DIGITS:
            raise OverBudgetError("is a number with too many digits")
        if self.elements < 0:
            raise OverBudgetError("builds more elements than a scene has use for")
        return value

    def walked(self, value: Any) -> Any:
        """A value is about to be walked from end to end, what it shares as often as it occurs."""
        size = expanded_size(value, limits.SCENE_ELEMENTS)
        if size >= limits.SCENE_ELEMENTS:
            raise OverBudgetError("is larger than a scene has use for when it is written out")
        self.elements -= size
        return value


def expanded_size(value: Any, most: int) -> int:
    """How many elements a value has when everything shared is written out; `most` if it is more than that."""
    known: dict[int, int] = {}

    def size_of(item: Any, depth: int) -> int:
        if isinstance(item, str | bytes):
            return 1 + len(item) // _BYTES_PER_ELEMENT
        if item is None or isinstance(item, int | float | complex | Path):
            return 1
        if not isinstance(item, list | tuple | dict | set | frozenset):
            return 1
        if depth > 100:
            return most
        found = known.get(id(item))
        if found is None:
            known[id(item)] = most  # one that holds itself has no end
            found = 1
            for part in item.items() if isinstance(item, dict) else item:
                found = min(most, found + size_of(part, depth + 1))
                if found >= most:
                    break
            known[id(item)] = found
        return found

    return size_of(value, 0)

"""The tree of a `.pto` text: module, functions, operations.

Operations are kept generic (name, results, tokens, regions): only `pto_walk` knows what one means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from insight_trace.ptoas.pto_lexer import Token

_OPENING = frozenset("([{")


@dataclass(frozen=True, slots=True)
class Operation:
    name: str
    results: tuple[str, ...]  # without the %; a result `%a:2` gives a#0 and a#1
    tokens: tuple[Token, ...]  # what stands after the name, regions left out
    regions: tuple[tuple[Operation, ...], ...]
    line: int
    block_arguments: tuple[str, ...] = ()  # of all blocks in its regions, in order

    def values(self) -> tuple[str, ...]:
        """Every SSA name in the operation, in order."""
        return tuple(token.text[1:] for token in self.tokens if token.kind == "value")

    def list_after(self, word: str) -> tuple[str, ...] | None:
        """The tokens' texts of `word = [a, b]` (the equals sign may be missing); None without such a list."""
        for index, token in enumerate(self.tokens):
            if token.text != word or token.kind != "word":
                continue
            at = index + 1
            if at < len(self.tokens) and self.tokens[at].text == "=":
                at += 1
            if at < len(self.tokens) and self.tokens[at].text == "[":
                return tuple(t.text for t in self._inside(at) if t.text != ",")
        return None

    def after(self, word: str) -> Token | None:
        """The token behind `word =`, wherever it stands."""
        for index in range(len(self.tokens) - 2):
            if self.tokens[index].text.strip('"') == word and self.tokens[index + 1].text == "=":
                return self.tokens[index + 2]
        return None

    def group(self, word: str) -> tuple[Token, ...]:
        """What stands in `word(...)`, as in `ins(...)` and `outs(...)`."""
        for index, token in enumerate(self.tokens[:-1]):
            if token.text == word and self.tokens[index + 1].text == "(":
                return self._inside(index + 1)
        return ()

    def _inside(self, opening: int) -> tuple[Token, ...]:
        depth = 0
        for index in range(opening, len(self.tokens)):
            text = self.tokens[index].text
            if text in _OPENING:
                depth += 1
            elif text in ")]}":
                depth -= 1
                if depth == 0:
                    return self.tokens[opening + 1 : index]
        return self.tokens[opening + 1 :]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str  # without the %
    type: str


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    parameters: tuple[Parameter, ...]
    attributes: Mapping[str, str]
    body: tuple[Operation, ...]
    private: bool
    line: int

    @property
    def kernel_kind(self) -> str:
        """`cube`, `vector`, or "" where the text does not say."""
        value = self.attributes.get("pto.kernel_kind", "")
        return value.partition("<")[2].rstrip("> ").strip()


@dataclass(frozen=True, slots=True)
class Module:
    attributes: Mapping[str, str]
    functions: Mapping[str, Function]
    where: str = ""  # names the text in errors


def operations(body: tuple[Operation, ...]) -> Iterator[Operation]:
    """Every operation below `body`, parents first."""
    stack = list(reversed(body))
    while stack:
        operation = stack.pop()
        yield operation
        for region in reversed(operation.regions):
            stack.extend(reversed(region))

"""Reads `.pto` text into its tree.

The grammar is the part of MLIR's textual form that PyPTO, PTOAS's samples and the January 2026 text share.
"""

from __future__ import annotations

from pathlib import Path

from insight_trace.errors import InputError
from insight_trace.limits import SOURCE_BYTES
from insight_trace.ptoas.pto_lexer import Token, tokenize
from insight_trace.ptoas.pto_syntax import Function, Module, Operation, Parameter
from insight_trace.reading import regular_text

_MAX_NESTING = 200
_OPENING = frozenset("([{")
_BARE_OPERATIONS = frozenset({"return", "call", "br", "cond_br", "module", "unreachable"})


class _Parser:
    def __init__(self, tokens: list[Token], where: str) -> None:
        self.tokens = tokens
        self.where = where
        self.at = 0

    # --- looking ahead ---

    def text(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def kind(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].kind if index < len(self.tokens) else "end"

    def line(self) -> int:
        if not self.tokens:
            return 1
        return self.tokens[min(self.at, len(self.tokens) - 1)].line

    def fail(self, what: str) -> InputError:
        return InputError(
            what,
            where=f"{self.where}:{self.line()}",
            hint="the file may be cut off or not a .pto file; generate it again",
        )

    def take(self, text: str) -> None:
        if self.text() != text:
            raise self.fail(f"expected '{text}' here, found '{self.text() or 'the end of the file'}'")
        self.at += 1

    # --- the tree ---

    def module(self) -> Module:
        attributes: dict[str, str] = {}
        functions: dict[str, Function] = {}
        self.module_body(attributes, functions, depth=0)
        if self.at < len(self.tokens):
            raise self.fail(f"'{self.text()}' stands outside of any function")
        return Module(attributes, functions, self.where)

    def module_body(self, attributes: dict[str, str], functions: dict[str, Function], depth: int) -> None:
        if depth > _MAX_NESTING:
            raise self.fail("modules nest too deep")
        while self.at < len(self.tokens) and self.text() != "}":
            if self.text() == "module":
                self.at += 1
                if self.kind() == "symbol":
                    self.at += 1
                if self.text() == "attributes":
                    self.at += 1
                    attributes.update(self.dictionary())
                self.take("{")
                self.module_body(attributes, functions, depth + 1)
                self.take("}")
                self.location()
            elif self.text() in ("func.func", "func"):
                function = self.function()
                functions[function.name] = function
            elif self.kind() == "attribute" and self.text(1) == "=":  # an alias: #map = ...
                line = self.line()
                while self.at < len(self.tokens) and self.line() == line:
                    self.at += 1
            elif self.begins_operation():
                self.operation(0)
            else:
                raise self.fail(f"'{self.text()}' begins no module, function or operation")

    def function(self) -> Function:
        line = self.line()
        self.at += 1
        private = False
        while self.kind() == "word":
            private = private or self.text() == "private"
            self.at += 1
        if self.kind() != "symbol":
            raise self.fail(f"a function's @name was expected, found '{self.text()}'")
        name = self.text()[1:].strip('"')
        self.at += 1
        parameters = self.parameters()
        if self.kind() == "arrow":
            self.at += 1
            self.skip_types()
        attributes = {}
        if self.text() == "attributes":
            self.at += 1
            attributes = self.dictionary()
        body: tuple[Operation, ...] = ()
        if self.text() == "{":
            body, _ = self.region(0)
        self.location()
        return Function(name, parameters, attributes, body, private, line)

    def parameters(self) -> tuple[Parameter, ...]:
        self.take("(")
        found: list[Parameter] = []
        while self.text() != ")":
            if self.at >= len(self.tokens):
                raise self.fail("a function's signature does not end")
            name = ""
            if self.kind() == "value":
                name = self.text()[1:]
                self.at += 1
                self.take(":")
            found.append(Parameter(name or str(len(found)), self.type_text()))
            if self.text() == "{":
                self.dictionary()
            if self.text() == ",":
                self.at += 1
        self.take(")")
        return tuple(found)

    def type_text(self) -> str:
        """One type: `!pto.ptr<f32>`, `index`, `memref<...>`, `<loc=...>`, `(a) -> b`."""
        if self.text() == "(":
            begin = self.at
            self.skip_balanced()
            if self.kind() == "arrow":
                self.at += 1
                self.skip_types()
            return "".join(t.text for t in self.tokens[begin : self.at])
        if self.kind() not in ("type", "word", "angle"):
            raise self.fail(f"a type was expected, found '{self.text() or 'the end of the file'}'")
        text = self.text()
        self.at += 1
        if self.kind() == "angle" and self.tokens[self.at - 1].kind != "angle":
            text += self.text()
            self.at += 1
        return text

    def skip_types(self) -> None:
        if self.text() == "(":
            self.skip_balanced()
            return
        self.type_text()
        while self.text() == ",":
            self.at += 1
            self.type_text()

    def skip_balanced(self) -> None:
        depth = 0
        while self.at < len(self.tokens):
            text = self.text()
            self.at += 1
            if text in _OPENING:
                depth += 1
            elif text in ")]}":
                depth -= 1
                if depth == 0:
                    return
        raise self.fail("a bracket is never closed")

    def dictionary(self) -> dict[str, str]:
        """`{key, key = value}` with each value as its text."""
        self.take("{")
        found: dict[str, str] = {}
        while self.text() != "}":
            if self.kind() not in ("word", "string"):
                raise self.fail(f"an attribute's name was expected, found '{self.text()}'")
            key = self.text().strip('"')
            self.at += 1
            value = ""
            if self.text() == "=":
                self.at += 1
                begin = self.at
                while self.at < len(self.tokens) and self.text() not in (",", "}"):
                    if self.text() in _OPENING:
                        self.skip_balanced()
                    else:
                        self.at += 1
                value = " ".join(t.text for t in self.tokens[begin : self.at])
            found[key] = value.strip('"')
            if self.text() == ",":
                self.at += 1
        self.take("}")
        return found

    def location(self) -> None:
        if self.text() == "loc" and self.text(1) == "(":
            self.at += 1
            self.skip_balanced()

    # --- operations ---

    def region(self, depth: int) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
        if depth > _MAX_NESTING:
            raise self.fail("regions nest too deep")
        self.take("{")
        found: list[Operation] = []
        arguments: list[str] = []
        while self.text() != "}":
            if self.at >= len(self.tokens):
                raise self.fail("a region is never closed")
            if self.kind() == "block":
                self.at += 1
                if self.text() == "(":
                    begin = self.at
                    self.skip_balanced()
                    arguments += [t.text[1:] for t in self.tokens[begin : self.at] if t.kind == "value"]
                self.take(":")
            else:
                found.append(self.operation(depth))
        self.take("}")
        return tuple(found), tuple(arguments)

    def begins_operation(self) -> bool:
        """Whether the token here can begin an operation, seen from the end of the one before."""
        kind, text = self.kind(), self.text()
        if kind == "value":
            return self.text(1) in ("=", ",", ":")
        if kind == "string":
            return self.text(1) == "("
        return kind == "word" and ("." in text or text in _BARE_OPERATIONS)

    def results(self) -> tuple[str, ...]:
        names: list[str] = []
        while self.kind() == "value":
            name = self.text()[1:]
            self.at += 1
            if self.text() == ":" and self.kind(1) == "number":
                try:
                    count = int(self.text(1))
                except ValueError:
                    count = -1
                if not 0 <= count <= 1000:
                    raise self.fail(f"'{self.text(1)}' is no number of results")
                names += [f"{name}#{index}" for index in range(count)]
                self.at += 2
            else:
                names.append(name)
            if self.text() == ",":
                self.at += 1
        if names:
            self.take("=")
        return tuple(names)

    def opens_region(self, name: str) -> bool:
        """A brace opens a region unless what follows reads like an attribute dictionary."""
        if self.text(1) == "}":
            return name.startswith(("scf.", "pto.section", "func."))
        if self.kind(1) == "word" and self.text(1) in _BARE_OPERATIONS:
            return True
        if self.kind(1) in ("word", "string"):
            if self.text(2) == "}":
                return self.text(1) in ("scf.yield", "func.return")
            return self.text(2) not in ("=", ",")
        return True

    def operation(self, depth: int) -> Operation:
        line = self.line()
        names = self.results()
        if self.kind() not in ("word", "string"):
            raise self.fail(f"an operation was expected, found '{self.text() or 'the end of the file'}'")
        name = self.text().strip('"')
        self.at += 1
        tokens: list[Token] = []
        regions: list[tuple[Operation, ...]] = []
        arguments: list[str] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.text == "}" or (token.opens_line and (token.kind == "block" or self.begins_operation())):
                break
            if token.text == "{" and self.opens_region(name):
                body, more = self.region(depth + 1)
                regions.append(body)
                arguments += more
            elif token.text in _OPENING:
                begin = self.at
                self.skip_balanced()
                tokens += self.tokens[begin : self.at]
            elif token.text in (")", "]"):
                raise self.fail(f"'{token.text}' closes nothing")
            else:
                tokens.append(token)
                self.at += 1
        return Operation(name, names, tuple(tokens), tuple(regions), line, tuple(arguments))


def parse_pto(text: str, where: str = "<text>") -> Module:
    """The tree of a `.pto` text; `where` names it in errors."""
    return _Parser(tokenize(text, where), where).module()


def read_pto(path: Path) -> Module:
    """The tree of a `.pto` file."""
    try:
        text = regular_text(path, most=SOURCE_BYTES)
    except FileNotFoundError:
        raise InputError(
            "there is no such file",
            where=str(path),
            hint="PyPTO writes the .pto beside the .cpp; build the case again and keep both",
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(path), hint="is this a .pto file?") from None
    return parse_pto(text, str(path))

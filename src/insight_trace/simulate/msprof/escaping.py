"""Text from outside becomes a literal of the language it is written into, or is refused. Nothing else passes.

The template environment refuses a plain string: every value that a template prints must be a number or have
gone through one of these filters.
"""

from __future__ import annotations

import re
import shlex

import jinja2

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SAFE_PATH = re.compile(r"[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_.+-]+", re.ASCII)


class Literal(str):
    """Text that is safe where a template prints it."""

    __slots__ = ()


_CPP_MARKS, _SHELL_MARKS = '"\\?', "'\\"


def _octal(text: str, escaped: str) -> str:
    """UTF-8 bytes in printable ASCII only. Octal escapes have at most three digits: they never swallow what follows."""
    raw = text.encode("utf-8", "surrogateescape")
    plain = {byte: chr(byte) for byte in range(0x20, 0x7F)} | {ord(mark): f"\\{mark}" for mark in escaped}
    return "".join(plain.get(byte, f"\\{byte:03o}") for byte in raw)


def cpp_string(text: str) -> Literal:
    """A C++ string literal of the text's UTF-8 bytes, in printable ASCII only; `?` is escaped because of trigraphs."""
    return Literal(f'"{_octal(text, _CPP_MARKS)}"')


def cpp_comment(text: str) -> Literal:
    """The same literal for use in a // comment: one line, and it ends in a quote, so it never continues."""
    return cpp_string(text)


def shell_word(text: str) -> Literal:
    """One word for a POSIX shell, on one line: control characters are spelled out in bash's $'…' form."""
    if "\0" in text:
        raise ValueError("a path or name cannot contain a zero byte")
    if text.isprintable() and text.isascii():
        return Literal(shlex.quote(text))
    return Literal(f"$'{_octal(text, _SHELL_MARKS)}'")


def cmake_string(text: str) -> Literal:
    """A CMake quoted argument. A semicolon needs no escape there and would keep a backslash put before it."""
    if "\0" in text:
        raise ValueError("a path or name cannot contain a zero byte")
    escapes = {'"': '\\"', "\\": "\\\\", "$": "\\$", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return Literal('"' + "".join(escapes.get(character, character) for character in text) + '"')


def identifier(text: str) -> Literal:
    """A name as C++ has it."""
    return _checked(_IDENTIFIER, text, "an identifier")


def include_path(text: str) -> Literal:
    """A relative path of plain characters: header names know no escapes."""
    return _checked(_SAFE_PATH, text, "a plain relative path")


def word(text: str) -> Literal:
    """An architecture, chip or runtime name: plain characters, no separators."""
    return _checked(_WORD, text, "a plain word")


def _checked(pattern: re.Pattern[str], text: str, what: str) -> Literal:
    if not pattern.fullmatch(str(text)):
        raise ValueError(f"{text!r} is not {what}")
    return Literal(text)


def safe_name(text: str) -> str:
    """A file name of plain characters that still resembles the text."""
    name = re.sub(r"[^A-Za-z0-9_.+-]", "_", text).lstrip(".")
    return name or "_"


def _only_literals(value: object) -> object:
    if isinstance(value, Literal) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError(f"a template printed {value!r} without an escaping filter")


def template_environment() -> jinja2.Environment:
    """The templates of the workspace: undefined names and unescaped text are errors."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or "", "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_only_literals,
    )
    for filter_ in (cpp_string, cpp_comment, shell_word, cmake_string, identifier, include_path, word):
        environment.filters[filter_.__name__] = filter_
    return environment

"""What a line might have been meant to do instead: operands that differ by little from what it was given, or another op.

Each is a guess that holds for any kernel (another size, type, place, rounding mode, number, or op of the same class); one
more run tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from insight_trace.debug.suspects import ROUND_MODES, Evidence, SuspectSite
from insight_trace.debug.tile_calls import Number, TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile, element_size, numpy_type, type_name
from insight_trace.dtypes import DTYPES
from insight_trace.simulate.embedded.journaling import OperandChange
from insight_trace.simulate.embedded.op_script import op_numbers

_MOST_SINGLE = 12  # executions of a line that are fixed one by one
_MOST_PLACES = 24  # other places for one operand
_MOST_SCORE = 3.0  # so that no line alone takes all the time
_COMMON = -3.5
# Ops that take the same operands, and that a person may write for each other.
_CLASSES = (
    ("TABS", "TRELU", "TNEG", "TEXP", "TLOG", "TSQRT", "TRSQRT", "TRECIP", "TNOT", "TMOV"),
    ("TADD", "TSUB", "TMUL", "TDIV", "TMAX", "TMIN", "TREM", "TAND", "TOR", "TXOR", "TSHL", "TSHR"),
    ("TADDS", "TSUBS", "TMULS", "TDIVS", "TMAXS", "TMINS", "TREMS", "TANDS", "TORS", "TXORS", "TSHLS", "TSHRS", "TLRELU"),
    ("TROWMAX", "TROWMIN", "TROWSUM", "TROWPROD"),
    ("TROWARGMAX", "TROWARGMIN"),
    ("TCOLMAX", "TCOLMIN", "TCOLSUM", "TCOLPROD"),
    ("TCOLARGMAX", "TCOLARGMIN"),
    ("TROWEXPANDADD", "TROWEXPANDSUB", "TROWEXPANDMUL", "TROWEXPANDDIV", "TROWEXPANDMAX", "TROWEXPANDMIN"),
    ("TCOLEXPANDADD", "TCOLEXPANDSUB", "TCOLEXPANDMUL", "TCOLEXPANDDIV", "TCOLEXPANDMAX", "TCOLEXPANDMIN"),
)  # fmt: skip
_LIMITS = (127.0, 255.0, 448.0, 57344.0, 65504.0)  # of narrow types: what scales and clamps are made of


@dataclass(frozen=True)
class Fix:
    """Other operands for a line, in all of its executions or in one."""

    site: SuspectSite
    text: str
    changes: tuple[OperandChange, ...]
    likely: float = 0.0


@dataclass(frozen=True)
class FixScope:
    """Executions of a line that are fixed together."""

    calls: tuple[TileCall, ...]
    text: str
    likely: float


class Catalogue:
    """The fixes of every line that is suspected."""

    def __init__(self, calls: TileCalls, evidence: Evidence) -> None:
        self._calls = calls
        self._evidence = evidence
        self._places: dict[tuple[int, int], dict[int, set[Tile]]] = {}
        self._users: dict[tuple[int, int, int], set[tuple[int, str]]] = {}  # lines that use a place
        self._types: set[int] = set()
        self._numbers: dict[int, set[int]] = {}
        for number in range(len(calls)):
            call = calls[number]
            for _, tile in call.tiles:
                self._types.add(tile.type)
                if not tile.in_global:
                    known = self._places.setdefault((call.core, tile.memory), {})
                    known.setdefault(tile.address, set()).add(tile)
                    users = self._users.setdefault((call.core, tile.memory, tile.address), set())
                    users.add(evidence.line_of(number))
            for _, given in call.numbers:
                self._numbers.setdefault(given.type, set()).add(given.bits)

    def all(self) -> tuple[list[Fix], list[Fix]]:
        """The likeliest first: those that are few, then the many that are left."""
        few: list[Fix] = []
        many: list[Fix] = []
        for site in self._evidence.sites:
            for scope in self.scopes(site):
                for fix, common in self._of(site, scope):
                    (few if common else many).append(fix)
        return sorted(few, key=lambda fix: -fix.likely), sorted(many, key=lambda fix: -fix.likely)

    def scopes(self, site: SuspectSite) -> list[FixScope]:
        """All executions of a line; then single ones, those that only wrong elements come from first."""
        everything = tuple(self._calls[number] for number in site.calls)
        found = [FixScope(everything, "", 0.0)]
        if len(everything) > 1:
            wrong, right = self._evidence.executions(site)
            only = sorted(wrong - right)
            apart = 0 < len(only) < len(everything)
            if 1 < len(only) < len(everything):
                found.append(
                    FixScope(tuple(self._calls[n] for n in only), f" in {len(only)} executions", 0.3)
                )
            for number in [*only, *sorted(wrong & right), *sorted(set(site.calls) - wrong)][:_MOST_SINGLE]:
                likely = 0.4 if apart and number in only else -0.6 - 0.5 * math.log2(len(everything))
                found.append(
                    FixScope((self._calls[number],), f" at instruction {self._calls[number].first}", likely)
                )
        return found

    def _of(self, site: SuspectSite, scope: FixScope) -> Iterator[tuple[Fix, bool]]:
        """Fixes, and whether they are among the few that come first."""
        places = (self._other_types, self._sizes, self._starts, self._other_places)
        small = self._evidence.small
        kinds = [
            (self._round_modes(scope), 0.0 if small else -1.5),
            # tiles that are elsewhere or of another form hardly differ in the last digit alone
            *((guess(site, scope), -2.0 if small else 0.0) for guess in places),
            (self._other_numbers(scope), 0.0),
            (self._other_ops(scope), -2.0 if small else 0.5),
        ]
        for kind, fits in kinds:
            guesses = [guess for guess in kind if guess[2]]
            for text, likely, changes in guesses:
                # of many ways to be wrong each one is less likely
                weight = min(site.score, _MOST_SCORE) + likely + scope.likely + fits
                weight -= 0.5 * math.log2(len(guesses))
                yield Fix(site, text + scope.text, tuple(changes), weight), weight > _COMMON

    def _other_ops(self, scope: FixScope) -> Iterator[tuple[str, float, list[OperandChange]]]:
        """Ops of the same class that this build of the engine has."""
        some = scope.calls[0]
        numbers = op_numbers()
        for ops in _CLASSES:
            for op in ops if some.op in ops else ():
                if op != some.op and op in numbers:
                    changes = [OperandChange(call.number, 0, "op", numbers[op]) for call in scope.calls]
                    yield f"{op} instead of {some.op}", 0.0, changes

    def _round_modes(self, scope: FixScope) -> Iterator[tuple[str, float, list[OperandChange]]]:
        some = scope.calls[0]
        options = [(operand, number) for operand, number in some.numbers if number.type < 0]
        if some.op != "TCVT" or not options:
            return
        operand, given = options[0]
        for mode, name in enumerate(ROUND_MODES):
            if mode != given.value:
                changes = [OperandChange(call.number, operand, "option", mode) for call in scope.calls]
                yield f"rounding by {name}", 0.5 if mode < 3 else 0.0, changes

    def _other_types(
        self, site: SuspectSite, scope: FixScope
    ) -> Iterator[tuple[str, float, list[OperandChange]]]:
        some = scope.calls[0]
        told = 1.0 if site.says("is written and") else -1.0
        given_types = {tile.type for _, tile in some.tiles if not tile.in_global}
        for old in sorted(given_types | {number.type for _, number in some.numbers if number.type >= 0}):
            having = [o for o, given in enumerate(some.operands)
                      if given.type == old and not (isinstance(given, Tile) and given.in_global)]  # fmt: skip
            for new in range(len(DTYPES)):
                if new == old or element_size(new) != element_size(old):
                    continue
                usual = 0.0 if new in self._types else -1.0
                for chosen in _together_and_each(having):
                    changes = [
                        OperandChange(call.number, o, "type", new) for call in scope.calls for o in chosen
                    ]
                    whose = "" if len(chosen) == len(having) else f" for operand {chosen[0]}"
                    yield (f"{type_name(new)} instead of {type_name(old)}{whose}", told + usual - 0.3 * bool(whose),
                           changes)  # fmt: skip

    def _sizes(self, site: SuspectSite, scope: FixScope) -> Iterator[tuple[str, float, list[OperandChange]]]:
        told = 1.0 if site.says("all but") or site.says("valid") or site.says("beside") else -0.5
        tiles = [operand for operand, tile in scope.calls[0].tiles if not tile.in_global]
        for what in ("rows", "cols"):
            for by in (1, -1):
                for chosen in _together_and_each(tiles):
                    changes = [
                        change for call in scope.calls for o in chosen for change in _sized(call, o, what, by)
                    ]
                    whose = "" if len(chosen) == len(tiles) else f" of operand {chosen[0]}"
                    text = f"one valid {what[:-1]} {'more' if by > 0 else 'less'}{whose}"
                    yield text, told - 0.2 * bool(whose) - 0.2 * (by < 0), changes

    def _starts(self, site: SuspectSite, scope: FixScope) -> Iterator[tuple[str, float, list[OperandChange]]]:
        """A tile that begins a row before, and ends where it did."""
        told = 0.8 if site.says("all but") or site.says("valid") or site.says("beside") else -0.8
        tiles = [operand for operand, tile in scope.calls[0].tiles if tile.plain]
        for chosen in _together_and_each(tiles):
            changes: list[OperandChange] = []
            for call in scope.calls:
                for operand in chosen:
                    tile = call.operands[operand]
                    assert isinstance(tile, Tile)
                    address = tile.address - tile.cols * element_size(tile.type)
                    if address >= 0:
                        changes.append(OperandChange(call.number, operand, "address", address))
                        changes += _sized(call, operand, "rows", 1)
            whose = "" if len(chosen) == len(tiles) else f" of operand {chosen[0]}"
            yield f"one row before the first{whose}", told, changes

    def _other_places(
        self, site: SuspectSite, scope: FixScope
    ) -> Iterator[tuple[str, float, list[OperandChange]]]:
        some = scope.calls[0]
        stale = site.says("older") or site.says("nobody") or site.says("another form")
        for operand, tile in some.tiles:
            if tile.in_global:
                continue
            known = self._places[some.core, tile.memory]

            def unlike(address: int, tile: Tile = tile, known: dict[int, set[Tile]] = known) -> int:
                like = [(t.type != tile.type) + (t.valid != tile.valid) + (t.rows * t.cols != tile.rows * tile.cols)
                        for t in known[address]]  # fmt: skip
                return min(like)

            told = 0.0 if stale or site.says("elsewhere") else -1.0
            if operand == some.tiles[0][0]:
                told = 1.5 if site.says("writes over") else 0.5 if site.says("nobody reads") else -1.5
            # who takes another's buffer by mistake leaves it to those whose it is
            if not self._users[some.core, tile.memory, tile.address] - {(site.line, site.op)}:
                told -= 1.0
            usual = [self._calls[number].operands[operand] for number in site.calls]
            usually = {given.address for given in usual if isinstance(given, Tile)}

            def order(
                a: int, tile: Tile = tile, usually: set[int] = usually, unlike: Callable[[int], int] = unlike
            ) -> tuple[int, ...]:
                return a not in usually, unlike(a), abs(a - tile.address), a

            others = sorted(known.keys() - {tile.address}, key=order)
            for place, address in enumerate(others[:_MOST_PLACES]):
                changes = [OperandChange(call.number, operand, "address", address) for call in scope.calls
                           if call.operands[operand] == tile]  # fmt: skip
                text = f"operand {operand} at 0x{address:x} instead of 0x{tile.address:x}"
                yield text, told - 0.3 * unlike(address) + 0.5 * (address in usually) - 0.1 * place, changes

    def _other_numbers(self, scope: FixScope) -> Iterator[tuple[str, float, list[OperandChange]]]:
        """Numbers that are usual, or that this kernel uses elsewhere."""
        for operand, number in scope.calls[0].numbers:
            if number.type < 0:
                continue
            value = float(number.value)
            usual = [0.0, 1.0, -1.0, -value, 2 * value, value / 2, *([1 / value] if value else [])]
            usual += _LIMITS if numpy_type(number.type).kind not in "iu" else ()
            bits = [bits_of(each, number.type) for each in usual] + sorted(self._numbers[number.type])
            for one in dict.fromkeys(bits):
                if one != number.bits:
                    changes = [OperandChange(call.number, operand, "scalar", one) for call in scope.calls]
                    shown = Number(one, number.type).value
                    yield f"{shown:.9g} instead of {number.value:.9g} as operand {operand}", -0.5, changes


def _together_and_each(operands: Sequence[int]) -> list[list[int]]:
    together = [list(operands)] if operands else []
    return together if len(operands) < 2 else [*together, *([operand] for operand in operands)]


def _sized(call: TileCall, operand: int, what: str, by: int) -> list[OperandChange]:
    tile = call.operands[operand]
    assert isinstance(tile, Tile)
    value, most = getattr(tile, f"valid_{what}") + by, getattr(tile, what)
    return [OperandChange(call.number, operand, f"valid_{what}", value)] if 0 < value <= most else []


def bits_of(value: float, type_: int) -> int:
    """A number as the bits of an element."""
    kind = numpy_type(type_)
    with np.errstate(all="ignore"):
        if kind.kind in "iu":
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            element = np.array([int(min(max(round(value), low), high))]).astype(kind)
        else:
            element = np.array([value], np.float32 if kind.kind == "V" else np.float64).astype(kind)
    return int.from_bytes(element.tobytes().ljust(8, b"\0")[:8], "little")

"""Integer values of a kernel as sums of loop counters and unknowns, with exact bounds where sums allow them.

A value is `constant + Σ factor × variable`; a variable has a lower and an upper bound (None: not known)
and remembers which arguments it comes from. Sums and multiples stay exact, so `i * 64 + j` over two loops
is bounded by what the loops really reach. What is no sum (a quotient, a minimum) becomes a new variable
with bounds of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Bound = int | None
_INSANE = 1 << 127


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """Something that is not one number: a loop counter, an argument nobody set, a loaded element."""

    label: str
    low: Bound
    high: Bound
    origins: frozenset[str]  # arguments that decide it


@dataclass(frozen=True, slots=True)
class Affine:
    constant: int = 0
    terms: Mapping[Variable, int] = field(default_factory=dict)
    origins: frozenset[str] = frozenset()  # of numbers that came from bound arguments

    @property
    def is_number(self) -> bool:
        return not self.terms

    @property
    def sources(self) -> frozenset[str]:
        """The arguments that have a say in this value."""
        return self.origins.union(*(variable.origins for variable in self.terms))

    @property
    def low(self) -> Bound:
        total = self.constant
        for variable, factor in self.terms.items():
            bound = variable.low if factor > 0 else variable.high
            if bound is None:
                return None
            total += factor * bound
        return total

    @property
    def high(self) -> Bound:
        total = self.constant
        for variable, factor in self.terms.items():
            bound = variable.high if factor > 0 else variable.low
            if bound is None:
                return None
            total += factor * bound
        return total

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for variable, factor in other.terms.items():
            terms[variable] = terms.get(variable, 0) + factor
            if not terms[variable]:
                del terms[variable]
        return Affine(self.constant + other.constant, terms, self.origins | other.origins)

    def __mul__(self, other: Affine) -> Affine:
        if not self.is_number:
            self, other = other, self
        if self.is_number:
            factor = self.constant
            terms = {variable: factor * old for variable, old in other.terms.items()} if factor else {}
            return Affine(factor * other.constant, terms, self.origins | other.origins)
        return bounded("product", _corners(self, other, lambda a, b: a * b), (self, other))

    def __sub__(self, other: Affine) -> Affine:
        return self + other * Affine(-1)


def sane(value: Affine) -> Affine:
    """The value, or an unknown in its place when its numbers are beyond anything a kernel computes with.

    Hostile text can square a number line after line; its digits would double with each.
    """
    if all(abs(number) < _INSANE for number in (value.constant, *value.terms.values())):
        return value
    return unknown("huge", value.sources)


def unknown(
    label: str, origins: frozenset[str] = frozenset(), low: Bound = None, high: Bound = None
) -> Affine:
    return Affine(0, {Variable(label, low, high, origins): 1})


def bounded(label: str, limits: tuple[Bound, Bound], of: tuple[Affine, ...]) -> Affine:
    """A value of which only the limits and the origins are known."""
    origins = frozenset().union(*(value.sources for value in of))
    low, high = limits
    if low is not None and low == high:
        return Affine(low, {}, origins)
    return unknown(label, origins, low, high)


def _corners(a: Affine, b: Affine, op: Callable[[int, int], int]) -> tuple[Bound, Bound]:
    """Limits of an operation that is monotonic in each operand: they lie in the corners."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return None, None
    found = [op(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(found), max(found)


def hull(a: Affine, b: Affine) -> Affine:
    """A value that is one of two: what an `if` yields."""
    if a == b:
        return a
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    return bounded("either", (low, high), (a, b))


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _quotient(a: Affine, b: Affine, divide: Callable[[int, int], int]) -> Affine:
    if b.low is None or b.high is None or b.low <= 0 <= b.high:
        return bounded("quotient", (None, None), (a, b))
    if a.low is None or a.high is None:
        low = 0 if a.low is not None and a.low >= 0 and b.low > 0 else None
        high = None if a.high is None or b.low <= 0 else max(divide(a.high, b.low), divide(a.high, b.high))
        return bounded("quotient", (low, high), (a, b))
    return bounded("quotient", _corners(a, b, divide), (a, b))


def _remainder(a: Affine, b: Affine) -> Affine:
    if b.is_number and b.constant > 0:
        size = b.constant
        if a.is_number and a.constant >= 0:
            return Affine(a.constant % size, {}, a.origins | b.origins)
        if a.low is not None and a.low >= 0:
            if a.high is not None and a.high < size:
                return a
            return bounded("remainder", (0, size - 1), (a, b))
    # its sign is the dividend's, its size below the divisor's, whatever sign that has
    size = max(abs(b.low), abs(b.high)) if b.low is not None and b.high is not None else 0
    high = size - 1 if size > 0 else None
    low = 0 if a.low is not None and a.low >= 0 else None
    return bounded("remainder", (low, high), (a, b))


def _least(a: Affine, b: Affine) -> Affine:
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    highs = [bound for bound in (a.high, b.high) if bound is not None]
    return bounded("minimum", (low, min(highs) if highs else None), (a, b))


def _greatest(a: Affine, b: Affine) -> Affine:
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    lows = [bound for bound in (a.low, b.low) if bound is not None]
    return bounded("maximum", (max(lows) if lows else None, high), (a, b))


def _shift_left(a: Affine, b: Affine) -> Affine:
    if b.is_number and 0 <= b.constant < 64:
        return a * Affine(1 << b.constant, {}, b.origins)
    return bounded("shift", (None, None), (a, b))


def _shift_right(a: Affine, b: Affine) -> Affine:
    if b.is_number and 0 <= b.constant < 64:
        return _quotient(a, Affine(1 << b.constant, {}, b.origins), lambda x, y: x // y)
    return bounded("shift", (None, None), (a, b))


def _bits(op: Callable[[int, int], int]) -> Callable[[Affine, Affine], Affine]:
    def apply(a: Affine, b: Affine) -> Affine:
        if a.is_number and b.is_number:
            return Affine(op(a.constant, b.constant), {}, a.origins | b.origins)
        if a.low is not None and b.low is not None and a.low >= 0 and b.low >= 0:
            if a.high is not None and b.high is not None:
                top = (1 << max(a.high.bit_length(), b.high.bit_length())) - 1
                return bounded("bits", (0, top), (a, b))
            return bounded("bits", (0, None), (a, b))
        return bounded("bits", (None, None), (a, b))

    return apply


BINARY: Mapping[str, Callable[[Affine, Affine], Affine]] = {
    "arith.addi": Affine.__add__,
    "arith.subi": Affine.__sub__,
    "arith.muli": Affine.__mul__,
    "arith.divsi": lambda a, b: _quotient(a, b, _truncated),
    "arith.divui": lambda a, b: _quotient(a, b, _truncated),
    "arith.floordivsi": lambda a, b: _quotient(a, b, lambda x, y: x // y),
    "arith.ceildivsi": lambda a, b: _quotient(a, b, lambda x, y: -(-x // y)),
    "arith.ceildivui": lambda a, b: _quotient(a, b, lambda x, y: -(-x // y)),
    "arith.remsi": _remainder,
    "arith.remui": _remainder,
    "arith.minsi": _least,
    "arith.minui": _least,
    "arith.maxsi": _greatest,
    "arith.maxui": _greatest,
    "arith.shli": _shift_left,
    "arith.shrsi": _shift_right,
    "arith.shrui": _shift_right,
    "arith.andi": _bits(lambda a, b: a & b),
    "arith.ori": _bits(lambda a, b: a | b),
    "arith.xori": _bits(lambda a, b: a ^ b),
}
CASTS = frozenset(
    {"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci", "arith.bitcast"}
)

_ORDERINGS: Mapping[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a < b,
    "ule": lambda a, b: a <= b,
    "ugt": lambda a, b: a > b,
    "uge": lambda a, b: a >= b,
}


def compare(predicate: str, a: Affine, b: Affine) -> Affine:
    """1, 0, or either."""
    test = _ORDERINGS.get(predicate)
    if test is not None and a.is_number and b.is_number:
        return Affine(int(test(a.constant, b.constant)), {}, a.origins | b.origins)
    decided = _decided(predicate, a, b)
    if decided is not None:
        return Affine(int(decided), {}, a.sources | b.sources)
    return bounded("condition", (0, 1), (a, b))


def _decided(predicate: str, a: Affine, b: Affine) -> bool | None:
    """What an ordering comes to whatever the variables are, if their bounds tell."""
    order = predicate.lstrip("su")
    if order in ("gt", "ge"):
        a, b, order = b, a, "lt" if order == "gt" else "le"
    if order not in ("lt", "le"):
        return None
    slack = 0 if order == "lt" else 1
    if a.high is not None and b.low is not None and a.high < b.low + slack:
        return True
    if a.low is not None and b.high is not None and a.low >= b.high + slack:
        return False
    return None


def keeps_true(predicate: str, a: Affine, b: Affine) -> tuple[frozenset[str], int] | None:
    """For a guard like `counter < argument`: the argument, and the least value with which it always holds."""
    order = predicate.lstrip("su")
    if order in ("gt", "ge"):
        a, b, order = b, a, "lt" if order == "gt" else "le"
    if order not in ("lt", "le") or not a.terms or a.high is None or len(b.sources) != 1:
        return None
    if b.sources & a.sources:
        return None
    return b.sources, a.high + (order == "lt")

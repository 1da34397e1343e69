"""Bounds of integer values are true for every iteration, and exact where values are sums."""

import itertools

from hypothesis import example, given
from hypothesis import strategies as st

from insight_trace.ptoas.affine import BINARY, Affine, Variable, compare, hull, unknown

small = st.integers(-6, 9)
OPERATIONS = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.divsi": lambda a, b: int(a / b) if b else None,
    "arith.floordivsi": lambda a, b: a // b if b else None,
    "arith.ceildivsi": lambda a, b: -(-a // b) if b else None,
    "arith.remsi": lambda a, b: a - int(a / b) * b if b else None,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b if b >= 0 else None,
    "arith.shrsi": lambda a, b: a >> b if b >= 0 else None,
}


@example("arith.remsi", 0, 1, -2, 3)
@given(st.sampled_from(sorted(OPERATIONS)), small, st.integers(0, 5), small, st.integers(0, 5))
def test_bounds_hold_for_every_pair_of_operands(name, low_a, width_a, low_b, width_b):
    a = unknown("a", frozenset({"a"}), low_a, low_a + width_a)
    b = unknown("b", frozenset({"b"}), low_b, low_b + width_b)
    result = BINARY[name](a, b)
    assert result.sources == {"a", "b"}
    pairs = itertools.product(range(low_a, low_a + width_a + 1), range(low_b, low_b + width_b + 1))
    for x, y in pairs:
        value = OPERATIONS[name](x, y)
        if value is not None:
            assert result.low is None or result.low <= value
            assert result.high is None or result.high >= value


@given(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 40), st.integers(1, 12))
def test_numbers_give_the_number(name, a, b):
    result = BINARY[name](Affine(a), Affine(b))
    assert (result.low, result.high) == (OPERATIONS[name](a, b),) * 2


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4), st.integers(0, 4)), max_size=3), small)
def test_sums_over_loops_are_exact(terms, constant):
    value = Affine(constant)
    ranges = []
    for index, (factor, low, width) in enumerate(terms):
        counter = Affine(0, {Variable(f"i{index}", low, low + width, frozenset()): 1})
        value = value + counter * Affine(factor)
        ranges.append([factor * x for x in range(low, low + width + 1)])
    reached = [constant + sum(choice) for choice in itertools.product(*ranges)]
    assert (value.low, value.high) == (min(reached), max(reached))


def test_terms_that_cancel_do_cancel():
    i = unknown("i", low=0, high=100)
    assert (i * Affine(8) - i * Affine(8)).is_number


def test_an_unbounded_value_has_no_bound_but_keeps_its_origin():
    n = unknown("n", frozenset({"n"}))
    assert (n + Affine(1)).high is None
    assert (n * n).sources == {"n"}
    assert BINARY["arith.minsi"](n, Affine(7)).high == 7
    assert hull(Affine(1), Affine(5)).high == 5


def test_a_comparison_of_numbers_is_decided_and_of_others_is_open():
    assert compare("slt", Affine(1), Affine(2)) == Affine(1)
    open_ = compare("eq", unknown("n", frozenset({"n"})), Affine(2))
    assert (open_.low, open_.high, open_.sources) == (0, 1, {"n"})

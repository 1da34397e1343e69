"""Rows by key, keys by number, and operand texts each once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.recording.stream import Picked, first_places, grouped, numbered, numbered_details
from insight_trace.trace.instr_metrics import instruction_text
from tests.synthetic_recording import mix_recording

runs = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=12)


@given(runs)
def test_the_rows_of_a_key_are_in_order_whether_keys_come_in_runs_or_one_by_one(found):
    keys = np.array([key for key, length in found for _ in range(length)], np.uint16)
    expected = [(key, np.flatnonzero(keys == key).tolist()) for key in sorted(set(keys.tolist()))]
    assert [(key, rows.tolist()) for key, rows in grouped(keys)] == expected


@given(st.lists(st.one_of(st.integers(0, 50), st.integers(0, 2**40)), max_size=40))
def test_keys_are_numbered_in_their_order_and_found_where_they_first_stand(values):
    keys = np.array(values, np.int64)
    present, index = numbered(keys)
    assert present.tolist() == sorted(set(values))
    assert present[index].tolist() == values
    first = [values.index(key) for key in present.tolist()]
    assert first_places(index, len(present) + 1).tolist() == [*first, len(values)]


@pytest.mark.parametrize("listed", [False, True])
def test_operand_texts_are_kept_once_for_many_rows(listed):
    details = mix_recording(2, 3).instructions.detail
    rows = np.arange(len(details))[::-1].copy()
    spelled = [details[row] for row in rows.tolist()]
    source = list(details) if listed else Picked(details, np.arange(len(details)))
    texts, index = numbered_details(source, rows, values=True)
    assert [texts[number] for number in index.tolist()] == spelled
    assert len(texts) < len(spelled) / 4, "a loop names the same operands again"
    without, number = numbered_details(source, rows, values=False)
    short = [instruction_text("", text) for text in spelled]
    assert [instruction_text("", without[place]) for place in number.tolist()] == short
    if not listed:
        assert len(without) < len(texts)

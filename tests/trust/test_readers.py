"""Every reader takes whatever bytes it is given: read, or refused with an error of ours. `make fuzz` runs longer."""

import random
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.mutate_readers import mutated

from insight_trace.errors import InsightTraceError
from tests.trust.reader_targets import TARGETS, place

INPUTS = 60


def _read(name: str, path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[name].read(path)
        return True
    except InsightTraceError:
        return False
    finally:
        assert time.process_time() - begin < 5


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_inputs_are_read_or_refused(name, tmp_path):
    path = place(tmp_path, TARGETS[name])
    dice = random.Random(name)
    for seed in TARGETS[name].seeds:
        assert _read(name, path, seed)
    for _ in range(INPUTS):
        _read(name, path, mutated(dice.choice(TARGETS[name].seeds), dice))


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_read_or_refused(name, tmp_path):
    path = place(tmp_path, TARGETS[name])

    @settings(max_examples=15, database=None)
    @given(
        st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
    )
    def one(content: bytes) -> None:
        _read(name, path, content)

    one()

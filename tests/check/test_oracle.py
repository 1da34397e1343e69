"""The checker and a slow oracle that shares nothing with it agree on what taking a flag or barrier out breaks."""

import importlib
import sys

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def mutations():
    before = list(sys.path)  # the tool puts its own folder there too
    sys.path.insert(0, str(ROOT / "tools"))
    yield importlib.import_module("sync_mutations")
    sys.path[:] = before


def test_whatever_a_removal_breaks_in_an_example_is_found_and_nothing_else(mutations):
    counts = mutations.Counts()
    for name, kernel, arguments, target in mutations.candidates(None, 0, 0):
        if "kernels" in name:
            mutations.mutate(kernel, arguments, target, 400, counts, name)
    assert counts.kernels >= 5
    assert counts.broken >= 20
    assert counts.found == counts.broken, counts.missed
    assert (counts.false, counts.redundant_broken, counts.racy) == (0, 0, [])

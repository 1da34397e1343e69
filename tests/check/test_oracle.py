"""The checker and a slow oracle that shares nothing with it agree on what taking a flag or barrier out breaks."""

import importlib
import sys

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.simulate.dispatching import arguments, mix


@pytest.fixture(scope="module")
def mutations():
    before = list(sys.path)  # the tool puts its own folder there too
    sys.path.insert(0, str(ROOT / "tools"))
    yield importlib.import_module("sync_mutations")
    sys.path[:] = before


def test_whatever_a_removal_breaks_in_an_example_is_found_and_nothing_else(mutations):
    counts = mutations.Counts()
    for name, kernels, given, target in mutations.candidates(None, 0, 0):
        if "kernels" in name:
            mutations.mutate(kernels, given, target, 400, counts, name)
    assert counts.kernels >= 5
    assert counts.broken >= 20
    assert counts.found == counts.broken, counts.missed
    assert (counts.false, counts.redundant_broken, counts.racy) == (0, 0, [])


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_same_holds_for_kernels_on_a_cluster_of_cores(mutations, target):
    halves, ring = np.ones((128, 64), np.float16), np.zeros((512, 64), np.float32)
    slots = [halves, halves[:64], halves[:64], np.zeros((128, 64), np.float32), ring, ring[:256], 2]
    counts = mutations.Counts()
    mutations.mutate(mix("mix_chain.cpp", 1), arguments(slots, [3]), target, 600, counts, "mix_chain")
    assert counts.kernels == 1
    assert counts.broken >= 3
    assert counts.found == counts.broken, counts.missed
    assert (counts.false, counts.redundant_broken, counts.racy) == (0, 0, []), counts.falsely

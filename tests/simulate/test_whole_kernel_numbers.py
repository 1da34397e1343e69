"""The vendor's whole kernels, from a checkout of pto-isa, against NumPy."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.conftest import ROOT

GROUPS = ("gemm", "gemm_ar", "top_k", "conv2d", "attention", "mx_gemm")


@pytest.fixture(scope="module")
def numbers() -> Iterator[ModuleType]:
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location(
        "whole_kernel_numbers", ROOT / "benchmarks" / "whole_kernel_numbers.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["whole_kernel_numbers"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


@pytest.mark.skipif("INSIGHT_TRACE_LONG_TESTS" not in os.environ, reason="set INSIGHT_TRACE_LONG_TESTS=1")
@pytest.mark.parametrize("group", GROUPS)
def test_whole_kernels_of_a_checkout_compute_what_numpy_does(
    group: str, numbers: ModuleType, pto_isa_checkout: Path, tmp_path: Path
) -> None:
    assert tuple(one.__name__ for one in numbers.GROUPS) == GROUPS
    for one in getattr(numbers, group)(np.random.default_rng(5)):
        assert numbers.checked(one, pto_isa_checkout, tmp_path) == "", one.point.kernel


def test_a_number_that_is_not_the_goldens_is_found(numbers: ModuleType) -> None:
    (product,) = numbers.gemm(np.random.default_rng(5))
    want = product.golden[0]
    assert product.problem({0: want}) == ""
    wrong = want.copy()
    wrong[3, 4] += 1
    assert "1 of 131072 wrong" in product.problem({0: wrong})
    wrong[3, 4] = np.nan
    assert "1 of 131072 wrong" in product.problem({0: wrong})

"""A matrix product and an attention of a pto-isa checkout, run by the engine, against their published times."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def whole_kernels() -> Iterator[ModuleType]:
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("whole_kernels", ROOT / "benchmarks" / "whole_kernels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["whole_kernels"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


@pytest.mark.parametrize(("kernel", "case"), [("GEMM half", "1536³"), ("flash attention", "1024 x 1024")])
def test_a_kernel_takes_what_is_published_and_what_the_table_says(
    kernel: str, case: str, whole_kernels: ModuleType, pto_isa_checkout: Path, tmp_path: Path
) -> None:
    (point,) = (p for p in whole_kernels.points() if (p.kernel, p.case) == (kernel, case))
    result = whole_kernels.run(point, pto_isa_checkout, tmp_path)
    assert not result.problem
    assert result.ratio == pytest.approx(1, abs=0.2)
    rows = json.loads((ROOT / "benchmarks" / "whole_kernels.json").read_text(encoding="utf-8"))
    (row,) = (r for r in rows if (r["kernel"], r["case"]) == (kernel, case))
    assert result.micros == pytest.approx(row["us"], rel=0.02)

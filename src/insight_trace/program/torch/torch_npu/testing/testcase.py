"""The names that tests import."""

from __future__ import annotations

import unittest

import torch
from torch.testing import assert_close

run_tests = unittest.main


class TestCase(unittest.TestCase):
    """With the comparisons that the vendor's test cases have."""

    def assertRtolEqual(  # noqa: N802
        self, x: object, y: object, prec: float = 1e-4, prec16: float = 1e-3, **_: object
    ) -> None:
        first, second = torch.as_tensor(x).cpu(), torch.as_tensor(y).cpu()
        limit = prec16 if first.dtype == torch.float16 else prec
        assert_close(first, second, rtol=limit, atol=limit)

    def assertEqual(self, first: object, second: object, *message: object, **_: object) -> None:  # noqa: N802
        if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
            assert_close(first.cpu(), second.cpu())
        else:
            super().assertEqual(first, second, *message)  # noqa: PT009

"""The package's modules as syntax trees, each read once for all tests that look at them."""

import ast
import functools
from pathlib import Path

import insight_trace

SOURCE = Path(insight_trace.__file__).parent


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Every module by its path below the package."""
    return {
        path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }

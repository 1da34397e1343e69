"""Packages that are also verbs: `insight_trace.simulate(...)` calls the function of the same name inside.

A package and the function it is named for share one name on `insight_trace`; whichever was imported
first, both uses work.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        verb = self.__name__.rpartition(".")[2]
        return getattr(self, verb)(*args, **kwargs)


def make_callable(package: str) -> None:
    """Lets the package of that name be called like its function."""
    sys.modules[package].__class__ = _CallablePackage

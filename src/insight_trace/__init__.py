"""From one kernel dispatch observed at run time to a trace that opens in MindStudio Insight.

Names are loaded when they are first used, so that `import insight_trace` costs nothing.
"""

from __future__ import annotations

# Nothing is imported here: an interruption meanwhile would come before there is somebody to tell it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_EXPORTS: dict[str, str] = {
    "simulate": "insight_trace.simulate",
    "replay": "insight_trace.replay",
    "capture": "insight_trace.capture",
    "profile": "insight_trace.profile",
    "diff": "insight_trace.guard",
    "judge": "insight_trace.judge",
    "kernel": "insight_trace.program.run_kernel",
    "open_trace": "insight_trace.insight",
    "load_dump": "insight_trace.dump.load",
    "load_scene": "insight_trace.scene.static",
    "load_scene_live": "insight_trace.scene.live",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'insight_trace' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)


def make_callable(package: str) -> None:
    """Lets a package be called like the function in it that it is named for: `insight_trace.simulate(...)`.

    Package and function share one name here; whichever was imported first, both uses work.
    """
    import sys
    import types

    class CallablePackage(types.ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            verb = self.__name__.rpartition(".")[2]
            return getattr(self, verb)(*args, **kwargs)

    sys.modules[package].__class__ = CallablePackage
